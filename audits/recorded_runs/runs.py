"""Runs of the audited function, on the data or on their neighbour, each recorded on a tape.

The tape records all draws and comparisons of the run; if it is given a recorded tape, it hands out
the outputs of that one instead of drawing.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, final

import numpy as np

from audits.recorded_runs.comparisons import plain_result
from audits.recorded_runs.draws.numpy_draws import RecordingGenerator
from audits.recorded_runs.records import missing_record, number_of_records
from audits.recorded_runs.tape import DrawSite, Parted, Redraw, Tape, running

GENERATORS = ("rng", "generator", "random_state")  # arguments that get a recording generator


@final
class Run(NamedTuple):
    """The tape of a run, and its plain result; None if the run left the recorded one."""

    tape: Tape
    result: Any


@final
class Runs(NamedTuple):
    """What is run, on which data, and which draws are public."""

    function: Callable[..., Any]
    data: Any
    neighbour: Any
    seed: int
    public: frozenset[DrawSite]  # call sites of draws that are no noise, and the same in both runs

    def run(
        self,
        recorded: Tape | None = None,
        of_neighbour: bool = False,
        redraw: Redraw | None = None,
    ) -> Run:
        """Run the function once on a copy of the data; an exception is a result too."""
        data = self.neighbour if of_neighbour else self.data
        sizes = number_of_records(self.data), number_of_records(self.neighbour)
        tape = Tape(
            self.seed,
            sizes[of_neighbour],
            missing_record(self.data, self.neighbour),
            recorded,
            public=self.public,
            redraw=redraw,
        )
        arguments = copy.deepcopy(data)
        options = _generator_for(self.function, self.seed)
        result: Any = None
        with running(tape):
            try:
                result = plain_result(self.function(arguments, **options))
            except Parted:
                pass
            except Exception as error:  # An exception is an outcome like any other.
                result = {"exception": type(error).__name__, "message": str(error)}
        return Run(tape, None if tape.parted is not None else result)


def _generator_for(function: Callable[..., Any], seed: int) -> dict[str, Any]:
    """Return a recording generator under the name by which the function takes one, if it does."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}
    for name in GENERATORS:
        if name in parameters and next(iter(parameters)) != name:
            return {name: RecordingGenerator(np.random.PCG64(seed))}
    return {}
