"""TOML that is no plan: an error at its place."""

import tomllib

import pytest

from accountant import GaussianLoss, Parallel, PoissonSampled, PureLoss, Repeat, Sequential
from accountant.formats.plan_toml import PlanSyntaxError, file_from_toml
from accountant.formats.toml_positions import key_offsets
from mechanisms import Gaussian, Laplace

PLAN = '[budget]\nepsilon = 1.0\ndelta = 1e-6\n[[release]]\nkind = "Gaussian"\nscale = 20.0\n'


def test_a_number_of_five_thousand_digits_is_a_plan_error_at_its_place():
    with pytest.raises(PlanSyntaxError, match="line 6, column 9") as wrong:
        file_from_toml(PLAN.replace("20.0", "9" * 5000))
    assert len(str(wrong.value)) < 200


KEYS = """x = 1
"y" = 2
'z.z'.w = 3
[a]
b.'c'."d\\u0065" = [10, { e = "[=]", f = [[], [1]] }]
[a.'']
g = '''
h = 1
'''
[[t]] # i = 1
k = 1
[[t]]
[[t.u]]
l = { m.n = 2 }
[[t.u]]
[t.u.v]
w = "#"
"""
PLACES_OF_KEYS = {
    ("x",): "x = 1",
    ("y",): '"y" = 2',
    ("z.z", "w"): "'z.z'.w",
    ("a",): "a]",
    ("a", "b", "c", "de"): "b.'c'",
    ("a", "b", "c", "de", 0): "10,",
    ("a", "b", "c", "de", 1): "{ e",
    ("a", "b", "c", "de", 1, "e"): 'e = "',
    ("a", "b", "c", "de", 1, "f"): "f = [",
    ("a", "b", "c", "de", 1, "f", 0): "[], ",
    ("a", "b", "c", "de", 1, "f", 1): "[1]]",
    ("a", "b", "c", "de", 1, "f", 1, 0): "1]] ",
    ("a", ""): "a.''",
    ("a", "", "g"): "g = '",
    ("t", 0): "t]] #",
    ("t", 0, "k"): "k = 1",
    ("t", 1): "t]]\n[[t.u]]\nl",
    ("t", 1, "u", 0): "t.u]]\nl",
    ("t", 1, "u", 0, "l"): "l = {",
    ("t", 1, "u", 0, "l", "m", "n"): "m.n",
    ("t", 1, "u", 1): "t.u]]\n[t",
    ("t", 1, "u", 1, "v"): "t.u.v",
    ("t", 1, "u", 1, "v", "w"): 'w = "',
}


def test_each_key_has_its_place():
    places = {path: KEYS.index(start) for path, start in PLACES_OF_KEYS.items()}
    assert key_offsets(KEYS) == places
    for path in places:  # the paths are those of the parsed text
        value = tomllib.loads(KEYS)
        for key in path:
            value = value[key]


GOOD = """
# a comment
[[release]]
kind = "Laplace"
scale = 20.0
count = 64

[[release]]
kind = "PoissonSampled"
rate = 0.004
count = 15000
part = { kind = "Gaussian", scale = 0.8 }

[[release]]
kind = "Parallel"
parts = [
  { kind = "PureLoss", epsilon = 0.1, count = 3 },
  { kind = "GaussianLoss", mu = 0.2 },
]
"""


def test_toml_is_the_same_plan():
    sampled = Repeat(PoissonSampled(Gaussian(0.8), 0.004), 15_000)
    groups = Parallel([Repeat(PureLoss(0.1), 3), GaussianLoss(0.2)])
    assert file_from_toml(GOOD).plan == Sequential([Repeat(Laplace(20.0), 64), sampled, groups])
    assert file_from_toml('[[release]]\nkind = "PureLoss"\nepsilon = 1').plan == PureLoss(1.0)


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "words"),
    [
        ("rate = 0.004", "rate = nan", 10, 1, "rate must be a number in"),
        ("rate = 0.004", "rate = 1.5", 10, 1, r"\[0, 1\], got 1.5"),
        ("scale = 20.0", "scael = 20.0", 5, 1, "scael must be absent: Laplace has scale"),
        ("scale = 20.0", "", 3, 3, "given with scale"),
        ('"Laplace"', '"Laplac"', 4, 1, "kind must be one of"),
        ("count = 64", "count = 6.5", 6, 1, "count must be a whole number"),
        ("count = 64", "count = -1", 6, 1, "count must be a whole number"),
        ("scale = 0.8", "scale = -1", 12, 29, "scale must be a number in"),
        ("epsilon = 0.1", "epsilon = true", 17, 24, "epsilon must be"),
        ("count = 64", "count = 64\ncount = 65", 7, 11, "Cannot overwrite"),
        ("scale = 20.0", "scale = ", 5, 9, "Invalid value"),
        ("# a comment", 'title = "x"', 2, 1, "unknown key 'title'"),
        (GOOD, "", 1, 1, "no \\[\\[release\\]\\] tables"),
        (GOOD, "release = 3", 1, 1, "no \\[\\[release\\]\\] tables"),
        (GOOD, "x = " + "[" * 100_000, 1, 105, "nested too deeply"),
        (GOOD, "x" * 1_000_001, 1, 1, "longer than 1,000,000"),
    ],
    ids=range(16),
)
def test_errors_say_line_and_column(old, new, line, column, words):
    with pytest.raises(PlanSyntaxError, match=words) as caught:
        file_from_toml(GOOD.replace(old, new))
    assert caught.value.line == line
    assert caught.value.column == column
