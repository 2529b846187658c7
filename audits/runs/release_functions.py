"""A release as a function of (value, rng, size): how it is called, and how its runs are drawn.

A release takes its value first.  A generator may follow as the second argument or as one of the
name ``rng``, a number of runs as ``size`` or as a third argument without a default.  A function of
``**options`` is tried with ``rng``, and called without it if that raises a `TypeError`.

Outputs of many runs are one array, runs along its first axis: of numbers or strings if all
outputs have one type and shape, else of objects.  If runs are made one at a time, an exception is
an outcome like any other.  A few more calls, after those of an audit, show whether a seed repeats
the release and whether it changes its value; they have generators of their own.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import io
import itertools
import os
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accountant.errors import ParameterError
from audits.values.copies import copies, is_shared
from audits.values.digests import digest, surely_differ

FORMS = (
    "a mechanism, or a function of (value), (value, rng) or (value, rng, size) "
    "(functools.partial gives its other arguments)"
)
# a second argument of one of these names takes a generator, whatever its default is
GENERATOR_NAMES = {"rng", "generator", "random_state"}
# How a release takes an argument: by its position, by its name, or, if it has no signature, with a
# generator if that raises no `TypeError`.
BY_PLACE, BY_NAME, BY_TRIAL = "by place", "by name", "by trial"
BY_NAME_ON_TRIAL = "by name on trial"  # the same by name: the function takes any named arguments
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
BY_KEYWORD = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
MAX_CAUSES = 8  # number of earlier exceptions in a chain that are read
CHUNK = 1 << 15  # runs at a time, which fit in the processor's cache and bound the memory
Draw = Callable[[Any, np.random.Generator, int], NDArray[Any]]
ARRAY_TYPES = (bool, int, float, str, bytes)  # types that arrays hold as they are
MAX_SHOWN = 200  # characters of an exception's message that are read
# What is called with the runs and the seconds of each call of a release, in this context.
ON_RUNS: ContextVar[Callable[[int, float], None] | None] = ContextVar("ON_RUNS", default=None)
# Before and after an audit each value gets one more call for each RUNS_PER_CALL runs, and at most
# MAX_CALLS.
RUNS_PER_CALL, MAX_CALLS = 200, 16
# The index of each sentence in SENTENCES.
NO_GENERATOR, OTHER_RANDOMNESS, CHANGED_VALUE, SHARED_VALUE, ALWAYS_RAISED = range(5)
SENTENCES = (
    "The release takes no rng and draws by itself: a seed does not repeat it.",
    "Two draws under one seed differed, for the release does not draw from its rng alone: a seed "
    "does not repeat it.",
    "The release changes the value that it receives; every call had a copy of its own.",
    "A value of the pair cannot be copied: if the release changes it, the next call sees that.",
    "The release raised an exception in every run: the audit compared these exceptions.",
)


class IsolatedRelease(ABC):
    """A release that runs elsewhere: it can change no value here, so it needs no copies."""

    fixed = "those with a default, if there are some"  # what is the same in all runs

    @property
    @abstractmethod
    def takes_size(self) -> bool:
        """Whether one call of the function there makes many runs."""

    @abstractmethod
    def __call__(self, value: Any, rng: np.random.Generator, size: int) -> NDArray[Any]:
        """Outputs of ``size`` runs along the first axis."""


@final
@dataclass(frozen=True, slots=True)
class CallForm:
    """How a release takes its generator and its number of runs."""

    generator: str  # BY_PLACE, BY_NAME, BY_TRIAL, BY_NAME_ON_TRIAL, or "" if it takes none
    size: str  # BY_PLACE, BY_NAME, or "" if a call makes one run
    awaited: bool = False  # whether it is a coroutine function

    def one_run(self, release: Callable[..., Any]) -> Callable[..., Any]:
        """The release as a function of (value, rng) that makes one run."""
        if self.generator == BY_PLACE:
            return release
        if self.generator == BY_NAME:
            return lambda value, rng: release(value, rng=rng)
        if self.generator == BY_TRIAL:
            return lambda value, rng: _call_by_trial(release, value, rng)
        if self.generator == BY_NAME_ON_TRIAL:
            return lambda value, rng: _call_by_trial(release, value, rng, by_name=True)
        return lambda value, rng: release(value)

    def many_runs(
        self, release: Callable[..., Any], value: Any, rng: np.random.Generator, size: int
    ) -> Any:
        """What the release returns for ``size`` runs."""
        if self.generator == BY_NAME_ON_TRIAL:
            many = functools.partial(release, size=size)
            return _call_by_trial(many, value, rng, by_name=True)
        positional = (value, rng) if self.generator == BY_PLACE else (value,)
        named = {"rng": rng} if self.generator == BY_NAME else {}
        if self.size == BY_NAME:
            return release(*positional, **named, size=size)
        return release(*positional, size, **named)


def call_form(release: Callable[..., Any]) -> CallForm:
    """How the release is called, by its signature; raises `ParameterError` if it cannot be."""
    if not callable(release):
        raise ParameterError("release", type(release).__name__, FORMS)
    method = getattr(type(release), "__call__", None)  # of an object  # noqa: B004
    awaited = any(map(inspect.iscoroutinefunction, (release, method)))
    try:
        signature = inspect.signature(release)
    except (TypeError, ValueError):  # some functions written in C have no signature
        return CallForm(BY_TRIAL, "", awaited)
    parameters = list(signature.parameters.values())
    generator = _generator_form(parameters)
    names = {p.name for p in parameters[1:] if p.kind in BY_KEYWORD}
    positional = [p for p in parameters if p.kind in POSITIONAL]
    size = BY_NAME if "size" in names else ""
    if not size and generator == BY_PLACE and len(positional) > 2:
        # after a generator, a third argument without a default takes the number of runs
        size = BY_PLACE if positional[2].default is inspect.Parameter.empty else ""
    # Whether the release can be called so is asked of the signature, before any run.
    positional_count = 1 + (generator == BY_PLACE) + (size == BY_PLACE)
    keywords = ["rng"] * (generator == BY_NAME) + ["size"] * (size == BY_NAME)
    try:
        signature.bind(*[None] * positional_count, **dict.fromkeys(keywords))
    except TypeError as error:
        names_alone = ", ".join(signature.parameters)  # defaults may hold anything
        shown = f"{release_name(release)}({names_alone}), {error}"
        raise ParameterError("release", shown, FORMS) from None
    return CallForm(generator, size, awaited)


def _generator_form(parameters: list[inspect.Parameter]) -> str:
    """How a release takes a generator: as its second argument, by the name ``rng``, or not."""
    positional = [p for p in parameters if p.kind in POSITIONAL]
    has_rng = any(p.name == "rng" and p.kind in BY_KEYWORD for p in parameters[1:])
    kinds = {p.kind for p in parameters}
    if len(positional) > 1:
        second = positional[1]
        if second.name == "rng" or (not has_rng and _is_generator(second)):
            return BY_PLACE
    elif not has_rng and inspect.Parameter.VAR_POSITIONAL in kinds:
        return BY_PLACE  # ``*arguments`` take it
    if has_rng:
        return BY_NAME
    # ``**options`` may take it, or may pass on what they do not know and raise.
    return BY_NAME_ON_TRIAL if inspect.Parameter.VAR_KEYWORD in kinds else ""


@contextlib.contextmanager
def awaiting(call: Callable[..., Any], *, awaited: bool) -> Iterator[Callable[..., Any]]:
    """The function itself, or if it is awaited one that runs its coroutines to the end."""
    if not awaited:
        yield call
        return
    # in an asynchronous test this thread already runs a loop, and it can have only one
    if _in_event_loop():
        with ThreadPoolExecutor(1) as thread:
            yield lambda *arguments: thread.submit(asyncio.run, call(*arguments)).result()
        return
    with asyncio.Runner() as runner:
        yield lambda *arguments: runner.run(call(*arguments))


def timed(call: Callable[..., Any], runs: int) -> Callable[..., Any]:
    """The function of ``runs`` runs a call, which tells `ON_RUNS` of each call."""
    on_runs = ON_RUNS.get()
    if on_runs is None:
        return call

    def timed_call(*arguments: Any) -> Any:
        begin = time.perf_counter()
        try:
            return call(*arguments)
        finally:
            on_runs(runs, time.perf_counter() - begin)

    return timed_call


def release_name(release: Any) -> str:
    """The name of a function, or of the type of another object; never what is bound to it."""
    inner = getattr(release, "func", release)
    return str(getattr(inner, "__name__", type(inner).__name__))


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _is_generator(parameter: inspect.Parameter) -> bool:
    """Whether a second parameter takes a generator: not ``size``, nor one with another default."""
    default = parameter.default
    may_be_generator = (
        default is parameter.empty or default is None or parameter.name in GENERATOR_NAMES
    )
    return parameter.name != "size" and (
        may_be_generator or isinstance(default, np.random.Generator)
    )


def _call_by_trial(
    release: Callable[..., Any], value: Any, rng: np.random.Generator, *, by_name: bool = False
) -> Any:
    """One call with the generator, or without it if that raises `TypeError`."""
    try:
        return release(value, rng=rng) if by_name else release(value, rng)
    except TypeError:
        return release(value)


@final
@dataclass(frozen=True, slots=True)
class RaisedOutcome:
    """The outcome of a run that raised: the exception's type, its message, the line of code."""

    kind: str
    message: str = ""
    place: str = ""

    @classmethod
    def from_text(cls, text: str) -> RaisedOutcome:
        """The outcome that a text names, such as ``"ValueError: no rows"``, else an "error"."""
        kind, colon, message = text[:MAX_SHOWN].partition(": ")
        is_named = bool(colon) and kind.replace(".", "_").isidentifier()
        return cls(kind, message) if is_named else cls("error", text[:MAX_SHOWN])


def concatenate_outputs(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Outputs of several draws as one array, of objects if the draws differ in kind."""
    filled = [part for part in parts if len(part)] or list(parts[:1])
    if len({(part.dtype.kind, part.shape[1:]) for part in filled}) <= 1:
        return np.concatenate(filled)
    return np.concatenate([_as_object_array(list(part)) for part in filled])


@final
@dataclass(frozen=True, slots=True)
class Vectorised:
    """A function of (value, rng, size); it loops if ``release`` takes no size.

    Each call of ``release`` receives a copy of the value, for it may work in place.
    """

    release: Callable[..., Any]
    form: CallForm
    observed: bool = (
        False  # whether an output has what the run wrote beside it, see `observed_draw`
    )

    def __call__(self, value: Any, rng: np.random.Generator, size: int) -> NDArray[Any]:
        """Outputs of ``size`` runs along the first axis."""
        return self.draw(copies(value), rng, size)

    def draw(self, values: Iterator[Any], rng: np.random.Generator, size: int) -> NDArray[Any]:
        """Outputs of ``size`` runs, each call on the next of the values."""
        if size == 0:
            return np.empty(0)
        release, form = self.release, self.form
        if not form.size:
            with awaiting(form.one_run(release), awaited=form.awaited) as call:
                one_run = timed(call, 1)
                run_values = itertools.islice(values, size)
                outcome = _observed_outcome if self.observed else _outcome
                return as_output_array([outcome(one_run, value, rng) for value in run_values])
        try:
            with awaiting(form.many_runs, awaited=form.awaited) as call_many:
                outputs = timed(call_many, size)(release, next(values), rng, size)
        except ParameterError:  # an error of this package, which names the remedy
            raise
        except Exception as error:
            # It is not known which of the runs failed.  The exception's message is not shown, as it
            # may name records.
            shown = f"one that raised {type(error).__name__} {_place(error)}"
            allowed = "a function that does not raise; without size an exception is an outcome"
            raise ParameterError("release", shown, allowed) from None
        return _checked_outputs(outputs, size)


def vectorised(release: Callable[..., Any]) -> Draw:
    """``release`` as a function of (value, rng, size), with or without a size of its own."""
    if isinstance(release, IsolatedRelease):
        return release
    return Vectorised(release, call_form(release))


def underlying_draw(draw: Draw) -> Draw:
    """The draw of outputs themselves, where others read, score or reduce what it draws."""
    while not isinstance(draw, (Vectorised, IsolatedRelease)) and hasattr(draw, "draw"):
        draw = draw.draw
    return draw


def underlying_release(draw: Draw) -> Any:
    """The function or declared mechanism that is drawn from."""
    inner = underlying_draw(draw)
    return getattr(inner, "release", getattr(inner, "__self__", inner))


def calls_once_a_run(draw: Draw) -> bool:
    """Whether a call of the release makes one run, as its signature or its `Command` says."""
    inner = underlying_draw(draw)
    if isinstance(inner, IsolatedRelease):
        return not inner.takes_size
    if not isinstance(inner, Vectorised):
        return False
    return not (inner.form.size and getattr(inner.release, "takes_size", True))


def as_output_array(outputs: list[Any]) -> NDArray[Any]:
    """Outputs as an array of numbers or strings if all are alike, else of objects."""
    kinds = {type(output) for output in outputs}
    if len(kinds) == 1:
        kind = kinds.pop()
        if kind is np.ndarray:  # a subclass may have a mask, or fields
            # A stack is stored in the usual order, and without notes: it would hide other ones.
            usual = all(map(is_stored_as_usual, outputs))
            if usual and len({(output.dtype, output.shape) for output in outputs}) == 1:
                return np.stack(outputs)
        elif kind in ARRAY_TYPES or issubclass(kind, np.generic):
            array = np.asarray(outputs)
            # Python's integers may be too long; strings would lose their trailing nulls
            if array.dtype.kind in "biuf":
                return array
    return _as_object_array(outputs)


def is_stored_as_usual(array: NDArray[Any]) -> bool:
    """Whether an array is stored as numpy does by itself, and has no notes."""
    dtype, flags = array.dtype, array.flags
    return flags.c_contiguous and flags.writeable and dtype.isnative and not dtype.metadata


def _outcome(release: Callable[..., Any], value: Any, rng: np.random.Generator) -> Any:
    """The output of one run, or the exception that it raised."""
    try:
        return release(value, rng)
    except (Exception, SystemExit) as error:
        return RaisedOutcome(type(error).__name__, _message(error), _place(error))


@final
@dataclass(frozen=True, slots=True)
class ObservedOutcome:
    """The output of a run, and what the run wrote and warned of."""

    output: Any
    written: str


def _observed_outcome(
    release: Callable[..., Any], value: Any, rng: np.random.Generator
) -> ObservedOutcome:
    written = io.StringIO()
    with (
        warnings.catch_warnings(record=True) as caught,
        contextlib.redirect_stdout(written),
        contextlib.redirect_stderr(written),
    ):
        warnings.simplefilter("always")
        output = _outcome(release, value, rng)
    texts = [f"{warning.category.__name__}: {warning.message}" for warning in caught]
    return ObservedOutcome(output, "\n".join([*texts, written.getvalue()]))


def observed_draw(
    draw: Draw, pair: Sequence[Any], runs: int, executor: Executor | None = None
) -> Draw:
    """The draw, with what its runs write and warn of, if not all runs write the same.

    ``runs`` is the number of runs of the audit; a few more calls decide it, with generators of
    their own.  Where one call makes many runs, or runs share a process as threads do, it is not
    known which run wrote what: such runs are not observed.
    """
    if not isinstance(draw, Vectorised) or draw.form.size or draw.form.awaited:
        return draw
    if executor is not None:
        from concurrent.futures import ProcessPoolExecutor  # takes long to import

        if not isinstance(executor, ProcessPoolExecutor):
            return draw
    observed, calls = replace(draw, observed=True), min(max(runs // RUNS_PER_CALL, 1), MAX_CALLS)
    outcomes = [run for value in pair for run in observed(value, np.random.default_rng(0), calls)]
    return observed if len({run.written for run in outcomes}) > 1 else draw


def _message(error: BaseException, depth: int = 0) -> str:
    """What a traceback shows of an exception: message, notes, and the exceptions before it."""
    try:
        message = "\n".join([str(error), *map(str, getattr(error, "__notes__", ()))])[:MAX_SHOWN]
    except Exception as failed:  # the exception's own method may raise any exception
        message = f"unreadable: {type(failed).__name__}"
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is None or depth == MAX_CAUSES:
        return message
    return f"{message} from {type(cause).__name__}: {_message(cause, depth + 1)}"


def _place(error: BaseException) -> str:
    """The file and the line that raised an exception."""
    frame = error.__traceback__
    if frame is None:
        return ""
    while frame.tb_next is not None:
        frame = frame.tb_next
    return f"at {os.path.basename(frame.tb_frame.f_code.co_filename)}:{frame.tb_lineno}"


def _checked_outputs(many: Any, size: int) -> NDArray[Any]:
    """What a release returned for ``size`` runs as an array with the runs along its first axis.

    A list of outputs, a tuple of columns and anything that converts to an array are taken.
    """
    if isinstance(many, list) and len(many) == size:
        return as_output_array(many)
    if isinstance(many, tuple) and len(many) != size:
        # a tuple of columns, each an array over the runs
        columns = [np.asarray(column) for column in many]
        if columns and all(column.shape[:1] == (size,) for column in columns):
            return _as_object_array(list(zip(*columns, strict=True)))
    if isinstance(many, np.ma.MaskedArray) and len(many) == size:
        return _as_object_array(list(many))
    try:
        output = plain_array(many)
    except ValueError:  # ragged
        output = np.empty(0)
    if output.shape[:1] != (size,):
        shown = f"outputs of shape {output.shape}" if output.size else f"a {type(many).__name__}"
        raise ParameterError("release", shown, f"one output for each of {size} runs")
    return output


def plain_array(output: Any) -> NDArray[Any]:
    """A tensor, or anything that converts, as an array of numpy's own numbers."""
    if not hasattr(output, "detach"):
        return np.asarray(output)
    output = output.detach().cpu()
    output = output.to_dense() if getattr(output, "is_sparse", False) else output
    output = output.resolve_conj().resolve_neg()
    try:
        return np.asarray(output.numpy())
    except TypeError:  # numbers that numpy does not have, such as bfloat16
        return np.asarray(output.float().numpy())


def _as_object_array(outputs: list[Any]) -> NDArray[Any]:
    array = np.empty(len(outputs), dtype=object)
    for index, output in enumerate(outputs):  # a slice assignment would unpack the outputs
        array[index] = output
    return array


def release_notes(release: Any, pair: Sequence[Any], runs: int) -> tuple[str, ...]:
    """Sentences on a release that was audited in ``runs`` runs; none if nothing is unusual."""
    return tuple(SENTENCES[number] for number in observations(release, pair, runs))


def observations(release: Any, pair: Sequence[Any], runs: int) -> list[int]:
    """The numbers of the sentences that are true of a release."""
    if not isinstance(release, Vectorised):  # declared mechanisms change nothing
        return []
    size = min(max(runs // RUNS_PER_CALL, 1), MAX_CALLS)
    try:
        changed = [_draw_and_compare(release, value, size) for value in (*pair, pair[0])]
    except Exception:  # the release raised here, though not in the runs of the audit
        return []
    numbers = []
    if not release.form.generator:
        numbers.append(NO_GENERATOR)
    elif surely_differ(list(changed[0][1]), list(changed[-1][1])):
        numbers.append(OTHER_RANDOMNESS)
    if any(value_changed for value_changed, _ in changed):
        numbers.append(CHANGED_VALUE)
    if any(map(is_shared, pair)):
        numbers.append(SHARED_VALUE)
    if all(type(output) is RaisedOutcome for _, outputs in changed for output in outputs):
        numbers.append(ALWAYS_RAISED)
    return numbers


def _draw_and_compare(release: Vectorised, value: Any, size: int) -> tuple[bool, Any]:
    """Whether some call changed its value, and the outputs under a fixed seed."""
    digest_before, changed = digest(value), [False]
    last_copy = None

    def checked_copies() -> Iterator[Any]:
        # A copy is compared when the next one is asked for, so that only one is kept at a time: a
        # value may be large.  The last one is compared below.
        nonlocal last_copy
        for last_copy in copies(value):
            yield last_copy
            changed.append(_has_changed(last_copy, value, digest_before))

    # What these calls print is not reported: they come on top of the runs of the audit.
    one_by_one = not (release.form.size or release.form.awaited)
    observed = replace(release, observed=one_by_one)
    outputs = observed.draw(checked_copies(), np.random.default_rng(0), size)
    if one_by_one:
        outputs = _as_object_array([run.output for run in outputs])
    return any(changed) or _has_changed(last_copy, value, digest_before), outputs


def _has_changed(copied: Any, value: Any, digest_before: str | None) -> bool:
    """Whether a copy is no longer as the value was, as far as both can be read."""
    digest_now = None if copied is value else digest(copied)
    return None not in (digest_now, digest_before) and digest_now != digest_before
