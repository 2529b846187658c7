"""How far algorithms are from the best that privacy allows, on the hardest data of each bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from audits.minimax.performance.algorithm_table import algorithms_for
from audits.minimax.performance.gap import measure_risk_gap
from audits.minimax.problems import lower_bound
from experiments.charts import (
    COLOURS,
    GREY,
    INK,
    MARKS,
    Chart,
    Curve,
    Look,
    Options,
    Panel,
    over_seeds,
)

BOUND, PUBLISHED, RATE = "lower bound", "as published", "reference rate with constant 1, no bound"
LOOKS: dict[str, Look] = {
    BOUND: {"color": INK, "ls": "-", "lw": 2.2},
    PUBLISHED: {"color": INK, "ls": ":"},
    RATE: {"color": GREY, "ls": ":"},
}
FREE, PROMISE = "{}, no noise", "{}, theorem"
Key = tuple[str, str, float]


@dataclass(frozen=True)
class Along:
    """A panel: a problem's setting with one quantity varied."""

    name: str
    title: str
    problem: str
    base: dict[str, Any]
    axis: str
    values: tuple[float, ...]
    algorithms: tuple[str, ...]
    beside: str = ""  # what moves along: "rows" keeps n - p

    def quick(self) -> Along:
        """Two values, of few records."""
        few = self.base | {"n": min(self.base["n"], 3_000)}
        return replace(self, base=few, values=self.values[:2])

    def settings(self) -> dict[float, dict[str, Any]]:
        """One for each value."""
        found = {x: self.base | {self.axis: x} for x in self.values}
        if self.beside:
            rows = self.base["n"] - self.base["p"]
            found = {x: one | {"n": int(x) + rows} for x, one in found.items()}
        return found

    def measured(self, seed: int) -> dict[Key, float]:
        """Losses of one run, by curve and value."""
        found: dict[Key, float] = {}
        for x, setting in self.settings().items():
            for match in algorithms_for(self.problem):
                if match.algorithm in self.algorithms:
                    one = measure_risk_gap(match, setting, 1, seed)
                    found[self.name, match.algorithm, x] = one.losses[0]
                    found[self.name, FREE.format(match.algorithm), x] = one.noiseless_losses[0]
        return found

    def panel(self, found: dict[Key, np.ndarray], looks: dict[str, Look]) -> Panel:
        """The curves: measured, bounds, promises."""
        curves = []
        for words in (words for name in self.algorithms for words in (name, FREE.format(name))):
            runs = np.array([found[self.name, words, x] for x in self.values])
            if runs.min() >= 0 and runs.mean(axis=1).min() > 0:
                curves.append(Curve(words, self.values, runs, looks[words]))
        curves += [
            Curve(words, self.values, np.array(values, dtype=float)[:, None], looks[words])
            for words, values in self._lines().items()
        ]
        return Panel(self.name, self.title, SYMBOLS[self.axis], "risk", tuple(curves))

    def _lines(self) -> dict[str, list[float | None]]:
        bounds = {x: lower_bound(self.problem, **one) for x, one in self.settings().items()}
        lines: dict[str, list[float | None]] = {
            BOUND: [one.value for one in bounds.values()],
            RATE if self.problem == "central_regression" else PUBLISHED: [
                one.published for one in bounds.values()
            ],
        }
        for match in algorithms_for(self.problem):
            if match.algorithm in self.algorithms:
                lines[PROMISE.format(match.algorithm)] = [
                    match.theorem_bound(one, bounds[x]) for x, one in self.settings().items()
                ]
        return {words: some for words, some in lines.items() if all(some)}


SYMBOLS = {"n": "n", "p": "p", "epsilon": "ε", "k": "k", "dimension": "dimension"}
RECORDS = {"n": 100_000, "p": 20, "epsilon": 1.0, "interaction": "sequential"}
IHT = ("LocalIHT", "LocalIHT, residuals clipped")
LABELS = {"n": 100_000, "p": 50, "s": 3, "epsilon": 1.0, "noise_bound": 1.0}
SGD = {"n": 10_000, "k": 20, "epsilon": 1.0}
LASSO = {"n": 280, "p": 256, "epsilon": 1.0, "delta": 1e-6}
CENTRAL = {"n": 2_000, "p": 64, "s": 1, "epsilon": 1.0, "delta": 1e-6}
MEAN = {"n": 10_000, "dimension": 10, "epsilon": 1.0}
CURATOR = MEAN | {"model": "central"}
USERS = (1_000, 10_000, 100_000, 1_000_000)
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
GROUPS: dict[str, tuple[Along, ...]] = {
    "lower-bounds-records": (
        Along("n", "p = 20, ε = 1", "sparse_regression", RECORDS, "n", USERS, IHT),
        Along("p", "n = 100,000, ε = 1", "sparse_regression", RECORDS, "p", (5, 20, 80, 320), IHT),
        Along("epsilon", "n = 100,000, p = 20", "sparse_regression", RECORDS, "epsilon", EPSILONS,
              IHT),
    ),
    "lower-bounds-labels": (
        Along("n", "regression, p = 50, s = 3, ε = 1", "label_regression", LABELS, "n", USERS,
              ("LabelIHT",)),
        Along("epsilon", "regression, n = 100,000", "label_regression", LABELS, "epsilon", EPSILONS,
              ("LabelIHT",)),
        Along("sgd n", "classification, 20 labels, ε = 1", "label_optimisation", SGD, "n",
              (1_000, 3_000, 10_000, 30_000), ("LabelSGD",)),
        Along("sgd k", "classification, n = 10,000, ε = 1", "label_optimisation", SGD, "k",
              (4, 16, 64), ("LabelSGD",)),
    ),
    "lower-bounds-central": (
        Along("lasso p", "LASSO, 24 fingerprinted rows beside p, ε = 1", "private_lasso", LASSO,
              "p", (64, 256, 1024), ("PrivateLasso",), "rows"),
        Along("lasso epsilon", "the same, p = 256", "private_lasso", LASSO, "epsilon",
              (0.1, 0.3, 1.0, 3.0), ("PrivateLasso",)),
        Along("regression n", "sparse regression, p = 64, s = 1, ε = 1", "central_regression",
              CENTRAL, "n", (500, 2_000, 8_000), ("PrivateLasso", "SparseERM")),
    ),
    "lower-bounds-everyday": (
        Along("mean n", "local mean, dimension 10, ε = 1", "private_mean", MEAN, "n", USERS,
              ("LocalMean",)),
        Along("histogram n", "local histogram, k = 20, ε = 1", "private_histogram",
              {"n": 10_000, "k": 20, "epsilon": 1.0}, "n", USERS, ("LocalHistogram",)),
        Along("central n", "central mean, dimension 10, ε = 1", "private_mean", CURATOR, "n",
              USERS[:3], ("PrivateMean, Laplace",)),
        Along("selection k", "central selection, ε = 1: gap", "private_selection",
              {"n": 10_000, "k": 100, "epsilon": 1.0}, "k", (2, 10, 100, 1_000, 10_000),
              ("PrivateSelection",)),
    ),
}  # fmt: skip


def measured(alongs: tuple[Along, ...], seed: int) -> dict[Key, float]:
    """One run of every panel."""
    return {key: x for along in alongs for key, x in along.measured(seed).items()}


def risks(alongs: tuple[Along, ...], options: Options) -> Chart:
    """A panel for each quantity; quotients to the bound, and slopes."""
    if options.quick:
        alongs = tuple(one.quick() for one in alongs)
    found = over_seeds(partial(measured, alongs), options.seeds)
    names = list(dict.fromkeys(name for along in alongs for name in along.algorithms))
    panels, lines = [along.panel(found, _looks(names)) for along in alongs], []
    for panel in panels:
        bound = next(curve for curve in panel.curves if curve.name == BOUND)
        for curve in panel.curves:
            slope = f"{panel.name}, {curve.name}: {panel.xlabel}^({curve.slope})"
            if curve.name in names:
                shares = curve.means[0] / bound.means[0]
                slope += "; over the bound " + ", ".join(f"{share:.3g}" for share in shares)
            lines.append(slope)
    return Chart(panels, lines)


def _looks(names: list[str]) -> dict[str, Look]:
    """A colour and a mark for each algorithm of the figure; a line for each kind of curve."""
    found = dict(LOOKS)
    for name, colour, mark in zip(names, COLOURS, MARKS, strict=False):
        own = {"color": colour, "marker": mark}
        found[name] = own
        found[FREE.format(name)] = own | {"ls": "--", "mfc": "none"}
        found[PROMISE.format(name)] = own | {"ls": "-.", "lw": 1.0, "ms": 3}
    return found


FIGURES: dict[str, Callable[[Options], Chart]] = {
    name: partial(risks, alongs) for name, alongs in GROUPS.items()
}
