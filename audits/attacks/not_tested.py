"""What an audit did not look at, by kind, from what it did."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import numpy as np

from audits.claims.findings import (
    ARGUMENTS,
    LOW_BITS,
    OTHER_EVENTS,
    OTHER_PAIRS,
    SIDE_EFFECTS,
    TIMING,
    UNSEEN_PARTS,
    NotTested,
)
from audits.runs.command import FIXED, Command
from audits.runs.release_functions import (
    BY_PLACE,
    IsolatedRelease,
    Vectorised,
    as_output_array,
    calls_once_a_run,
    underlying_draw,
    underlying_release,
    vectorised,
)
from mechanisms.base.mechanism import Mechanism

EXACT_KINDS = "biuSUmM"  # kinds of arrays of which every difference is seen
EXACT_TYPES = (bool, int, str, bytes, type(None))
ONE_PAIR = "one pair of values was tried"
OWN_PAIRS = "the worst pairs by its own density were tried"


def not_tested(
    release: Any,
    pair: Any,
    unseen: tuple[str, ...],
    pairs_tried: str = "",
    events: str = "",
    bits: bool = False,
) -> tuple[NotTested, ...]:
    """What an audit of ``release`` on ``pair`` did not look at.

    ``pairs_tried`` says which pairs it tried, if not one; ``events`` which parts of outputs it left
    out; ``bits`` that it looked at the low bits of numbers.
    """
    is_mechanism = isinstance(release, Mechanism)
    if not pairs_tried:
        pairs_tried = OWN_PAIRS if pair is None and is_mechanism else ONE_PAIR
    draw = release if is_mechanism else vectorised(release)
    value = release.worst_pair()[0] if pair is None and is_mechanism else pair[0]
    # What a run writes is read where this process makes each run, see `observed_draw`.
    is_here = isinstance(underlying_draw(draw), Vectorised) and calls_once_a_run(draw)
    is_observed = is_here and not isinstance(underlying_release(draw), Command)
    reasons = {
        LOW_BITS: "guesses do not see the floating-point grid; audit_bits does"
        if not bits and shows_floats(draw, value)
        else "",
        TIMING: "audit_timing looks at it",
        OTHER_PAIRS: pairs_tried,
        SIDE_EFFECTS: f"files, network, globals{', printed texts, warnings' * (not is_observed)}",
        ARGUMENTS: ", ".join(fixed_arguments(release)),
        UNSEEN_PARTS: ", ".join(unseen),
        OTHER_EVENTS: events,
    }
    return tuple(NotTested(kind, reason) for kind, reason in reasons.items() if reason)


def fixed_arguments(release: Any) -> list[str]:
    """The names of arguments that had one value in all runs; never what they are.

    Of a mechanism they are its fields; of an object with fields it is what the object holds.
    """
    if isinstance(release, Mechanism):
        return [field.name for field in dataclasses.fields(release)]
    draw = underlying_draw(vectorised(release))
    if isinstance(draw, IsolatedRelease):
        return [draw.fixed]
    function = underlying_release(draw)
    if isinstance(function, Command):
        return [FIXED]
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some functions written in C have no signature
        return []
    many = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    names = [parameter.name for parameter in parameters[1:] if parameter.kind not in many]
    passed = {"rng", "size"}
    form = draw.form  # type: ignore[attr-defined]  # of a function of this process
    passed |= set(names[: (form.generator == BY_PLACE) + (form.size == BY_PLACE)])
    holder = getattr(function, "__self__", function)
    is_plain = inspect.isroutine(holder) or inspect.ismodule(holder) or inspect.isclass(holder)
    has_fields = not is_plain and bool(getattr(holder, "__dict__", None))
    fields = [f"what {type(holder).__name__} holds"] if has_fields else []
    return [name for name in names if name not in passed] + fields


def shows_floats(draw: Any, value: Any) -> bool:
    """Whether an output of one more run may have floats, whose low bits can tell the value."""
    if isinstance(draw, Mechanism):
        draw = draw.release
    elif isinstance(underlying_draw(draw), IsolatedRelease):
        return True
    draw = underlying_draw(draw)
    is_observed = isinstance(draw, Vectorised) and not (draw.form.size or draw.form.awaited)
    if is_observed:  # what this run prints is of no run of the audit
        draw = dataclasses.replace(draw, observed=True)
    try:
        output = np.asarray(draw(value, np.random.default_rng(0), 1))
        output = as_output_array([run.output for run in output]) if is_observed else output
    except Exception:  # the release raised here, though not in the runs of the audit
        return True
    if output.dtype == object:
        # The class that an object states may raise when it is read; its type does not.
        return not all(type(item) in EXACT_TYPES for item in output.flat)
    return output.dtype.kind not in EXACT_KINDS
