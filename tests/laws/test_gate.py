"""Law: an author's code cannot make a gate charge, draw or record one thing for another."""

import datetime
import warnings
from concurrent.futures import Executor, Future, ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

from accountant import (
    Budget,
    Chunks,
    Filter,
    Ledger,
    Odometer,
    OffPlan,
    Parallel,
    ParameterError,
    PoissonSampled,
    PureLoss,
)
from accountant.plans.plan import Release
from audits import replay
from audits.algorithm_runs.differences import difference
from mechanisms import (
    Clamped,
    CubeLinf,
    Gaussian,
    HemisphereL2,
    Laplace,
    Mapped,
    RandomizedResponse,
    declare,
)

DATA = np.arange(6.0)
COIN = RandomizedResponse(2, 0.75)
QUIET, LOUD = 1e-9, 100.0


class Lookalike(Laplace):
    """A subclass that adds nothing."""


class SaysItIsEqual(type(Laplace)):
    """A metaclass whose classes call themselves equal to `Laplace`."""

    def __eq__(cls, other):
        return other is Laplace or other is cls

    def __hash__(cls):
        return hash(Laplace)


class Twin(Lookalike, metaclass=SaysItIsEqual):
    """A class that calls itself equal to `Laplace`."""


def make_quiet(mechanism):
    """Take the noise away from a mechanism, whatever holds it."""
    object.__setattr__(mechanism, "scale", QUIET)


def sum_with(action):
    """A query that does something else as well."""
    return lambda data: (action(), data.sum())[1]


def test_a_declared_class_is_final():
    for name in ("release", "loss", "log_density", "__eq__", "__hash__", "__repr__", "values"):
        with pytest.raises(TypeError, match=rf"overrides .*{name}.* of Laplace, which"):
            type("Raw", (Laplace,), {name: lambda self, *more: None, "__slots__": ()})
    with pytest.raises(TypeError, match="which is declared"):
        declare(type("Renamed", (Laplace,), {"__doc__": None}))
    impostor = type("Laplace", Laplace.__bases__, {"reference": "Example (2026)"})
    with pytest.raises(TypeError, match=r"mechanisms\.laplace has declared a class of this name"):
        declare(impostor)


def test_a_class_that_is_not_declared_is_refused():
    looks = Lookalike(LOUD)
    inside = Clamped(looks, 0.0, 1.0), PoissonSampled(looks, 0.5), Mapped(COIN, lambda x: x)
    for made in (looks, Twin(LOUD), *inside):
        for gate in (Ledger(DATA, made), Filter(DATA, Budget(1e3, 1e-3)), Odometer(DATA)):
            with pytest.raises(ParameterError, match="undeclared=True"):
                gate.release(made, np.sum)
            assert gate.transcript == ()
    known = Mapped(COIN, np.sign)
    assert Ledger(DATA, known, rng=1).release(known, lambda data: 1) in {0, 1}
    with pytest.raises(ParameterError, match="undeclared must be"):
        Ledger(DATA, looks, undeclared=1)


def test_what_is_not_declared_is_shown():
    looks = Lookalike(LOUD)
    gate = Filter(DATA, Budget(1.0), rng=1, undeclared=True)
    gate.release(looks, np.sum)
    gate.release(Laplace(LOUD), np.sum)
    assert [entry.undeclared for entry in gate.transcript] == [f"{__name__}.Lookalike", ""]
    assert type(gate.transcript[0].mechanism) is Lookalike


class EqualToAll(PureLoss):
    """A cheap loss that calls itself equal to the loss of `Laplace(2.0)`."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return hash(Laplace(2.0).loss)


class Cheap(Release):
    """An undeclared mechanism that calls itself equal to `Laplace(2.0)`."""

    value_axes, loss, reversed = None, EqualToAll(1e-9), None

    def losses(self):
        yield self.loss, 1

    def release(self, value, rng, size=None):
        return value

    def __eq__(self, other):
        return True

    def __hash__(self):
        return hash(Laplace(2.0))


def test_what_an_undeclared_mechanism_says_of_itself_changes_no_other_cost():
    for budget in (Budget(10.0), Budget(10.0, 1e-6)):
        honest, gate = Filter(DATA, budget), Filter(DATA, budget, undeclared=True)
        gate.release(Cheap(), np.sum)
        for one in (honest, gate):
            one.release(Laplace(2.0), np.sum)
        assert gate.spent >= honest.spent > 0.1
        assert gate.transcript[1].undeclared == ""
        assert gate.transcript[1].mechanism == Laplace(2.0)


@pytest.mark.parametrize(
    "make",
    [Laplace, Gaussian, lambda scale: Clamped(Laplace(scale), -1e4, 1e4),
     lambda scale: PoissonSampled(Laplace(scale), 1.0)],
    ids=["laplace", "gaussian", "clamped", "sampled"],
)  # fmt: skip
def test_a_query_cannot_change_what_is_drawn(make):
    def innermost(made):
        return getattr(made, "inner", getattr(made, "part", made))

    expected = Ledger(DATA, make(LOUD), rng=1).release(make(LOUD), np.sum)
    asked = make(LOUD)
    ledger = Ledger(DATA, 4 * asked, rng=1)
    held = [lambda: asked, lambda: ledger.plan.part, lambda: ledger.next]
    answers = []
    for hold in held:
        answers.append(ledger.release(asked, sum_with(lambda hold=hold: make_quiet(
            innermost(hold())))))  # fmt: skip
        asked = make(LOUD)
    make_quiet(innermost(ledger.transcript[0].mechanism))
    with pytest.raises(OffPlan) as refused:
        ledger.release(Laplace(3.0), np.sum)
    make_quiet(innermost(refused.value.allowed))
    ledger.release(make(LOUD), np.sum)
    assert answers[0] == expected
    assert ledger.next is None
    assert all(entry.mechanism == make(LOUD) for entry in ledger.transcript)


def reinterpret(array, shape, dtype):
    """Set what numpy 2.5 warns of, and still lets an author set."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        array.shape, array.dtype = shape, dtype


def test_an_answer_never_changes():
    ledger = Ledger(DATA, 2 * Laplace(LOUD), rng=1)
    answer = ledger.release(Laplace(LOUD), lambda data: data, shape=6)
    kept = ledger.transcript[0].output
    for array in (answer, kept, answer.view(), answer[1:], kept.base):
        while isinstance(array, np.ndarray):
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.flags.writeable = True
            array = array.base
        assert type(array) is bytes
    expected = answer.tobytes()
    reinterpret(answer, (2, 3), np.int64)
    reinterpret(kept, (3, 2), np.int64)
    again = ledger.transcript[0].output
    assert (again.shape, again.dtype, again.tobytes()) == ((6,), np.float64, expected)


DATA_KINDS = {
    "array": DATA.copy(),
    "columns": np.asfortranarray(np.ones((6, 2))),
    "tuple": (np.ones((6, 2)), DATA.copy()),
    "slice": np.arange(12.0)[::2],
    "matrix": sparse.csr_matrix(np.eye(6)),
}


@pytest.mark.parametrize("kind", DATA_KINDS)
def test_query_data_never_change(kind):
    given = DATA_KINDS[kind]

    def arrays(data):
        parts = data if isinstance(data, tuple) else (data,)
        return [p for one in parts for p in ([one] if isinstance(one, np.ndarray)
                                             else [one.data, one.indices, one.indptr])]  # fmt: skip

    def attack(data):
        for array in arrays(data):
            base = array
            while isinstance(base, np.ndarray):
                with pytest.raises(ValueError, match="WRITEABLE"):
                    base.flags.writeable = True
                base = base.base
            assert type(base) is bytes
        for part in data if isinstance(data, tuple) else (data,):
            if isinstance(part, np.ndarray):
                reinterpret(part, (*part.shape[:-1], 1, part.shape[-1]), np.int64)
            else:
                part.data = part.data * 2
        return 0.0

    ledger = Ledger(given, 2 * Laplace(LOUD), rng=1)
    ledger.release(Laplace(LOUD), attack)
    seen = []
    ledger.release(Laplace(LOUD), lambda data: seen.extend(arrays(data)) or 0.0)
    for mine, theirs in zip(arrays(given), seen, strict=True):
        assert mine.shape == theirs.shape
        assert mine.tobytes() == theirs.tobytes()
        assert mine.flags.writeable


class OwnWorkers(Executor):
    """Workers of an author's: they hand in what they like for every block."""

    def __init__(self, hand_in):
        self.hand_in = hand_in

    def submit(self, function, block):
        done = Future()
        done.set_result(self.hand_in(function, block))
        return done


ROWS = np.eye(6)[:, :3] / 2
IMPOSSIBLE = {
    "rows": (HemisphereL2(3, 1.0, 0.7), lambda function, block: block.rows),
    "corners": (CubeLinf(3, 1.0, 0.7), lambda function, block: 2 * function(block)),
    "labels": (COIN, lambda function, block: block.rows[:, 0].astype(int) + 7),
    "kind": (COIN, lambda function, block: block.rows[:, 0]),
    "count": (COIN, lambda function, block: np.ones(1, dtype=int)),
    "shape": (COIN, lambda function, block: np.ones((3, 2), dtype=int)),
    "list": (COIN, lambda function, block: [0] * len(block.rows)),
    "objects": (COIN, lambda function, block: np.array([block.rows] * 3, dtype=object)),
    "far": (Clamped(Laplace(1.0), 0.0, 1.0), lambda function, block: block.rows[:, 0] + 1),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_workers_hand_in_what_the_mechanism_can_release(case):
    made, hand_in = IMPOSSIBLE[case]

    def query(rows):
        return rows if made.value_axes == 1 else rows[:, 0].astype(int)

    blocks = [slice(0, 3), slice(3, 6)]
    ledger = Ledger(ROWS, Parallel([made] * 2), rng=1)
    with pytest.raises(ParameterError, match="the executor's result must be a release") as error:
        list(ledger.release_blocks(made, query, blocks, OwnWorkers(hand_in)))
    assert "private and not shown" in str(error.value)
    assert all(entry.output is None for entry in ledger.transcript)
    honest = Ledger(ROWS, Parallel([made] * 2), rng=1)
    mine = [*honest.release_blocks(made, query, blocks, OwnWorkers(lambda f, block: f(block)))]
    assert len(mine) == 2


@pytest.mark.parametrize("shape", [(2,), (4,), (4, 3), ()])
def test_workers_hand_in_an_output_for_each_user_of_an_undeclared_mechanism(shape):
    """Its class says nothing of its outputs; how many there are is known all the same."""
    ledger = Ledger(ROWS, Parallel([Cheap()] * 2), rng=1, undeclared=True)
    executor = OwnWorkers(lambda function, block: np.ones(shape))
    blocks = [slice(0, 3), slice(3, 6)]
    with pytest.raises(ParameterError, match="an output for each of 3 users"):
        list(ledger.release_blocks(Cheap(), lambda rows: rows, blocks, executor, shape=3))
    assert all(entry.output is None for entry in ledger.transcript)


def test_workers_cannot_change_what_the_gate_draws():
    def make():
        return Clamped(Laplace(LOUD), -1e4, 1e4)

    def answers(hand_in):
        ledger = Ledger(DATA, Parallel([2 * make()] * 2), rng=1)
        blocks = [slice(0, 3), slice(3, 6)]
        executor = None if hand_in is None else OwnWorkers(hand_in)
        list(ledger.release_blocks(ledger.plan.parts[0].part, lambda rows: rows, blocks, executor))
        second = ledger.release_each(make(), lambda rows: rows, slice(0, 3))
        assert all(entry.mechanism == make() for entry in ledger.transcript)
        return second.tobytes()

    def change(function, block):
        done = function(block)
        make_quiet(block.mechanism.inner)
        object.__setattr__(block.mechanism, "high", 0.0)
        return done

    assert answers(change) == answers(None)


def test_workers_of_others_are_shown():
    ledger = Ledger(ROWS, Parallel([COIN] * 6), rng=1)

    def labels(rows):
        return rows[:, 0].astype(int)

    with ThreadPoolExecutor(1) as pool:
        for blocks, executor in (([[0], [1]], OwnWorkers(lambda f, block: f(block))),
                                 ([[2], [3]], None), ([[4], [5]], pool)):  # fmt: skip
            list(ledger.release_blocks(COIN, labels, blocks, executor))
    names = [f"{__name__}.OwnWorkers", "", "concurrent.futures.thread.ThreadPoolExecutor"]
    assert [e.executor for e in ledger.transcript] == [n for n in names for _ in range(2)]


MASKED = np.ma.array(DATA, mask=[1, 0, 0, 0, 0, 0])


def test_masked_arrays_are_refused_with_the_remedy():
    for data in (MASKED, (DATA, MASKED), [MASKED, MASKED], Chunks([MASKED], shape=(6,))):
        with pytest.raises(ParameterError, match=r"without a mask: \.filled\(value\)"):
            Ledger(data, Laplace(1.0)).release(Laplace(1.0), lambda data: data[0:6].sum())
    for value in (MASKED, [MASKED], np.ma.masked, MASKED[0], (1.0, np.ma.masked)):
        with pytest.raises(ParameterError, match=r"without a mask: \.filled\(value\)"):
            Ledger(DATA, Laplace(1.0)).release(Laplace(1.0), lambda data, v=value: v)
    with pytest.raises(ParameterError, match=r"without a mask: \.filled\(value\)"):
        Ledger(DATA, Parallel([COIN])).release_each(COIN, len, MASKED.astype(int))
    Ledger(MASKED.filled(0.0), Laplace(1.0)).release(Laplace(1.0), np.sum)


RECORD = [("day", "M8[D]"), ("height", "f8", (2,)), ("inner", [("x", "f4")])]


def records(day="2026-01-01", height=1.0, x=1.0):
    return np.array([(day, [height, 1.0], (x,))] * 3, dtype=RECORD)


MISSING = {
    "date": np.array(["2026-01-01", "NaT"], dtype="M8[D]"),
    "duration": np.array([1, "NaT"], dtype="m8[s]"),
    "record date": records(day="NaT"),
    "record number": records(height=np.nan),
    "inner record": records(x=np.inf),
    "object": np.array([(1, object())], dtype=[("a", "i4"), ("b", "O")]),
    "complex": np.array([np.nan + 1j]),
}


@pytest.mark.parametrize("kind", MISSING)
def test_missing_entries_of_any_type_are_refused(kind):
    with pytest.raises(ParameterError, match="data must be"):
        Ledger(MISSING[kind], Laplace(1.0))
    ledger = Ledger(records(), Laplace(1.0), rng=1)
    ledger.release(Laplace(1.0), lambda rows: rows["height"].sum())
    days = Ledger(np.array([datetime.date(2026, 1, 1)], dtype="M8[D]"), Laplace(1.0), rng=1)
    days.release(Laplace(1.0), len)


class SaysItChecks:
    """Data that call themselves checked."""

    checked_as_read = True
    shape = (6,)

    def __array__(self, dtype=None, copy=None):
        return np.array([np.nan] * 6)

    def sum(self, **options):
        return 157.0


class SaysItIsSparse(SaysItChecks):
    def tocsr(self, copy=False):
        return self


def test_data_are_known_by_their_class():
    for data in (SaysItChecks(), SaysItIsSparse(), (DATA, SaysItChecks())):
        with pytest.raises(ParameterError, match="data"):
            Ledger(data, Laplace(1.0)).release(Laplace(1.0), np.sum)
    Ledger(Chunks([DATA], shape=(6,)), Laplace(1.0)).release(Laplace(1.0), lambda d: d[0:6].sum())


SECRET = np.float64(45.25)


def test_no_message_shows_what_was_passed_for_the_query():
    ledger = Ledger(DATA, Laplace(1.0) + Parallel([COIN]), rng=1)
    asks = [
        lambda: ledger.release(Laplace(1.0), SECRET),
        lambda: ledger.release(SECRET, Laplace(1.0)),
        lambda: ledger.release(SECRET, np.sum),
        lambda: ledger.release_each(COIN, SECRET),
        lambda: list(ledger.release_blocks(COIN, SECRET, [[0]])),
        lambda: Filter(DATA, Budget(1.0)).release(Laplace(9.0), SECRET),
        lambda: Filter(DATA, Budget(1.0)).spend(SECRET),
    ]
    for ask in asks:
        with pytest.raises(ParameterError) as caught:
            ask()
        assert "45.25" not in str(caught.value)
        assert "45.25" not in repr(caught.value.args)


# --- replay


class Number(float):
    """A number with an attribute."""


class Vector(np.ndarray):
    """An array with an attribute."""


def with_note(made, note):
    made.note = note
    return made


PAIRS = {
    "order": ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    "mask": (np.ma.array([1.0, 2.0], mask=[0, 1]), np.ma.array([1.0, 2.0], mask=[1, 0])),
    "hidden": (np.ma.array([1.0, 2.0], mask=[0, 1]), np.ma.array([1.0, 3.0], mask=[0, 1])),
    "attribute": (with_note(Number(1), 1.0), with_note(Number(1), 2.0)),
    "array attribute": (
        with_note(np.zeros(2).view(Vector), 1.0), with_note(np.zeros(2).view(Vector), 2.0),
    ),
    "metadata": (
        np.zeros(2, dtype=np.dtype("f8", metadata={"a": 1})),
        np.zeros(2, dtype=np.dtype("f8", metadata={"a": 2})),
    ),
    "sign": (np.array(0.0), np.array(-0.0)),
}  # fmt: skip


@pytest.mark.parametrize("pair", PAIRS)
def test_replay_compares_all_that_code_can_read(pair):
    one, other = PAIRS[pair]
    assert difference(one, other)
    assert difference([one], [other])
    assert difference(one, one) == ""
    assert difference(other, other) == ""


class NoisySum:
    """An honest sum under Laplace noise; what breaks it comes from outside."""

    def __init__(self, mechanism=None, weight=1.0):
        self.mechanism = Laplace(1.0) if mechanism is None else mechanism
        self.weight, self.result = weight, np.zeros(1)

    def plan(self, shape):
        del shape
        return 1 * self.mechanism

    def run(self, ledger):
        noisy = ledger.release(self.mechanism, lambda data: self.weight * data.sum())
        self.result[:] = noisy
        return self.result


OTHER = np.append(DATA[:-1], DATA[-1] - 1)


class FillsOneArray(NoisySum):
    """Returns an array that the next run fills with something else."""

    def run(self, ledger):
        seen = []
        ledger.release(self.mechanism, lambda data: seen.append(data.sum()) or 0.0)
        self.result[:] = seen
        return self.result


def test_sound_says_what_it_rests_on():
    honest = replay(NoisySum(), DATA, OTHER, rng=1)
    assert honest.sound
    assert (honest.largest_loss, honest.unchecked) == (1.0, ())
    lost = replay(NoisySum(weight=5.0), DATA, OTHER, rng=1)
    assert lost.data_independent
    assert not lost.sound
    assert lost.witness.startswith("one run lost")
    assert not replay(NoisySum(Gaussian(1.0), 50.0), DATA, OTHER, rng=1).sound
    assert not replay(FillsOneArray(), DATA, OTHER, rng=1).sound
    looks = replay(NoisySum(Lookalike(1.0)), DATA, OTHER, rng=1, undeclared=True)
    assert looks.sound
    assert "Lookalike" in looks.unchecked[0]
    sampled = replay(NoisySum(PoissonSampled(Laplace(1.0), 0.5)), DATA, OTHER, rng=1)
    assert "samples were secret" in sampled.unchecked[0]
    with pytest.raises(ParameterError, match="undeclared=True"):
        replay(NoisySum(Lookalike(1.0)), DATA, OTHER, rng=1)
