"""Pairs on a lattice: their intervals hold truths found by other roads."""

import math

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr

from accountant import (
    ApproxLoss,
    GaussianLoss,
    Grouped,
    LaplaceLoss,
    MixtureOfGaussians,
    PairLoss,
    PoissonSampled,
    PureLoss,
    SampledWithoutReplacement,
    Tight,
)
from accountant.amplification.exchanged_record import NO_LOSS
from accountant.composition.composition import Composition, EpsilonProblem
from accountant.composition.engine import certify
from accountant.composition.engines import SUMMING_ENGINES
from accountant.composition.grid_bounds import Component, GridBounds, delta_beyond
from accountant.composition.grid_certificate import grid_certificate
from accountant.composition.grid_pairs import masses_above
from accountant.composition.loss_outline import LADDER, Outline
from accountant.losses.cell_masses import normal_cell_masses
from accountant.losses.public_choice import PublicChoice

# steps, rate, noise, delta: epsilon by quadrature of the profile of one step
TRUTHS = [
    (2, 0.004, 1.1, 1e-6, 0.104463193),
    (2, 0.01, 1.0, 1e-5, 0.245465976),
    (2, 0.001, 1.0, 1e-6, 0.027347387),
    (2, 0.004, 0.8, 1e-8, 1.12368132),
    (3, 1e-4, 0.8, 1e-8, 0.02013747689),
]


def sampled(rate, noise):
    return PoissonSampled(GaussianLoss(1 / noise), rate)


@pytest.mark.parametrize(("steps", "rate", "noise", "delta", "truth"), TRUTHS)
def test_few_sampled_gaussians(steps, rate, noise, delta, truth):
    found = Tight().certify(steps * sampled(rate, noise), delta)
    assert found.lower * (1 - 5e-9) <= truth <= found.upper * (1 + 5e-9)
    assert found.width <= 1e-6 * truth


def two_steps(rate, noise, added, epsilon):
    """delta of two sampled Gaussians: the profile of one, averaged over the loss of the other."""
    mu, sign = 1 / noise, -1 if added else 1
    x, weight = np.polynomial.legendre.leggauss(16)
    edges = np.linspace(-9, 12 + mu, 16_001)
    z = (edges[:-1, None] + (edges[1] - edges[0]) / 2 * (x + 1)).ravel()
    weights = np.tile(weight * (edges[1] - edges[0]) / 2, edges.size - 1)
    density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    if not added:
        density *= 1 + rate * np.expm1(mu * z - mu * mu / 2)
    rest = epsilon - sign * np.log1p(rate * np.expm1(mu * z - mu * mu / 2))
    # the loss of the second release exceeds the rest beyond the edge
    ratio = 1 + np.expm1(sign * rest) / rate
    edge = np.log(np.maximum(ratio, 1e-300)) / mu + mu / 2
    tails = ndtr(-sign * edge), ndtr(-sign * (edge - mu))
    mixed = (1 - rate) * tails[0] + rate * tails[1]
    p, q = (tails[0], mixed) if added else (mixed, tails[0])
    all_above = 0.0 if added else -np.expm1(rest)
    return float(np.sum(weights * density * np.where(ratio > 0, p - np.exp(rest) * q, all_above)))


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize(
    ("rate", "noise", "delta"),
    [(0.05, 1.0, 1e-6), (0.3, 2.0, 1e-7), (0.001, 0.5, 1e-5), (0.004, 0.8, 1e-8)],
)
def test_two_steps_by_quadrature(rate, noise, delta, added):
    loss = sampled(rate, noise)
    found = grid_certificate([(loss.reversed if added else loss, 2)], delta, 1e-7)
    assert found.width <= 1e-7 * found.upper
    # the quadrature is good to 1e-16 of 1
    assert two_steps(rate, noise, added, found.upper) <= delta + 1e-16
    assert two_steps(rate, noise, added, found.lower) >= delta - 1e-16


@pytest.mark.parametrize("noise", [0.4, 3.0])
def test_more_steps_agree_with_the_contour(noise):
    loss = sampled(0.3, noise)
    for one in (loss, loss.reversed):
        grid = grid_certificate([(one, 30)], 1e-7, 1e-8)
        other = certify(EpsilonProblem(Composition([(one, 30)]), 1e-7, 1e-8), SUMMING_ENGINES)
        assert max(grid.lower, other.lower) <= min(grid.upper, other.upper)
        assert grid.width <= 1e-6 * grid.upper


PAIR = PairLoss([0.2, 0.5, 0.2999, 0.0001, 0.0], [0.1, 0.5, 0.35, 0.0, 0.05])


@pytest.mark.parametrize("loss", [PAIR, PAIR.reversed, PureLoss(0.5)])
def test_finite_pairs_hold_the_enumerated_truth(loss):
    infinity = -math.expm1(5 * math.log1p(-loss.infinity))
    assert infinity == 0 or grid_certificate([(loss, 5)], infinity / 2, 1e-6).lower == math.inf
    for delta in (1e-2, infinity + 1e-7):
        grid = grid_certificate([(loss, 5)], delta, 1e-6)
        truth = certify(EpsilonProblem(Composition([(loss, 5)]), delta, 1e-8), SUMMING_ENGINES)
        assert grid.lower <= truth.upper * (1 + 1e-12)
        assert truth.lower <= grid.upper * (1 + 1e-12)


@pytest.mark.parametrize(
    ("loss", "atom"),
    [
        (PairLoss([0.2, 0.7, 0.1], [0.1, 0.7, 0.2]), math.log(2)),  # the centre is 0
        (PairLoss([0.01, 0.99], [0.001, 0.999]), math.log(10)),
        (PairLoss([0.3, 0.6, 0.1], [0.3, 0.1, 0.6]), -math.log(6)),  # the centre is the other end
        (PairLoss([1e-9, 1 - 1e-9], [1e-10, 1 - 1e-10]), None),  # the end has too little mass
        (PairLoss([0.5, 0.5, 0.0], [0.5, 0.3, 0.2]), None),  # losses have no lower end
        (PureLoss(0.7), -0.7), (PureLoss(1e-10), None), (LaplaceLoss(1.0), 1.0),
        (sampled(0.3, 1.0), None), (GaussianLoss(1.0), None), (ApproxLoss(0.5, 1e-3), None),
        (PoissonSampled(PureLoss(3.0), 0.01), math.log1p(0.01 * math.expm1(3.0))),
    ],
    ids=repr,
)  # fmt: skip
def test_an_atom_at_an_end_is_seen_where_it_is_not_the_centre(loss, atom):
    outline = Outline(loss, 1)
    assert outline.atom_at_end == (None if atom is None else pytest.approx(atom, rel=1e-12))
    if atom is not None:  # the mean of a narrow cell around an atom is the atom
        assert outline.mean_at_end(1e-7) == pytest.approx(atom, abs=1e-7)


@pytest.mark.parametrize("tail", [1e-4, 1e-12])
@pytest.mark.parametrize("mu", [0.05, 1.0, 3.0])
def test_a_component_leaves_out_no_more_than_the_tail_and_no_edge_more(mu, tail):
    outline = Outline(GaussianLoss(mu), 4)

    def ends(**changed):
        given = {"offset": 0.25, "epsilon": 500.0, "others": 0.0, "tail": tail, "tilt": 1e-3}
        component = outline.component(**(given | changed))
        assert (component.count, component.offset) == (4, 0.25)
        return component.ends

    low, high = ends()
    place = {edge: i for i, edge in enumerate(LADDER.tolist())}
    further_in = LADDER[[place[low] + 1, place[high] - 1]]
    # the loss is normal, of mean mu^2 / 2 and deviation mu
    for edges, is_outside in (((low, high), False), (further_in, True)):
        beyond = ndtr((edges[0] - mu**2 / 2) / mu), ndtr((mu**2 / 2 - edges[1]) / mu)
        assert [mass > tail for mass in beyond] == [is_outside] * 2
    # what is above epsilon plus the others needs no place, nor what is negligible under the tilt
    assert ends(epsilon=high / 4, others=high / 8)[1] == pytest.approx(1.001 * high / 4 + high / 8)
    assert ends(tilt=-120 / low)[0] == pytest.approx(low / 2)
    assert ends(epsilon=-1000.0) == pytest.approx((-1001.0, -1001.0))


def test_a_component_of_a_bounded_loss_ends_where_the_loss_does():
    given = {"offset": 0.0, "epsilon": 9.0, "others": 0.0, "tail": 1e-12, "tilt": 1.0}
    for loss in (PureLoss(0.7), LaplaceLoss(0.7), PoissonSampled(LaplaceLoss(2.0), 0.2)):
        component = Outline(loss, 1).component(**given)
        assert component.ends == pytest.approx((-loss.reversed.max_loss, loss.max_loss), rel=1e-12)


def test_unlike_losses_together():
    items = [(GaussianLoss(0.3), 3), (LaplaceLoss(0.2), 4), (GaussianLoss(0.5), 1)]
    grid = grid_certificate(items, 1e-6, 1e-6)
    truth = certify(EpsilonProblem(Composition(items), 1e-6, 1e-8), SUMMING_ENGINES)
    assert grid.lower <= truth.upper
    assert truth.lower <= grid.upper


def test_samples_without_replacement():
    node = SampledWithoutReplacement(GaussianLoss(1.0), 10, 1000)
    pair = grid_certificate([(node, 10)], 1e-6, 1e-6)
    assert pair.width <= 1e-6 * pair.upper
    # the pair that dominates need not be attained: the lower end is that of one that is
    found = Tight().certify(10 * node, 1e-6)
    assert found.lower < pair.lower <= found.upper <= pair.upper


def test_two_exchanges_and_a_group():
    for plan in (2 * PoissonSampled(GaussianLoss(1.0), 0.01, "replace-one"),
                 Grouped(2 * sampled(0.01, 1.0), 2)):  # fmt: skip
        found = Tight().certify(plan, 1e-6)
        assert found.width <= 1e-6 * found.upper


LOSSES = [
    GaussianLoss(0.7), LaplaceLoss(0.4), PAIR, PAIR.reversed, sampled(0.01, 0.5),
    sampled(0.01, 0.5).reversed, PoissonSampled(LaplaceLoss(1.0), 0.2), PoissonSampled(PAIR, 0.3),
    PoissonSampled(PAIR, 0.3).reversed, SampledWithoutReplacement(GaussianLoss(1.0), 1, 10),
    SampledWithoutReplacement(PureLoss(1.0), 1, 10),
    MixtureOfGaussians(1.0, (0.0, 1.0, 2.0), (0.9, 0.06, 0.04)),
    MixtureOfGaussians(1.0, (0.0, 1.0, 2.0), (0.9, 0.06, 0.04)).reversed,
    PoissonSampled(GaussianLoss(1.0), 0.1, "replace-one"),
    PoissonSampled(PAIR, 0.3, "replace-one"),
    PublicChoice((sampled(0.1, 0.7), PAIR, NO_LOSS), (0.6, 0.3, 0.1)),
]  # fmt: skip


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("with_zero", [True, False])
def test_masses_make_the_profile(loss, with_zero):
    # delta(e) = P(L > e) - e^e Q(L > e)
    inner = np.sort(np.concatenate([np.linspace(-0.83, 1.01, 40), [0.0] * with_zero]))
    edges = np.concatenate([[-np.inf], inner, [np.inf]])
    found = loss.cell_masses(edges)
    p, q = (np.cumsum(one[::-1])[::-1] for one in found[:2])
    assert p[0] + loss.infinity == pytest.approx(1, abs=1e-12)
    assert q[0] == pytest.approx(1, abs=1e-12)
    wanted = loss.profile_any_epsilon(inner)
    assert p[1:] + loss.infinity - np.exp(inner) * q[1:] == pytest.approx(wanted, abs=1e-12)


def test_the_share_of_a_cell_at_its_right_end_is_rounded_up():
    """Of a cell from l to l + h with masses p and q it is (p - e^l q) / (1 - e^-h)."""
    rng = np.random.default_rng(6)
    for left in [*rng.uniform(-600, 600, 60), *rng.uniform(-2, 2, 60)]:
        width, p = 10 ** rng.uniform(-5, -1), rng.uniform(0.01, 1.0)
        points = np.array([left, left + width])
        q = p * math.exp(-left) * (1 - rng.uniform(0.05, 0.95) * -math.expm1(-width))
        alone = np.array([0.0, p, 0.0]), np.array([0.0, q, 0.0]), np.zeros(3), np.zeros(3)
        below, right = masses_above(alone, points, width, 0.0)
        with mpmath.workdps(40):
            exact = mpmath.mpf(p) - mpmath.exp(mpmath.mpf(left)) * mpmath.mpf(q)
            exact /= 1 - mpmath.exp(-mpmath.mpf(width))
            slack = 1e-14 * (4 + abs(left)) * p / width
            assert exact <= right <= exact + slack
            assert p <= mpmath.mpf(below) + mpmath.mpf(right) <= p * (1 + 1e-14)


def test_masses_between_some_edges_are_those_between_all():
    for loss in LOSSES:
        inner = np.array([-0.3, -0.1, 0.05, 0.2])
        whole = loss.cell_masses(np.concatenate([[-np.inf], inner, [np.inf]]))
        some = loss.cell_masses(inner)
        for one, other in zip(whole[:2], some[:2], strict=True):
            assert other == pytest.approx(one[1:-1], rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("mean", [0.0, 4.0])
def test_normal_masses_err_less_than_they_say(mean):
    rng = np.random.default_rng(0)
    with mpmath.workdps(40):
        for width in (1e-6, 1e-3, 0.02, 0.5):
            z = rng.uniform(-9, 12)
            edges = np.array([z, z + width])
            mass, error = normal_cell_masses(edges, mean)
            a, b = (mpmath.mpf(x) - mean for x in edges)
            truth = mpmath.ncdf(b) - mpmath.ncdf(a) if b < 0 else mpmath.ncdf(-a) - mpmath.ncdf(-b)
            assert abs(mass[0] - truth) <= error[0]


@pytest.mark.parametrize("epsilon", [1e-4, 0.03, 1.0, 30.0, 690.0])
@pytest.mark.parametrize("gap", [1e-14, 1e-3, 1.0])
def test_masses_beyond_the_cut_are_rounded_each(epsilon, gap):
    with mpmath.workdps(400):
        for p in np.linspace(0.01, 1.0, 50).tolist():
            q = float(mpmath.exp(-mpmath.mpf(epsilon)) * p * (1 - gap))
            truth = max(mpmath.mpf(p) - mpmath.exp(mpmath.mpf(epsilon)) * mpmath.mpf(q), 0)
            low, high = (delta_beyond((p, q), epsilon, side) for side in (-1, 1))
            assert low <= truth <= high
            assert high - low <= 2e-14 * p


@pytest.mark.parametrize("mass", [1e-6, 1e-20, 1e-100, 1e-250])
def test_logarithms_of_tiny_deltas_are_rounded_outwards(mass):
    part = Component(ApproxLoss(0.5, mass), 1, 0.0, (-1.0, 1.0), -0.5, 1.0)
    grid = GridBounds([part], 0.8, (0.6, 1.5), 0.125, -60.0, 1000)
    low, high = grid.bounds(1.0)  # only the mass at infinity is above 1
    assert low < math.log(mass) < high  # which is rounded itself, by less than to the next float
    assert high - low < 1e-12


def test_no_cost():
    assert grid_certificate([(sampled(1e-6, 10.0), 5)], 1e-3, 1e-6).upper == 0.0


@pytest.mark.parametrize(("steps", "mu", "rate"), [(1000, 10.0, 0.9), (3000, 8.0, 0.4)])
def test_a_sum_out_of_reach_has_no_lattice(steps, mu, rate):
    """No weight is a number so far from the mass: the interval says nothing, and is sound."""
    plan = steps * PoissonSampled(GaussianLoss(mu), rate)
    truth = Tight().certify(plan, 1e-6)
    found = grid_certificate([(PoissonSampled(GaussianLoss(mu), rate), steps)], 1e-6, 1e-7)
    assert found is None or found.lower <= truth.upper <= found.upper


def test_the_lower_end_falls_by_the_rounding_of_the_masses():
    pair = PairLoss((0.7, 0.2, 0.1), (0.2, 0.3, 0.5))
    exact, rounded = (
        grid_certificate([(one, 3)], 1e-3, 1e-6) for one in (pair, pair.with_rounding(1e-4))
    )
    assert rounded.upper == exact.upper
    assert rounded.lower <= exact.lower - 6e-4


def test_a_curve_of_few_sampled_releases_is_that_of_its_certificates():
    # contours alone are 3 and 1 % above the truth here
    plan, deltas = 3 * PoissonSampled(GaussianLoss(1.25), 1e-4), [1e-6, 1e-7]
    for delta, found in zip(deltas, Tight().epsilons(plan, deltas), strict=True):
        known = Tight().certify(plan, delta)
        assert known.lower <= found <= known.upper * (1 + 1e-4)
