"""Numbers of the pages: each has a command or a test that knows it, and a stale one is found."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.page import TABLES
from experiments.catalogue import FIGURES
from experiments.datasets import SHARED
from tests.docs import numbers, places
from tests.docs.blocks import DOCS, DRAWN, PAGES, RECORDS, ROOT, Block, Printed, blocks_of

# proofs argue with their numbers; commands write the pages of benchmarks, faults and published ε
WHOLE = {"benchmarks", "faults", "published"}
EXAMINED = [one for one in PAGES if "proofs" not in one.parts and one.stem not in WHOLE]
BLOCKS = [pytest.param(block, id=f"{page.stem}-{i}")
          for page in PAGES for i, block in enumerate(blocks_of(page))]  # fmt: skip
CLOSED = re.compile(r"<!-- (?:measured|written|stated|tested): |<!-- end -->")


@pytest.mark.parametrize("block", BLOCKS)
def test_no_number_of_a_block_is_stale(block):
    if block.kind in {"measured", "written"}:
        assert set(block.names) <= {*FIGURES, *(TABLES if block.kind == "written" else ())}
    assert numbers.stale(block) == []


@pytest.mark.parametrize("page", EXAMINED, ids=lambda page: page.name)
def test_every_number_that_looks_measured_has_an_owner(page):
    assert numbers.unowned(page) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_open_and_close_in_turn(page):
    marks = [found[0][5:8] for found in CLOSED.finditer(page.read_text(encoding="utf-8"))]
    assert marks[1::2] == ["end"] * (len(marks) // 2)
    assert len(marks) == 2 * len(blocks_of(page))


def test_every_csv_is_drawn_by_an_experiment_and_shown_by_a_page_that_measures_it():
    owners = {figure.file: name for name, figure in FIGURES.items() if figure.file}
    for path in sorted(DRAWN.glob("*.csv")):
        name = owners[path.stem]
        shown = [page for page in PAGES if f"figures/{path.stem}.svg" in page.read_text("utf-8")]
        assert shown, path.name
        for page in shown:
            measured = {one for block in blocks_of(page) for one in block.names}
            assert name in measured, (page.name, name)


def test_every_record_is_of_an_experiment():
    # those of benches are in a folder of their own
    assert {path.stem for path in RECORDS.glob("*") if path.is_file()} <= set(FIGURES)
    # what prints a file of docs/ has it as its record
    printed_only = {name for name, figure in FIGURES.items() if not (figure.file or figure.page)}
    assert printed_only <= {path.stem for path in RECORDS.glob("*.txt")}


def changed(block, old, new):
    assert old in block.text
    return replace(block, text=block.text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("page", "old", "new"),
    [
        ("label-privacy.md", "72.0 ± .5", "71.4 ± .5"),
        ("label-privacy.md", "2.37 at K", "2.38 at K"),
        ("lower-bounds.md", ".0878 ± .0015", ".0807 ± .0015"),
        ("lower-bounds.md", "6.07e-7", "6.08e-7"),
        ("lower-bounds.md", "n^−.88", "n^−.89"),
        ("frank-wolfe.md", "7.84·10⁻⁴", "7.85·10⁻⁴"),
        ("sparse-regression.md", "+1.30 ± 0.12", "+1.33 ± 0.12"),
        ("sign-votes.md", "2 217", "2 218"),
        ("why.md", "39.902", "39.903"),
    ],
)
def test_a_stale_number_is_found(page, old, new):
    (block,) = (one for one in blocks_of(DOCS / page) if old in one.text)
    assert numbers.stale(block) == []
    assert numbers.stale(changed(block, old, new)) != []


MEASURED = [
    one for page in PAGES for one in blocks_of(page)
    if one.kind in {"measured", "stated"} and places.in_order(one)
]  # fmt: skip


def listed_places(block):
    return [places.places(name[0])[name] for name in places.listed()[block.key]]


def test_nearly_all_changes_of_one_unit_in_the_last_place_are_found():
    found = [
        not place.has(replace(mean, value=mean.value + sign * 2 * mean.half), error)
        for block in MEASURED
        for (mean, error), place in zip(places.in_order(block), listed_places(block), strict=True)
        for sign in (-1, 1)
    ]
    assert len(found) > 1000
    assert sum(found) > 0.99 * len(found)  # the others lie in the middle of both


def test_nearly_all_neighbours_that_are_exchanged_are_found():
    found = []
    for block in MEASURED:
        printed, at = places.in_order(block), listed_places(block)
        for i in range(len(printed) - 1):
            if printed[i] != printed[i + 1]:
                both = at[i].has(*printed[i + 1]) and at[i + 1].has(*printed[i])
                found.append(not both)
    assert len(found) > 500
    assert sum(found) > 0.99 * len(found)


@pytest.mark.parametrize(
    ("page", "row", "exchanged"),
    [
        ("label-privacy.md", "86.5 ± .2 | 84.0 ± .2", "84.0 ± .2 | 86.5 ± .2"),
        ("label-privacy.md", "370.3, 364.6", "364.6, 370.3"),
        ("frank-wolfe.md", ".170 ± .005 | .0171 ± .0004", ".0171 ± .0004 | .170 ± .005"),
        ("lower-bounds.md", "2.37e-5 (2.01e-6)", "2.01e-6 (2.37e-5)"),
        ("sign-votes.md", ".271 for 10 selected features and .276",
         ".276 for 10 selected features and .271"),
    ],
)  # fmt: skip
def test_numbers_in_another_order_are_found(page, row, exchanged):
    (block,) = (one for one in blocks_of(DOCS / page) if row in one.text)
    assert len(numbers.stale(changed(block, row, exchanged))) == 2


STATED = [block for block in MEASURED if block.kind == "stated" and len(places.in_order(block)) > 1]


@pytest.mark.parametrize("block", STATED, ids=lambda block: f"{block.page.stem}-{block.number}")
def test_the_first_numbers_of_a_stated_block_that_are_exchanged_are_found(block):
    words = [mean.words for mean, _ in places.in_order(block)]
    other = next(word for word in words if word != words[0])
    mark = {words[0]: other, other: words[0]}
    exchanged = re.sub(
        rf"(?<![\w.])(?:{re.escape(words[0])}|{re.escape(other)})(?![\w.]\d|\w)",
        lambda found: mark.pop(found[0], found[0]),
        block.text,
    )
    assert exchanged != block.text
    assert not block.notes  # what is given would not be compared
    assert numbers.stale(replace(block, text=exchanged)) != []


def test_a_number_more_or_less_is_found():
    (block,) = (one for one in blocks_of(DOCS / "label-privacy.md") if "370.3, " in one.text)
    assert "places: python -m" in numbers.stale(changed(block, "370.3, ", ""))[0]


def test_every_place_belongs_to_a_block():
    assert set(places.listed()) == {block.key for block in MEASURED}


def test_the_shortest_way_is_in_the_order_of_the_record():
    (block,) = (one for one in MEASURED if "86.5 ± .2" in one.text)
    ways = places.proposed(block)
    assert [place.name for place in ways] == places.listed()[block.key]
    with pytest.raises(ValueError, match=r"no record has 86\.6"):
        places.proposed(changed(block, "86.5", "86.6"))


WRITTEN = [block for page in PAGES for block in blocks_of(page) if block.kind == "written"]


@pytest.mark.parametrize("block", WRITTEN, ids=lambda block: block.names[0])
def test_a_written_block_is_the_record_to_the_letter(block):
    assert numbers.stale(block) == []
    digits = [found.start() for found in re.finditer(r"\d", block.text)]
    for i in digits[:: len(digits) // 10]:
        digit = (int(block.text[i]) + 1) % 10
        text = f"{block.text[:i]}{digit}{block.text[i + 1 :]}"
        assert numbers.stale(replace(block, text=text)) != []


def test_every_table_of_a_bench_stands_on_its_page_with_all_its_rows():
    for name, table in TABLES.items():
        (block,) = (one for one in blocks_of(DOCS / table.page) if one.names == (name,))
        assert len(re.findall(r"^\| ", block.text, re.MULTILINE)) - 2 >= LEAST_ROWS[name]


@pytest.mark.parametrize(
    "text",
    ["| a fit | .0315 |", "It takes 12 s.", "It takes 1.5 ms.", "The error is .01 ± .002.",
     "93 % of users", "```\nspends a second: 1.5\n```", "three times, 1.27 of it"],
)  # fmt: skip
def test_a_number_without_an_owner_is_found(text, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n{text}\n")
    assert numbers.unowned(page) != []
    page.write_text(f"# Page\n\n<!-- stated: README.md -->\n{text}\n<!-- end -->\n")
    assert numbers.unowned(page) == []


@pytest.mark.parametrize(
    ("words", "value", "near", "far"),
    [(".0953", 0.0953, 0.09534, 0.09536), ("3 505", 3505, 3505.4, 3505.6),
     ("2.4e-5", 2.4e-5, 2.449e-5, 2.46e-5), ("7.84·10⁻⁴", 7.84e-4, 7.836e-4, 7.83e-4),
     ("74,369", 74369, 74369, 74370), ("26", 26, 26.4, 26.6)],
)  # fmt: skip
def test_numbers_are_read_as_they_are_printed(words, value, near, far):
    one = Printed.of(words)
    assert one.value == pytest.approx(value)
    assert one.rounds(near)
    assert not one.rounds(far)


def test_what_is_computed_is_arithmetic_alone():
    block = Block(Path("page.md"), "measured", (), {"computed": "__import__('os')"}, "")
    with pytest.raises(ValueError, match="no arithmetic"):
        numbers.stale(block)


def test_the_failure_on_the_page_of_tests(tmp_path):
    page = (DOCS / "testing.md").read_text(encoding="utf-8")
    code = page.partition("```python\n")[2].partition("```")[0]
    expected = "@pytest.mark.xfail(raises=AssertionError, strict=True)\n"
    assert expected in code
    (tmp_path / "test_page.py").write_text(code.replace(expected, ""), encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    run = "import sys; sys.path.insert(0, sys.argv.pop(1)); import pytest; sys.exit(pytest.main())"
    done = subprocess.run(
        [sys.executable, "-c", run, str(ROOT), "-q", "-p", "audits.pytest_plugin", "-p",
         "no:cacheprovider", "test_page.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    (block,) = (one for one in blocks_of(DOCS / "testing.md") if "FALSIFIED" in one.text)
    for line in block.text.strip().splitlines():
        assert line.strip() in done.stdout, done.stdout


LEAST_ROWS = {  # that the patterns of `benchmarks.page` find
    "bench_sampled_gaussians": 3,
    "bench_clients": 18,
    "bench_evidence": 6,
    "bench_least_epsilon": 18,
    "bench_sampling_schemes": 19,
    "bench_proofs": 29,
    "bench_estimators": 65,
}

# Duchi's vector: equal eigenvalues leave its basis to the processor
LOOSE = re.compile("duchi", re.IGNORECASE)


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_a_record_is_what_the_command_prints_now(name, tmp_path):
    figure = FIGURES[name]
    if not all((SHARED / file).is_file() for file in (*figure.data, *figure.optional_data)):
        pytest.skip(f"no data for {name}")
    done = subprocess.run(
        [sys.executable, "-m", "experiments", name, "--out", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    pairs = [(done.stdout, numbers.record(name))]
    if file := FIGURES[name].file:
        pairs.append(tuple((folder / f"{file}.csv").read_text() for folder in (tmp_path, DRAWN)))
    for now, kept in pairs:
        lines = zip(now.splitlines(), kept.splitlines(), strict=True)
        assert [one for one, other in lines if one != other and not LOOSE.search(one)] == []
