"""The figures of docs/: drawn from their numbers, legible without colour, in one notation."""

import csv
import re
import xml.etree.ElementTree as Xml
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from experiments.charts import Chart, Curve, Panel, power_of_ten
from experiments.drawing import png, short, svg
from experiments.method_grids import SYMBOLS

FOLDER = Path(__file__).parents[2] / "docs" / "figures"
NAMES = sorted(path.stem for path in FOLDER.glob("*.csv"))
SPACE = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"
TINY = 0.02  # of a point of 1/72 inch: a number of six digits is drawn there


@cache
def picture(name):
    return Xml.fromstring((FOLDER / f"{name}.svg").read_bytes())


@cache
def points(name):
    """Means by (panel, curve) as the CSV has them: [(x, y)]."""
    found = {}
    with (FOLDER / f"{name}.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if "curve" in row:
                here = found.setdefault((row["panel"], row["curve"]), [])
                here.append((float(row["x"]), float(row["mean"])))
                continue
            x, start = float(row["users"]), f"{SYMBOLS[row['panel']]} = {float(row['value']):g}: "
            for curve, y in ((row["method"], "mean"), ("minimum", "minimum_of_10")):
                here = found.setdefault((row["panel"], start + curve), [])
                # the minimum is of the first method, and drawn once
                if x not in {at for at, _ in here}:
                    here.append((x, float(row[y])))
    return found


@cache
def curves(name):
    """Groups of the picture that are curves, by (panel, curve)."""
    known = {f"{panel}/{curve}": (panel, curve) for panel, curve in points(name)}
    base = {
        f"{panel}/{curve.split(': ', 1)[-1]}": (panel, curve) for panel, curve in points(name)
    }  # methods for the base setting alone have no value in their names
    found = {}
    for group in picture(name).iter(f"{SPACE}g"):
        at = known.get(group.get("id")) or base.get(group.get("id"))
        if at is not None:
            found[at] = group
    return found


def style(part):
    """The style of an element as a dictionary."""
    return dict(re.findall(r"([\w-]+): ([^;]+)", part.get("style", "")))


def drawn(group):
    """The points of a curve, and its looks without colour: dashes, mark, whether it is filled."""
    line, marks = group.find(f"{SPACE}path"), list(group.iter(f"{SPACE}use"))
    shapes = {path.get("id"): path.get("d") for path in picture_of(group).iter(f"{SPACE}path")}
    if line is None:
        places = [(float(mark.get("x")), float(mark.get("y"))) for mark in marks]
        dashes = "none"
    else:
        numbers = [float(number) for number in re.findall(r"[\d.]+", line.get("d"))]
        places = list(zip(numbers[::2], numbers[1::2], strict=True))
        dashes = style(line).get("stroke-dasharray", "whole")
    mark = fill = None
    if marks:
        mark = shapes[marks[0].get(LINK)[1:]]
        fill = style(marks[0]).get("fill") not in {"#ffffff", "none"}
    return places, (dashes, mark, fill)


def picture_of(group):
    return next(picture(name) for name in NAMES if group in curves(name).values())


def test_every_table_has_a_png_and_an_svg_beside_it():
    for kind in ("png", "svg"):
        assert sorted(path.stem for path in FOLDER.glob(f"*.{kind}")) == NAMES
    for page in FOLDER.parent.glob("**/*.md"):
        for link in re.findall(r"\]\((figures/[^)]+)\)", page.read_text()):
            assert (FOLDER.parent / link).is_file(), link


@pytest.mark.parametrize("name", NAMES)
def test_every_curve_stands_where_its_numbers_are(name):
    shown = curves(name)
    assert {panel for panel, _ in shown} == {panel for panel, _ in points(name)}
    named = [group.get("id") for group in picture(name).iter(f"{SPACE}g")]
    assert len([words for words in named if words and "/" in words]) == len(shown)
    for panel in {panel for panel, _ in shown}:
        values, places = [], []
        for at, group in shown.items():
            if at[0] == panel:
                values += points(name)[at]
                places += drawn(group)[0]
        assert len(values) == len(places)
        for numbers, here in zip(np.array(values).T, np.array(places).T, strict=True):
            # one straight map for all curves of a panel, of the numbers or of their logarithms
            misses = [
                np.abs(np.polyval(np.polyfit(some, here, 1), some) - here).max()
                for some in ([numbers, np.log(numbers)] if numbers.min() > 0 else [numbers])
            ]
            assert min(misses) < TINY, (panel, misses)


@pytest.mark.parametrize("name", NAMES)
def test_no_two_curves_of_a_panel_differ_in_colour_alone(name):
    looks = {}
    for (panel, curve), group in curves(name).items():
        _, look = drawn(group)
        same = looks.setdefault((panel, look), curve)
        assert same == curve, f"{panel}: {same} and {curve} look the same in grey"


@pytest.mark.parametrize("name", NAMES)
def test_every_curve_is_named_and_every_delta_is_a_power_of_ten(name):
    words = [text.text.strip() for text in picture(name).iter(f"{SPACE}text")]
    for _, curve in curves(name):
        if "users" in (FOLDER / f"{name}.csv").read_text().splitlines()[0]:
            value, method = curve.split(": ", 1)
            assert any(each.startswith(value) for each in words)
            assert any(method in each for each in words)
        else:
            assert curve in words
    for each in words:
        assert not re.search(r"\de[+-]?\d", each), each
        for after in re.findall(r"δ = (\S*)", each):
            assert re.fullmatch(r"(\d·)?10⁻[⁰¹²³⁴⁵⁶⁷⁸⁹]+[,:;)]?", after), each
    table = (FOLDER / f"{name}.csv").read_text()
    assert not re.search(r"δ = [\d.]*e|δ = 0", table)


def test_two_drawings_of_a_chart_have_the_same_bytes_and_no_date():
    runs = np.array([[1.0, 2.0], [0.1, 0.3], [0.01, 0.05]])
    chart = Chart([Panel("one", "δ = 10⁻⁶", "n", "risk", [Curve("a", (1, 10, 100), runs)])], [])
    first, second = (svg(chart, "title") for _ in range(2))
    assert first == second
    assert png(chart, "title") == png(chart, "title")
    text = first.decode()
    assert ">title<" in text
    for words in ("dc:date", "matplotlib.org", "http://localhost"):
        assert words not in text
    assert 'id="one/a"' in text


def test_powers_of_ten_are_written_in_one_way():
    assert [power_of_ten(value) for value in (1e-6, 1e-05, 0.001, 2e-5, 1.5e-12)] == [
        "10⁻⁶", "10⁻⁵", "10⁻³", "2·10⁻⁵", "1.5·10⁻¹²",
    ]  # fmt: skip
    assert [short(value) for value in (1e-5, 0.001, 0.05, 2, 1200, 3e4, 1e6, 0.0)] == [
        "10⁻⁵", "0.001", "0.05", "2", "1,200", "30k", "1M", "0",
    ]  # fmt: skip
