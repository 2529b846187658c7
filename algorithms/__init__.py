"""Compositions of mechanisms: a plan made from shapes, and a run through the gate."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from algorithms.baselines.cai_wang_zhang import ThresholdedMean, ThresholdedRegression
    from algorithms.frank_wolfe.convex_set import GaussianFrankWolfe
    from algorithms.frank_wolfe.polytope import FrankWolfe
    from algorithms.frank_wolfe.private_lasso import PrivateLasso
    from algorithms.frank_wolfe.private_logistic_lasso import PrivateLogisticLasso
    from algorithms.label_privacy.label_classifier import LabelPrivateClassifier
    from algorithms.label_privacy.label_randomizers import best_randomizer
    from algorithms.label_privacy.label_sgd import LabelSGD
    from algorithms.sparse_regression.label_iht import LabelIHT
    from algorithms.sparse_regression.label_lasso import LabelLasso
    from algorithms.sparse_regression.local_iht import LocalIHT
    from algorithms.sparse_regression.sparse_erm import SparseERM
    from algorithms.statistics.local_histogram import LocalHistogram
    from algorithms.statistics.local_mean import LocalMean
    from algorithms.statistics.private_mean import PrivateMean
    from algorithms.statistics.private_selection import PrivateSelection
    from algorithms.voting.sign_vote import SignVote

# scikit-learn takes a second to import, so an estimator is loaded when it is asked for
_HOME = {
    "FrankWolfe": "frank_wolfe.polytope",
    "GaussianFrankWolfe": "frank_wolfe.convex_set",
    "LabelIHT": "sparse_regression.label_iht",
    "LabelLasso": "sparse_regression.label_lasso",
    "LabelPrivateClassifier": "label_privacy.label_classifier",
    "LabelSGD": "label_privacy.label_sgd",
    "LocalHistogram": "statistics.local_histogram",
    "LocalIHT": "sparse_regression.local_iht",
    "LocalMean": "statistics.local_mean",
    "PrivateLasso": "frank_wolfe.private_lasso",
    "PrivateLogisticLasso": "frank_wolfe.private_logistic_lasso",
    "PrivateMean": "statistics.private_mean",
    "PrivateSelection": "statistics.private_selection",
    "SignVote": "voting.sign_vote",
    "SparseERM": "sparse_regression.sparse_erm",
    "ThresholdedMean": "baselines.cai_wang_zhang",
    "ThresholdedRegression": "baselines.cai_wang_zhang",
    "best_randomizer": "label_privacy.label_randomizers",
}
__all__ = [
    "FrankWolfe",
    "GaussianFrankWolfe",
    "LabelIHT",
    "LabelLasso",
    "LabelPrivateClassifier",
    "LabelSGD",
    "LocalHistogram",
    "LocalIHT",
    "LocalMean",
    "PrivateLasso",
    "PrivateLogisticLasso",
    "PrivateMean",
    "PrivateSelection",
    "SignVote",
    "SparseERM",
    "ThresholdedMean",
    "ThresholdedRegression",
    "best_randomizer",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
