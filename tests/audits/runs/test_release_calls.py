"""Every way to write a release: its arguments, its copies of the value, what runs it."""

import asyncio
import functools
import random

import numpy as np
import pytest

from accountant import ParameterError, PureLoss
from audits import audit, audit_atoms
from audits.claims.findings import Outcome
from audits.runs.release_functions import call_form, vectorised

ONE = PureLoss(1.0)


class Holder:
    def method(self, value, rng, size):
        return value + rng.laplace(size=size)

    def __call__(self, value, rng):
        return value + rng.laplace()


class AwaitedHolder:
    async def __call__(self, value, rng):
        return value + rng.laplace()


def own(value):
    return value + random.gauss(0, 1)


def own_with_scale(value, scale=2.0):
    return value + random.gauss(0, scale)


def own_with_size(value, *, size):
    return value + np.zeros(size)


def looped(value, rng):
    return value + rng.laplace()


def by_name(value, *, rng):
    return value + rng.laplace()


def both_by_name(value, *, rng, size):
    return value + rng.laplace(size=size)


def behind(value, scale=1.0, rng=None):
    return value + rng.laplace(scale=scale)


def size_first(value, size, rng):
    return value + rng.laplace(size=size)


def by_place(value, source, count):
    return value + source.laplace(size=count)


def with_scale(value, scale, rng, size):
    return value + rng.laplace(scale=scale, size=size)


def random_state(value, random_state=0):
    return value + np.random.default_rng(random_state).laplace()


async def awaited(value, rng):
    await asyncio.sleep(0)
    return value + rng.laplace()


async def awaited_many(value, rng, size):
    return value + rng.laplace(size=size)


def anything(*given):
    return given[0] + given[1].laplace()


REPEATED = [
    looped, by_name, both_by_name, behind, size_first, by_place, Holder().method, Holder(), awaited,
    awaited_many, AwaitedHolder(), anything, random_state, functools.partial(with_scale, scale=1.0),
    functools.partial(awaited), lambda value, rng: value + rng.laplace(),
]  # fmt: skip


@pytest.mark.parametrize("release", REPEATED, ids=lambda one: getattr(one, "__name__", "object"))
def test_a_generator_repeats_the_release_however_it_is_taken(release):
    draw = vectorised(release)
    first, again, other = (draw(2.0, np.random.default_rng(seed), 7) for seed in (1, 1, 2))
    assert first.shape == (7,)
    assert (first == again).all()
    assert not (first == other).any()


@pytest.mark.parametrize("release", [own, own_with_scale, own_with_size, random.gauss,
                                     np.random.default_rng(1).laplace, float, abs])  # fmt: skip
def test_a_release_may_draw_by_itself(release):
    assert vectorised(release)(2.0, np.random.default_rng(1), 5).shape == (5,)


def test_a_function_of_c_without_a_signature_is_tried_both_ways():
    assert vectorised(max)([1, 3], np.random.default_rng(1), 2).tolist() == [3, 3]


OBJECTS = [{"x": 1}, {"x": 2}, {"x": 3}]
# what a function of (value, rng, size) returned for three runs, and its outputs
MANY = [
    (np.array([1.0, 2.0, 3.0]), [1.0, 2.0, 3.0]), ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]),
    ((1.0, 2.0, 3.0), [1.0, 2.0, 3.0]), (range(3), [0, 1, 2]),
    (OBJECTS, OBJECTS), (["a", "bc", "a\0"], ["a", "bc", "a\0"]), ([1, "a", None], [1, "a", None]),
    ([np.array([1, 2]), np.array([3, 4]), np.array([5, 6])], [[1, 2], [3, 4], [5, 6]]),
    ((np.array([1, 2, 3]), np.array(["a", "b", "c"])), [(1, "a"), (2, "b"), (3, "c")]),
    (np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False]), [1.0, np.ma.masked, 3.0]),
]  # fmt: skip


@pytest.mark.parametrize(("many", "outputs"), MANY)
def test_outputs_of_many_runs_may_be_written_in_many_ways(many, outputs):
    drawn = vectorised(lambda value, rng, size: many)(0.0, np.random.default_rng(1), 3)
    assert len(drawn) == 3
    if any(output is np.ma.masked for output in outputs):
        assert [output is np.ma.masked for output in drawn] == [False, True, False]
    else:
        assert drawn.tolist() == outputs


@pytest.mark.parametrize(
    "many",
    [[1.0, 2.0], np.ones((2, 3)), 1.0, None, (), (np.ones(3), np.ones(4)), [[1.0], [2.0, 3.0]]],
)  # fmt: skip
def test_outputs_that_are_not_one_for_each_run_are_refused(many):
    draw = vectorised(lambda value, rng, size: many)
    with pytest.raises(ParameterError, match="one output for each of 3 runs"):
        draw(0.0, np.random.default_rng(1), 3)


def of_any_options(value, **options):
    return value + options["rng"].random()


def of_size_and_any_options(value, size, **options):
    return np.full(size, value + options["rng"].random())


def passes_options_on(value, **options):
    return _without_rng(value, **options)


def _without_rng(value, scale=1.0):
    return value * scale


@pytest.mark.parametrize("release", [of_any_options, of_size_and_any_options, passes_options_on])
def test_a_release_of_any_options_gets_rng_if_it_takes_it(release):
    draw = vectorised(release)
    first, again = (draw(2.0, np.random.default_rng(1), 3) for _ in range(2))
    assert first.tolist() == again.tolist()


@pytest.mark.parametrize("release", [3, lambda: 0, with_scale, lambda value, scale, *, rng, more: 0,
                                     lambda *, value: 0])  # fmt: skip
def test_a_call_that_cannot_be_made_is_refused_with_the_remedy(release):
    with pytest.raises(ParameterError, match=r"functools\.partial gives its other arguments"):
        call_form(release)


def test_no_message_shows_what_is_bound_to_a_release():
    with pytest.raises(ParameterError) as error:
        call_form(functools.partial(lambda value, data, more, rng: 0, data=["Alice"]))
    assert "Alice" not in str(error.value)


def test_an_awaited_release_is_audited_inside_an_event_loop_too():
    async def inside():
        return audit(awaited, (0.0, 4.0), ONE, runs=300, rng=1), vectorised(awaited_many)(
            0.0, np.random.default_rng(1), 3
        )

    finding, many = asyncio.run(inside())
    assert finding.outcome is Outcome.FALSIFIED
    assert many.shape == (3,)
    same = audit(awaited, (0.0, 4.0), ONE, runs=300, rng=1)
    assert same.guesses == finding.guesses


@pytest.mark.parametrize("release", [looped, awaited, awaited_many, by_place, by_name])
def test_the_audit_of_structure_takes_them_too(release):
    assert audit_atoms(release, (0.0, 1.0), 1.0, runs=200, rng=1).outcome is Outcome.SURVIVED


# honest code that works in place: 10 numbers in [0, 1], of which one differs
DATA = np.linspace(0.1, 1.0, 10)


def added_in_place(value, rng):
    value += rng.laplace(scale=2.0, size=value.shape)
    return value.sum()


def sorted_in_place(value, rng):
    value.sort()
    return value[::-1].sum() + rng.laplace()


def shuffled_in_place(value, rng):
    rng.shuffle(value)
    return value.sum() + rng.laplace()


def clipped_in_place(value, rng):
    np.clip(value, 0, 0.5, out=value)
    value *= 2
    return value.sum() + rng.laplace()


def many_in_place(value, rng, size):
    value *= 0.5
    return value.sum() + rng.laplace(size=size)


def drained(value, rng):
    total = 0.0
    while value:
        total += value.pop()
    return total + rng.laplace()


def counted(value, rng):
    value["seen"] = value.get("seen", 0.0) + 1
    return value["x"] + value["seen"] + rng.laplace()


def frame_in_place(value, rng):
    value["x"] = value["x"].clip(0, 1)
    value["seen"] = value.get("seen", 0.0) + 1
    return float(value["x"].sum() + value["seen"].mean() + rng.laplace())


def in_place_pairs():
    """Every specimen, as (release, pair); each is 1-private on its pair."""
    other = DATA.copy()
    other[-1] = 0.0
    arrays = [added_in_place, sorted_in_place, shuffled_in_place, clipped_in_place, many_in_place]
    rows = [(release, (DATA.copy(), other.copy())) for release in arrays]
    rows.append((drained, (DATA.tolist(), DATA[:-1].tolist())))
    rows.append((counted, ({"x": 0.0}, {"x": 1.0})))
    return rows


@pytest.mark.parametrize(("release", "pair"), in_place_pairs(), ids=lambda one: "")
def test_honest_code_that_works_in_place_survives_and_is_named(release, pair):
    before = [repr(value) for value in pair]
    found = audit(release, pair, ONE, runs=2000, confidence=1 - 1e-6, rng=1)
    assert found.outcome is Outcome.SURVIVED
    assert [repr(value) for value in pair] == before
    assert found.notes == (
        "The release changes the value that it receives; every call had a copy of its own.",
    )


@pytest.mark.slow
def test_false_alarms_of_code_that_works_in_place_keep_their_rate():
    from scipy.stats import binom

    alarms = sum(
        audit(release, pair, ONE, runs=500, confidence=0.9, rng=seed).outcome is Outcome.FALSIFIED
        for release, pair in in_place_pairs()
        for seed in range(300)
    )
    print(f"in place: {alarms} of {300 * len(in_place_pairs())} fell")
    assert alarms <= binom.isf(1e-6, 300 * len(in_place_pairs()), 0.1)


def test_frames_are_copied_for_each_call():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": np.arange(5.0)})
    found = audit(
        frame_in_place, (frame, frame.iloc[1:]), 1.0, runs=100, confidence=1 - 1e-6, rng=1
    )
    assert found.outcome is not Outcome.FALSIFIED
    assert frame.shape == (5, 1)
    assert len(found.notes) == 1
