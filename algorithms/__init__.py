"""Compositions of mechanisms: a plan made from shapes, and a run through the gate."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from algorithms.cwz import ThresholdedMean, ThresholdedRegression
    from algorithms.frank_wolfe import FrankWolfe
    from algorithms.gaussian_frank_wolfe import GaussianFrankWolfe
    from algorithms.label_classifier import LabelPrivateClassifier
    from algorithms.label_iht import LabelIHT
    from algorithms.label_lasso import LabelLasso
    from algorithms.label_randomizers import best_randomizer
    from algorithms.label_sgd import LabelSGD
    from algorithms.local_histogram import LocalHistogram
    from algorithms.local_iht import LocalIHT
    from algorithms.local_mean import LocalMean
    from algorithms.private_lasso import PrivateLasso
    from algorithms.private_logistic_lasso import PrivateLogisticLasso
    from algorithms.private_mean import PrivateMean
    from algorithms.private_selection import PrivateSelection
    from algorithms.sign_vote import SignVote
    from algorithms.sparse_erm import SparseERM

# scikit-learn takes a second to import, so an estimator is loaded when it is asked for
_HOME = {
    "FrankWolfe": "frank_wolfe",
    "GaussianFrankWolfe": "gaussian_frank_wolfe",
    "LabelIHT": "label_iht",
    "LabelLasso": "label_lasso",
    "LabelPrivateClassifier": "label_classifier",
    "LabelSGD": "label_sgd",
    "LocalHistogram": "local_histogram",
    "LocalIHT": "local_iht",
    "LocalMean": "local_mean",
    "PrivateLasso": "private_lasso",
    "PrivateLogisticLasso": "private_logistic_lasso",
    "PrivateMean": "private_mean",
    "PrivateSelection": "private_selection",
    "SignVote": "sign_vote",
    "SparseERM": "sparse_erm",
    "ThresholdedMean": "cwz",
    "ThresholdedRegression": "cwz",
    "best_randomizer": "label_randomizers",
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
