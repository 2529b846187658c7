"""Blocks of the pages that hold measured numbers, and the records of the experiments.

What the full form of an experiment printed is kept in docs/records/NAME.txt, beside the CSV of
docs/figures.  `tests/docs/numbers.py` says which blocks there are.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.page import RECORDS as BENCH_FOLDER
from benchmarks.page import TABLES
from experiments.catalogue import FIGURES

ROOT = Path(__file__).parents[2]
DOCS, RECORDS, DRAWN = ROOT / "docs", ROOT / "docs" / "records", ROOT / "docs" / "figures"
BENCH_RECORDS = DOCS / BENCH_FOLDER
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
BLOCK = re.compile(
    r"<!-- (measured|written|stated|tested): ([^>]*?) -->(.*?)<!-- end -->", re.DOTALL
)
# what is not measured: code, of which the doctests run; what `make table` and `make mutants` write
OWNED = re.compile(
    r"^ *```\w+\n.*?^ *```$|^    [^\n]*(?:python -m|dp-attest) [^\n]*$"
    r"|<!-- table of mechanisms: .*?<!-- end of table -->"
    r"|<!-- cost of exactness: .*?<!-- end of cost -->"
    r"|<!-- written by make mutants -->.*?<!-- end of what make mutants writes -->",
    re.DOTALL | re.MULTILINE,
)
# what is quoted, linked, or a power of ten
NO_NUMBER = re.compile(
    r"`[^`\n]*`|\]\([^)]*\)|<sub>.*?</sub>|<!--.*?-->|(?<!·)10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+(?!\d)|\*\d+\*",
    re.DOTALL,
)
DIGITS = r"(?:(?:\d{1,3}(?:[ ,]\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)"
NUMBER = re.compile(rf"(?<![\w.])({DIGITS}(?:e[-−+]?\d+|·10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?)(?![\w])")
UNIT = r"(?: ?%| (?:s|ms|µs|ns|MiB|GiB|times|seconds|minutes)\b)"
MEASURED = re.compile(rf"(?<![\w.])(?:{DIGITS}{UNIT}|\d*\.\d+(?![\w.]))|± ?\.?\d\.?\d")
CITED = re.compile(
    r"(?:Thm|Theorem|Corollary|Definition|Section|Proposition|Claim|Lemma|Python) \d+\.\d+"
)
PAIR = re.compile(rf"({NUMBER.pattern}) ± ({NUMBER.pattern})")
CURVE = re.compile(r": [\d,.e+-]+: ")
NO_POWER = re.compile(r"e[-+]?\d{4}")  # a digest of a version, whose digits hold an e
PLAIN = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


@dataclass(frozen=True)
class Printed:
    """A number as a page prints it: its value, and half a unit of its last digit."""

    words: str
    value: float
    half: float
    per_cent: bool = False

    @classmethod
    def of(cls, words: str, per_cent: bool = False) -> Printed:
        """From words such as .0953, 1 568, 2.4e-5 or 7.84·10⁻⁴."""
        plain = words.translate(RAISED).replace("·10", "e").replace("−", "-")
        plain = re.sub(r"[ ,]", "", plain)
        mantissa, _, power = plain.partition("e")
        decimals = len(mantissa.partition(".")[2])
        half = 0.5000001 * 10.0 ** (int(power or 0) - decimals)
        return cls(words, float(plain), half, per_cent)

    def rounds(self, value: float) -> bool:
        """Whether it is this value rounded, also from a share to per cent."""
        size = abs(value)
        shares = self.per_cent and abs(100 * size - self.value) <= self.half
        return shares or abs(size - self.value) <= self.half

    @property
    def small(self) -> bool:
        """A count or an index, not a measured number."""
        return self.value < 10 and self.half > 0.4


def printed_in(text: str) -> list[Printed]:
    """The numbers of a text, without those in code and links."""
    plain = NO_NUMBER.sub(" ", text)
    return [
        Printed.of(found[1], plain[found.end() : found.end() + 2].strip().startswith("%"))
        for found in NUMBER.finditer(plain)
        if not NO_POWER.search(found[1])
    ]


@dataclass(frozen=True)
class Block:
    """A block of a page; ``names`` are those of experiments or files."""

    page: Path
    kind: str
    names: tuple[str, ...]
    notes: dict[str, str]
    text: str
    number: int = 0

    @property
    def key(self) -> tuple[str, int]:
        """The page and the number of the block on it."""
        return path_of(self.page), self.number

    def explains(self, one: Printed) -> bool:
        """Whether a number is computed from others."""
        return any(one.rounds(eval(words)) for words in self.computed)

    @property
    def given(self) -> set[float]:
        """Settings that no record repeats."""
        return {one.value for one in printed_in(self.notes.get("given", ""))}

    @property
    def computed(self) -> list[str]:
        """Expressions of printed numbers."""
        found = list(filter(None, re.split(r",\s+", self.notes.get("computed", ""))))
        for words in found:
            if not re.fullmatch(r"[-\d.+*/() ]+", words):
                raise ValueError(f"{self.page.name}: no arithmetic: {words}")
        return found


def path_of(page: Path) -> str:
    """The path of a page in the repository."""
    return page.relative_to(ROOT).as_posix() if page.is_relative_to(ROOT) else page.name


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page."""
    found = []
    for kind, head, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        names, *notes = (part.strip() for part in head.split(";"))
        by_word = dict(part.split(": ", 1) for part in notes)
        found.append(Block(page, kind, tuple(names.split()), by_word, text, len(found)))
    return found


def record(name: str) -> str:
    """What the full form of an experiment printed, or the table that a bench has on a page."""
    if table := TABLES.get(name):
        return table.made(name, (BENCH_RECORDS / f"{name}.txt").read_text(encoding="utf-8"))
    path = RECORDS / f"{name}.txt"
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def drawn(name: str) -> list[dict[str, str]]:
    """The rows of a figure's CSV."""
    with (DRAWN / f"{FIGURES[name].file}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def slopes_and_shares(rows: list[dict[str, str]]) -> dict[str, float]:
    """The power of x that each curve follows, and each mean over the lower bound, as printed."""
    curves: dict[tuple[str, str], dict[float, float]] = {}
    for row in rows:
        if "curve" in row and float(row["mean"]) > 0 and float(row["x"]) > 0:
            points = curves.setdefault((row["panel"], row["curve"]), {})
            points[float(row["x"])] = float(row["mean"])
    found = {
        f"slope: {panel}|{curve}": float(
            np.polyfit(np.log(list(points)), np.log(list(points.values())), 1)[0]
        )
        for (panel, curve), points in curves.items()
        if len(points) > 1
    }
    for (panel, curve), points in curves.items():
        bound = curves.get((panel, "lower bound"), {})
        found |= {
            f"over the bound: {panel}|{curve}|{x:g}": mean / bound[x]
            for x, mean in points.items()
            if x in bound
        }
    return found
