"""The quick figures of the sparse-regression paper: files, columns, and what must hold."""

import math
import re

import pytest

SLOW = [pytest.param(number, marks=pytest.mark.slow) for number in (3, 5, 6)]
FIGURES = [1, 2, 4, *SLOW]
NUMBERS = ("mean", "standard_error", "minimum_of_10", "epsilon", "true_epsilon")


@pytest.fixture(scope="module")
def drawn(rows):
    return lambda number: rows(f"sparse-regression-{number}")


def curve(rows, method, field=None, value=None):
    """Mean errors by users of the first panel's first curve, or of the one asked for."""
    names = list(dict.fromkeys(row["method"] for row in rows))
    field, value = field or rows[0]["panel"], value or rows[0]["value"]
    return [
        float(row["mean"]) for row in rows
        if (row["panel"], row["value"], row["method"]) == (field, value, names[method])
    ]  # fmt: skip


@pytest.mark.parametrize("number", FIGURES)
def test_a_figure_is_drawn_and_its_slopes_are_printed(run, drawn, number):
    folder, said, heard = run(f"sparse-regression-{number}")
    assert (folder / f"figure{number}.png").read_bytes().startswith(b"\x89PNG")
    assert {row["panel"] for row in drawn(number)} == {"features", "sparsity", "epsilon"}
    for row in drawn(number):
        assert row["figure"] == f"figure{number}"
        assert int(row["users"]) > 0
        assert int(row["seeds"]) == 1
        assert all(math.isfinite(float(row[name])) for name in NUMBERS)
        assert float(row["minimum_of_10"]) <= float(row["mean"]) * (1 + 1e-5)
    assert re.search(r"slopes, .*: n\^\(.* ± .*p\^.*s\*\^.*ε\^", said)
    assert re.search(
        rf"wrote .*figure{number}.csv, .*figure{number}.png and .*figure{number}.svg", heard
    )


@pytest.mark.parametrize("number", FIGURES)
def test_errors_of_valid_runs_fall_with_users(drawn, number):
    few, *_, many = curve(drawn(number), 0)
    assert many < 0.8 * few


@pytest.mark.parametrize("number", [1, SLOW[1]])
def test_the_printed_bound_leaves_a_bias(drawn, number):
    valid, printed = curve(drawn(number), 0)[-1], curve(drawn(number), 1)[-1]
    assert printed > 2 * valid


@pytest.mark.parametrize("number", [2, SLOW[2]])
def test_the_printed_noise_is_accurate_and_not_private(drawn, number):
    assert curve(drawn(number), 1)[0] < 0.5 * curve(drawn(number), 0)[0]
    for row in drawn(number):
        if row["method"].startswith("printed noise"):
            assert float(row["true_epsilon"]) > 8 * float(row["epsilon"])


@pytest.mark.slow
def test_the_printed_step_of_the_link_does_not_converge(drawn):
    rows = [row for row in drawn(5) if row["method"].endswith("printed step 0.2")]
    assert min(float(row["mean"]) for row in rows) > 2 * curve(drawn(5), 0, "epsilon", "4.0")[-1]


@pytest.mark.parametrize("number", [SLOW[0], 4])
def test_gaps_fall_with_epsilon(drawn, number):
    most, least = (curve(drawn(number), 0, "epsilon", epsilon)[-1] for epsilon in ("0.5", "2.0"))
    assert least < most


def test_the_errata_are_printed(run):
    _, said, _ = run("sparse-regression-claims")
    assert "E1 label noise, s* = 5, epsilon 1: really 36.22, link 1358" in said
    assert "E5 epsilon 1, delta .001: least constant c = 3.84" in said
    wrong, right = re.search(r"noise: (\S+) with the printed sign, (\S+) with \+", said).groups()
    assert float(wrong) > 100 * float(right)
    assert "E10 coins .55 and .5: total variation .05, at most 0.035 as printed, 0.050" in said
