"""Events of dp-accounting's main branch: what each costs, and round trips.

Numbers beside "peer" are those of dp-accounting's main branch (August 2026) at delta 1e-5.
"""

import math

import pytest
from dp_accounting import dp_event as peer

from accountant import (
    RDP,
    ApproxLoss,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    LaplaceLoss,
    ParameterError,
    PureLoss,
    RandomAllocation,
    Sequential,
    Stated,
    Tight,
    UnsupportedPlan,
    from_dp_event,
    to_dp_event,
)
from accountant.formats.dp_event_readers import NON_PRIVATE
from tests.accountant.formats import dp_event_stand_ins as main

GAUSSIAN = peer.GaussianDpEvent(2.0)
NUMBER, VECTOR = (main.DiscreteGaussianDpEvent(4.0, 2.0, k) for k in (1, 5))


def sampled(part, rate=0.05):
    return peer.PoissonSampledDpEvent(rate, part)


def subset(part):
    return peer.SampledWithoutReplacementDpEvent(1000, 50, part)


def best(part, mean=10.0, shape=1.0):
    return peer.RepeatAndSelectDpEvent(part, mean, shape)


ADD_REMOVE = [
    # event, releases, the least epsilon of the peer's accountants, ours
    (main.EpsilonDeltaDpEvent(0.5, 1e-7), 50, 19.487781, 19.487781),
    (NUMBER, 50, 22.019852, 20.676753),
    (VECTOR, 50, 22.019852, 22.019609),
    (main.DiscreteGaussianDpEvent(8.0, 2.0, 5), 50, 9.234959, 8.940357),
    (main.DiscreteGaussianDpEvent(4.0, 2.0), 1, 2.165716, 2.165716),
    # the peer's Rényi accountant counts 50 exponential mechanisms as one: .503501
    (main.ExponentialMechanismDpEvent(0.5), 50, 18.933283, 8.544814),
    (main.PermuteAndFlipDpEvent(0.5), 50, 17.473913, 17.473913),
    (peer.ZCDpEvent(0.05, 0.02), 50, 13.301691, 13.299655),
    (peer.SingleEpochTreeAggregationDpEvent(3.0, [7, 16]), 1, 3.384064, 3.124648),
    (best(main.DiscreteGaussianDpEvent(5.0, 1.0, 1), 10.0, math.inf), 1, 1.859533, 1.859421),
    (sampled(main.DiscreteGaussianDpEvent(1.0, 1.0, 1)), 50, 3.176426, 2.670407),
    (sampled(peer.ZCDpEvent(0.5)), 1, 1.606739, 1.298670),
]


@pytest.mark.parametrize(("event", "count", "theirs", "ours"), ADD_REMOVE, ids=range(12))
def test_events_of_the_main_branch_cost_no_more_than_the_peer_says(event, count, theirs, ours):
    found = Tight().epsilon(from_dp_event(peer.SelfComposedDpEvent(event, count)), 1e-5)
    assert found == pytest.approx(ours, rel=5e-7)
    assert found <= theirs * (1 + 5e-7)


def test_concentrated_releases_may_be_sampled():
    # the peer takes such a part for a Gaussian of the same rho: at orders between whole numbers no
    # theorem says so, and it answers 3.176426 (Poisson); 4.777223 (fixed size)
    assert from_dp_event(main.DiscreteGaussianDpEvent(1.0)).rho == pytest.approx(0.5)
    plan = 50 * from_dp_event(sampled(peer.ZCDpEvent(0.5)))
    assert 2.6704 < Tight().epsilon(plan, 1e-5) < 3.176426 * 1.002
    plan = 50 * from_dp_event(subset(peer.ZCDpEvent(0.5)), "replace-one")
    assert Tight().epsilon(plan, 1e-5) < 4.777223
    both = peer.ComposedDpEvent([GAUSSIAN, peer.ZCDpEvent(0.1)])
    assert RDP().epsilon(50 * from_dp_event(sampled(both)), 1e-5) < 1.416129 * 1.002


def test_claims_are_stated_for_the_neighbours_and_noise_for_contributions():
    for claim in (NUMBER, main.EpsilonDeltaDpEvent(0.5, 1e-7), main.PermuteAndFlipDpEvent(0.5),
                  main.ExponentialMechanismDpEvent(0.5), peer.ZCDpEvent(0.1)):  # fmt: skip
        assert from_dp_event(claim, "replace-one") == from_dp_event(claim)
        plan = from_dp_event(sampled(claim), "replace-one")
        assert plan.part == Stated(from_dp_event(claim), "replace-one")
    tree = peer.SingleEpochTreeAggregationDpEvent(3.0, 16)
    one, two = (from_dp_event(tree, name) for name in ("add-remove", "replace-one"))
    assert two.mu == pytest.approx(2 * one.mu, rel=1e-14)
    assert one.mu == pytest.approx(math.sqrt(5) / 3)
    laplace = peer.DiscreteLaplaceDpEvent(0.25, 3)
    assert from_dp_event(laplace) == DiscreteLaplaceLoss(4.0, 3)
    assert from_dp_event(laplace, "replace-one") == DiscreteLaplaceLoss(4.0, 6)
    exchanged = from_dp_event(sampled(peer.ComposedDpEvent([laplace, GAUSSIAN])), "replace-one")
    assert exchanged.part == Sequential([DiscreteLaplaceLoss(4.0, 3), GaussianLoss(0.5)])
    # more steps than a loss lists: no more than Laplace noise a little closer
    far = from_dp_event(peer.DiscreteLaplaceDpEvent(0.001, 4000))
    assert isinstance(far, LaplaceLoss)
    assert 4.0 < far.shift < 4.000001


def test_non_private_events_cost_infinity():
    for event in (peer.NonPrivateDpEvent(), main.EpsilonDeltaDpEvent(1.0, 1.0)):
        plan = from_dp_event(peer.ComposedDpEvent([event, GAUSSIAN]))
        assert Tight().epsilon(plan, 0.5) == math.inf
    assert Tight().delta(from_dp_event(sampled(peer.NonPrivateDpEvent())), 1.0) == pytest.approx(
        0.05
    )
    assert from_dp_event(best(peer.NonPrivateDpEvent())) == NON_PRIVATE


@pytest.mark.parametrize(
    "event",
    [peer.ZCDpEvent(0.0), main.ExponentialMechanismDpEvent(0.0), main.PermuteAndFlipDpEvent(0.0),
     main.EpsilonDeltaDpEvent(0.0, 0.0), main.DiscreteGaussianDpEvent(1.0, 0.0),
     peer.DiscreteLaplaceDpEvent(1.0, 0), main.RandomAllocationDpEvent(GAUSSIAN, 0, 5),
     peer.TruncatedSubsampledGaussianDpEvent(0, 0.5, 5, 1.0), sampled(GAUSSIAN, 0.0),
     peer.SingleEpochTreeAggregationDpEvent(1.0, [0]), best(peer.NoOpDpEvent()),
     sampled(peer.NoOpDpEvent()), peer.SelfComposedDpEvent(GAUSSIAN, 0)],
    ids=repr,
)  # fmt: skip
def test_ends_of_the_ranges_cost_nothing(event):
    assert Tight().epsilon(from_dp_event(event), 0.0) == 0
    assert from_dp_event(peer.RandomizedResponseDpEvent(0.0, 1), "replace-one") == Sequential(())
    assert from_dp_event(peer.ZCDpEvent(0.0, 0.3)) == PureLoss(0.3)


def test_the_best_of_runs_reveals_as_often_as_any_run_does():
    # the peer counts the delta of the runs once: 10 % of all answers reveal here, and it says 1 %
    plan = from_dp_event(best(main.EpsilonDeltaDpEvent(0.1, 0.01), 10.0, math.inf))
    revealed = -math.expm1(-10 * 0.01)
    assert revealed <= Tight().delta(plan, 10.0) <= 0.1 * (1 + 1e-9)
    with pytest.raises(ParameterError, match="impossible on the neighbour"):
        from_dp_event(best(sampled(main.EpsilonDeltaDpEvent(0.1, 0.01))))


def test_random_allocation():
    event = main.RandomAllocationDpEvent(peer.GaussianDpEvent(1.0), 2, 100)
    assert from_dp_event(event) == RandomAllocation(GaussianLoss(1.0), steps=100, picks=2)
    with pytest.raises(UnsupportedPlan, match="use relation='add-remove'"):
        from_dp_event(event, "replace-one")
    with pytest.raises(ParameterError, match="num_selected"):
        from_dp_event(main.RandomAllocationDpEvent(GAUSSIAN, 101, 100))


def test_events_written_as_named_tuples_are_read():
    event = peer.SelfComposedDpEvent(sampled(GAUSSIAN), 7)
    assert from_dp_event(event.to_named_tuple()) == from_dp_event(event)


@pytest.mark.skipif(hasattr(peer, "EpsilonDeltaDpEvent"), reason="this release has the event")
@pytest.mark.parametrize(
    ("plan", "name"),
    [(ApproxLoss(0.5, 1e-6), "EpsilonDelta"), (BoundedRangeLoss(0.1), "ExponentialMechanism"),
     (DiscreteGaussianLoss(4.0, 1), "DiscreteGaussian"),
     (RandomAllocation(GaussianLoss(1.0), 10), "RandomAllocation")],
    ids=repr,
)  # fmt: skip
def test_an_event_that_the_installed_release_lacks_is_named(plan, name):
    words = f"dp-accounting has no event of this loss; a version with {name}DpEvent has"
    with pytest.raises(UnsupportedPlan, match=words):
        to_dp_event(plan)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (main.EpsilonDeltaDpEvent(math.nan, 0.1), "epsilon must be"),
        (main.EpsilonDeltaDpEvent(0.1, 1.5), "delta must be"),
        (main.DiscreteGaussianDpEvent(0.0), "sigma must be"),
        (main.DiscreteGaussianDpEvent(1.0, math.inf), "sensitivity must be"),
        (main.DiscreteGaussianDpEvent(1.0, 1.0, 0), "dimension must be"),
        (main.ExponentialMechanismDpEvent(-0.1), "epsilon must be"),
        (main.PermuteAndFlipDpEvent(True), "epsilon must be"),
        (main.RandomAllocationDpEvent(GAUSSIAN, 1, 0), "num_steps must be"),
        (peer.SingleEpochTreeAggregationDpEvent(1.0, [3, math.nan]), "step_counts must be"),
        (peer.SingleEpochTreeAggregationDpEvent(math.nan, 3), "noise_multiplier must be"),
        (peer.ZCDpEvent(math.nan), "rho must be"),
        (peer.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0], [1.0]), "2 numbers, one a shift"),
        (peer.DiscreteLaplaceDpEvent(0.1, 2.5), "sensitivity must be"),
    ],
    ids=range(13),
)
def test_bad_numbers_are_refused_with_their_names(event, words):
    with pytest.raises(ParameterError, match=words):
        from_dp_event(event)
