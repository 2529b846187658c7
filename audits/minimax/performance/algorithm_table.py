"""The table of the project's algorithms, each with the minimax problem that it solves.

For each entry a report compares three numbers: the mean loss of the algorithm on the problem's hard
family (data from which the lower bound is proved), the upper bound on risk of its theorem if there
is one, and the minimax lower bound.

A setting has the sizes of a problem: n records or users, p or ``dimension`` coordinates, k labels
or candidates, s non-zero coefficients, ``noise_bound`` on the labels' noise, and the privacy
parameters ``epsilon``, ``delta`` or ``rho``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

from audits.minimax.bounds.bound import LowerBound
from audits.minimax.performance import algorithm_losses as losses
from audits.minimax.performance import utility_theorems as promises
from audits.minimax.performance.algorithm_losses import (
    Setting,
    as_pure_epsilon,
    chi_squared_epsilon,
    estimator_loss,
    nearby_parameter,
)

LossFunction = Callable[..., float]
TheoremBound = Callable[[Setting, LowerBound], float | None]


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


# The example for private records, of which each user reports one, in turn.
_RECORDS = {"n": 10_000, "p": 20, "epsilon": 0.5, "interaction": "sequential"}
# The example for the central model, in which a trusted curator has all records.
_CENTRAL = {"n": 2_000, "p": 64, "s": 1, "epsilon": 1.0, "delta": 1e-6}
ALGORITHM_TABLE = (
    AlgorithmEntry(
        "sparse_regression",
        "LocalIHT",
        _local_iht(as_pure_epsilon),
        promises.thresholded_records_risk,
        _RECORDS,
    ),
    AlgorithmEntry(
        "sparse_regression",
        "LocalIHT, residuals clipped",
        _local_iht(as_pure_epsilon, clipped=True),
        promises.no_theorem,
        _RECORDS,
    ),
    AlgorithmEntry(
        "sparse_regression_zcdp",
        "LocalIHT",
        _local_iht(as_pure_epsilon),
        promises.thresholded_records_risk,
        {"n": 10_000, "p": 20, "rho": 0.1},
    ),
    AlgorithmEntry(
        "sparse_regression_rdp",
        "LocalIHT",
        _local_iht(chi_squared_epsilon),
        promises.no_theorem,
        {"n": 10_000, "p": 20, "epsilon": 0.5},
    ),
    AlgorithmEntry(
        "label_regression",
        "LabelIHT",
        estimator_loss(_label_iht),
        promises.thresholded_labels_risk,
        {"n": 10_000, "p": 100, "s": 5, "epsilon": 0.5, "noise_bound": 1.0},
    ),
    AlgorithmEntry(
        "label_optimisation",
        "LabelSGD",
        losses.label_sgd_loss,
        promises.one_pass_risk,
        {"n": 5_000, "k": 20, "epsilon": 1.0},
    ),
    AlgorithmEntry(
        "central_regression",
        "PrivateLasso",
        estimator_loss(_lasso, nearby_parameter, power=1.0),
        promises.no_theorem,
        _CENTRAL,
    ),
    AlgorithmEntry(
        "central_regression",
        "SparseERM",
        estimator_loss(_erm, nearby_parameter, power=1.0),
        promises.no_theorem,
        _CENTRAL,
    ),
    AlgorithmEntry(
        "private_lasso",
        "PrivateLasso",
        losses.lasso_loss,
        promises.frank_wolfe_risk,
        {"n": 280, "p": 256, "epsilon": 1.0, "delta": 1e-6},
    ),
    AlgorithmEntry(
        "private_mean",
        "LocalMean",
        losses.family_loss(_local_mean),
        promises.local_mean_risk,
        {"n": 10_000, "dimension": 10, "epsilon": 1.0},
    ),
    AlgorithmEntry(
        "private_mean",
        "PrivateMean, Laplace",
        losses.central_mean_loss,
        promises.added_noise_risk,
        {"n": 10_000, "dimension": 10, "epsilon": 1.0, "model": "central"},
    ),
    AlgorithmEntry(
        "private_mean",
        "PrivateMean, Gaussian",
        losses.central_mean_loss,
        promises.added_noise_risk,
        {"n": 10_000, "dimension": 10, "epsilon": 1.0, "model": "central", "delta": 1e-6},
    ),
    AlgorithmEntry(
        "private_histogram",
        "LocalHistogram",
        losses.family_loss(_local_histogram),
        promises.subset_selection_risk,
        {"n": 10_000, "k": 20, "epsilon": 1.0},
    ),
    AlgorithmEntry(
        "private_selection",
        "PrivateSelection",
        losses.selection_loss,
        promises.permute_and_flip_risk,
        {"n": 1_000, "k": 100, "epsilon": 1.0},
    ),
)


def algorithms_for(problem: str) -> tuple[AlgorithmEntry, ...]:
    """The entries of a problem, in the order of the table."""
    return tuple(entry for entry in ALGORITHM_TABLE if entry.problem == problem)
