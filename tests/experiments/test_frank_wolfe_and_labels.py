"""The quick charts of Frank-Wolfe and of private labels: what must hold of the curves."""

import math
import re

import pytest

from tests.docs.blocks import drawn


@pytest.mark.parametrize("panel", ["sparse", "harmonic"])
def test_frank_wolfe_falls_about_as_the_bound_and_below_it(curves, panel):
    found = curves("frank-wolfe-risk")
    for name in ("Gumbel, ε = 1", "Laplace, ε = 1", "Gumbel, ε = 4"):
        (few, most), (many, least) = sorted(found[panel, name].items())
        assert -1.2 < math.log(least / most) / math.log(many / few) < -0.25
    bound = found[panel, "bound for Gumbel, ε = 1"]
    assert all(y < bound[x] / 3 for x, y in found[panel, "Gumbel, ε = 1"].items())
    (few, most), (many, least) = sorted(bound.items())
    assert math.log(least / most) / math.log(many / few) == pytest.approx(-2 / 3, abs=0.03)
    for name in ("Gumbel, ε = 1", "Laplace, ε = 1"):
        assert found[panel, "Gumbel, ε = 4"][many] < found[panel, name][many]


@pytest.mark.parametrize("panel", ["sparse", "harmonic"])
def test_gumbel_noise_is_better_than_laplace_noise_at_every_size(panel):
    # one quick run says nothing about it: its order is chance
    means, errors = (
        {(row["curve"], row["x"]): float(row[column])
         for row in drawn("frank-wolfe-risk") if row["panel"] == panel}
        for column in ("mean", "standard_error")
    )  # fmt: skip
    sizes = [x for curve, x in means if curve == "Gumbel, ε = 1"]
    assert len(sizes) == 5
    for x in sizes:
        one, other = ("Gumbel, ε = 1", x), ("Laplace, ε = 1", x)
        assert means[one] + 2 * errors[one] < means[other] - 2 * errors[other]


def test_small_data_are_too_small_at_epsilon_1_and_housing_is_not_at_10(curves, run):
    found, (_, said, _) = curves("frank-wolfe-data"), run("frank-wolfe-data")
    constant = "constant predictor, not private"
    for name in ("riboflavin", "leukaemia"):
        assert found[name, "private, T* rounds"][1] > found[name, constant][1]
    private, constants = found["leukaemia", "private, T* rounds"], found["leukaemia", constant]
    assert private[1000] < constants[1000]
    assert found["housing", "private, T* rounds"][10] < 0.6 * found["housing", constant][10]
    assert "housing: n = 16,512, p = 14: n is too small at ε ≤ 0.01, not at 10" in said
    assert re.search(r"riboflavin: n = 56, p = 4,089: n is too small at ε ≤ (1|1,000)", said)


def test_the_errata_of_frank_wolfe_are_printed(run):
    _, said, _ = run("frank-wolfe-claims")
    assert "E18 noise for (1, 1e-6), T = 50, in L1 |C| / n: Gumbel 59.0, Laplace 114.8" in said
    assert "E19 T = 50 iterates take 49 selections" in said
    assert "E21 curvature 8 (declared 8), 4 as printed" in said


def test_second_moments_are_those_of_the_formulas(curves):
    found = curves("private-labels-moments")
    e = math.e
    for k, value in found["classes", "unary encoding"].items():
        assert value == pytest.approx(2 + 4 * k * e / (e - 1) ** 2, rel=1e-5)
    strong = found["epsilon", "unary encoding"]
    assert strong[0.1] * 0.1**2 / 100 == pytest.approx(4, rel=2e-3)
    assert found["classes", "k-ary response"][100] > 9 * found["classes", "unary encoding"][100]
    assert found["epsilon", "Duchi in K − 1 dimensions"][5] > 30 * strong[5]
    for k, value in found["classes", "subset selection"].items():
        assert value < found["classes", "unary encoding"][k]


@pytest.mark.parametrize("panel", ["hardest", "logistic", "mnist"])
def test_excess_risks_are_between_the_bounds(curves, panel):
    found = curves("private-labels-risk")
    upper = found[panel, "upper bound D L √(V/n), unary"]
    lower = found[panel, "lower bound for the worst problem"]
    free = found[panel, "labels as they are, not private"]
    for name in ("unary encoding", "subset selection"):
        for x, y in found[panel, name].items():
            assert max(lower[x], free[x]) < y < upper[x]
    few, many = lower
    assert many == 10 * few
    assert lower[many] / lower[few] == pytest.approx(10**-0.5, rel=2e-5)


def test_the_hardest_labels_teach_nothing(curves):
    found = curves("private-labels-risk")
    zero = found["hardest", "θ = 0"]
    lower = found["hardest", "lower bound for the worst problem"]
    assert all(y == pytest.approx(8 * lower[x], rel=2e-5) for x, y in zero.items())
    assert all(y > 0.75 * zero[x] for x, y in found["hardest", "unary encoding"].items())


def test_the_errata_of_labels_are_printed(run):
    _, said, _ = run("private-labels-claims")
    assert "E15 V epsilon^2 / K, K = 100: epsilon 1: 3.7027, epsilon 0.1: 3.9969" in said
    assert "E17 K = 2, epsilon 1: B^2 = 11.554 in K dimensions, 4.683 in K - 1" in said


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("frank-wolfe-risk", "frank_wolfe_risk"),
        ("frank-wolfe-data", "frank_wolfe_data"),
        ("private-labels-moments", "label_moments"),
        ("private-labels-risk", "label_risk"),
    ],
)
def test_a_chart_is_drawn(run, name, file):
    folder, _, heard = run(name)
    assert (folder / f"{file}.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / f"{file}.svg").read_bytes().startswith(b"<?xml")
    assert f"{file}.csv, " in heard
