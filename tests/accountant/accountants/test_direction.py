"""Many deltas at once say what Tight says of each."""

import math

import pytest

from accountant import (
    PLD,
    RDP,
    ApproxLoss,
    BoundedRangeLoss,
    GaussianLoss,
    LaplaceLoss,
    Parallel,
    ParameterError,
    PoissonSampled,
    PureLoss,
    SampledWithoutReplacement,
    Sequential,
    Tight,
    ZCDPLoss,
)
from accountant.accountants import direction
from accountant.accountants.direction import Direction
from accountant.composition.certificate import Certificate
from accountant.composition.engine import Attempt, Engine, certify
from mechanisms import DiscreteLaplace, Gaussian, Laplace, NoisyMax

PLANS = {
    "laplace": 64 * Laplace(scale=20.0),
    "gaussians": 12 * Gaussian(scale=15.0) + 3 * Gaussian(scale=30.0),
    "mixed": 8 * Laplace(scale=20.0) + 6 * Gaussian(scale=15.0) + NoisyMax(scale=9.0),
    "sampled": 500 * PoissonSampled(GaussianLoss(1.0), 0.01),
    "single": Sequential([GaussianLoss(0.3)]),
    "pure": 30 * PureLoss(0.02),
    "atoms": 5 * PureLoss(0.1) + 5 * ApproxLoss(0.1, 1e-9),
    "rho": 20 * ZCDPLoss(0.01),
}


@pytest.mark.parametrize("name", PLANS)
def test_many_deltas_at_once_say_what_tight_says(name):
    plan, deltas = PLANS[name], [0.0, 1e-12, 3e-10, 1e-8, 1e-6, 1e-5, 1e-3]
    for delta, found in zip(deltas, Tight().epsilons(plan, deltas), strict=True):
        lower, upper = Tight().bracket(plan, delta)
        assert found == upper or lower * (1 - 1e-12) <= found <= upper * (1 + 3e-4)


# the word of each certificate's engine, and a plan whose losses are answered so
ENGINES = [
    ("closed form", Sequential([GaussianLoss(0.3)])),
    ("closed form", Sequential([Parallel([2 * LaplaceLoss(0.2), GaussianLoss(0.3)])])),
    ("contour", 2 * PureLoss(0.3) + LaplaceLoss(0.2)),
    ("bound on many pairs", 2 * SampledWithoutReplacement(PureLoss(1.0), 2, 8)),
    pytest.param("grid", 2 * PoissonSampled(LaplaceLoss(61.0), 0.3), marks=pytest.mark.slow),
    ("adaptive choices", 3 * BoundedRangeLoss(0.2) + ZCDPLoss(0.01)),
]


@pytest.mark.parametrize(("engine", "plan"), ENGINES)
def test_answers_at_many_deltas_agree_with_certificates(engine, plan):
    deltas = [1e-3, 1e-6]
    direction = Direction(plan, 1e-8)
    uppers = direction.upper_epsilons(deltas, with_envelopes=True)
    for delta, found in zip(deltas, uppers, strict=True):
        certified = direction.certify(delta)
        assert engine in certified.engine
        assert certified.lower * (1 - 1e-12) <= found <= certified.upper * (1 + 3e-4)
        # near the largest loss a width of 1e-8 of epsilon is much more of delta
        assert Tight().one_way_delta(plan, found) <= delta * (1 + 1e-4)
    assert direction.certify(0.0).engine == "sum of the bounds"


def test_other_accountants_are_asked_of_envelopes_and_where_they_are_wanted(monkeypatch):
    mixed = Direction(20 * ZCDPLoss(0.01) + GaussianLoss(0.2), 1e-6)
    only, plain = Direction(20 * ZCDPLoss(0.01), 1e-6), Direction(12 * GaussianLoss(0.1), 1e-6)
    # for the mixed plan another accountant is sharper at this delta
    [without], [sharper] = (mixed.upper_epsilons([1e-6], with_envelopes=w) for w in (False, True))
    assert sharper < 0.995 * without
    [alone], [again] = (only.upper_epsilons([1e-6], with_envelopes=w) for w in (False, True))
    assert alone == again < math.inf
    [unchanged] = plain.upper_epsilons([1e-6], with_envelopes=True)
    monkeypatch.setattr(direction, "ENVELOPE_ACCOUNTANTS", ())
    assert plain.upper_epsilons([1e-6], with_envelopes=True) == [unchanged]
    assert mixed.upper_epsilons([1e-6], with_envelopes=False) == [without]


@pytest.mark.parametrize("accountant", [Tight(), PLD(), RDP()], ids=lambda one: one.name)
def test_epsilons_at_many_deltas_come_in_their_order(accountant):
    plan, deltas = 5 * PoissonSampled(PureLoss(1.0), 0.2), [1e-6, 0.0, 1e-2, 1e-9, 1e-6]
    found = accountant.epsilons(plan, deltas)
    assert found.shape == (5,)
    assert found[0] == found[4]
    assert found[3] > found[0] > found[2]
    for delta, epsilon in zip(deltas, found.tolist(), strict=True):
        assert Tight().bracket(plan, delta)[0] <= epsilon
        assert epsilon <= accountant.epsilon(plan, delta) * (1 + 1e-3)
    assert accountant.epsilons(plan, []).size == 0
    with pytest.raises(ParameterError, match="delta"):
        accountant.epsilons(plan, [1e-6, 1.5])


def test_no_epsilon_is_finite_at_deltas_up_to_the_mass_at_infinity():
    found = Tight().epsilons(3 * ApproxLoss(0.3, 1e-6), [1e-5, 1e-6, 1e-7])
    assert found.tolist() == [Tight().epsilon(3 * ApproxLoss(0.3, 1e-6), 1e-5), math.inf, math.inf]


@pytest.mark.parametrize("plan", [
    3 * Laplace(1.0), 10 * Laplace(10.0), 7 * DiscreteLaplace(3), 5 * PureLoss(0.7),
    Sequential([Laplace(10.0), 2 * Laplace(5.0)]),
])  # fmt: skip
def test_a_tiny_delta_costs_no_more_than_none(plan):
    least = Tight().epsilon(plan, 0.0)
    for delta in (1e-300, 1e-12, 1e-9):
        found = Tight().certify(plan, delta)
        assert found.lower <= found.upper <= least
        assert Tight().epsilons(plan, [delta])[0] <= least


def test_losses_that_share_a_unit_are_exact_at_every_delta_too():
    plan = Sequential([50 * PureLoss(0.01 * k) for k in range(1, 12)])
    deltas = [1e-8, 1e-6, 1e-3]
    singly = [Tight().epsilon(plan, delta) for delta in deltas]
    assert Tight().epsilons(plan, deltas) == pytest.approx(singly, rel=1e-9)
    assert [Tight().delta(plan, epsilon) for epsilon in singly] == pytest.approx(deltas, rel=1e-9)


def test_a_journal_says_what_each_engine_was_estimated_to_cost():
    direction = Direction(2 * PureLoss(0.3) + LaplaceLoss(0.2), 1e-8)
    rows = direction.journal(1e-6)
    assert min(cost for _, cost, _ in rows) > 0
    assert rows[-1][0] == direction.certify(1e-6).engine


class GivenInterval(Engine):
    """Answers with an interval that is given to it."""

    name, planning_cost = "given", 1.0

    def __init__(self, cost, lower, upper):
        self.cost, self.interval, self.asked = cost, Certificate(lower, upper, "given"), 0

    def attempts(self, problem):
        yield Attempt(self.cost, self.answer)

    def answer(self):
        self.asked += 1
        return self.interval


@pytest.mark.parametrize(
    ("rival", "asked"), [(0.0, [1, 1, 0]), (0.69, [1, 1, 0]), (0.76, [1, 0, 0])]
)
def test_a_search_asks_the_cheapest_first_and_stops_at_a_narrow_interval(rival, asked):
    problem = Direction(3 * LaplaceLoss(0.2) + GaussianLoss(0.2), 1e-6).problem(1e-3)
    engines = (
        GivenInterval(10.0, 0.65, 0.75),
        GivenInterval(20.0, 0.7, 0.7 + 1e-9),
        GivenInterval(30.0, 0.68, 0.72),
    )
    found = certify(problem, engines[::-1], rival)
    assert [engine.asked for engine in engines] == asked
    assert (found.lower, found.upper) == ((0.7, 0.7 + 1e-9) if asked[1] else (0.65, 0.75))
