"""Law: no adversary who chooses releases by earlier answers gains more than the budget.

The best adversary is found by recursion over all choices: what it gains from transcripts of
probability p and q is max(p - e^epsilon q, 0) where it stops, and otherwise the most that any
next release gives, summed over its outcomes.
"""

import math
from functools import partial

import pytest

from accountant import Budget, BudgetExceeded, PairLoss, Tight, UnsupportedPlan
from accountant.ledger.composition_notions import certified_total, notion_of, pure_after_plan

BUDGET = Budget(1.2, 0.05)


def response(epsilon):
    high = 1 / (1 + math.exp(-epsilon))
    return PairLoss([high, 1 - high], [1 - high, high])


# bounded ones, and two whose rare outcomes tell more than the whole budget
RELEASES = (
    response(0.3),
    response(0.6),
    PairLoss([0.02, 0.97, 0.01], [0.005, 0.965, 0.03]),
    PairLoss([0.004, 0.496, 0.5], [0.0005, 0.4995, 0.5]),
)


def outcomes(loss):
    return list(zip(loss.p, loss.q, strict=True))


def best_gain(charge, start, budget, plan=()):
    """What the best adversary gains, over both directions; ``plan`` may be interleaved."""
    factor, known = math.exp(budget.epsilon), {}

    def gain(total, step, p, q, depth):
        # homogeneous: one state for every ratio of p and q
        key = (total, step, round(math.log(p / q), 9), depth)
        if key not in known:
            best = max(p - factor * q, 0.0)
            if depth:
                for loss in RELEASES:
                    try:
                        after = charge(total, loss)
                    except (BudgetExceeded, UnsupportedPlan):
                        continue
                    best = max(best, follow(loss, partial(gain, after, step), p, q, depth))
                if step < len(plan):
                    after = partial(gain, total, step + 1)
                    best = max(best, follow(plan[step], after, p, q, depth))
            known[key] = best / q
        return known[key] * q

    def follow(loss, then, p, q, depth):
        return sum(then(p * a, q * b, depth - 1) for a, b in outcomes(loss))

    return gain(start, 0, 1.0, 1.0, 6)


def violation(make):
    """What the best adversary gains beyond delta from a filter, in words; empty if nothing."""
    gained = best_gain(*make(BUDGET), BUDGET)
    return f"an adversary gains {gained:.4g}" if gained > BUDGET.delta else ""


def honest(budget):
    """The default filter."""
    notion = notion_of(None, budget)
    return notion.charge, notion.zero


@pytest.mark.parametrize("name", ["pure", "zcdp", "rdp", "gdp", "pure-or-rdp"])
def test_no_adversary_gains_more_than_delta(name):
    notion = notion_of(name, BUDGET)
    gained = best_gain(notion.charge, notion.zero, BUDGET)
    assert gained <= BUDGET.delta
    # a pure filter lets nothing pass beyond epsilon, and the others use their delta
    assert (gained > 0.2 * BUDGET.delta) == (name != "pure")


def test_a_filter_that_keeps_both_sums_lets_more_through_than_either():
    counts = {}
    for name in ("pure", "zcdp", "pure-or-rdp"):
        for loss in RELEASES[:3]:
            notion, made = notion_of(name, Budget(1.2, 1e-6)), 0
            total = notion.zero
            try:
                while True:
                    total = notion.charge(total, loss)
                    made += 1
            except BudgetExceeded:
                counts[name, loss] = made
    for loss in RELEASES[:3]:
        assert counts["pure-or-rdp", loss] >= max(counts["pure", loss], counts["zcdp", loss])


def test_a_certified_plan_and_pure_releases_beside_it_keep_the_budget():
    budget, plan = Budget(1.8, 0.01), (RELEASES[2], RELEASES[2])
    certified = Tight().epsilon(plan[0] + plan[1], budget.delta)
    assert 1.0 < certified < budget.epsilon - 0.6
    notion = pure_after_plan(budget)
    gained = best_gain(notion.charge, certified_total(certified), budget, plan)
    assert 0.2 * budget.delta < gained <= budget.delta
    # not charged at all, it would break the budget
    assert best_gain(notion.charge, notion.zero, budget, plan) > budget.delta
