"""Figures 2 to 5 of Liu, Tu, Mao & Chen (2022): false discovery rate and power of signs."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from charts import Chart, Curve, Panel, over_seeds
from common import Grid, Method, Setting
from votes import DELTA, RECORDS, SELECT, Machines, Study, signals

from accountant.ledger.ledger import Ledger
from algorithms import SignVote
from algorithms.voting.vote_counts import majority_signs

Scores = tuple[float, float]  # false discovery rate, power
Measured = dict[tuple[Setting, int, str], Scores]
LOOKS = (
    {"color": "#222222", "ls": ":", "marker": "s", "mfc": "white"},
    {"color": "#4e79a7", "ls": "-", "marker": "o", "lw": 2.2},
    {"color": "#f28e2b", "ls": "--", "marker": "o", "mfc": "white"},
    {"color": "#59a14f", "ls": "-", "marker": "^"},
    {"color": "#b07aa1", "ls": "-.", "marker": "v", "mfc": "white"},
)


def scores(found: np.ndarray, setting: Setting) -> Scores:
    """Shares of selected signs that are wrong, and of true ones that were found."""
    right = np.count_nonzero((found != 0) & (found == np.sign(signals(setting))))
    selected = np.count_nonzero(found)
    return (selected - right) / max(selected, 1), right / setting.sparsity


def noise(setting: Setting, machines: Machines, seed: int) -> np.random.Generator:
    """Other noise at every point."""
    return np.random.default_rng([seed, len(machines.votes), round(1000 * setting.epsilon)])


@lru_cache
def vote_plan(epsilon: float, form: str) -> Any:
    """Its plan, the same for any machines: checking printed constants takes longer than a run."""
    return SignVote(epsilon, DELTA, SELECT, form=form).plan((2, SELECT))


def methods(study: Study) -> tuple[Method, ...]:
    """Vote, DPVote in both forms, and noisy hard thresholding in both forms."""

    def vote(setting: Setting, machines: Machines, seed: int) -> Scores:
        del seed
        return scores(majority_signs(machines.votes), setting)

    def private_vote(form: str) -> Callable[..., Scores]:
        def found(setting: Setting, machines: Machines, seed: int) -> Scores:
            made = SignVote(setting.epsilon, DELTA, SELECT, form=form)
            plan = vote_plan(setting.epsilon, form)
            ledger = Ledger(machines.votes, plan, rng=noise(setting, machines, seed))
            return scores(made.run(ledger), setting)

        return found

    def thresholded(form: str) -> Callable[..., Scores]:
        def found(setting: Setting, machines: Machines, seed: int) -> Scores:
            made, data = study.baseline(setting, len(machines.votes), form), machines.data
            shape = data[0].shape if isinstance(data, tuple) else data.shape
            ledger = Ledger(data, made.plan(shape), rng=noise(setting, machines, seed))
            return scores(np.sign(made.run(ledger)), setting)

        return found

    return (
        Method("Vote without noise (not private)", vote),
        Method("DPVote, calibrated", private_vote("calibrated")),
        Method("DPVote, as published", private_vote("published")),
        Method("Cai-Wang-Zhang, calibrated", thresholded("calibrated")),
        Method("Cai-Wang-Zhang, as published", thresholded("published")),
    )


def measured(study: Study, grid: Grid, seed: int) -> Measured:
    """Every method on the same machines; more machines are those and others."""
    everyone = study.sample(grid.base, max(grid.users), seed)
    return {
        (setting, machines, method.name): method.error(setting, everyone.first(machines), seed)
        for machines in grid.users
        for setting in grid.settings()
        for method in methods(study)
    }


def panels(study: Study, full: Grid, quick: Grid, options: argparse.Namespace) -> list[Panel]:
    """False discovery rate and power, over epsilon if that varies, else over machines."""
    grid = quick if options.quick else full
    found = over_seeds(partial(measured, study, grid), options.seeds)
    base, epsilons = grid.base, grid.panels.get("epsilon")
    if epsilons:
        points = [(replace(base, epsilon=epsilon), grid.users[0]) for epsilon in epsilons]
        xlabel, fixed = "ε, for all data of a machine", f"{grid.users[0]:,} machines"
    else:
        points = [(base, machines) for machines in grid.users]
        xlabel, fixed = "machines", f"ε = {base.epsilon:g}"

    def curves(measure: int) -> tuple[Curve, ...]:
        return tuple(
            Curve(
                method.name, epsilons or grid.users,
                np.array([found[*point, method.name][:, measure] for point in points]), look,
            )
            for method, look in zip(methods(study), LOOKS, strict=True)
        )  # fmt: skip

    title = (f"{fixed}, δ = {DELTA:g}, {RECORDS} records a machine, p = {base.features}, "
             f"s = {base.sparsity}, {SELECT} selected")  # fmt: skip
    return [
        Panel("FDR", title, xlabel, "false discovery rate of signs", curves(0), "x"),
        Panel("power", title, xlabel, "power", curves(1), "x"),
    ]


def chart(name: str, title: str, study: Study, full: Grid, quick: Grid) -> Chart:
    """A figure of the paper."""
    return Chart(name, title, partial(panels, study, full, quick))
