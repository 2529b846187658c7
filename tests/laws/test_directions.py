"""Laws: a loss and its reverse cost the same, in every accountant and every running total."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import logsumexp

from accountant import (
    GDP,
    PLD,
    RDP,
    ZCDP,
    Advanced,
    Basic,
    Budget,
    Filter,
    GaussianLoss,
    PairLoss,
    Parallel,
    PoissonSampled,
    Sequential,
    Tight,
    UnsupportedPlan,
)
from accountant.ledger.composition_notions import notion_of
from accountant.ledger.odometer import OdometerMeter

DELTA = 1e-3
# the first costs ln 4 = 1.386 in one direction, and ln 1.5 = .405 in the other
PAIRS = {
    "two outcomes": PairLoss([0.9, 0.1], [0.6, 0.4]),
    "steep": PairLoss([0.5, 0.5], [0.1, 0.9]),
    "three outcomes": PairLoss([0.05, 0.55, 0.4], [0.2, 0.7, 0.1]),
}
SAMPLED = {
    "sampled pair": PoissonSampled(PAIRS["two outcomes"], 0.3),
    "sampled Gaussian": PoissonSampled(GaussianLoss(1.0), 0.3),
}
LOSSES = PAIRS | SAMPLED
ACCOUNTANTS = [Basic(), Advanced(), ZCDP(), RDP(), GDP(), PLD(), Tight()]
NOTIONS = ("pure", "zcdp", "rdp", "gdp", "pure-or-rdp")
every_loss = pytest.mark.parametrize("name", LOSSES)


def enumerated_epsilon(p, q, delta):
    """The least epsilon of two lists of probabilities at ``delta``, over both directions."""

    def one_way(p, q):
        # delta(eps) is linear in e^eps between the ratios of the outcomes
        ratios = sorted({a / b for a, b in zip(p, q, strict=True)})
        for low, high in itertools.pairwise([1.0, *(one for one in ratios if one > 1)]):
            above = [(a, b) for a, b in zip(p, q, strict=True) if a / b >= high * (1 - 1e-12)]
            mass, other = map(sum, zip(*above, strict=True))
            if mass - high * other <= delta:
                return math.log(max(low, (mass - delta) / other))
        return math.log(max(1.0, ratios[-1]))

    return max(one_way(p, q), one_way(q, p))


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("delta", [1e-3, 0.05])
def test_epsilon_of_a_pair_is_the_enumerated_one(name, delta):
    loss = PAIRS[name]
    exact = enumerated_epsilon(loss.p, loss.q, delta)
    for one in (loss, loss.reversed):
        assert one.epsilon_at(delta) == pytest.approx(exact, rel=1e-9)
        assert one.epsilon_at(delta) >= exact * (1 - 1e-12)
        assert one.delta_at(exact) == pytest.approx(delta, rel=1e-9)


@every_loss
def test_facts_are_the_same_in_both_directions(name):
    loss = LOSSES[name]
    back = loss.reversed
    for delta in (0.0, 1e-6, DELTA, 0.05):
        assert loss.epsilon_at(delta) == back.epsilon_at(delta)
    for epsilon in (0.0, 0.1, 0.5, 1.0):
        assert loss.delta_at(epsilon) == back.delta_at(epsilon)
    assert loss.pure == back.pure
    # the law would say nothing of a loss that is its own reverse
    assert any(loss.profile(np.linspace(0.0, 0.3, 7)) != back.profile(np.linspace(0.0, 0.3, 7)))


def test_a_mass_on_one_side_alone_counts_in_both_directions():
    leaking = PairLoss([0.5, 0.5, 0.0], [0.4, 0.5, 0.1])
    for one in (leaking, leaking.reversed):
        assert one.epsilon_at(0.05) == math.inf
        assert one.epsilon_at(0.1) == leaking.max_loss
        assert one.delta_at(50.0) == pytest.approx(0.1)
        assert one.pure == math.inf
        assert not Budget(50.0, 0.09).admits(one)


@pytest.mark.parametrize("name", [*PAIRS, "sampled pair"])
@pytest.mark.parametrize("accountant", ACCOUNTANTS, ids=lambda one: one.name)
def test_an_accountant_asks_for_both_directions(name, accountant):
    loss = LOSSES[name]
    for plan in (loss, 3 * loss, Parallel([loss, 2 * loss])):
        asked = [plan, plan.reversed]
        epsilons = [accountant.epsilon(one, DELTA) for one in asked]
        deltas = [accountant.delta(one, 0.5) for one in asked]
        assert epsilons[0] == epsilons[1]
        assert deltas[0] == deltas[1]
        # a plan is no cheaper than one of its directions
        ways = [accountant.one_way_epsilon(one, DELTA) for one in asked]
        assert epsilons[0] >= max(ways) * (1 - 1e-12)


@every_loss
@pytest.mark.parametrize("notion", NOTIONS)
def test_a_filter_charges_the_worse_direction(name, notion):
    loss, made = LOSSES[name], notion_of(notion, Budget(8.0, 1e-6))
    if notion in ("pure", "gdp") and math.isinf(loss.pure):
        for one in (loss, loss.reversed):
            with pytest.raises(UnsupportedPlan):
                made.cost(one)
        return
    costs = [made.cost(one) for one in (loss, loss.reversed)]
    assert costs[0] == costs[1]
    facts = {
        "pure": lambda one: one.max_loss,
        "zcdp": lambda one: one.rho,
        "rdp": lambda one: float(one.renyi(np.array(made.order))),
        "gdp": lambda one: one.gdp_mu**2,
    }
    spent = dict(zip(("pure", "zcdp", "rdp"), costs[0].spent, strict=True)) if (
        notion == "pure-or-rdp"
    ) else {notion: costs[0].spent}  # fmt: skip
    for one in spent:
        worse = max(facts[one](loss), facts[one](loss.reversed))
        assert float(spent[one]) >= worse
        assert float(spent[one]) == pytest.approx(worse, rel=1e-12)


@every_loss
def test_running_totals_are_the_same_in_both_directions(name):
    loss = LOSSES[name]
    both = []
    for one in (loss, loss.reversed):
        meter, gate = OdometerMeter(DELTA), Filter([0.0], Budget(9.0, 1e-3), rng=0)
        for part in (one, one, one):
            meter.charge(part, None)
            gate.spend(part)
        both.append((meter.epsilon, gate.spent))
    assert both[0] == both[1]


@pytest.mark.parametrize("name", SAMPLED)
@pytest.mark.parametrize("order", [1.5, 2.0, 8.0, 32.0])
def test_divergences_of_a_sampled_pair_are_the_sums_over_its_outcomes(name, order):
    sampled, rate = SAMPLED[name], 0.3
    if name == "sampled pair":
        p, q = (np.array(one) for one in (sampled.part.p, sampled.part.q))
    else:  # the normal density, on a grid far finer than it
        x = np.linspace(-60.0, 80.0, 140_001)
        q = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])
        p = np.exp(-((x - 1) ** 2) / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    mixed = rate * p + (1 - rate) * q
    for one, (first, second) in ((sampled, (mixed, q)), (sampled.reversed, (q, mixed))):
        some = (first > 0) & (second > 0)
        logs = order * np.log(first[some]) + (1 - order) * np.log(second[some])
        exact = logsumexp(logs) / (order - 1)
        found = float(one.renyi(np.array(order)))
        assert found == pytest.approx(exact, rel=1e-6)
        assert found >= exact * (1 - 1e-9)


@pytest.mark.parametrize("order", [2.0, 8.0, 64.0])
def test_a_cap_on_a_sampled_divergence_is_that_of_the_worse_direction(order):
    """Where the moment overflows or is searched for, the part's divergence is the answer."""
    steep = PairLoss([1 - 1e-12, 1e-12], [0.5, 0.5])
    sampled = PoissonSampled(steep, 1 - 1e-9)
    both = [float(one.renyi(np.array(order))) for one in (sampled, sampled.reversed)]
    p, q = np.array(steep.p), np.array(steep.q)
    for found, (first, second) in zip(both, ((p, q), (q, p)), strict=True):
        # of the mixture: within the rate's 1e-9 of the part's own
        rate = 1 - 1e-9
        mixed = rate * p + (1 - rate) * q
        pair = (mixed, second) if first is p else (first, mixed)
        exact = logsumexp(order * np.log(pair[0]) + (1 - order) * np.log(pair[1])) / (order - 1)
        assert found >= exact * (1 - 1e-9)
        assert found == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("order", [1.5, 2.0, 12.0])
def test_a_sampled_divergence_is_above_that_of_a_part_whose_laws_hardly_meet(order):
    """The part's own divergence leaves out what only one law has, and is below 0."""
    p, q = np.array([0.0, 0.1, 0.4, 0.5]), np.array([0.8, 0.15, 0.05, 0.0])
    sampled = PoissonSampled(PairLoss(p, q), 0.1)
    mixed, both = 0.1 * p + 0.9 * q, q > 0
    logs = order * np.log(mixed[both]) + (1 - order) * np.log(q[both])
    assert float(sampled.renyi(order)) >= logsumexp(logs) / (order - 1) - 1e-15
    assert RDP().delta(10 * sampled, 0.3) >= Tight().delta(10 * sampled, 0.3) - 1e-6


@pytest.mark.parametrize("order", [1.001, 1.5, 2.0])
def test_a_sampled_divergence_of_two_releases_has_all_of_the_finite_losses(order):
    """The two releases are known by their profile, whose limit is the mass at infinity."""
    parts = (PairLoss([0.25, 0.75], [1.0, 0.0]), PairLoss([0.5, 0.5], [1.0, 0.0]))
    rate = 0.75
    sampled = PoissonSampled(Sequential(parts), rate)
    # the only finite loss: of both first outcomes, which Q has alone
    log_ratio = math.log(1 - rate + rate * 0.125)
    exact = order * log_ratio / (order - 1)
    assert float(sampled.renyi(order)) >= exact - 1e-15 / (order - 1)


@pytest.mark.parametrize("accountant", ACCOUNTANTS, ids=lambda one: one.name)
def test_no_accountant_claims_a_smaller_delta_than_there_is(accountant):
    for plan in (GaussianLoss(1.0), 2 * GaussianLoss(0.3), 3 * PAIRS["two outcomes"]):
        for epsilon in (0.0, 0.4, 1.1, 3.0):
            truth = Tight().delta(plan, epsilon)
            assert accountant.delta(plan, epsilon) >= truth * (1 - 1e-9)
