"""Numbers of docs/sparse-regression.md that no figure shows: errata E1, E2, E3, E5, E7, E10."""

from __future__ import annotations

import math
import time
import warnings
from typing import Any

import numpy as np
from central import (
    PRINTED_DELTA,
    SHARED,
    CentralStudy,
    covtype,
    prepared,
    printed_epsilon,
    rcv1,
)
from common import Setting
from printed import NOISE_BOUND
from printed import printed_epsilon as label_epsilon
from regression import model, relative_error

from accountant import calibrate
from algorithms import LabelIHT, SparseERM
from algorithms.base.hard_thresholding import step_window
from algorithms.base.non_private import NotPrivateWarning
from audits.papers.sparse_regression import PrintedSign, printed_probability
from mechanisms.gaussian import Gaussian

WAVE = "8x + cos x"


def noiseless(
    setting: Setting,
    link: str,
    step: float,
    kind: type[LabelIHT] = LabelIHT,
    seed: int = 0,
    unit: bool = True,
) -> float:
    """Relative error after 100 rounds without privacy, 5,000 users."""
    x, y, theta = model(setting, 5_000, seed, link, unit)
    made = kind(
        epsilon=math.inf, non_private=True, delta=PRINTED_DELTA, sparsity=setting.sparsity,
        label_bound=1e6, rounds=100, step=step, link=link,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of privacy and steps that are wrong on purpose
        return relative_error(made.fit(x, y).coef_, theta)


def accuracies(seeds: int = 20) -> None:
    """Test accuracy of SparseERM on covtype, four fifths to train on: (2, 1e-5), s = 10."""
    x, y = covtype(SHARED / "covtype/covtype.npz")
    order = np.random.default_rng(0).permutation(len(y))
    train, test = np.split(order, [4 * len(y) // 5])

    def accuracy(epsilon: float, seed: int = 0, **settings: Any) -> float:
        made = SparseERM(
            epsilon=epsilon, delta=1e-5, sparsity=10, random_state=seed, **settings,
            non_private=epsilon == math.inf,
        )  # fmt: skip
        return made.fit(x[train], y[train]).score(x[test], y[test])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        free = accuracy(math.inf)
    longer = {"rounds": 40, "step": 20.0}
    for name, settings in (("by default", {}), ("40 rounds of step 20", longer)):
        found = [accuracy(2.0, seed, **settings) for seed in range(seeds)]
        print(f"covtype accuracy, {seeds} seeds, SparseERM {name}: mean {np.mean(found):.3f}, "
              f"median {np.median(found):.3f}, least {min(found):.3f}; "
              f"without noise {free:.3f}")  # fmt: skip


def main() -> None:
    """Print them."""
    began = time.perf_counter()
    setting = Setting(100, 5, 1.0)
    for sparsity in (1, 5, 10):
        one = Setting(100, sparsity, 1.0)
        true, wave = (label_epsilon(one, link) for link in ("identity", WAVE))
        print(f"E1 label noise, s* = {sparsity}, epsilon 1: really {true:.2f}, link {wave:.0f}")
    x, y, _ = model(setting, 100_000, 0, "identity")
    sizes, bound = np.abs(y) * np.sqrt(x.shape[1]), NOISE_BOUND * np.sqrt(x.shape[1])
    print(f"E2 gradients at theta = 0 beyond the printed bound: {(sizes > bound).mean():.1%}, "
          f"coin's probability up to {0.5 + sizes.max() / bound / 2:.1f}; "
          f"{printed_probability(5, 5, NOISE_BOUND):.1f} anywhere")  # fmt: skip
    wrong, right = (noiseless(setting, "identity", 0.2, kind) for kind in (PrintedSign, LabelIHT))
    print(f"E3 relative error without noise: {wrong:.3g} with the printed sign, {right:.2g} with +")
    raw = [noiseless(setting, "identity", 0.9, seed=seed, unit=False) for seed in range(20)]
    print(f"theta of the paper, s* = 5: relative error without noise {np.mean(raw):.3f} "
          f"(mean of 20), for the projection to the unit ball")  # fmt: skip
    for epsilon in (0.5, 1.0, 2.0):
        made = calibrate(Gaussian, epsilon=epsilon, delta=PRINTED_DELTA)
        shift = made.sensitivity / made.scale  # sigma = 2 G sqrt(T) / (n shift)
        needed = 4 * epsilon**2 / (shift**2 * np.log(1 / PRINTED_DELTA))
        print(f"E5 epsilon {epsilon:g}, delta .001: least constant c = {needed:.2f}; at delta "
              f"1e-5 epsilon is {printed_epsilon(epsilon):.2f}")  # fmt: skip
    low, high = step_window(0.0, 7.0, 9.0)
    errors = {step: noiseless(setting, WAVE, step) for step in (0.1, 0.2, 0.015)}
    told = ", ".join(f"{step:g}: {error:.2g}" for step, error in errors.items())
    print(
        f"E7 8x + cos x: rounds contract for steps in [{low:.4f}, {high:.4f}]; error by step {told}"
    )
    printed, pinsker = np.sqrt(kl(0.55, 0.5)) / 2, np.sqrt(kl(0.55, 0.5) / 2)
    print(f"E10 coins .55 and .5: total variation .05, at most {printed:.3f} as printed, "
          f"{pinsker:.3f} by Pinsker")  # fmt: skip
    for name, load, file, users, features in (
        ("covtype", covtype, "covtype/covtype.npz", 20_000, 54),
        ("rcv1", rcv1, "rcv1_subset/rcv1_subset.npz", 1_700, 200),
    ):
        if (SHARED / file).is_file():
            *_, least, _ = prepared(CentralStudy(name, load, SHARED / file), features, 10, users)
            print(f"{name}, n = {users:,}, p = {features}: theta = 0 has a gap of "
                  f"{np.log(2) - least:.3f}")  # fmt: skip
    if (SHARED / "covtype/covtype.npz").is_file():
        accuracies()
    print(f"{time.perf_counter() - began:.1f} s")


def kl(p: float, q: float) -> float:
    """Of two coins."""
    return p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))


if __name__ == "__main__":
    main()
