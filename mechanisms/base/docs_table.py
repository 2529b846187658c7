"""The tables of mechanisms, made from their own declarations; `make table` writes them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from accountant.losses.finite_pair import PairLoss
from mechanisms.base.mechanism import Arithmetic, Mechanism, registry
from mechanisms.base.parameters import meanings

START, END = "<!-- table of mechanisms: made by `make table` -->\n", "<!-- end of table -->"
HEAD = ("mechanism", "releases", "claim, for example", "arithmetic", "source")
MANY = 100_000


def table() -> str:
    """Return a Markdown table with one row for every declared mechanism."""
    return _markdown(HEAD, ((*row,) for row in _rows()))


def long_table() -> str:
    """The same with the known limits, and what a release takes on this machine, measured now."""
    head = (*HEAD, "known limits", "one release", f"each of {MANY:,}")
    classes = {cls.__name__: cls for cls in registry()}
    rows = list(_rows())
    return _markdown(head, (
        (*row, cls.limits, *_times(cls.instances()[0]))
        for row, cls in zip(rows, classes.values(), strict=True)
    ))  # fmt: skip


def _rows() -> Iterator[tuple[str, ...]]:
    for cls in registry():
        instances = cls.instances()
        one = instances[0]
        names = ", ".join(meanings(cls))
        kinds = sorted({Arithmetic(each.arithmetic).name for each in instances}, reverse=True)
        loose = " (an upper bound)" if one.loose else ""
        claim = f"`{one!r}`: {_claim(one)}{loose}"
        yield f"`{cls.__name__}({names})`", cls.releases, claim, " or ".join(kinds), cls.reference


def _claim(mechanism: Mechanism) -> str:
    """The loss, or what there is to say of a long list of outcomes."""
    loss = mechanism.loss
    if isinstance(loss, PairLoss):
        size = len(loss.p)
        if max(loss.infinity, loss.reversed.infinity) < 1e-12 and size > 8:
            return f"{size} outcomes, epsilon {loss.epsilon_at(1e-5):.6g} at delta 1e-5"
        return f"{size} outcomes, epsilon {loss.pure:.6g}"
    return f"`{loss!r}`"


def _times(mechanism: Mechanism) -> tuple[str, str]:
    """Time of one release, and of each of many, in words: the best of a few."""
    rng = np.random.default_rng(0)
    value = mechanism.values.example(rng)
    batch = np.stack([np.asarray(value)] * MANY)
    one = min(_timed(lambda: mechanism.release(value, rng)) for _ in range(50))
    many = min(_timed(lambda: mechanism.release(batch, rng)) for _ in range(3)) / MANY
    return f"{one * 1e6:.0f} µs", f"{many * 1e9:.0f} ns"


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _markdown(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def between_marks(text: str) -> str:
    """The table that a page holds now."""
    return text.split(START)[1].split(END, maxsplit=1)[0]


def write_table(page: str, *, long: bool = False) -> None:
    """Write the table into a page, between its two marks."""
    path = Path(page)
    text = path.read_text(encoding="utf-8")
    made = long_table() if long else table()
    path.write_text(text.replace(START + between_marks(text), START + made), encoding="utf-8")
