"""The table of the project's algorithms, each with the minimax problem that it solves.

For each entry a report compares three numbers: the mean loss of the algorithm on the problem's hard
family (data from which the lower bound is proved), the upper bound on risk of its theorem if there
is one, and the minimax lower bound.

A ``setting`` has the sizes of a problem: n records or users, p or ``dimension`` coordinates, k
labels or candidates, s non-zero coefficients, ``noise_bound``, the largest size C of the noise of
y, and the privacy parameters ``epsilon``, ``delta`` or ``rho``.  ``bound`` is the lower bound,
whose hard family (``bound.construction``) the algorithm runs on.

The losses are in `algorithm_losses`; the theorems are functions of this file, which return the
upper bound with its constants, or None where the theorem does not apply.  Most of their docstrings
begin with the formula of the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

from audits.minimax.bounds.bound import LowerBound
from audits.minimax.performance import algorithm_losses as losses
from audits.minimax.performance.algorithm_losses import (
    Setting,
    as_pure_epsilon,
    chi_squared_epsilon,
    estimator_loss,
    nearby_parameter,
    private_mean_estimator,
)

LossFunction = Callable[..., float]
TheoremBound = Callable[[Setting, LowerBound], float | None]
# 7/4 (1 + 1/2 + 1/4 + ...): the errors of the gradients of all rounds enter a distance with this
# factor times the step.  Keeping the largest coefficients enlarges an error by 7/4 at most, and
# each round halves what is left of those before it.
ERROR_FACTOR = 3.5


@final
@dataclass(frozen=True, slots=True)
class AlgorithmEntry:
    """An algorithm for a problem of `problems.PROBLEMS`.

    ``loss(setting, bound, rng, noise)`` is the loss of one run on the hard family of the lower
    bound ``bound``; ``noise`` is 1 for a private run and 0 for one without noise.
    ``theorem_bound(setting, bound)`` is the upper bound on risk of its theorem, None if that does
    not apply.  ``setting`` is an example, used where the user gives no values.
    """

    problem: str
    algorithm: str
    loss: LossFunction
    theorem_bound: TheoremBound
    setting: dict[str, Any] = field(default_factory=dict)


def _local_iht(epsilon_of: Callable[[Setting], float], clipped: bool = False) -> LossFunction:
    """The loss of one round of `LocalIHT` for one coefficient, at the epsilon of a setting.

    With ``clipped`` residuals are clipped at half of the noise bound.
    """

    def make(setting: Setting) -> Any:
        from algorithms.sparse_regression.local_iht import LocalIHT

        bound = float(setting.get("noise_bound", 2.0))
        return LocalIHT(
            epsilon=epsilon_of(setting),
            sparsity=1,
            noise_bound=bound,
            rounds=1,
            residual_bound=bound / 2 if clipped else None,
        )

    loss: LossFunction = estimator_loss(make)
    return loss


def _label_iht(setting: Setting) -> Any:
    """`LabelIHT` with bounded noise; a label is at most ``sqrt(s)`` plus its noise."""
    from algorithms.base.hard_thresholding import default_step
    from algorithms.sparse_regression.label_iht import LabelIHT

    return LabelIHT(
        epsilon=setting["epsilon"],
        delta=0.0,
        sparsity=setting["s"],
        randomizer="bounded",
        y_bound=math.sqrt(setting["s"]) + setting["noise_bound"],
        step=default_step(),
    )


def _lasso(setting: Setting) -> Any:
    from algorithms.frank_wolfe.private_lasso import PrivateLasso

    return PrivateLasso(
        setting["epsilon"], setting["delta"], method="frank-wolfe", fit_intercept=False
    )


def _erm(setting: Setting) -> Any:
    """`SparseERM` with the squared loss; rows of signs have the norm ``sqrt(p)``."""
    from algorithms.sparse_regression.sparse_erm import SparseERM

    return SparseERM(
        loss="squared",
        epsilon=setting["epsilon"],
        delta=setting["delta"],
        sparsity=setting["s"],
        row_bound=math.sqrt(setting["p"]),
        step=0.5,
        rounds=8,
        slope_bound=1.0,
        fit_intercept=False,
    )


def _local_mean(setting: Setting) -> Any:
    from algorithms.statistics.local_mean import LocalMean

    return LocalMean(epsilon=setting["epsilon"])


def _local_histogram(setting: Setting) -> Any:
    from algorithms.statistics.local_histogram import LocalHistogram

    return LocalHistogram(k=setting["k"], epsilon=setting["epsilon"])


def thresholded_records_risk(setting: Setting, bound: LowerBound) -> float | None:
    """``(|theta| / 2 + 3.5 eta sqrt(17) |error|_inf)^2``, with probability 1 - 4 / p.

    It is the squared distance of `LocalIHT` from the true theta, which has one coefficient of size
    |theta|, after one round with working sparsity 8 and step eta.  ``error`` is that of the mean of
    n reported gradients; two iterates of 8 coefficients and theta have 17 coordinates at most, on
    which its norm is at most sqrt(17) |error|_inf.  Bernstein's inequality bounds each of its
    coordinates twice: in the mean of n reports of length B, and in the mean of n noises of y times
    signs.  The bound is at most 4, the squared diameter of the unit ball.  Wang & Xu (2021), with
    constants made explicit.
    """
    from algorithms.base.hard_thresholding import default_step
    from mechanisms import HemisphereL2

    n, p, epsilon = setting["n"], setting["p"], as_pure_epsilon(setting)
    noise = float(setting.get("noise_bound", 2.0))
    # the gradients' norm is at most sqrt(p) (sqrt s + sqrt s* + C), with s = 8 and s* = 1
    radius = math.sqrt(p) * (math.sqrt(8) + 1 + noise)
    # probability of the gradient's own hemisphere in a report, e^epsilon / (1 + e^epsilon)
    keep = 1 / (1 + math.exp(-epsilon))
    if not 0.5 < keep < 1 or p < 2:
        return None
    length = HemisphereL2(dimension=p, radius=radius, keep=keep, longer="clip").length
    # Each coordinate exceeds its bound, on each of two sides, with probability at most 1 / p^2.
    # These are 4 p events for the two means, which together have probability at most 4 / p.
    level = 2 * math.log(p)
    error = _bernstein(level, n, noise**2, noise) + _bernstein(level, n, length**2 / p, 2 * length)
    size = float(getattr(bound.construction, "d", 1.0))
    return min(4.0, (size / 2 + ERROR_FACTOR * default_step() * math.sqrt(17) * error) ** 2)


def _bernstein(level: float, n: int, variance: float, largest: float) -> float:
    """The positive t with ``n t^2 / (2 (variance + largest t / 3)) = level``.

    By Bernstein's inequality a mean of n independent variables, of this variance and at most
    ``largest`` above their expectation, exceeds its expectation by t with probability at most
    ``e^-level``.
    """
    half = level * largest / 3
    return (half + math.sqrt(half**2 + 2 * n * level * variance)) / n


def thresholded_labels_risk(setting: Setting, bound: LowerBound) -> float | None:
    """``(2^-T |theta| + 3.5 eta sqrt(17 s) (C + Y coth(eps/2)) sqrt(4 ln p / n))^2``.

    It is the squared distance of `LabelIHT` from the true theta after T = log2 n rounds of step
    eta, and holds with probability 1 - 4 / p.  C bounds the noise of y and Y = sqrt(s) + C the
    labels.  The bound is at most 4, the squared diameter of the unit ball.
    """
    from algorithms.base.hard_thresholding import default_step

    n, s, noise = setting["n"], setting["s"], setting["noise_bound"]
    size = (math.sqrt(s) + noise) / math.tanh(setting["epsilon"] / 2)
    error = (noise + size) * math.sqrt(4 * math.log(setting["p"]) / n)
    norm = float(getattr(bound.construction, "norm", 1.0)) / n  # T = log2 n rounds
    error_bound = ERROR_FACTOR * default_step() * math.sqrt(17 * s) * error
    return float(min(4.0, (norm + error_bound) ** 2))


def one_pass_risk(setting: Setting, bound: LowerBound) -> float | None:
    """``D L sqrt(V / n)``, the expected excess loss of `LabelSGD` after one pass over n users.

    D is the diameter of the parameters' set, L the Lipschitz constant of the loss, and V the second
    moment of the decoded reports.  Chua and others (2026).
    """
    from algorithms.label_privacy.label_sgd import LabelSGD

    family: Any = bound.construction
    model = LabelSGD(
        epsilon=setting["epsilon"], k=family.k, loss="linear", diameter=family.diameter
    )
    return float(model.utility_bound(setting["n"], family.lipschitz))


def local_mean_risk(setting: Setting, bound: LowerBound) -> float | None:
    """``B^2 / n``, a bound of ``E |mean - truth|^2`` for the mean of n users' vectors.

    Reports are independent and unbiased, and B^2 bounds the mean square of each.  For reports on a
    sphere B is its radius; else B^2 is the variance of the noise plus that of the users' numbers.
    """
    from algorithms.base.number_noise import noise_variance
    from algorithms.statistics.local_mean import mean_randomizer

    del bound
    reports: Any = mean_randomizer(setting["dimension"], setting["epsilon"], 1.0)
    if hasattr(reports, "length"):
        return float(reports.length**2 / setting["n"])
    # the numbers of users lie in [-1, 1], so their variance is at most 1
    return (noise_variance(reports, 1.0) + 1) / float(setting["n"])


def added_noise_risk(setting: Setting, bound: LowerBound) -> float | None:
    """``p scale^2`` for Gaussian noise, ``2 p scale^2`` for Laplace noise: its second moment.

    `PrivateMean` adds it to the p coordinates of the mean; delta is above 0 for Gaussian noise.
    """
    del bound
    n, p = setting["n"], setting["dimension"]
    plan: Any = private_mean_estimator(setting).plan((n, p))
    return float(p * plan.scale**2 * (1 if setting.get("delta", 0.0) else 2))


def subset_selection_risk(setting: Setting, bound: LowerBound) -> float | None:
    """``(k q (1-q) / g^2 + (1-p-q) / g + 1) / n`` with g = p - q: the squared error of k shares.

    A report is a set of labels.  It has the user's own label with probability p and each other one
    with probability q.  The 1 is for the random labels of the users.
    """
    from mechanisms import SubsetSelection

    del bound
    k, n = setting["k"], setting["n"]
    mechanism = SubsetSelection.optimised(k, setting["epsilon"])
    p, q = mechanism.own_label_probability, mechanism.other_label_probability
    return float((k * q * (1 - q) / (p - q) ** 2 + (1 - p - q) / (p - q) + 1) / n)


def permute_and_flip_risk(setting: Setting, bound: LowerBound) -> float | None:
    """``2 ln k / eps``, the expected gap of the selected sum to the largest of k sums.

    A record moves each sum by at most 1 (McKenna & Sheldon 2020).
    """
    del bound
    return float(2 * math.log(setting["k"]) / setting["epsilon"])


def frank_wolfe_risk(setting: Setting, bound: LowerBound) -> float | None:
    """The expected excess of the empirical risk over its minimum on the unit l1 ball.

    The formula is that of `FrankWolfe.utility_bound`.  Its argument 1.0 says that the empirical
    risk at the start exceeds its minimum by at most 1.
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


# The example for private records, of which each user reports one, in turn.
_RECORDS = {"n": 10_000, "p": 20, "epsilon": 0.5, "interaction": "sequential"}
# The example for the central model, in which a trusted curator has all records.
_CENTRAL = {"n": 2_000, "p": 64, "s": 1, "epsilon": 1.0, "delta": 1e-6}
ALGORITHM_TABLE = (
    AlgorithmEntry(
        "sparse_regression",
        "LocalIHT",
        _local_iht(as_pure_epsilon),
        thresholded_records_risk,
        _RECORDS,
    ),
    AlgorithmEntry(
        "sparse_regression",
        "LocalIHT, residuals clipped",
        _local_iht(as_pure_epsilon, clipped=True),
        no_theorem,
        _RECORDS,
    ),
    AlgorithmEntry(
        "sparse_regression_zcdp",
        "LocalIHT",
        _local_iht(as_pure_epsilon),
        thresholded_records_risk,
        {"n": 10_000, "p": 20, "rho": 0.1},
    ),
    AlgorithmEntry(
        "sparse_regression_rdp",
        "LocalIHT",
        _local_iht(chi_squared_epsilon),
        no_theorem,
        {"n": 10_000, "p": 20, "epsilon": 0.5},
    ),
    AlgorithmEntry(
        "label_regression",
        "LabelIHT",
        estimator_loss(_label_iht),
        thresholded_labels_risk,
        {"n": 10_000, "p": 100, "s": 5, "epsilon": 0.5, "noise_bound": 1.0},
    ),
    AlgorithmEntry(
        "label_optimisation",
        "LabelSGD",
        losses.label_sgd_loss,
        one_pass_risk,
        {"n": 5_000, "k": 20, "epsilon": 1.0},
    ),
    AlgorithmEntry(
        "central_regression",
        "PrivateLasso",
        estimator_loss(_lasso, nearby_parameter, power=1.0),
        no_theorem,
        _CENTRAL,
    ),
    AlgorithmEntry(
        "central_regression",
        "SparseERM",
        estimator_loss(_erm, nearby_parameter, power=1.0),
        no_theorem,
        _CENTRAL,
    ),
    AlgorithmEntry(
        "private_lasso",
        "PrivateLasso",
        losses.lasso_loss,
        frank_wolfe_risk,
        {"n": 280, "p": 256, "epsilon": 1.0, "delta": 1e-6},
    ),
    AlgorithmEntry(
        "private_mean",
        "LocalMean",
        losses.family_loss(_local_mean),
        local_mean_risk,
        {"n": 10_000, "dimension": 10, "epsilon": 1.0},
    ),
    AlgorithmEntry(
        "private_mean",
        "PrivateMean, Laplace",
        losses.central_mean_loss,
        added_noise_risk,
        {"n": 10_000, "dimension": 10, "epsilon": 1.0, "model": "central"},
    ),
    AlgorithmEntry(
        "private_mean",
        "PrivateMean, Gaussian",
        losses.central_mean_loss,
        added_noise_risk,
        {"n": 10_000, "dimension": 10, "epsilon": 1.0, "model": "central", "delta": 1e-6},
    ),
    AlgorithmEntry(
        "private_histogram",
        "LocalHistogram",
        losses.family_loss(_local_histogram),
        subset_selection_risk,
        {"n": 10_000, "k": 20, "epsilon": 1.0},
    ),
    AlgorithmEntry(
        "private_selection",
        "PrivateSelection",
        losses.selection_loss,
        permute_and_flip_risk,
        {"n": 1_000, "k": 100, "epsilon": 1.0},
    ),
)


def algorithms_for(problem: str) -> tuple[AlgorithmEntry, ...]:
    """The entries of a problem, in the order of the table."""
    return tuple(entry for entry in ALGORITHM_TABLE if entry.problem == problem)
