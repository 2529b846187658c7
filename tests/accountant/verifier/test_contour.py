"""Integrals of proofs over several releases with counts, against all sequences of outcomes."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

pytest.importorskip("flint", reason="python-flint is not installed")

from flint import arb, ctx

from accountant.verifier.contour import alias_bound, delta_by_contour
from accountant.verifier.document import Fields, NoProof, ProofError
from accountant.verifier.moments import FiniteMoments, GaussianMoments
from tests.accountant.verifier.test_outcomes import CASES, CERTAIN, delta, distinct_losses, masses

ROUND_OFF = 1e-10  # of the sums in floats


pytestmark = pytest.mark.usefixtures("enough_time")


def ends(items, back, epsilon, **given):
    """Both ends of delta by an entry of a proof, in floats."""
    entry = {"rules": [], "smooth": 0.0} | given
    entry = {key: x.hex() if isinstance(x, float) else x for key, x in entry.items()}
    with ctx.workprec(128):
        low, high = delta_by_contour(items, back, Fields(entry, "an entry"), epsilon)
        return float(low.lower()), float(high.upper())


def joint(items, back):
    """The masses (p, q) of all sequences of outcomes."""
    sums = [(1.0, 1.0)]
    for release, count in items:
        factor = [(q, p) if back else (p, q) for p, q in masses(release)]
        for _ in range(count):
            sums = distinct_losses([(a * p, b * q) for a, b in sums for p, q in factor])
    return sums


def chernoff(items, back, a, epsilon):
    """Chernoff's bound of delta at the order a, with the infinite losses."""
    pairs = joint(items, back)
    moment = sum(p * (p / q) ** a for p, q in pairs if p > 0 < q)
    y = np.geomspace(1e-4, 50, 20_001)
    constant = np.max(-np.expm1(-y) * np.exp(-a * y))
    return moment * math.exp(-a * epsilon) * constant + sum(p for p, q in pairs if q == 0)


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_delta_by_an_integral_is_that_of_all_sequences(name, back):
    items = CASES[name]
    for k, epsilon in enumerate((0.0, 0.3, 1.5, -0.4)):
        truth = delta(items, epsilon, back)
        low, high = ends(items, back, epsilon, a=0.3, b=2.0, h=0.25, nodes=600)
        assert low - ROUND_OFF <= truth <= high + ROUND_OFF
        assert high - low < 0.05
        for nodes in (2, 3, 7):
            coarse = {"a": 0.4 + 0.5 * k, "h": 2.0 / nodes, "nodes": nodes}
            for more in ({"b": 9.0}, {"b": 0.0}, {"b": 4.0, "smooth": 0.01}):
                low, high = ends(items, back, epsilon, **coarse, **more)
                assert low - ROUND_OFF <= truth <= high + ROUND_OFF


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_one_node_is_the_bound_of_chernoff(name, back):
    items = CASES[name]
    for a, epsilon in ((0.5, 0.0), (2.0, 0.3), (7.0, 1.5)):
        low, high = ends(items, back, epsilon, a=a, b=0.0, h=1.0, nodes=1)
        infinite = sum(p for p, q in joint(items, back) if q == 0)
        assert low <= infinite + ROUND_OFF
        assert low >= -ROUND_OFF
        assert high == pytest.approx(chernoff(items, back, a, epsilon), rel=1e-6)
        assert high >= delta(items, epsilon, back) - ROUND_OFF


@pytest.mark.parametrize("name", CASES)
def test_an_order_of_aliases_that_is_not_above_a_asks_for_the_upper_bound_alone(name):
    line = {"a": 0.5, "h": 0.5, "nodes": 40}
    _, high = ends(CASES[name], False, 0.3, b=2.0, **line)
    infinite = sum(p for p, q in joint(CASES[name], False) if q == 0)
    for b in (0.0, 0.25, 0.5):
        low, same_high = ends(CASES[name], False, 0.3, b=b, **line)
        assert infinite - ROUND_OFF <= low <= infinite + ROUND_OFF
        assert same_high == high


@pytest.mark.parametrize("count", [1, 4])
def test_releases_with_formulas_are_multiplied(count):
    mu = Fraction(1, 2)
    shift = 0.5 * math.sqrt(count)
    for epsilon in (0.0, 0.5, 1.0):
        far = math.exp(epsilon) * ndtr(-shift / 2 - epsilon / shift)
        truth = ndtr(shift / 2 - epsilon / shift) - far
        fine = {"a": 2.0, "b": 20.0, "h": 0.5, "nodes": 60}
        low, high = ends([(("gaussian", mu**2), count)], False, epsilon, **fine)
        assert low - ROUND_OFF <= truth <= high + ROUND_OFF
        assert high - low < 1e-4
        coarse = fine | {"nodes": 6, "h": 1.0}
        low, high = ends([(("gaussian", mu**2), count)], True, epsilon, **coarse)
        assert low - ROUND_OFF <= truth <= high + ROUND_OFF


@pytest.mark.parametrize("nodes", [2, 3, 4, 6])
@pytest.mark.parametrize("smooth", [0.0, 0.01])
def test_nodes_that_are_left_out_count_where_nothing_cancels(nodes, smooth):
    # all phases are 1 for an outcome whose loss is epsilon
    line = {"a": 0.3, "b": 9.0, "h": 1.0, "nodes": nodes, "smooth": smooth}
    low, high = ends([(CERTAIN, 1)], False, 0.0, **line)
    assert low <= 0 <= high


def test_an_entry_has_a_rule_for_each_mixture_and_no_more():
    with pytest.raises(ProofError):
        ends(CASES["one"], False, 0.1, a=1.0, b=0.0, h=0.5, nodes=4, rules=[{}])


@pytest.mark.parametrize("wrong", [{"a": 0.0}, {"h": 0.0}, {"nodes": 0}, {"smooth": 1.5}])
def test_a_senseless_line_is_refused(wrong):
    entry = {"a": 1.0, "b": 0.0, "h": 0.5, "nodes": 4} | wrong
    with pytest.raises((NoProof, ProofError)):
        ends(CASES["one"], False, 0.1, **entry)


@pytest.mark.parametrize("seed", range(12))
def test_aliases_are_at_most_their_bound(seed):
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(3), 2)
    a, epsilon, step = rng.uniform(0.3, 2.0), rng.uniform(-0.5, 0.5), rng.uniform(1.0, 9.0)
    b = a + rng.uniform(0.2, 5.0)
    period = 2 * math.pi / step
    k = np.arange(-math.ceil(60 / (a * period)), math.ceil(30 / period))
    values = np.maximum(p - np.exp(epsilon + k[:, None] * period) * q, 0).sum(axis=1)
    aliases = np.exp(a * k * period) * values
    with ctx.workprec(128):
        law = [(arb(x), arb(y)) for x, y in zip(p.tolist(), q.tolist(), strict=True)]
        factors = [(FiniteMoments(law, arb(1)), 1), (GaussianMoments(arb(0)), 1)]
        bound = alias_bound(factors, a, b, arb(step), arb(1), epsilon)
    truth = aliases[k != 0].sum()
    assert truth <= float(bound) * (1 + 1e-12)
    losses = np.log(p / q)
    size = (p @ np.exp(b * losses)) * math.exp(-b * epsilon) * b**b / (1 + b) ** (1 + b)
    ratio = math.exp(-(b - a) * period)
    below = 1 / math.expm1(a * period)
    assert float(bound) == pytest.approx(below + size * ratio / (1 - ratio), rel=1e-9)
