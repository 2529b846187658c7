"""Which command measured a number of the pages, and whether it is what the command printed.

Measured numbers of a page stand in a doctest, or in a block of one of four kinds:

    <!-- measured: NAME ...; given: 54, 20 000; computed: 1.205 / .315 --> ... <!-- end -->
    <!-- written: NAME --> ... <!-- end -->
    <!-- stated: FILE ... --> ... <!-- end -->
    <!-- tested: FILE::TEST --> ... <!-- end -->

NAME is an experiment.  What its full form printed is kept in docs/records/NAME.txt, beside the CSV
of docs/figures.  In a measured block every number is one of those, rounded as the page prints it,
or is ``given`` (a setting that no record repeats), or ``computed`` from numbers that are.  A
written block is the record as it is.  In a stated block every number stands in one of the files; a
tested block is compared by the test.

``python -m tests.docs.numbers [NAME ...]`` (`make numbers`) runs experiments again in full, writes
their records, figures and written blocks, and lists what is stale.
"""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from experiments.catalogue import FIGURES

ROOT = Path(__file__).parents[2]
DOCS, RECORDS, DRAWN = ROOT / "docs", ROOT / "docs" / "records", ROOT / "docs" / "figures"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
BLOCK = re.compile(
    r"<!-- (measured|written|stated|tested): ([^>]*?) -->(.*?)<!-- end -->", re.DOTALL
)
# what is not measured: code, of which the doctests run; the tables that `make table` and `make
# bench` write
OWNED = re.compile(
    r"^ *```\w+\n.*?^ *```$|^    [^\n]*python -m [^\n]*$"
    r"|<!-- table of mechanisms: .*?<!-- end of table -->"
    r"|<!-- cost of exactness: .*?<!-- end of cost -->"
    r"|<!-- table of training: .*?<!-- end of training -->"
    r"|<!-- table of proofs: .*?<!-- end of proofs -->"
    r"|<!-- table of estimators: .*?<!-- end of estimators -->"
    r"|<!-- table of schemes: .*?<!-- end of schemes -->",
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


def printed_in(text: str, quoted: bool = False) -> list[Printed]:
    """The numbers of a text; without ``quoted`` not those in code and links."""
    plain = text if quoted else NO_NUMBER.sub(" ", text)
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


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page."""
    found = []
    for kind, head, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        names, *notes = (part.strip() for part in head.split(";"))
        by_word = dict(part.split(": ", 1) for part in notes)
        found.append(Block(page, kind, tuple(names.split()), by_word, text))
    return found


def record(name: str) -> str:
    """What the full form of an experiment printed."""
    path = RECORDS / f"{name}.txt"
    return path.read_text(encoding="utf-8") if path.is_file() else ""


@cache
def known(name: str) -> tuple[list[float], list[tuple[float, float]]]:
    """The numbers that an experiment printed or drew, and pairs of a mean and its error."""
    text = record(name)
    if FIGURES[name].file:  # the CSV has the values with more digits
        text = "\n".join(line for line in text.splitlines() if not CURVE.search(line))
    values = [Printed.of(found[1]).value for found in NUMBER.finditer(text)]
    pairs = [(Printed.of(found[2]).value, Printed.of(found[4]).value)
             for found in PAIR.finditer(text)]  # fmt: skip
    if FIGURES[name].file:
        rows = drawn(name)
        for row in rows:
            values += [float(cell) for cell in row.values() if PLAIN.fullmatch(cell)]
            pairs.append((float(row["mean"]), float(row["standard_error"])))
        values += slopes_and_shares(rows)
    return values, pairs


def drawn(name: str) -> list[dict[str, str]]:
    """The rows of a figure's CSV."""
    with (DRAWN / f"{FIGURES[name].file}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def slopes_and_shares(rows: list[dict[str, str]]) -> list[float]:
    """The power of x that each curve follows, and each mean over the lower bound, as printed."""
    curves: dict[tuple[str, str], dict[float, float]] = {}
    for row in rows:
        if "curve" in row and float(row["mean"]) > 0 and float(row["x"]) > 0:
            points = curves.setdefault((row["panel"], row["curve"]), {})
            points[float(row["x"])] = float(row["mean"])
    found = [
        float(np.polyfit(np.log(list(points)), np.log(list(points.values())), 1)[0])
        for points in curves.values()
        if len(points) > 1
    ]
    for (panel, _), points in curves.items():
        bound = curves.get((panel, "lower bound"), {})
        found += [mean / bound[x] for x, mean in points.items() if x in bound]
    return found


def stale(block: Block) -> list[str]:
    """What a block prints and its record or file does not have."""
    if block.kind == "written":
        (name,) = block.names
        return [] if block.text.strip() == record(name).strip() else [f"not the record of {name}"]
    if block.kind == "tested":
        file, _, test = block.names[0].partition("::")
        code = (ROOT / file).read_text(encoding="utf-8")
        return [] if f"def {test}(" in code and block.page.name in code else [block.names[0]]
    if block.kind == "stated":
        text = "".join((ROOT / name).read_text(encoding="utf-8") for name in block.names)
        values = [one.value for one in printed_in(text.replace("_", ""), quoted=True)]
        large = (one for one in printed_in(block.text) if not one.small)
        return [one.words for one in large if not any(map(one.rounds, values))]
    text = NO_NUMBER.sub(" ", block.text)
    pairs = [
        (found[0], Printed.of(found[2]), Printed.of(found[4])) for found in PAIR.finditer(text)
    ]
    wrong = [words for words, mean, error in pairs if not is_known_pair(mean, error, block)]
    single = [*printed_in(PAIR.sub(" ", text)), *printed_in(" ".join(block.computed))]
    return wrong + [one.words for one in single if not is_known(one, block)]


def is_known(one: Printed, block: Block) -> bool:
    """Whether a number of a measured block was printed, computed or given, or is a small count."""
    if one.small or one.value in block.given:
        return True
    if any(one.rounds(eval(words)) for words in block.computed):
        return True
    return any(one.rounds(value) for name in block.names for value in known(name)[0])


def is_known_pair(mean: Printed, error: Printed, block: Block) -> bool:
    """Whether a mean and its error were printed together."""
    pairs = (pair for name in block.names for pair in known(name)[1])
    return mean.value in block.given or any(mean.rounds(a) and error.rounds(b) for a, b in pairs)


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
