"""The least rho of a loss against sums in many digits, closed forms, and published values."""

import math

import mpmath
import numpy as np
import pytest

from accountant import (
    ZCDP,
    BoundedRangeLoss,
    Grouped,
    LaplaceLoss,
    PairLoss,
    PoissonSampled,
    PureLoss,
    SampledWithoutReplacement,
)
from accountant.losses.least_rho import least_rho, rho_of_pure
from accountant.losses.public_choice import PublicChoice
from mechanisms import DiscreteLaplace, RandomizedResponse, TruncatedLaplace


def exact_ratio(loss, tilt):
    """Return K(a) / (a (a + 1)) of a finite loss in 40 digits, its masses made to sum to 1."""
    with mpmath.workdps(40):
        a = mpmath.mpf(tilt)
        values, masses = loss.loss_pmf
        terms = [(mpmath.mpf(p), mpmath.mpf(x)) for p, x in zip(masses, values, strict=True)]
        total = sum(p for p, _ in terms)
        moment = sum(p * mpmath.exp(a * x) for p, x in terms) / total
        return float(mpmath.log(moment) / (a * (a + 1)))


def random_pair(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 7))
    p, q = rng.dirichlet(np.full(size, rng.choice([0.2, 0.6, 3.0])), 2) + 1e-9
    return PairLoss(p / p.sum(), q / q.sum())


@pytest.mark.parametrize("seed", range(12))
def test_rho_is_the_supremum_of_the_curve(seed):
    loss = random_pair(seed)
    rho = loss.rho
    tilts = np.geomspace(1e-7, 1e4, 60)
    best = float(tilts[np.argmax([exact_ratio(loss, tilt) for tilt in tilts])])
    nearby = np.append(tilts, np.geomspace(best / 1.5, best * 1.5, 100))
    attained = max(exact_ratio(loss, tilt) for tilt in nearby)
    assert attained <= rho <= attained * (1 + 1e-4)


def test_some_of_these_pairs_have_their_supremum_at_an_order_far_above_1():
    rhos = [(loss.rho, exact_ratio(loss, 1e-7)) for loss in map(random_pair, range(12))]
    assert sum(rho > 1.03 * at_order_1 for rho, at_order_1 in rhos) >= 3


@pytest.mark.parametrize(
    ("epsilon", "published"), [(0.5, 0.1225), (1.0, 0.462), (2.0, 1.523), (4.0, 3.856)]
)
def test_pure_privacy_and_discrete_laplace_noise_have_the_published_rho(epsilon, published):
    # Harrison & Manurangsi (2025), arXiv 2510.25746
    for item in (PureLoss(epsilon), DiscreteLaplace(1 / epsilon)):
        assert ZCDP().rho(item) == pytest.approx(published, abs=5e-4)
    assert rho_of_pure(epsilon) >= epsilon * math.tanh(epsilon / 2)


@pytest.mark.parametrize("size", [1e-6, 0.01, 0.5, 1.0, 4.0, 30.0, 600.0])
def test_the_search_agrees_with_closed_forms(size):
    # Their suprema are at order 1: of the response, of Laplace noise, and of bounded range, whose
    # greatest divergence of order 1 is e0 / (1 - c) - 1 - ln(e0 / (1 - c)), c = e^-e0.
    with mpmath.workdps(40):
        e = mpmath.mpf(size)
        ratio = e / (1 - mpmath.exp(-e))
        closed = {
            PureLoss(size): e * mpmath.tanh(e / 2),
            LaplaceLoss(size): e - 1 + mpmath.exp(-e),
            BoundedRangeLoss(size): ratio - 1 - mpmath.log(ratio),
        }
        for loss, rho in closed.items():
            # near order 1 the curve of small Laplace losses is given with its round-off alone
            width = 1e-2 if size < 0.1 else 1e-5
            assert rho <= loss.rho
            if size >= 0.01:
                assert rho <= least_rho(loss) <= float(rho) * (1 + width)


@pytest.mark.parametrize("categories", [2, 3, 10, 100])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_responses_of_many_categories_have_the_rho_of_their_own_curve(categories, epsilon):
    loss = RandomizedResponse(
        categories, math.exp(epsilon) / (math.exp(epsilon) + categories - 1)
    ).loss
    tilts = np.geomspace(1e-6, 20, 200)
    attained = max(exact_ratio(loss, tilt) for tilt in tilts)
    assert attained <= loss.rho <= attained * (1 + 1e-3)
    assert loss.rho <= rho_of_pure(epsilon) * (1 + 1e-12)


BOUNDED = [
    PoissonSampled(LaplaceLoss(1.0), 0.01),
    PoissonSampled(PureLoss(1.0), 0.1),
    PoissonSampled(BoundedRangeLoss(1.0), 0.1),
    SampledWithoutReplacement(LaplaceLoss(1.0), 10, 100),
    PublicChoice((PureLoss(0.1), PureLoss(2.0)), (0.9, 0.1)),
    TruncatedLaplace(1.0, 20.0).loss,
]


@pytest.mark.parametrize("plan", BOUNDED, ids=repr)
def test_bounded_losses_pay_less_than_their_pure_epsilon(plan):
    ((loss, _),) = plan.losses()
    orders = 1 + np.geomspace(1e-3, 1e4, 500)
    for direction in (loss, loss.reversed):
        attained = np.max(direction.renyi(orders) / orders)
        # of a truncated law the finite part is pure
        epsilon = max(direction.max_loss, direction.reversed.max_loss)
        assert attained * (1 - 1e-6) <= direction.rho < 0.95 * epsilon**2 / 2


def test_a_group_pays_no_more_than_its_own_curve():
    loss = PairLoss((0.7, 0.3), (0.4, 0.6))
    ((group, _),) = Grouped(loss, 3).losses()
    tilts = np.geomspace(1e-6, 100, 300)
    attained = max(exact_ratio(group, tilt) for tilt in tilts)
    assert attained <= group.rho <= attained * (1 + 1e-3)
    assert group.rho < 0.9 * 9 * max(loss.rho, loss.reversed.rho)


def test_a_loss_without_a_largest_value_or_of_0_has_no_search():
    assert least_rho(ZCDPInfinite()) == math.inf
    assert rho_of_pure(math.inf) == math.inf
    assert rho_of_pure(0.0) == 0.0
    assert PairLoss((0.5, 0.5), (0.5, 0.5)).rho == 0.0


class ZCDPInfinite:
    """A loss whose largest value is not known; no curve of it is asked for."""

    max_loss = math.inf
