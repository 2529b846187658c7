"""Which command measured a number of the pages, and whether it is what the command printed.

A page holds its measured numbers in blocks of three kinds, each closed by ``<!-- end -->``:

    <!-- measured: NAME ...; stated: 54, 20 000; computed: 1.205 / .315 -->
    <!-- written: NAME -->
    <!-- timed: SCRIPT ...; DATE, COMMIT -->

NAME is an experiment.  What its full form printed is kept in docs/records/NAME.txt, beside the CSV
of docs/figures.  In a measured block every number is one of those, rounded as it is printed, or is
``stated`` (a setting that no record repeats) or ``computed`` from numbers that are.  A written
block holds lines of the record as they are.  A timed block depends on the machine.

``python -m tests.docs.numbers [NAME ...]`` (`make numbers`) runs the experiments again in full,
writes records, figures and written blocks, and lists the numbers that are stale.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from experiments.catalogue import FIGURES

ROOT = Path(__file__).parents[2]
DOCS, RECORDS, DRAWN = ROOT / "docs", ROOT / "docs" / "records", ROOT / "docs" / "figures"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
COMMAND = "python -m experiments {} --out docs/figures"
BLOCK = re.compile(r"<!-- (measured|written|timed): ([^>]*?) -->\n(.*?)<!-- end -->", re.DOTALL)
# what is quoted, linked, or a power of ten
NO_NUMBER = re.compile(
    r"`[^`\n]*`|\]\([^)]*\)|<sub>.*?</sub>|<!--.*?-->|10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+(?!\d)|\*\d+\*", re.DOTALL
)
DIGITS = r"(?:(?:\d{1,3}(?:[ ,]\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)"
NUMBER = re.compile(rf"(?<![\w.])({DIGITS}(?:e[-−+]?\d+|·10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?)(?![\w])")
PAIR = re.compile(rf"({NUMBER.pattern}) ± ({NUMBER.pattern})")
RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


@dataclass(frozen=True)
class Printed:
    """A number as a page prints it: its value, and half a unit of its last digit."""

    words: str
    value: float
    half: float

    @classmethod
    def of(cls, words: str) -> Printed:
        """From words such as .0953, 1 568, 2.4e-5 or 7.84·10⁻⁴."""
        plain = words.translate(RAISED).replace("·10", "e").replace("−", "-")
        plain = re.sub(r"[ ,]", "", plain)
        mantissa, _, power = plain.partition("e")
        decimals = len(mantissa.partition(".")[2])
        half = 0.5000001 * 10.0 ** (int(power or 0) - decimals)
        return cls(words, float(plain), half)

    def rounds(self, value: float) -> bool:
        """Whether it is this value rounded, or the value in per cent."""
        sizes = abs(value), 100 * abs(value)
        return any(abs(size - self.value) <= self.half + 1e-9 * size for size in sizes)

    @property
    def small(self) -> bool:
        """A count or an index, not a measured number."""
        return self.value < 10 and self.half > 0.4


def printed_in(text: str) -> list[Printed]:
    """The numbers of a text, but for what is quoted."""
    return [Printed.of(found[1]) for found in NUMBER.finditer(NO_NUMBER.sub(" ", text))]


@dataclass(frozen=True)
class Block:
    """A block of a page; ``names`` are those of its commands."""

    page: Path
    kind: str
    names: tuple[str, ...]
    notes: dict[str, str]
    text: str

    def stated(self) -> list[Printed]:
        """Numbers that no command printed."""
        return printed_in(self.notes.get("stated", ""))

    def computed(self) -> list[tuple[str, float]]:
        """Expressions of printed numbers, and their values."""
        found = []
        for words in filter(None, re.split(r",\s", self.notes.get("computed", ""))):
            if not re.fullmatch(r"[-\d.e+*/() ]+", words):
                raise ValueError(f"{self.page.name}: not arithmetic: {words}")
            found.append((words, float(eval(words))))  # noqa: S307 - numbers and operators alone
        return found


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page."""
    found = []
    for kind, head, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        commands, *rest = (part.strip() for part in " ".join(head.split()).split(";"))
        notes = dict(part.split(": ", 1) if ": " in part else ("when", part) for part in rest)
        found.append(Block(page, kind, tuple(shlex.split(commands)), notes, text))
    return found


@cache
def record(name: str) -> str:
    """What the full form of an experiment printed, and its CSV."""
    path = RECORDS / f"{name}.txt"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    file = FIGURES[name].file
    return text + ((DRAWN / f"{file}.csv").read_text(encoding="utf-8") if file else "")


@cache
def known(name: str) -> tuple[list[float], list[tuple[float, float]]]:
    """The numbers of a record, and its pairs of a mean and an error."""
    text = record(name).replace("−", "-").replace("|", " ")
    numbers = re.findall(r"(?<![\w.])\d*\.?\d+(?:,\d{3})*(?:e[-+]?\d+)?", text)
    values = [float(words.replace(",", "")) for words in numbers]
    pairs = [(float(a), float(b)) for a, b in re.findall(r"(\d*\.?\d+) ± (\d*\.?\d+)", text)]
    for line in text.splitlines():
        cells = line.split(",")
        for one, next_ in zip(cells, cells[1:], strict=False):
            try:
                pairs.append((float(one), float(next_)))
            except ValueError:
                continue
    return values, pairs


def stale(block: Block) -> list[str]:
    """What a measured block prints and no record has."""
    values = [value for name in block.names for value in known(name)[0]]
    pairs = [pair for name in block.names for pair in known(name)[1]]
    fixed = {one.value for one in block.stated()}
    computed = block.computed()
    values_and_computed = values + [value for _, value in computed]
    text = NO_NUMBER.sub(" ", block.text)
    wrong = []
    for found in PAIR.finditer(text):
        mean, error = Printed.of(found[2]), Printed.of(found[4])
        if not any(mean.rounds(a) and error.rounds(b) for a, b in pairs):
            wrong.append(found[0])
    operands = [one for words, _ in computed for one in printed_in(words)]
    for one in [*printed_in(PAIR.sub(" ", text)), *operands]:
        if not (one.small or one.value in fixed or any(map(one.rounds, values_and_computed))):
            wrong.append(one.words)
    return wrong


def main(names: list[str]) -> int:
    """Run experiments in full; write what they print; say what is stale."""
    for name in names or FIGURES:
        command = [sys.executable, *shlex.split(COMMAND.format(name))[1:]]
        done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
        (RECORDS / f"{name}.txt").write_text(done.stdout, encoding="utf-8")
    status = 0
    for page in PAGES:
        for block in blocks_of(page):
            if block.kind == "measured" and stale(block):
                status = 1
                print(f"{page.relative_to(ROOT)}: {' '.join(block.names)}: {stale(block)}")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
