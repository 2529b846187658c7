"""Plans with choices against a recursion over all answers, in the order of their release."""

import math
import random
from functools import reduce

import numpy as np
import pytest

from accountant import (
    BoundedRangeLoss,
    GaussianLoss,
    Grouped,
    LaplaceLoss,
    OnePass,
    PairLoss,
    Parallel,
    PoissonSampled,
    PureLoss,
    Stated,
    Tight,
)
from accountant.accountants.direction import Direction
from accountant.amplification.group_privacy import sampled_group_loss
from accountant.composition import adaptive_choices
from accountant.composition.adaptive_choices import Choices, OnePair, Ranges, stages_of, value_of
from accountant.composition.profile_ends import PlanProfile
from accountant.plans.plan import Sequential


def delta_of(stages, epsilon):
    """V by definition: a stage is a list of pairs, or the range of an exponential mechanism.

    Of a range finitely many pairs are tried, so that this is at most the truth.
    """
    if not stages:
        return np.maximum(0.0, -np.expm1(epsilon))
    stage, rest = stages[0], stages[1:]
    if isinstance(stage, list):
        return np.maximum.reduce(
            [sum(p * delta_of(rest, epsilon - loss) for p, loss in pair if p) for pair in stage]
        )
    near = stage * np.geomspace(1e-5, 0.1, 100)
    t = np.concatenate([near, np.linspace(0.0, stage, 300), stage - near])
    p = np.expm1(t - stage) / math.expm1(-stage)
    e = np.asarray(epsilon)[..., None]
    values = p * delta_of(rest, e - t) + (1 - p) * delta_of(rest, e - t + stage)
    return np.max(values, axis=-1)


def pair_of(rng):
    p, q = (np.array([rng.random() + 0.02 for _ in range(2)]) for _ in range(2))
    return PairLoss((p / p.sum()).tolist(), (q / q.sum()).tolist())


def atoms(pair):
    loss, mass = pair.loss_pmf
    return list(zip(mass.tolist(), loss.tolist(), strict=True))


def random_plan(rng):
    """A plan, and its stages in both directions."""
    parts, forward, backward = [], [], []
    for kind in rng.sample(["pair", "set", "range", "set", "pair"], 3):
        if kind == "range":
            e0 = rng.choice([0.1, 0.7, 2.0])
            parts.append(BoundedRangeLoss(e0))
            forward.append(e0)
            backward.append(e0)
        else:
            pairs = [pair_of(rng) for _ in range(1 if kind == "pair" else 2)]
            parts.append(pairs[0] if kind == "pair" else Parallel(pairs))
            forward.append([atoms(pair) for pair in pairs])
            backward.append([atoms(pair.reversed) for pair in pairs])
    return reduce(lambda one, other: one + other, parts), (forward, backward)


@pytest.mark.parametrize("seed", range(8))
def test_the_interval_holds_what_the_costliest_strategy_costs(seed):
    rng = random.Random(seed)
    plan, directions = random_plan(rng)
    delta = 10 ** rng.uniform(-6, -0.7)
    interval = Tight().certify(plan, delta)
    assert interval.width <= 0.01 * interval.upper

    def truth(epsilon):
        return max(delta_of(stages, epsilon) for stages in directions)

    assert truth(interval.upper * (1 + 1e-9)) <= delta * (1 + 1e-9)
    if interval.lower > 0:
        # the recursion tries few pairs of a range
        assert truth(interval.lower * (1 - 1e-4) - 1e-9) >= delta * (1 - 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 160))
def test_more_intervals_hold_what_the_costliest_strategy_costs(seed):
    test_the_interval_holds_what_the_costliest_strategy_costs(seed)


def test_what_is_known_before_a_choice_costs():
    delta, e0 = 0.01, 1.0
    gaussian, chosen = GaussianLoss(1.0), BoundedRangeLoss(e0)
    before, after = (
        Tight().certify(plan, delta) for plan in (gaussian + chosen, chosen + gaussian)
    )

    def known_before(epsilon):
        z = np.linspace(-12, 12, 4001)  # the loss is z + 1/2, z normal
        density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        return np.sum(density * chosen.profile_any_epsilon(epsilon - z - 0.5)) * (z[1] - z[0])

    def known_after(epsilon):
        t = np.linspace(0.0, e0, 4001)
        p = np.expm1(t - e0) / math.expm1(-e0)
        rest = gaussian.profile_any_epsilon(epsilon - t + e0)
        return np.max(p * gaussian.profile_any_epsilon(epsilon - t) + (1 - p) * rest)

    for interval, truth in ((before, known_before), (after, known_after)):
        assert truth(interval.upper) <= delta * (1 + 1e-9) <= truth(interval.lower) * (1 + 1e-6)
        assert interval.width < 1e-3 * interval.upper
    assert before.lower > 1.02 * after.upper
    between = Tight().certify(chosen + gaussian + chosen, delta)
    assert Tight().certify(2 * chosen + gaussian, delta).upper < between.lower


def test_losses_come_in_order():
    a, b, c = PureLoss(0.1), BoundedRangeLoss(0.2), PureLoss(0.3)
    plan = 2 * (a + 3 * b) + Stated(c + a, "zero-out")
    once = [(a, 1), (b, 3)]
    assert list(plan.losses_in_order()) == [*once, *once, (c, 1), (a, 1)]
    assert dict(plan.losses()) == {a: 3, b: 6, c: 1}
    assert list((4 * (2 * a)).losses_in_order()) == [(a, 8)]
    assert list((0 * a).losses_in_order()) == []
    group = Grouped(b + a + b, 2)
    assert [type(loss) for loss, _ in group.losses_in_order()] == [type(b), type(a), type(b)]
    assert list(OnePass(Stated(a + b + a, "zero-out"), 2).losses_in_order()) == [
        (a, 1), (b, 1), (a, 1)]  # fmt: skip


def test_stages_join_neighbours_and_leave_out_what_is_dominated():
    gaussian, sampled = GaussianLoss(0.5), PoissonSampled(GaussianLoss(1.0), 0.01)
    one = Parallel([gaussian, GaussianLoss(0.1)])
    unlike = Parallel([gaussian, LaplaceLoss(0.6), one])
    stages = stages_of(Sequential([one, 100 * sampled, 2 * BoundedRangeLoss(0.1), 3 * unlike]))
    joined, ranges, choices = stages
    assert joined == OnePair(Sequential([1 * gaussian, 100 * sampled]), 1)
    assert ranges == Ranges(0.1, 2)
    assert isinstance(choices, Choices)
    assert choices.count == 3
    assert len(choices.parts) == 2
    # Laplaces alone have no contour: one by one they are quick
    assert stages_of(5 * LaplaceLoss(0.3)) == (OnePair(LaplaceLoss(0.3), 5),)
    assert value_of(gaussian + one, 6) is None
    assert value_of(15_000 * (gaussian + BoundedRangeLoss(0.1)), 6) is None


def test_choices_in_a_part_are_choices_too():
    inner = Parallel([PureLoss(0.5), PairLoss([0.3, 0.7], [0.05, 0.95])])
    part = BoundedRangeLoss(0.4) + inner
    plan = 2 * Parallel([part, GaussianLoss(0.3)]) + PureLoss(0.2)
    interval = Tight().certify(plan, 1e-3)
    alone = Tight().certify(2 * part + PureLoss(0.2), 1e-3)
    assert interval.width <= 0.01 * interval.upper
    assert interval.upper >= alone.lower


@pytest.mark.parametrize("size", [3, 5])
def test_two_raised_splits_of_a_group_are_above_all_others(size, monkeypatch):
    plan = 3 * Grouped(PoissonSampled(GaussianLoss(1.0), 0.05), size)
    few = Tight().certify(plan, 1e-5)
    value_of.cache_clear()
    adaptive_choices.pairs_of_plans.cache_clear()
    monkeypatch.setattr(adaptive_choices, "two_above", lambda bounds: None)
    all_splits = Tight().certify(plan, 1e-5)
    value_of.cache_clear()
    adaptive_choices.pairs_of_plans.cache_clear()
    assert few.upper >= all_splits.upper * (1 - 2e-4)  # other points of a lattice
    assert few.upper <= all_splits.upper * 1.005
    assert few.width <= 0.01 * few.upper


def test_raised_profiles_have_means_above_the_others():
    x = np.append(0.0, np.exp(np.linspace(-2, 2, 50)))
    trivial = np.maximum(1 - x, 0.0)

    def of(mu):
        high = np.append(1.0, GaussianLoss(mu).profile_any_epsilon(np.log(x[1:])))
        return x, trivial, high

    outer, middle = [of(0.3), of(0.5)], of(0.403)
    raised = adaptive_choices.two_above([outer[0], middle, outer[1]])
    assert raised is not None
    shares = np.linspace(0, 1, 41)
    means = [s * raised[0][2] + (1 - s) * raised[1][2] for s in shares]
    assert any((mean * (1 + 1e-14) >= middle[2]).all() for mean in means)
    for (_, _, high), (_, _, before) in zip(raised, outer, strict=True):
        assert (high >= before * (1 - 1e-14)).all()
        assert (np.diff(np.diff(high) / np.diff(x)) >= -1e-13).all()
    assert adaptive_choices.two_above([outer[0], of(2.0), outer[1]]) is None


def test_deltas_and_curves_agree_with_epsilons():
    plan, tight = 5 * BoundedRangeLoss(0.5) + GaussianLoss(0.3), Tight()
    deltas = [1e-2, 1e-5, 1e-8]
    epsilons = [tight.epsilon(plan, delta) for delta in deltas]
    assert epsilons == sorted(epsilons)
    assert tight.epsilons(plan, deltas).tolist() == epsilons
    assert tight.delta(plan, epsilons[1]) == pytest.approx(1e-5, rel=1e-6)
    assert tight.delta(plan, 0.0) >= tight.delta(plan, 0.1)


def test_the_lower_ends_of_a_profile_on_a_lattice_are_below_it():
    """Of four exchanged samples a lattice gives upper bounds alone."""
    plan = 4 * PoissonSampled(GaussianLoss(1.781), 0.145, "replace-one")
    epsilons = np.array([0.01, 1.0, 5.0, 10.0])
    low, high = PlanProfile(plan).profile_bounds(epsilons)
    truth = [float(Tight(width=1e-9).delta(plan, e)) for e in epsilons]
    assert np.all(low <= truth)
    assert np.all(high >= truth)


def test_no_choice_of_two_parts_costs_more_than_the_one_that_is_above():
    above = PoissonSampled(GaussianLoss(1.781), 0.145, "replace-one")
    other = PoissonSampled(GaussianLoss(0.1274), 0.1187, "replace-one")
    chosen = Tight().certify(3 * Parallel([4 * above, other]), 2e-6)
    alone = Tight(width=1e-9).certify(12 * above, 2e-6)
    assert chosen.lower <= alone.upper
    assert alone.lower <= chosen.upper


NOISE = PoissonSampled(GaussianLoss(1.0), 0.3)
CHOICE = BoundedRangeLoss(0.5)


def random_order(seed):
    """A short plan of samples, their reverses, choices and parallel parts, in random order."""
    rng = random.Random(seed)
    releases = [
        NOISE, NOISE.reversed, CHOICE, GaussianLoss(0.7),
        Parallel([PureLoss(0.3), GaussianLoss(0.4)]),
    ]  # fmt: skip
    return Sequential([CHOICE, *(rng.choice(releases) for _ in range(rng.randint(2, 4)))])


@pytest.mark.parametrize("seed", range(8))
def test_no_direction_and_no_path_costs_more_than_is_said(seed):
    plan, delta = random_order(seed), 0.01
    upper = Tight().certify(plan, delta).upper
    for direction in (plan, plan.reversed):
        found = Direction(direction, 1e-6)
        assert found.certify(delta).lower <= upper * (1 + 1e-9)
        for path in found.choices:  # what is not the plan's own lower end is not above it either
            assert path.certify(delta).lower <= found.certify(delta).upper * (1 + 1e-9)


def test_a_group_keeps_the_order_of_its_releases():
    plan = Sequential([CHOICE, NOISE, CHOICE])
    split = Sequential(
        [BoundedRangeLoss(1.0), sampled_group_loss(NOISE, 2, 2), BoundedRangeLoss(1.0)]
    )
    assert Tight().certify(Grouped(plan, 2), 0.01).upper >= Tight().certify(split, 0.01).lower


@pytest.mark.parametrize("delta", [0.01, 1e-5])
def test_a_record_that_moves_pays_for_any_order_of_both_groups(delta):
    move = Stated(Sequential([GaussianLoss(1.0), BoundedRangeLoss(1.0)]), "add-remove")
    stay = Stated(GaussianLoss(0.1), "replace-one")
    moving = Parallel([stay, stay], by="value", moves=[move, move])
    in_turns = 2 * GaussianLoss(1.0) + 2 * BoundedRangeLoss(1.0)
    assert Tight().certify(moving, delta).upper >= Tight().certify(in_turns, delta).lower


def test_a_step_that_is_too_fine_for_floats_is_no_error():
    parts = [PoissonSampled(GaussianLoss(45.0), 0.999), PureLoss(2.0)]
    found = Tight().certify(Sequential([PureLoss(1.0), Parallel(parts)]), 0.3)
    assert 0 < found.lower <= found.upper
