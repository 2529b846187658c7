"""Bounds of schemes against enumerated small data sets."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from accountant import (
    RDP,
    GaussianLoss,
    Loss,
    ParameterError,
    PoissonSampled,
    Sequential,
    Tight,
    UnsupportedPlan,
)
from accountant.amplification.allocation.greatest_output import greatest_output_pair
from accountant.plans.adjacency import Adjacency
from accountant.training.passes import root_up
from accountant.training.rows import RunCosts
from accountant.training.run import TrainingRun
from accountant.training.schemes import Scheme, certified, record_scheme
from accountant.training.users import binomial_counts, hypergeometric_counts, user_scheme

GRID = np.linspace(-14.0, 14.0, 20_001)
RIEMANN = 1e-6  # error of the sum at the kink of a stick
EPSILONS = (0.0, 0.3, 1.0, 2.5)
ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
ZERO_OUT = Adjacency.ZERO_OUT
PASSES = ("random_allocation", "shuffled", "fixed_order")
LOADERS = ("poisson", "truncated_poisson", "fixed_size", *PASSES)


def density(sums, chances):
    norm = math.sqrt(2 * math.pi)
    return sum(
        c * np.exp(-((GRID - m) ** 2) / 2) / norm for m, c in zip(sums, chances, strict=True)
    )


def stick(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum() * (GRID[1] - GRID[0]))


def fixed_size(values, batch):
    kept = [sum(one) for one in itertools.combinations(values, batch)]
    return density(kept, [1 / len(kept)] * len(kept))


def poisson(values, rate):
    ways = list(itertools.product((0, 1), repeat=len(values)))
    sums = [sum(v for v, k in zip(values, way, strict=True) if k) for way in ways]
    return density(sums, [math.prod(rate if k else 1 - rate for k in way) for way in ways])


def truncated(values, rate, batch):
    chances = {}
    for way in itertools.product((0, 1), repeat=len(values)):
        chosen = [v for v, k in zip(values, way, strict=True) if k]
        subsets = list(itertools.combinations(chosen, min(batch, len(chosen))))
        for one in subsets:
            chance = math.prod(rate if k else 1 - rate for k in way) / len(subsets)
            chances[sum(one)] = chances.get(sum(one), 0.0) + chance
    return density(list(chances), list(chances.values()))


def profile(run, loader, relation, epsilon):
    (plan,) = user_scheme(run, 1.0, loader, relation, microbatching=False).above
    ((loss, _),) = plan.losses()
    return max(float(way.profile(epsilon)) for way in (loss, loss.reversed))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_users_of_samples_of_fixed_size(epsilon):
    run = TrainingRun(6, 3, steps=1, loader="fixed_size", examples_per_user=2)
    bound = profile(run, "fixed_size", ADD_REMOVE, epsilon)
    reached = 0.0
    for user in ((1, 1), (1, -1), (1, 0)):
        for others in ((-1, -1, -1, -1), (1, -1, 0, 0), (0, 0, 0, 0)):
            p, q = fixed_size((*others, *user), 3), fixed_size(others, 3)
            found = max(stick(p, q, epsilon), stick(q, p, epsilon))
            assert found <= bound + RIEMANN
            reached = max(reached, found)
            again = fixed_size((*others, -1, -1), 3)
            found = max(stick(p, again, epsilon), stick(again, p, epsilon))
            assert found <= profile(run, "fixed_size", REPLACE_ONE, epsilon) + RIEMANN
    assert reached == pytest.approx(bound, abs=RIEMANN)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_users_of_poisson_samples(epsilon):
    run = TrainingRun(6, 3, steps=1, rate=0.3, examples_per_user=2)
    reached = {}
    for user, other in (((1, 1), ()), ((1, 1), (-1, -1)), ((1, 0), (-1, 1)), ((1, -1), ())):
        p, q = poisson((0.5, *user), 0.3), poisson((0.5, *other), 0.3)
        relation = REPLACE_ONE if other else ADD_REMOVE
        found = max(stick(p, q, epsilon), stick(q, p, epsilon))
        assert found <= profile(run, "poisson", relation, epsilon) + RIEMANN
        reached[relation] = max(reached.get(relation, 0.0), found)
    alone, both = poisson((1, 1), 0.3), poisson((-1, -1), 0.3)
    assert stick(alone, both, epsilon) == pytest.approx(
        profile(run, "poisson", REPLACE_ONE, epsilon), abs=RIEMANN
    )


@pytest.mark.parametrize("batch", [2, 4, 5])
def test_users_of_truncated_samples(batch):
    run = TrainingRun(5, 3, steps=1, rate=0.4, max_batch=batch, examples_per_user=2)
    for others in ((-1, -1, -1), (-1, 1, -1), (0, 0, 0)):
        p, q = truncated((*others, 1, 1), 0.4, batch), truncated(others, 0.4, batch)
        again = truncated((*others, -1, -1), 0.4, batch)
        for epsilon, (other, relation) in itertools.product(
            EPSILONS, ((q, ADD_REMOVE), (again, REPLACE_ONE))
        ):
            found = max(stick(p, other, epsilon), stick(other, p, epsilon))
            assert found <= profile(run, "truncated_poisson", relation, epsilon) + RIEMANN
    # where no batch is cut it is Poisson sampling
    if batch == 5:
        assert profile(run, "truncated_poisson", ADD_REMOVE, 1.0) == pytest.approx(
            profile(run, "poisson", ADD_REMOVE, 1.0)
        )


def test_chances_of_record_counts_are_exact_and_rounded_towards_more_records():
    for size, rate in ((3, 0.2), (60, 0.9), (2000, 1e-3), (10**6, 1e-5)):
        counts, rare = binomial_counts(size, rate)
        assert 0 <= rare < 1e-33
        assert math.fsum(chance for _, chance in counts) == pytest.approx(1, abs=1e-14)
        assert math.fsum(j * chance for j, chance in counts) == pytest.approx(
            size * rate, rel=1e-10
        )
    exact = [math.comb(5, j) * math.comb(15, 4 - j) / math.comb(20, 4) for j in range(5)]
    assert [chance for _, chance in hypergeometric_counts(5, 4, 20)[0]] == pytest.approx(exact)
    assert hypergeometric_counts(4, 3, 4) == (((3, 1.0),), 0.0)
    assert binomial_counts(7, 1.0) == (((7, 1.0),), 0.0)
    assert binomial_counts(10**9, 0.5) is None
    # tails, exactly: more records are never rarer than they are
    counts, rare = binomial_counts(40, 0.125)
    found = dict(counts)
    for least in range(1, 41):
        tail = sum(math.comb(40, j) * 7 ** (40 - j) for j in range(least, 41))  # over 8^40
        kept = math.fsum([rare, *(c for j, c in found.items() if j >= least)])
        assert kept * 8**40 >= tail * (1 - 1e-15)


@pytest.mark.parametrize("dropped", [False, True])
def test_lower_ends_of_uneven_passes_are_below_the_pair(dropped):
    # five records in batches of two: the record is in a batch of two, in the short one, or unused
    mu, weights = 1.5, (0.4, 0.4) if dropped else (0.4, 0.4, 0.2)
    step = 0.05 if dropped else 0.2
    line = np.arange(-6.0, 8.0, step)
    axes = np.meshgrid(*[line] * len(weights), indexing="ij")
    cell = step ** len(weights)
    q = np.exp(-sum(x**2 for x in axes) / 2) / (2 * math.pi) ** (len(weights) / 2)
    ratio = sum(w * np.exp(mu * x - mu**2 / 2) for w, x in zip(weights, axes, strict=True))
    p = q * (ratio + 1 - sum(weights))
    pair = greatest_output_pair(mu, 0.0, len(weights))
    below = PoissonSampled(pair, 0.8) if dropped else pair
    for epsilon in EPSILONS:
        truth = float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum()) * cell
        assert 0 < float(below.profile(epsilon)) < truth


@pytest.mark.parametrize("squares", [0, 1, 2, 25_000_001**2, (2**53 + 1) ** 2, (10**16 + 1) ** 2])
def test_roots_are_rounded_up(squares):
    assert squares <= Fraction(root_up(squares)) ** 2 <= squares * (1 + Fraction(1, 10**14))
    assert root_up(25) == 5.0


def test_users_of_many_records_are_bounded_by_their_renyi_curves():
    run = TrainingRun(1000, 10, 1.0, examples_per_user=300)
    (plan,) = user_scheme(run, 30.0, "poisson", ADD_REMOVE, microbatching=False).above
    small = TrainingRun(1000, 10, 1.0, examples_per_user=100)
    (less,) = user_scheme(small, 30.0, "poisson", ADD_REMOVE, microbatching=False).above
    assert Tight(1e-3).epsilon(less, 1e-6) < RDP().epsilon(plan, 1e-6) < math.inf
    user = RunCosts(run, 30.0, 1e-6).row("poisson", "user", ADD_REMOVE, False)
    assert user.note == "bound"
    assert 0 < user.lower < user.upper == RDP().epsilon(plan, 1e-6)


LINE = np.linspace(-9.0, 9.0, 1801)
PLANE = np.meshgrid(np.linspace(-7.0, 7.0, 113), np.linspace(-7.0, 7.0, 113))
COARSE = {1: 1e-5, 2: 1e-3}  # errors of sums on the line and on the plane, at the kink of a stick


def batches_of(loader, count):
    """All ways to make the batches of a step, or of a pass of two batches, with their chances."""
    records = range(count)
    if loader in ("poisson", "truncated_poisson"):
        for way in itertools.product((0, 1), repeat=count):
            batch = [i for i in records if way[i]]
            largest = count if loader == "poisson" else 2
            cut = list(itertools.combinations(batch, min(largest, len(batch))))
            yield from (((kept,), 0.5**count / len(cut)) for kept in cut)
    elif loader == "random_allocation":
        for way in itertools.product((0, 1), repeat=count):
            batches = tuple(tuple(i for i in records if way[i] == batch) for batch in (0, 1))
            yield batches, 0.5**count
    elif loader == "fixed_size":
        ways = list(itertools.combinations(records, 2))
        yield from (((way,), 1 / len(ways)) for way in ways)
    else:
        orders = [records] if loader == "fixed_order" else list(itertools.permutations(records))
        yield from (((order[:2], order[2:]), 1 / len(orders)) for order in orders)


def law_of_a_run(loader, values, last_query=int):
    """The density of what a run of one step, or of one pass with two batches, releases.

    A record contributes its value, and ``last_query`` of it to the last batch.
    """
    chances = {}
    for batches, chance in batches_of(loader, len(values)):
        sums = tuple(sum(values[i] for i in batch) for batch in batches[:-1])
        sums += (sum(last_query(values[i]) for i in batches[-1]),)
        chances[sums] = chances.get(sums, 0.0) + chance
    axes = PLANE if loader in PASSES else [LINE]
    cell = (14.0 / 112) ** 2 if loader in PASSES else 0.01
    return sum(
        chance * np.exp(-sum((x - m) ** 2 for x, m in zip(axes, sums, strict=True)) / 2)
        for sums, chance in chances.items()
    ) * cell / (2 * math.pi) ** (len(axes) / 2)  # fmt: skip


def delta_above(plan, epsilon):
    """The delta of a plan, which is mostly one release."""
    (item, count), *more = plan.losses()
    if more or count > 1 or not isinstance(item, Loss):
        return Tight().delta(plan, epsilon)
    return max(float(way.profile(epsilon)) for way in (item, item.reversed))


def delta_below(plan, epsilon):
    """The delta of the pair that a plan attains, for lower ends."""
    items = [(loss.attained_pair, count) for loss, count in plan.losses()]
    return delta_above(Sequential(count * loss for loss, count in items), epsilon)


def neighbours(relation, microbatching):
    """Pairs of data sets of four records: the first changes, or is the least or the last one."""
    for others in ((-1, -1, -1), (0, 0, 0), (1, -1, 0), (-1, 1, 1)):
        changed = [1, -1]
        if relation is ADD_REMOVE:
            yield from (((x, *others), others) for x in changed)
            yield from (((*others, x), others) for x in changed)
        elif relation is REPLACE_ONE or microbatching:
            # the clipped mean of the record's microbatch may be turned round
            yield (1, *others), (-1, *others)
        if relation is ZERO_OUT:
            yield from (((x, *others), (0, *others)) for x in changed)


@pytest.mark.parametrize(
    ("relation", "microbatching"),  # where a record is removed, the microbatches of others change
    [(ADD_REMOVE, False), *itertools.product((ZERO_OUT, REPLACE_ONE), (False, True))],
)
@pytest.mark.parametrize("loader", LOADERS)
def test_bounds_of_a_record_are_around_enumerated_runs(loader, relation, microbatching):
    sizes = {"poisson": {"rate": 0.5}, "truncated_poisson": {"rate": 0.5, "max_batch": 2}}
    steps = 2 if loader in PASSES else 1
    run = TrainingRun(4, 2, steps=steps, loader=loader, **sizes.get(loader, {}))
    scheme = record_scheme(run, 1.0, loader, relation, microbatching=microbatching)
    error = COARSE[2 if loader in PASSES else 1]
    queries = (int, abs) if loader in PASSES else (int,)
    pairs = [[law_of_a_run(loader, one, query) for one in pair]
             for pair in neighbours(relation, microbatching) for query in queries]  # fmt: skip
    for epsilon in (0.0, 1.0):
        reached = max(
            float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())
            for pair in pairs for p, q in (pair, pair[::-1])
        )  # fmt: skip
        for plan in scheme.above:
            assert reached <= delta_above(plan, epsilon) + error
        for plan in scheme.below:
            assert delta_below(plan, epsilon) <= reached + error


def neighbours_by_a_user(loader, relation, microbatching):
    """Pairs of data sets of two or four records: the first two, or the outer two, change."""
    changes = {
        ADD_REMOVE: [((1, 1), ()), ((1, -1), ()), ((1, 0), ())],
        ZERO_OUT: [((1, 1), (0, 0)), ((1, -1), (0, 0))],
        REPLACE_ONE: [((1, 1), (-1, -1)), ((1, 0), (-1, 1))],
    }[relation]
    # The clipped means of the user's microbatches may be turned round.  Of Poisson samples the
    # proof asks that others keep their microbatches: a drawn blank is as if it were not drawn.
    if microbatching and (loader != "poisson" or relation is REPLACE_ONE):
        changes.append(((1, 1), (-1, -1)))
    for others in ((-1, -1), (0, 0), (1, -1), (1, 1)):
        for user, changed in changes:
            yield (*user, *others), (*changed, *others)
            yield (user[0], *others, user[1]), (*changed[:1], *others, *changed[1:])


@pytest.mark.parametrize(
    ("relation", "microbatching"),
    [(ADD_REMOVE, False), *itertools.product((ZERO_OUT, REPLACE_ONE), (False, True))],
)
@pytest.mark.parametrize("loader", LOADERS)
def test_bounds_of_a_user_are_around_enumerated_runs(loader, relation, microbatching):
    sizes = {"poisson": {"rate": 0.5}, "truncated_poisson": {"rate": 0.5, "max_batch": 2}}
    steps = 2 if loader in PASSES else 1
    run = TrainingRun(
        4, 2, steps=steps, loader=loader, examples_per_user=2, **sizes.get(loader, {})
    )
    scheme = user_scheme(run, 1.0, loader, relation, microbatching=microbatching)
    error = COARSE[2 if loader in PASSES else 1]
    queries = (int, abs) if loader in PASSES else (int,)
    pairs = [
        [law_of_a_run(loader, values, query) for values in pair]
        for pair in neighbours_by_a_user(loader, relation, microbatching) for query in queries
    ]  # fmt: skip
    are_attained = []
    for epsilon in (0.0, 1.0):
        reached = max(
            float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())
            for pair in pairs for p, q in (pair, pair[::-1])
        )  # fmt: skip
        bound = min(delta_above(plan, epsilon) for plan in scheme.above)
        assert reached <= bound + error
        are_attained.append(reached >= bound - error)
        for plan in scheme.below:
            assert delta_below(plan, epsilon) <= reached + error
    # The note is empty where some data reach the bound, and only there it is a lower end too.
    is_attained = all(are_attained) and not microbatching
    assert (scheme.note == "") == is_attained == (scheme.below == scheme.above)


# Of a batch with room and of a full one: the clips by which each record of the user moves the sum,
# and by which what stands in its place on the other data moves it in the opposite direction.
MOVES = {
    ADD_REMOVE: {"room": (1, 0), "full": (2, 0)},
    ZERO_OUT: {"room": (1, 0), "full": (2, 1)},
    REPLACE_ONE: {"room": (1, 1), "full": (2, 2)},
}


def cases_of_a_step(loader, examples, size, batch):
    """The chances of how many of the user's records are drawn, and of a batch with room or full."""
    rate = batch / examples
    law = hypergeom(examples, size, batch) if loader == "fixed_size" else binom(size, rate)
    counts = law.pmf(np.arange(size + 1))
    if loader == "poisson":
        full = 0.0
    elif loader == "fixed_size" or size > 8:  # of many records all batches are taken to be full
        full = 1.0
    else:  # the largest batch is 2 more than the mean one
        full = float(binom(examples - size, rate).sf(batch + 2 - size))
    return counts, {"room": 1 - full, "full": full}


@pytest.mark.parametrize("micro", [False, True])
@pytest.mark.parametrize("relation", MOVES)
@pytest.mark.parametrize(
    ("loader", "examples", "size", "batch"),
    [("poisson", 6, 2, 3), ("fixed_size", 6, 2, 3), ("fixed_size", 9, 4, 6),
     ("truncated_poisson", 6, 4, 1), ("truncated_poisson", 6, 2, 2),
     ("truncated_poisson", 5, 2, 3), ("truncated_poisson", 5, 2, 2),
     ("truncated_poisson", 14, 9, 7), ("truncated_poisson", 5, 2, 1)],
)  # fmt: skip
def test_the_profile_of_a_step_is_that_of_its_cases(loader, examples, size, batch, relation, micro):
    largest = {"max_batch": batch + 2} if loader == "truncated_poisson" else {}
    run = TrainingRun(examples, batch, steps=3, loader=loader, examples_per_user=size, **largest)
    noise = 2.0 * size
    (plan,) = user_scheme(run, noise, loader, relation, microbatching=micro).above
    ((loss, count),) = plan.losses()
    assert count == 3
    counts, chances = cases_of_a_step(loader, examples, size, batch)
    records = np.arange(size + 1)
    for epsilon in (0.0, 0.1):
        deltas = np.zeros(2)
        for case, chance in chances.items():
            moved, back = MOVES[relation][case]
            if micro:  # means are clipped, so that a record or a blank turns its microbatch round
                whole = loader == "fixed_size"  # where a record already moves the sum by 2 clips
                moved, back = (2, 2 * (back > 0)) if whole else (2 * moved, 2 * back)
            p, q = (density(clips * records / noise, counts) for clips in (moved, -back))
            deltas += chance * np.array([stick(p, q, epsilon), stick(q, p, epsilon)])
        profiles = float(loss.profile(epsilon)), float(loss.reversed.profile(epsilon))
        assert profiles == pytest.approx(deltas, abs=2e-6)


@pytest.mark.parametrize("relation", [ADD_REMOVE, ZERO_OUT, REPLACE_ONE])
@pytest.mark.parametrize(("steps", "begun"), [(4, 1), (8, 2), (10, 3)])
def test_records_that_are_all_allocated_to_one_step_of_each_pass(steps, begun, relation):
    run = TrainingRun(8, 2, steps=steps, loader="random_allocation", examples_per_user=3)
    for micro in (False, True):
        scheme = user_scheme(run, 9.0, "random_allocation", relation, microbatching=micro)
        _, together = scheme.above
        clips = 2 if micro or relation is REPLACE_ONE else 1
        whole = GaussianLoss(clips * 3 / 9.0 * math.sqrt(begun))
        assert Tight().delta(together, 0.5) == pytest.approx(float(whole.profile(0.5)), rel=1e-9)


def test_counts_of_records_that_are_left_out_reveal_everything():
    run = TrainingRun(10**6, 1000, steps=3, loader="poisson", examples_per_user=2000)
    _, rare = binomial_counts(2000, 1e-3)
    (plan,) = user_scheme(run, 30.0, "poisson", ADD_REMOVE, microbatching=False).above
    assert rare > 0
    assert sum(count * loss.infinity for loss, count in plan.losses()) == pytest.approx(
        3 * rare, abs=0
    )


@pytest.mark.parametrize("relation", [ADD_REMOVE, ZERO_OUT, REPLACE_ONE])
@pytest.mark.parametrize("loader", ["shuffled", "fixed_order"])
def test_a_batch_of_one_record_is_its_own_microbatch(loader, relation):
    run = TrainingRun(3, 1, steps=3, loader=loader)
    plain, grouped = (
        record_scheme(run, 1.0, loader, relation, microbatching=micro) for micro in (False, True)
    )
    assert grouped == plain


@pytest.mark.parametrize("passes", [2, 2.5])
@pytest.mark.parametrize("micro", [False, True])
def test_microbatches_double_what_a_record_moves(micro, passes):
    # means of several gradients are clipped: each change of a record may turn one round
    run, clips = TrainingRun(8, 2, steps=round(4 * passes)), 2.0 if micro else 1.0
    _, sides = record_scheme(run, 0.5, "fixed_size", ZERO_OUT, microbatching=micro).above
    ((loss, count),) = sides.losses()
    assert count == run.draws
    assert loss.pair.right.greatest == pytest.approx(2.0 / 0.5)
    assert loss.pair.left.greatest == pytest.approx(clips / 0.5)
    for side in (loss.pair.right, loss.pair.left):
        assert side.weights == pytest.approx((0.75, 0.25))
    for relation in (ADD_REMOVE, ZERO_OUT):
        scheme = record_scheme(run, 0.5, "random_allocation", relation, microbatching=micro)
        ((plan,), (below,)) = scheme.above, scheme.below
        assert plan.part.mu == pytest.approx(clips / 0.5)
        assert below.part.mu == pytest.approx(1.0 / 0.5)
        assert (plan.epochs, below.epochs) == (math.ceil(passes), math.floor(passes))
        assert plan.relation == below.relation == relation
        assert (scheme.note == "") == (not micro and passes == 2)


@pytest.mark.parametrize(
    ("loader", "noise", "note"),
    [
        ("shuffled", 0.34, ""),
        ("shuffled", 0.33, "bound"),
        ("random_allocation", 0.17, ""),
        ("random_allocation", 0.16, "bound"),
    ],
)
def test_allocations_that_are_not_integrated_are_bounds(loader, noise, note):
    run = TrainingRun(40, 10, steps=8, loader=loader)
    scheme = record_scheme(run, noise, loader, ADD_REMOVE, microbatching=False)
    assert scheme.note == note


def test_a_record_costs_the_same_whether_or_not_users_have_several():
    costs = {}
    for records in (None, 4):
        run = TrainingRun(1000, 100, epochs=2, loader="shuffled", examples_per_user=records)
        for unit in ("record", "user")[: 1 if records is None else 2]:
            cost = RunCosts(run, 4.0, 1e-6).row("shuffled", unit, REPLACE_ONE, False)
            costs[unit, records] = cost.upper
    assert costs["record", 4] == costs["record", None] < costs["user", 4]


@pytest.mark.parametrize(("passes", "is_bounded"), [(3, True), (0.5, False)])
def test_whole_shuffled_passes_have_a_lower_end(passes, is_bounded):
    run = TrainingRun(1000, 100, epochs=passes, loader="shuffled")
    scheme = record_scheme(run, 1.0, "shuffled", REPLACE_ONE, microbatching=False)
    assert bool(scheme.below) == is_bounded
    for below, above in itertools.product(scheme.below, scheme.above):
        assert Tight().epsilon(below, 1e-5) <= Tight().epsilon(above, 1e-5)


@pytest.mark.parametrize("error", [ParameterError("x", 1, "2"), UnsupportedPlan("plan", "x", "y")])
def test_a_plan_that_cannot_be_bounded_is_left_out_and_no_other(error):
    intervals = {"first": (1.0, 4.0), "second": (1.5, 3.0), "third": (2.0, 2.5)}
    for answered in itertools.product((False, True), repeat=len(intervals)):
        kept = {name for name, known in zip(intervals, answered, strict=True) if known}

        def certify(plan, kept=kept):
            if plan not in kept:
                raise error
            return intervals[plan]

        names = tuple(intervals)
        upper = min((intervals[name][1] for name in kept), default=math.inf)
        lower = max((intervals[name][0] for name in kept), default=0.0)
        assert certified(Scheme(above=names, below=names), certify) == (lower, upper)
        # a lower end above the upper one would be that of another relation
        crossed = {name: (9.0, end) for name, (_, end) in intervals.items()}
        found = certified(Scheme(above=names, below=names), crossed.__getitem__)
        assert found == (2.5, 2.5)


WIDE_PLANE = np.meshgrid(np.linspace(-9.0, 9.0, 145), np.linspace(-9.0, 9.0, 145))


def law_of_a_shuffled_pass(values, sizes, last_query, noise):
    """The density of the sums of batches of these sizes, drawn one after the other."""
    drawn = {((), tuple(range(len(values)))): 1.0}  # sums so far, and who is left
    for number, size in enumerate(sizes):
        query = last_query if number == len(sizes) - 1 else int
        after = {}
        for (sums, left), chance in drawn.items():
            batches = list(itertools.combinations(left, size))
            for batch in batches:
                total = sum(query(values[i]) for i in batch)
                state = (*sums, total), tuple(i for i in left if i not in batch)
                after[state] = after.get(state, 0.0) + chance / len(batches)
        drawn = after
    chances = {}
    for (sums, _), chance in drawn.items():
        chances[sums] = chances.get(sums, 0.0) + chance
    axes = WIDE_PLANE if len(sizes) == 2 else [np.linspace(-9.0, 9.0, 1801)]
    cell = (18 / 144) ** 2 if len(sizes) == 2 else 0.01
    return sum(
        chance * np.exp(-sum((x - m / noise) ** 2 for x, m in zip(axes, sums, strict=True)) / 2)
        for sums, chance in chances.items()
    ) * cell / (2 * math.pi) ** (len(axes) / 2)  # fmt: skip


# records, batch, steps, whether a short batch is left out, records of a user, and the sizes of the
# batches that are seen, without the user and with it
REMOVED_RECORDS = [
    ((6, 3, 2, False), 2, (3, 1), (3, 3)),  # the last batch loses two
    ((7, 4, 2, False), 1, (4, 2), (4, 3)),
    ((5, 3, 1, True), 2, (3,), (3,)),
    ((8, 3, 2, True), 2, (3, 3), (3, 3)),
    ((6, 2, 2, False), 1, (2, 2), (2, 2)),  # two batches of three
    ((6, 2, 1, False), 1, (2,), (2,)),
]


@pytest.mark.parametrize(("numbers", "size", "without", "with_user"), REMOVED_RECORDS)
def test_records_removed_from_shuffled_passes_cost_what_enumerated_passes_do(
    numbers, size, without, with_user
):
    examples, batch, steps, drop_last = numbers
    run = TrainingRun(
        examples, batch, steps=steps, loader="shuffled", drop_last=drop_last,
        examples_per_user=size,
    )  # fmt: skip
    noise, error = 2.0, 1e-3 if len(with_user) == 2 else 1e-5
    scheme = user_scheme(run, noise, "shuffled", ADD_REMOVE, microbatching=False)
    sees_last = steps == run.batches
    for epsilon in (0.0, 0.5):
        reached = 0.0
        for user, others in itertools.product(((1, 1), (1, -1)), (-1, 0, 1)):
            rest = [others] * (examples - size)
            for query in (int, abs) if sees_last and not drop_last else (int,):
                q = law_of_a_shuffled_pass(rest, without, query, noise)
                p = law_of_a_shuffled_pass([*user[:size], *rest], with_user, query, noise)
                reached = max(reached, *(float(np.maximum(a - math.exp(epsilon) * b, 0).sum())
                                         for a, b in ((p, q), (q, p))))  # fmt: skip
        bounds = [delta_above(plan, epsilon) for plan in scheme.above]
        assert reached <= min(bounds) + error
        assert all(delta_below(plan, epsilon) <= reached + error for plan in scheme.below)
        if size == 1:
            assert reached == pytest.approx(bounds[0], abs=error)
