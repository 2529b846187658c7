"""Second moment of the four label randomisers, against labels and against epsilon."""

from __future__ import annotations

import argparse

import numpy as np
from charts import Chart, Curve, Panel, main

from algorithms.label_privacy.label_randomizers import best_randomizer, second_moments

LOOKS = {
    "unary": {"color": "#4e79a7", "marker": "o", "lw": 2.2},
    "subset": {"color": "#f28e2b", "marker": "s", "mfc": "white", "ls": "--"},
    "response": {"color": "#59a14f", "marker": "^", "ls": "-."},
    "duchi": {"color": "#b07aa1", "marker": "v", "mfc": "white"},
}
WORDS = {"unary": "unary encoding", "subset": "subset selection", "response": "k-ary response",
         "duchi": "Duchi in K − 1 dimensions"}  # fmt: skip
LEADING = "4 K / ε²"
FULL = ((2, 4, 8, 16, 32, 64, 128, 256), (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0))
QUICK = ((2, 10, 100), (0.1, 1.0, 5.0))
CLASSES, EPSILON = 100, 1.0


def curves(x: tuple[float, ...], pairs: list[tuple[int, float]]) -> tuple[Curve, ...]:
    """V of every randomiser, most of any gradients no longer than 1; and the leading term."""
    moments = [second_moments(*pair) for pair in pairs]
    drawn = [
        Curve(WORDS[name], x, np.array([[m[name]] for m in moments]), LOOKS[name]) for name in LOOKS
    ]
    leading = np.array([[4 * classes / epsilon**2] for classes, epsilon in pairs])
    return *drawn, Curve(LEADING, x, leading, {"color": "#222222", "ls": ":", "lw": 1.2})


def panels(options: argparse.Namespace) -> list[Panel]:
    """V against K, and against epsilon."""
    classes, epsilons = QUICK if options.quick else FULL
    many = curves(classes, [(k, EPSILON) for k in classes])
    strong = curves(epsilons, [(CLASSES, epsilon) for epsilon in epsilons])
    words = "second moment V, in squares of L"
    return [
        Panel("classes", f"ε = {EPSILON:g}", "labels K", words, many),
        Panel("epsilon", f"K = {CLASSES}", "ε", words, strong),
    ]


def told(drawn: list[Panel]) -> list[str]:
    """The best at every point."""
    many, strong = (panel.curves[0].x for panel in drawn)
    best = {
        "classes": {k: best_randomizer(k, EPSILON) for k in many},
        "epsilon": {epsilon: best_randomizer(CLASSES, epsilon) for epsilon in strong},
    }
    return [f"{name}, best: {', '.join(f'{x:g} {one}' for x, one in found.items())}"
            for name, found in best.items()]  # fmt: skip


CHART = Chart("label_moments", "What a private label costs: V of four randomisers", panels, told)

if __name__ == "__main__":
    main(CHART)
