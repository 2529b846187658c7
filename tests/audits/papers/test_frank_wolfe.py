"""What the printed noise of the private LASSO gives: methods.md 7.1, 9 (E18, E18b), 11."""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad

from accountant import RDP, ZCDP, Advanced, Basic
from audits.papers.frank_wolfe import (
    WIDE_RANGE_EXAMPLES,
    attacked_epsilon,
    laplace_log_ratio_range,
    printed_selections,
    verdict,
)


def test_the_golden_row():
    claim = printed_selections(1.0, 1e-6, 50)
    part = claim.plan.part
    assert part.scale == pytest.approx(74.3, abs=0.05)
    assert part.loss.epsilon == pytest.approx(0.053808, abs=5e-7)
    assert claim.plan.count == 49
    found = {one: one().epsilon(claim.plan, 1e-6) for one in (Basic, Advanced, ZCDP, RDP)}
    expected = {Basic: 2.63659, Advanced: 1.59706, ZCDP: 1.77742, RDP: 1.69443}
    assert found == pytest.approx(expected, rel=2e-5)
    assert claim.true_epsilon == pytest.approx(1.59706, rel=2e-5)


def test_laplace_is_neither_proved_nor_refuted_and_gumbel_holds():
    laplace = printed_selections(1.0, 1e-6, 50)
    assert not laplace.holds
    assert 0.765 < attacked_epsilon(laplace) < 1.0 < 1.6 - 0.005 < laplace.true_epsilon < 1.7
    assert verdict(laplace) == (
        "private LASSO, laplace, T=50, replace: claims epsilon 1 at delta 1e-06; "
        "provable 1.60 (1.69 by Rényi), at least 0.77: NOT REFUTED"
    )
    gumbel = printed_selections(1.0, 1e-6, 50, "gumbel")
    assert gumbel.holds
    # methods 11 has .83266, on a grid of orders; exact composition of two-point pairs gives .782
    assert RDP().epsilon(gumbel.plan, 1e-6) == pytest.approx(0.83266, rel=1e-3)
    assert 0.7777 < gumbel.true_epsilon < 0.7822
    assert "provable 0.78 (0.83 by Rényi)" in verdict(gumbel)
    assert verdict(gumbel).endswith("HOLDS")
    assert attacked_epsilon(gumbel) < gumbel.true_epsilon


@pytest.mark.parametrize(
    ("epsilon", "delta", "iterates", "optimal", "least"),
    [(1.0, 1e-6, 200, 1.65, 0.78), (1.0, 1e-3, 200, 1.47, 0.64)],
)
def test_other_rows(epsilon, delta, iterates, optimal, least):
    claim = printed_selections(epsilon, delta, iterates)
    assert claim.true_epsilon == pytest.approx(optimal, abs=6e-3)
    assert attacked_epsilon(claim) >= least - 2e-3


@pytest.mark.parametrize(
    ("epsilon", "delta", "iterates", "optimal"),
    [(1.0, 1e-6, 50, 0.760827), (1.0, 1e-3, 200, 0.643067), (4.0, 1e-3, 200, 3.407649)],
)
def test_the_claim_holds_for_a_record_added(epsilon, delta, iterates, optimal):
    claim = printed_selections(epsilon, delta, iterates, relation="add-remove")
    assert claim.holds
    assert claim.true_epsilon <= epsilon
    assert claim.true_epsilon == pytest.approx(optimal, rel=1e-5)


def test_too_little_noise_would_be_falsified():
    # the same plan under a claim of half of what two candidates show
    claim = printed_selections(1.0, 1e-6, 50)
    lower = type(claim)(claim.name, claim.source, 0.5, claim.delta, claim.plan)
    assert verdict(lower).endswith("FALSIFIED")


@pytest.mark.parametrize(
    ("instance", "expected"), [(WIDE_RANGE_EXAMPLES[0], 1.173), (WIDE_RANGE_EXAMPLES[1], 1.161)]
)
def test_laplace_selection_has_not_bounded_range(instance, expected):
    scores, moves = instance
    assert laplace_log_ratio_range(scores, moves) == pytest.approx(expected, abs=1e-3)
    # another road: adaptive quadrature of every candidate's probability
    ratios = [
        math.log(wins(np.add(scores, moves), i) / wins(np.array(scores), i)) for i in range(5)
    ]
    e0 = 2 * abs(moves[0])
    assert (max(ratios) - min(ratios)) / e0 == pytest.approx(
        laplace_log_ratio_range(scores, moves), rel=1e-6
    )
    assert max(map(abs, ratios)) <= e0  # it is pure, as accounted


def wins(scores, index):
    """P(candidate ``index`` is the greatest after standard Laplace noise)."""

    def density(v):
        below = [
            math.exp(min(v - s, 0)) / 2 if v < s else 1 - math.exp(s - v) / 2
            for j, s in enumerate(scores) if j != index
        ]  # fmt: skip
        return math.exp(-abs(v - scores[index])) / 2 * math.prod(below)

    kinks = sorted({-40.0, 40.0, *scores})
    return sum(
        quad(density, a, b, epsabs=1e-14, epsrel=1e-12, limit=200)[0]
        for a, b in itertools.pairwise(kinks)
    )
