"""V backwards through exponential mechanisms, and its bounds between the points of the lattice."""

import itertools
import math
import random

import mpmath
import numpy as np
import pytest

from accountant import BoundedRangeLoss
from accountant.accountants import advanced
from accountant.composition.grid_pairs import PairOnGrid
from accountant.composition.tilted_law import GridLaw
from accountant.composition.value_function import BellmanStep, ValueFunction, greatest

CELLS = 16


def after_all(step):
    return ValueFunction.after_all(step, negligible=1e-15)


def on_lattice(step, losses, masses):
    """A pair on the lattice, which is both the pair below and the pair above."""
    row = np.zeros(max(losses) - min(losses) + 1)
    row[np.array(losses) - min(losses)] = masses
    pair = PairOnGrid(GridLaw(step, min(losses), 0.0, row, 1), 0.0, 0.0, 0.0)
    return pair, pair


@pytest.mark.parametrize("e0", [1e-6, 0.3, 4.0])
def test_one_exponential_mechanism_has_its_profile(e0):
    value, loss = after_all(e0 / 64).before_ranges(e0, 1), BoundedRangeLoss(e0)
    for share in (0.0, 0.3, 0.77, 0.999):
        truth = float(loss.profile(share * e0))
        low, high = value.delta_bounds(share * e0)
        assert low <= truth * (1 + 1e-12) <= high * (1 + 2e-12)
        assert high - low < 0.1 * loss.profile(0.0)
        if truth > 1e-6 * e0:
            lower, upper = value.epsilon_bounds(truth)
            assert lower <= share * e0 * (1 + 1e-9) <= upper * (1 + 2e-9)
            assert upper - lower < 0.02 * e0


def test_two_exponential_mechanisms_follow_the_first_answer():
    e0, epsilon = 0.8, 0.7
    t = np.linspace(0.0, e0, 2001)
    p = np.expm1(t - e0) / math.expm1(-e0)
    loss = BoundedRangeLoss(e0)
    truth = np.max(
        p * loss.profile_any_epsilon(epsilon - t)
        + (1 - p) * loss.profile_any_epsilon(epsilon - t + e0)
    )
    low, high = after_all(e0 / 128).before_ranges(e0, 2).delta_bounds(epsilon)
    assert low <= truth * (1 + 1e-6)
    assert truth <= high
    assert high < low * 1.02


def test_a_release_of_one_pair_is_summed_without_error():
    step, p = 0.01, np.array([0.15, 0.5, 0.35])
    losses = [-40, 3, 25]
    value = after_all(step)
    for _ in range(3):
        value = value.before_release(*on_lattice(step, losses, p))
    for epsilon in (0.0, 0.11, 0.5, 0.74):
        truth = math.fsum(
            float(np.prod(p[list(path)]))
            * -math.expm1(min(0.0, epsilon - step * sum(losses[i] for i in path)))
            for path in itertools.product(range(3), repeat=3)
        )  # fmt: skip
        low, high = value.delta_bounds(epsilon)
        assert low <= truth <= high
        if round(epsilon / step) == pytest.approx(epsilon / step, abs=1e-9):
            assert high == pytest.approx(truth, rel=1e-3)


def test_tiny_deltas_have_their_digits():
    step = 0.05
    value = ValueFunction.after_all(step, negligible=1e-40)
    for _ in range(40):
        value = value.before_release(*on_lattice(step, [-1, 1], [0.48, 0.52]))
    # all losses are 1 step, and the least sum that is above epsilon
    truth = 0.52**40 * -math.expm1(-step)
    low, high = value.delta_bounds(39 * step)
    assert low <= truth <= high
    assert high == pytest.approx(truth, rel=1e-9)


def test_a_choice_is_made_with_the_answer_before_it():
    step = 0.1
    # Q has at most the mass 1 of each
    one, other = on_lattice(step, [-20, 1], [0.015, 0.985]), on_lattice(step, [-1, 30], [0.9, 0.1])
    after = after_all(step)
    choice = greatest([after.before_release(*one), after.before_release(*other)])
    value = choice.before_release(*one)
    fixed = [after.before_release(*pair).before_release(*one) for pair in (one, other)]
    at = 0.3
    assert value.delta_bounds(at)[1] >= max(v.delta_bounds(at)[1] for v in fixed) * (1 - 1e-12)
    truth = sum(
        mass
        * max(after.before_release(*p).delta_bounds(at - step * loss)[0] for p in (one, other))
        for mass, loss in ((0.015, -20), (0.985, 1))
    )  # fmt: skip
    low, high = value.delta_bounds(at)
    assert low * (1 - 1e-9) <= truth * (1 + 1e-9)
    assert high == pytest.approx(truth, rel=0.05)


def test_an_infinite_loss_stays():
    step = 0.1
    below, above = on_lattice(step, [0], [0.9])
    below = above = PairOnGrid(above.law, 0.1, 0.0, 0.0)
    value = after_all(step).before_release(below, above).before_release(below, above)
    assert value.limit == pytest.approx(0.19, rel=1e-12)
    low, high = value.delta_bounds(5.0)
    assert low <= 0.19 <= high
    assert value.epsilon_bounds(0.1) == (pytest.approx(0.0, abs=math.inf), math.inf)
    assert value.epsilon_bounds(0.2)[1] <= 0.1


@pytest.mark.parametrize(("e0", "seed"), [(3e-4, 1), (0.05, 2), (1.0, 3), (6.0, 4)])
def test_a_step_of_the_recursion_is_never_below_the_supremum(e0, seed):
    """Against all t on a fine grid, with the same chords of V, in 50 digits."""
    rng = random.Random(seed)
    with mpmath.workdps(50):
        h, c = mpmath.mpf(e0) / CELLS, mpmath.exp(-mpmath.mpf(e0))
        grid = [h * k for k in range(-2 * CELLS, 4 * CELLS)]
        # sums of hockey sticks, which are convex in e^epsilon
        sticks = [(e0 * rng.uniform(-2, 6), 10 ** rng.uniform(-12, 0)) for _ in range(6)]
        exact = [sum(w * max(0, 1 - mpmath.exp(e - t)) for t, w in sticks) for e in grid]
        wide = np.array([float(value / exact[0]) for value in exact])
        found = BellmanStep(e0, CELLS)(wide)
        values = [mpmath.mpf(value) for value in wide.tolist()]

        def chord(cell, y):
            share = mpmath.expm1(-y) / mpmath.expm1(-h)
            return values[cell] + share * (values[cell - 1] - values[cell])

        for place in rng.sample(range(len(found)), 12):
            greatest = mpmath.mpf(0)
            for i, q in itertools.product(range(CELLS), range(9)):
                y = h * q / 8
                over, cell = mpmath.exp(i * h + y) * c, place + CELLS + 1 - i
                value = (1 - over) * chord(cell, y)
                value += (over - c) * chord(cell + CELLS, y)
                greatest = max(greatest, value / (1 - c))
            assert min(greatest, 1) <= mpmath.mpf(float(found[place])) <= greatest * 1.001


def exact_delta_in_advance(e0, count, epsilon):
    """Dong, Durfee & Rogers (2020), Theorem 2, in 60 digits."""
    with mpmath.workdps(60):
        e0, epsilon, greatest = mpmath.mpf(e0), mpmath.mpf(epsilon), mpmath.mpf(0)
        for i in range(count + 1):
            t = min((epsilon + (i + 1) * e0) / (count + 1), e0)
            p, delta = mpmath.expm1(t - e0) / mpmath.expm1(-e0), mpmath.mpf(0)
            for low in range(count + 1):
                loss = count * t - low * e0
                if loss > epsilon:
                    mass = mpmath.binomial(count, low) * p ** (count - low) * (1 - p) ** low
                    delta -= mass * mpmath.expm1(epsilon - loss)
            greatest = max(greatest, delta)
        return greatest


@pytest.mark.parametrize(
    ("e0", "count", "delta"),
    [
        (0.004799672178501929, 10, 1.1847368497858174e-250),
        (3.805867400147084, 5, 7.342174296496141e-115),
        (0.5, 3, 1e-6),
    ],
)
def test_epsilon_in_advance_is_rounded_up_near_the_largest_loss(e0, count, delta):
    epsilon = advanced.nonadaptive_epsilon(e0, count, delta)
    assert exact_delta_in_advance(e0, count, epsilon) <= delta
