"""Plans, counts and deltas that crashed or had no end: each is answered, or refused with a remedy.

A crash is any error but `ParameterError` and `UnsupportedPlan`; an answer is no NaN.
"""

import copy
import math
import pickle
import sys

import numpy as np
import pytest

from accountant import (
    GDP,
    PLD,
    RDP,
    ZCDP,
    Advanced,
    ApproxLoss,
    Basic,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    Grouped,
    LaplaceLoss,
    NegativeBinomialTries,
    PairLoss,
    Parallel,
    ParameterError,
    PoissonSampled,
    PureLoss,
    RandomAllocation,
    Repeat,
    Repeated,
    SampledWithoutReplacement,
    Sequential,
    Shuffled,
    Stated,
    Tight,
    TruncatedPoisson,
    UnsupportedPlan,
    ZCDPLoss,
    at_deltas,
    calibrate,
    compare,
    from_json,
    to_json,
)
from accountant.plans.plan import MAX_NESTING, nesting
from mechanisms import Gaussian, Laplace

ACCOUNTANTS = [Basic(), Advanced(), ZCDP(), RDP(), GDP(), PLD(), Tight()]
WRAPPERS = [
    lambda part: Repeat(part, 1), lambda part: Sequential([part]),
    lambda part: Sequential([PureLoss(0.1), part]), lambda part: Stated(part, "add-remove"),
    lambda part: Grouped(part, 1), lambda part: PoissonSampled(part, 0.99),
    lambda part: Parallel([part, PureLoss(0.1)]),
]  # fmt: skip


def answered(ask):
    """Return what a call answers, None where it refuses; any other error is a crash."""
    try:
        return ask()
    except (ParameterError, UnsupportedPlan):
        return None


def nested(wrap, depth):
    plan = Laplace(3.0)
    for _ in range(depth):
        plan = wrap(plan)
    return plan


@pytest.mark.parametrize("wrap", WRAPPERS, ids=range(len(WRAPPERS)))
def test_plans_nested_deeply_are_refused_by_the_node_that_is_too_many(wrap):
    deepest = nested(wrap, MAX_NESTING)
    for depth in (MAX_NESTING + 2, 1_000, 10_000):
        with pytest.raises(ParameterError, match="nested at most 100 deep: one Sequential"):
            nested(wrap, depth)
    with pytest.raises(ParameterError, match="nested at most 50 deep"):
        to_json(deepest)


def test_a_node_cannot_hide_its_depth_behind_another_class():
    class Hidden(Sequential):
        __class__ = object

    with pytest.raises(ParameterError, match="nested at most 100 deep"):
        nested(lambda plan: Hidden((plan,)), MAX_NESTING + 2)


@pytest.mark.parametrize("wrap", WRAPPERS, ids=range(len(WRAPPERS)))
def test_plans_nested_as_deeply_as_is_allowed_do_what_all_plans_do(wrap):
    plan, same = nested(wrap, MAX_NESTING - 1), nested(wrap, MAX_NESTING - 1)
    limit = sys.getrecursionlimit()
    assert nesting(plan) == MAX_NESTING - 1
    assert plan == same
    assert hash(plan) == hash(same)
    assert repr(plan) == repr(same)
    assert pickle.loads(pickle.dumps(plan)) == copy.deepcopy(plan) == plan
    assert nesting(pickle.loads(pickle.dumps(plan))) == MAX_NESTING - 1
    assert plan.reversed.relation == plan.relation
    assert list(plan.leaves())
    assert list(plan.losses())
    assert 0 < Tight().certify(plan, 1e-6).upper <= Tight().epsilon(plan, 0.0) < 12
    shallow = nested(wrap, 49)
    assert from_json(to_json(shallow)) == shallow
    assert sys.getrecursionlimit() == limit


def test_a_sample_of_a_sample_is_one_sample():
    plan = PoissonSampled(PoissonSampled(GaussianLoss(1.0), 0.5), 0.25)
    assert list(plan.losses()) == [(PoissonSampled(GaussianLoss(1.0), 0.125), 1)]
    assert list(plan.reversed.losses()) == [(PoissonSampled(GaussianLoss(1.0), 0.125).reversed, 1)]
    thirds = PoissonSampled(PoissonSampled(GaussianLoss(1.0), 0.1), 0.3)
    ((one, _),) = thirds.losses()
    assert one.rate >= 0.1 * 0.3  # rounded up


def test_a_group_of_groups_is_one_group():
    pair = PairLoss([0.6, 0.4], [0.4, 0.6])
    assert dict(Grouped(Grouped(pair, 3), 4).losses()) == dict(Grouped(pair, 12).losses())
    with pytest.raises(ParameterError, match="at most 2,000 where the trade-off curve is iterated"):
        Tight().epsilon(Grouped(pair, 2_001), 1e-6)


def test_terms_are_added_in_time_that_grows_as_their_number(monkeypatch):
    copied = []
    monkeypatch.setattr("accountant.plans.plan.checked_parts", copied.append)
    front, back = PureLoss(0.1), PureLoss(0.1)
    between = front + GaussianLoss(1.0)
    for _ in range(20_000):
        front, back = front + GaussianLoss(1.0), GaussianLoss(1.0) + back
    monkeypatch.undo()
    assert not copied  # no term was looked at twice
    assert len(front.parts) == len(back.parts) == 20_001
    assert front.parts[0] == back.parts[-1] == PureLoss(0.1)
    assert between.parts == (PureLoss(0.1), GaussianLoss(1.0))  # immutable
    assert dict(front.losses()) == {PureLoss(0.1): 1, GaussianLoss(1.0): 20_000}
    mixed = front + Stated(PureLoss(1.0), "add-remove")
    assert mixed.relation == "add-remove" == (mixed + PureLoss(0.1)).relation
    with pytest.raises(ParameterError, match="relations do not mix"):
        mixed + Stated(PureLoss(1.0), "replace-one")


def test_plans_are_summed():
    assert sum([PureLoss(0.1), GaussianLoss(1.0)]) == PureLoss(0.1) + GaussianLoss(1.0)
    for other in (1, 0.0, False, "0"):
        with pytest.raises(TypeError):
            other + PureLoss(0.1)


@pytest.mark.parametrize("bad", [None, 0, [], {}, 1.5])
def test_what_is_no_text_is_no_json(bad):
    with pytest.raises(ParameterError, match="JSON, as text"):
        from_json(bad)


def test_an_array_without_axes_is_the_number_in_it():
    delta, plan = np.array(1e-6), 2 * GaussianLoss(1.0)
    assert Tight().certify(plan, delta) == Tight().certify(plan, 1e-6)
    assert GaussianLoss(1.0).epsilon_at(delta) == GaussianLoss(1.0).epsilon_at(1e-6)
    assert compare(plan, delta).best.epsilon == compare(plan, 1e-6).best.epsilon
    asked = calibrate(Gaussian, epsilon=np.array(1.0), delta=delta)
    assert asked == calibrate(Gaussian, epsilon=1.0, delta=1e-6)
    assert GaussianLoss(np.array(0.5)) == GaussianLoss(0.5)
    assert Repeat(GaussianLoss(0.5), np.array(3)) == Repeat(GaussianLoss(0.5), 3)
    for bad in (np.array("a"), np.array(True), np.array([1e-6]), np.array(math.nan)):
        with pytest.raises(ParameterError):
            Tight().certify(plan, bad)


@pytest.mark.parametrize("bad", [1e-6, np.array(1e-6), "a", None, [1e-6, "a"], [True], ["0.1"]])
@pytest.mark.parametrize("accountant", ACCOUNTANTS, ids=lambda one: one.name)
def test_lists_of_numbers_are_lists_of_numbers(accountant, bad):
    for ask in (accountant.epsilons, accountant.deltas):
        with pytest.raises(ParameterError):
            ask(GaussianLoss(1.0), bad)
    with pytest.raises(ParameterError):
        at_deltas(GaussianLoss(1.0), bad)


def hostile_plans():
    """Yield plans of the smallest, the largest and odd arguments, as far as they can be made."""
    sizes = [5e-324, 1e-300, 1e-10, 700.0, 1e154, 1e200, 1e300, 1e308, np.float32(0.5), np.int64(2)]
    families = [
        PureLoss, GaussianLoss, LaplaceLoss, BoundedRangeLoss, ZCDPLoss,
        lambda x: ApproxLoss(x, 1e-300), lambda x: ApproxLoss(1.0, x), lambda x: ZCDPLoss(1.0, x),
        lambda x: DiscreteLaplaceLoss(x, 3), lambda x: DiscreteGaussianLoss(x, 3),
        lambda x: PairLoss([1.0, x], [x, 1.0]),
        lambda x: PoissonSampled(ApproxLoss(1.0, 0.1), x),
        lambda x: PoissonSampled(GaussianLoss(1.0), x),
    ]  # fmt: skip
    makers = [(make, size) for make in families for size in sizes]
    counts = [np.uint8(3), 2**53, 10**18, 10**30]
    nodes = [
        Repeat, Grouped, lambda part, n: SampledWithoutReplacement(part, 1, n), Shuffled,
        lambda part, n: Repeat(Repeat(part, n), n), lambda part, n: n * part,
    ]  # fmt: skip
    parts = [PureLoss(1e-6), PairLoss([0.6, 0.4], [0.4, 0.6]), ZCDPLoss(1e-6), GaussianLoss(1e-6)]
    makers += [
        (lambda n, node=node, part=part: node(part, n), n)
        for node in nodes
        for part in parts
        for n in counts
    ]
    empty = Sequential([])
    odd = [
        lambda _: empty, lambda _: Repeat(PureLoss(1.0), 0), lambda _: Parallel([]),
        lambda _: PoissonSampled(empty, 0.5), lambda _: Grouped(empty, 3),
        lambda _: SampledWithoutReplacement(empty, 3, 5), lambda _: Parallel([empty, empty]),
        lambda _: Sequential(PureLoss(0.1) for _ in range(3)),
        lambda _: PoissonSampled(PoissonSampled(GaussianLoss(1.0), 1e-200), 1e-200),
    ]  # fmt: skip
    makers += [(make, None) for make in odd]
    for make, size in makers:
        plan = answered(lambda make=make, size=size: make(size))
        if plan is not None:
            yield plan


QUICK = [Basic(), ZCDP(), GDP()]
DEAR = [Advanced(), RDP(), Tight()]


@pytest.mark.parametrize(
    "accountant",
    [*QUICK, *(pytest.param(one, marks=pytest.mark.slow) for one in DEAR)],
    ids=lambda one: one.name,
)
def test_hostile_plans_are_answered_or_refused(accountant):
    plans = [plan for plan in hostile_plans() if not isinstance(plan, Shuffled)]
    assert len(plans) > 100
    for plan in plans:
        for delta in (0.0, 5e-324, 1 - 1e-16):
            found = answered(lambda plan=plan, delta=delta: accountant.epsilon(plan, delta))
            assert found is None or found >= 0, (plan, delta)
        found = answered(lambda plan=plan: accountant.delta(plan, 1e300))
        assert found is None or 0 <= found <= 1, plan


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 5e-324, 1e-6, 1 - 1e-16])
def test_hostile_plans_are_certified_compared_and_written(delta):
    for plan in hostile_plans():
        found = answered(lambda plan=plan: Tight().certify(plan, delta))
        assert found is None or 0 <= found.lower <= found.upper, (plan, delta)
        answered(lambda plan=plan: compare(plan, delta))
        assert answered(lambda plan=plan: from_json(to_json(plan))) in (None, plan)
        assert pickle.loads(pickle.dumps(plan)) == plan


def test_the_largest_counts_are_answered_or_refused():
    found = Tight().certify(Repeat(Laplace(3.0), 2**53), 1e-6)
    assert 0 <= found.lower <= found.upper < 5e14  # the mean is .0499 each
    for count in (2**53 + 1, 10**18, 10**30):
        with pytest.raises(ParameterError, match="count must be a whole number"):
            Repeat(Laplace(3.0), count)
    for plan in (Repeat(Repeat(Laplace(3.0), 2**30), 2**30), 2**53 * PureLoss(0.1) + PureLoss(0.1)):
        with pytest.raises(ParameterError, match="releases of one loss in all: use a smaller"):
            Tight().epsilon(plan, 1e-6)


@pytest.mark.parametrize("rate", [5e-324, pytest.param(1e-310, marks=pytest.mark.slow)])
def test_the_smallest_rates_cost_next_to_nothing(rate):
    assert Tight().certify(20 * PoissonSampled(Gaussian(1.0), rate), 1e-6).upper < 1e-9


@pytest.mark.parametrize(
    "make",
    [Sequential, Parallel, lambda x: PoissonSampled(x, 0.5), lambda x: Grouped(x, 2),
     lambda x: Shuffled(x, 2), lambda x: SampledWithoutReplacement(x, 2, 3),
     lambda x: Stated(x, "replace-one"), lambda x: Repeat(x, 2)],
    ids=range(8),
)  # fmt: skip
@pytest.mark.parametrize("bad", ["ab", ["ab"], None, {"a": 1}, np.array([1, 2]), 3])
def test_what_is_no_plan_is_no_part(make, bad):
    with pytest.raises(ParameterError):
        make(bad)


@pytest.mark.slow
def test_the_largest_counts_are_not_enumerated():
    found = Tight().certify((2**53 - 1) * BoundedRangeLoss(1e-6), 1e-6)
    assert 0 <= found.lower <= found.upper <= Advanced().epsilon((2**53 - 1) * PureLoss(1e-6), 1e-6)


def test_a_rough_rule_is_short():
    from accountant.amplification.sampled_gaussian.sampled_gaussian_cgf import rough_rule

    for mu in (1e3, 1e150, 1e300):  # its size was the square of mu
        assert rough_rule(mu, 0.01)[0].size < 100_000


@pytest.mark.slow
@pytest.mark.parametrize("mu", [1e3, 1e99])
@pytest.mark.parametrize(
    "node",
    [
        lambda part: PoissonSampled(part, 0.01),
        lambda part: SampledWithoutReplacement(part, 10, 1000),
        lambda part: TruncatedPoisson(part, 0.01, 200, 10),
    ],
    ids=["poisson", "without replacement", "truncated"],
)
@pytest.mark.filterwarnings("error")
def test_hardly_any_noise_is_answered(mu, node):
    # they were OverflowError, ValueError and RuntimeWarning
    for count in (3, 10**9):
        found = Tight().certify(count * node(GaussianLoss(mu)), 1e-6)
        assert 0 <= found.lower <= found.upper
    assert Tight().epsilon(3 * node(GaussianLoss(1e3)), 1e-6) < 1e8


@pytest.mark.filterwarnings("error")
def test_more_noise_is_asked_for_where_there_is_none():
    for node in (
        PoissonSampled(GaussianLoss(1e300), 0.01, "replace-one"),
        TruncatedPoisson(GaussianLoss(1e300), 0.01, 200, 10),
    ):
        with pytest.raises(ParameterError, match="add more noise"):
            Tight().epsilon(node, 1e-6)


@pytest.mark.filterwarnings("error")
def test_hardly_any_loss_is_answered():
    # the first were ValueError, then an epsilon of -1e-6; the last took seconds
    for plan in (
        3 * Shuffled(PureLoss(1e-300), 1000),
        3 * Shuffled(PureLoss(1e-9), 1000),
        3 * TruncatedPoisson(GaussianLoss(1.0), 1e-17, 200, 10),
    ):
        assert Tight().bracket(plan, 1e-6) == (0.0, 0.0)
    tuned = 3 * Repeated(PureLoss(0.3), NegativeBinomialTries(1000.0, 1e-15))
    assert 0.8 < Tight().epsilon(tuned, 1e-6) < 902  # was a ValueError


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e-300, 1e-140, 1e-3, 0.03, 1e100, 1e300])
def test_an_allocation_with_hardly_any_noise_or_much_of_it_is_answered(scale):
    # they took more than 20 s, or were ValueError, RuntimeWarning and ZeroDivisionError
    for steps in (2, 10**6):
        plan = RandomAllocation(Gaussian(scale), steps)
        for accountant in (RDP(), Tight()):
            assert accountant.epsilon(plan, 1e-6) >= 0
        # never dearer than the Gaussian in every step
        assert RDP().epsilon(plan, 1e-6) <= RDP().epsilon(Gaussian(scale), 1e-6) * (1 + 1e-12)


@pytest.mark.parametrize("rate", [1e-6, 1e-300, 5e-324])
def test_rates_of_hits_with_great_losses_are_not_forgotten(rate):
    # (e^epsilon - 1) / rate is no float: the profile was 0, and an upper end 695.5 of 1,236
    epsilon = np.array([20.0, 300.0, 690.0, 699.0, 700.0, 701.0])
    for node in (
        PoissonSampled(GaussianLoss(60.0), rate),
        SampledWithoutReplacement(
            GaussianLoss(60.0), 1, round(1 / rate) if rate > 1e-100 else 10**15
        ),
    ):
        share = rate if isinstance(node, PoissonSampled) else node.sample / node.population
        assert np.allclose(node.profile(epsilon) / share, 1.0, rtol=1e-2)  # a hit costs 1,800
    cells = PoissonSampled(GaussianLoss(60.0), rate).cell_masses(np.append(epsilon, math.inf))
    assert cells.p[-1] == pytest.approx(rate, rel=1e-2)


def test_the_upper_end_of_hits_with_great_losses_holds_them():
    # two hits in 10^6 of 1,250 each: delta(epsilon) is 2e-6 up to about 1,100
    plan = 2 * PoissonSampled(GaussianLoss(50.0), 1e-6)
    assert Tight().epsilon(plan, 1e-6) > 1180


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e-50, 1e-150, 1e-300])
def test_hardly_any_noise_in_one_of_different_samples_is_answered(scale):
    # they were TypeError and ValueError: of grids of no numbers
    plan = PoissonSampled(Gaussian(scale), 0.01) + 5 * PoissonSampled(Gaussian(1.0), 0.1)
    found = Tight().certify(plan, 1e-6)
    assert 0 <= found.lower <= found.upper <= RDP().epsilon(plan, 1e-6)
    assert found.upper > 500  # as one sample in a hundred is not hidden at all
