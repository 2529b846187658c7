"""Outputs of many numbers: what leaks is found wherever it is, within memory, on honest scores."""

import tracemalloc
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

from accountant import ApproxLoss, GaussianLoss, ParameterError, PureLoss
from audits import Outcome, audit
from audits.attacks import wide_outputs
from audits.attacks.wide_outputs import screening_limits, wide_schedule
from audits.claims.claims import Sensitivity
from audits.classifiers.model_candidates import model_candidates
from audits.classifiers.objective import Objective
from audits.classifiers.screening import (
    CLIP,
    STEP,
    Reference,
    contrasts,
    screening_sums,
    worthwhile_runs,
)
from audits.classifiers.training import best_candidate
from mechanisms import Laplace

ONE = PureLoss(1.0)
WIDTH = 100
DIRECTION = np.cos(np.arange(WIDTH) ** 2)
DIRECTION *= 3 / np.linalg.norm(DIRECTION)


def dense(value, rng, size):
    return value * DIRECTION + rng.normal(size=(size, WIDTH))


def one_number(width, place, shift=4.0):
    def release(value, rng, size):
        noise = rng.random((size, width), dtype=np.float32)
        noise[:, place] += shift * value * rng.random(size)
        return noise

    return release


def same_noise(value, rng, size):
    noise = rng.normal(size=(size, WIDTH))
    noise[:, 80] = noise[:, 20] + 0.3 * value + 0.1 * rng.normal(size=size)
    return noise


def sometimes_raises(value, rng):
    if rng.random() < 0.4 * value:
        raise ValueError("no convergence")
    return rng.normal(size=100)


def named_noise(value, rng):
    """An object of ninety numbers, of which the eightieth tells."""
    noise = rng.normal(size=90)
    noise[80] += 4 * value
    return {"name": "noise", "noise": noise}


@pytest.mark.parametrize(
    ("release", "runs"),
    [(dense, 2000), (one_number(3000, 2321), 800), (same_noise, 6000),
     (sometimes_raises, 900), (named_noise, 400)],
    ids=["dense", "one number of 3,000", "one difference", "an exception", "an object"],
)  # fmt: skip
def test_a_leak_is_found_wherever_it_is(release, runs):
    found = audit(release, (0.0, 1.0), ONE, runs, rng=1)
    assert found.outcome is Outcome.FALSIFIED, found.witness
    assert found.runs == runs


@pytest.mark.parametrize(
    ("width", "most"), [(5000, 40), pytest.param(10**6, 1200, marks=pytest.mark.slow)]
)
def test_a_leak_among_very_many_numbers_is_found_in_little_memory(width, most):
    place = 765 * width // 1000
    tracemalloc.start()
    found = audit(one_number(width, place, 9.0), (0.0, 1.0), ONE, 200, rng=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.outcome is Outcome.FALSIFIED, found.witness
    assert f"number {place}" in found.witness or "sum" in found.witness
    assert peak < most * 2**20


@pytest.mark.parametrize(("claim", "pool"), [(ONE, ProcessPoolExecutor),
                                            (ApproxLoss(1.0, 1e-3), ThreadPoolExecutor),
                                            (GaussianLoss(1.0), ThreadPoolExecutor)])  # fmt: skip
def test_any_executor_gives_the_same_bits(claim, pool):
    alone = audit(dense, (0.0, 1.0), claim, 1500, rng=3)
    with pool(2) as workers:
        found = audit(dense, (0.0, 1.0), claim, 1500, rng=3, executor=workers)
    assert (found.guesses, found.point) == (alone.guesses, alone.point)
    assert (found.epsilon_lower, found.witness) == (alone.epsilon_lower, alone.witness)


def test_screening_training_and_test_are_different_runs():
    for runs in (10, 100, 5000, 10**6):
        for width in (65, 1000, 10**6):
            for screened in screening_limits(runs):
                *choice, (trained, tested) = wide_schedule(runs, width, screened)
                assert screened + trained + tested == runs
                assert min(screened, trained, tested) > 0
                assert tested >= 0.3 * runs
                assert all(0 < learned < trained and tests == 0 for learned, tests in choice)


def test_a_block_without_tests_is_learned_from_and_the_next_one_is_tested(monkeypatch):
    whole = audit(dense, (0.0, 1.0), ONE, 1500, rng=3)
    monkeypatch.setattr(wide_outputs, "MIN_FULL_RUNS", 60)
    monkeypatch.setattr(wide_outputs, "MAX_FULL_NUMBERS", 60 * WIDTH)
    *choice, _ = wide_schedule(1500, WIDTH, 500)
    assert choice == [(60, 0)]
    found = audit(dense, (0.0, 1.0), ONE, 1500, rng=3)
    assert found.guesses.runs == whole.guesses.runs
    assert found.outcome is whole.outcome is Outcome.FALSIFIED
    assert found.epsilon_lower == pytest.approx(whole.epsilon_lower, rel=0.2)


def one_shifts(width, shift, place):
    direction = np.zeros(width)
    direction[place] = shift
    return direction


def test_a_clear_number_needs_few_runs_to_screen_and_a_dense_direction_many():
    width, runs = 2000, 1000
    rng, reference = np.random.default_rng(3), Reference(np.zeros(width), np.full(width, 1.35))
    dense = rng.normal(size=width)
    for direction, least, most in (
        (one_shifts(width, 2.0, 700), 1000, 1000),
        (4 * dense / np.linalg.norm(dense), 1300, 3000),
    ):
        sums = [
            screening_sums(shift + rng.normal(size=(runs // 2, width)), reference)
            for shift in (direction, 0.0)
        ]
        assert least <= worthwhile_runs(*sums, 3500, 10_000) <= most


def features_by_name(rows, reference):
    """What is compared of each number of each run; of a missing number everything is 0."""
    z = np.clip((rows - reference.middle) / reference.spread, -CLIP, CLIP)
    missing = np.isnan(z)
    z = np.where(missing, 0.0, z)
    return {"mean": z, "step": np.clip(z, -STEP, STEP), "size": np.abs(z), "absence": 1.0 * missing}


def test_contrasts_are_differences_of_means_over_variances_of_all_runs():
    rng = np.random.default_rng(5)
    reference = Reference(np.array([1.0, 0.0, -2.0, 0.0, 3.0]), np.array([2.0, 1.0, 0.5, 1.0, 1.0]))
    first, second = (
        reference.middle + reference.spread * scale * rng.normal(size=(runs, 5)) + shift
        for runs, scale, shift in ((300, 1.0, 0.0), (200, 4.0, 0.5))
    )
    first[:, 4] = second[:, 4] = 3.0  # a constant tells nothing
    first[::3, 1] = second[::7, 1] = np.nan
    second[0, 3] = np.nan  # of one run alone
    first[0, 0] = 1e9  # clipped
    compared = contrasts(*(screening_sums(rows, reference) for rows in (first, second)))
    of_first, of_second = (features_by_name(rows, reference) for rows in (first, second))
    assert compared.keys() == of_first.keys()
    for name, contrast in compared.items():
        gap = of_first[name].mean(axis=0) - of_second[name].mean(axis=0)
        variance = np.concatenate([of_first[name], of_second[name]]).var(axis=0)
        varies = variance > 0
        variance[varies] += 1 / 500**2
        error = np.sqrt(variance * (1 / 300 + 1 / 200))
        weights, z_scores = (
            np.divide(gap, size, out=np.zeros(5), where=varies) for size in (variance, error)
        )
        assert contrast.weights == pytest.approx(weights, rel=1e-4, abs=1e-5)
        assert contrast.z_scores == pytest.approx(z_scores, rel=1e-4, abs=1e-4)
        assert varies.any()
        assert not varies[4]


def test_a_score_is_judged_on_runs_it_did_not_see():
    # noise alone, in fifty numbers: no candidate may expect to be right more often than a coin
    rng = np.random.default_rng(7)
    first, second = rng.normal(size=(2, 400, 50))
    objective = Objective(10_000, 0.0, 0.05, None, None)
    for one in model_candidates(first, second):
        cells = best_candidate([one], objective).cells
        right = cells.mass @ (1 / (1 + np.exp(-np.abs(cells.log_odds))))
        assert right < 0.62, one.description


def test_a_direction_and_a_function_are_scores():
    by_sum = audit(dense, (0.0, 1.0), ONE, 1500, rng=2, score=DIRECTION)
    by_function = audit(dense, (0.0, 1.0), ONE, 1500, rng=2, score=lambda rows: rows @ DIRECTION)
    learned = audit(dense, (0.0, 1.0), ONE, 1500, rng=2)
    assert by_sum.guesses.correct == by_function.guesses.correct
    assert by_sum.epsilon_lower > learned.epsilon_lower
    assert "the score" in by_sum.witness
    early = audit(dense, (0.0, 1.0), ONE, 1500, rng=2, score=DIRECTION, early=True)
    assert early.stopped < 500


@pytest.mark.parametrize(
    "score", [np.ones(3), [float("nan")] * WIDTH, np.zeros(WIDTH), "x", [], lambda rows: 1.0,
              lambda rows: rows],
    ids=["short", "not a number", "nothing", "a word", "empty", "one number", "rows"],
)  # fmt: skip
def test_what_is_no_score_is_refused(score):
    with pytest.raises(ParameterError, match="score must be"):
        audit(dense, (0.0, 1.0), ONE, 100, rng=1, score=score)


SUM = {"release": np.sum, "pair": (np.zeros(2), np.ones(2)), "claim": Sensitivity(2.0)}
REFUSED = [
    (
        {"release": Laplace(1.0), "score": [1.0]},
        "score",
        "a score where the release is a mechanism",
    ),
    ({**SUM, "score": [1.0]}, "score", "a score where .* or the claim a sensitivity"),
    ({**SUM, "early": True}, "early", "True"),
    ({**SUM, "delta": 0.1}, "delta", "0.1"),
    ({**SUM, "executor": "threads"}, "executor", "'threads'"),
    ({**SUM, "release": Laplace(1.0)}, "release", "Laplace"),
]


@pytest.mark.parametrize(("arguments", "name", "shown"), REFUSED)
def test_arguments_that_do_not_go_together_are_refused_by_name(arguments, name, shown):
    def not_called(value, rng, size):
        raise AssertionError("called")

    if arguments["release"] is np.sum:
        arguments = {**arguments, "release": not_called}
    with pytest.raises(ParameterError, match=f"^{name} must be .*{shown}"):
        audit(**arguments)
