"""The loss of one run of each algorithm of the project on the hard family of a lower bound.

A loss function takes (setting, bound, rng, noise).  It draws a point of the hard family
(``bound.construction``) and data for this point, runs the algorithm, and returns how far its answer
is from the truth, in the loss of the problem.  ``setting`` has the sizes of the problem and the
privacy parameters.  ``noise`` is 1 for a private run and 0 for the same run without noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from accountant.numerics import Array
from audits.adapters.estimators import EstimatorAdapter
from audits.minimax.bounds.bound import LowerBound
from audits.minimax.families.bernoulli_products import BernoulliProducts
from audits.minimax.families.fingerprints import append_ridge
from audits.minimax.families.signed_basis import SignedBasis

Setting = Mapping[str, Any]


def squared_distance(estimate: Array, truth: Array) -> float:
    """Squared Euclidean distance."""
    return float(np.square(np.asarray(estimate) - truth).sum())


def uniform_index(points: int, rng: np.random.Generator) -> int:
    """A uniform index below ``points``, which may be of any size.

    The random number has more than 64 bits more than needed, so that its remainder is uniform to
    2^-64.
    """
    return int.from_bytes(rng.bytes(points.bit_length() // 8 + 9), "little") % points


def estimator_loss(make: Any, family: Any = None, power: float = 2.0) -> Any:
    """A loss function of an estimator fitted on (X, y): its distance to the parameter, to a power.

    ``make(setting)`` gives the estimator, ``family(setting, bound)`` the family if the bound has
    none.
    """

    def loss(setting: Setting, bound: LowerBound, rng: np.random.Generator, noise: float) -> float:
        hard: Any = bound.construction if family is None else family(setting, bound)
        data_rng, algorithm_rng = rng.spawn(2)
        which = uniform_index(hard.points, data_rng)
        x, y = hard.sample(which, setting["n"], data_rng)
        subject = EstimatorAdapter.of(make(setting))
        estimate = subject.estimate(np.asarray(x, dtype=float), y, algorithm_rng, noise)
        return float(squared_distance(estimate, hard.parameter(which)) ** (power / 2))

    return loss


def nearby_parameter(setting: Setting, bound: LowerBound) -> SignedBasis:
    """A family with one coefficient of the size ``2 bound.value``, at most 1."""
    return SignedBasis(setting["p"], min(1.0, 2 * bound.value))


def as_pure_epsilon(setting: Setting) -> float:
    """The pure epsilon whose reports meet the setting's privacy, in any of its notions."""
    if "rho" in setting:
        # epsilon-DP has a rho of at most epsilon^2 / 2.
        return math.sqrt(2 * setting["rho"])
    return float(setting["epsilon"])


def chi_squared_epsilon(setting: Setting) -> float:
    """The pure epsilon whose largest chi-squared is ``epsilon^2``: ``2 asinh(epsilon / 2)``."""
    return 2 * math.asinh(setting["epsilon"] / 2)


def label_sgd_loss(
    setting: Setting, bound: LowerBound, rng: np.random.Generator, noise: float
) -> float:
    """Excess risk of one pass of gradient steps on the linear loss, by `LabelSGD`."""
    from algorithms.label_privacy.label_sgd import LabelSGD

    family: Any = bound.construction
    data_rng, algorithm_rng = rng.spawn(2)
    which = uniform_index(family.points, data_rng)
    model = LabelSGD(
        epsilon=setting["epsilon"], k=family.k, loss="linear", diameter=family.diameter
    )
    labels = family.sample(which, setting["n"], data_rng)
    # The linear losses of LabelSGD and of the family have opposite signs.
    theta = -EstimatorAdapter.of(model).run(
        (labels, np.ones((len(labels), 1))), algorithm_rng, noise
    )[:, 0]
    return float(family.excess(which, theta))


def family_loss(make: Any) -> Any:
    """A loss function of the estimator ``make(setting)``: its squared error on the family."""

    def loss(setting: Setting, bound: LowerBound, rng: np.random.Generator, noise: float) -> float:
        family: Any = bound.construction
        data_rng, algorithm_rng = rng.spawn(2)
        which = uniform_index(family.points, data_rng)
        users = family.sample(which, setting["n"], data_rng)
        estimate = EstimatorAdapter.of(make(setting)).release_result(users, algorithm_rng, noise)
        return squared_distance(estimate, family.parameter(which))

    return loss


def central_mean_loss(
    setting: Setting, bound: LowerBound, rng: np.random.Generator, noise: float
) -> float:
    """The squared error of `PrivateMean` on zeros; its law is the same on all data."""
    del bound
    zeros = np.zeros((setting["n"], setting["dimension"]))
    return squared_distance(
        EstimatorAdapter.of(private_mean_estimator(setting)).release_result(zeros, rng, noise),
        zeros[0],
    )


def private_mean_estimator(setting: Setting) -> Any:
    """The estimator of the mean of records under central privacy."""
    from algorithms.statistics.private_mean import PrivateMean

    return PrivateMean(epsilon=setting["epsilon"], delta=setting.get("delta", 0.0))


def selection_loss(
    setting: Setting, bound: LowerBound, rng: np.random.Generator, noise: float
) -> float:
    """How far the chosen candidate of `PrivateSelection` is below the best; 0 without noise."""
    from algorithms.statistics.private_selection import PrivateSelection

    family: Any = bound.construction
    sums = family.parameter(uniform_index(family.points, rng))
    mechanism: Any = PrivateSelection(epsilon=setting["epsilon"]).plan((setting["n"], setting["k"]))
    chosen = int(mechanism.release(sums, rng)) if noise else int(sums.argmax())
    return float(sums.max() - sums[chosen])


def lasso_loss(
    setting: Setting, bound: LowerBound, rng: np.random.Generator, noise: float
) -> float:
    """Excess of private Frank-Wolfe on fingerprinted rows and a ridge; p is a power of two."""
    from algorithms.frank_wolfe.private_lasso import PrivateLasso

    del bound
    n, p = setting["n"], setting["p"]
    data_rng, algorithm_rng = rng.spawn(2)
    family = BernoulliProducts(p)
    rows = family.sample(family.means(data_rng), n - p, data_rng)
    # Privacy limits the number of rounds; without noise a large one is taken.
    model = PrivateLasso(
        setting["epsilon"], setting["delta"], rounds=None if noise else 400, fit_intercept=False
    )
    x, y = append_ridge(rows)
    estimate = EstimatorAdapter.of(model).estimate(x, y, algorithm_rng, noise)
    return float((ridge_loss(rows, estimate) - least_ridge_loss(rows)) / n)


def ridge_loss(rows: Array, theta: Array) -> float:
    """``sum (<x_i, theta> - 1)^2 + p |theta|^2``: the ridge's rows are orthogonal."""
    return float(np.square(rows @ theta - 1).sum() + rows.shape[1] * theta @ theta)


def least_ridge_loss(rows: Array) -> float:
    """The least `ridge_loss` over the l1 ball, by 500 accelerated gradient steps (Nesterov)."""
    p = rows.shape[1]
    theta = ahead = np.zeros(p)
    largest_curvature = 2 * (np.linalg.norm(rows, 2) ** 2 + p)
    for t in range(1, 501):
        gradient = 2 * (rows.T @ (rows @ ahead - 1) + p * ahead)
        after = project_to_l1_ball(ahead - gradient / largest_curvature)
        ahead = after + (t - 1) / (t + 2) * (after - theta)
        theta = after
    return ridge_loss(rows, theta)


def project_to_l1_ball(vector: Array) -> Array:
    """The nearest point of the unit l1 ball (Duchi, Shalev-Shwartz, Singer & Chandra 2008)."""
    if np.abs(vector).sum() <= 1:
        return vector
    sizes = np.sort(np.abs(vector))[::-1]
    cuts = (np.cumsum(sizes) - 1) / np.arange(1, sizes.size + 1)
    cut = cuts[np.flatnonzero(sizes > cuts)[-1]]
    nearest: Array = np.sign(vector) * np.maximum(np.abs(vector) - cut, 0)
    return nearest
