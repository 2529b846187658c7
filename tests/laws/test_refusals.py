"""Law: what a gate refuses spends, draws and looks at nothing, at whatever entrance it is asked.

The table has every public entrance of every gate, found by introspection, and every refusal.
"""

import contextlib
import inspect
import math
from concurrent.futures import Executor, Future
from typing import Any, NamedTuple

import numpy as np
import pytest

import audits.adapters.reduced_noise
import audits.algorithm_runs.coupled_runs  # gates of audits are known to `Gate` once imported
from accountant import (
    Budget,
    BudgetExceeded,
    DatasetClosed,
    Filter,
    Ledger,
    Odometer,
    OffPlan,
    Parallel,
    ParameterError,
    PoissonSampled,
    PureLoss,
    WorkerChunks,
)
from accountant.ledger.gate import Gate
from audits.algorithm_runs.coupled_runs import CoupledGate
from audits.algorithm_runs.recording import RecordingLedger
from audits.algorithm_runs.replay_gate import OffTranscript, ReplayGate
from mechanisms import Gaussian, Laplace
from tests.laws.test_books import opened_book

DATA = np.arange(6.0)
NOISE = Laplace(4.0)
PLAN = 2 * NOISE
SAMPLED = PoissonSampled(NOISE, 0.5)


class Lookalike(Laplace):
    """A subclass that is not declared."""


# --- gates


@contextlib.contextmanager
def made_book(plan=None, **options):
    """The gate of a book, with a seed that repeats its noise."""
    with opened_book(budget=Budget(0.6), **options) as book:
        buckets = ["north"] if "buckets" in options else None
        yield book.ledger("d", DATA, plan, rng=1, insecure_seed=True, buckets=buckets)


def made_replay():
    """A gate that replays one release; its data are the recorded ones."""
    recorder = RecordingLedger(DATA, PLAN, 1, None)
    for _ in range(2):
        recorder.release(NOISE, np.sum)
    return ReplayGate(recorder, DATA)


def made_coupled():
    """A gate whose twin receives the same output."""
    rng = np.random.default_rng(1)
    return CoupledGate(DATA, PLAN, None, (1, 2), rng, [], lambda asked: asked.output)


def in_memory(make):
    return lambda: contextlib.nullcontext(make())


GATES = {
    "Ledger": in_memory(lambda: Ledger(DATA, PLAN, rng=1)),
    "Filter": in_memory(lambda: Filter(DATA, Budget(0.6), rng=1)),
    "Odometer": in_memory(lambda: Odometer(DATA, rng=1)),
    "BookLedger": made_book,
    "BookLedger of a plan": lambda: made_book(PLAN),
    "BookLedger of users": lambda: made_book(users=6),
    "BookLedger of a window": lambda: made_book(window="month"),
    "BookLedger of buckets": lambda: made_book(buckets="region"),
    "RecordingLedger": in_memory(lambda: RecordingLedger(DATA, PLAN, 1, None)),
    "ReplayGate": in_memory(made_replay),
    "CoupledGate": in_memory(made_coupled),
    "ReducedNoiseLedger": in_memory(
        lambda: audits.adapters.reduced_noise.ReducedNoiseLedger(DATA, PLAN, 0.5, 1)
    ),
}
PLANNED = [name for name in GATES if name not in {"Filter", "Odometer"} and (
    "Book" not in name or "plan" in name)]  # fmt: skip
BOUNDED = [name for name in GATES if name == "Filter" or ("Book" in name and "plan" not in name)]
BOOKS = [name for name in GATES if "Book" in name]
FREE_BOOKS = [name for name in BOOKS if name not in PLANNED]
# gates that check no plan before it is released: they say so, whatever the plan is
UNCHECKED = {"Odometer": ("check", "reserving"), **dict.fromkeys(FREE_BOOKS, ("check",))}


def gates_of(kind):
    """All classes of gates in the packages that can be made."""
    for one in kind.__subclasses__():
        if one.__module__.startswith(("accountant.", "audits.")) and not inspect.isabstract(one):
            yield one
        yield from gates_of(one)


def state(gate):
    """All that a refusal must leave as it was."""
    meter = gate._meter
    noise = getattr(gate, "_noise", None)
    account = getattr(meter, "account", None)
    return repr((
        gate.next, gate._answering,
        [getattr(gate, name, None) for name in ("transcript", "_position")],
        [getattr(meter, name, None) for name in (
            "total", "pure_total", "curve_total", "_relation", "waiting", "label", "executor")],
        None if noise is None else noise.bit_generator.state, gate.coins.bit_generator.state,
        account and account.log.storage._db.execute("SELECT hash FROM entries").fetchall(),
    ))  # fmt: skip


# --- entrances

# how a gate is asked: the mechanism, the query, and whatever else is given
ENTRANCES = {
    "check": lambda gate, mechanism, query, **given: gate.check(mechanism),
    "release": lambda gate, mechanism, query, **given: gate.release(mechanism, query, **given),
    "release_each": lambda gate, mechanism, query, **given: gate.release_each(
        mechanism, query, **given
    ),
    "release_blocks": lambda *asked, **given: ask_blocks(*asked, **given),  # noqa: PLW0108
    "spend": lambda gate, mechanism, query, **given: gate.spend(mechanism, **given),
    "spend_plan": lambda gate, mechanism, query, **given: gate.spend_plan(mechanism),
    "reserving": lambda gate, mechanism, query, **given: reserve(gate, mechanism, **given),
}
# what neither spends, nor draws, nor looks
READERS = {
    "answering": lambda gate: gate.answering("how many"),
    "close": lambda gate: gate.close(),
    "finish": lambda gate: gate.finish(),
    "remaining": lambda gate: gate.remaining(PLAN),
    "to_frame": lambda gate: gate.to_frame(),
    "to_records": lambda gate: gate.to_records(),
}


def ask_blocks(gate, mechanism, query, who=None, **given):
    """Ask for one block of users, unless blocks are given."""
    return list(gate.release_blocks(mechanism, query, **{"blocks": [who], **given}))


def reserve(gate, plan, **given):
    """Ask for the releases of a plan, and make none."""
    with gate.reserving(plan, **given):
        pass


def entrances_of(gate):
    """The names by which a gate can be asked for anything."""
    static = {name: inspect.getattr_static(gate, name) for name in dir(type(gate))}
    return [name for name, found in static.items() if not name.startswith("_") and callable(found)]


def test_every_gate_and_every_entrance_is_in_the_table():
    made = set()
    for name, make in GATES.items():
        with make() as gate:
            assert type(gate).__name__ == name.partition(" ")[0]
            made.add(type(gate))
            assert set(entrances_of(gate)) <= ENTRANCES.keys() | READERS.keys()
            before = state(gate)
            for reader in READERS.keys() & set(entrances_of(gate)):
                with contextlib.suppress(OffTranscript):  # the run is not over
                    READERS[reader](gate)
            assert state(gate) == before
    assert set(gates_of(Gate)) == made


# --- refusals


class Refused(NamedTuple):
    """A request that is refused: by which entrances of which gates, with what error."""

    error: Any
    mechanism: Any = NOISE
    given: dict[str, Any] = {}  # noqa: RUF012  # read only
    entrances: tuple[str, ...] = tuple(ENTRANCES)
    gates: Any = tuple(GATES)
    arrange: Any = None  # what happens before, after which nothing is answered any more
    query: Any = None  # instead of one that must not be called


def taking(argument):
    """The entrances that take an argument, at any gate: a new one is among them."""
    entrances = {name: [getattr(kind, name, None) for kind in gates_of(Gate)] for name in ENTRANCES}
    return tuple(
        name
        for name, methods in entrances.items()
        if any(argument in inspect.signature(one).parameters for one in methods if one)
    )


RELEASES = taking("query")
LOCAL = tuple(name for name in RELEASES if name != "release")
PLANS = taking("plan")
AT_ONCE = tuple(name for name in ENTRANCES if name not in LOCAL)
WHOLE_PLANS = tuple(name for name in PLANS if name != "spend_plan")  # that the gate itself follows
GARBAGE = {
    "nothing": None, "a word": "noise", "a number": 3.0, "NaN": math.nan, "a class": Laplace,
    "a function": np.sum,
}  # fmt: skip
GARBAGE_BUT_NONE = {name: value for name, value in GARBAGE.items() if value is not None}
WRONG_USERS = {
    "below 0": [-1], "beyond the last": [6], "twice": [1, 1], "NaN": [math.nan], "halves": [0.5],
    "a short mask": [True, False], "a matrix": [[0, 1]], "infinity": [math.inf], "a word": "all",
    "a slice of halves": slice(0.5, 2), "a step of 0": slice(0, 3, 0),
    "a mask": np.ma.array([1, 2], mask=[1, 0]),
}  # fmt: skip


def close(gate):
    gate.close()


def close_dataset(gate):
    account = gate._meter.account
    with account.log.writing():
        account.follow_terms()
        whole = {**account.terms.facts(), "change": "closed", "reason": "the end"}
        account.log.append("terms", whole, account.name)


def spend_all(gate):
    while gate.next is not None:
        gate.release(NOISE, np.sum)


def belongs_to_another_process(gate):
    gate._process += 1


WRONG_LABELS = {
    "empty": "", "a number": 3, "NaN": math.nan, "a blank": " ", "two lines": "a\nb",
}  # fmt: skip
WRONG_SHAPES = {
    "below 0": -1, "halves": 0.5, "NaN": math.nan, "a word": "all",
}  # fmt: skip


def given_to(argument, entrances, named, error=ParameterError, **more):
    """Refusals of what an argument may not be, by what that is."""
    return {
        f"{argument} that is {name} at {entrances}": Refused(
            error, given={argument: value}, entrances=entrances, **more
        )
        for name, value in named.items()
    }


REFUSALS = {
    **{
        f"a mechanism that is {name}": Refused((ParameterError, TypeError), garbage)
        for name, garbage in GARBAGE.items()
    },
    "a loss": Refused(ParameterError, PureLoss(0.1), entrances=RELEASES),
    "a plan of two releases": Refused(ParameterError, PLAN, entrances=RELEASES),
    "what is not declared": Refused(ParameterError, Lookalike(4.0)),
    "what is not declared in a sample": Refused(
        ParameterError, PoissonSampled(Lookalike(4.0), 0.5)
    ),
    "a query that is none": Refused(ParameterError, entrances=RELEASES, query=45.25),
    "no query": Refused(ParameterError, entrances=RELEASES, query=()),
    "a secret sample of each user": Refused(ParameterError, SAMPLED, entrances=LOCAL),
    **given_to("who", LOCAL, WRONG_USERS),
    **given_to("who", taking("who"), WRONG_USERS, gates=BOOKS),
    **given_to("blocks", taking("blocks"), {"a number": 3, "a class": list}, TypeError),
    **given_to("executor", taking("executor"), GARBAGE_BUT_NONE),
    **given_to("reduce", taking("reduce"), {"a word": "sum", "a number": 3}),
    **given_to("shape", taking("shape"), WRONG_SHAPES),
    **given_to("label", taking("label"), WRONG_LABELS, gates=FREE_BOOKS),
    **given_to("label", taking("label"), {"given": "sum"}, gates=[
        name for name in GATES if name not in FREE_BOOKS]),
    "off the plan": Refused(OffPlan, Laplace(5.0), gates=PLANNED),
    "past the end of the plan": Refused(
        OffPlan, gates=[one for one in PLANNED if one != "ReplayGate"], arrange=spend_all,
    ),
    "more than the budget": Refused(BudgetExceeded, Laplace(1.0), gates=BOUNDED),
    "a sample for more than the budget": Refused(
        BudgetExceeded, PoissonSampled(Laplace(0.1), 0.5), gates=BOUNDED, entrances=AT_ONCE,
    ),
    "more than any delta": Refused(
        RuntimeError, Gaussian(4.0), gates=["Filter", "Odometer", *BOOKS[:1]],
    ),
    "another process": Refused(OffPlan, arrange=belongs_to_another_process),
    "a closed gate": Refused(OffPlan, gates=BOOKS, arrange=close),
    "a closed data set": Refused(DatasetClosed, gates=FREE_BOOKS, arrange=close_dataset),
    # what is asked of a plan alone is not whether its data set is closed
    "a closed data set of a plan": Refused(
        DatasetClosed, gates=[name for name in BOOKS if name in PLANNED], arrange=close_dataset,
        entrances=tuple(name for name in ENTRANCES if name not in WHOLE_PLANS),
    ),
}  # fmt: skip


def unlooked(_):
    raise AssertionError("looked at the data")


def refuses(gate, entrance, refused):
    """Ask, and see that it was refused and that nothing happened."""
    query = unlooked if refused.query is None else refused.query
    before = state(gate)
    error = refused.error if isinstance(refused.error, tuple) else (refused.error,)
    if isinstance(gate, ReplayGate):  # what the recorded run was not refused is off its transcript
        error = (OffTranscript, *error)
    try:
        ENTRANCES[entrance](gate, refused.mechanism, query, **refused.given)
    except Exception as caught:
        found = caught
    else:
        found = None
    assert isinstance(found, error), f"{entrance} of {gate!r} does not refuse {refused}: {found!r}"
    assert state(gate) == before


def answers_honestly(gate):
    """A refusal is no end: the next honest request is answered."""
    seen = []
    answer = gate.release(NOISE, lambda data: seen.append(1) or data.sum())
    assert (len(seen), math.isfinite(answer)) == (1, True)


@pytest.mark.parametrize("kind", GATES)
def test_what_is_refused_spends_draws_and_sees_nothing(kind):
    refuses_all(kind, "")


def refuses_all(kind, begins):
    """One gate refuses all that leaves it as it was, and a new one each that ends it."""
    asked = [refused for name, refused in REFUSALS.items() if name.startswith(begins)]
    with GATES[kind]() as gate:
        for refused in asked:
            if refused.arrange is None:
                refuses_everywhere(kind, gate, refused)
        answers_honestly(gate)
    for refused in asked:
        if refused.arrange is not None and kind in refused.gates:
            with GATES[kind]() as gate:
                refused.arrange(gate)
                refuses_everywhere(kind, gate, refused)


def refuses_everywhere(kind, gate, refused):
    """Ask at every entrance that the gate has."""
    for entrance in refused.entrances if kind in refused.gates else ():
        if entrance in UNCHECKED.get(kind, ()):
            either = refused.error if isinstance(refused.error, tuple) else (refused.error,)
            refuses(gate, entrance, refused._replace(error=(ParameterError, *either)))
        elif entrance in entrances_of(gate):
            refuses(gate, entrance, refused)


# --- requests from inside of a request


def requests(gate, inside):
    """Every way in which code of an author's runs while a gate answers."""

    def query(rows):
        inside()
        return rows.sum() if rows.shape == DATA.shape else rows

    def blocks(users):
        for who in users:
            inside()
            yield who

    def reduced(outputs):
        inside()
        return outputs.sum()

    yield lambda: gate.release(NOISE, query)
    each = [slice(0, 6)]
    yield lambda: gate.release_each(NOISE, lambda rows: (inside(), rows)[1])
    yield lambda: list(gate.release_blocks(NOISE, lambda rows: (inside(), rows)[1], each))
    yield lambda: list(gate.release_blocks(NOISE, lambda rows: rows, blocks(each)))
    yield lambda: list(gate.release_blocks(NOISE, lambda rows: rows, each, reduce=reduced))
    yield lambda: [inside() for _ in gate.release_blocks(NOISE, lambda rows: rows, each)]


OUTER = range(6)


@pytest.mark.parametrize("kind", [name for name in GATES if name != "ReplayGate"])
def test_nothing_is_asked_from_inside_of_a_request(kind):
    for outer in OUTER:
        with GATES[kind]() as gate:
            refused = []

            def inside(gate=gate, refused=refused):
                for entrance in ENTRANCES:
                    if entrance in entrances_of(gate):
                        refuses(gate, entrance, Refused(OffPlan))
                        refused.append(entrance)
                for entrance in taking("label") if kind in FREE_BOOKS else ():
                    refuses(gate, entrance, Refused(OffPlan, given={"label": "sum"}))

            list(requests(gate, inside))[outer]()
            assert len(refused) >= 5
            answers_honestly(gate)


# --- workers that fail


class FailingWorkers(Executor):
    """Workers of which one block fails, in one of the ways in which futures fail."""

    def __init__(self, how, place):
        self.how, self.left = how, place

    def submit(self, function, *arguments):
        self.left -= 1
        future = Future()
        if self.left != -1:
            future.set_result(function(*arguments))
        elif self.how == "refuses work":
            raise RuntimeError("shut down")
        elif self.how == "raises":
            future.set_exception(RuntimeError("out of memory"))
        elif self.how == "is cancelled":
            future.cancel()
        else:
            future.set_result(None)
        return future


HELD = ("array", "held by workers")
# how many blocks there are, and which fails: with more than are sent ahead, also one in the middle
PLACES = [(2, 1), (20, 1), (20, 19)]


@pytest.mark.parametrize("kept", HELD)
@pytest.mark.parametrize("how", ["refuses work", "raises", "is cancelled", "returns nothing"])
@pytest.mark.parametrize(("count", "place"), PLACES)
def test_workers_that_fail_are_not_passed_over(count, place, how, kept):
    data = np.arange(float(count))
    if kept == "held by workers":
        data = WorkerChunks([lambda: np.ones(1)] * count, [1] * count, (count,))
    blocks = [slice(user, user + 1) for user in range(count)]
    gate = Ledger(data, Parallel([NOISE] * count) + NOISE, rng=1)
    made = []
    workers = FailingWorkers(how, place)
    with pytest.raises(BaseException) as caught:  # noqa: PT011  # as many kinds as libraries
        made.extend(gate.release_blocks(NOISE, lambda rows: rows, blocks, workers))
    assert not isinstance(caught.value, (AssertionError, StopIteration, GeneratorExit))
    outputs = [entry.output is not None for entry in gate.transcript]
    assert outputs == [True] * len(made) + [False] * (len(outputs) - len(made))
    assert len(made) <= place < len(outputs)  # the block that failed was charged
    if place == count - 1:
        assert gate.next == NOISE  # all blocks were charged, whatever became of them
        if kept == "array":
            answers_honestly(gate)
