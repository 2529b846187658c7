"""The search for bounds on delta: the cheapest engine first, until an interval is narrow enough."""

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from accountant import ApproxLoss, GaussianLoss, LaplaceLoss
from accountant.composition.certificate import Certificate
from accountant.composition.cgf import saddlepoint
from accountant.composition.composition import (
    TILT_FACTORS,
    Composition,
    EpsilonProblem,
    Neighbourhood,
)
from accountant.composition.engine import (
    MAX_COST,
    USABLE,
    Attempt,
    Engine,
    EngineNearEpsilon,
    certify,
    cheapest_first,
    delta_bounds_near,
    delta_interval,
    least_cost,
    least_cost_near,
)
from accountant.composition.engines import ENGINES_NEAR_EPSILON
from accountant.composition.enumeration import number_of_sums
from accountant.numerics.rounding import ULP

SINGLE = Composition([(GaussianLoss(0.5), 1)])
SEVERAL = Composition([(GaussianLoss(0.5), 1), (LaplaceLoss(0.3), 2)])
EPSILON, WIDTH = 1.25, 1e-6


class GivenBounds(EngineNearEpsilon):
    """Answers with bounds on delta that are given to it, each with its cost."""

    name = "given"

    def __init__(self, planning_cost, *answers):
        self.planning_cost, self.answers, self.asked = planning_cost, answers, []

    def near(self, neighbourhood):
        for cost, low, high in self.answers:
            yield Attempt(cost, lambda cost=cost, low=low, high=high: self.answer(cost, low, high))

    def answer(self, cost, low, high):
        self.asked.append(cost)
        return SimpleNamespace(bounds=lambda epsilon: (math.log(low), math.log(high)))


def near(composition):
    return Neighbourhood(composition, 2.0, EPSILON, WIDTH)


def test_attempts_come_in_the_order_of_their_costs_and_engines_are_planned_when_reached():
    early, late = GivenBounds(1.0, (5.0, 1, 1), (20.0, 1, 1)), GivenBounds(3.0, (4.0, 1, 1))
    last, never = GivenBounds(10.0, (12.0, 1, 1)), GivenBounds(99.0)
    for engines in ((early, late, last, never), (never, last, late, early)):
        journal, planned = [], []

        def attempts_of(engine, planned=planned):
            planned.append(engine)
            return engine.near(near(SEVERAL))

        attempts = cheapest_first(SEVERAL, engines, attempts_of, journal)
        taken = [next(attempts) for _ in range(4)]
        assert [attempt.cost for _, attempt in taken] == [4.0, 5.0, 12.0, 20.0]
        assert [engine for engine, _ in taken] == [late, early, last, early]
        assert planned == [early, late, last]
        assert sorted(attempt.cost for _, attempt in journal) == [4.0, 5.0, 12.0, 20.0]
        assert list(attempts) == []
        assert planned == [early, late, last, never]


def test_the_least_cost_is_that_of_the_cheapest_attempt():
    engines = GivenBounds(1.0, (7.0, 1, 1), (8.0, 1, 1)), GivenBounds(2.0, (5.0, 1, 1))
    assert least_cost_near(near(SEVERAL), engines) == 5.0
    assert least_cost_near(near(SEVERAL), ()) == math.inf
    assert least_cost_near(near(SINGLE), engines) == least_cost_near(near(SINGLE), ()) == 0.0
    problem = EpsilonProblem(SEVERAL, 1e-3, WIDTH)
    assert least_cost(problem, engines) == 5.0
    assert least_cost(problem, ()) == math.inf
    assert least_cost(EpsilonProblem(SINGLE, 1e-3, WIDTH), engines) == 0.0
    assert not any(engine.asked for engine in engines)


def test_a_single_loss_has_its_closed_form_alone():
    engine = GivenBounds(1.0, (5.0, 0.1, 0.2))
    [closed_form] = delta_bounds_near(near(SINGLE), (engine,))
    exact = float(GaussianLoss(0.5).log_profile(EPSILON))
    assert closed_form.bounds(EPSILON) == pytest.approx((exact, exact), rel=1e-9)
    assert not engine.asked
    low, high = delta_interval(SINGLE, EPSILON, WIDTH, (engine,))
    assert low <= math.exp(exact) <= high <= low * (1 + 1e-9)


@pytest.mark.parametrize(("share", "asked"), [(0.0, [5.0]), (3.5, [5.0]), (4.5, [5.0, 6.0])])
def test_a_search_for_delta_stops_at_four_times_the_width(share, asked):
    low, _ = delta_interval(SEVERAL, EPSILON, WIDTH, ENGINES_NEAR_EPSILON)
    tilt = saddlepoint(SEVERAL.cgf, epsilon=EPSILON)
    allowed = max(1.0, tilt * EPSILON) * WIDTH  # of high - low, as a share of high
    engine = GivenBounds(1.0, (5.0, low * (1 - share * allowed), low), (6.0, low, low), (7.0, 1, 1))
    below, above = delta_interval(SEVERAL, EPSILON, WIDTH, (engine,))
    assert engine.asked == asked
    expected = low * (1 - share * allowed) if len(asked) == 1 else low
    assert (below, above) == pytest.approx((expected, low), rel=1e-12)
    assert above > low


def test_bounds_of_several_attempts_are_intersected_and_begin_with_chernoff_s():
    exact, _ = delta_interval(SEVERAL, EPSILON, WIDTH, ENGINES_NEAR_EPSILON)
    zero, chernoff = delta_interval(SEVERAL, EPSILON, WIDTH, ())
    assert zero == 0.0
    # min over a of E e^{aL} e^{-a eps} a^a / (1 + a)^{1 + a}, by the cumulants of the textbook
    tilt = saddlepoint(SEVERAL.cgf, epsilon=EPSILON)
    for a, room in ((np.geomspace(0.1, 100.0, 4001), 0.02), (tilt * TILT_FACTORS, 2e-12)):
        laplace = ((1 + a) * np.exp(0.3 * a) + a * np.exp(-0.3 * (1 + a))) / (1 + 2 * a)
        log_moment = a * (a + 1) * 0.5**2 / 2 + 2 * np.log(laplace)
        log_factor = a * np.log(a) - (1 + a) * np.log1p(a)
        exponent = float(np.min(log_moment - a * EPSILON + log_factor))
        # What round-off could take away is added.
        added = math.log(chernoff) - exponent
        assert (5e-13 if room < 1e-9 else -1e-5) <= added / (1 + abs(exponent)) <= room
    assert exact < chernoff
    engine = GivenBounds(
        1.0, (5.0, exact * 0.5, exact * 1.2), (6.0, exact * 0.9, 1.0), (7.0, 1e-9, exact * 1.1)
    )
    low, high = delta_interval(SEVERAL, EPSILON, WIDTH, (engine,))
    assert (low, high) == pytest.approx((exact * 0.9, exact * 1.1), rel=1e-12)
    assert engine.asked == [5.0, 6.0, 7.0]
    too_high = GivenBounds(1.0, (5.0, exact * 0.5, 1.0))
    assert delta_interval(SEVERAL, EPSILON, WIDTH, (too_high,))[1] == chernoff


def test_the_mass_at_infinity_is_added_and_alone_is_left_beyond_the_largest_loss():
    share = Fraction(1e-3)
    infinity = float(1 - (1 - share) ** 2)
    approximate = Composition([(ApproxLoss(0.3, 1e-3), 2)])
    engine = GivenBounds(1.0, (5.0, 0.1, 0.2))
    for epsilon in (approximate.max_loss, 0.7, 50.0):
        low, high = delta_interval(approximate, epsilon, WIDTH, (engine,))
        assert infinity * (1 - 40 * ULP) <= low <= infinity <= high <= infinity * (1 + 40 * ULP)
    assert not engine.asked
    p = math.exp(0.3) / (1 + math.exp(0.3))
    finite = p**2 * -math.expm1(0.2 - 0.6) * (1 - infinity)
    low, high = delta_interval(approximate, 0.2, WIDTH, ENGINES_NEAR_EPSILON)
    assert (low, high) == pytest.approx((infinity + finite, infinity + finite), rel=1e-9)
    assert low < high
    given = GivenBounds(1.0, (5.0, finite, finite))
    low, high = delta_interval(approximate, 0.2, WIDTH, (given,))
    assert (low, high) == pytest.approx((infinity + finite, infinity + finite), rel=1e-14)
    assert delta_interval(Composition([]), 0.2, WIDTH, (engine,)) == (0.0, pytest.approx(0.0))
    assert not engine.asked


def test_no_attempt_is_needed_where_delta_is_no_more_than_the_mass_at_infinity():
    engine = GivenBounds(1.0, (5.0, 0.1, 0.2))
    composition = Composition([(ApproxLoss(0.3, 1e-3), 2), (GaussianLoss(0.5), 1)])
    for delta, cost in ((1e-4, 0.0), (composition.infinity, 0.0), (0.1, 5.0)):
        assert least_cost(EpsilonProblem(composition, delta, WIDTH), (engine,)) == cost


class GivenIntervals(Engine):
    """Answers with intervals of epsilon of given relative widths, each with its cost."""

    name, planning_cost = "given", 1.0

    def __init__(self, *answers):
        self.answers, self.asked = answers, []

    def attempts(self, problem):
        for cost, width in self.answers:
            yield Attempt(cost, lambda cost=cost, width=width: self.answer(cost, width))

    def answer(self, cost, width):
        self.asked.append(cost)
        return Certificate(EPSILON * (1 - width), EPSILON, "given")


@pytest.mark.parametrize("width", [1e-6, 1e-8])
def test_a_usable_interval_is_narrowed_by_attempts_of_ten_seconds_at_most(width):
    usable, unusable, dear = 0.9 * USABLE * width, 1.1 * USABLE * width, 1.1 * MAX_COST
    for answers, asked in (
        (((2.0, usable), (MAX_COST, width / 2)), [2.0, MAX_COST]),
        (((2.0, usable), (dear, width / 2)), [2.0]),
        (((2.0, unusable), (dear, width / 2)), [2.0, dear]),
        (((dear, usable), (2 * dear, width / 2)), [dear]),
    ):
        engine = GivenIntervals(*answers)
        interval = certify(EpsilonProblem(SEVERAL, 1e-3, width), (engine,))
        assert engine.asked == asked
        assert interval.upper == EPSILON


def test_sums_of_many_outcomes_are_not_listed():
    def loss(kinds):
        return SimpleNamespace(loss_pmf=(np.zeros(kinds), np.full(kinds, 1 / kinds)))

    assert number_of_sums([(loss(625), 1)]) == pytest.approx(625)
    assert number_of_sums([(loss(2), 100_000)]) == pytest.approx(100_001)
    # 195,625 sums, of 625 counts each
    assert number_of_sums([(loss(625), 2)]) == math.inf
