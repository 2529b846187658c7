"""Two runs side by side: same answers, honest weights, nothing hidden, no thread left behind."""

import contextlib
import copy
import math
import re
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, ttest_1samp

from accountant import (
    ApproxLoss,
    GaussianLoss,
    OffPlan,
    Parallel,
    PoissonSampled,
    PureLoss,
    Repeat,
)
from audits import privacy_losses
from audits.algorithm_runs.importance_sampling import (
    MIN_UNTILTED_SHARE,
    TiltSchedule,
    _TiltedRun,
    weighted_losses,
)
from audits.algorithm_runs.loss_profile import AlgorithmAudit, audit_algorithm
from audits.algorithm_runs.replay_gate import OffTranscript
from audits.zoo.broken.algorithms import Gossip
from mechanisms import Exponential, Gaussian, Laplace, NoisyMax, RandomizedResponse, registry

DATA, OTHER = np.ones(4), np.zeros(4)
ROUNDS, EPSILON, DELTA = 20, 1.0, 1e-6
# the mu of a Gaussian loss with delta(1) = 1e-6, to the last bit that matters
MU = brentq(lambda mu: math.log(GaussianLoss(mu).delta_at(EPSILON) / DELTA), 0.1, 1.0, xtol=1e-15)


class Rounds:
    """Releases the first record under noise, again and again."""

    shape = ()

    def __init__(self, mechanism, rounds=ROUNDS):
        self.mechanism, self.rounds = mechanism, rounds

    def plan(self, shape):
        return Repeat(self.mechanism, self.rounds)

    def run(self, ledger):
        return [
            ledger.release(self.mechanism, self.query, shape=self.shape) for _ in range(self.rounds)
        ]

    def query(self, data):
        return data[0]


class Between(Rounds):
    """Releases one of two values as its first record says."""

    def __init__(self, mechanism, pair, rounds=2):
        super().__init__(mechanism, rounds)
        self.pair = pair
        axes = np.ndim(pair[0]) - mechanism.hidden_axes
        self.shape = np.shape(pair[0])[:axes]

    def query(self, data):
        return self.pair[int(1 - data[0])]


def gaussians(share=1.0):
    """Twenty Gaussians that together claim (1, 1e-6), with this share of the noise it takes."""
    return Rounds(Gaussian(share * math.sqrt(ROUNDS) / MU))


def many(algorithm, runs, epsilon=EPSILON, rng=1):
    return list(weighted_losses(algorithm, DATA, OTHER, runs, epsilon, rng=rng))


def test_weights_and_losses_are_those_of_the_closed_form():
    # with one value for all rounds, p_t / p is a function of the loss alone
    runs, ladder = 60, TiltSchedule(60, EPSILON)
    sources = np.random.default_rng(1).spawn(runs)
    found = many(gaussians(), runs)
    assert sum(one.untilted for one in found) < 45
    for one, source in zip(found, sources, strict=True):
        t, shares = ladder.tilts, ladder.shares
        logs = t * (one.loss - MU**2 / 2) - t**2 * MU**2 / 2
        assert one.first_weight == pytest.approx(1 / np.sum(shares * np.exp(logs)), rel=1e-6)
        assert one.second_weight == pytest.approx(one.first_weight * math.exp(-one.loss), rel=1e-6)
        # the same seed draws the same tilt, by which the ladder moves
        drawn = int(source.spawn(2)[0].choice(t.size, p=shares))
        assert one.untilted is (drawn == 0)
        ladder.update(drawn, one.loss)


@pytest.mark.parametrize("cls", registry(), ids=lambda cls: cls.__name__)
def test_weights_have_mean_one_for_every_mechanism(cls):
    # both p and q are densities, whatever was drawn; no weight on p exceeds 1 / PLAIN
    mechanism = cls.instances()[0]
    found = many(
        Between(mechanism, mechanism.worst_pair(0.5)), 150, mechanism.loss.epsilon_at(0.01)
    )
    weights = np.array([(one.first_weight, one.second_weight) for one in found])
    assert weights[:, 0].max() <= 1 / MIN_UNTILTED_SHARE * (1 + 1e-9)
    for column in weights.T:
        if np.ptp(column) > 1e-9:
            assert abs(column.mean() - 1) < 5.5 * column.std() / math.sqrt(150)
        else:
            assert column == pytest.approx(1.0)


def test_the_mean_of_weighted_sticks_is_the_profile():
    # without bias, whatever the ladder learns as it goes: a t-test at 1e-6
    epsilons = np.array([0.5, 1.0])
    truth = np.array([GaussianLoss(MU).delta_at(float(e)) for e in epsilons])
    means = []
    for seed in range(12):
        found = [one for one in many(gaussians(), 40, rng=seed) if not one.pilot]
        sticks = [
            one.first_weight * -np.expm1(np.minimum(epsilons - one.loss, 0.0)) for one in found
        ]
        means.append(np.mean(sticks, axis=0) / truth)
    assert np.all(ttest_1samp(means, 1.0).pvalue > 1e-6)


def test_plain_runs_have_the_law_of_privacy_losses():
    plain = [one.loss for one in many(gaussians(), 150) if one.untilted]
    size = len(plain)
    assert size > 30
    assert np.mean(plain) == pytest.approx(MU**2 / 2, abs=5.2 * MU / math.sqrt(size))
    assert np.std(plain) == pytest.approx(MU, rel=5.2 / math.sqrt(2 * size))


def test_a_delta_of_a_millionth_is_seen_in_300_runs():
    found = audit_algorithm(gaussians(), DATA, OTHER, ApproxLoss(EPSILON, DELTA), 300,
                    np.random.default_rng(1))  # fmt: skip
    one = np.array([EPSILON])
    mean, lower, upper = (float(x[0]) for x in found.confidence_band(one, 0.95))
    assert DELTA / 2 < lower <= DELTA <= upper
    assert mean == pytest.approx(DELTA, rel=0.5)
    # as they are, 300 runs show nothing
    losses = privacy_losses(gaussians(), DATA, OTHER, 300, rng=1)
    assert losses.max() < EPSILON


def test_a_tenth_too_little_noise_is_falsified_and_the_right_noise_is_not():
    claim, confidence = ApproxLoss(EPSILON, DELTA), 1 - 1e-6
    for share, falsified in ((0.9, True), (1.0, False)):
        found = audit_algorithm(gaussians(share), DATA, OTHER, claim, 300, np.random.default_rng(2))
        why = found.refutation(confidence)
        assert bool(why) is falsified, why
        if falsified:
            assert why.startswith("privacy losses: delta at epsilon")
            assert found.epsilon_lower(DELTA, confidence) >= EPSILON


@pytest.mark.slow
def test_the_right_noise_is_falsified_as_seldom_as_stated():
    # at the claim itself, with false alarms of 1 in 5 allowed: the count is binomial at most
    claim, trials, allowed = GaussianLoss(MU), 60, 0.2
    alarms = sum(
        bool(audit_algorithm(gaussians(), DATA, OTHER, claim, 60, np.random.default_rng(seed))
             .refutation(1 - allowed)) for seed in range(trials)
    )  # fmt: skip
    assert alarms <= binom.ppf(1 - 1e-6, trials, allowed)


def test_the_other_direction_is_bounded_too():
    # an answer of one half becomes one of 2 %: no loss is large, and many a gain
    pair = np.array([4.0, 0.0]), np.array([0.0, 0.0])
    mechanism = Exponential(1.0)
    law = [np.exp(mechanism.log_density(np.arange(2), np.stack([v, v]), each=True)) for v in pair]
    forth, back = (max(float(np.max(a - math.e * b)), 0.0) for a, b in (law, law[::-1]))
    assert forth == 0
    assert back > 0.4
    one = Between(mechanism, pair, 1)
    found = audit_algorithm(one, DATA, OTHER, ApproxLoss(1.0, 0.02), 300, np.random.default_rng(1))
    at = np.array([1.0])
    assert found.profile_lower(at, 0.99)[0] == 0
    assert 0.1 < found.profile_lower(at, 0.99, reverse=True)[0] < back
    assert found.refutation(0.99).endswith("the claim allows 0.02 from neighbour to data")


@pytest.mark.parametrize(("loss", "words"), [(2.0, "allows 1"), (-2.0, "from neighbour to data")])
def test_one_run_that_loses_too_much_in_either_direction_refutes(loss, words):
    losses, every = np.zeros(50), np.ones(50, dtype=bool)
    losses[20] = loss
    replayed = SimpleNamespace(data_independent=True)
    found = AlgorithmAudit(
        PureLoss(1.0), PureLoss(1.0), replayed, losses, np.ones((50, 2)), every, ~every
    )
    assert found.refutation(0.99).endswith(words)


def test_a_secret_sample_has_no_loss_and_proves_nothing():
    class Sampled(Rounds):
        def query(self, data):
            return data.sum()

    mechanism = PoissonSampled(Gaussian(1.0), 0.5)
    claim = ApproxLoss(8.0, 1e-5)
    found = audit_algorithm(Sampled(mechanism, 3), DATA, OTHER, claim, 40, np.random.default_rng(1))
    assert np.isnan(found.losses).all()
    assert found.refutation(0.95) == ""
    mean, lower, upper = found.confidence_band(np.array([0.0, 1.0]), 0.95)
    assert lower.tolist() == mean.tolist() == [0.0, 0.0]
    assert upper.tolist() == [1.0, 1.0]


def test_an_output_that_no_tilt_gives_supports_no_claim():
    run = _TiltedRun(np.array([0.0, -1.0, 1.0]), 2, np.random.default_rng(1))
    run._log_densities = np.full(3, -np.inf)
    found = run.weighted_loss(np.full(3, 1 / 3), pilot=False)
    assert (found.loss, found.first_weight, found.second_weight) == (np.inf, 1.0, 0.0)


def test_both_runs_release_from_one_secret_sample():
    samples = []

    class Sampled(Rounds):
        def query(self, data):
            samples.append(data)
            return data.sum()

    data = np.arange(1.0, 41.0)
    neighbour = np.append(data[:-1], 0.0)
    mechanism = PoissonSampled(Gaussian(1.0), 0.5)
    runs = list(weighted_losses(Sampled(mechanism, 3), data, neighbour, 10, 1.0, rng=1))
    assert (len(runs), len(samples)) == (10, 60)
    for first, second in zip(samples[::2], samples[1::2], strict=True):
        assert first.size == second.size
        assert set(np.setxor1d(first, second)) <= {40.0, 0.0}


class GivenRun:
    """Runs a given function, with the data past the gate at hand."""

    def __init__(self, run):
        self.does = run

    def plan(self, shape):
        return Repeat(Laplace(1.0), 3)

    def run(self, ledger):
        return self.does(ledger, lambda query=np.sum: ledger.release(Laplace(1.0), query))


def _stops(ledger, ask):
    return [ask() for _ in range(2 + int(ledger._data[0]))]


def _hides(ledger, ask):
    with contextlib.suppress(ZeroDivisionError):
        ask(lambda data: 1 // int(data[0]))


def _hides_all(ledger, ask):
    with contextlib.suppress(Exception):
        ledger.release(Laplace(1.0), lambda data: np.full(1 + int(data[0]), 2.0), shape=2)


def _hides_and_fails(ledger, ask):
    _hides_all(ledger, ask)
    raise ValueError("something else")


def _fails(ledger, ask):
    ask()
    return 1 // int(ledger._data[0])


def _too_many(ledger, ask):
    return [ask() for _ in range(4 - int(ledger._data[0]))]


RUNS = {
    "fewer on the neighbour": (_stops, OffTranscript, "stopped after 2 releases"),
    "a query that fails there alone": (_hides, OffTranscript, "on other data alone"),
    "another shape, hidden": (_hides_all, OffTranscript, "on other data alone"),
    "another shape, hidden by another error": (
        _hides_and_fails,
        OffTranscript,
        "on other data alone",
    ),
    "a run that fails there alone": (_fails, ZeroDivisionError, "by zero"),
    "more than the plan": (_too_many, OffPlan, "allows nothing more"),
}


@pytest.mark.parametrize("name", RUNS)
def test_what_either_run_raises_is_raised_and_no_thread_is_left(name):
    does, error, words = RUNS[name]
    before = threading.active_count()
    with pytest.raises(error, match=words):
        many(GivenRun(does), 3)
    assert threading.active_count() == before


class PlanOfSize(GivenRun):
    """Plans noise in proportion to the number of records."""

    def plan(self, shape):
        return Repeat(Laplace(float(shape[0])), 3)


def test_another_mechanism_on_the_neighbour_is_off_the_transcript_and_both_are_named():
    algorithm = PlanOfSize(lambda ledger, ask: ledger.release(ledger.plan.part, np.sum))
    words = f"asked for {Laplace(3.0)!r}, recorded was {Laplace(4.0)!r}"
    with pytest.raises(OffTranscript, match=re.escape(words)):
        list(weighted_losses(algorithm, DATA, OTHER[:3], 3, EPSILON, rng=1))


@pytest.mark.parametrize("first", [0, 1])
def test_other_users_on_the_neighbour_are_off_the_transcript(first):
    class OfUsers(GivenRun):
        def plan(self, shape):
            return Parallel([Laplace(1.0)] * 4)

    def run(ledger, ask):
        users = slice(first * int(ledger._data[0]), 2 + int(ledger._data[0]))
        return ledger.release_each(Laplace(1.0), lambda rows: rows, users)

    with pytest.raises(OffTranscript, match="release 0 asked other users"):
        many(OfUsers(run), 3)


def test_more_releases_on_the_neighbour_are_off_the_transcript():
    def run(ledger, ask):
        return [ask() for _ in range(3 - int(ledger._data[0]))]

    with pytest.raises(OffTranscript, match="asked for more than the 2 recorded"):
        many(GivenRun(run), 3)


def test_queries_that_fail_on_both_sides_fail_for_the_algorithm_alone():
    def run(ledger, ask):
        with pytest.raises(KeyError):
            ask(lambda data: {}["missing"])
        return ask()

    losses = [one.loss for one in many(GivenRun(run), 10)]
    assert np.all(np.abs(losses) <= 4.0 + 1e-9)


def test_a_stopped_run_leaves_no_thread():
    before = threading.active_count()
    sampling = weighted_losses(gaussians(), DATA, OTHER, 100, EPSILON, rng=1)
    next(sampling)
    sampling.close()

    def interrupted(ledger, ask):
        ask()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        many(GivenRun(interrupted), 3)
    assert threading.active_count() == before


def test_the_same_seed_gives_the_same_bits():
    assert many(gaussians(), 50, rng=3) == many(gaussians(), 50, rng=3)
    assert many(gaussians(), 50, rng=3) != many(gaussians(), 50, rng=4)


def test_what_a_run_keeps_on_the_algorithm_is_its_own():
    class Keeps(Rounds):
        def run(self, ledger):
            self.total = 0.0
            for _ in range(self.rounds):
                self.total += float(ledger.release(self.mechanism, self.query))
            assert self.total == sum(self.heard(ledger))

        def heard(self, ledger):
            return [self.total]

        def query(self, data):
            self.count = getattr(self, "count", 0) + 1
            return data[0]

    algorithm = Keeps(Gaussian(20.0), 5)
    many(algorithm, 4)
    assert algorithm.count == 20


def test_local_releases_and_blocks_are_weighted():
    class Local:
        def __init__(self, mechanism):
            self.plan = lambda shape: Parallel([mechanism] * 3)

        def run(self, ledger):
            part = ledger.plan.parts[0]
            first = ledger.release_each(part, lambda rows: rows, slice(0, 2))
            blocks = [slice(2, 3), slice(3, 4)]
            return first, list(ledger.release_blocks(part, lambda rows: rows, blocks))

    changed = DATA.copy()
    changed[3] = 0.0
    for mechanism, kind in ((RandomizedResponse(2, 0.75), int), (Laplace(1.0), float)):
        found = audit_algorithm(Local(mechanism), DATA.astype(kind), changed.astype(kind),
                        mechanism.loss, 60, np.random.default_rng(1))  # fmt: skip
        assert found.replayed.sound, found.replayed.witness
        assert found.refutation(1 - 1e-6) == ""
        assert found.epsilon_lower(0.0, 0.95) > 0.5
        halved = audit_algorithm(Local(mechanism), DATA.astype(kind), changed.astype(kind),
                         PureLoss(0.5), 60, np.random.default_rng(1))  # fmt: skip
        assert halved.refutation(1 - 1e-6).startswith("privacy losses: one run lost")


def test_users_whose_values_all_change_are_refused():
    with pytest.raises(OffTranscript, match="users changed with one"):
        list(weighted_losses(Gossip(), np.arange(20) % 2, 1 - np.arange(20) % 2, 3, 1.0, rng=1))


def test_scores_are_tilted():
    pair = np.array([1.0, 0.0]), np.array([0.0, 0.0])
    found = many(Between(NoisyMax(1.0), pair), 100, 3.0)
    assert not all(one.untilted for one in found)
    assert np.mean([one.first_weight for one in found]) == pytest.approx(1.0, abs=0.5)


class Uncopied(Rounds):
    """Cannot be copied, as an object of a library in C may be."""

    def __reduce__(self):
        raise TypeError("no copy")


def test_an_algorithm_that_cannot_be_copied_runs_as_it_is():
    algorithm = Uncopied(Laplace(20.0))
    with pytest.raises(TypeError, match="no copy"):
        copy.copy(algorithm)
    found = privacy_losses(algorithm, DATA, OTHER, 5, rng=1)
    assert np.abs(found).max() <= 1.0 + 1e-9
