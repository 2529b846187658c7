"""How long the runs of a function will take, from a few calls besides those of the audit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from accountant.errors import ParameterError
from audits.runs.release_functions import Draw

LONG_CALL, MOST_RUNS = 0.1, 1 << 10  # seconds after which a call says enough, and most runs of one
RUNS_PER_TRIAL = 32  # all trials together are at most one run more for 16


def estimate_seconds(
    draw: Draw,
    pair: tuple[Any, Any],
    runs: int,
    workers: int,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """About how many seconds so many runs take on the workers; 0 if the function fails.

    Calls of 1, 2, 4, ... runs until one is long, under a seed of their own, so that no number of
    the audit depends on them.  The first call, which loads the code, is left out.
    """
    rng, size = np.random.default_rng(0), 1
    try:
        draw(pair[0], rng, 1)
        while True:
            begin = clock()
            draw(pair[size.bit_length() % 2], rng, size)
            spent = clock() - begin
            if spent >= LONG_CALL or 2 * size > min(MOST_RUNS, runs // RUNS_PER_TRIAL):
                return spent / size * runs / workers
            size *= 2
    except ParameterError:  # the audit itself meets and reports it
        return 0.0


def advice(seconds: float, limit: float, *, early: bool) -> str | None:
    """The estimate in words, with what ends sooner; None where it is short."""
    if seconds < 10:
        return None
    shown = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    sooner = "fewer --samples" if early else "fewer --samples or --early"
    past = f", more than --max-seconds {limit:g}" if seconds > limit else ""
    at_most = "at most " if early else ""
    return f"{at_most}about {shown} left{past}; {sooner} end sooner"
