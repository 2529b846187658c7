"""Features of any output: what is distinguished, what is refused, and that chunks do not matter."""

import datetime
import math
import types
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from accountant import ParameterError, PureLoss
from audits import Outcome, audit
from audits.classifiers.feature_schema import infer_schema
from audits.classifiers.model_candidates import model_candidates
from audits.classifiers.output_features import (
    extract_features,
    output_features,
    summary_columns,
)
from audits.classifiers.output_walk import array_bytes
from audits.classifiers.screening import number_rows
from audits.runs.release_functions import (
    RaisedOutcome,
    as_output_array,
    concatenate_outputs,
    vectorised,
)

ONE = PureLoss(1.0)


@dataclass
class Answer:
    value: float
    note: str | None = None


class Opaque:
    __slots__ = ()


class Rude:
    @property
    def __dict__(self):
        raise RuntimeError("do not look")


class Told:
    def yes(self):
        """One answer."""

    def no(self):
        """Another one."""


class Held:
    def __init__(self, **fields):
        self.__dict__.update(fields)


DIFFERENT = [
    None,
    True,
    1,
    1.0,
    "1",
    b"1",
    (1,),
    [1],
    {1},
    {1: 1},
    1 + 0j,
    float("nan"),
    float("inf"),
    "",
    (1, None),
    (None, 1),
    [[1], [2]],
    [[1, 2]],
    Answer(1.0),
    Answer(1.0, "x"),
    Held(a=1),
    Held(b=1),
    RaisedOutcome("ValueError"),
    RaisedOutcome("KeyError"),
    np.arange(2),
    np.arange(2.0),
    10**400,
    -0.0,
    0.0,
    Opaque(),
    Told().yes,
    Told().no,
]


def test_different_outputs_are_different_atoms():
    found = extract_features(as_output_array(DIFFERENT))
    assert np.unique(found.category).size == len(DIFFERENT)


@pytest.mark.parametrize("output", [*DIFFERENT, Rude()], ids=lambda x: type(x).__name__)
def test_equal_outputs_are_one_atom(output):
    found = extract_features(as_output_array([output, None, output]))
    assert found.category[0] == found.category[2]
    assert found.structure[0] == found.structure[2]


def test_objects_without_features_tell_their_type_alone():
    found = extract_features(
        as_output_array([Opaque(), Opaque(), object(), object(), float("nan"), float("nan")])
    )
    assert np.unique(found.category).size == 3


def test_cycles_end():
    knot = [1.0]
    knot.append(knot)
    assert extract_features(as_output_array([knot, knot])).numbers[0, 0] == 1.0


def test_structure_is_apart_from_numbers():
    found = extract_features(as_output_array([(1.0, None), (2.0, None), (None, 1.0)]))
    assert found.structure[0] == found.structure[1] != found.structure[2]
    assert found.numbers[:, 0].tolist() == [1.0, 2.0, 1.0]


UTC = datetime.UTC
BERLIN = datetime.timezone(datetime.timedelta(hours=1))
NUMBERS = [
    (datetime.time(1, 2, 3, 500_000), [3723.5]),
    # dates and their clock: the second of the day, and the nanoseconds within the second
    (datetime.datetime(1970, 1, 2, 0, 0, 1, 250_000, UTC), [86_401.25, 1.0, 250e6, 1.0, 2.0]),
    (datetime.datetime(1970, 1, 2, 1, 0, 1, 250_000, BERLIN), [86_401.25, 1.0, 250e6, 1.0, 2.0]),
    (datetime.datetime(1969, 12, 31, 23, 59, 59), [-1.0, 86_399.0, 0.0, 12.0, 31.0]),
    (np.datetime64("1970-01-02T00:01:01.5", "ms"), [86_461_500.0, 61.0, 500.0, 1.0, 2.0]),
    (np.datetime64("1969-12-31T23:59:59.25", "us"), [-750e3, 86_399.0, 250e3, 12.0, 31.0]),
    (np.datetime64("2024-01-02"), [19_724.0, 1.0, 2.0]),  # a day has no clock
    (np.datetime64("2024-05"), [652.0, 5.0]),  # a month has no day
    ((1 << 60) + 7, [float(1 << 60), float(((1 << 60) + 7) % 604_800_000)]),
    (b"\x01\x02", [2.0, 1.0, 2.0]),
    ("0102ff0304", [10.0, 102.0, 304.0, 5.0, 1.0, 2.0, 255.0, 3.0, 4.0]),  # and its bytes
    (datetime.date(1, 1, 3), [3.0, 1.0, 3.0]),
    (datetime.timedelta(-1, 2, 500_000), [-86_397.5]),
    (Decimal("-2.50"), [-2.5]),
    (Fraction(3, 4), [0.75]),
    (2.5 - 1j, [2.5, -1.0]),
    (np.complex64(2.5 - 1j), [2.5, -1.0]),
    (np.int8(-3), [-3.0]),
    (True, [1.0]),
    ("at -2.5 or 1e3", [14.0, -2.5, 1000.0]),
    (range(2, 9, 3), [2.0, 9.0, 3.0]),
    (slice(2, 9, 3), [2.0, 9.0, 3.0]),
    ([1, (2.5, {"a": 3})], [1.0, 2.5, 3.0]),
]


def test_no_time_has_no_clock():
    times = np.array(["NaT", "1970-01-01T00:01"], "datetime64[s]")
    expected = [np.nan, 60.0, *[np.nan] * 4, 60.0, 0.0, 1.0, 1.0]
    assert np.array_equal(output_features(times).numbers, expected, equal_nan=True)


@pytest.mark.parametrize(("output", "numbers"), NUMBERS, ids=lambda one: str(one)[:30])
def test_the_numbers_of_an_output_are_those_that_it_stands_for(output, numbers):
    assert output_features(output).numbers.tolist() == numbers


def test_texts_that_no_encoding_has_are_distinguished_as_others_are():
    # Half of a surrogate pair, as `os.fsdecode` puts it in the place of a byte that is no text.
    texts = ["\ud800", "\udcff", "?"]
    outputs = [*texts, *({text: 1.0} for text in texts), *map(RaisedOutcome, texts)]
    outputs += [types.SimpleNamespace(**{text: 1.0}) for text in texts]
    found = extract_features(as_output_array(outputs))
    assert np.unique(found.structure).size == len(outputs)


def test_texts_beside_the_same_numbers_are_different_structures():
    outputs = [output for output, _ in NUMBERS] + ["after -2.5 or 1e3", [(1, 2.5), {"a": 3}]]
    assert len({output_features(output).structure for output in outputs}) == len(outputs)


def test_summaries_of_a_vector():
    row = summary_columns(np.array([[2.0, 2.0, -3.0, 7.0]]))[0]
    total, top, least, where_top, where_least, first, there, ties = row[:8]
    assert (total, top, least, where_top, where_least) == (8.0, 7.0, -3.0, 3.0, 2.0)
    assert (first, there, ties) == (2.0, -3.0, 2.0)


@pytest.mark.parametrize(
    "outputs",
    [np.array([1.0, 2.0, -0.0]), np.array([True, False]), np.arange(6).reshape(2, 3),
     np.array([2**60, 2**60 + 1]), np.eye(2, dtype=np.float32), np.array([1j, 2j]),
     np.array([[1.0, np.nan]]), np.zeros((2, 0))],
    ids=repr,
)  # fmt: skip
def test_features_of_an_output_do_not_depend_on_the_others(outputs):
    mixed = as_output_array([*outputs, None])
    assert mixed.dtype == object
    alone, beside = extract_features(outputs), extract_features(mixed)
    assert alone.category.tolist() == beside.category[:-1].tolist()
    assert alone.structure.tolist() == beside.structure[:-1].tolist()
    for features in (alone, beside):
        schema = infer_schema(features, features)
        matrices = schema.feature_matrix(outputs), schema.feature_matrix(mixed)[:-1]
        assert np.array_equal(*matrices, equal_nan=True)


@pytest.mark.parametrize(
    "draw",
    [lambda rng, n: rng.integers(0, 2, (n, 2)), lambda rng, n: rng.integers(0, 2, n),
     lambda rng, n: rng.random(n) < 0.5, lambda rng, n: rng.random(n).astype(np.float32),
     lambda rng, n: rng.normal(size=n) + 1j],
)  # fmt: skip
@pytest.mark.parametrize(
    "odd", [None, RaisedOutcome("ValueError"), 10**400], ids=["none", "error", "great"]
)
def test_a_score_of_an_output_does_not_depend_on_the_others(draw, odd):
    rng = np.random.default_rng(0)
    first, second, outputs = draw(rng, 60), draw(rng, 60), draw(rng, 8)
    mixed = as_output_array([*outputs, odd])
    for candidate in model_candidates(first, second):
        score = candidate.train([*range(len(candidate.folds))])
        alone, beside = (score(candidate.extract(each)) for each in (outputs, mixed))
        assert np.array_equal(alone, beside[:-1])


def test_draws_of_different_kinds_are_joined_as_objects():
    both = concatenate_outputs([np.zeros(2), np.array(["a"])])
    assert both.dtype == object
    assert both.tolist() == [0.0, 0.0, "a"]


def unsure(v, rng, tell, hide):
    """What tells comes from the second value with chance 0.6, from the first with 0.1."""
    return tell if rng.random() < (0.6 if v else 0.1) else hide


EVENTS = {
    "strings": lambda v, rng: unsure(v, rng, "yes", "no"),
    "None": lambda v, rng: unsure(v, rng, None, rng.normal()),
    "a part of a tuple": lambda v, rng: (rng.normal(), unsure(v, rng, 1, 2)),
    "length": lambda v, rng: [rng.normal()] * unsure(v, rng, 3, 4),
    "length of arrays": lambda v, rng: rng.normal(size=unsure(v, rng, 3, 4)),
    "type": lambda v, rng: unsure(v, rng, 1, 1.0),
    "dtype": lambda v, rng: np.zeros(2, unsure(v, rng, np.float32, np.float64)),
    "an object": lambda v, rng: Answer(rng.normal(), unsure(v, rng, "a", None)),
    "a key": lambda v, rng: {unsure(v, rng, "a", "b"): rng.normal()},
    "exception": lambda v, rng: 1 / unsure(v, rng, 0, 1),
    "missing": lambda v, rng: unsure(v, rng, math.nan, rng.normal()),
    "infinite": lambda v, rng: unsure(v, rng, math.inf, rng.normal()),
    "sign of zero in a pair": lambda v, rng: (0, unsure(v, rng, -0.0, 0.0)),
    "great integers": lambda v, rng: unsure(v, rng, 10**30, 10**30 + 1),
    "complex": lambda v, rng: complex(rng.normal(), unsure(v, rng, 1, 2)),
    "the greatest of five": lambda v, rng: rng.permutation([unsure(v, rng, 9.0, 5.0), 1, 2, 3, 4]),
    "order": lambda v, rng: unsure(v, rng, (1, 2), (2, 1)),
}


@pytest.mark.parametrize("name", EVENTS)
def test_whatever_tells_is_found(name):
    found = audit(EVENTS[name], (0, 1), ONE, runs=3000, confidence=1 - 1e-6, rng=1)
    assert found.outcome is Outcome.FALSIFIED
    assert found.epsilon_lower < math.log(6)


def test_columns_of_a_vectorised_function():
    def release(v, rng, size):
        return rng.normal(size=size), v + rng.laplace(scale=0.3, size=size)

    assert audit(release, (0, 1), ONE, runs=3000, rng=1).outcome is Outcome.FALSIFIED


def test_types_that_differ_between_the_sides_tell():
    def release(v, rng, size):
        return rng.integers(0, 2, size).astype(float if v else int)

    assert audit(release, (0, 1), ONE, runs=3000, rng=1).outcome is Outcome.FALSIFIED


def test_something_unseen_after_learning_is_no_guess():
    late = iter([0.0] * 1500 + [None, "late", (1, 2), Opaque()] * 1000)
    found = audit(lambda v, rng: next(late), (0, 1), ONE, runs=2500, rng=1)
    assert found.outcome is Outcome.SURVIVED


def test_a_function_that_always_raises_is_refused_with_its_place():
    def broken(v, rng):
        raise KeyError("no such column")

    with pytest.raises(
        ParameterError, match=r"KeyError in every run, at test_output_features\.py:"
    ):
        audit(broken, (0, 1), ONE, runs=1000, rng=1)


def test_a_vectorised_function_that_raises_is_refused_with_its_place():
    def broken(v, rng, size):
        raise ZeroDivisionError("twice")

    with pytest.raises(ParameterError, match=r"ZeroDivisionError at test_output_features\.py:"):
        audit(broken, (0, 1), ONE, runs=1000, rng=1)


def test_no_refusal_shows_a_record_that_an_exception_names():
    def refuses(v, rng):
        raise KeyError(v[0])

    def refuses_many(v, rng, size):
        raise KeyError(v[0])

    for release in (refuses, refuses_many):
        with pytest.raises(ParameterError) as caught:
            audit(release, (["a secret name"], ["a secret name", "b"]), ONE, runs=1000, rng=1)
        assert "secret" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None or caught.value.__suppress_context__
    # exceptions that differ are outcomes, and no message shows them
    assert "secret" not in str(audit(refuses, (["a secret name"], ["b"]), ONE, runs=1000, rng=1))


def test_interrupts_are_no_outcomes():
    def stopped(v, rng):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit(stopped, (0, 1), ONE, runs=1000, rng=1)


@pytest.mark.parametrize(
    "pair",
    [("a", "b"), ({"x": 1}, {"x": 2}), (None, 0), ([[1], [1, 2]], [1, 2]), (1.0, [1.0, 2.0]),
     ([1.0], [[1.0]])],
)  # fmt: skip
def test_values_of_any_kind_make_a_pair(pair):
    found = audit(lambda v, rng: rng.random() < 0.5, pair, ONE, runs=200, rng=1)
    assert found.outcome is Outcome.SURVIVED
    assert "right" in found.witness


def test_a_loop_is_drawn_one_run_at_a_time():
    draw = vectorised(lambda v, rng: v)
    assert draw(3, np.random.default_rng(0), 4).tolist() == [3, 3, 3, 3]
    assert draw(3, np.random.default_rng(0), 0).size == 0


def test_padding_of_long_doubles_is_no_part_of_an_output():
    numbers = np.array([2.0, np.inf, np.nan, -0.0], np.longdouble)
    padded = bytearray(numbers.tobytes())
    if numbers.dtype.itemsize == 16:  # ten bytes of a number, six of no value
        for start in range(0, len(padded), 16):
            padded[start + 10 : start + 16] = b"secret"
    same_numbers = np.frombuffer(bytes(padded), np.longdouble)
    assert array_bytes(same_numbers) == array_bytes(numbers)
    step = np.finfo(np.longdouble).eps
    if step < np.finfo(float).eps:
        near = np.array([1, 1 + step], np.longdouble)
        assert array_bytes(near[:1]) != array_bytes(near[1:])
        assert array_bytes(1j * near[:1]) != array_bytes(1j * near[1:])


def test_large_whole_numbers_of_any_class_differ_from_their_neighbours():
    def indexed(number):
        class Indexed:  # without fields: `__index__` alone tells the number
            __slots__ = ()

            def __index__(self):
                return number

        return Indexed()

    near = as_output_array([indexed(2**60), indexed(2**60 + 1)])
    assert np.unique(extract_features(near).category).size == 2


@pytest.mark.parametrize("dtype", [float, np.float32])
def test_numbers_of_float_arrays_are_read_without_a_copy(dtype):
    outputs = np.arange(12, dtype=dtype).reshape(2, 3, 2)
    rows = number_rows(outputs, 6)
    assert (rows.shape, rows.dtype, rows.base is outputs.base) == ((2, 6), dtype, True)
    whole = number_rows(outputs.astype(int), 6)
    assert (whole.dtype, whole.tolist()) == (float, rows.tolist())
    wider = number_rows(as_output_array([(1.0,), (2.0, 3.0)]), 2)
    assert np.array_equal(wider, [[1.0, np.nan], [2.0, 3.0]], equal_nan=True)


def test_objects_of_two_types_with_the_same_fields_differ():
    class First:
        def __init__(self):
            self.x = 1.0

    class Second(First):
        pass

    first, second = First(), Second()
    found = extract_features(as_output_array([first, second, first]))
    assert found.structure[0] == found.structure[2] != found.structure[1]
    assert found.numbers[:, 0].tolist() == [1.0, 1.0, 1.0]
