"""Poisson samples with a largest batch, against enumeration and dp-accounting."""

import math
from fractions import Fraction

import dp_accounting
import mpmath as mp
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant

from accountant import (
    GaussianLoss,
    LaplaceLoss,
    ParameterError,
    PoissonSampled,
    Stated,
    Tight,
    TruncatedPoisson,
    calibrate,
    from_dp_event,
    from_json,
    to_dp_event,
    to_json,
)
from accountant.amplification import truncated_sampling
from accountant.amplification.truncated_sampling import FullBatchLoss
from accountant.losses.mixture_of_gaussians import MixturePairLoss
from accountant.losses.mixture_pair import MixturePair
from accountant.losses.normal_mixture import side
from accountant.plans.adjacency import Adjacency
from mechanisms import Gaussian

SMALL = TruncatedPoisson(GaussianLoss(1.0), 0.4, 4, 2)


@pytest.mark.parametrize(("records", "batch"), [(3, 1), (12, 4), (40, 30), (60, 2), (200, 150)])
@pytest.mark.parametrize("rate", [0.03125, 0.25, 0.75, 1.0])  # exact binary fractions
def test_chances_of_the_cases_are_rounded_towards_privacy(records, batch, rate):
    # In a full batch the record is kept with chance B / (k + 1), k the others that are sampled.
    q = Fraction(rate)
    chances = {
        k: math.comb(records - 1, k) * q**k * (1 - q) ** (records - 1 - k) for k in range(records)
    }
    full = sum(chances[k] for k in range(batch, records))
    true_kept = sum(chances[k] * Fraction(batch, k + 1) for k in range(batch, records))
    plan = TruncatedPoisson(GaussianLoss(1.0), rate, records, batch)
    room, last, kept, cut = plan._chances()
    # The last place hides the record, and one that is cut costs nothing: neither is overstated.
    assert Fraction(last) <= chances[batch - 1]
    assert Fraction(kept) >= true_kept or cut == 0
    assert Fraction(cut) <= full - true_kept + Fraction(1, 2**50)
    assert math.fsum((room, last, kept, cut)) == pytest.approx(1.0, abs=4e-16)
    truth = (sum(chances[k] for k in range(batch - 1)), chances[batch - 1], true_kept)
    assert (room, last, kept) == pytest.approx(tuple(map(float, truth)), rel=1e-9, abs=1e-11)
    if kept and rate < 1:
        mean_rate = plan.choice.attained.rate
        assert Fraction(mean_rate) <= (1 - full) * q + q * true_kept
        assert mean_rate == pytest.approx(float((1 - full + true_kept) * q), rel=1e-9)


# If others leave the last place or none: where their sum lies in these two cases, where it is moved
# by a sampled record, and by what stands there on the other data, if anything.
PLACES = {
    ("add-remove", False): [((0.0, -1.0), 1.0, None)],
    ("add-remove", True): [((0.0, -1.0), 1.0, None), ((0.0, 1.0), 1.0, None)],
    ("zero-out", False): [((0.0, -1.0), 1.0, 0.0)],
    ("zero-out", True): [
        ((0.0, 1.0), 1.0, 0.0)
    ],  # the other record is like the one that is blanked
    ("replace-one", False): [((0.0, -1.0), 1.0, -1.0)],
    ("replace-one", True): [((0.0, 1.0), 1.0, -1.0)],
}


@pytest.mark.parametrize(("relation", "added"), PLACES)
@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("last", [0.0, 0.3, 0.9])
def test_the_last_place_costs_what_the_worst_moves_cost(relation, added, mu, last):
    kept_in_full = 0.8 * (1 - last)
    relation = Adjacency(relation)
    loss = FullBatchLoss(
        mu, 0.3, last, kept_in_full, relation, added and relation is not Adjacency.REPLACE_ONE
    )
    x = np.linspace(-16.0, 16.0, 6401)

    def density(place):
        return np.exp(-((x - mu * place) ** 2) / 2) / math.sqrt(2 * math.pi)

    def laws(others, record, replacing):
        unsampled = last * density(others[0]) + (1 - last) * density(others[1])

        def with_one(place):
            in_batch = (last + kept_in_full) * density(place)
            return 0.7 * unsampled + 0.3 * (
                in_batch + (1 - last - kept_in_full) * density(others[1])
            )

        absent = unsampled if replacing is None else with_one(replacing)
        return (absent, with_one(record)) if added else (with_one(record), absent)

    for epsilon in (0.0, 0.1, 0.3, 1.0, 2.5):
        truth = max(
            np.maximum(p - math.exp(epsilon) * q, 0.0).sum() * 0.005
            for p, q in (laws(*places) for places in PLACES[relation.value, added])
        )
        assert float(loss.profile(epsilon)) == pytest.approx(truth, abs=2e-6)
    assert loss.reversed.reversed == loss


@pytest.mark.parametrize("relation", ["add-remove", "zero-out", "replace-one"])
def test_finite_losses_of_a_full_batch_are_just_above_its_profile(relation):
    for loss in (
        FullBatchLoss(0.7, 0.01, 0.1, 0.8, Adjacency(relation)),
        FullBatchLoss(2.0, 0.3, 0.5, 0.3, Adjacency(relation), added=relation != "replace-one"),
    ):
        values, masses = loss.loss_pmf
        epsilon = np.linspace(0.0, 3.0, 40)
        sticks = np.maximum(-np.expm1(epsilon[:, None] - values), 0.0) @ masses
        exact = loss.profile(epsilon)
        assert np.all(sticks >= exact * (1 - 1e-12))
        assert sticks == pytest.approx(exact, rel=3e-3, abs=2e-6)


def test_a_case_of_a_mixture_of_two_normal_laws_against_a_third():
    # In a full batch of a sampled record, Q has two means and P a third, at rate 1: a mixture pair.
    pair = MixturePairLoss(MixturePair(side((1.3,), (1.0,)), side((0.0, 1.3), (0.2, 0.8))))
    for loss, other in (
        (FullBatchLoss(1.3, 1.0, 0.2, 0.8, Adjacency.ADD_REMOVE), pair),
        (FullBatchLoss(1.3, 1.0, 0.2, 0.8, Adjacency.ADD_REMOVE, added=True), pair.reversed),
    ):
        e = np.array([0.0, 0.5, 2.0, 10.0, 50.0, 400.0])
        assert loss.profile(e) == pytest.approx(other.profile(e), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("relation", ["add-remove", "zero-out", "replace-one"])
def test_the_loss_grows_with_the_rate_and_the_contribution(relation, added):
    def profile(mu=1.0, rate=0.1):
        plan = TruncatedPoisson(GaussianLoss(mu), rate, 100, 12, relation)
        loss = plan.reversed if added else plan
        return loss.profile(np.array([0.0, 0.1, 0.5, 2.0]))

    for more in ({"mu": 1.3}, {"rate": 0.11}):
        assert np.all(profile(**more) >= profile())


@pytest.mark.parametrize(
    ("rate", "records", "batch", "noise", "steps"),
    [
        (0.01, 10_000, 130, 1.0, 1),
        pytest.param(0.01, 10_000, 150, 0.8, 100, marks=pytest.mark.slow),
        pytest.param(0.1, 100, 12, 2.0, 10, marks=pytest.mark.slow),
    ],
)
def test_the_peer_charges_more(rate, records, batch, noise, steps):
    plan = steps * TruncatedPoisson(GaussianLoss(1 / noise), rate, records, batch, "replace-one")
    relation = dp_accounting.NeighboringRelation
    found = {}
    for name in ("REPLACE_ONE", "ADD_OR_REMOVE_ONE"):
        peer = PLDAccountant(getattr(relation, name), value_discretization_interval=1e-3)
        peer.compose(dp_accounting.TruncatedSubsampledGaussianDpEvent(
            records, rate, batch, noise), steps)  # fmt: skip
        found[name] = peer.get_epsilon(1e-5), peer.get_delta(1.0)
    # The peer takes it to be seen whether the batch is full, which this bound does not.
    own = Tight().certify(plan, 1e-5)
    assert own.lower <= own.upper <= found["REPLACE_ONE"][0] * (1 + 1e-9)
    # Of the two cases that the peer has, one release has a simple profile.
    full = truncated_sampling.binomial_tail(records - 1, rate, batch)
    kept = truncated_sampling.binomial_tail(records, rate, batch + 1) * batch / records
    if steps == 1:
        exchanged = PoissonSampled(GaussianLoss(2 / noise), kept / full, "replace-one")
        room = PoissonSampled(GaussianLoss(1 / noise), rate, "replace-one")
        two_cases = full * exchanged.delta_at(1.0) + (1 - full) * room.delta_at(1.0)
        assert two_cases == pytest.approx(found["REPLACE_ONE"][1], abs=1e-6)
        assert Tight().delta(plan, 1.0) <= two_cases
    # where a record is removed the peer still pays for an exchange
    removed = steps * TruncatedPoisson(GaussianLoss(1 / noise), rate, records, batch)
    assert Tight().epsilon(removed, 1e-5) <= found["ADD_OR_REMOVE_ONE"][0] * (1 + 1e-9)


def test_a_batch_that_is_never_full_is_a_poisson_sample():
    for relation in ("add-remove", "replace-one"):
        plan = TruncatedPoisson(GaussianLoss(1.0), 0.1, 50, 50, relation)
        other = PoissonSampled(GaussianLoss(1.0), 0.1, relation)
        for one, two in ((plan, other), (plan.reversed, other.reversed), (20 * plan, 20 * other)):
            ends = Tight(width=1e-8).certify(one, 1e-6), Tight(width=1e-8).certify(two, 1e-6)
            assert ends[0].upper == pytest.approx(ends[1].upper, rel=1e-9)
            assert ends[0].width <= 1e-8 * ends[0].upper
    assert list(TruncatedPoisson(GaussianLoss(1.0), 0.0, 5, 2).losses()) == []
    sure = TruncatedPoisson(GaussianLoss(1.0), 1.0, 10, 2)
    assert sure._chances() == pytest.approx((0.0, 0.0, 0.2, 0.8), abs=1e-11)


def test_a_certificate_says_that_it_is_a_bound():
    plan = TruncatedPoisson(GaussianLoss(1.0), 0.01, 10_000, 120)
    found = Tight().certify(plan, 1e-5)
    assert 0 < found.lower < found.upper
    assert found.lower <= Tight().epsilon(plan.attained_pair, 1e-5)
    wide = TruncatedPoisson(GaussianLoss(1.0), 0.01, 10_000, 200)
    narrow = Tight().certify(wide, 1e-5)
    assert narrow.width <= 1e-8 * narrow.upper


@pytest.mark.parametrize(
    ("relation", "rate", "records", "batch", "noise", "steps"),
    [
        ("add-remove", 1e-3, 10**6, 1130, 0.7, 10_000),
        ("add-remove", 1e-3, 10**6, 1095, 2.0, 100_000),
        ("replace-one", 1e-4, 10**7, 1130, 1.0, 10_000),
        ("zero-out", 0.01, 10**5, 1130, 0.5, 1000),
    ],
)
def test_practical_batches_are_certified_to_one_per_cent(
    relation, rate, records, batch, noise, steps
):
    plan = steps * TruncatedPoisson(GaussianLoss(1 / noise), rate, records, batch, relation)
    found = Tight().certify(plan, 1e-6)
    assert found.lower <= found.upper <= 1.01 * found.lower
    delta = Tight().delta(plan, found.upper)
    assert delta == pytest.approx(1e-6, rel=2e-3)
    assert Tight().epsilon(plan, delta) <= found.upper


@pytest.mark.parametrize("relation", ["add-remove", "zero-out", "replace-one"])
def test_contributions_far_above_the_noise_have_the_exchange_alone(relation):
    # Losses of the last place are no exponents of floats there.
    costs = []
    for mu in (19.0, 21.0, 60.0):
        plan = TruncatedPoisson(GaussianLoss(mu), 0.1, 100, 20, relation)
        found = Tight().certify(plan, 1e-3)
        assert 0 < found.lower <= found.upper < 20_000
        costs.append(found.upper)
    assert costs == sorted(costs)


def test_files_events_and_other_accountants():
    for plan in (SMALL, SMALL.reversed, 3 * SMALL):
        assert from_json(to_json(plan)) == plan
    assert from_dp_event(to_dp_event(SMALL)) == SMALL
    replaced = TruncatedPoisson(GaussianLoss(0.5), 0.4, 4, 2, "replace-one")
    assert from_dp_event(to_dp_event(replaced), "replace-one") == replaced
    sampled = TruncatedPoisson(Gaussian(1.0), 0.1, 1000, 110)
    scaled = calibrate(sampled, epsilon=1.0, delta=1e-5)
    assert 0.99 <= Tight().epsilon(scaled, 1e-5) <= 1.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((GaussianLoss(1.0), 1.1, 4, 2), "rate must be"),
        ((GaussianLoss(1.0), math.nan, 4, 2), "rate must be"),
        ((GaussianLoss(1.0), 0.1, 0, 2), "records must be"),
        ((GaussianLoss(1.0), 0.1, 4, 0), "batch must be"),
        ((GaussianLoss(1.0), 0.1, 4, True), "batch must be"),
        ((GaussianLoss(1.0), 0.1, 4, 2, "label-replace"), "relation must be"),
        ((LaplaceLoss(1.0), 0.1, 4, 2), "part must be made of Gaussian"),
        ((Stated(GaussianLoss(1.0), "replace-one"), 0.1, 4, 2), "part must be stated"),
    ],
)
def test_wrong_arguments_are_refused(arguments, words):
    with pytest.raises(ParameterError, match=words):
        TruncatedPoisson(*arguments)


@pytest.mark.parametrize(
    ("n", "q", "k"),
    [
        (1_674_392_608, 1.386270415988606e-08, 22),
        (737_557_430, 2.9465947054760416e-09, 2),
        (1_000_000, 1e-4, 64),
        (10, 1.0, 3),
        *((5, 0.25, k) for k in range(1, 6)),
        *((80, 0.75, k) for k in (1, 60, 64, 65, 80)),
        *((400, 0.2, k) for k in (65, 80, 100)),
        (1_000_000, 1e-4, 65),
        (10_000, 0.01, 130),
    ],
)
def test_binomial_tails_are_counted_exactly(n, q, k):
    """The incomplete beta function of the library errs by up to 5e-8 for few among very many."""
    with mp.workdps(60):
        terms = (mp.binomial(n, i) * mp.mpf(q) ** i * (1 - mp.mpf(q)) ** (n - i) for i in range(k))
        exact = 1 - mp.fsum(terms)
    tail = truncated_sampling.binomial_tail(n, q, k)
    assert tail == pytest.approx(float(exact), rel=1e-13, abs=1e-300)


@pytest.mark.parametrize(
    "plan",
    [
        5 * TruncatedPoisson(GaussianLoss(1.0), 0.1, 2**53, 10),
        3 * PoissonSampled(GaussianLoss(0.5), 1e-14),
    ],
)
def test_hardly_any_chance_to_be_sampled_costs_nothing(plan):
    found = Tight().certify(plan, delta=1e-6)
    assert 0 <= found.lower <= found.upper < 1e-8
