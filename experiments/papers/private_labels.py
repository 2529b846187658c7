"""Private labels: second moments of randomisers, excess risk between the bounds, the claims."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from accountant.planning.calibration import calibrate
from algorithms.base.non_private import NotPrivateWarning
from algorithms.label_privacy.label_classifier import LabelPrivateClassifier
from algorithms.label_privacy.label_randomizers import best_randomizer, second_moments
from algorithms.label_privacy.label_sgd import LabelSGD
from audits.papers import private_labels as paper
from experiments import charts
from experiments.charts import Chart, Curve, Look, Options, Panel, over_seeds
from experiments.datasets import COVTYPE, MNIST, covtype, mnist, present, train_and_test
from experiments.papers.label_populations import EPSILON, Problem, problems
from mechanisms.hemisphere import HemisphereL2

LOOKS: dict[str, Look] = {
    "unary": {"color": charts.BLUE, "marker": "o", "lw": 2.2},
    "subset": {"color": charts.RED, "marker": "s", "mfc": "white", "ls": "--"},
    "response": {"color": charts.GREEN, "marker": "^", "ls": "-."},
    "duchi": {"color": charts.PURPLE, "marker": "v", "mfc": "white"},
}
WORDS = {"unary": "unary encoding", "subset": "subset selection", "response": "k-ary response",
         "duchi": "Duchi in K − 1 dimensions"}  # fmt: skip
LEADING = "4 K / ε²"
FULL_MOMENTS = ((2, 4, 8, 16, 32, 64, 128, 256), (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0))
QUICK_MOMENTS = ((2, 10, 100), (0.1, 1.0, 5.0))
FREE, UPPER, LOWER, ZERO = (
    "labels as they are, not private", "upper bound D L √(V/n), unary",
    "lower bound for the worst problem", "θ = 0",
)  # fmt: skip
CLASSES = 100
FITS = {"no noise": (math.inf, "auto"), "epsilon 2, auto": (2.0, "auto"),
        "epsilon 1, unary": (1.0, "unary"), "epsilon 1, subset": (1.0, "subset"),
        "epsilon 1, response": (1.0, "response"), "epsilon 1, duchi": (1.0, "duchi")}  # fmt: skip


def moments(x: tuple[float, ...], pairs: list[tuple[int, float]]) -> tuple[Curve, ...]:
    """V of every randomiser, most of any gradients no longer than 1; and the leading term."""
    found = [second_moments(*pair) for pair in pairs]
    drawn = [
        Curve(WORDS[name], x, np.array([[one[name]] for one in found]), LOOKS[name])
        for name in LOOKS
    ]
    leading = np.array([[4 * classes / epsilon**2] for classes, epsilon in pairs])
    return *drawn, Curve(LEADING, x, leading, {"color": charts.INK, "ls": ":", "lw": 1.2})


def costs(options: Options) -> Chart:
    """V against K and against epsilon, and the best randomiser at every point."""
    labels, epsilons = QUICK_MOMENTS if options.quick else FULL_MOMENTS
    many, strong = [(k, EPSILON) for k in labels], [(CLASSES, epsilon) for epsilon in epsilons]
    words = "second moment V, in squares of L"
    panels = [
        Panel("classes", f"ε = {EPSILON:g}", "labels K", words, moments(labels, many)),
        Panel("epsilon", f"K = {CLASSES}", "ε", words, moments(epsilons, strong)),
    ]
    lines = []
    for panel, pairs in zip(panels, (many, strong), strict=True):
        best = [
            f"{x:g} {best_randomizer(*pair)}"
            for x, pair in zip(panel.curves[0].x, pairs, strict=True)
        ]
        lines.append(f"{panel.name}, best: {', '.join(best)}")
    return Chart(panels, lines)


def excesses(problem: Problem, users: int, seed: int) -> dict[str, float]:
    """Excess risks and bounds, by curve."""
    (x, y), excess = problem.drawn(users, seed)

    def fitted(**settings: Any) -> LabelSGD:
        return LabelSGD(
            k=problem.classes, loss=problem.loss, diameter=problem.diameter,
            batch=problem.batch_size, random_state=seed, **settings,
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
        UPPER: unary.utility_bound(users, unary.lipschitz_),
        LOWER: paper.lower_bound(problem.classes, EPSILON, users, problem.diameter, length),
    }


def measured(folder: Path, quick: bool, seed: int) -> dict[tuple[str, str, int], float]:
    """The same for every problem and number of users."""
    return {
        (problem.name, name, users): value
        for problem in problems(folder, quick)
        for users in problem.sizes
        for name, value in excesses(problem, users, seed).items()
    }


def risks(options: Options) -> Chart:
    """A panel for each problem."""
    found = over_seeds(partial(measured, options.data, options.quick), options.seeds)
    looks = {WORDS[name]: look for name, look in LOOKS.items()} | {
        FREE: {"color": charts.INK, "marker": "s", "ms": 4, "ls": ":", "lw": 1.2},
        ZERO: {"color": charts.GREY, "ls": ":", "lw": 2.2},
        UPPER: {"color": charts.INK, "ls": "--"},
        LOWER: {"color": charts.INK, "ls": "-."},
    }
    panels = [
        Panel(problem.name, problem.title, "users n", "excess risk",
              charts.curves_of(found, problem.name, problem.sizes, looks))
        for problem in problems(options.data, options.quick)
    ]  # fmt: skip
    return Chart(panels, charts.slopes(panels))


def accuracies(name: str, folder: Path, records: int | None, seed: int) -> dict[str, float]:
    """Of four fifths to one fifth, a random split a seed; of the first records, or of all."""
    x, y = (part[:records] for part in (mnist if name == "MNIST" else covtype)(folder))
    train, test = train_and_test(len(y), seed)
    found = {}
    for words, (epsilon, randomizer) in FITS.items():
        made = LabelPrivateClassifier(
            epsilon, randomizer=randomizer, non_private=epsilon == math.inf, random_state=seed,
            method="one pass", classes=np.unique(y),
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotPrivateWarning)
            found[words] = made.fit(x[train], y[train]).score(x[test], y[test])
    return found


def square(dimension: int, epsilon: float) -> float:
    """Squared length of a report of Duchi's randomiser."""
    made = calibrate(HemisphereL2, dimension=dimension, radius=1.0, epsilon=epsilon)
    return float(made.length**2)


def claims(options: Options) -> Iterator[str]:
    """A line for each number of docs/label-privacy.md that no chart shows: errata E15 and E17."""
    constants = {
        epsilon: second_moments(100, epsilon)["unary"] * epsilon**2 / 100
        for epsilon in (1.0, 0.1, 0.01)
    }
    leading = ", ".join(f"epsilon {epsilon:g}: {c:.4f}" for epsilon, c in constants.items())
    yield f"E15 V epsilon^2 / K, K = 100: {leading}"
    for rate in (paper.printed_upper_rate(100), paper.printed_lower_rate(100)):
        yield (f"E15 {rate.name}: risk^2 like epsilon^-{rate.true_power:.3f}, printed "
               f"epsilon^-{rate.power:g}")  # fmt: skip
    for epsilon in (1.0, 2.0, math.log(100)):
        v = second_moments(100, epsilon)["unary"]
        yield (f"epsilon {epsilon:.2f}, K = 100: V = {v:.2f}, V e^epsilon / K = "
               f"{v * math.exp(epsilon) / 100:.2f}")  # fmt: skip
    for classes in (10, 100, 1000):
        each = second_moments(classes, 1.0)
        yield (f"K = {classes}, epsilon 1: V of k-ary response {each['response']:.1f}, "
               f"{each['response'] / each['unary']:.2f} times that of unary encoding")  # fmt: skip
    for classes in (2, 3, 10):
        less, more = square(classes - 1, 1.0), square(classes, 1.0)
        yield f"E17 K = {classes}, epsilon 1: B^2 = {more:.3f} in K dimensions, {less:.3f} in K - 1"
    for classes, epsilon in ((10, 1.0), (100, 0.5), (100, 1.0), (100, 3.0)):
        users = 10**7
        upper = math.sqrt(second_moments(classes, epsilon)["unary"] / users)
        yield (f"K = {classes}, epsilon {epsilon:g}: upper bound over lower bound "
               f"{upper / paper.lower_bound(classes, epsilon, users):.0f}")  # fmt: skip
    records = 1_000 if options.quick else None
    for name, file in (("MNIST", MNIST), ("covtype", COVTYPE)):
        if present(options.data, file):
            found = over_seeds(partial(accuracies, name, options.data, records), options.seeds)
            numbers = {words: charts.mean_and_error(100 * some) for words, some in found.items()}
            shown = ", ".join(f"{words} {mean:.1f} ± {error:.1f}"
                             for words, (mean, error) in numbers.items())  # fmt: skip
            yield f"{name}, test accuracy in %, {len(options.seeds)} seeds: {shown}"


FIGURES = {
    "private-labels-moments": costs,
    "private-labels-risk": risks,
    "private-labels-claims": claims,
}
