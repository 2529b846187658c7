"""Signs by vote, Liu, Tu, Mao & Chen (2022), Figures 2 to 5: false discoveries and power."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from accountant.ledger.ledger import Ledger
from algorithms import SignVote
from algorithms.voting.peeling import majority_signs
from experiments import charts
from experiments.charts import Chart, Curve, Look, Options, Panel, over_seeds
from experiments.method_grids import Setting
from experiments.papers.voting_machines import (
    DELTA,
    RECORDS,
    SELECT,
    Machines,
    MeanStudy,
    RegressionStudy,
    Study,
    signals,
)

Scores = tuple[float, float]  # false discovery rate, power
Point = tuple[int, float]  # machines, epsilon
Sizes = tuple[Setting, tuple[Point, ...]]
Method = Callable[[Setting, Machines, int], Scores]
LOOKS: tuple[Look, ...] = (
    {"color": charts.INK, "ls": ":", "marker": "s", "mfc": "white"},
    {"color": charts.BLUE, "ls": "-", "marker": "o", "lw": 2.2},
    {"color": charts.RED, "ls": "--", "marker": "o", "mfc": "white"},
    {"color": charts.GREEN, "ls": "-", "marker": "^"},
    {"color": charts.PURPLE, "ls": "-.", "marker": "v", "mfc": "white"},
)


def scores(found: np.ndarray, setting: Setting) -> Scores:
    """Shares of selected signs that are wrong, and of true ones that were found."""
    right = int(np.count_nonzero((found != 0) & (found == np.sign(signals(setting)))))
    selected = int(np.count_nonzero(found))
    return (selected - right) / max(selected, 1), right / setting.sparsity


def noise(setting: Setting, machines: Machines, seed: int) -> np.random.Generator:
    """Other noise at every point."""
    return np.random.default_rng([seed, len(machines.votes), round(1000 * setting.epsilon)])


@lru_cache
def vote_plan(epsilon: float, form: str) -> Any:
    """The plan of a vote, the same for any machines: it takes longer than a run."""
    return SignVote(epsilon, DELTA, SELECT, form=form).plan((2, SELECT))


@lru_cache
def baseline_plan(
    study: Study, setting: Setting, machines: int, form: str, shape: tuple[int, ...]
) -> Any:
    """The plan of the baseline, the same for every seed."""
    return study.baseline(setting, machines, form).plan(shape)


def methods(study: Study) -> dict[str, Method]:
    """Vote, DPVote in both forms, and noisy hard thresholding in both forms."""

    def vote(setting: Setting, machines: Machines, seed: int) -> Scores:
        del seed
        return scores(majority_signs(machines.votes), setting)

    def private_vote(form: str) -> Method:
        def found(setting: Setting, machines: Machines, seed: int) -> Scores:
            made = SignVote(setting.epsilon, DELTA, SELECT, form=form)
            plan = vote_plan(setting.epsilon, form)
            ledger = Ledger(machines.votes, plan, rng=noise(setting, machines, seed))
            return scores(made.run(ledger), setting)

        return found

    def thresholded(form: str) -> Method:
        def found(setting: Setting, machines: Machines, seed: int) -> Scores:
            data, many = machines.data, len(machines.votes)
            shape = data[0].shape if isinstance(data, tuple) else data.shape
            made, plan = (study.baseline(setting, many, form),
                          baseline_plan(study, setting, many, form, shape))  # fmt: skip
            ledger = Ledger(data, plan, rng=noise(setting, machines, seed))
            return scores(np.sign(made.run(ledger)), setting)

        return found

    return {
        "Vote without noise (not private)": vote,
        "DPVote, calibrated": private_vote("calibrated"),
        "DPVote, as published": private_vote("published"),
        "Cai-Wang-Zhang, calibrated": thresholded("calibrated"),
        "Cai-Wang-Zhang, as published": thresholded("published"),
    }


def measured(
    study: Study, base: Setting, points: tuple[Point, ...], seed: int
) -> dict[tuple[str, Point], Scores]:
    """Every method on the same machines; more machines are those and others."""
    everyone = study.sample(base, max(machines for machines, _ in points), seed)
    return {
        (name, (machines, epsilon)): method(
            replace(base, epsilon=epsilon), everyone.first(machines), seed
        )
        for machines, epsilon in points
        for name, method in methods(study).items()
    }


def draw(study: Study, full: Sizes, quick: Sizes, options: Options) -> Chart:
    """False discovery rate and power, over epsilon if that varies, else over machines."""
    base, points = quick if options.quick else full
    found = over_seeds(partial(measured, study, base, points), options.seeds)
    machines, epsilon = points[0]
    if len({some for some, _ in points}) > 1:
        axis, xlabel, fixed = 0, "machines", f"ε = {epsilon:g}"
    else:
        axis, xlabel, fixed = 1, "ε, for all data of a machine", f"{machines:,} machines"
    title = (f"{fixed}, δ = {charts.power_of_ten(DELTA)}, {RECORDS} records a machine, "
             f"p = {base.features}, s = {base.sparsity}, {SELECT} selected")  # fmt: skip

    def panel(name: str, ylabel: str, measure: int) -> Panel:
        curves = [
            Curve(method, [point[axis] for point in points],
                  np.array([found[method, point][:, measure] for point in points]), look)
            for method, look in zip(methods(study), LOOKS, strict=True)
        ]  # fmt: skip
        return Panel(name, title, xlabel, ylabel, curves, "x")

    return Chart([panel("FDR", "false discovery rate of signs", 0), panel("power", "power", 1)], [])


BASE, SMALL = Setting(200, 10, 1.0), Setting(50, 5, 1.0)
BY_EPSILON = BASE, tuple((400, epsilon) for epsilon in (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0))


def by_machines(base: Setting, *machines: int) -> Sizes:
    """The same epsilon, 1, for every number of machines."""
    return base, tuple((some, 1.0) for some in machines)


FIGURES = {
    "sign-votes-2": partial(draw, MeanStudy(), by_machines(BASE, 50, 100, 200, 400, 600, 800, 1200),
                            by_machines(BASE, 100, 200, 1200)),
    "sign-votes-3": partial(draw, MeanStudy(), BY_EPSILON, (BASE, ((200, 1.0), (200, 8.0)))),
    "sign-votes-4": partial(draw, RegressionStudy(),
                            by_machines(BASE, 25, 50, 100, 200, 400, 800, 1200),
                            by_machines(SMALL, 50, 150)),
    "sign-votes-5": partial(draw, RegressionStudy(), BY_EPSILON, (SMALL, ((150, 1.0), (150, 8.0)))),
}  # fmt: skip
