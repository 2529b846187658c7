"""Recorded draws are those of the library, and records that both runs have get the same coins."""

from __future__ import annotations

import random

import numpy as np
import pytest

from audits.recorded_runs.draws.draw_tables import COINS, NOISE, bound
from audits.recorded_runs.noisy_numbers import use
from audits.recorded_runs.patches import patched
from audits.recorded_runs.records import missing_record
from audits.recorded_runs.runs import Runs

ROWS = np.arange(12.0).reshape(6, 2)
CALLS = [
    ("laplace", (1.0, 2.0), {"size": 3}), ("laplace", (np.arange(3.0), 2.0), {}),
    ("laplace", (), {}), ("normal", (1.0, [1.0, 2.0]), {"size": (2, 2)}),
    ("gumbel", (0.5, 2.0, 4), {}), ("logistic", (0.5, 2.0), {"size": 2}),
    ("standard_normal", (3,), {}), ("standard_exponential", (3,), {}),
    ("exponential", (2.0, 3), {}), ("uniform", (-1.0, 2.0, 3), {}), ("random", (3,), {}),
    ("random_sample", (3,), {}), ("rand", (2, 3), {}), ("randn", (2, 3), {}),
    ("geometric", (0.25, 4), {}), ("standard_cauchy", (3,), {}), ("standard_t", (4.0, 3), {}),
    ("standard_gamma", (2.0, 3), {}), ("gamma", (2.0, 3.0, 3), {}), ("poisson", (4.0, 3), {}),
    ("chisquare", (3.0, 3), {}), ("rayleigh", (2.0, 3), {}),
    ("negative_binomial", (4, 0.5, 3), {}), ("triangular", (0.0, 1.0, 3.0, 3), {}),
    ("integers", (2, 9), {"size": 5}), ("integers", (2, 9), {"size": 5, "endpoint": True}),
    ("integers", (7,), {}), ("randint", (2, 9, 5), {}), ("randint", (7,), {}),
    ("bytes", (5,), {}), ("hypergeometric", (5, 4, 3, 6), {}), ("beta", (2.0, 3.0, 3), {}),
    ("dirichlet", ([1.0, 2.0, 3.0], 2), {}), ("wald", (1.0, 2.0, 3), {}),
    ("weibull", (2.0, 3), {}), ("pareto", (2.0, 3), {}), ("power", (2.0, 3), {}),
    ("lognormal", (0.5, 2.0, 3), {}), ("vonmises", (0.5, 2.0, 3), {}), ("zipf", (2.5, 3), {}),
    ("logseries", (0.5, 3), {}), ("f", (3.0, 4.0, 3), {}),
    ("choice", (5,), {}), ("choice", (5, 3), {"replace": False}), ("choice", (ROWS[:, 0], 4), {}),
    ("choice", (["a", "b", "c"], 4), {"p": [0.5, 0.25, 0.25]}),
    ("choice", (ROWS[:, 0], 3, False), {"p": [0.5, 0.1, 0.1, 0.1, 0.1, 0.1]}),
    ("binomial", (5, 0.3, 4), {}), ("binomial", ([3, 4], [0.2, 0.7]), {}),
    ("multinomial", (6, [0.2, 0.3, 0.5]), {"size": 2}),
    ("multivariate_normal", ([1.0, 2.0], np.eye(2)), {"size": 3}),
    ("permutation", (7,), {}), ("permutation", (ROWS,), {}),
]  # fmt: skip
OF_GENERATORS = [
    ("choice", (ROWS, 4), {}), ("choice", (ROWS.T,), {"size": 2, "axis": 1}),
    ("permutation", (ROWS,), {"axis": 1}),
]  # fmt: skip
OF_PYTHON = [
    ("random", (), {}), ("uniform", (-1.0, 2.0), {}), ("gauss", (1.0, 2.0), {}),
    ("normalvariate", (1.0, 2.0), {}), ("expovariate", (2.0,), {}), ("getrandbits", (40,), {}),
    ("randrange", (3, 90, 4), {}), ("randint", (3, 90), {}), ("choice", ("abcdefg",), {}),
    ("choices", ("abcdefg",), {"k": 4}), ("choices", ("abc", [5, 1, 1]), {"k": 4}),
    ("choices", ("abc",), {"cum_weights": [5, 6, 7], "k": 4}), ("sample", (range(9), 4), {}),
]  # fmt: skip


def result_of(function, data=(1.0, 2.0), neighbour=(1.0, 3.0)):
    """What a function returns in the first recorded run, as plain numbers."""
    with patched({}, function, 3):
        return use(Runs(function, data, neighbour, 3, frozenset()).run().result)


SOURCES = {
    "Generator": lambda: np.random.Generator(np.random.PCG64(9)),
    "RandomState": lambda: np.random.RandomState(9),
    "random": lambda: random.Random(9),
}
CALLS_OF = {"Generator": CALLS + OF_GENERATORS, "RandomState": CALLS, "random": OF_PYTHON}


@pytest.mark.parametrize("kind", SOURCES)
def test_a_recorded_draw_is_the_one_of_the_library(kind):
    calls = [call for call in CALLS_OF[kind] if hasattr(SOURCES[kind](), call[0])]

    def draw_all(data):
        source = SOURCES[kind]()
        return [
            (getattr(source, name)(*arguments, **options), source.random())
            for name, arguments, options in calls
        ]

    drawn, recorded = draw_all(None), result_of(draw_all)
    for call, pair, recorded_pair in zip(calls, drawn, recorded, strict=True):
        for one, other in zip(pair, recorded_pair, strict=True):
            assert np.array_equal(one, other), call
            assert np.asarray(one).dtype == np.asarray(other).dtype, call


TABLES = {**NOISE, **COINS}


def documented(base, name):
    """The arguments by name of a call of a method, as its documentation has them."""
    signature = next(line for line in getattr(base, name).__doc__.splitlines() if line.strip())
    namespace = {"np": np}
    exec(f"def {signature.strip()}: return locals()", namespace)
    return namespace[name]


TABLED = [
    (base, *call)
    for base in (np.random.Generator, np.random.RandomState)
    for call in CALLS
    if call[0] in TABLES and hasattr(base, call[0])
]


@pytest.mark.parametrize(("base", "name", "arguments", "options"), TABLED, ids=str)
def test_the_arguments_of_a_draw_are_those_of_the_library(base, name, arguments, options):
    found = bound(TABLES[name], arguments, options)
    if name in ("rand", "randn"):
        assert found == {"size": arguments}
        return
    wanted = documented(base, name)(*arguments, **options)
    assert list(wanted) == list(found)[: len(wanted)]
    kinds = ("dtype",)  # a kind of number has several names
    assert {k: x for k, x in wanted.items() if k not in kinds}.items() <= {
        k: x for k, x in found.items() if k not in kinds
    }.items()


# Python's own methods that draw by another one
DRAWN_BY = {
    "randrange": "getrandbits", "randint": "getrandbits", "choice": "getrandbits",
    "choices": "choice",
}  # fmt: skip


@pytest.mark.parametrize("kind", SOURCES)
def test_an_event_has_the_name_of_its_draw(kind):
    more = [("shuffle", ([3, 1, 2],), {})]
    calls = [call for call in CALLS_OF[kind] + more if hasattr(SOURCES[kind](), call[0])]

    def draw_all(data):
        source = SOURCES[kind]()
        return [getattr(source, name)(*given, **options) for name, given, options in calls]

    with patched({}, draw_all, 3):
        tape = Runs(draw_all, (1.0, 2.0), (1.0, 3.0), 3, frozenset()).run().tape
    names = {event.name for event in tape.events if event.verb == "draws"}
    drawn_by = DRAWN_BY if kind == "random" else {}
    assert names == {drawn_by.get(name, name) for name, _, _ in calls}


FILLING = [
    lambda rng, out: rng.standard_normal(out=out),
    lambda rng, out: rng.standard_normal(None, np.float32, out.astype(np.float32)),
    lambda rng, out: rng.standard_exponential(out=out, method="inv"),
    lambda rng, out: rng.random(out.shape, out=out),
    lambda rng, out: rng.standard_gamma(2.0, out=out),
    lambda rng, out: rng.standard_gamma([1.0, 2.0, 90.0], None, float, out),
]


class EverySite(frozenset):
    def __contains__(self, site):
        return True


@pytest.mark.parametrize("is_public", [False, True])
@pytest.mark.parametrize("draw_into", FILLING)
def test_a_draw_into_an_array_of_the_caller_fills_it(draw_into, is_public):
    def draw(data):
        rng, out = np.random.default_rng(9), np.zeros(3)
        return draw_into(rng, out), np.copy(out), rng.random()

    drawn, filled, following = draw(None)
    with patched({}, draw, 3):
        runs = Runs(draw, (1.0, 2.0), (1.0, 3.0), 3, EverySite() if is_public else frozenset())
        first = runs.run()
        again = runs.run(first.tape, of_neighbour=True)
    for result in (first.result, again.result):
        for one, other in zip((drawn, filled, following), use(result), strict=True):
            assert np.array_equal(one, other)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_permuted_rows_have_the_same_numbers(axis):
    def function(data):
        rng = np.random.default_rng(9)
        given, out = np.array(ROWS), np.zeros_like(ROWS)
        return rng.permuted(given, axis=axis), rng.permuted(given, axis=axis, out=out), out, given

    first, second, out, given = result_of(function)
    assert np.array_equal(given, ROWS)
    assert np.array_equal(second, out)
    assert not np.array_equal(first, second)
    for permuted in (first, second):
        assert permuted.shape == ROWS.shape
        flat = (lambda rows: rows.ravel()) if axis is None else (lambda rows: rows)
        assert np.array_equal(
            np.sort(flat(permuted), axis=axis or 0), np.sort(flat(ROWS), axis=axis or 0)
        )


def shuffled(shuffle, given):
    copy = given.copy()
    assert shuffle(copy) is None
    return copy


@pytest.mark.parametrize(
    "function",
    [
        lambda data: shuffled(np.random.default_rng(9).shuffle, ROWS),
        lambda data: shuffled(np.random.default_rng(9).shuffle, list("abcdef")),
        lambda data: shuffled(lambda x: np.random.default_rng(9).shuffle(x, axis=1), ROWS.T),
        lambda data: shuffled(np.random.RandomState(9).shuffle, ROWS),
        lambda data: shuffled(random.Random(9).shuffle, list("abcdef")),
    ],
)  # fmt: skip
def test_shuffling_in_place_gives_an_order(function):
    plain, recorded = function(None), result_of(function)
    assert type(plain) is type(recorded)
    assert sorted(map(str, plain)) == sorted(map(str, recorded)) or np.ndim(plain) == 2
    assert np.array_equal(np.sort(np.ravel(plain)), np.sort(np.ravel(recorded)))
    assert not np.array_equal(recorded, ROWS)


# --- one record less: statement 4 of docs/proofs/recorded_runs.md

RECORDS = np.array([10, 20, 30, 40, 50, 60, 70])
GONE = 2
FEWER = np.delete(RECORDS, GONE)


def both_runs(function, seed):
    """What a function returns on the records, and then on those without one."""
    with patched({}, function, seed) as go_back:
        runs = Runs(function, RECORDS, FEWER, seed, frozenset())
        assert missing_record(RECORDS, FEWER) == GONE
        first = runs.run()
        go_back()
        second = runs.run(first.tape, of_neighbour=True)
        assert second.tape.parted is None
        return list(use(first.result)), list(use(second.result))


ORDERS = [
    lambda x, rng: x[rng.permutation(len(x))],
    lambda x, rng: rng.permutation(x),
    lambda x, rng: shuffled(rng.shuffle, x),
    lambda x, rng: rng.choice(x, len(x), replace=False),
    lambda x: random.sample(x.tolist(), len(x)),
    lambda x: shuffled(random.shuffle, x.tolist()),
]
COINS_OF_EACH = [
    lambda x, rng: rng.random(len(x)) < 0.5,
    lambda x, rng: rng.random((len(x), 2))[:, 0] < 0.5,
    lambda x: np.random.rand(len(x)) < 0.5,
    lambda x: np.random.rand(len(x), 2)[:, 1] < 0.5,
    lambda x, rng: rng.integers(0, 90, len(x)),
    lambda x, rng: rng.binomial(9, 0.5, len(x)),
    lambda x, rng: rng.choice(3, len(x)),
    lambda x, rng: rng.beta(2.0, 3.0, size=len(x)),
    lambda x, rng: rng.beta(x / 9, 3.0, size=len(x)),
]
SAMPLES = [
    (lambda x, rng: x[rng.integers(len(x), size=4)], False),
    (lambda x, rng: x[rng.integers(0, len(x), size=4)], False),
    (lambda x, rng: rng.choice(x, 4), False),
    (lambda x, rng: rng.choice(x, 4, replace=False), True),
    (lambda x, rng: x[rng.choice(len(x), 4, replace=False)], True),
    (lambda x: random.sample(x.tolist(), 4), True),
    (lambda x, rng: rng.choice(x, len(x) - 1, replace=False), True),
]


@pytest.mark.parametrize("number", range(len(ORDERS)))
def test_an_order_of_records_stays_without_one_of_them(number):
    for seed in range(8):
        first, second = both_runs(ORDERS[number], seed)
        assert sorted(first) == RECORDS.tolist()
        assert second == [record for record in first if record != RECORDS[GONE]]


@pytest.mark.parametrize("number", range(len(COINS_OF_EACH)))
def test_a_coin_of_each_record_stays_without_one_of_them(number):
    for seed in range(8):
        first, second = both_runs(COINS_OF_EACH[number], seed)
        assert second == first[:GONE] + first[GONE + 1 :]


@pytest.mark.parametrize("number", range(len(SAMPLES)))
def test_another_record_is_sampled_in_place_of_a_missing_one(number):
    function, is_distinct = SAMPLES[number]
    replaced = 0
    for seed in range(12):
        first, second = both_runs(function, seed)
        assert len(first) - len(second) in {0, len(first) == len(RECORDS)}
        assert set(second) <= set(FEWER.tolist())
        for record, other in zip(first, second, strict=True):
            assert other == record or record == RECORDS[GONE]
        if is_distinct:
            assert len(set(second)) == len(second)
        replaced += RECORDS[GONE] in first
    assert replaced > 0


def test_a_row_number_for_each_record_stays_without_one_of_them():
    for seed in range(12):
        first, second = both_runs(lambda x, rng: x[rng.integers(len(x), size=len(x))], seed)
        for record, other in zip(first[:GONE] + first[GONE + 1 :], second, strict=True):
            assert other == record or record == RECORDS[GONE]


# --- followed numbers are numbers

NUMBERS = np.array([0.5, -1.25, 3.0, 2.0, -0.75, 1.5])
OPERATIONS = [
    "z + 1", "1 + z", "z - 2", "2 - z", "z * 3", "3 * z", "z / 4", "4 / z", "z ** 2", "2 ** z",
    "z % 1.5", "z // 0.5", "7 // z", "-z", "+z", "abs(z)", "z < 1", "1 <= z", "z > 1", "z >= 1",
    "z == 3", "z != 3", "np.exp(z)", "np.maximum(z, 0)", "z + NUMBERS[:np.size(z)]",
    "np.clip(z, -1, 1)", "np.round(z)",
]  # fmt: skip
OF_NUMBERS = [
    "float(z)", "int(z)", "round(z)", "str(z)", "repr(z)", "bool(z)", "hash(z)", "f'{z:.3f}'",
    "round(z, 1)", "max(z, 0.0)", "min(z, 0.0)", "z.as_integer_ratio()", "sorted([z, 0.0])",
    "[1, 2, 3][int(abs(z)) % 3]", "np.float64(z)", "np.array([z, 2.0])",
    "np.array([[z, 1], [2, z]])", "z.is_integer()",
]  # fmt: skip
OF_ARRAYS = [
    "z[1]", "z[[3, 1]]", "z[z > 0]", "z[1:4]", "z[-1]", "z.reshape(2, 3)", "z.reshape(2, 3).T",
    "z.reshape(3, 2)[:, 1]", "z.reshape(2, 3).ravel()", "z.reshape(2, 3).flatten()", "z.copy()",
    "z.take([4, 0])", "z.repeat(2)", "z.sum()", "z.mean()", "z.reshape(2, 3).sum(axis=0)",
    "z.max()", "z.min()", "z.std()", "z.var()", "z.prod()", "z.cumsum()", "z.dot(np.arange(6.0))",
    "z @ np.arange(6.0)", "np.eye(6) @ z", "z.clip(-1, 1)", "z.round(1)", "z.argsort()",
    "z.argmax()", "z.argmin()", "z.reshape(2, 3).argmax(axis=1)", "z.astype(int)",
    "z.astype(float)", "z.tolist()", "z.item(3)", "list(z)", "len(z)", "z.any()", "z.all()",
    "np.sort(z)", "np.concatenate([z, [1.0]])", "np.stack([z, z])", "np.append(z, 2.0)",
    "np.where(np.arange(6) < 3, z, 0.0)", "np.where(z > 0, 1, 0)",
    "np.searchsorted([-1.0, 0.0, 1.0], z)", "np.digitize(z, [-1.0, 0.0, 1.0])",
    "np.searchsorted(np.sort(z), 0.7)", "np.sort(z).searchsorted(0.7)", "np.diff(z)",
    "np.flip(z)", "np.roll(z, 2)", "np.tile(z, 2)", "np.delete(z, 1)", "np.split(z, 2)",
    "np.array_split(z, 4)", "np.outer(z, [1.0, 2.0])", "np.tril(z.reshape(2, 3))",
    "np.triu(z.reshape(3, 2))", "np.linalg.norm(z)", "np.median(z)", "np.average(z)",
    "np.quantile(z, 0.25)", "np.argmax(z)", "np.argmin(z)", "np.zeros_like(z)", "np.shape(z)",
    "np.isfinite(z)", "np.diag(z)", "np.diag(z, 2)", "np.diag(z.reshape(2, 3))", "~np.any(z > 0)",
    "np.atleast_2d(z)", "np.interp(z, [-2.0, 4.0], [0.0, 1.0])",
    "changed(z, lambda a: a.__setitem__(2, 9.0))", "z.tobytes()",
    "changed(z, lambda a: a.__setitem__(slice(1, 3), a[3:5]))",
    "changed(z, lambda a: a.__iadd__(1.0))", "changed(z, lambda a: a.__isub__(1.0))",
    "changed(z, lambda a: a.__imul__(2.0))", "changed(z, lambda a: a.__itruediv__(2.0))",
    "changed(z, lambda a: a.sort())", "str(z)", "repr(z)", "written(z)",
    "changed(z, lambda a: np.add.at(a, [0, 0], 2.0))", "np.modf(z)", "np.divmod(z, 0.5)",
    "into(1, lambda a: np.add.at(a, range(6), z))", "into(1, lambda a: np.cumsum(z, out=a))",
    "into(2, lambda *two: np.modf(z, out=two))", "into(1, lambda a: np.take(z, range(6), out=a))",
    "np.sort(a=z)", "np.sum(a=z)", "np.take(a=z, indices=[4, 0])", "np.argmax(a=z)",
    "np.diag(v=z)", "np.tril(m=z.reshape(2, 3))", "np.append(arr=z, values=2.0)",
    "np.append(z, values=2.0)", "np.append(1.0, z, axis=None)", "np.stack(arrays=[z, z])",
    "np.stack([z, z], axis=1)", "np.searchsorted([-1.0, 0.0, 1.0], v=z)",
    "np.searchsorted(a=[-1.0, 0.0, 1.0], v=z)", "np.searchsorted([-1.0, 0.5, 1.0], z, 'right')",
    "np.searchsorted([-1.0, 0.5, 1.0], z, side='right')",
    "np.searchsorted([1.0, -1.0, 0.0], z, sorter=[1, 2, 0])", "np.digitize(x=z, bins=[-1.0, 0.5])",
    "np.digitize(z, bins=[-1.0, 0.5])", "np.digitize(z, [-1.0, 0.5], right=True)",
    "np.digitize(z, [-1.0, 0.5], True)", "np.digitize(z, [1.0, 0.0, -1.0])",
    "np.digitize(z, [1.0, 0.0, -1.0], right=True)", "np.digitize(z[1], [-1.0, 0.5])",
    "np.digitize(z.reshape(2, 3), [-1.0, 0.5])", "np.searchsorted([-1.0, 0.5], z[2])",
    "np.stack([z, z], 1)", "np.concatenate([z.reshape(2, 3), z.reshape(2, 3)], 1)",
    "np.append(z.reshape(2, 3), z.reshape(2, 3), 1)",
]  # fmt: skip


def changed(array, change):
    array = array.copy()
    change(array)
    return array


def written(array):
    sums = np.zeros(3)
    for k, number in enumerate(array):
        sums[k % 3] += number
    return sums


def into(count, write):
    arrays = [np.ones(6) for _ in range(count)]
    return write(*arrays), arrays


def compare(plain, recorded, words):
    if isinstance(plain, (list, tuple)):
        assert len(plain) == len(recorded), words
        for one, other in zip(plain, recorded, strict=True):
            compare(one, other, words)
        return
    assert np.array_equal(plain, recorded), (words, plain, recorded)
    assert np.asarray(plain).dtype == np.asarray(recorded).dtype, words


@pytest.mark.parametrize(
    ("operations", "size"),
    [(OPERATIONS, None), (OPERATIONS, 6), (OF_NUMBERS, None), (OF_ARRAYS, 6)],
    ids=["number", "array", "of numbers", "of arrays"],
)
def test_followed_noise_is_numbers(operations, size):
    functions = [eval(f"lambda z: {words}", globals()) for words in operations]

    def function(data):
        rng = np.random.default_rng(4)
        return [
            [operation(rng.laplace(size=size)), operation(2 + rng.normal(size=size))]
            for operation in functions
        ]

    for words, plain, recorded in zip(operations, function(None), result_of(function), strict=True):
        compare(plain, recorded, words)
