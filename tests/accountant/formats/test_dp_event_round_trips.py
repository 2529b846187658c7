"""Round trips: a plan, its event, and the plan of that; all events of the peer's main branch."""

import random
import re

import pytest
from dp_accounting import dp_event as peer

from accountant import (
    ApproxLoss,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    GeometricTries,
    LaplaceLoss,
    LogarithmicTries,
    MixtureOfGaussians,
    PairLoss,
    PoissonSampled,
    PoissonTries,
    PureLoss,
    RandomAllocation,
    Repeat,
    Repeated,
    SampledWithoutReplacement,
    Sequential,
    Stated,
    TruncatedPoisson,
    ZCDPLoss,
    from_dp_event,
    to_dp_event,
)  # fmt: skip
from accountant.formats.dp_event_readers import NON_PRIVATE
from tests.accountant.formats import dp_event_stand_ins as main


@pytest.fixture(autouse=True)
def events_of_the_main_branch(monkeypatch):
    for one in main.STAND_INS:
        if not hasattr(peer, one.__name__):
            monkeypatch.setattr(peer, one.__name__, one, raising=False)


ROUND_TRIPS = [
    (ApproxLoss(0.5, 1e-6), "add-remove"),
    (BoundedRangeLoss(0.5), "add-remove"),
    (DiscreteGaussianLoss(4.0, 3), "add-remove"),
    (DiscreteLaplaceLoss(4.0, 3), "add-remove"),
    (NON_PRIVATE, "add-remove"),
    (PoissonSampled(PureLoss(1.0), 0.1), "add-remove"),
    (PoissonSampled(ZCDPLoss(0.5, 0.1), 0.1), "add-remove"),
    (PoissonSampled(DiscreteGaussianLoss(4.0, 3), 0.1), "add-remove"),
    (RandomAllocation(GaussianLoss(0.5), steps=10, picks=3), "add-remove"),
    (PoissonSampled(LaplaceLoss(0.5), 0.1, "replace-one"), "replace-one"),
    (PoissonSampled(Stated(ZCDPLoss(0.5), "replace-one"), 0.1, "replace-one"), "replace-one"),
    (SampledWithoutReplacement(ZCDPLoss(0.5), 10, 100), "replace-one"),
    (SampledWithoutReplacement(PureLoss(0.5), 10, 100), "replace-one"),
    (Stated(DiscreteLaplaceLoss(4.0, 6), "replace-one"), "replace-one"),
    (Stated(PairLoss((0.625, 0.125, 0.25), (0.125, 0.625, 0.25)), "replace-one"), "replace-one"),
]


@pytest.mark.parametrize(("plan", "relation"), ROUND_TRIPS, ids=repr)
def test_round_trips(plan, relation):
    event = to_dp_event(plan)
    kept = plan.part if isinstance(plan, Stated) else plan
    assert from_dp_event(event, relation) == kept


def test_epochs_of_an_allocation_are_so_many_events():
    plan = RandomAllocation(GaussianLoss(0.5), steps=10, epochs=4)
    event = to_dp_event(plan)
    assert event.count == 4
    assert dict(from_dp_event(event).losses()) == dict(plan.losses())


def drawn_release(rng):
    """Return a release whose numbers are powers of 2, which no inverse rounds."""
    size = 2.0 ** rng.randint(-6, 2)
    return rng.choice([
        GaussianLoss(size), LaplaceLoss(size), PureLoss(size), ZCDPLoss(size, size / 2),
        BoundedRangeLoss(size), ApproxLoss(size, 2.0**-20), DiscreteLaplaceLoss(4 / size, 2),
        DiscreteGaussianLoss(1 + 4 * size, rng.randint(1, 3)),
        MixtureOfGaussians(size, (0.0, 1.0), (0.75, 0.25)), NON_PRIVATE,
        RandomAllocation(GaussianLoss(size), steps=8, picks=rng.randint(1, 4)),
        TruncatedPoisson(GaussianLoss(size), 0.25, 1000, 300),
    ])  # fmt: skip


def drawn_plan(rng, depth):
    if depth == 0:
        return drawn_release(rng)
    part = drawn_plan(rng, depth - 1)
    match rng.randrange(4):
        case 0:
            return Sequential([part, drawn_plan(rng, depth - 1)])
        case 1:
            return Repeat(part, rng.randint(1, 9))
        case 2:
            one = GaussianLoss(2.0 ** rng.randint(-6, 2))
            law = rng.choice([GeometricTries(0.25), LogarithmicTries(0.25), PoissonTries(3.0)])
            return Sequential([part, Repeated(one, law)])
    one = drawn_release(rng)
    return Sequential([part, PoissonSampled(one, 2.0 ** -rng.randint(0, 6))])


def rounded(plan):
    return re.sub(r"[\d.]+(e[-+]\d+)?", lambda found: f"{float(found[0]):.12g}", repr(plan))


def test_drawn_plans_come_back():
    rng = random.Random(1)
    for _ in range(300):
        plan = drawn_plan(rng, rng.randint(0, 3))
        again = from_dp_event(to_dp_event(plan))
        # a mean number of runs is turned back by a search, up to the last digits
        assert again == plan or rounded(again) == rounded(plan)
