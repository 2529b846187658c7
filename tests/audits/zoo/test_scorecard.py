"""Every specimen is judged as it deserves."""

import pytest

from accountant import ParameterError
from audits import Outcome
from audits.zoo.catalogue import MISSED, PROGRAMS, SPECIMENS
from audits.zoo.scorecard import DETECTION_RUNS, GUESS_AUDITS, audit_specimen, score_zoo, totals
from tests.audits.zoo.wide_specimens import specimens

WIDE = specimens()

SURE = 1 - 1e-8  # 65 honest specimens: together they raise an alarm with chance 6.5e-7
OF_PROGRAMS = {one.name for one in PROGRAMS}
FEW = 1000  # runs that show what most programs leak


@pytest.mark.parametrize("one", [s for s in SPECIMENS if s.honest], ids=lambda s: s.name)
def test_the_honest_survive(one):
    verdict = audit_specimen(one, FEW if one.name in OF_PROGRAMS else 5000, SURE, 1)
    assert verdict.outcome is not Outcome.FALSIFIED, verdict.witness
    if verdict.epsilon_lower is not None:
        assert verdict.epsilon_lower <= one.true_epsilon


RUNS = {
    "sparse_vector_unscaled": 50_000,
    "sparse_vector_releasing_values": 50_000,
    "sparse_vector_without_stop": 50_000,
    "gaussian_that_forgot_l2": 50_000,
    "gaussian_as_pure": 20_000,
    "value_of_noisy_max": 10_000,
    "grid_of_gaussians": 10_000,
    "leak_and_shame": 50_000,
    "divides_by_the_exact_count": 5000,
    "sample_that_is_shown": 5000,
    "noise_from_a_table": 5000,
    "noise_of_few_bits": 20_000,
    "die_as_noise": 20_000,
    "coins_as_noise": 20_000,
    "extreme_noise": 5000,
    "noise_most_of_the_time": 5000,
    "retries_until_positive": 20_000,
    "number_of_retries": 5000,
    "top_three_for_one": 5000,
    "letter_that_never_comes": 5000,
}


LONG = {"rare_key"}  # 0.013 on one side of two, against 0.0049


@pytest.mark.parametrize(
    "one", [s for s in SPECIMENS if not s.honest and s.name not in LONG], ids=lambda s: s.name
)
def test_the_broken_are_caught(one):
    # one of 50 alarms at 95 % would not make a broken specimen honest: no rate is at stake here
    runs = RUNS.get(one.name, FEW if one.name in OF_PROGRAMS else 5000)
    verdict = audit_specimen(one, runs, 0.95, 3)
    assert verdict.outcome is Outcome.FALSIFIED, verdict.witness
    assert verdict.witness


@pytest.mark.parametrize("one", MISSED, ids=lambda s: s.name)
def test_what_is_said_to_be_missed_survives(one):
    # where one falls, it belongs among those that are scored
    verdict = audit_specimen(one, FEW, 0.95, 3)
    assert verdict.outcome is not Outcome.FALSIFIED, verdict.witness


def test_programs_are_audited_with_no_more_runs_than_they_say():
    row = score_zoo([NAMED["named_answer"]], 100_000, rng=5)[0]
    assert row.witness.endswith("(in 4,500 runs)")


@pytest.mark.parametrize("one", WIDE, ids=lambda s: s.name)
def test_wide_outputs_are_judged_as_they_deserve(one):
    sure = 0.95 if not one.honest else SURE
    runs = 3000 if "image" in one.name or "dense" in one.name else 1500
    verdict = audit_specimen(one, runs, sure, 3)
    assert verdict.outcome is one.expected, verdict.witness


def test_most_audits_of_few_runs_see_a_dense_direction():
    # 1,500 runs of a thousand numbers: more of them screen, for the direction is all
    one = next(one for one in WIDE if one.name == "dense_direction")
    fell = [audit_specimen(one, 1500, 0.95, seed).outcome for seed in range(4, 12)]
    assert fell.count(Outcome.FALSIFIED) >= 4


NAMED = {one.name: one for one in SPECIMENS}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(LONG))
def test_what_takes_long_is_caught_too(name):
    assert audit_specimen(NAMED[name], 400_000, 0.95, 3).outcome is Outcome.FALSIFIED


def test_scores_tell_runs_bound_alarms_and_seconds():
    chosen = [NAMED[name] for name in ("half_the_noise", "laplace", "peek", "clipped_sum")]
    seen = []
    rows = score_zoo(chosen, 2000, rng=5, repeats=2, tick=seen.append)
    assert seen == [row.name for row in rows] == [one.name for one in chosen]
    assert all(row.as_expected for row in rows)
    noise, honest, algorithm, query = rows
    assert noise.kind == "broken"
    assert noise.detected_at in DETECTION_RUNS
    assert noise.detected_at <= 2000
    assert noise.share == pytest.approx(noise.epsilon_lower / 2.0)
    assert 0.5 < noise.share <= 1
    assert (honest.kind, honest.detected_at, honest.alarms) == ("honest", None, 0)
    assert 0 < honest.epsilon_lower < 1
    assert algorithm.epsilon_lower is None
    assert query.share is None
    assert all(row.seconds > 0 and row.repeats == 2 for row in rows)
    found = totals(rows)
    assert (found["specimens"], found["honest"], found["as_expected"]) == (4, 2, 4)
    # a row depends on its name and seed, not on its company
    alone = score_zoo([NAMED["laplace"]], 2000, rng=5, repeats=2)[0]
    assert alone.epsilon_lower == honest.epsilon_lower


def test_a_score_that_errs_says_so():
    import dataclasses

    lying = dataclasses.replace(NAMED["half_the_noise"], expected=Outcome.SURVIVED)
    row = score_zoo([lying], 2000, rng=5, repeats=3)[0]
    assert not row.as_expected
    assert row.alarms == 3
    small = dataclasses.replace(NAMED["half_the_noise"], true_epsilon=0.5)
    assert score_zoo([small], 2000, rng=5)[0].alarms == 1


KINDS = {"guess test", "bits", "atoms", "timing", "sensitivity", "replay", "privacy losses"}


def test_nonsense_is_refused():
    with pytest.raises(ParameterError, match="runs must be"):
        audit_specimen(NAMED["laplace"], 0, 0.95, 1)
    assert set(GUESS_AUDITS) < KINDS
