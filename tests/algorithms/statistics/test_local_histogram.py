"""Histograms of local reports: replayed, on plan, nearest shares, and wrong ones caught."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize

from accountant import ParameterError, PrivateValueError, PureLoss
from accountant.ledger.ledger import Ledger
from algorithms import LocalHistogram
from algorithms.base.non_private import NotPrivateWarning
from algorithms.statistics.local_histogram import project_to_simplex
from audits.algorithm_runs.loss_profile import audit_algorithm
from audits.algorithm_runs.replaying import replay

ORACLES = ["subset", "unary", "hadamard"]
LABELS = np.random.default_rng(1).integers(5, size=60)
HERE, THERE = LABELS.copy(), LABELS.copy()
HERE[0], THERE[0] = -7, 10**9  # the first and the last label
CONFIDENCE = 1 - 1e-7


@pytest.mark.parametrize("oracle", ORACLES)
def test_no_leak_and_losses_within_the_claim(oracle):
    made = LocalHistogram(k=5, epsilon=1.0, randomizer=oracle)
    assert replay(made, HERE, THERE, rng=1).sound
    found = audit_algorithm(made, HERE, THERE, PureLoss(1.0), 200, np.random.default_rng(5))
    assert found.refutation(CONFIDENCE) == ""
    assert found.losses.max() > 0.99


class HalfTheNoise(LocalHistogram):
    def mechanism(self):
        settings = {"k": self.k, "randomizer": self.randomizer}
        return LocalHistogram(epsilon=2 * self.epsilon, **settings).mechanism()


class CountsByHand(LocalHistogram):
    """Counts the first label itself."""

    def run(self, ledger, executor=None):
        found = super().run(ledger, executor)
        return found + 1e-9 * (ledger._data[0] < 0)


class ChoosesByData(LocalHistogram):
    """Asks half of the users, chosen by what it should hide."""

    def run(self, ledger, executor=None):
        half = slice(0, 30) if ledger._data[0] < 1 else slice(30, 60)
        ledger.release_each(ledger.plan.parts[0], self.labels, half)
        return np.zeros(self.k)


@pytest.mark.parametrize("oracle", ORACLES)
@pytest.mark.parametrize("wrong", [HalfTheNoise, CountsByHand, ChoosesByData])
def test_wrong_histograms_are_caught(wrong, oracle):
    made, rng = wrong(k=5, epsilon=1.0, randomizer=oracle), np.random.default_rng(5)
    assert audit_algorithm(made, HERE, THERE, PureLoss(1.0), 200, rng).refutation(CONFIDENCE)


class ForgetsToClip(LocalHistogram):
    def labels(self, rows):
        return rows


def test_a_label_outside_that_nobody_clipped_is_refused():
    made = ForgetsToClip(k=5, epsilon=1.0)
    with pytest.raises(PrivateValueError) as caught:
        made.run(Ledger(THERE, made.plan(THERE.shape), rng=0))
    assert "1000000000" not in str(caught.value)


@pytest.mark.parametrize("oracle", ORACLES)
def test_the_shares_come_out(oracle):
    shares = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
    labels = np.repeat(np.arange(5), (40_000 * shares).astype(int))
    made = LocalHistogram(k=5, epsilon=2.0, randomizer=oracle, random_state=1).fit(labels)
    deviation = np.sqrt(made.plan_.parts[0].variance(shares, labels.size))
    # 6 deviations of a nearly normal estimate: false alarms of 1e-8
    assert np.all(np.abs(made.shares_ - shares) < 6 * deviation)
    assert made.shares_.sum() == pytest.approx(1)


def test_the_nearest_shares_are_nearest():
    rng = np.random.default_rng(2)
    for k, _ in itertools.product((2, 3, 6), range(5)):
        estimate = rng.normal(size=k)
        best = minimize(
            lambda s, e=estimate: ((s - e) ** 2).sum(), np.full(k, 1 / k), bounds=[(0, 1)] * k,
            constraints={"type": "eq", "fun": lambda s: s.sum() - 1}, tol=1e-12,
        ).x  # fmt: skip
        assert project_to_simplex(estimate) == pytest.approx(best, abs=1e-5)
    assert project_to_simplex(np.array([0.5, 0.5])).tolist() == [0.5, 0.5]


def test_blocks_and_seeds_change_no_bit(monkeypatch):
    labels = np.random.default_rng(3).integers(9, size=5000)
    made = LocalHistogram(k=9, epsilon=1.0, random_state=5)
    first = made.fit(labels).shares_.tobytes()
    assert made.fit(labels.astype(np.uint8)).shares_.tobytes() == first
    assert made.plan_ == made.plan((5000,))
    # of many blocks the shares still are those of all users
    monkeypatch.setattr("algorithms.statistics.local_histogram.CACHE_BYTES", 64)
    bare = LocalHistogram(k=9, epsilon=math.inf, non_private=True)
    with pytest.warns(NotPrivateWarning):
        bare.fit(labels)
    assert bare.shares_ == pytest.approx(np.bincount(labels, minlength=9) / 5000)
    assert "NOT PRIVATE" in bare.summary()


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"epsilon": 0.0}, "epsilon"), ({"epsilon": math.inf}, "finite"), ({"k": 1}, "k must"),
     ({"k": 2.0}, "k must"), ({"randomizer": "best"}, "randomizer")],
    ids=str,
)  # fmt: skip
def test_bad_settings_are_refused(settings, said):
    with pytest.raises(ParameterError, match=said):
        LocalHistogram(**{"k": 5, "epsilon": 1.0, **settings}).fit(LABELS)


def test_bad_labels_are_refused_without_showing_them():
    assert LocalHistogram(k=5, epsilon=1.0).fit(["a", 1, 2])  # a cell of a list refuses no fit
    for bad in (LABELS + 0.5, LABELS[:, None], [], LABELS > 2):
        with pytest.raises(ParameterError, match="whole numbers"):
            LocalHistogram(k=5, epsilon=1.0).fit(bad)
    with pytest.raises(ParameterError, match="shape"):
        LocalHistogram(k=5, epsilon=1.0).plan((5, 5))
