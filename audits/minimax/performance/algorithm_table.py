"""Which algorithms of the project meet which bound."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

from audits.minimax.bounds.bound import LowerBound
from audits.minimax.performance import algorithm_losses as losses
from audits.minimax.performance import utility_theorems as promises
from audits.minimax.performance.algorithm_losses import Setting, estimator, near, of_order_two, pure

Loss = Callable[..., float]
Promise = Callable[[Setting, LowerBound], float | None]


@final
@dataclass(frozen=True, slots=True)
class Match:
    """An algorithm for a problem of `problems.PROBLEMS`.

    ``loss(setting, bound, rng, noise)`` is that of one run on the hard family; ``promise`` is what
    its theorem proves of the risk, None where it says nothing there.  ``setting`` is an example.
    """

    problem: str
    algorithm: str
    loss: Loss
    promise: Promise
    setting: dict[str, Any] = field(default_factory=dict)


def _local_iht(epsilon_of: Callable[[Setting], float], clipped: bool = False) -> Loss:
    def make(setting: Setting) -> Any:
        from algorithms.sparse_regression.local_iht import LocalIHT

        bound = float(setting.get("noise_bound", 2.0))
        return LocalIHT(
            epsilon=epsilon_of(setting), sparsity=1, noise_bound=bound, rounds=1,
            residual_clip=bound / 2 if clipped else None,
        )  # fmt: skip

    loss: Loss = estimator(make)
    return loss


def _label_iht(setting: Setting) -> Any:
    from algorithms.sparse_regression.label_iht import LabelIHT

    return LabelIHT(
        epsilon=setting["epsilon"], delta=0.0, sparsity=setting["s"], noise="bounded",
        label_bound=math.sqrt(setting["s"]) + setting["noise_bound"],
    )  # fmt: skip


def _lasso(setting: Setting) -> Any:
    from algorithms.frank_wolfe.private_lasso import PrivateLasso

    return PrivateLasso(setting["epsilon"], setting["delta"])


def _erm(setting: Setting) -> Any:
    from algorithms.sparse_regression.sparse_erm import SparseERM

    return SparseERM(
        loss="squared", epsilon=setting["epsilon"], delta=setting["delta"], sparsity=setting["s"],
        row_bound=math.sqrt(setting["p"]), step=0.5, rounds=8,
    )  # fmt: skip


def _local_mean(setting: Setting) -> Any:
    from algorithms.statistics.local_mean import LocalMean

    return LocalMean(epsilon=setting["epsilon"])


def _local_histogram(setting: Setting) -> Any:
    from algorithms.statistics.local_histogram import LocalHistogram

    return LocalHistogram(k=setting["k"], epsilon=setting["epsilon"])


_RECORDS = {"n": 10_000, "p": 20, "epsilon": 0.5, "interaction": "sequential"}
_CENTRAL = {"n": 2_000, "p": 64, "s": 1, "epsilon": 1.0, "delta": 1e-6}
MATCHES = (
    Match(
        "sparse_regression", "LocalIHT", _local_iht(pure), promises.thresholded_records, _RECORDS
    ),
    Match(
        "sparse_regression",
        "LocalIHT, residuals clipped",
        _local_iht(pure, True),
        promises.nothing,
        _RECORDS,
    ),
    Match(
        "sparse_regression_zcdp",
        "LocalIHT",
        _local_iht(pure),
        promises.thresholded_records,
        {"n": 10_000, "p": 20, "rho": 0.1},
    ),
    Match(
        "sparse_regression_rdp",
        "LocalIHT",
        _local_iht(of_order_two),
        promises.nothing,
        {"n": 10_000, "p": 20, "epsilon": 0.5},
    ),
    Match(
        "label_regression",
        "LabelIHT",
        estimator(_label_iht),
        promises.thresholded_labels,
        {"n": 10_000, "p": 100, "s": 5, "epsilon": 0.5, "noise_bound": 1.0},
    ),
    Match(
        "label_optimisation",
        "LabelSGD",
        losses.label_learning,
        promises.one_pass,
        {"n": 5_000, "k": 20, "epsilon": 1.0},
    ),
    Match(
        "central_regression",
        "PrivateLasso",
        estimator(_lasso, near, 1.0),
        promises.nothing,
        _CENTRAL,
    ),
    Match(
        "central_regression", "SparseERM", estimator(_erm, near, 1.0), promises.nothing, _CENTRAL
    ),
    Match(
        "private_lasso",
        "PrivateLasso",
        losses.lasso,
        promises.frank_wolfe,
        {"n": 280, "p": 256, "epsilon": 1.0, "delta": 1e-6},
    ),
    Match(
        "private_mean",
        "LocalMean",
        losses.on_family(_local_mean),
        promises.local_reports,
        {"n": 10_000, "dimension": 10, "epsilon": 1.0},
    ),
    Match(
        "private_mean",
        "PrivateMean, Laplace",
        losses.central_mean,
        promises.added_noise,
        {"n": 10_000, "dimension": 10, "epsilon": 1.0, "model": "central"},
    ),
    Match(
        "private_mean",
        "PrivateMean, Gaussian",
        losses.central_mean,
        promises.added_noise,
        {"n": 10_000, "dimension": 10, "epsilon": 1.0, "model": "central", "delta": 1e-6},
    ),
    Match(
        "private_histogram",
        "LocalHistogram",
        losses.on_family(_local_histogram),
        promises.subsets,
        {"n": 10_000, "k": 20, "epsilon": 1.0},
    ),
    Match(
        "private_selection",
        "PrivateSelection",
        losses.selection,
        promises.flips,
        {"n": 1_000, "k": 100, "epsilon": 1.0},
    ),
)


def matches_of(problem: str) -> tuple[Match, ...]:
    """The algorithms of a problem."""
    return tuple(one for one in MATCHES if one.problem == problem)
