"""Laws: a notion is a value that adds costs up, never less than they come to."""

import copy
import itertools
from fractions import Fraction

import pytest

from accountant import (
    ApproxLoss,
    Budget,
    BudgetExceeded,
    GaussianLoss,
    LaplaceLoss,
    PairLoss,
    Parallel,
    PureLoss,
    Repeat,
    Sequential,
)
from accountant.ledger import composition_notions, totals
from accountant.ledger.totals import Total

BUDGET = Budget(8.0, 1e-6)
NAMES = ("pure", "zcdp", "rdp", "gdp", "pure-or-rdp")
SKEWED = PairLoss([0.5, 0.5], [0.1, 0.9])  # another cost in the other direction
LOSSES = {
    "pure": [PureLoss(0.1), PureLoss(1 / 3), ApproxLoss(0.07, 1e-9), SKEWED],
    "zcdp": [GaussianLoss(0.1), GaussianLoss(0.07), PureLoss(0.1), SKEWED],
    "rdp": [GaussianLoss(0.1), GaussianLoss(0.07), PureLoss(0.1), SKEWED],
    "gdp": [GaussianLoss(0.1), GaussianLoss(0.07), GaussianLoss(1 / 3)],
    "pure-or-rdp": [PureLoss(0.1), PureLoss(0.07), SKEWED, LaplaceLoss(1 / 3)],
}
every_notion = pytest.mark.parametrize("name", NAMES)


def made(name):
    return composition_notions.notion_of(name, BUDGET)


def numbers(total):
    """All coordinates of a total, in a row."""
    spent = total.spent if isinstance(total.spent, tuple) else (total.spent,)
    return [*spent, total.infinity]


def costs_of(notion):
    return [notion.cost(loss) for loss in LOSSES[notion.name]]


def reached(notion):
    """Totals on the way to many spends."""
    found = [notion.zero]
    for cost in itertools.islice(itertools.cycle(costs_of(notion)), 40):
        found.append(notion.add(found[-1], cost))
    return found


@every_notion
def test_a_sum_is_never_below_the_exact_one(name):
    notion = made(name)
    for total, cost in itertools.product(reached(notion), costs_of(notion)):
        after = notion.add(total, cost)
        both = zip(numbers(total), numbers(cost), strict=True)
        exact = [Fraction(one) + Fraction(other) for one, other in both]
        for one, least in zip(numbers(after)[:-1], exact, strict=False):
            assert Fraction(one) >= least
        if notion.name == "pure":
            assert [Fraction(one) for one in after] == exact
        found = [float(one) for one in numbers(after)]
        assert found == pytest.approx([float(one) for one in exact], 1e-15)


@every_notion
@pytest.mark.parametrize("count", [0, 1, 2, 7, 1000, 10**6])
def test_a_product_is_never_below_the_exact_one(name, count):
    notion = made(name)
    for cost in costs_of(notion):
        more = notion.times(cost, count)
        for one, product in zip(numbers(cost), numbers(more), strict=True):
            exact = Fraction(one) * count
            assert Fraction(product) >= exact
            assert float(product) == pytest.approx(float(exact), 1e-14)
            assert notion.name != "pure" or Fraction(product) == exact


@every_notion
def test_the_largest_is_no_less_than_any_in_either_coordinate(name):
    notion = made(name)
    low, high = reached(notion)[1], reached(notion)[9]
    mixed = [Total(low.spent, 2.0), Total(high.spent, 1.0)]
    for some in itertools.permutations([notion.zero, *mixed]):
        assert totals.largest_total(some) == (high.spent, 2.0)
        assert totals.largest_total(some[:1]) == some[0]


@every_notion
def test_the_limit_is_one_of_both_coordinates(name):
    notion = made(name)
    spent, infinity = notion.limit
    more, more_infinity = notion.times(Total(spent, infinity), 2)
    assert not notion.exceeds(notion.limit)
    assert not notion.exceeds(notion.zero)
    assert notion.exceeds(Total(more, infinity))
    assert notion.exceeds(Total(spent, more_infinity))


@every_notion
def test_a_total_within_the_limit_is_within_the_budget(name):
    notion = made(name)
    assert notion.epsilon(notion.zero) == 0
    found = [notion.epsilon(total) for total in reached(notion)]
    assert found == sorted(found)
    # the epsilon of a divergence is rounded up by 16 units in the last place
    most = BUDGET.admitted_epsilon * (1 + 4e-15)
    assert BUDGET.epsilon < notion.epsilon(notion.limit) <= most


@every_notion
def test_a_total_comes_back_from_its_words_to_the_last_bit(name):
    notion = made(name)
    for total in (*reached(notion), notion.limit):
        words = notion.encode(total)
        assert all(type(one) is str for one in words)
        assert [str(one) for one in numbers(notion.decode(words))] == list(map(str, numbers(total)))


@every_notion
def test_a_loss_costs_the_same_in_both_directions(name):
    notion = made(name)
    for loss in LOSSES[name]:
        assert notion.cost(loss) == notion.cost(loss.reversed)
        assert notion.cost(loss) is notion.cost(copy.copy(loss))  # worked out once


@every_notion
def test_a_notion_holds_no_total(name):
    notion, loss = made(name), LOSSES[name][0]
    start = notion.charge(notion.zero, LOSSES[name][1])
    words = notion.encode(start)
    assert notion.charge(start, loss) == notion.charge(start, loss)
    assert notion.charge(start, loss) == notion.add(start, notion.cost(loss))
    with pytest.raises(BudgetExceeded):
        notion.charge(start, Repeat(loss, 10**9))
    assert notion.encode(start) == words
    assert (notion, hash(notion)) == (made(name), hash(made(name)))
    assert notion != composition_notions.notion_of(name, Budget(7.0, 1e-6))
    with pytest.raises(AttributeError):
        notion.limit = start


@every_notion
def test_a_plan_costs_its_parts_and_a_parallel_its_largest(name):
    notion = made(name)
    few, many = LOSSES[name][:2]
    start = notion.cost(few)
    one_by_one = start
    for loss in (few, many, many, many):
        one_by_one = notion.charge(one_by_one, loss)
    whole = notion.after(start, Sequential([few, Repeat(many, 3)]))
    step_by_step = [float(x) for x in numbers(one_by_one)]
    assert [float(x) for x in numbers(whole)] == pytest.approx(step_by_step, 1e-13)
    parts = [few, Repeat(many, 3), few]
    for order in itertools.permutations(parts):
        parallel = notion.after(start, Parallel(order, by="index"))
        ends = [notion.after(start, part) for part in parts]
        largest = [max(column) for column in zip(*map(numbers, ends), strict=True)]
        assert numbers(parallel) == largest
