"""The closing lines of the terminal report: violations and missed faults by name."""

import io

from rich.console import Console

from audits.claims.findings import Outcome
from audits.report.terminal import print_report
from tests.audits.results.report_rows import result, row


def last_words(*rows, width=400):
    screen = Console(record=True, width=width, file=io.StringIO())
    print_report(result(*rows), screen)
    return screen.export_text()


def test_the_terminal_names_violations_and_missed_faults():
    lies = row("sum", wrong=True, verdict_lower=1.98765, claim=(1.0, 1e-5))
    leaks = row("replayed", wrong=True, verdict_lower=None)
    missed = row("broken", expected=Outcome.FALSIFIED)
    text = last_words(row("honest"), lies, leaks, missed)
    assert "1 of 4 as expected." in text
    # rounded down, at the confidence of the verdict
    assert "2 violations: sum leaks ε ≥ 1.987, claimed 1 at δ = 1e-5; " in text
    assert "replayed breaks its claim, ε = 1." in text
    assert "1 known fault not found: broken." in text
    assert "wrong is at most one in a million. Repeat with --seed 7." in text
    few = last_words(row("few", outcome=Outcome.INCONCLUSIVE))
    assert "1 of 1 as expected, 1 inconclusive." in few
    assert "inconclusive, too few runs to decide: few." in few
    unseen = row("part", outcome=Outcome.INCONCLUSIVE, unseen=("output[1]: Handle",))
    assert "inconclusive, not looked into: output[1]: Handle: part." in last_words(unseen)
    unknown = last_words(row("few", outcome=Outcome.INCONCLUSIVE, expected=Outcome.FALSIFIED))
    assert "1 known fault not found: few." in unknown
    assert "violation" not in few.replace("saw no violation", "")
    assert "fault" not in few


def test_no_word_of_the_evidence_is_cut_off():
    name = "sparse_vector_without_noise_on_answers"
    why = "replay: the result changed although every answer was the same: by 1e-09 at most"
    broken = row(
        name, kind="specimen", claim=(1.0, 1e-5), epsilon_lower=10.6783, exact_epsilon=10.0,
        evidence=why,
    )  # fmt: skip
    for width in (60, 80, 100):
        shown = last_words(broken, width=width).split()
        assert set(why.split()) <= set(shown)
        assert name in shown or width == 60


def test_a_bound_above_a_true_claim_is_explained():
    above = row("honest", claim=(1.0, 0.0), epsilon_lower=1.0009)
    assert "may exceed a true claim" in last_words(above)
    assert "may exceed" not in last_words(row("honest", claim=(1.0, 0.0), epsilon_lower=0.99))
