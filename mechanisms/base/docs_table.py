"""The table of mechanisms in the docs, made from the declarations; `make table` writes it.

A row has a mechanism's parameters, what it releases and claims, and how long a release takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from accountant.losses.finite_pair import PairLoss
from mechanisms.base.marked_table import markdown_table, write_between
from mechanisms.base.mechanism import Arithmetic, Mechanism, registry
from mechanisms.base.parameters import parameters_of

# the lines of the page between which the table stands
TABLE_MARKS = (
    "<!-- table of mechanisms: made by `make table` -->\n",
    "<!-- end of table -->",
)
TABLE_HEAD = ("mechanism", "releases", "claim, for example", "arithmetic", "source", "known limits")
TIMED_BATCH = 100_000  # releases in a batch that is timed


def table() -> str:
    """Return a Markdown table, a row for each declared mechanism, with times measured now."""
    head = (*TABLE_HEAD, "one release", f"each of {TIMED_BATCH:,}")
    rows = ((*row, *_release_times(cls.instances()[0])) for cls, row in declarations())
    return markdown_table(head, rows)


def declarations() -> Iterator[tuple[type[Mechanism], tuple[str, ...]]]:
    """Yield each declared mechanism and the cells of its row that are the same on every machine."""
    for cls in registry():
        instances = cls.instances()
        example = instances[0]
        names = ", ".join(parameters_of(cls))
        kinds = sorted(  # IDEALISED before EXACT
            {Arithmetic(instance.arithmetic).name for instance in instances}, reverse=True
        )
        bound_note = " (an upper bound)" if example.loss_is_upper_bound else ""
        claim = f"`{example!r}`: {_claim_text(example)}{bound_note}"
        signature = f"`{cls.__name__}({names})`"
        yield cls, (signature, cls.releases, claim, " or ".join(kinds), cls.reference, cls.limits)


def _claim_text(mechanism: Mechanism) -> str:
    """Return the loss as text; for a list of outcomes, their number and epsilon.

    Epsilon is the pure one; that of a list of more than 8 outcomes is at a delta, unless an outcome
    is possible on one neighbour only.
    """
    loss = mechanism.loss
    if isinstance(loss, PairLoss):
        size = len(loss.p)
        if max(loss.infinity, loss.reversed.infinity) < 1e-12 and size > 8:
            return f"{size} outcomes, epsilon {loss.epsilon_at(1e-5):.6g} at delta 1e-5"
        return f"{size} outcomes, epsilon {loss.pure:.6g}"
    return f"`{loss!r}`"


def _release_times(mechanism: Mechanism) -> tuple[str, str]:
    """Return the shortest measured times of one release and of each release in a batch, as text."""
    rng = np.random.default_rng(0)
    value = mechanism.values.example(rng)
    batch = np.stack([np.asarray(value)] * TIMED_BATCH)
    single_time = min(_timed(lambda: mechanism.release(value, rng)) for _ in range(50))
    batch_time = min(_timed(lambda: mechanism.release(batch, rng)) for _ in range(3)) / TIMED_BATCH
    return f"{single_time * 1e6:.0f} µs", f"{batch_time * 1e9:.0f} ns"


def _timed(work: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def write_table(page: str) -> None:
    """Write the table into a page, between its two marks."""
    write_between(page, TABLE_MARKS, table())
