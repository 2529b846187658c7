"""Private Frank-Wolfe on real data against epsilon: where n is too small, the chart says so."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from algorithms import PrivateLasso
from algorithms.base.signal import NoSignalWarning
from algorithms.frank_wolfe.private_logistic_lasso import PrivateLogisticLasso
from audits.runner.california_housing import load as load_housing
from experiments import charts
from experiments.charts import Chart, Curve, Look, Options, Panel, curves_of, over_seeds
from experiments.datasets import Table, leukaemia, riboflavin, train_and_test

DELTA = 1e-6
FEW, NO_NOISE = 10, 1e9
SMALL = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0, 3_000.0)
LARGE = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


@lru_cache
def housing(folder: Path) -> Table:
    """All records of the embedded California housing data, which has public bounds."""
    del folder
    data = load_housing()
    x, y = (np.concatenate(parts) for parts in zip(data.train, data.test, strict=True))
    return x, y


@dataclass(frozen=True)
class Data:
    """A data set, the model and the ball it is fitted over, and the epsilons that matter."""

    name: str
    load: Callable[[Path], Table]
    measure: str
    epsilons: tuple[float, ...]
    radius: float = 1.0
    classes: bool = False


SETS = (
    Data("riboflavin", riboflavin, "test mean squared error, y in [−1, 1]", SMALL),
    Data("leukaemia", leukaemia, "test error rate", SMALL, radius=3.0, classes=True),
    Data("housing", housing, "test mean squared error, y in [−1, 1]", LARGE),
)
AUTO, SHORT, FREE, CONSTANT = (
    "private, T* rounds", f"private, {FEW} rounds", "the same without noise, {:,} rounds",
    "constant predictor, not private",
)  # fmt: skip
LOOKS: dict[str, Look] = {
    AUTO: {"color": charts.BLUE, "marker": "o", "lw": 2.2},
    SHORT: {"color": charts.RED, "marker": "s", "mfc": "white", "ls": "--"},
    FREE: {"color": charts.INK, "ls": "-."},
    CONSTANT: {"color": charts.GREY, "ls": ":", "lw": 2.2},
}


def errors(
    data: Data, folder: Path, epsilons: tuple[float, ...], many: int, seed: int
) -> dict[tuple[str, str, float], float]:
    """Test errors after a random split, by data set, curve and epsilon."""
    x, y = data.load(folder)
    train, test = train_and_test(len(y), seed)
    kind = PrivateLogisticLasso if data.classes else PrivateLasso

    def error(predicted: np.ndarray) -> float:
        if data.classes:
            return float(np.mean(predicted != y[test]))
        return float(np.square(predicted - y[test]).mean())

    def fitted(epsilon: float, rounds: int | None) -> float:
        made = kind(epsilon, DELTA, data.radius, rounds, random_state=seed, method="frank-wolfe",
                    fit_intercept=False)  # fmt: skip
        if data.classes:
            made.set_params(classes=np.unique(y))
        with warnings.catch_warnings():  # what too few records lead to is what is shown
            warnings.simplefilter("ignore", NoSignalWarning)
            return error(made.fit(x[train], y[train]).predict(x[test]))

    middle = np.median(y[train]) if data.classes else y[train].mean()
    same = {FREE.format(many): fitted(NO_NOISE, many), CONSTANT: error(np.full(len(test), middle))}
    found: dict[tuple[str, str, float], float] = {}
    for epsilon in epsilons:
        private = {AUTO: fitted(epsilon, None), SHORT: fitted(epsilon, FEW)}
        found |= {(data.name, name, epsilon): one for name, one in (private | same).items()}
    return found


def measured(
    folder: Path, epsilons: dict[str, tuple[float, ...]], many: int, seed: int
) -> dict[tuple[str, str, float], float]:
    """The same on every data set."""
    return {
        key: value
        for data in SETS
        for key, value in errors(data, folder, epsilons[data.name], many, seed).items()
    }


def too_small(curves: list[Curve]) -> str:
    """Up to which epsilon the default does not beat the constant by two standard errors."""
    private, *_, constant = curves
    gains = constant.runs - private.runs  # of the same splits
    seeds, epsilons = gains.shape[1], private.x
    error = gains.std(axis=1, ddof=1) / np.sqrt(seeds) if seeds > 1 else 0.0
    wins = gains.mean(axis=1) > 2 * error
    lost = len(wins) - int(np.cumprod(wins[::-1]).sum())  # from here on it always wins
    if lost == 0:
        return f"n is large enough at ε = {epsilons[0]:g}"
    words = f"n is too small at ε ≤ {epsilons[lost - 1]:,g}"
    return words if lost == len(wins) else f"{words}, not at {epsilons[lost]:,g}"


def risk(options: Options) -> Chart:
    """A panel for each data set, whose title says where n is too small."""
    epsilons = {data.name: data.epsilons[::6] if options.quick else data.epsilons for data in SETS}
    many = FEW if options.quick else 1_000
    looks = {name.format(many): look for name, look in LOOKS.items()}
    found = over_seeds(partial(measured, options.data, epsilons, many), options.seeds)
    panels = []
    for data in SETS:
        curves = curves_of(found, data.name, epsilons[data.name], looks)
        rows, features = data.load(options.data)[0].shape
        title = f"{data.name}: n = {4 * rows // 5:,}, p = {features:,}\n{too_small(curves)}"
        panels.append(Panel(data.name, title, "ε", data.measure, curves, "x"))
    return Chart(panels, [panel.title.replace("\n", ": ") for panel in panels])


FIGURES = {"frank-wolfe-data": risk}
