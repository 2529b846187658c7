"""Minimax lower bounds: the least error any private algorithm can reach, with its construction."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from audits.minimax.bernoulli_products import BernoulliProducts
    from audits.minimax.bound import Construction, LowerBound
    from audits.minimax.central_records import central_rate, central_regression
    from audits.minimax.contraction import (
        Contraction,
        chi_squared_divergence,
        distance_information,
        fano_information,
        le_cam_divergence,
    )
    from audits.minimax.enumeration import Check, enumerate_checks
    from audits.minimax.fingerprints import Fingerprints
    from audits.minimax.histogram import PairedShares, private_histogram
    from audits.minimax.inequalities import private_fano, private_le_cam, private_many_points
    from audits.minimax.label_family import LabelFamily
    from audits.minimax.label_learning import label_optimisation
    from audits.minimax.lasso import private_lasso
    from audits.minimax.mean import private_mean
    from audits.minimax.packings import disjoint_packing, greedy_packing, random_packing
    from audits.minimax.private_labels import label_regression
    from audits.minimax.private_records import (
        sparse_regression,
        sparse_regression_rdp,
        sparse_regression_zcdp,
    )
    from audits.minimax.problems import PROBLEMS, lower_bound, sample_size
    from audits.minimax.selection import FewVotes, private_selection
    from audits.minimax.sign_families import SignCopies, SignMeans
    from audits.minimax.signed_basis import SignedBasis
    from audits.minimax.simulation import simulated_check
    from audits.minimax.sparse_labels import SparsePacking
    from audits.minimax.testing import most_right, most_right_chi_squared

# loaded when asked for: `python -m audits --help` should not wait for numpy
_HOME = {
    "BernoulliProducts": "bernoulli_products",
    "Check": "enumeration",
    "Construction": "bound",
    "Contraction": "contraction",
    "FewVotes": "selection",
    "Fingerprints": "fingerprints",
    "LabelFamily": "label_family",
    "LowerBound": "bound",
    "PROBLEMS": "problems",
    "PairedShares": "histogram",
    "SignCopies": "sign_families",
    "SignMeans": "sign_families",
    "SignedBasis": "signed_basis",
    "SparsePacking": "sparse_labels",
    "central_rate": "central_records",
    "central_regression": "central_records",
    "chi_squared_divergence": "contraction",
    "disjoint_packing": "packings",
    "distance_information": "contraction",
    "enumerate_checks": "enumeration",
    "fano_information": "contraction",
    "greedy_packing": "packings",
    "label_optimisation": "label_learning",
    "label_regression": "private_labels",
    "le_cam_divergence": "contraction",
    "lower_bound": "problems",
    "most_right": "testing",
    "most_right_chi_squared": "testing",
    "private_fano": "inequalities",
    "private_histogram": "histogram",
    "private_lasso": "lasso",
    "private_le_cam": "inequalities",
    "private_many_points": "inequalities",
    "private_mean": "mean",
    "private_selection": "selection",
    "random_packing": "packings",
    "sample_size": "problems",
    "simulated_check": "simulation",
    "sparse_regression": "private_records",
    "sparse_regression_rdp": "private_records",
    "sparse_regression_zcdp": "private_records",
}
__all__ = [
    "PROBLEMS",
    "BernoulliProducts",
    "Check",
    "Construction",
    "Contraction",
    "FewVotes",
    "Fingerprints",
    "LabelFamily",
    "LowerBound",
    "PairedShares",
    "SignCopies",
    "SignMeans",
    "SignedBasis",
    "SparsePacking",
    "central_rate",
    "central_regression",
    "chi_squared_divergence",
    "disjoint_packing",
    "distance_information",
    "enumerate_checks",
    "fano_information",
    "greedy_packing",
    "label_optimisation",
    "label_regression",
    "le_cam_divergence",
    "lower_bound",
    "most_right",
    "most_right_chi_squared",
    "private_fano",
    "private_histogram",
    "private_lasso",
    "private_le_cam",
    "private_many_points",
    "private_mean",
    "private_selection",
    "random_packing",
    "sample_size",
    "simulated_check",
    "sparse_regression",
    "sparse_regression_rdp",
    "sparse_regression_zcdp",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
