"""Which command measured a number of the pages, and whether it is what the command printed.

Measured numbers of a page stand in a doctest, or in a block of one of four kinds:

    <!-- measured: NAME ...; given: 54, 20 000; computed: 1.205 / .315 --> ... <!-- end -->
    <!-- written: NAME --> ... <!-- end -->
    <!-- stated: FILE ... --> ... <!-- end -->
    <!-- tested: FILE::TEST --> ... <!-- end -->

NAME is an experiment.  What its full form printed is kept in docs/records/NAME.txt, beside the CSV
of docs/figures.  The numbers of a measured or stated block are those of the places that
tests/docs/places.csv lists for it, in this order, rounded as the page prints them; or they are
``given`` (settings that no record or file repeats), or ``computed`` from numbers that are in them.
A written block is the record as it is; of a bench, whose records are in docs/records/bench, it is
the table that `make bench` makes of the record, with its date, commit and load.  A tested block is
compared by the test.

``python -m tests.docs.numbers [NAME ...]`` (`make numbers`) runs experiments again in full, writes
their records, figures and written blocks, and lists what is stale.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from experiments.catalogue import FIGURES
from tests.docs.blocks import (
    BLOCK,
    CITED,
    DRAWN,
    MEASURED,
    NO_NUMBER,
    OWNED,
    PAGES,
    RECORDS,
    ROOT,
    Block,
    blocks_of,
    printed_in,
    record,
)
from tests.docs.places import misplaced, places


def stale(block: Block) -> list[str]:
    """What a block prints and its record or file does not have."""
    if block.kind == "written":
        (name,) = block.names
        return [] if block.text.strip() == record(name).strip() else [f"not the record of {name}"]
    if block.kind == "tested":
        file, _, test = block.names[0].partition("::")
        code = (ROOT / file).read_text(encoding="utf-8")
        return [] if f"def {test}(" in code and block.page.name in code else [block.names[0]]
    numbers_used = printed_in(" ".join(block.computed))
    values = [place.value for name in block.names for place in places(name).values()]
    return misplaced(block) + [
        one.words
        for one in numbers_used
        if not (one.small or one.value in block.given or any(map(one.rounds, values)))
    ]


def unowned(page: Path) -> list[str]:
    """Numbers that look measured, decimals or with a unit, and stand in no block or code."""
    text = page.read_text(encoding="utf-8")
    for pattern in (BLOCK, OWNED, NO_NUMBER, CITED):
        text = pattern.sub(" ", text)
    return [found[0] for found in MEASURED.finditer(text)]


def write_blocks(page: Path) -> None:
    """Put the records into the written blocks of a page."""

    def written(found: re.Match[str]) -> str:
        if found[1] != "written":
            return found[0]
        return f"<!-- written: {found[2]} -->\n{record(found[2]).strip()}\n<!-- end -->"

    text = page.read_text(encoding="utf-8")
    fresh = BLOCK.sub(written, text)
    if fresh != text:
        page.write_text(fresh, encoding="utf-8")


def main(names: list[str]) -> int:
    """Run experiments in full; write what they print; say what is stale."""
    for name in names or FIGURES:
        command = [sys.executable, "-m", "experiments", name, "--out", str(DRAWN)]
        done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
        (RECORDS / f"{name}.txt").write_text(done.stdout, encoding="utf-8")
    status = 0
    for page in PAGES:
        write_blocks(page)
        for block in blocks_of(page):
            if wrong := stale(block):
                status = 1
                print(f"{page.relative_to(ROOT)}: {' '.join(block.names)}: {', '.join(wrong)}")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
