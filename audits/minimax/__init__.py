"""Minimax lower bounds: the least error any private algorithm can reach, with its construction."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from audits.minimax.bounds.bound import Construction, LowerBound
    from audits.minimax.bounds.central_regression import central_rate, central_regression
    from audits.minimax.bounds.histogram import private_histogram
    from audits.minimax.bounds.label_optimisation import label_optimisation
    from audits.minimax.bounds.label_private_regression import label_regression
    from audits.minimax.bounds.lasso import private_lasso
    from audits.minimax.bounds.mean import private_mean
    from audits.minimax.bounds.selection import FewVotes, private_selection
    from audits.minimax.bounds.sparse_regression import (
        sparse_regression,
        sparse_regression_rdp,
        sparse_regression_zcdp,
    )
    from audits.minimax.checks.enumeration import Check, enumerate_checks
    from audits.minimax.checks.simulation import simulated_check
    from audits.minimax.decoding.inequalities import (
        private_fano,
        private_le_cam,
        private_many_points,
    )
    from audits.minimax.decoding.record_decoding import most_right, most_right_chi_squared
    from audits.minimax.families.bernoulli_products import BernoulliProducts
    from audits.minimax.families.fingerprints import Fingerprints
    from audits.minimax.families.label_family import LabelFamily
    from audits.minimax.families.packings import disjoint_packing, greedy_packing, random_packing
    from audits.minimax.families.paired_shares import PairedShares
    from audits.minimax.families.sign_means import SignCopies, SignMeans
    from audits.minimax.families.signed_basis import SignedBasis
    from audits.minimax.families.sparse_packing import SparsePacking
    from audits.minimax.information.contraction import (
        Contraction,
        chi_squared_divergence,
        distance_information,
        fano_information,
        le_cam_divergence,
    )
    from audits.minimax.problems import PROBLEMS, lower_bound, sample_size

# loaded when asked for: `python -m audits --help` should not wait for numpy
_HOME = {
    "BernoulliProducts": "families.bernoulli_products",
    "Check": "checks.enumeration",
    "Construction": "bounds.bound",
    "Contraction": "information.contraction",
    "FewVotes": "bounds.selection",
    "Fingerprints": "families.fingerprints",
    "LabelFamily": "families.label_family",
    "LowerBound": "bounds.bound",
    "PROBLEMS": "problems",
    "PairedShares": "families.paired_shares",
    "SignCopies": "families.sign_means",
    "SignMeans": "families.sign_means",
    "SignedBasis": "families.signed_basis",
    "SparsePacking": "families.sparse_packing",
    "central_rate": "bounds.central_regression",
    "central_regression": "bounds.central_regression",
    "chi_squared_divergence": "information.contraction",
    "disjoint_packing": "families.packings",
    "distance_information": "information.contraction",
    "enumerate_checks": "checks.enumeration",
    "fano_information": "information.contraction",
    "greedy_packing": "families.packings",
    "label_optimisation": "bounds.label_optimisation",
    "label_regression": "bounds.label_private_regression",
    "le_cam_divergence": "information.contraction",
    "lower_bound": "problems",
    "most_right": "decoding.record_decoding",
    "most_right_chi_squared": "decoding.record_decoding",
    "private_fano": "decoding.inequalities",
    "private_histogram": "bounds.histogram",
    "private_lasso": "bounds.lasso",
    "private_le_cam": "decoding.inequalities",
    "private_many_points": "decoding.inequalities",
    "private_mean": "bounds.mean",
    "private_selection": "bounds.selection",
    "random_packing": "families.packings",
    "sample_size": "problems",
    "simulated_check": "checks.simulation",
    "sparse_regression": "bounds.sparse_regression",
    "sparse_regression_rdp": "bounds.sparse_regression",
    "sparse_regression_zcdp": "bounds.sparse_regression",
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
