"""How long an audit in pytest takes: said after ten calls of a slow release, with a bar."""

import functools
import math
from pathlib import Path

import numpy as np
import pytest

from accountant import GaussianLoss, PureLoss
from audits import Outcome, Sensitivity, audit
from audits.pytest_support import progress
from audits.pytest_support.assertions import faster_audit
from audits.pytest_support.failures import Trial
from audits.pytest_support.progress import CALLS, RunProgress, duration
from audits.runs.release_functions import ON_RUNS, vectorised
from mechanisms import Gaussian

ROOT = Path(__file__).parents[2]
LINE = "dp: 3.6 min for 200,000 runs; runs=20000 would see epsilon >= 1.2 in 22 s"


class Paper:
    """A screen that keeps what is said and drawn."""

    def __init__(self):
        self.said, self.drawn = [], []

    def say(self, line):
        self.said.append(line)

    def draw(self, line):
        self.drawn.append(line)


def test_the_time_is_said_after_ten_calls():
    paper = Paper()
    advice = functools.partial(faster_audit, len, PureLoss(1.0), None, 200_000, 1 - 1e-6)
    shown = RunProgress(paper, 200_000, advice)
    shown(1, 40.0)  # loads what is loaded once
    for call in range(2, CALLS):
        shown(1, 0.00108)
        assert paper.said == [], call
    for _ in range(20):
        shown(1, 0.00108)
    assert paper.said == [LINE]
    assert f"    {LINE}\n" in (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    assert paper.drawn == ["dp: [........................] 0%, 3.6 min to go"]
    shown.end()
    assert paper.drawn[-1] == ""


def test_of_a_quick_release_nothing_is_said():
    paper = Paper()
    shown = RunProgress(paper, 200_000, lambda per_run: "")
    for _ in range(3 * CALLS):
        shown(1, 1e-6)
    shown.end()
    assert (paper.said, paper.drawn) == ([], [])


def test_few_calls_of_many_runs_are_known_by_their_seconds(monkeypatch):
    paper = Paper()
    monkeypatch.setattr(progress, "SECONDS_PER_DRAWING", -math.inf)
    shown = RunProgress(paper, 100_000, lambda per_run: "")
    shown(1, 0.1)
    shown(25_000, 30.0)
    shown(25_000, 30.0)
    assert paper.said == ["dp: 120 s for 100,000 runs"] or paper.said == [
        "dp: 2 min for 100,000 runs"
    ]
    assert paper.drawn == [
        "dp: [######..................] 25%, 90 s to go",
        "dp: [############............] 50%, 60 s to go",
    ]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.25, "0.25 s"), (9.94, "9.9 s"), (22.2, "22 s"), (119, "119 s"), (216, "3.6 min"),
     (5400, "90 min"), (7200, "2 h"), (99_999, "28 h")],
)  # fmt: skip
def test_a_duration_has_two_digits_or_whole_units(seconds, words):
    assert duration(seconds) == words


def test_fewer_runs_are_advised_that_see_half_the_noise_or_less():
    # a tenth would not see half the noise, a larger part of the runs would
    advice = faster_audit(len, PureLoss(1.0), None, 2000, 1 - 1e-6, 0.01)
    assert advice == "; runs=660 would see epsilon >= 2 in 6.6 s"
    assert faster_audit(len, PureLoss(1.0), None, 500, 1 - 1e-6, 0.1) == ""
    assert faster_audit(len, PureLoss(50.0), None, 500, 1 - 1e-6, 0.1) == ""
    assert faster_audit(len, Sensitivity(1.0), None, 500, 1 - 1e-6, 0.1) == ""


@pytest.mark.parametrize("claim", [PureLoss(1.0), GaussianLoss(1.0)], ids=repr)
def test_what_is_advised_decides(claim):
    words = faster_audit(len, claim, None, 10**6, 0.95, 1.0)
    runs = int(words.partition("runs=")[2].partition(" ")[0])

    def silent(value, rng, size):
        return np.zeros(size)

    found = audit(silent, (0.0, 1.0), claim, runs, 0.95, rng=1)
    assert found.outcome is Outcome.SURVIVED


def test_a_mechanism_is_advised_by_its_own_noise():
    mechanism = Gaussian.instances()[0]
    advice = faster_audit(mechanism, mechanism.loss, None, 10**6, 1 - 1e-6, 1e-3)
    assert advice.startswith("; runs=100000 would see epsilon >= 1.")


def test_calls_are_counted_only_while_a_test_listens():
    heard, trial = [], Trial(20, 0.95, 1, "")
    one, many = vectorised(lambda value, rng: value), vectorised(lambda v, r, size: np.zeros(size))
    rng = np.random.default_rng(0)
    token = ON_RUNS.set(lambda runs, seconds: heard.append((runs, seconds >= 0)))
    one(0.0, rng, 3)
    many(0.0, rng, 7)
    ON_RUNS.reset(token)
    one(0.0, rng, 3)
    assert heard == [(1, True)] * 3 + [(7, True)]
    with trial.progress(20, lambda per_run: ""):  # without a screen
        assert ON_RUNS.get() is None
