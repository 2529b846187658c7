"""Where in the records and files each number of a block stands: tests/docs/places.csv.

A block of a page is compared in order.  Its first number has the first place that the file lists
for the block, and so on, so that two numbers that are exchanged are both found.  A place is a line
of a record or a file, with ``#`` for its numbers, and the column; or a row of a CSV and its header.
Small counts of a stated block have places too, for a file has few numbers.  Places
stay when an experiment is run again and its numbers change.

``python -m tests.docs.places PAGE ...`` proposes places for the blocks of a page whose numbers are
not at theirs: those on the shortest way through the records.  It knows values and no words; read
in the diff whether the places say what the page says, and change those that do not.
"""

from __future__ import annotations

import csv
import itertools
import re
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from experiments.catalogue import FIGURES
from tests.docs import blocks
from tests.docs.blocks import Block, Printed

FILE = Path(__file__).with_suffix(".csv")
HEAD = ("page", "block", "experiment", "line", "column")
OTHER_EXPERIMENT = 6.0  # of a way: about as far as the last line of a record
# pages say them seldom, and few digits are often theirs by chance
SELDOM = {"seeds", "standard_error", "minimum_of_10", "true_epsilon"}


@dataclass(frozen=True)
class Place:
    """A number of a record: where it stands, its value, and the error that follows it."""

    experiment: str
    line: str
    column: str
    at: tuple[int, int]
    value: float
    error: float | None = None

    @property
    def name(self) -> tuple[str, str, str]:
        """What the file says of it."""
        return self.experiment, self.line, self.column

    def has(self, mean: Printed, error: Printed | None) -> bool:
        """Whether a page prints this number, rounded, and its error where it prints one."""
        if error is None:
            return mean.rounds(self.value)
        return self.error is not None and mean.rounds(self.value) and error.rounds(self.error)


@cache
def places(name: str) -> dict[tuple[str, str, str], Place]:
    """All numbers that an experiment printed or drew, or those of a file, by their names."""
    known = FIGURES.get(name)
    text = blocks.record(name) if known else (blocks.ROOT / name).read_text("utf-8")
    lines = re.sub(r"(?<=\d)_(?=\d)", "", text).splitlines()
    rows = blocks.drawn(name) if known and known.file else []
    if rows:  # the CSV has the values of curves with more digits
        lines = [line for line in lines if not blocks.CURVE.search(line)]
    seen: Counter[str] = Counter()
    found: list[Place] = []

    def add(label: str, cells: list[tuple[str, float, float | None]]) -> None:
        seen[label] += 1
        line = label if seen[label] == 1 else f"{label} [{seen[label]}]"
        at = seen.total()
        found.extend(
            Place(name, line, column, (at, i), *values) for i, (column, *values) in enumerate(cells)
        )

    for line in lines:
        errors = {pair.start(2): Printed.of(pair[4]).value for pair in blocks.PAIR.finditer(line)}
        matches = list(blocks.NUMBER.finditer(line))
        label = " ".join(blocks.NUMBER.sub("#", line).split())
        add(label, [(str(i), Printed.of(one[1]).value, errors.get(one.start(1)))
                    for i, one in enumerate(matches, 1)])  # fmt: skip
    for row in rows:
        keys = list(itertools.takewhile(lambda key: key != "seeds", row))[1:]
        error = float(row["standard_error"])
        add("|".join(row[key] for key in keys),
            [(key, float(cell), error if key == "mean" else None)
             for key, cell in row.items() if blocks.PLAIN.fullmatch(cell)])  # fmt: skip
    for label, value in blocks.slopes_and_shares(rows).items():
        add(label, [("computed", value, None)])
    return {place.name: place for place in found}


def in_order(block: Block) -> list[tuple[Printed, Printed | None]]:
    """The numbers of a block with their errors, without what is given and small measured counts."""
    text = blocks.NO_NUMBER.sub(" ", block.text)
    errors = {pair.start(2): pair for pair in blocks.PAIR.finditer(text)}
    skipped = {pair.start(4) for pair in errors.values()}
    found = []
    for one in blocks.NUMBER.finditer(text):
        if one.start(1) in skipped or blocks.NO_POWER.search(one[1]):
            continue
        mean = Printed.of(one[1], text[one.end() : one.end() + 2].strip().startswith("%"))
        pair = errors.get(one.start(1))
        uncounted = mean.small and block.kind == "measured"
        if pair is None and (uncounted or block.explains(mean)):
            continue
        if mean.value not in block.given:
            found.append((mean, Printed.of(pair[4]) if pair else None))
    return found


@cache
def listed() -> dict[tuple[str, int], list[tuple[str, str, str]]]:
    """The places of the file, by page and block."""
    found: dict[tuple[str, int], list[tuple[str, str, str]]] = {}
    with FILE.open(newline="", encoding="utf-8") as file:
        for page, block, *place in itertools.islice(csv.reader(file), 1, None):
            experiment, line, column = place
            found.setdefault((page, int(block)), []).append((experiment, line, column))
    return found


def misplaced(block: Block) -> list[str]:
    """What is wrong with the measured numbers of a block."""
    printed, names = in_order(block), listed().get(block.key, [])
    if len(printed) != len(names):
        command = f"python -m tests.docs.places {block.page.name}"
        return [f"{len(printed)} numbers, {len(names)} places: {command}"]
    if strangers := {name[0] for name in names} - set(block.names):
        return [f"places of {', '.join(strangers)}"]
    found = [places(name[0]).get(name) for name in names]
    return [
        mean.words
        for (mean, error), place in zip(printed, found, strict=True)
        if place is None or not place.has(mean, error)
    ]


def proposed(block: Block) -> list[Place]:
    """The places of a block's numbers that are nearest to each other, in order."""
    known = [place for name in block.names for place in places(name).values()]
    way, before, each = np.zeros(1), [], []
    for mean, error in in_order(block):
        here = [place for place in known if place.has(mean, error)]
        if not here:
            raise ValueError(f"{block.key}: no record has {mean.words}")
        if each:
            steps = way[:, None] + np.array([[_step(a, b) for b in here] for a in each[-1]])
            before.append(np.argmin(steps, axis=0))
            way = np.min(steps, axis=0)
        # a setting is printed as it is; a seldom column, or a number that is rounded to few digits
        chance = [3.0 * (place.column in SELDOM) + (place.value != mean.value) for place in here]
        way = way + chance
        each.append(here)
    at, found = int(np.argmin(way)), []
    for here, come_from in zip(reversed(each), [*reversed(before), None], strict=True):
        found.append(here[at])
        at = 0 if come_from is None else int(come_from[at])
    return found[::-1]


def _step(a: Place, b: Place) -> float:
    """How far one place is from the one before: lines count, other columns and steps back more."""
    if a.experiment != b.experiment:
        return OTHER_EXPERIMENT
    lines, columns = b.at[0] - a.at[0], b.at[1] - a.at[1]
    back = lines < 0 or (lines == 0 and columns <= 0)
    return float(np.log1p(abs(lines))) + 0.5 * (columns != 0) + 0.7 * back


def main(names: list[str]) -> None:
    """Propose the places of the blocks of some pages whose numbers are not at those listed."""
    kept = {}
    for page in blocks.PAGES:
        for block in blocks.blocks_of(page):
            if block.kind not in {"measured", "stated"} or not in_order(block):
                continue
            kept[block.key] = listed().get(block.key, [])
            if page.name in names and misplaced(block):
                kept[block.key] = [place.name for place in proposed(block)]
    with FILE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEAD)
        writer.writerows((*key, *place) for key in sorted(kept) for place in kept[key])


if __name__ == "__main__":
    main(sys.argv[1:])
