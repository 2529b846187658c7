"""Numbers of docs/label-privacy.md that no chart shows: errata E15 and E17, and accuracies."""

from __future__ import annotations

import math
import time
import warnings
from functools import lru_cache, partial

import numpy as np
from central import covtype
from charts import SHARED, over_seeds
from label_problems import MNIST

from accountant.planning.calibration import calibrate
from algorithms.base.non_private import NotPrivateWarning
from algorithms.label_privacy.label_classifier import LabelPrivateClassifier
from algorithms.label_privacy.label_randomizers import second_moments
from audits.papers.private_labels import (
    leading_constant,
    lower_bound,
    printed_lower_rate,
    printed_upper_rate,
)
from mechanisms.hemisphere import HemisphereL2

COVTYPE = "covtype/covtype.npz"
FITS = {"no noise": (math.inf, "auto"), "epsilon 2, auto": (2.0, "auto"),
        "epsilon 1, unary": (1.0, "unary"), "epsilon 1, subset": (1.0, "subset"),
        "epsilon 1, response": (1.0, "response"), "epsilon 1, duchi": (1.0, "duchi")}  # fmt: skip


@lru_cache
def classified(name: str) -> tuple[np.ndarray, np.ndarray]:
    """All features and labels of MNIST or covtype."""
    if name == "covtype":
        with np.load(SHARED / COVTYPE) as file:
            return covtype(SHARED / COVTYPE)[0], file["label"].astype(int)
    with np.load(SHARED / MNIST) as file:
        return file["images"] / 255.0, file["labels"].astype(int)


def accuracies(name: str, seed: int) -> dict[str, float]:
    """Of four fifths to one fifth, a random split a seed."""
    x, y = classified(name)
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = np.split(order, [4 * len(y) // 5])
    found = {}
    for words, (epsilon, randomizer) in FITS.items():
        made = LabelPrivateClassifier(
            epsilon, randomizer=randomizer, non_private=epsilon == math.inf, random_state=seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotPrivateWarning)
            found[words] = made.fit(x[train], y[train]).score(x[test], y[test])
    return found


def square(dimension: int, epsilon: float) -> float:
    """Squared length of a report of Duchi's randomiser."""
    made = calibrate(HemisphereL2, dimension=dimension, radius=1.0, epsilon=epsilon)
    return float(made.length**2)


def main() -> None:
    """Print them."""
    began = time.perf_counter()
    constants = {epsilon: leading_constant(100, epsilon) for epsilon in (1.0, 0.1, 0.01)}
    print("E15 V epsilon^2 / K, K = 100:", ", ".join(f"epsilon {e:g}: {c:.4f}"
                                                     for e, c in constants.items()))  # fmt: skip
    for rate in (printed_upper_rate(100), printed_lower_rate(100)):
        print(f"E15 {rate.name}: risk^2 like epsilon^-{rate.true_power:.3f}, printed "
              f"epsilon^-{rate.power:g}")  # fmt: skip
    for epsilon in (1.0, 2.0, math.log(100)):
        v = second_moments(100, epsilon)["unary"]
        print(f"epsilon {epsilon:.2f}, K = 100: V = {v:.2f}, V e^epsilon / K = "
              f"{v * math.exp(epsilon) / 100:.2f}")  # fmt: skip
    for classes in (10, 100, 1000):
        v = second_moments(classes, 1.0)
        print(f"K = {classes}, epsilon 1: V of k-ary response {v['response']:.1f}, "
              f"{v['response'] / v['unary']:.2f} times that of unary encoding")  # fmt: skip
    for classes in (2, 3, 10):
        less, more = square(classes - 1, 1.0), square(classes, 1.0)
        print(
            f"E17 K = {classes}, epsilon 1: B^2 = {more:.3f} in K dimensions, {less:.3f} in K - 1"
        )
    for classes, epsilon in ((10, 1.0), (100, 0.5), (100, 1.0), (100, 3.0)):
        users = 10**7
        upper = math.sqrt(second_moments(classes, epsilon)["unary"] / users)
        print(f"K = {classes}, epsilon {epsilon:g}: upper bound over lower bound "
              f"{upper / lower_bound(classes, epsilon, users):.0f}")  # fmt: skip
    for name, file in (("MNIST", MNIST), ("covtype", COVTYPE)):
        if (SHARED / file).is_file():
            found = over_seeds(partial(accuracies, name), 20)
            told = ", ".join(f"{words} {100 * some.mean():.1f} ± {100 * spread(some):.1f}"
                             for words, some in found.items())  # fmt: skip
            print(f"{name}, test accuracy in %, 20 seeds: {told}")
    print(f"{time.perf_counter() - began:.1f} s")


def spread(some: np.ndarray) -> float:
    """Standard error of the mean."""
    return float(some.std(ddof=1) / math.sqrt(len(some)))


if __name__ == "__main__":
    main()
