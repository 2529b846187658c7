"""Private Frank-Wolfe on real data against epsilon: where n is too small, the chart says so."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from charts import Chart, Curve, Panel, main, over_seeds

from algorithms import PrivateLasso
from algorithms.frank_wolfe.private_logistic_lasso import PrivateLogisticLasso
from audits.runner.california_housing import load as load_housing

DELTA, TRAIN = 1e-6, 0.8
FEW, MANY, NO_NOISE = 10, 1_000, 1e9
RIBOFLAVIN, LEUKAEMIA = "riboflavin/riboflavin.npz", "golub_leukemia/golub_leukemia.npz"
SMALL = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0, 3_000.0)
LARGE = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
Table = tuple[np.ndarray, np.ndarray]  # features and targets within their bounds


@dataclass(frozen=True)
class Data:
    """A data set, the model and the ball it is fitted over, and the epsilons that matter."""

    name: str
    measure: str
    epsilons: tuple[float, ...]
    radius: float = 1.0
    classes: bool = False


SETS = (
    Data("riboflavin", "test mean squared error, y in [−1, 1]", SMALL),
    Data("leukaemia", "test error rate", SMALL, radius=3.0, classes=True),
    Data("housing", "test mean squared error, y in [−1, 1]", LARGE),
)
AUTO, SHORT, FREE, CONSTANT = (
    "private, T* rounds", f"private, {FEW} rounds", f"the same without noise, {MANY:,} rounds",
    "constant predictor, not private",
)  # fmt: skip
LOOKS = {
    AUTO: {"color": "#4e79a7", "marker": "o", "lw": 2.2},
    SHORT: {"color": "#f28e2b", "marker": "s", "mfc": "white", "ls": "--"},
    FREE: {"color": "#222222", "ls": "-."},
    CONSTANT: {"color": "#888888", "ls": ":", "lw": 2.2},
}


@lru_cache
def table(name: str, folder: Path) -> Table:
    """All records.

    Genes are standardised over all records, as if means and deviations were public: that is in
    favour of the private fit.  Housing has public bounds.
    """
    if name == "housing":
        housing = load_housing()
        x, y = (np.concatenate(parts) for parts in zip(housing.train, housing.test, strict=True))
        return x, y
    if name == "riboflavin":
        with np.load(folder / RIBOFLAVIN) as file:
            return standardised(file["X"]), (file["y"] + 7.5) / 2.5  # log2 rates of -10 to -5
    with np.load(folder / LEUKAEMIA) as file:
        return standardised(np.log2(np.clip(file["X"], 20, 16_000))), file["y"].astype(float)


def standardised(x: np.ndarray) -> np.ndarray:
    """Clipped at three deviations, within [-1, 1]; a constant is added."""
    spread = x.std(axis=0)
    x = np.clip((x - x.mean(axis=0)) / np.where(spread > 0, spread, 1.0), -3, 3) / 3
    return np.hstack([x, np.ones((len(x), 1))])


def errors(
    data: Data, whole: Table, epsilons: tuple[float, ...], seed: int
) -> dict[tuple[str, float], float]:
    """Test errors after a random split, by curve and epsilon."""
    x, y = whole
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = np.split(order, [int(TRAIN * len(y))])
    kind = PrivateLogisticLasso if data.classes else PrivateLasso

    def error(predicted: np.ndarray) -> float:
        if data.classes:
            return float(np.mean(predicted != y[test]))
        return float(np.square(predicted - y[test]).mean())

    def fitted(epsilon: float, rounds: int | None) -> float:
        made = kind(epsilon, DELTA, data.radius, rounds, random_state=seed)
        return error(made.fit(x[train], y[train]).predict(x[test]))

    middle = np.median(y[train]) if data.classes else y[train].mean()
    same = {FREE: fitted(NO_NOISE, MANY), CONSTANT: error(np.full(len(test), middle))}
    found = {}
    for epsilon in epsilons:
        private = {AUTO: fitted(epsilon, None), SHORT: fitted(epsilon, FEW)}
        found |= {(curve, epsilon): value for curve, value in (private | same).items()}
    return found


def measured(
    folder: Path, epsilons: dict[str, tuple[float, ...]], seed: int
) -> dict[tuple[str, str, float], float]:
    """Errors on every data set."""
    return {
        (data.name, *key): value
        for data in SETS
        for key, value in errors(data, table(data.name, folder), epsilons[data.name], seed).items()
    }


def too_small(curves: dict[str, Curve]) -> str:
    """Up to which epsilon the default does not beat the constant by two standard errors."""
    gains = curves[CONSTANT].runs - curves[AUTO].runs  # of the same splits
    seeds, epsilons = gains.shape[1], curves[AUTO].x
    error = gains.std(axis=1, ddof=1) / np.sqrt(seeds) if seeds > 1 else 0.0
    wins = gains.mean(axis=1) > 2 * error
    lost = len(wins) - int(np.cumprod(wins[::-1]).sum())  # from here on it always wins
    if lost == 0:
        return f"n is large enough at ε = {epsilons[0]:g}"
    told = f"n is too small at ε ≤ {epsilons[lost - 1]:,g}"
    return told if lost == len(wins) else f"{told}, not at {epsilons[lost]:,g}"


def panels(options: argparse.Namespace) -> list[Panel]:
    """A panel for each data set."""
    epsilons = {data.name: data.epsilons[::6] if options.quick else data.epsilons for data in SETS}
    found = over_seeds(partial(measured, options.data, epsilons), options.seeds)
    drawn = []
    for data in SETS:
        x = epsilons[data.name]
        curves = {
            name: Curve(name, x, np.array([found[data.name, name, epsilon] for epsilon in x]), look)
            for name, look in LOOKS.items()
        }
        rows, features = table(data.name, options.data)[0].shape
        title = f"{data.name}: n = {int(TRAIN * rows):,}, p = {features:,}\n{too_small(curves)}"
        drawn.append(Panel(data.name, title, "ε", data.measure, tuple(curves.values()), "x"))
    return drawn


def told(drawn: list[Panel]) -> list[str]:
    """What the titles say."""
    return [panel.title.replace("\n", ": ") for panel in drawn]


CHART = Chart(
    "frank_wolfe_data",
    f"Private Frank-Wolfe on real data, δ = {DELTA:g}: where it is no better than a constant, "
    "n is too small",
    panels,
    told,
    (RIBOFLAVIN, LEUKAEMIA),
)

if __name__ == "__main__":
    main(CHART)
