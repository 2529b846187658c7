"""The table of what exactness costs each mechanism; `make table` writes it into docs/.

The privacy claim of a mechanism's exact form holds for the release as it is, to the last bit.  The
proof of an idealised form treats floats as real numbers, so that form is for study only.  A row of
the table compares the epsilons of both forms, and the times of a draw.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np

from mechanisms.base.marked_table import markdown_table, write_between
from mechanisms.base.mechanism import EXACT, IDEALISED, Mechanism, registry

# the lines of the page between which the table stands
COST_MARKS = (
    "<!-- cost of exactness: made by `make table` -->\n",
    "<!-- end of cost -->",
)
# Heads of the cells that are the same on every machine, and of those that are measured.
COST_HEAD = ("mechanism", "epsilon, exact", "idealised")
TIMES_HEAD = ("ns a draw, exact", "exact, by the system's key", "idealised")
AT_DELTA = 1e-4  # the delta at which epsilons are compared
BATCH, TIMES = 100_000, 3  # draws in a batch, and batches that are timed; the fastest one counts


def cost_table() -> str:
    """Return a Markdown table, a row for each mechanism with an exact form, measured now."""
    rows = ((*row, *_times(exact, idealised)) for row, exact, idealised in exact_forms())
    return markdown_table((*COST_HEAD, *TIMES_HEAD), rows)


def exact_forms() -> Iterator[tuple[tuple[str, ...], Mechanism, Mechanism | None]]:
    """Yield a row's cells that are the same on every machine, and the exact and idealised forms.

    Mechanisms without an exact form are left out, and so are those that wrap another one, their
    ``inner`` mechanism.
    """
    for cls in registry():
        forms = {instance.arithmetic: instance for instance in reversed(cls.instances())}
        if EXACT in forms and "inner" not in getattr(cls, "__slots__", ()):
            exact, idealised = forms[EXACT], forms.get(IDEALISED)
            row = (f"`{exact!r}`", _epsilon(exact), _epsilon(idealised))
            yield row, exact, idealised


def _epsilon(mechanism: Mechanism | None) -> str:
    """Return epsilon at a small delta in nine digits, or a dash where there is no such form."""
    return "-" if mechanism is None else f"{mechanism.loss.epsilon_at(AT_DELTA):.9g}"


def _times(exact: Mechanism, idealised: Mechanism | None) -> tuple[str, ...]:
    """Return the cells of `TIMES_HEAD`: nanoseconds, or a dash where there is no such form."""
    seeded, system, of_floats = (
        "-" if form is None else f"{_nanoseconds(form, with_seed):.0f}"
        for form, with_seed in ((exact, True), (exact, False), (idealised, True))
    )
    return seeded, system, of_floats


def _nanoseconds(mechanism: Mechanism, seeded: bool) -> float:
    """Return the processor time of a draw, in the fastest of a few batches.

    Without a seed, random bits come from a cipher with a key of the operating system.
    """
    rng = np.random.default_rng(0)
    value = mechanism.values.example(rng)
    batch, shortest = np.stack([np.asarray(value)] * BATCH), math.inf
    for _ in range(TIMES):
        start = time.process_time()
        mechanism.release(batch, rng if seeded else None)
        shortest = min(shortest, time.process_time() - start)
    return shortest / BATCH * 1e9


def write_cost(page: str) -> None:
    """Write the table into a page, between its two marks."""
    write_between(page, COST_MARKS, cost_table())
