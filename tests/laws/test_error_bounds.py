"""Law: where an engine is made coarse, the interval that it claims still contains the truth.

A bound on an error is seen where the error is made: few nodes, short rules, points far apart,
factors known to few digits.  `tests/mutants/test_mutants.py` asks each law once about the engine as
it is, and once without each term of its bound.
"""

import pytest

from tests.laws.error_bounds import (
    compositions,
    contours,
    cumulants,
    cuts,
    epochs,
    finite_pairs,
    grids,
    proof_lattices,
    proof_series,
    quadratures,
    sampled_ratios,
    shuffles,
    tradeoffs,
)
from tests.mutants.unseen_terms import UNSEEN

LAWS = {
    "contours": contours.contour_violation,
    "sums of a contour": contours.sum_violation,
    "phases of a contour": contours.phases_violation,
    "rough cumulants": contours.rough_violation,
    "tables of a contour": contours.table_violation,
    "smoothed contours": contours.smoothed_violation,
    "cumulants": cumulants.violation,
    "smoothed cumulants": cumulants.smoothing_violation,
    "transforms on a grid": grids.transform_violation,
    "rough transforms on a grid": grids.rough_violation,
    "noise on a grid": grids.noise_violation,
    "few outcomes": grids.few_outcomes_violation,
    "finite pairs": finite_pairs.violation,
    "mixtures": quadratures.mixture_violation,
    "edges of mixtures": quadratures.edges_violation,
    "Renyi curves": quadratures.renyi_violation,
    "sharp Renyi curves": quadratures.sharp_renyi_violation,
    "lines of an epoch": epochs.line_violation,
    "bounds of a line": epochs.line_bounds_violation,
    "sums of a line": epochs.line_sum_violation,
    "rough lines of an epoch": epochs.rough_line_violation,
    "cuts of an epoch": cuts.cut_violation,
    "epochs of few steps": cuts.few_steps_violation,
    "Renyi curves of an epoch": cuts.renyi_violation,
    "rules of an epoch": epochs.rule_violation,
    "products on a lattice": epochs.product_violation,
    "sums on a lattice": epochs.lattice_violation,
    "cells on a lattice": epochs.cells_violation,
    "proofs by contours": proof_series.contour_violation,
    "decays in proofs": proof_series.decay_violation,
    "mixtures in proofs": proof_series.mixture_violation,
    "nodes that proofs leave out": proof_series.outside_violation,
    "rules of mixtures in proofs": proof_series.rule_violation,
    "lattices in proofs": proof_lattices.lattice_violation,
    "discrete Gaussians in proofs": proof_lattices.discrete_gaussian_violation,
    "epochs in proofs": proof_series.allocation_violation,
    "rough epochs in proofs": proof_series.rough_allocation_violation,
    "sets in proofs": proof_lattices.set_violation,
    "many responses": compositions.binomial_violation,
    "chances to reveal all": compositions.infinity_violation,
    "ranges in advance": compositions.fixed_ranges_violation,
    "adaptive ranges": compositions.adaptive_ranges_violation,
    "trade-off curves from below": tradeoffs.lower_violation,
    "trade-off curves": tradeoffs.ends_violation,
    "rates of attacks": tradeoffs.rates_violation,
    "Gaussians that fit": tradeoffs.fit_violation,
    "clones": shuffles.clones_violation,
    "shuffled responses": shuffles.responses_violation,
    "sampled ratios": sampled_ratios.rule_violation,
    "sampled ratios far up": sampled_ratios.filon_violation,
}


def test_terms_that_no_law_sees_are_still_in_the_code():
    for term, reason in UNSEEN.items():
        with pytest.MonkeyPatch.context() as patch:
            term(patch)
        assert reason
