"""Runs of the audited function, on the data or on their neighbour, each recorded on a tape.

The tape records all draws and comparisons of the run; if it is given a recorded tape, it hands out
the outputs of that one instead of drawing.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, final

import numpy as np

from audits.recorded_runs.comparisons import plain_result, without_parts
from audits.recorded_runs.draws.numpy_draws import RecordingGenerator
from audits.recorded_runs.held_state import HeldState
from audits.recorded_runs.records import missing_record, number_of_records
from audits.recorded_runs.tape import DrawSite, HiddenDraws, Parted, Redraw, Tape, running
from audits.recorded_runs.watched_lines import WatchedLines

GENERATORS = ("rng", "generator", "random_state")  # arguments that get a recording generator


@final
class Run(NamedTuple):
    """The tape of a run, and its plain result; without a meaning if the run left the recorded one.

    ``tape.parted`` says whether it left it.
    """

    tape: Tape
    result: Any


@final
class Runs(NamedTuple):
    """The audited function with its two data sets, and how each run of it is made."""

    function: Callable[..., Any]
    data: Any
    neighbour: Any
    seed: int
    public: frozenset[DrawSite]  # where public randomness is drawn: it hides nothing, as no noise
    # Paths to the parts of the result that differ between runs on the same data: they are left out.
    unsteady: frozenset[str] = frozenset()
    state: HeldState | None = None  # what the function keeps from one call to the next

    def run(
        self,
        recorded: Tape | None = None,
        of_neighbour: bool = False,
        redraw: Redraw | None = None,
        varied: HiddenDraws | None = None,
        watched: WatchedLines | None = None,
    ) -> Run:
        """Run the function once on a copy of the data; an exception is a result too.

        The run follows the ``recorded`` tape, if there is one; `Tape` explains ``redraw`` and
        ``varied``.  Lines are looked at if they are ``watched``.
        """
        data = self.neighbour if of_neighbour else self.data
        tape = Tape(
            self.seed,
            number_of_records(data),
            missing_record(self.data, self.neighbour),
            recorded,
            public=self.public,
            redraw=redraw,
            varied=varied,
        )
        copied_data = copy.deepcopy(data)
        if self.state is not None:
            self.state.restore()
        generator_argument = _generator_for(self.function, self.seed)
        result: Any = None
        with running(tape):
            try:
                with contextlib.nullcontext() if watched is None else watched.looking():
                    result = plain_result(self.function(copied_data, **generator_argument))
            except Parted:
                pass
            except Exception as error:  # An exception is an outcome like any other.
                result = {"exception": type(error).__name__, "message": str(error)}
        if tape.parted is not None:
            return Run(tape, None)
        return Run(tape, without_parts(result, self.unsteady) if self.unsteady else result)


def _generator_for(function: Callable[..., Any], seed: int) -> dict[str, Any]:
    """Return a recording generator under the name of the argument that takes one, if any does.

    The first argument takes the data, whatever its name.
    """
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}
    for name in GENERATORS:
        if name in parameters and next(iter(parameters)) != name:
            return {name: RecordingGenerator(np.random.PCG64(seed))}
    return {}
