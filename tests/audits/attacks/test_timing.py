"""Timing: exact p-values by enumeration, leaks found by a clock of our own and by a real one."""

import collections
import gc
import itertools
import math

import numpy as np
import pytest
from scipy.stats import wilcoxon

from accountant import ParameterError
from audits.attacks import timing
from audits.attacks.timing import audit_timing, signed_rank_p, spearman
from audits.runs.release_functions import IsolatedRelease
from mechanisms import Laplace

SURE = 1 - 1e-9


class Clock:
    """Tells whatever time the release made of it."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def run(work, pairs=100, batch=1, confidence=SURE, seed=1, pair=(0.0, 1.0)):
    """Audit Laplace noise whose batch takes ``work(value, noise, tick)`` seconds."""
    clock, ticks = Clock(), itertools.count()

    def release(value, rng, size):
        noise = rng.laplace(size=size)
        clock.now += work(value, noise, next(ticks)) + 1e-3 * rng.random()
        return value + noise

    return audit_timing(release, pair, pairs, batch, confidence, seed, clock)


def test_signed_rank_p_is_scipys_exact_one():
    rng = np.random.default_rng(1)
    for size in (5, 12, 40):
        for shift in (0.0, 0.5, 2.0):
            x = rng.normal(shift, size=size)
            assert signed_rank_p(x) == pytest.approx(wilcoxon(x, method="exact").pvalue, rel=1e-9)


@pytest.mark.parametrize(
    "sizes", [np.arange(1, 11), np.repeat([1, 2, 3], 3), np.ones(9)], ids=["no ties", "ties", "all"]
)
def test_signed_rank_p_is_exact_over_all_signs(sizes):
    signs = np.array(list(itertools.product([-1, 1], repeat=sizes.size)))
    p = np.array([signed_rank_p(row * sizes) for row in signs])
    for one in np.unique(p):
        # exact: as many sign patterns as the p-value says, and never more
        assert np.mean(p <= one + 1e-12) == pytest.approx(one, abs=1e-12)
    assert signed_rank_p(np.zeros(5)) == 1.0
    assert signed_rank_p(np.concatenate([sizes, np.zeros(3)])) == signed_rank_p(sizes * 1.0)


def test_spearman_correlates_ranks_and_ties_share_theirs():
    assert spearman(np.array([1.0, 2.0, 3.0, 40.0]), np.array([1, 3, 2, 4])) == pytest.approx(0.8)
    # ranks 1.5, 1.5, 3 against 1, 2, 3
    tied = spearman(np.array([1.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0]))
    assert tied == pytest.approx(math.sqrt(3) / 2)
    assert spearman(np.arange(60.0), np.ones(60)) == 0.0


def test_time_that_depends_on_the_value():
    found = run(lambda value, noise, tick: 5e-4 * value)
    assert found.outcome.name == "FALSIFIED"
    assert found.value_p < 5e-10
    assert found.noise_p > 1e-6
    assert found.value_correlation > 0.3
    assert "the value" in found.witness


@pytest.mark.parametrize("batch", [1, 10])
def test_time_that_depends_on_the_noise(batch):
    found = run(lambda value, noise, tick: 2e-3 * np.abs(noise).mean(), 200, batch)
    assert found.outcome.name == "FALSIFIED"
    assert found.noise_p < 5e-10
    assert found.value_p > 1e-6
    assert found.noise_correlation > 0.3
    assert "the noise" in found.witness
    assert found.batch == batch


@pytest.mark.parametrize(
    "drift",
    [lambda tick: 0.0, lambda tick: 1e-2 * tick, lambda tick: 1.0 / (1 + tick),
     lambda tick: 0.1 * (tick % 2), lambda tick: float(tick == 50)],
    ids=["none", "slower", "faster", "every other", "one hiccup"],
)  # fmt: skip
def test_a_machine_that_drifts_is_no_leak(drift):
    found = run(lambda value, noise, tick: drift(tick))
    assert found.outcome.name == "SURVIVED"
    assert min(found.value_p, found.noise_p) > 1e-6


def test_false_alarms_under_drift_are_at_most_nominal():
    # 300 repeats at 20 %: more than the bound has a chance of 1e-6
    from scipy.stats import binom

    alarms = sum(
        run(lambda value, noise, tick: 1e-2 * tick, 20, 1, 0.8, seed).outcome.name == "FALSIFIED"
        for seed in range(300)
    )
    assert 0 < alarms <= binom.ppf(1 - 1e-6, 300, 0.2)


class Made:
    """A copy that knows its value and whether it was made before the other's."""

    made = itertools.count()

    def __init__(self, value):
        self.value, self.late = value, next(Made.made) % 2


def test_the_order_of_copies_is_a_coins_and_no_leak(monkeypatch):
    monkeypatch.setattr(timing, "remaker", lambda value: lambda: Made(value))
    Made.made, clock, seen = itertools.count(), Clock(), []

    def release(made, rng, size):
        seen.append((made.value, made.late))
        clock.now += 1e-3 + 1e-3 * made.late + 1e-5 * rng.random()
        return np.full(size, 0.0)

    found = audit_timing(release, (0.0, 1.0), 200, 1, SURE, 1, clock)
    assert found.outcome.name == "SURVIVED"
    assert found.value_p > 1e-6
    rows = [seen[at : at + 2] for at in range(2, len(seen), 2)]
    assert all({value for value, _ in row} == {0.0, 1.0} for row in rows)
    # which value is timed first and which is made first are coins of their own
    kinds = collections.Counter((row[0][0], row[0][1]) for row in rows)
    assert len(kinds) == 4
    assert min(kinds.values()) > 20


def test_each_row_has_copies_that_are_made_outside_the_clock():
    value, given, log = np.zeros(3), [], []

    def release(array, rng):
        log.append("run")
        given.append(array)
        array += 1
        return rng.laplace()

    def clock():
        log.append("tick")
        return float(len(log))

    audit_timing(release, (value, value.copy()), 8, 3, SURE, 1, clock)
    assert len({id(array) for array in given}) == len(given) == 2 * 3 * 9
    assert all((array == 1).all() for array in given)
    assert not value.any()
    assert log == ["tick", "run", "run", "run", "tick"] * 18


def test_what_runs_elsewhere_is_refused():
    class Elsewhere(IsolatedRelease):
        takes_size = True

        def __call__(self, value, rng, size):
            raise AssertionError("called")

    with pytest.raises(ParameterError, match="a function of this process"):
        audit_timing(Elsewhere(), (0.0, 1.0))


def test_a_real_clock():
    def slow(value, rng):
        for _ in range(int(200 + 3000 * value)):
            pass
        return value + rng.laplace()

    found = audit_timing(slow, (0.0, 1.0), 100, confidence=SURE, rng=1)
    assert found.outcome.name == "FALSIFIED"
    assert found.seconds > 0


def test_mechanisms_and_outputs_that_are_no_numbers():
    assert audit_timing(Laplace(1.0), (0.0, 1.0), 40, 5, SURE, 1).outcome.name == "SURVIVED"
    words = audit_timing(lambda value, rng: "word", (0.0, 1.0), 20, 1, SURE, 1)
    assert words.noise_p == 1.0


@pytest.mark.parametrize(
    ("output", "value", "distance"),
    [
        ([1.0, -3.0], 0.0, 2.0),
        ([1.0, -3.0], 1, 2.0),
        ([True, False, False, False], False, 0.25),
        (np.array([3, 5], dtype=np.uint8), 7, 3.0),  # the difference is no longer unsigned
        ([[1.0, 2.0], [3.0, 6.0]], np.array([1.0, 2.0]), 1.5),
        ([-1.0, 3.0], np.array([1.0, 2.0, 3.0]), 2.0),  # of another shape: the size itself
        (["word", "other"], 0.0, 0.0),
        ([1.0, -3.0], "word", 0.0),
        (np.array([1.0, None], dtype=object), 0.0, 0.0),
    ],
)
def test_the_mean_noise_is_the_distance_of_numbers_and_0_of_others(output, value, distance):
    assert timing._mean_noise(output, value) == distance


def test_garbage_is_collected_again_whatever_happens():
    assert gc.isenabled()

    def fails(value, rng, size):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit_timing(fails, (0.0, 1.0))
    assert gc.isenabled()


@pytest.mark.parametrize(
    "bad",
    [{"pairs": 1}, {"pairs": True}, {"batch": 0}, {"confidence": 1.0}, {"pair": (1.0,)},
     {"rng": -1}, {"release": 3}],
    ids=repr,
)  # fmt: skip
def test_nonsense_is_refused(bad):
    def release(value, rng):
        raise AssertionError("called")

    with pytest.raises(ParameterError, match="must be"):
        audit_timing(**{"release": release, "pair": (0.0, 1.0), **bad})
