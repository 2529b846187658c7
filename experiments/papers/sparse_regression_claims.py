"""Numbers of docs/sparse-regression.md that no figure shows: errata E1, E2, E3, E5, E7, E10."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from accountant import calibrate
from algorithms import LabelIHT, SparseERM
from algorithms.base.hard_thresholding import step_window
from algorithms.base.noisy_gradient_rounds import MAX_ROUNDS, affordable_rounds
from algorithms.base.non_private import NotPrivateWarning
from audits.papers.sparse_regression import printed_probability
from experiments.charts import Options
from experiments.datasets import COVTYPE, RCV1, covtype_signs, present, rcv1_signs, train_and_test
from experiments.method_grids import Setting
from experiments.papers import sparse_logistic as logistic
from experiments.papers import sparse_regression as synthetic
from experiments.papers.sparse_regression import NOISE_BOUND, WAVE, PrintedSign, model
from mechanisms.gaussian import Gaussian

DELTA = logistic.PRINTED_DELTA
SETTING = Setting(100, 5, 1.0)


def noiseless(
    users: int,
    link: str,
    step: float,
    kind: type[LabelIHT] = LabelIHT,
    seed: int = 0,
    unit: bool = True,
) -> float:
    """Relative error after 100 rounds without privacy."""
    x, y, theta = model(SETTING, users, seed, link, unit)
    made = kind(
        epsilon=math.inf, non_private=True, delta=DELTA, sparsity=SETTING.sparsity,
        y_bound=1e6, rounds=100, step=step, link=link,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of privacy and steps that are wrong on purpose
        return synthetic.relative_error(made.fit(x, y).coef_, theta)


def accuracies(options: Options) -> Iterator[str]:
    """Test accuracy of SparseERM on covtype, four fifths to train on: (2, 1e-5), s = 10."""
    x, y = covtype_signs(options.data)
    train, test = train_and_test(2_000 if options.quick else len(y), 0)

    def accuracy(epsilon: float, seed: int = 0, **settings: Any) -> float:
        made = SparseERM(
            epsilon=epsilon, delta=1e-5, sparsity=10, classes=[-1.0, 1.0], random_state=seed,
            non_private=epsilon == math.inf, fit_intercept=False, **settings,
        )  # fmt: skip
        return float(made.fit(x[train], y[train]).score(x[test], y[test]))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        free = accuracy(math.inf, rounds=MAX_ROUNDS)
    # as many as add noise of an eighth: 105 of step 7.2 on the whole sample
    few = affordable_rounds(2 * 7.2 / len(train), x.shape[1], 2.0, 1e-5, 0.125)
    longer = {"rounds": 40, "step": 20.0, "slope_bound": 1.0}
    for name, settings in (
        ("with few rounds", {"rounds": few, "slope_bound": 1.0}),
        ("40 rounds of step 20", longer),
    ):
        found = [accuracy(2.0, seed, **settings) for seed in options.seeds]
        yield (f"covtype accuracy, {len(found)} seeds, SparseERM {name}: mean "
               f"{np.mean(found):.3f}, median {np.median(found):.3f}, least {min(found):.3f}; "
               f"without noise {free:.3f}")  # fmt: skip


def gap_of_zero(load: Any, options: Options, features: int, users: int) -> float:
    """What theta = 0 loses to the best theta with ten coordinates."""
    study = logistic.CentralStudy(load, options.data)
    *_, least, _ = logistic.prepared(study, features, 10, users)
    return float(np.log(2) - least)


def claims(options: Options) -> Iterator[str]:
    """A line for each number."""
    fit = partial(noiseless, 500 if options.quick else 5_000)
    for sparsity in (1, 5, 10):
        one = Setting(100, sparsity, 1.0)
        true, wave = (synthetic.printed_epsilon(one, link) for link in ("identity", WAVE))
        yield f"E1 label noise, s* = {sparsity}, epsilon 1: really {true:.2f}, link {wave:.0f}"
    x, y, _ = model(SETTING, 10_000 if options.quick else 100_000, 0, "identity")
    sizes, bound = np.abs(y) * np.sqrt(x.shape[1]), NOISE_BOUND * np.sqrt(x.shape[1])
    yield (f"E2 gradients at theta = 0 beyond the printed bound: {(sizes > bound).mean():.1%}, "
           f"coin's probability up to {0.5 + sizes.max() / bound / 2:.1f}; "
           f"{printed_probability(5, 5, NOISE_BOUND):.1f} anywhere")  # fmt: skip
    wrong, right = (fit("identity", 0.2, kind) for kind in (PrintedSign, LabelIHT))
    yield f"E3 relative error without noise: {wrong:.3g} with the printed sign, {right:.2g} with +"
    raw = [fit("identity", 0.9, seed=seed, unit=False) for seed in options.seeds]
    yield (f"theta of the paper, s* = 5: relative error without noise {np.mean(raw):.3f} "
           f"(mean of {len(raw)}), for the projection to the unit ball")  # fmt: skip
    for epsilon in (0.5, 1.0, 2.0):
        made = calibrate(Gaussian, epsilon=epsilon, delta=DELTA)
        shift = made.sensitivity / made.scale  # sigma = 2 G sqrt(T) / (n shift)
        needed = 4 * epsilon**2 / (shift**2 * np.log(1 / DELTA))
        yield (f"E5 epsilon {epsilon:g}, delta .001: least constant c = {needed:.2f}; at delta "
               f"1e-5 epsilon is {logistic.printed_epsilon(epsilon):.2f}")  # fmt: skip
    low, high = step_window(0.0, 7.0, 9.0)
    by_step = ", ".join(f"{step:g}: {fit(WAVE, step):.2g}" for step in (0.1, 0.2, 0.015))
    yield (f"E7 8x + cos x: rounds contract for steps in [{low:.4f}, {high:.4f}]; error by step "
           f"{by_step}")  # fmt: skip
    p, q = 0.55, 0.5
    kl = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
    yield (f"E10 coins .55 and .5: total variation .05, at most {np.sqrt(kl) / 2:.3f} as printed, "
           f"{np.sqrt(kl / 2):.3f} by Pinsker")  # fmt: skip
    sets: tuple[tuple[str, Any, str, int, int], ...] = (
        ("covtype", covtype_signs, COVTYPE, 1_000 if options.quick else 20_000, 54),
        ("rcv1", rcv1_signs, RCV1, 1_700, 200),
    )
    for name, load, file, users, features in sets:
        if present(options.data, file):
            yield (f"{name}, n = {users:,}, p = {features}: theta = 0 has a gap of "
                   f"{gap_of_zero(load, options, features, users):.3f}")  # fmt: skip
    if present(options.data, COVTYPE):
        yield from accuracies(options)


FIGURES = {"sparse-regression-claims": claims}
