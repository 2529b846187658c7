"""Excess risk of private labels against users, between the upper and the lower bound."""

from __future__ import annotations

import argparse
import math
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from charts import Chart, Curve, Panel, main, over_seeds, slopes
from label_moments import LOOKS, WORDS
from label_problems import EPSILON, MNIST, Problem, problems

from algorithms.base.non_private import NotPrivateWarning
from algorithms.label_privacy.label_sgd import LabelSGD
from audits.papers.private_labels import lower_bound

FREE, UPPER, LOWER, ZERO = (
    "labels as they are, not private", "upper bound D L √(V/n), unary",
    "lower bound for the worst problem", "θ = 0",
)  # fmt: skip


def excesses(problem: Problem, users: int, seed: int) -> dict[str, float]:
    """Excess risks and bounds, by curve."""
    (x, y), excess = problem.drawn(users, seed)

    def fitted(**settings: Any) -> LabelSGD:
        return LabelSGD(
            classes=problem.classes, loss=problem.loss, diameter=problem.diameter,
            batch_size=problem.batch_size, random_state=seed, **settings,
        ).fit(x, y)  # fmt: skip

    made = {name: fitted(epsilon=EPSILON, randomizer=name) for name in WORDS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        free = fitted(epsilon=math.inf, non_private=True).coef_
    unary = made["unary"]
    # the proof's linear loss is declared with L = 1, though its gradients are sqrt(1 - 1/K) long
    length = 1.0 if problem.loss == "linear" else unary.lipschitz_
    return {WORDS[name]: excess(one.coef_) for name, one in made.items()} | {
        FREE: excess(free),
        ZERO: excess(np.zeros_like(free)),
        UPPER: unary.excess_bound(users, unary.lipschitz_),
        LOWER: lower_bound(problem.classes, EPSILON, users, problem.diameter, length),
    }


def measured(folder: Path, quick: bool, seed: int) -> dict[tuple[str, str, int], float]:
    """The same for every problem and number of users."""
    return {
        (problem.name, name, users): value
        for problem in problems(folder, quick)
        for users in problem.sizes
        for name, value in excesses(problem, users, seed).items()
    }


def panels(options: argparse.Namespace) -> list[Panel]:
    """A panel for each problem."""
    found = over_seeds(partial(measured, options.data, options.quick), options.seeds)
    looks = {WORDS[name]: look for name, look in LOOKS.items()} | {
        FREE: {"color": "#222222", "marker": "s", "ms": 4, "ls": ":", "lw": 1.2},
        ZERO: {"color": "#888888", "ls": ":", "lw": 2.2},
        UPPER: {"color": "#222222", "ls": "--"},
        LOWER: {"color": "#222222", "ls": "-."},
    }
    drawn = []
    for problem in problems(options.data, options.quick):
        curves = tuple(
            Curve(name, problem.sizes,
                  np.array([found[problem.name, name, users] for users in problem.sizes]), look)
            for name, look in looks.items()
        )  # fmt: skip
        drawn.append(Panel(problem.name, problem.title, "users n", "excess risk", curves))
    return drawn


CHART = Chart(
    "label_risk", f"Excess risk with private labels, ε = {EPSILON:g}", panels, slopes, (MNIST,)
)

if __name__ == "__main__":
    main(CHART)
