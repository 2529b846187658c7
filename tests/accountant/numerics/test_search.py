"""Searches return a point that was evaluated and holds, or the end that the caller answers for."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant.numerics.search import (
    PEAK_STEPS,
    falling_root,
    furthest_that,
    geometric_mean,
    greatest_float_that,
    grow_until,
    highest_of_one_peak,
    least_float_that,
    least_integer_that,
    maximum_of_one_peak,
    minimum_of_one_valley,
    smallest_root,
)
from tests.strategies import positive_roots, seeds, signed_floats

LARGEST = 1.7976931348623157e308
NAMED = [
    (0.0, 1.0, 0.3), (0.0, 1.0, 1.0), (0.0, 1.0, 5e-324), (0.0, 5e-324, 5e-324), (2.0, 2.0, 2.0),
    (-LARGEST, LARGEST, 0.0), (-LARGEST, LARGEST, 1e308), (1e308, LARGEST, LARGEST),
    (-1.0, 0.0, -2.2e-308), (1.0, 1.0000000000000004, 1.0000000000000002), (0.0, LARGEST, 1e-310),
    (0.0, 1.0, -1.0), (0.0, 1.0, 2.0), (0.0, 1.0, math.nan), (0.0, 1.0, math.inf),
]  # fmt: skip


class Seen:
    """A predicate or function that remembers what it answered."""

    def __init__(self, function):
        self.function, self.answers = function, {}

    def __call__(self, x):
        self.answers[x] = self.function(x)
        return self.answers[x]


def noise(seed):
    """A predicate that is true here and there, the same at each asking."""
    return lambda x: bool(hash((seed, float(x))) & 2)


def check_least(low, high, threshold):
    """All that `least_float_that` promises of ``x >= threshold``, true at ``high`` or not."""
    holds = Seen(lambda x: x >= threshold)
    found = least_float_that(holds, low, high)
    assert not {low, high} & set(holds.answers)
    assert found == high or holds.answers[found] is True
    below = math.nextafter(found, -math.inf)
    assert below <= low or holds.answers[below] is False
    if low < threshold <= high:
        assert found == threshold


def check_greatest(low, high, threshold):
    """The mirror image."""
    holds = Seen(lambda x: x <= threshold)
    found = greatest_float_that(holds, low, high)
    assert not {low, high} & set(holds.answers)
    assert found == low or holds.answers[found] is True
    above = math.nextafter(found, math.inf)
    assert above >= high or holds.answers[above] is False
    if low <= threshold < high:
        assert found == threshold


@pytest.mark.parametrize(("low", "high", "threshold"), NAMED)
def test_a_threshold_is_found_to_the_float_at_any_size(low, high, threshold):
    check_least(low, high, threshold)
    check_greatest(low, high, threshold)


@given(st.lists(signed_floats, min_size=3, max_size=3).map(sorted))
def test_a_threshold_is_found_to_the_float(three):
    low, threshold, high = three
    check_least(low, high, threshold)
    check_greatest(low, high, threshold)


@given(st.lists(signed_floats, min_size=2, max_size=2).map(sorted), seeds)
def test_whatever_the_predicate_an_answer_was_seen_to_hold(ends, seed):
    for find, end in ((least_float_that, 1), (greatest_float_that, 0)):
        holds = Seen(noise(seed))
        found = find(holds, *ends)
        assert found == ends[end] or holds.answers[found] is True


@given(st.floats(1e-12, 1e3), st.floats(0, 1), st.floats(1e-14, 0.1))
def test_a_relative_distance_is_kept(high, share, relative):
    threshold = share * high
    holds = Seen(lambda x: x <= threshold)
    found = greatest_float_that(holds, 0.0, high, relative=relative)
    assert found <= threshold <= found + relative * high
    coarse = Seen(lambda x: x <= threshold)
    greatest_float_that(coarse, 0.0, high, relative=relative, steps=7)
    assert len(coarse.answers) <= 7
    assert list(coarse.answers) == list(holds.answers)[:7]


@given(st.floats(-200, 200))
def test_a_geometric_mean_finds_any_size_in_few_steps(exponent):
    threshold = 10.0**exponent
    holds = Seen(lambda x: x <= threshold)
    found = greatest_float_that(holds, 1e-250, 1e250, relative=1e-13, mean=geometric_mean)
    assert threshold * (1 - 2e-13) <= found <= threshold
    assert len(holds.answers) < 60


@given(st.lists(st.tuples(*[st.floats(-1e300, 1e300)] * 3), min_size=1, max_size=6))
def test_arrays_are_searched_elementwise_and_either_way(rows):
    start, end, threshold = np.array(rows).T
    upwards = end > start

    def holds(x):
        return np.where(upwards, x <= threshold, x >= threshold)

    found = furthest_that(holds, start, end, steps=90)
    for i in range(len(rows)):
        low, high = sorted((start[i], end[i]))
        find = greatest_float_that if upwards[i] else least_float_that
        alone = find(lambda x, i=i: bool(holds(np.full(start.size, x))[i]), low, high, steps=90)
        # the last middle may round to the end itself
        assert found[i] == alone or found[i] == end[i]
        assert found[i] == start[i] or holds(found)[i]


@given(seeds)
def test_arrays_whatever_the_predicate(seed):
    seen, draw = {}, noise(seed)

    def holds(x):
        good = np.array([draw(one) for one in x])
        seen.update(zip(x.tolist(), good.tolist(), strict=True))
        return good

    start, end = np.array([0.0, 1.0, -3.0]), np.array([1.0, 0.0, -3.0])
    for one, end_of_good in zip(furthest_that(holds, start, end).tolist(), start, strict=True):
        assert one == end_of_good or seen[one]
    assert np.array_equal(furthest_that(lambda x: x > 9, start, end), start)


@given(st.integers(-5, 10**12), st.integers(0, 10**12), st.integers(0, 10**12))
def test_integers(low, first, second):
    threshold, high = low + min(first, second), low + max(first, second)
    holds = Seen(lambda n: n >= threshold)
    found = least_integer_that(holds, low, high)
    assert found == (max(threshold, low + 1) if high > low else high)
    assert found == high or holds.answers[found]
    assert len(holds.answers) <= 41
    assert low not in holds.answers
    assert high not in holds.answers
    near = least_integer_that(lambda n: n >= threshold, low, high, one_in=1000)
    assert found <= near <= max(found + 1, found * 1.002)
    assert least_integer_that(lambda _: False, low, high) == high


@given(seeds, st.integers(1, 1000))
def test_integers_whatever_the_predicate(seed, high):
    holds = Seen(noise(seed))
    found = least_integer_that(holds, 0, high)
    assert found == high or holds.answers[found]


@given(st.integers(1, 100), st.integers(1, 10**9), seeds)
def test_growth_stops_at_the_first_that_holds(start, end, seed):
    holds = Seen(noise(seed))
    before, found = grow_until(holds, start, end)
    *others, last = holds.answers or [None]
    assert others == [start * 2**i for i in range(len(others))]
    assert not any(holds.answers[n] for n in others)
    if found < end:
        assert found == last
        assert holds.answers[found]
    else:
        assert found not in holds.answers
    assert before == (0 if found == start else found // 2)


def test_growth_of_floats():
    assert grow_until(lambda x: x > 5, 1.0, 100.0, 1.5) == (1.5**3, 1.5**4)
    assert grow_until(lambda _: False, 1.0, 100.0, 10.0) == (10.0, 100.0)
    assert grow_until(lambda _: False, 1.0, math.inf, 1e200) == (1e200, math.inf)
    assert grow_until(lambda _: True, 3.0, 2.0, 10.0) == (0.0, 3.0)


@given(st.floats(0, 1e308) | st.floats(0, 1e-300), st.booleans())
def test_the_smallest_root_is_a_float_that_holds(threshold, open_ended):
    seen = {}

    def step(x):
        value = np.where(x >= threshold, 0.0, 1.0)
        seen.update(zip(x.tolist(), value.tolist(), strict=True))
        return value

    found = smallest_root(step, 0.5, math.inf if open_ended else 1e308)
    if threshold > 2.0**995 and open_ended:
        assert found == math.inf
        return
    assert seen[found] == 0.0
    assert threshold <= found <= threshold * (1 + 4 * 2**-52) + 5e-324


def test_the_smallest_root_of_what_has_none():
    assert smallest_root(np.ones_like, 1.0, 7.0) == 0.0
    for never in (np.inf, np.nan, 2.0):
        for high in (7.0, math.inf):
            assert smallest_root(lambda x, v=never: np.full(x.shape, v), 1.0, high) == math.inf
    assert smallest_root(lambda x: np.where(x < 3, np.inf, -np.inf), 0.0, 7.0) == 3.0
    assert smallest_root(lambda x: np.where(x < 3, np.nan, 0.0), 0.0, math.inf) == 3.0


@given(
    positive_roots, st.floats(1e-3, 1e3), st.floats(0, 2e3), st.floats(1e-3, 1e3), st.integers(0, 3)
)
def test_a_falling_root_was_seen_not_to_exceed(root, rate, start, tilt, kind):
    shapes = (
        lambda e: rate * (root - e),
        lambda e: math.inf if e < root else -math.inf,
        lambda e: math.nan if e < root / 2 else rate * (root - e),
        lambda e: 1.0 if e < root else -1.0,
    )
    excess = Seen(shapes[kind])
    found, _ = falling_root(excess, start, tilt, 1e4)
    assert found == 1e4 or excess.answers[found] <= 0
    assert root <= found
    if kind < 3:  # a step without a slope is not closed in on
        assert found <= root * (1 + 1e-9) + 1e-12 / rate


def test_zero_is_asked_for_only_where_a_search_goes_there():
    for start, asked in ((0.1, False), (1.5, False), (4.0, False)):
        seen = Seen(lambda e: 1.0 - e)
        falling_root(seen, start, 1.0, 1e4)
        assert (0.0 in seen.answers) == asked
    seen = Seen(lambda e: -0.5 - e)
    assert falling_root(seen, 4.0, 1.0, 1e4)[0] == 0.0
    assert list(seen.answers) == [4.0, 0.0]


def test_a_falling_root_beyond_the_end_is_the_end():
    for never in (1.0, math.inf, math.nan):
        assert falling_root(lambda _, v=never: v, 0.1, 1.0, 5.0)[0] == 5.0
    assert falling_root(lambda _: -1.0, 0.1, 1.0, 5.0) == (0.0, 1.0)


@given(st.floats(-13, 20), st.floats(0.1, 3), st.floats(-1, 1))
def test_a_valley_is_found_and_its_least_was_seen(log_place, power, depth):
    seen = {}

    def valley(a):
        value = depth + np.abs(np.log(a) - log_place) ** power
        seen.update(zip(a.tolist(), value.tolist(), strict=True))
        return value

    place, least = minimum_of_one_valley(valley)
    assert place in seen
    assert least == min(seen.values())
    assert abs(math.log(place) - log_place) < 1e-4


def test_a_valley_with_gaps():
    place, least = minimum_of_one_valley(
        lambda a: np.where(a < 2, np.nan, np.where(a > 50, np.inf, a)), 0.1, 100.0, (31, 31, 31)
    )
    assert 2 <= place == pytest.approx(2, rel=1e-2)
    assert least == place
    assert minimum_of_one_valley(lambda a: np.full(a.shape, np.nan))[1] == math.inf


@given(st.floats(-150, 0), st.floats(1e-2, 5), st.floats(1e-100, 1e100))
def test_a_peak_is_found_and_was_seen(log_share, width, high):
    peak = math.log(high) + log_share
    f = Seen(lambda x: math.exp(-(((math.log(x) - peak) / width) ** 2)))
    value, place = maximum_of_one_peak(f, high)
    assert f.answers[place] == value == max(f.answers.values())
    assert max(f.answers) <= high
    if width > 1:  # seen from the ladder
        assert value > 1 - 1e-12


@given(seeds, st.sampled_from([1e-320, 1e-300, 1.0, 1e300]))
def test_a_peak_of_anything_was_seen(seed, high):
    values = [math.nan, math.inf, -math.inf, 0.0, -1.0, LARGEST, 5e-324]
    f = Seen(lambda x: values[hash((seed, x)) % len(values)])
    value, place = maximum_of_one_peak(f, high)
    assert 0 < place <= high
    assert f.answers[place] == value == max(v for v in f.answers.values() if not math.isnan(v))
    assert maximum_of_one_peak(lambda _: math.nan, high) == (-math.inf, high)


def test_a_falling_root_takes_few_steps_and_gives_the_slope():
    excess = Seen(lambda e: math.exp(3 - 0.3 * e) - math.exp(0.6))
    found, slope = falling_root(excess, 1.0, 50.0, 1e4)
    assert found == pytest.approx(8.0, rel=1e-9)
    assert slope == pytest.approx(0.3 * math.exp(0.6), rel=0.05)
    assert len(excess.answers) < 20


PEAKS = {
    "a parabola": lambda d: -d * d,
    "a corner": lambda d: -np.abs(d),
    "two slopes": lambda d: np.where(d > 0, -9 * d, d),
    "a bell": lambda d: np.exp(-d * d),
    "a flat top": lambda d: -(d**4),
    "a cliff": lambda d: np.where(d > 0, -np.expm1(9 * d), d),
    "a waist": lambda d: -(np.abs(d) ** 1.3),
}


@pytest.mark.parametrize("kind", PEAKS)
def test_peaks_are_found_in_few_steps_within_their_brackets(kind):
    rng, asked = np.random.default_rng(4), []
    peak = rng.uniform(-3, 3, 60)
    low, high = peak - rng.uniform(1e-3, 2, 60), peak + rng.uniform(1e-3, 2, 60)

    def height(x, parameter):
        asked.append((x, parameter))
        return PEAKS[kind](x - parameter)

    middle = low + (high - low) * rng.uniform(0.3, 0.7, 60)
    values = np.array([PEAKS[kind](x - peak) for x in (low, middle, high)])
    is_bracket = (values[1] >= values[0]) & (values[1] >= values[2])
    points, values, peak = (
        rows[..., is_bracket] for rows in (np.array([low, middle, high]), values, peak)
    )
    place, highest = highest_of_one_peak(height, peak, points, values)
    for x, parameter in asked:
        which = np.searchsorted(np.sort(peak), parameter)
        rows = np.argsort(peak)[which]
        assert ((x > points[0, rows]) & (x < points[2, rows])).all()
    assert np.array_equal(highest, PEAKS[kind](place - peak))
    assert (highest >= values[1]).all()
    assert highest == pytest.approx(PEAKS[kind](0 * peak), abs=1e-6)
    # Of a parabola the first vertex is the peak, and the second promises no rise.
    assert len(asked) <= (2 if kind == "a parabola" else PEAK_STEPS - 10)
