"""The upper bounds on risk that theorems prove for the project's algorithms, with constants.

A table compares them with the measured risk of an algorithm and with the minimax lower bound of
its problem.  ``setting`` has the sizes of the problem: n records or users, p or ``dimension``
coordinates, s non-zero coefficients, k labels, ``epsilon``, ``delta``.  ``bound`` is the lower
bound, whose hard family (``bound.construction``) the algorithm runs on.  None means that the
theorem does not apply.
"""

from __future__ import annotations

import math
from typing import Any

from audits.minimax.bounds.bound import LowerBound
from audits.minimax.performance.algorithm_losses import (
    Setting,
    as_pure_epsilon,
    private_mean_estimator,
)


def thresholded_records_risk(setting: Setting, bound: LowerBound) -> float | None:
    """``(|theta| / 2 + 3.5 eta sqrt(17) |error|_inf)^2``, with probability 1 - 4 / p.

    One round with working sparsity 8 and step eta.  ``|error|_inf`` is bounded by Bernstein's
    inequality for every coordinate, of the mean of n reports of length B and of the mean of n
    noises times signs.  Wang & Xu (2021), with constants made explicit.
    """
    from algorithms.base.hard_thresholding import default_step
    from mechanisms import HemisphereL2

    n, p, epsilon = setting["n"], setting["p"], as_pure_epsilon(setting)
    noise = float(setting.get("noise_bound", 2.0))
    radius = math.sqrt(p) * (math.sqrt(8) + 1 + noise)
    keep = 1 / (1 + math.exp(-epsilon))
    if not 0.5 < keep < 1 or p < 2:
        return None
    length = HemisphereL2(dimension=p, radius=radius, keep=keep, longer="clip").length
    level = 2 * math.log(p)  # each side of each coordinate exceeds with probability 1 / p^2
    error = _bernstein(level, n, noise**2, noise) + _bernstein(level, n, length**2 / p, 2 * length)
    size = float(getattr(bound.construction, "d", 1.0))
    return min(4.0, (size / 2 + 3.5 * default_step() * math.sqrt(17) * error) ** 2)


def _bernstein(level: float, n: int, variance: float, largest: float) -> float:
    """The positive t with ``n t^2 / (2 (variance + largest t / 3)) = level``."""
    half = level * largest / 3
    return (half + math.sqrt(half**2 + 2 * n * level * variance)) / n


def thresholded_labels_risk(setting: Setting, bound: LowerBound) -> float | None:
    """``(2^-T |theta| + 3.5 eta sqrt(17 s) (C + Y coth(eps/2)) sqrt(4 ln p / n))^2``.

    It holds with probability 1 - 4 / p; C bounds the noise, Y the labels, T is the rounds.
    """
    from algorithms.base.hard_thresholding import default_step

    n, s, noise = setting["n"], setting["s"], setting["noise_bound"]
    size = (math.sqrt(s) + noise) / math.tanh(setting["epsilon"] / 2)
    error = (noise + size) * math.sqrt(4 * math.log(setting["p"]) / n)
    norm = float(getattr(bound.construction, "norm", 1.0)) / n  # T = log2 n rounds
    return float(min(4.0, (norm + 3.5 * default_step() * math.sqrt(17 * s) * error) ** 2))


def one_pass_risk(setting: Setting, bound: LowerBound) -> float | None:
    """``D L sqrt(V / n)``: diameter D, Lipschitz constant L, second moment V of the reports.

    Chua and others (2026).
    """
    from algorithms.label_privacy.label_sgd import LabelSGD

    family: Any = bound.construction
    model = LabelSGD(
        epsilon=setting["epsilon"], classes=family.k, loss="linear", diameter=family.diameter
    )
    return float(model.excess_bound(setting["n"], family.lipschitz))


def local_mean_risk(setting: Setting, bound: LowerBound) -> float | None:
    """``E |mean - truth|^2 <= B^2 / n``: reports are independent, of mean square at most B^2."""
    from algorithms.base.number_noise import noise_variance
    from algorithms.statistics.local_mean import mean_randomizer

    del bound
    reports: Any = mean_randomizer(setting["dimension"], setting["epsilon"], 1.0)
    if hasattr(reports, "length"):
        return float(reports.length**2 / setting["n"])
    return (noise_variance(reports, 1.0) + 1) / float(setting["n"])  # 1: of the users' numbers


def added_noise_risk(setting: Setting, bound: LowerBound) -> float | None:
    """The second moment of the noise: scale^2 a coordinate if Gaussian, 2 scale^2 if Laplace."""
    del bound
    n, p = setting["n"], setting["dimension"]
    plan: Any = private_mean_estimator(setting).plan((n, p))
    return float(p * plan.scale**2 * (1 if setting.get("delta", 0.0) else 2))


def subset_selection_risk(setting: Setting, bound: LowerBound) -> float | None:
    """``(k q (1-q) / g^2 + (1-p-q) / g + 1) / n`` with g = p - q.

    A report has its own label with probability p and each other one with q; the 1 is for the
    random labels of the users.
    """
    from mechanisms import SubsetSelection

    del bound
    k, n = setting["k"], setting["n"]
    mechanism = SubsetSelection.optimised(k, setting["epsilon"])
    p, q = mechanism.own_label_probability, mechanism.other_label_probability
    return float((k * q * (1 - q) / (p - q) ** 2 + (1 - p - q) / (p - q) + 1) / n)


def permute_and_flip_risk(setting: Setting, bound: LowerBound) -> float | None:
    """``2 ln k / eps``, where a record moves each sum by at most 1 (McKenna & Sheldon 2020)."""
    del bound
    return float(2 * math.log(setting["k"]) / setting["epsilon"])


def frank_wolfe_risk(setting: Setting, bound: LowerBound) -> float | None:
    """The expected excess of the empirical risk, from the algorithm's own theorem with constants.

    The argument 1.0 says that the empirical risk at the start exceeds its minimum by at most 1.
    """
    from algorithms.frank_wolfe.polytope import FrankWolfe
    from algorithms.frank_wolfe.polytopes import L1Ball

    del bound
    model = FrankWolfe("squared", L1Ball(1.0), setting["epsilon"], setting["delta"])
    return model.utility_bound((setting["n"], setting["p"]), 1.0)


def no_theorem(setting: Setting, bound: LowerBound) -> float | None:
    """None: no theorem covers this loss on this family."""
    del setting, bound
    return None
