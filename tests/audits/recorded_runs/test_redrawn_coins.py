"""Coins that choose between private values: honest ones are no alarm, faults beside them are."""

from __future__ import annotations

import numpy as np
import pytest

from audits import Outcome, record
from audits.recorded_runs import redrawn_coins

BITS = np.array([0, 1, 1])
OTHER = np.array([0, 0, 1])


def shown_or_replaced(bits, rng):
    shown = rng.random(len(bits)) < 0.5
    return np.where(shown, bits, rng.random(len(bits)) < 0.5)


def flipped_and_counted(bits):
    flip = np.random.binomial(1, 0.3, size=len(bits))
    return np.where(flip == 1, 1 - bits, bits).mean() / 0.4


def one_by_one(bits, rng):
    return [int(x) if rng.random() < 0.4 else int(rng.integers(0, 2)) for x in bits]


def coins_are_shown(bits, rng):
    flip = rng.random(len(bits)) < 0.3
    return np.where(flip, 1 - bits, bits), flip


def sampled_and_bare(bits, rng):
    return np.where(rng.random(len(bits)) < 0.5, bits, -1)


def bare_part_of_an_order(bits, rng):
    return bits[rng.permutation(len(bits))[:2]].mean()


def one_coin_for_all(bits, rng):
    return 1 - bits if rng.random() < 0.4 else bits


def seldom_flipped(bits, rng):
    return np.where(rng.random(len(bits)) < 0.03, 1 - bits, bits)


HONEST = [shown_or_replaced, flipped_and_counted, one_by_one]
FAULTS = [
    (coins_are_shown, "result"), (sampled_and_bare, "result"), (one_coin_for_all, "result"),
    (bare_part_of_an_order, "result"),
    (seldom_flipped, "cost"),
]  # fmt: skip


@pytest.mark.parametrize("function", HONEST, ids=lambda f: f.__name__)
def test_randomised_response_is_no_alarm(function):
    found = record(function, BITS, OTHER, claim=1.5)
    assert (found.outcome, found.cost) == (Outcome.INCONCLUSIVE, None), found
    assert not found.findings
    assert any("coins choose what is shown" in words for words in found.unchecked)


@pytest.mark.parametrize(("function", "kind"), FAULTS, ids=lambda f: getattr(f, "__name__", ""))
def test_faults_with_coins_are_found(function, kind):
    found = record(function, BITS, OTHER, claim=1.5)
    assert {finding.kind for finding in found.findings} == {kind}, found


def test_randomised_response_beside_a_noisy_sum_is_no_alarm(monkeypatch):
    def noisy_sum_and_bits(bits, rng):
        return bits.sum() + rng.laplace(scale=2.0), shown_or_replaced(bits, rng)

    for name in ("MOST_REDRAWS", "LEAST_REDRAWS"):
        monkeypatch.setattr(redrawn_coins, name, 16)
    found = record(noisy_sum_and_bits, BITS, OTHER, claim=2.0)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert not found.findings


def test_a_verdict_of_earlier_runs_is_tested_with_other_coins(monkeypatch):
    def bare_beside_noise(bits, rng):
        u = rng.uniform(-0.5, 0.5)
        noise = 10 * np.sign(u) * np.log(1 - 2 * abs(u))  # it is taken for Laplace noise
        # The coin's threshold is private, so the next runs take the coin for a public number.
        coin = rng.random() < 0.5 + bits.sum() / 100
        return bits.sum() + noise, coin, np.where(rng.random(len(bits)) < 0.3, bits, -1)

    for name, number in (("MOST_REDRAWS", 12), ("LEAST_REDRAWS", 12), ("EXPECTED_COUNT", 2.0)):
        monkeypatch.setattr(redrawn_coins, name, number)
    found = record(bare_beside_noise, BITS, OTHER, claim=0.5, seed=3)
    assert [finding.kind for finding in found.findings] == ["result"]
    assert found.findings[0].sentence.endswith("(with other coins of the record)")


@pytest.mark.slow
@pytest.mark.parametrize("function", HONEST, ids=lambda f: f.__name__)
def test_no_alarm_of_coins_in_1500_sessions(function):
    alarms = 0
    for session in range(500):
        rng = np.random.default_rng(session)
        bits = rng.integers(0, 2, size=int(rng.integers(3, 9)))
        place = int(rng.integers(bits.size))
        other = np.where(np.arange(bits.size) == place, 1 - bits, bits)
        alarms += bool(record(function, bits, other, claim=1.5, seed=session).findings)
    print(f"{function.__name__}: {alarms} alarms in 500 sessions")
    assert alarms == 0
