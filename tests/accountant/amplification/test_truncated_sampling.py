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
from mechanisms import Gaussian

SMALL = TruncatedPoisson(GaussianLoss(1.0), 0.4, 4, 2)


def binomial(n, k, q):
    return math.comb(n, k) * q**k * (1 - q) ** (n - k)


def test_the_two_cases_are_sums_over_the_sampled_others():
    n, q, batch = 12, 0.3, 4
    full, rate = TruncatedPoisson(GaussianLoss(1.0), q, n, batch)._chance_of_full_batch()
    others = [(k, binomial(n - 1, k, q)) for k in range(batch, n)]
    assert full == pytest.approx(math.fsum(c for _, c in others), rel=1e-12)
    kept = math.fsum(c * q * batch / (k + 1) for k, c in others)
    assert full * rate == pytest.approx(kept, rel=1e-12)


@pytest.mark.parametrize(("records", "batch"), [(3, 1), (12, 4), (40, 30), (60, 2)])
@pytest.mark.parametrize("rate", [0.03125, 0.25, 0.75])  # exact binary fractions
def test_rates_of_the_two_cases_are_rounded_towards_privacy(records, batch, rate):
    # In a full batch the record is there with chance q B / (k + 1), k the others that are sampled.
    q = Fraction(rate)
    chances = {
        k: math.comb(records - 1, k) * q**k * (1 - q) ** (records - 1 - k)
        for k in range(batch, records)
    }
    chance_of_full = sum(chances.values())
    joint_chance = sum(chance * q * batch / (k + 1) for k, chance in chances.items())
    choice = TruncatedPoisson(GaussianLoss(1.0), rate, records, batch).choice
    upper_rate = choice.parts[-1].pair.right.weights[1]
    mean_rate = choice.attained.pair.right.weights[1]
    assert joint_chance / chance_of_full <= Fraction(upper_rate)
    assert Fraction(mean_rate) <= (1 - chance_of_full) * q + joint_chance
    assert upper_rate == pytest.approx(float(joint_chance / chance_of_full), rel=1e-11)


# Of a full batch, and of one with room: by how much the record moves the sum where it is sampled,
# and by how much what stands there on the other data moves it, in the opposite direction.
MOVES = {
    "add-remove": ((2.0, 0.0), (1.0, 0.0)),
    "zero-out": ((2.0, 1.0), (1.0, 0.0)),  # a blank record also pushes another one out
    "replace-one": ((2.0, 2.0), (1.0, 1.0)),
}


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("relation", MOVES)
def test_the_profile_is_that_of_both_cases_under_each_relation(relation, added):
    plan = TruncatedPoisson(GaussianLoss(1.0), 0.4, 4, 2, relation)
    loss, x = (plan.reversed if added else plan), np.linspace(-14.0, 14.0, 2801)
    full = math.fsum(binomial(3, k, 0.4) for k in (2, 3))
    in_full = math.fsum(binomial(3, k, 0.4) * 0.4 * 2 / (k + 1) for k in (2, 3)) / full

    def density(rate, shift):
        normal = [np.exp(-((x - m) ** 2) / 2) / math.sqrt(2 * math.pi) for m in (0.0, shift)]
        return (1 - rate) * normal[0] + rate * normal[1]

    for epsilon in (0.0, 0.3, 1.0, 2.5):
        truth = 0.0
        rates = (in_full, 0.4)
        for chance, rate, (to, back) in zip((full, 1 - full), rates, MOVES[relation], strict=True):
            p, q = density(rate, to), density(rate, -back)
            p, q = (q, p) if added else (p, q)
            truth += chance * np.maximum(p - math.exp(epsilon) * q, 0.0).sum() * 0.01
        assert float(loss.profile(epsilon)) == pytest.approx(truth, abs=2e-6)
    assert loss.reversed.reversed == loss != loss.reversed


@pytest.mark.parametrize(
    ("rate", "records", "batch", "noise", "steps"),
    [
        (0.01, 10_000, 130, 1.0, 1),
        pytest.param(0.01, 10_000, 150, 0.8, 100, marks=pytest.mark.slow),
        pytest.param(0.1, 100, 12, 2.0, 10, marks=pytest.mark.slow),
    ],
)
def test_the_peer_agrees(rate, records, batch, noise, steps):
    plan = steps * TruncatedPoisson(GaussianLoss(1 / noise), rate, records, batch, "replace-one")
    relation = dp_accounting.NeighboringRelation
    found = {}
    for name in ("REPLACE_ONE", "ADD_OR_REMOVE_ONE"):
        peer = PLDAccountant(getattr(relation, name), value_discretization_interval=1e-3)
        peer.compose(dp_accounting.TruncatedSubsampledGaussianDpEvent(
            records, rate, batch, noise), steps)  # fmt: skip
        found[name] = peer.get_epsilon(1e-5), peer.get_delta(1.0)
    own = Tight().epsilon(plan, 1e-5)
    # its grid is above the truth
    assert found["REPLACE_ONE"][0] * (1 - 1e-3) <= own <= found["REPLACE_ONE"][0] * (1 + 1e-9)
    if steps == 1:
        assert Tight().delta(plan, 1.0) == pytest.approx(found["REPLACE_ONE"][1], abs=1e-6)
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
    assert sure._chance_of_full_batch() == (1.0, 0.2)


def test_a_certificate_says_that_it_is_a_bound():
    plan = TruncatedPoisson(GaussianLoss(1.0), 0.01, 10_000, 120)
    found = Tight().certify(plan, 1e-5)
    assert 0 < found.lower < found.upper
    assert found.lower <= Tight().epsilon(plan.attained_pair, 1e-5)
    wide = TruncatedPoisson(GaussianLoss(1.0), 0.01, 10_000, 200)
    narrow = Tight().certify(wide, 1e-5)
    assert narrow.width <= 1e-8 * narrow.upper


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
