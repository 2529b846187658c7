"""Correct programs are never found at fault; broken ones are, or the line is named."""

from __future__ import annotations

import functools
import multiprocessing
import random
import re
import sys
import threading
import time
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from audits import Outcome, Primitive, record
from tests.audits.recorded_runs import broken_programs as broken
from tests.audits.recorded_runs import honest_programs as honest

DATA = np.random.default_rng(5).uniform(size=40)
DATA[7] = 0.95
FEWER = np.delete(DATA, 7)
OTHER = np.where(np.arange(40) == 7, 1 - DATA, DATA)
FILE = "broken_programs.py"


@pytest.fixture(autouse=True)
def module_that_is_not_imported_yet(tmp_path, monkeypatch):
    source = "from numpy.random import laplace\ndef release(value):\n    return value + laplace()\n"
    (tmp_path / "late_module_of_noise.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("late_module_of_noise", None)


def test_the_tables_have_sixty_correct_programs_and_thirty_broken_ones():
    assert len(set(honest.PURE + honest.GAUSSIAN)) >= 60
    assert len(set(broken.BROKEN)) >= 30


@pytest.mark.parametrize("program", honest.PURE + honest.GAUSSIAN, ids=lambda f: f.__name__)
@pytest.mark.parametrize(("neighbour", "epsilon"), [(FEWER, 1.0), (OTHER, 2.0)])
@pytest.mark.filterwarnings("ignore")
def test_no_correct_program_is_found_at_fault(program, neighbour, epsilon):
    claim = (epsilon, 1e-5) if program in honest.GAUSSIAN else epsilon
    verdict = record(program, DATA, neighbour, claim=claim)
    assert verdict.outcome is not Outcome.FALSIFIED, verdict
    if verdict.outcome is Outcome.INCONCLUSIVE:
        assert verdict.findings or verdict.unchecked, "no reason is given"


@pytest.mark.parametrize("program", broken.FOUND, ids=lambda f: f.__name__)
def test_broken_programs_are_found(program):
    assert record(program, DATA, FEWER, claim=1.0).outcome is Outcome.FALSIFIED


@pytest.mark.parametrize("program", broken.NAMED, ids=lambda f: f.__name__)
def test_of_what_cannot_be_judged_the_line_is_named(program):
    verdict = record(program, DATA, FEWER, claim=1.0)
    lines = map(int, re.findall(rf"{FILE}:(\d+)", f"{verdict.findings} {verdict.unchecked}"))
    first = program.__code__.co_firstlineno
    last = max(number for *_, number in program.__code__.co_lines() if number) + 4
    assert any(first <= line <= last for line in lines), verdict


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (broken.branch_that_stays, "`np.mean(data)`"),
        (broken.early_return_on_a_bare_count, "`count`"),
        (broken.loop_on_a_bare_value, "`np.sum(data)`"),
        (broken.conditional_expression, "`data.max()`"),
        (broken.again_until_it_is_near, "`data.sum()`"),
    ],
)
def test_a_branch_on_a_number_without_noise_is_unchecked(program, text):
    verdict = record(program, DATA, FEWER, claim=1.0)
    (note,) = verdict.unchecked
    place, sentence = note.split(": ")
    assert place.rpartition(":")[0].endswith(FILE)
    assert sentence == f"a branch compares {text}, which has no noise"


def noisy_branches(data, rng):
    noisy = data.sum() + rng.laplace()
    if noisy > 3 and len(data.shape) == 1 and isinstance(data, np.ndarray):
        return noisy
    return float(noisy) if noisy < 0 else 0.0


def rows_by_a_noisy_mean(data, rng):
    mean = data.mean() + rng.laplace(scale=0.1)
    return (np.clip(data - mean, -1, 1)).sum() + rng.laplace(scale=9.0), np.sort(data).size


@pytest.mark.parametrize("program", [noisy_branches, rows_by_a_noisy_mean])
def test_branches_on_noise_and_rows_by_noise_are_not_named(program):
    verdict = record(program, DATA, OTHER, claim=2.0)
    assert (verdict.outcome, verdict.unchecked) == (Outcome.SURVIVED, ()), verdict


def test_a_trace_of_the_caller_is_put_back():
    trace = lambda *_: None  # noqa: E731
    earlier = sys.gettrace()
    sys.settrace(trace)
    try:
        record(noisy_branches, DATA, OTHER)
        assert sys.gettrace() is trace
    finally:
        sys.settrace(earlier)


def test_parts_that_differ_on_the_same_data_hide_no_other_parts():
    def stamped(data, rng, *, shows):
        return {"time": time.time_ns(), "sum": data.sum() + rng.laplace(), "shown": shows(data)}

    kinds = {}
    for shows in (np.ndim, np.size, np.mean):
        verdict = record(functools.partial(stamped, shows=shows), DATA, OTHER, claim=1.0)
        kinds[shows] = verdict.outcome, [finding.kind for finding in verdict.findings]
    judged = Outcome.INCONCLUSIVE, ["randomness"]
    assert kinds == {
        np.ndim: judged, np.size: judged, np.mean: (Outcome.FALSIFIED, ["result", "randomness"])
    }  # fmt: skip


def test_a_whole_result_that_differs_on_the_same_data_cannot_be_judged():
    source = random.SystemRandom()  # it was made before the run, and draws unrecorded
    verdict = record(lambda data: data.sum() + source.random(), DATA, OTHER, claim=1.0)
    assert (verdict.outcome, verdict.cost) == (Outcome.INCONCLUSIVE, None)
    assert "cannot judge" in verdict.findings[0].sentence


def loop_of_draws(data, rng):
    return sum(float(x > 0.5) + rng.laplace() for x in data)


def lengths_of_the_data(data, rng):
    return [x + rng.laplace() for x in data]


def test_a_draw_for_each_record_is_followed_only_where_no_record_is_missing():
    data, fewer, other = DATA[:9], np.delete(DATA[:9], 7), OTHER[:9]
    assert record(loop_of_draws, data, other, claim=1.0).outcome is Outcome.SURVIVED
    verdict = record(loop_of_draws, data, fewer, claim=1.0)
    assert [finding.kind for finding in verdict.findings] == ["not followed"]
    assert "compare data of as many records" in verdict.findings[0].sentence
    # What the result always shows is found, however the noise falls.
    shown = record(lengths_of_the_data, data, fewer, claim=1.0)
    assert [finding.kind for finding in shown.findings] == ["result", "not followed"]
    assert "the length of the result" in shown.findings[0].sentence


def test_a_sum_over_records_that_begins_with_noise_costs_its_move():
    verdict = record(honest.running_total, DATA, FEWER, claim=1.0)
    assert (verdict.outcome, verdict.cost) == (Outcome.SURVIVED, pytest.approx(0.95))


def test_a_multivariate_law_costs_what_its_covariance_says():
    def released(x, rng):
        return x + rng.multivariate_normal([0.0, 0.0], [[4.0, 2.0], [2.0, 4.0]])

    verdict = record(released, np.zeros(2), np.ones(2), delta=1e-5)
    # The shift is sqrt(1' C^-1 1) = sqrt(1 / 3).
    one_noise = record(
        lambda x, rng: x[:1] + rng.normal(scale=np.sqrt(3)), np.zeros(2), np.ones(2), delta=1e-5
    )
    assert verdict.cost == pytest.approx(one_noise.cost, rel=1e-9)


def test_noise_in_processes_and_raw_bits_is_out_of_sight():
    def by_a_process(data):
        with multiprocessing.get_context("fork").Pool(1) as pool:
            return data.sum() + pool.apply(np.random.laplace)

    verdict = record(by_a_process, DATA, OTHER, claim=1.0)
    assert verdict.outcome is Outcome.INCONCLUSIVE, verdict


def test_the_exact_noise_of_small_scale_beside_a_bare_number_is_no_excuse():
    """A part that is always the same on the data, and another on the neighbour, is found."""
    found = record(broken.count_beside_exact_noise, DATA, FEWER, claim=1.0)
    assert {finding.kind for finding in found.findings} >= {"result"}
    # At a claim for which 400 runs are too few, nothing can be judged.
    assert record(broken.count_beside_exact_noise, DATA, FEWER, claim=4.0).findings[0].kind == (
        "lost noise"
    )


def test_a_later_first_import_leaves_the_laws_of_the_library_as_they_are(monkeypatch):
    monkeypatch.delitem(sys.modules, "late_module_of_noise", raising=False)
    verdict = record(honest.imports_on_first_call, DATA, FEWER, claim=1.0)
    assert verdict.outcome is Outcome.SURVIVED, verdict
    assert sys.modules["late_module_of_noise"].laplace == np.random.laplace


def test_a_function_holds_after_a_record_what_it_held_before():
    calls, sums, kept = [], Counter(), {"n": 1}

    def counts(data, rng, cache={}):  # noqa: B006
        calls.append(len(data))
        cache[len(data)] = sums["all"] = data.sum()
        kept["n"] += 1
        return data.sum() + rng.laplace()

    verdict = record(counts, DATA, OTHER, claim=1.0)
    assert verdict.outcome is Outcome.SURVIVED
    assert (counts.__defaults__, sums, kept) == (({},), Counter(), {"n": 1})
    assert len(calls) > 3  # a list that is only appended to is no state
    (note,) = verdict.unchecked
    assert "`cache`, a default argument of counts" in note


def test_threads_get_what_they_draw_unrecorded_and_are_named():
    def in_a_thread(data, rng):
        answers = []
        thread = threading.Thread(target=lambda: answers.append(data.sum() + rng.laplace()))
        thread.start()
        thread.join()
        return answers[0]

    verdict = record(in_a_thread, DATA, OTHER, claim=1.0)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert re.search(r"test_programs.py:\d+", str(verdict))


@pytest.mark.parametrize(
    "released",
    [
        lambda data, rng: 2**60 + len(data) + rng.geometric(0.5) - rng.geometric(0.5),
        lambda data, rng: np.array([2**60 + len(data)]) + np.diff(rng.geometric(0.5, size=2)),
        lambda data, rng: 10**16 + len(data) + rng.laplace(),
        lambda data, rng: -(10**17) - len(data) + rng.laplace(),
    ],
)
def test_whole_numbers_beyond_floats_have_no_known_cost(released):
    verdict = record(released, DATA, FEWER, claim=1.0)
    assert (verdict.outcome, verdict.cost) == (Outcome.INCONCLUSIVE, None)
    assert any("beyond 2**53" in note for note in verdict.unchecked)


def test_smooth_sensitivity_is_no_fault_but_its_cost_is_not_known():
    verdict = record(honest.median_by_smooth_sensitivity, DATA, FEWER, claim=1.0)
    assert (verdict.outcome, verdict.cost) == (Outcome.INCONCLUSIVE, None)

    def scaled(data, rng):
        return np.median(data) + rng.laplace(scale=np.ptp(data))

    assert record(scaled, DATA, FEWER, claim=1.0).outcome is Outcome.FALSIFIED
    hidden_by_a_delta = record(scaled, DATA, FEWER, claim=(1.0, 1e-5))
    assert {finding.kind for finding in hidden_by_a_delta.findings} == {"not followed"}


def test_numbers_that_are_dropped_unread_are_named():
    def drops(data, rng):
        noisy = [data.sum() + rng.laplace() for _ in range(3)]
        return noisy[0]

    verdict = record(drops, DATA, FEWER, claim=1.0)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert any("drops unread" in note for note in verdict.unchecked)


def test_laws_of_scipy_draw_from_the_state_of_numpy_after_a_late_import():
    assert vars(stats.laplace)["_random_state"] is vars(np.random.mtrand)["_rand"]


def noise_of_a_helper(value):
    return value + float(np.random.laplace())


def test_a_named_function_is_the_remedy_of_lost_noise():
    def released(data):
        return noise_of_a_helper(data.sum())

    assert record(released, DATA, FEWER, claim=1.0).outcome is Outcome.INCONCLUSIVE
    from accountant import LaplaceLoss

    declared = {noise_of_a_helper: Primitive("value", sensitivity=1.0, loss=LaplaceLoss(1.0))}
    assert record(released, DATA, FEWER, declared, claim=1.0).outcome is Outcome.SURVIVED
