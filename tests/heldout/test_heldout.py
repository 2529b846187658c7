"""Google's statistical cases: they are read right, and a few of each family are judged right.

`make heldout` runs all of them.
"""

import zlib
from collections import Counter
from dataclasses import replace

import pytest

from audits import Outcome
from tests.heldout.controls import (
    controls,
    examine,
    gaussian_deviation,
    neighbours,
    read_cases,
    reference_deviation,
)
from tests.heldout.read_textproto import flat_case, read_message, tokens

CASES = read_cases()
FEW_RUNS = 20_000
# The first case of each family and noise, of which what so few runs can show is shown.
FIRST = list({(case["family"], case.get("noise_type")): case for case in CASES[::-1]}.values())
QUICK = [
    control
    for case in FIRST
    for control in controls(case)
    if control.is_true or control.needed <= FEW_RUNS / 10
]
TEXT = """
# a comment with { braces }
validity_parameters { failure_specificity: 1.25 }
count_dp_test_case {
  name: "many, with \\"quotes\\""  # another one
  count_sampling_parameters {
    noise_type: LAPLACE  epsilon: 1.5e-1
    raw_increment_by: [1, -2]
    raw_increment_by: [3]
    neighbour_raw_increment_by: []
  }
}
"""


def test_the_reader_takes_lists_that_are_repeated_and_names_and_comments():
    message = read_message(tokens(TEXT)[::-1])
    assert message["validity_parameters"] == [{"failure_specificity": [1.25]}]
    flat = flat_case("count", message["count_dp_test_case"][0], {"failure_specificity": 1.25})
    assert flat == {
        "family": "count", "failure_specificity": 1.25, "name": 'many, with "quotes"',
        "noise_type": "LAPLACE", "epsilon": 0.15, "raw_increment_by": [1, -2, 3],
        "neighbour_raw_increment_by": [],
    }  # fmt: skip


def test_what_is_no_text_of_a_message_is_refused():
    with pytest.raises(ValueError, match="text format"):
        tokens("a: <b>")


def test_all_cases_are_here():
    assert Counter(case["family"] for case in CASES) == {
        "approximate_bounds": 14, "bounded_mean": 47, "bounded_quantiles": 39, "bounded_stdv": 42,
        "bounded_sum": 38, "count": 36, "gaussian_closeness": 23, "laplace_closeness": 19,
        "long_bounded_sum": 38,
    }  # fmt: skip
    assert all(neighbours(case)[1] for case in CASES if "noise_type" in case)


def test_the_noise_of_the_references_is_that_of_the_cases_on_its_shape():
    """Two files state the deviation of Gaussian noise, and one the formula of Laplace noise."""
    for case in CASES:
        if case["family"] == "gaussian_closeness":
            sensitivity = case["l0_sensitivity"] ** 0.5 * case["linf_sensitivity"]
            deviation = sensitivity * gaussian_deviation(case["epsilon"], case["delta"])
            # theirs is found by bisection, up to a few thousandths
            assert deviation**2 == pytest.approx(case["variance"], rel=0.005), case["name"]
        elif case["family"] == "laplace_closeness":
            scale = case["l0_sensitivity"] * case["linf_sensitivity"] / case["epsilon"]
            assert 2 * scale**2 == pytest.approx(case["variance"], rel=1e-6), case["name"]
        elif case["family"] == "count" and case["noise_type"] == "LAPLACE":
            assert reference_deviation(case) == 1 / case["epsilon"]


# An honest release falls with a probability of 1e-9 each; no rate is at stake where one must fall.
@pytest.mark.parametrize("control", QUICK, ids=lambda control: control.name)
def test_a_few_runs_show_what_they_can(control):
    if control.most_runs < FEW_RUNS:
        control = replace(control, most_runs=20)  # each run is a release through a ledger
    result = examine(control, FEW_RUNS, zlib.crc32(control.name.encode()))
    assert result.agrees
    assert control.is_true or result.outcome is Outcome.FALSIFIED
