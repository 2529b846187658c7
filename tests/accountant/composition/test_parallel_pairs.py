"""Many parallel plans of unlike parts: the pair of the greatest profile, and its composition."""

import numpy as np
import pytest

from accountant import (
    PLD,
    ApproxLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    Grouped,
    LaplaceLoss,
    MixtureOfGaussians,
    PairLoss,
    Parallel,
    PoissonSampled,
    PureLoss,
    SampledWithoutReplacement,
    Tight,
    ZCDPLoss,
)
from accountant.composition.composed_loss import loss_of_item
from accountant.composition.engine import certify
from accountant.composition.grid_certificate import grid_certificate
from accountant.composition.grid_pairs import pairs_on_grid

GAUSSIAN = GaussianLoss(0.5)
FIRST, SECOND = PairLoss([0.3, 0.5, 0.2], [0.2, 0.3, 0.5]), PairLoss([0.1, 0.9], [0.02, 0.98])
UNLIKE = [
    (LaplaceLoss(0.3), GaussianLoss(0.2)),
    (PoissonSampled(GaussianLoss(1.2), 1e-3), PoissonSampled(GaussianLoss(0.6), 1e-2)),
    (FIRST, SECOND, GAUSSIAN),
    (ApproxLoss(0.2, 1e-3), LaplaceLoss(0.6)),
    (SampledWithoutReplacement(GAUSSIAN, 40, 1000), SampledWithoutReplacement(PureLoss(1.0), 2, 9)),
]


@pytest.mark.parametrize("parts", UNLIKE, ids=lambda parts: type(parts[0]).__name__)
@pytest.mark.parametrize("turned", [False, True])
def test_the_pair_of_the_greatest_profile_is_above_every_part(parts, turned):
    loss = loss_of_item(Parallel(parts))
    loss = loss.reversed if turned else loss
    epsilon = np.linspace(-1.5, 1.5, 301)
    truth = loss.profile_any_epsilon(epsilon)
    for step in (0.03, 1e-3):
        edges = np.concatenate([[-np.inf], np.arange(-2.0, 2.0, step), [np.inf]])
        cells = loss.cell_masses(edges)
        # what the masses say of the profile at each edge, their errors on the side of privacy
        above = np.cumsum((cells.p + cells.p_error)[::-1])[::-1][1:] + loss.infinity
        below = np.cumsum((cells.q - cells.q_error)[::-1])[::-1][1:]
        at_edges = above - np.exp(edges[1:-1]) * below
        exact = loss.profile_any_epsilon(edges[1:-1])
        assert np.all(at_edges >= exact * (1 - 1e-13) - 1e-15)
        assert np.all(at_edges <= exact + 1e-9)
        pair = pairs_on_grid(loss, 1, 0.0, step, (-2.0, 2.0))[1]
        sticks = -np.expm1(np.minimum(epsilon[:, None] - pair.law.points, 0.0))
        assert np.all(sticks @ pair.law.mass + pair.p_beyond >= truth * (1 - 1e-12))


def greatest_of_finite(parts):
    """Return losses and masses of the pair whose profile is the greatest of finite pairs'."""
    profiles = [lambda e, one=one: one.profile_any_epsilon(e) for one in parts]
    places = np.concatenate([one.loss_pmf[0] for one in parts])
    # profiles are straight in x = e^epsilon between losses: they cross where the difference is 0
    x = np.sort(np.exp(places))
    crossings = []
    for left, right in zip(np.append(0.0, x[:-1]), x, strict=True):
        with np.errstate(divide="ignore"):
            ends = np.log([left, right])
        gap = [profiles[0](np.array([e]))[0] - profiles[1](np.array([e]))[0] if e > -np.inf else 0.0
               for e in ends]  # fmt: skip
        if gap[0] * gap[1] < 0:
            crossings.append(left + (right - left) * gap[0] / (gap[0] - gap[1]))
    x = np.unique(np.concatenate([x, crossings]))
    values = np.max([one(np.log(x)) for one in profiles], axis=0)
    slopes = np.diff(np.append(1.0, values)) / np.diff(np.append(0.0, x))
    return np.log(x), x * np.diff(np.append(slopes, 0.0))


def test_two_releases_hold_an_enumerated_truth():
    loss, mass = greatest_of_finite([FIRST, SECOND])
    total, chance = np.add.outer(loss, loss).ravel(), np.multiply.outer(mass, mass).ravel()
    found = grid_certificate([(loss_of_item(Parallel([FIRST, SECOND])), 2)], 0.05, 1e-6)
    delta = [
        float(np.sum(chance * -np.expm1(np.minimum(e - total, 0.0))))
        for e in (found.lower, found.upper)
    ]
    assert delta[1] <= 0.05 * (1 + 1e-12)
    assert delta[0] >= 0.05 * (1 - 1e-12)
    assert found.width < 0.01


def test_three_parallel_samples_cost_no_more_than_their_pair():
    samples = [
        PoissonSampled(GaussianLoss(1.2237842519404598), 0.00013370871500360652),
        PoissonSampled(GaussianLoss(0.5896437658687604), 0.0010505986036277546),
    ]
    found = Tight().certify_one_way(3 * Parallel(samples), 2.96e-10)
    assert found.lower > 0.0659
    assert found.upper < 0.06602  # PLD says .0662, Rényi curves .198


PLANS = [
    (6 * Parallel([GaussianLoss(1.1), ApproxLoss(0.05, 1e-11)]), 3e-9),
]
OTHERS = [
    (12 * Parallel([MixtureOfGaussians(0.7, [0.0, 1.0], [0.9, 0.1]), ZCDPLoss(0.005)]), 1e-5),
    (3 * Parallel([2 * GAUSSIAN, 3 * LaplaceLoss(0.2)]), 1e-6),
    (5 * Parallel([LaplaceLoss(0.3), DiscreteLaplaceLoss(3.0, 1)]) + 4 * GAUSSIAN, 1e-6),
]


@pytest.mark.parametrize(("plan", "delta"), PLANS)
def test_tight_is_not_above_pld(plan, delta):
    check_not_above_pld(plan, delta)


@pytest.mark.slow
@pytest.mark.parametrize(("plan", "delta"), OTHERS)
def test_tight_is_not_above_pld_on_other_plans(plan, delta):
    check_not_above_pld(plan, delta)


def check_not_above_pld(plan, delta):
    found = Tight().certify(plan, delta)
    assert found.lower <= found.upper <= PLD().epsilon(plan, delta) * (1 + 2e-7)
    assert found.lower > 0


def test_a_part_that_costs_less_is_not_certified_narrowly(monkeypatch):
    from accountant.accountants import direction

    widths = []

    def certified(problem, engines, rival=0.0):
        widths.append(problem.width)
        return certify(problem, engines, rival)

    def rough(items, delta, width):
        widths.append(width)
        return grid_certificate(items, delta, width)

    monkeypatch.setattr(direction, "certify", certified)
    monkeypatch.setattr(direction, "grid_certificate", rough)
    found = Tight().certify(Grouped(6 * PoissonSampled(GaussianLoss(1.0), 0.01), 2), 1e-7)
    assert found.width <= 1e-6 * found.upper
    # the two hits are narrow; one hit on either side, and none against two, only cost less
    assert [width <= 1e-6 for width in widths] == [True, False, False]


def test_pld_of_parallel_parts_without_a_finite_rho():
    from accountant import GeometricTries, Repeated

    plan = Parallel([2 * Repeated(GaussianLoss(0.2), GeometricTries(0.5)), GaussianLoss(0.5)])
    assert Tight().epsilon(plan, 1e-4) <= PLD().epsilon(plan, 1e-4) < 10
