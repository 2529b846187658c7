"""Means of bounded vectors: replayed, on plan, unbiased inside the ball, and wrong ones caught."""

import math

import numpy as np
import pytest

from accountant import ParameterError, PrivateValueError, PureLoss
from accountant.ledger.ledger import Ledger
from algorithms import LocalMean, PrivateMean
from algorithms.base.non_private import NotPrivateWarning
from algorithms.statistics.local_mean import mean_randomizer
from audits.algorithm_runs.loss_profile import audit_algorithm
from audits.algorithm_runs.replaying import replay
from mechanisms import Gaussian, PrivUnit

RNG = np.random.default_rng(4)
X = RNG.normal(size=(70, 3))
X /= 1.5 * np.linalg.norm(X, axis=1, keepdims=True)
UP, DOWN = X.copy(), X.copy()
UP[0], DOWN[0] = [1e6, 0, 0], [-1e6, 0, 0]  # shortened inside
CONFIDENCE = 1 - 1e-7
MADE = {
    "local": LocalMean(epsilon=1.0),
    "local, hemisphere": LocalMean(epsilon=1.0, randomizer="hemisphere"),
    "central": PrivateMean(epsilon=1.0),
    "central, gaussian": PrivateMean(epsilon=1.0, delta=1e-5),
    "a ball of radius 100": PrivateMean(epsilon=1.0, row_bound=100.0),
}


def pair(columns):
    return UP[:, :columns], DOWN[:, :columns]


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("name", MADE)
def test_no_leak_and_losses_within_the_claim(name, columns):
    made, (data, neighbour) = MADE[name], pair(columns)
    assert replay(made, data, neighbour, rng=1).sound
    claim = PureLoss(1.0)
    if getattr(made, "delta", 0):
        claim = made.plan(data.shape).loss
    found = audit_algorithm(made, data, neighbour, claim, 40, np.random.default_rng(5))
    assert found.refutation(CONFIDENCE) == ""
    assert found.losses.std() > 0.1
    if claim.pure == 1.0:  # the worst pair spends nearly all of it
        assert found.losses.max() > 0.5


class ForgetsToShorten(PrivateMean):
    def run(self, ledger):
        return ledger.release(ledger.plan, lambda rows: rows.mean(axis=0), shape=ledger.shape[1])


class HalfTheNoise(PrivateMean):
    def plan(self, shape):
        return PrivateMean(epsilon=2 * self.epsilon).plan(shape)


class HalfTheLocalNoise(LocalMean):
    def mechanism(self, dimension):
        return PrivUnit.optimised(dimension, 2 * self.epsilon, self.row_bound)


class AddRemoveSensitivity(PrivateMean):
    """A record is taken to move the mean by radius / n, as if it were only left out."""

    def run(self, ledger):
        return super().run(Doubled(ledger))


class Doubled:
    def __init__(self, ledger):
        self._ledger, self.plan, self.shape = ledger, ledger.plan, ledger.shape

    def release(self, mechanism, query, shape=None):
        return self._ledger.release(mechanism, lambda rows: 2 * query(rows), shape=shape)


class Peeks(LocalMean):
    def run(self, ledger, executor=None):
        return super().run(ledger, executor) + 1e-12 * ledger._data[0]


@pytest.mark.parametrize(
    "wrong", [ForgetsToShorten, HalfTheNoise, HalfTheLocalNoise, AddRemoveSensitivity, Peeks]
)
def test_wrong_means_are_caught(wrong):
    data, neighbour = pair(3)
    made, rng = wrong(epsilon=1.0), np.random.default_rng(5)
    assert audit_algorithm(made, data, neighbour, PureLoss(1.0), 40, rng).refutation(CONFIDENCE)


class ForgetsToShortenLocally(LocalMean):
    def run(self, ledger, executor=None):
        return ledger.release_each(ledger.plan.parts[0], np.asarray).mean(axis=0)


def test_a_long_vector_that_nobody_shortened_is_refused():
    made = ForgetsToShortenLocally(epsilon=1.0)
    with pytest.raises(PrivateValueError) as caught:
        made.run(Ledger(UP, made.plan(UP.shape), rng=0))
    assert "1000000" not in str(caught.value)


@pytest.mark.parametrize("made", [LocalMean(epsilon=3.0), PrivateMean(epsilon=3.0)], ids=str)
def test_the_estimate_is_the_mean_on_average(made):
    data = np.tile([0.5, 0.1, -0.2], (400, 1))
    found = [type(made)(epsilon=3.0, random_state=run).fit(data).mean_ for run in range(80)]
    spread = np.std(found, axis=0) / math.sqrt(80)
    # 6 standard errors: false alarms of 2e-9; no estimate comes near the ball's edge
    assert np.all(np.abs(np.mean(found, axis=0) - data[0]) < 6 * spread)
    assert np.linalg.norm(found, axis=1).max() < 1


def test_estimates_stay_in_the_ball():
    for made in (LocalMean(epsilon=0.01), PrivateMean(epsilon=0.01, delta=1e-9)):
        assert np.linalg.norm(made.set_params(random_state=1).fit(X).mean_) <= 1 + 1e-12


@pytest.mark.parametrize("radius", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("kind", [LocalMean, PrivateMean])
def test_any_finite_vector_is_shortened(kind, radius):
    data = np.array([[1.7e308, -1.7e308], [0.0, 0.0], [1e-310, 1.0]] * 20)
    made = kind(epsilon=1.0, row_bound=radius)
    found = made.run(Ledger(data, made.plan(data.shape), rng=0))
    assert 0 < np.linalg.norm(found / radius) <= 1 + 1e-9


def test_the_same_seed_gives_the_same_bits_and_the_plan_needs_no_data():
    for made in (LocalMean(epsilon=1.0, random_state=3), PrivateMean(epsilon=1.0, random_state=3)):
        plan = made.plan(X.shape)
        first = made.fit(X)
        bits = first.mean_.tobytes()
        assert made.fit(X).mean_.tobytes() == bits
        assert made.plan_ == plan
        assert "differential privacy" in made.summary()
    assert len(LocalMean(epsilon=1.0).plan((70, 3)).parts) == 70


def test_without_privacy_it_is_the_mean_and_says_so():
    for kind in (LocalMean, PrivateMean):
        made = kind(epsilon=math.inf, non_private=True)
        with pytest.warns(NotPrivateWarning):
            made.fit(X)
        assert made.mean_ == pytest.approx(X.mean(axis=0))
        assert "NOT PRIVATE" in made.summary()


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"epsilon": 0.0}, "epsilon"), ({"epsilon": math.inf}, "finite"), ({"epsilon": True}, "eps"),
     ({"epsilon": 1.0, "row_bound": 0.0}, "row_bound"),
     ({"epsilon": 1.0, "row_bound": math.nan}, "row_bound"),
     ({"epsilon": 1.0, "delta": 1.0}, "delta"), ({"epsilon": 1.0, "delta": -0.1}, "delta")],
    ids=str,
)  # fmt: skip
def test_bad_settings_are_refused(settings, said):
    kinds = [PrivateMean] if "delta" in settings else [PrivateMean, LocalMean]
    for kind in kinds:
        with pytest.raises(ParameterError, match=said):
            kind(**settings).fit(X)


def test_bad_shapes_are_refused_and_bad_cells_count_as_public_ones():
    for kind in (LocalMean, PrivateMean):
        for bad in (np.zeros(5), np.zeros((0, 3))):
            with pytest.raises(ParameterError, match="one row of features a record"):
                kind(epsilon=1.0).fit(bad)
        for odd in (np.full((5, 2), math.nan), [["a", "b"]]):  # one cell may not decide a refusal
            assert np.isfinite(kind(epsilon=1.0, random_state=0).fit(odd).mean_).all()
        with pytest.raises(ParameterError, match="shape"):
            kind(epsilon=1.0).plan((5,))


def test_gaussian_noise_is_calibrated_to_the_diameter():
    plan = PrivateMean(epsilon=1.0, delta=1e-5, row_bound=3.0).plan((200, 7))
    assert isinstance(plan, Gaussian)
    assert plan.sensitivity == pytest.approx(2 * 3 / 200)
    # one record from one end of a diameter to the other moves the mean by just that
    moved = np.linalg.norm(UP[:1] / 1e6 - DOWN[:1] / 1e6) / 200 * 3
    assert moved == pytest.approx(plan.sensitivity)


@pytest.mark.parametrize("name", ["auto", "priv_unit", "hemisphere"])
def test_a_randomizer_of_vectors_costs_epsilon_and_has_their_length(name):
    made = mean_randomizer(3, 1.0, 2.0, name)
    assert (made.dimension, made.radius) == (3, 2.0)
    assert made.loss.pure <= 1.0
    assert made.loss.pure == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize(("dimension", "name"), [(1, "priv_unit"), (3, "laplace")])
def test_a_randomizer_that_does_not_fit_the_vectors_is_refused(dimension, name):
    with pytest.raises(ParameterError, match=f"fits vectors of {dimension} coordinates"):
        mean_randomizer(dimension, 1.0, 2.0, name)
