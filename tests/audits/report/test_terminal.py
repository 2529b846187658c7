"""The terminal report: the verdict first, every row once, no letter lost."""

import io
import math
import re
from dataclasses import replace

import pytest
from rich.console import Console

from audits.claims.findings import Outcome
from audits.known_densities.outcome_models import laplace
from audits.known_densities.sample_size import runs_needed
from audits.report.power import power_of
from audits.report.terminal import print_report
from audits.results.rows import Compared
from audits.results.short_names import short_name
from audits.runner.cases import cases
from mechanisms import Exponential, Gaussian
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
    assert few.startswith("1 of 1 audit is inconclusive: too few runs to decide (few).")
    unseen = row("part", outcome=Outcome.INCONCLUSIVE, unseen=("output[1]: Handle",))
    assert "inconclusive: not looked into: output[1]: Handle (part)." in last_words(unseen)
    unknown = last_words(row("few", outcome=Outcome.INCONCLUSIVE, expected=Outcome.FALSIFIED))
    assert "1 known fault not found: few." in unknown
    assert "violation:" not in few
    assert "fault" not in few


def test_no_word_of_the_evidence_is_cut_off():
    name = "sparse_vector_without_noise_on_answers"
    why = "replay: the result changed although every answer was the same: by 1e-09 at most"
    broken = row(
        name, kind="specimen", claim=(1.0, 1e-5), verdict_lower=10.6783, exact_epsilon=10.0,
        evidence=why,
    )  # fmt: skip
    for width in (60, 80, 100):
        shown = last_words(broken, width=width).split()
        assert set(why.split()) <= set(shown)
        assert name in shown or width == 60


def test_the_first_line_is_the_verdict_and_the_second_the_power():
    def first(*rows):
        return last_words(*rows).splitlines()[:2]

    seen = "No violation of epsilon 1 up to 3 by Laplace noise would have been seen in 100 runs."
    assert first(row("a"), row("b")) == ["No violation seen in 2 audits.", seen]
    sums = row("noisy_sum", True, kind="target", verdict_lower=1.9987)
    assert first(sums)[0] == "1 violation: noisy_sum leaks ε ≥ 1.998, claimed 1."
    caught = {"expected": Outcome.FALSIFIED, "outcome": Outcome.FALSIFIED}
    assert first(row("a"), row("b", **caught))[0] == (
        "No violation seen in 1 audit. The known fault was found."
    )
    weak = {"outcome": Outcome.INCONCLUSIVE, "noise": "Laplace noise", "needed_runs": 690}
    few = [row(name, **weak) for name in "bc"]
    assert first(row("a"), *few)[0] == (
        "2 of 3 audits are inconclusive: "
        "too few runs to see half of Laplace noise; 690 would (b, c)."
    )
    many = [row(f"f{i}", True, verdict_lower=2.0) for i in range(6)]
    assert first(*many)[0].endswith("f2 leaks ε ≥ 2.000, claimed 1; and 3 more.")
    bare = row("in against out", kind="scores", claim=(math.nan, 1e-5), verdict_lower=1.2,
               facts=(("could have proved", "epsilon 5 at delta 1e-05"),))  # fmt: skip
    assert first(bare) == [
        "ε ≥ 1.200 at δ = 1e-5; no claim was tested.",
        "100 coins could have proved epsilon 5 at delta 1e-05.",
    ]
    assert last_words().startswith("Nothing was audited.")


def test_what_was_kept_from_a_baseline_is_said_and_a_known_violation_is_not_red():
    kept = {"kind": "target", "compared": Compared("unchanged", "2026-01-02")}
    text = last_words(
        row("f", True, **kept), row("g", compared=Compared("updated", "", "a reason"))
    )
    assert "1 of 2 rows kept from the baseline. Kept from 2026-01-02, unchanged: f." in text
    assert "Known from the baseline, so that it fails nothing: f." in text
    assert "Audited now, as a reason: g." in text
    assert text.startswith("1 violation: f breaks its claim, ε = 1.")
    assert "f (kept)" in text
    assert "baseline" not in last_words(row("f"))
    for known, style in ((kept, "\x1b[1;33m"), ({"kind": "target"}, "\x1b[1;31m")):
        screen = Console(force_terminal=True, color_system="standard", width=100,
                         file=io.StringIO())  # fmt: skip
        print_report(result(row("f", True, **known)), screen)
        assert screen.file.getvalue().startswith(style)


def test_the_power_is_that_of_the_guess_test_at_the_claim():
    runs = {"runs": 200_000, "guesses": (7, 9, 160_000), "kind": "target"}
    some = result(row("f", claim=(2.0, 0.0), **runs))
    some = replace(some, request=replace(some.request, samples=200_000))
    power = power_of(some)
    assert power.sentence == (
        "Violations of epsilon 2 from 2.1 on by Laplace noise would have been seen with 95 % "
        "probability in 200,000 runs."
    )
    # as the figure says of the tested runs
    needed = [runs_needed(laplace(truth), 2.0, 0.0, 1e-6, 0.95).guess for truth in power.truths[:2]]
    assert needed[0] <= power.tested == 160_000
    fewer = replace(some, request=replace(some.request, samples=int(needed[0] * 1.25 * 0.98)))
    assert power_of(fewer).least == power.truths[1]


@pytest.mark.parametrize(
    ("kind", "subject", "claim", "noise"),
    [
        ("target", "f", (1.0, 0.0), "Laplace noise"),
        ("target", "f", (1.0, 1e-5), "Gaussian noise"),
        ("mechanism", repr(Exponential(2.0)), (1.0, 0.0), "the noise of Exponential"),
        ("mechanism", repr(Gaussian.instances()[0]), (1.0, 1e-5), "the noise of Gaussian"),
        ("specimen", "half_the_noise", (1.0, 0.0), "Laplace noise"),
    ],
)
def test_what_would_have_been_seen_is_about_the_noise_of_the_release(kind, subject, claim, noise):
    runs = {"runs": 10**6, "guesses": (7, 9, 800_000), "kind": kind}
    some = result(row(subject, claim=claim, **runs))
    power = power_of(replace(some, request=replace(some.request, samples=10**6)))
    assert f" on by {noise} would have been seen" in power.sentence
    # half the noise is twice the epsilon, or a little more with a delta
    assert 1 < power.least <= power.truths[6]
    assert 2 <= power.truths[6] < 2.3


def test_of_many_subjects_it_is_about_laplace_noise():
    rows = [row(repr(one), claim=(1.0, 1e-5)) for one in Gaussian.instances()[:2]]
    assert "epsilon 1 up to 3 by Laplace noise" in power_of(result(*rows)).sentence


def test_falsified_is_never_green_for_ones_own_function():
    for kind in ("target", "scores", "record"):
        for expected in Outcome:
            screen = Console(force_terminal=True, color_system="standard", width=100,
                             file=io.StringIO())  # fmt: skip
            print_report(result(row("f", True, kind=kind, expected=expected)), screen)
            text = screen.file.getvalue()
            assert "\x1b[32m" not in text
            assert "expected" not in text
            assert "\x1b[1;31mFALSIFIED" in text


def test_bounds_are_those_of_the_verdict_and_rounded_down():
    above = row("honest", claim=(1.0, 0.0), epsilon_lower=1.0009, verdict_lower=0.97999)
    text = last_words(above)
    assert "0.9799  SURVIVED" in text
    assert "1.000" not in text.replace("1.0000", "")
    assert "(99.9999 %)" in text
    scores = row("in", kind="scores", confidence=0.9)
    assert "(90 %)" in last_words(scores)
    assert "99.9999" not in last_words(scores)


def test_no_row_is_shown_twice_and_the_summary_fits_a_screen():
    rows = [row(f"m{i:02}x", kind=f"kind {i % 4}", verdict_lower=0.5 + i / 1000) for i in range(40)]
    rows[7] = replace(rows[7], outcome=Outcome.FALSIFIED, verdict_lower=2.0)
    text = last_words(*rows, width=100)
    lines = text.splitlines()
    for one in rows:
        starts = sum(line.startswith(one.subject) for line in lines)
        assert starts == 1, one.subject
    at = next(i for i, line in enumerate(lines) if line.startswith("kind 0 ("))
    assert at <= 30
    assert lines[0].startswith("1 violation: m07x leaks")
    assert "Nearest to its claim of those that survived: m39x" in text
    assert next(i for i, line in enumerate(lines) if line.startswith("m07x")) < at


def test_every_row_of_the_run_is_one_line_at_100_columns_and_whole_at_80():
    subjects = [case.subject for case in cases() if case.kind in {"mechanism", "bits"}]
    shown = [short_name(one) for one in subjects]
    assert len(set(shown)) == len(subjects)
    rows = [row(one, claim=(1.0, 1.43494e-5), verdict_lower=10.5) for one in subjects]
    wide = [line for line in last_words(*rows, width=100).splitlines() if "SURVIVED" in line]
    assert [line.split("  ")[0] for line in wide[:-1]] == shown
    narrow = re.sub(r"\s|1, 1.435e-5|1\.0000|10\.5000|SURVIVED", "", last_words(*rows, width=80))
    assert all(name.replace(" ", "") in narrow for name in shown)
