"""Laws: no audit takes a confidence that is none, or passes over an option in silence."""

import inspect
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import audits
from accountant import GaussianLoss, ParameterError, tradeoff
from audits import Box, Canaries, GradientCanaries, Sensitivity, audit, watch
from audits.attacks import front
from audits.statistics import single_run
from audits.zoo.catalogue import SPECIMENS
from mechanisms import Laplace

PAIR, UNIT = (0.0, 1.0), Box(0.0, 1.0, (9,))


def uncalled(value, rng=None, size=None):
    raise AssertionError("called")


class Uncalled:
    """An algorithm that must not be run."""

    def plan(self, shape):
        raise AssertionError("called")

    run = plan


def observed_canaries():
    canaries = GradientCanaries(20, 20, rate=0.1, noise_multiplier=1.0, rng=0)
    canaries.rows()
    canaries.observe(np.zeros(20))
    return canaries


SCORES = np.arange(50.0)
# how each audit is asked, with a confidence; nothing of it may run when that is none
AUDITS = {
    "assert_private": lambda c: audits.assert_private(uncalled, PAIR, 1.0, confidence=c),
    "audit": lambda c: audit(uncalled, PAIR, 1.0, confidence=c),
    "audit of a mechanism": lambda c: audit(Laplace(1.0), confidence=c),
    "audit of a sensitivity": lambda c: audit(uncalled, UNIT, Sensitivity(1.0), confidence=c),
    "audit_accuracy": lambda c: audits.audit_accuracy(Uncalled(), 10, 3, 1.0, confidence=c),
    "audit_atoms": lambda c: audits.audit_atoms(uncalled, PAIR, 1.0, confidence=c),
    "audit_bits": lambda c: audits.audit_bits(uncalled, PAIR, 1.0, confidence=c),
    "audit_command": lambda c: audits.audit_command(["/uncalled"], PAIR, 1.0, confidence=c),
    "audit_family": lambda c: audits.audit_family(uncalled, [PAIR], 1.0, confidence=c),
    "audit_scores": lambda c: audits.audit_scores(SCORES, SCORES, confidence=c),
    "audit_timing": lambda c: audits.audit_timing(uncalled, PAIR, confidence=c),
    "audit_tracing": lambda c: audits.audit_tracing(Uncalled(), 1.0, confidence=c),
    "Canaries.audit": lambda c: Canaries.flip(100, 0).audit(np.arange(100.0), confidence=c),
    "canary_power": lambda c: audits.canary_power(
        20, rate=0.1, steps=1, noise_multiplier=1.0, confidence=c
    ),
    "GradientCanaries.audit": lambda c: observed_canaries().audit(confidence=c),
    "GradientCanaries.audit_noise": lambda c: observed_canaries().audit_noise(confidence=c),
    "GradientCanaries.power": lambda c: observed_canaries().power(1, confidence=c),
    "score_zoo": lambda c: audits.score_zoo(SPECIMENS[:1], confidence=c),
    "search_pairs": lambda c: audits.search_pairs(uncalled, UNIT, 1.0, confidence=c),
    "watch": lambda c: watch(uncalled, PAIR, 1.0, confidence=c),
}
NO_CONFIDENCE = (0.0, 1.0, -0.1, 1.5, math.nan, math.inf, -math.inf, True, "0.9", None)


def test_every_audit_is_in_the_table():
    asked = {
        name for name in audits.__all__ if inspect.isfunction(getattr(audits, name))
        and "confidence" in inspect.signature(getattr(audits, name)).parameters
    }  # fmt: skip
    assert asked <= AUDITS.keys()


@pytest.mark.parametrize("name", AUDITS)
def test_a_confidence_is_between_0_and_1(name):
    for confidence in NO_CONFIDENCE:
        with pytest.raises(ParameterError) as caught:
            AUDITS[name](confidence)
        assert caught.value.argument == "confidence"


LEVELS = (-1e-9, 1 + 1e-9, math.nan, math.inf, -math.inf, True, "0.1", None, 0.1j)


def test_a_type_one_error_is_between_0_and_1():
    for level in LEVELS:
        for given in (level, [level], [0.5, level], [[level], [0.5]]):
            if not (given == [0.5, True] or given == [[True], [0.5]]):  # numpy takes it for 1.0
                with pytest.raises(ParameterError) as caught:
                    tradeoff(GaussianLoss(1.0), given)
                assert caught.value.argument == "alpha"
    assert tradeoff(GaussianLoss(1.0), [0, 1]) == pytest.approx([1.0, 0.0])


@pytest.mark.parametrize("alpha", [0.0, -0.1, -math.inf, math.nan])
@pytest.mark.parametrize("leak", [0.0, 0.01])
def test_an_error_that_is_none_proves_nothing(alpha, leak):
    assert single_run.epsilon_lower_one_run(100, 100, leak, alpha) == 0.0
    assert not single_run.refutes_curve(100, 100, np.array([1.0]), np.array([leak]), alpha)


# --- options that an audit of a sensitivity, or of a mechanism, has no use for

UNUSED = {
    "an executor": lambda pool: front.audit(uncalled, UNIT, Sensitivity(1.0), executor=pool),
    "a delta": lambda pool: front.audit(uncalled, UNIT, Sensitivity(1.0), delta=1e-5),
    "an early stop": lambda pool: front.audit(uncalled, UNIT, Sensitivity(1.0), early=True),
    "a score": lambda pool: front.audit(uncalled, UNIT, Sensitivity(1.0), score=np.ones(1)),
    "a mechanism": lambda pool: front.audit(Laplace(1.0), UNIT, Sensitivity(1.0)),
    "a score of a mechanism": lambda pool: front.audit(Laplace(1.0), score=np.ones(1)),
    "what is no executor": lambda pool: front.audit(Laplace(1.0), executor="threads"),
    "a class for an executor": lambda pool: front.audit(uncalled, PAIR, 1.0, executor=type(pool)),
}


@pytest.mark.parametrize("what", UNUSED)
def test_an_option_that_would_be_passed_over_is_refused(what):
    with ThreadPoolExecutor(1) as pool, pytest.raises(ParameterError, match=r"left out|must be"):
        UNUSED[what](pool)


# --- the neighbours of a sensitivity

HISTOGRAMS = {  # distances between neighbours that replace a record, by hand
    "histogram": (lambda x: np.histogram(x, 3, (0, 1))[0], 2.0),
    "count": (len, 0.0),
    "sum": (np.sum, 1.0),
    "size of a constant": (lambda x: 5.0 * len(x), 0.0),
}


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_a_sensitivity_is_of_records_that_are_replaced(name):
    query, distance = HISTOGRAMS[name]
    found = audit(query, UNIT, Sensitivity(distance), 300, rng=1)
    assert found.outcome.name == "SURVIVED"
    if distance:
        less = audit(query, UNIT, Sensitivity(0.9 * distance), 300, rng=1)
        assert less.outcome.name == "FALSIFIED"
        assert f"are {distance:g} apart" in less.witness


def test_a_pair_is_compared_as_it_is_and_in_its_norm():
    pair = np.zeros(4), np.array([0.0, 3.0, 0.0, 4.0])
    for norm, distance in ((1, 7.0), (2, 5.0), (math.inf, 4.0)):
        claims = Sensitivity(distance, norm), Sensitivity(0.99 * distance, norm)
        outcomes = [audit(np.copy, pair, one, rng=1).outcome.name for one in claims]
        assert outcomes == ["SURVIVED", "FALSIFIED"]


def histogram_of(data):
    return np.histogram(data, 4, (0.0, 1.0))[0]


def histogram_release(data, rng, size):
    return rng.laplace(float(histogram_of(data)[0]), size=size)


# which pairs are compared, or given, by those that take a relation and get none
DEFAULT_PAIRS = {
    "candidate_pairs": lambda: [one.pair for one in audits.candidate_pairs(UNIT)],
    "probe_sensitivity": lambda: [
        audits.probe_sensitivity(histogram_of, UNIT, budget=200, rng=1).pair],
    "search_pairs": lambda: [
        one.pair for one, _ in audits.search_pairs(
            histogram_release, UNIT, 1.0, runs=1000, rng=1).screened],
}  # fmt: skip


@pytest.mark.parametrize("name", DEFAULT_PAIRS)
def test_neighbours_differ_in_one_record_unless_others_are_asked_for(name):
    compared = DEFAULT_PAIRS[name]()
    assert compared
    for pair in compared:
        first, second = map(np.asarray, pair)
        assert first.shape == second.shape
        assert np.count_nonzero(first != second) == 1


def test_all_that_take_a_relation_are_in_the_table():
    asked = {
        name for name in audits.__all__ if inspect.isfunction(getattr(audits, name))
        and "relation" in inspect.signature(getattr(audits, name)).parameters
    }  # fmt: skip
    assert asked == DEFAULT_PAIRS.keys()


def test_a_sensitivity_is_1_in_the_sum_of_all_changes_unless_it_is_declared():
    probe = audits.probe_sensitivity(histogram_of, UNIT, budget=200, rng=1)
    assert (probe.found, probe.declared, probe.outcome.name) == (2.0, 1.0, "FALSIFIED")
