"""Moments of releases by sums in floats; a rule of a mixture is taken where it converges."""

import math
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

from flint import acb, arb, ctx

from accountant.verifier.document import Fields, NoProof
from accountant.verifier.moments import (
    FiniteMoments,
    GaussianMoments,
    LaplaceMoments,
    MixtureMoments,
    RenyiMoments,
    log_density_ratios,
    mixture_sides,
    range_moments,
)

ORDERS = (0.05, 0.5, 1.0, 2.5)
X = np.linspace(-30, 40, 28_001)


pytestmark = pytest.mark.usefixtures("enough_time")


def gaussian_pair(mu):
    return [-((X - at) ** 2) / 2 - math.log(math.sqrt(2 * math.pi)) for at in (mu, 0.0)]


def laplace_pair(m):
    return [-np.abs(X - at) - math.log(2) for at in (m, 0.0)]


CONTINUOUS = {
    "Gaussian": (lambda mu: GaussianMoments(arb(mu) ** 2), gaussian_pair),
    "Laplace": (lambda m: LaplaceMoments(arb(m)), laplace_pair),
}


@pytest.mark.parametrize("size", [0.25, 0.8, 1.5])
@pytest.mark.parametrize("kind", CONTINUOUS)
def test_moments_are_integrals(kind, size):
    made, pair_of = CONTINUOUS[kind]
    part, (log_p, log_q) = made(size), pair_of(size)
    assert part.finite_mass == part.total_mass == 1
    losses, step = log_p - log_q, X[1] - X[0]
    for a in ORDERS:
        truth = [np.sum(np.exp(log_p + (a + 0.5j * k) * losses)) * step for k in range(4)]
        found = [complex(value) for value in part.line(a, 0.5, 4)]
        assert found == pytest.approx(truth, rel=1e-5)
        assert float(part.at(a)) == pytest.approx(truth[0].real, rel=1e-5)
        for k in (1, 2, 3):
            assert float(part.decay(a, arb(0.5 * k))) >= abs(truth[k]) * (1 - 1e-5)
        if kind == "Gaussian":
            assert float(part.decay(a, arb(1.5))) == pytest.approx(abs(truth[3]), rel=1e-5)


@pytest.mark.parametrize("m", [0.25, 1.5, 6.0])
def test_moments_of_laplace_noise_fall_to_their_limit(m):
    part = LaplaceMoments(arb(m))
    for a in ORDERS:
        limit = math.exp(-m / 2) * math.cosh((a + 0.5) * m)
        assert float(part.decay(a, arb(1e12))) == pytest.approx(limit, rel=1e-9)
        for height in (0.125, 1.0, 8.0):
            wanted = min(float(part.at(a)), limit * (1 + 0.5 / height))
            assert float(part.decay(a, arb(height))) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("q_of_last", [0.0, 0.25])
def test_moments_of_outcomes_are_sums(q_of_last):
    p, q = [0.5, 0.125, 0.25, 0.0], [0.25, 0.25, q_of_last, 0.25]
    masses = [(arb(a), arb(b)) for a, b in zip(p, q, strict=True)]
    part = FiniteMoments(masses, arb(0.875))
    both = [(a, b) for a, b in zip(p, q, strict=True) if a * b]
    assert float(part.finite_mass) == sum(a for a, _ in both)
    assert float(part.total_mass) == 0.875
    for a in ORDERS:
        truth = [
            sum(mass * (mass / other) ** (a + 0.5j * k) for mass, other in both) for k in range(4)
        ]
        assert [complex(one) for one in part.line(a, 0.5, 4)] == pytest.approx(truth, rel=1e-12)
        assert float(part.decay(a, arb(1.0))) == pytest.approx(abs(truth[0]), rel=1e-12)


def test_a_bound_of_renyi_divergences_is_that_of_its_gaussian():
    for mu, xi, a in ((0.5, 0.0, 0.5), (1.0, 0.0, 2.5), (1.0, 0.25, 2.5), (0.25, 0.75, 1.0)):
        part = RenyiMoments(arb(mu) ** 2 / 2, arb(xi))
        gaussian = GaussianMoments(arb(mu) ** 2).at(a)
        assert float(part.at(a)) == pytest.approx(float(gaussian) * math.exp(a * xi), rel=1e-12)
        assert float(part.decay(a, arb(3.0))) == float(part.at(a))
        with pytest.raises(NoProof):
            part.line(a, 0.5, 2)


@pytest.mark.parametrize("epsilon", [0.02, 0.5, 2.0, 6.0])
def test_a_range_of_losses_bounds_their_moments(epsilon):
    part = range_moments(arb(epsilon))
    for a in ORDERS:
        largest = 0.0
        for t in np.linspace(0.01, 0.99, 99):  # losses t epsilon and (t - 1) epsilon
            high, low = math.exp(-t * epsilon), math.exp((1 - t) * epsilon)
            p = (1 - low) / (high - low)  # of the larger loss, so that Q has the mass 1
            moment = p * math.exp(a * t * epsilon) + (1 - p) * math.exp(a * (t - 1) * epsilon)
            largest = max(largest, math.log(moment))
        bound = math.log(float(part.at(a)))
        assert largest <= bound
        if epsilon < 0.1:
            assert largest == pytest.approx(bound, rel=0.01)


def test_shifts_of_a_mixture_are_in_deviations():
    sides = mixture_sides(
        4, [(Fraction(1, 4), Fraction(1, 2)), (Fraction(3, 4), 0)], [(1, Fraction(-1, 4))]
    )
    found = [[(float(w), float(s)) for w, s in side] for side in sides]
    assert found == [[(0.25, 1.0), (0.75, 0.0)], [(1.0, -0.5)]]
    for x in (-1.0, 0.5 + 0.25j):
        truth = [np.log(sum(w * np.exp(s * x - s * s / 2) for w, s in side)) for side in found]
        ratios = log_density_ratios(sides, acb(x))
        assert [complex(one) for one in ratios] == pytest.approx(truth)


SIDES = [[(0.5, 0.0), (0.5, 1.0)], [(0.5, -0.25), (0.5, -0.75)]]
ORDER = 2.0
# Nodes to the right of 3 * 1 + 2 * 0.75 = 4.5 fall, and y must be below pi / 2 / 1.75 = 0.8976.
RULE = {"y": 0.89, "h": 0.25, "first": -8, "last": 12, "far": 19}
TAKEN = [
    {}, {"first": 0, "last": 0}, {"last": 19}, {"h": 1.5, "first": -2, "last": 3, "far": 4},
    {"y": 0.05, "h": 0.1, "far": 46},
]  # fmt: skip
REFUSED = [
    {"far": 18}, {"y": 0.9}, {"first": 1}, {"last": -1}, {"last": 20}, {"far": -19},
    {"h": 2.2, "first": -2, "last": 3, "far": 4}, {"y": 1.8}, {"y": 0.02},
]  # fmt: skip


def error_of(changed):
    """The error of a rule, of which some fields are changed."""
    fields = {k: x.hex() if isinstance(x, float) else x for k, x in (RULE | changed).items()}
    sides = [[(arb(w), arb(s)) for w, s in side] for side in SIDES]
    with ctx.workprec(64):
        return MixtureMoments(sides, Fields({"line": fields}, "rules")).quadrature(ORDER, "line")[2]


@pytest.mark.parametrize("changed", TAKEN, ids=repr)
def test_a_rule_that_converges_is_taken(changed):
    assert 0 < float(error_of(changed)) < math.inf


@pytest.mark.parametrize("changed", REFUSED, ids=repr)
def test_a_rule_that_may_not_converge_is_refused(changed):
    with pytest.raises(NoProof):
        error_of(changed)
