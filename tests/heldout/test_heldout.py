"""Held-out suites: a few of Google's cases of each family, and all published values.

`make heldout` runs all suites, beside the real packages.
"""

import importlib.util
import zlib
from collections import Counter
from dataclasses import replace

import mpmath
import pytest

from audits import Outcome
from tests.docs.blocks import DOCS
from tests.heldout.__main__ import peer_rows
from tests.heldout.controls import (
    controls,
    examine,
    gaussian_deviation,
    neighbours,
    read_cases,
    reference_deviation,
)
from tests.heldout.peer_rows import (
    PASSED,
    REFUSED,
    VERDICTS,
    PeerRow,
    judged,
    reasons_of,
    table_of,
)
from tests.heldout.published_values import autodp_rows, opendp_rows, renyi_divergences
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


def test_every_value_of_autodp_and_opendp_is_ours():
    rows = [*autodp_rows(), *opendp_rows()]
    counts = Counter((row.suite, row.verdict) for row in rows)
    assert counts == {
        ("autodp, Poisson samples", PASSED): 1344,
        ("opendp, zCDP", PASSED): 14,
        ("opendp, zCDP", REFUSED): 12,
    }
    page = (DOCS / "other-libraries.md").read_text(encoding="utf-8")
    assert "| autodp: Rényi divergences of Poisson samples | 1,344 | 1,344 | | |" in page
    assert "| opendp: δ and ε of zCDP | 26 | 14 | | 12 |" in page


@pytest.mark.parametrize(
    ("rate", "noise", "order"),
    # where ours is furthest below and above what autodp's tests state
    [(0.05, 10.0, 1.25), (0.01, 1.0, 2.25), (0.01, 10.0, 1.25)],
)
def test_divergences_that_differ_most_are_right(rate, noise, order):
    """The divergence of the mixture from the noise, by quadrature in 25 digits."""
    with mpmath.workdps(25):
        q, s, a = (mpmath.mpf(str(one)) for one in (rate, noise, order))

        def integrand(x):
            ratio = 1 - q + q * mpmath.exp((2 * x - 1) / (2 * s * s))
            return mpmath.npdf(x, 0, s) * ratio**a

        ends = [k * s for k in range(-12, 13, 2)] + [order + 12 * s]
        truth = float(mpmath.log(mpmath.quad(integrand, ends)) / (a - 1))
    assert float(renyi_divergences(rate, noise, 1, [order])[0]) == pytest.approx(truth, rel=1e-12)


def test_rows_become_a_table_and_reasons():
    rows = [
        PeerRow("one", "a", PASSED),
        judged("one", "b", True, "narrower"),
        judged("one", "c", False, why="2, not 1"),
        PeerRow("two", "d", REFUSED, "too long"),
    ]
    head, first, second = table_of(rows)
    assert head.split() == ["suite", "cases", *VERDICTS]
    assert first.split() == ["one", "3", "1", "1", "0", "1"]
    assert second.split() == ["two", "1", "0", "0", "1", "0"]
    assert reasons_of(rows) == [
        "one, better, 1: narrower", "one, DISAGREES, 1: 2, not 1", "two, refused, 1: too long",
    ]  # fmt: skip


def test_a_suite_whose_library_is_absent_is_said_and_has_no_rows(monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert peer_rows("PLD_accounting") == []
    assert "PLD_accounting is not installed" in capsys.readouterr().out
