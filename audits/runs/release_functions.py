"""The runs of a release: any function as one of (value, rng, size), which gives an output a run.

How a function takes its arguments is its `CallForm`.  Outputs of many runs are one array, runs
along its first axis: of numbers or strings if all outputs have one type and shape, else of objects.
If runs are made one at a time, an exception is an outcome like any other.
"""

from __future__ import annotations

import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accountant.errors import ParameterError
from audits.runs.call_forms import CallForm, awaiting, call_form
from audits.values.copies import copies

MAX_CAUSES = 8  # number of earlier exceptions in a chain that are read
CHUNK = 1 << 15  # runs at a time, which fit in the processor's cache and bound the memory
Draw = Callable[[Any, np.random.Generator, int], NDArray[Any]]
ARRAY_TYPES = (bool, int, float, str, bytes)  # types that arrays hold as they are


class IsolatedRelease(ABC):
    """A release that runs elsewhere: it can change no value here, so it needs no copies."""

    @property
    @abstractmethod
    def takes_size(self) -> bool:
        """Whether one call of the function there makes many runs."""

    @abstractmethod
    def __call__(self, value: Any, rng: np.random.Generator, size: int) -> NDArray[Any]:
        """Outputs of ``size`` runs along the first axis."""


@final
@dataclass(frozen=True, slots=True)
class RaisedOutcome:
    """The outcome of a run that raised: the exception's type, its message, the line of code."""

    kind: str
    message: str = ""
    place: str = ""


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
                run_values = itertools.islice(values, size)
                return as_output_array([_outcome(call, value, rng) for value in run_values])
        try:
            with awaiting(form.many_runs, awaited=form.awaited) as call_many:
                outputs = call_many(release, next(values), rng, size)
        except ParameterError:  # an error of this package, which names the remedy
            raise
        except Exception as error:
            # it is not known which of the runs failed
            # the message is not shown, here or below, because it may name records
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
    """Whether a call of the release makes one run, as its signature says."""
    inner = underlying_draw(draw)
    if isinstance(inner, IsolatedRelease):
        return not inner.takes_size
    return isinstance(inner, Vectorised) and not inner.form.size


def as_output_array(outputs: list[Any]) -> NDArray[Any]:
    """Outputs as an array of numbers or strings if all are alike, else of objects."""
    kinds = {type(output) for output in outputs}
    if len(kinds) == 1:
        kind = kinds.pop()
        if kind is np.ndarray:  # a subclass may have a mask, or fields
            if len({(output.dtype, output.shape) for output in outputs}) == 1:
                return np.stack(outputs)
        elif kind in ARRAY_TYPES or issubclass(kind, np.generic):
            array = np.asarray(outputs)
            # Python's integers may be too long; strings would lose their trailing nulls
            if array.dtype.kind in "biuf":
                return array
    return _as_object_array(outputs)


def _outcome(release: Callable[..., Any], value: Any, rng: np.random.Generator) -> Any:
    try:
        return release(value, rng)
    except (Exception, SystemExit) as error:
        return RaisedOutcome(type(error).__name__, _message(error), _place(error))


def _message(error: BaseException, depth: int = 0) -> str:
    """What a traceback shows of an exception: message, notes, and the exceptions before it."""
    try:
        message = "\n".join([str(error), *map(str, getattr(error, "__notes__", ()))])[:200]
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
