"""Intervals cover: quickly on few seeds, in the slow sweep on simulated and real data."""

import pickle

import numpy as np
import pytest
from scipy import sparse, stats

from accountant import Chunks, ParameterError
from algorithms import LabelIHT, LabelLasso, LocalMean, PrivateMean
from algorithms.base.intervals import laplace_interval, normal_interval
from algorithms.base.number_noise import noise_variance
from audits import privacy_losses, replay
from experiments.intervals import CASES, CENTRE, THETA, simulated_labels, simulated_vectors

QUICK = {
    "PrivateMean": (lambda seed: PrivateMean(epsilon=1.0, delta=1e-6, variance_share=0.2,
                                             random_state=seed), simulated_vectors, 500),
    "PrivateMean, pure": (lambda seed: PrivateMean(epsilon=1.0, variance_share=0.2,
                                                   random_state=seed), simulated_vectors, 500),
    "LocalMean": (lambda seed: LocalMean(epsilon=1.0, random_state=seed), simulated_vectors, 300),
    "LabelIHT": (lambda seed: LabelIHT(epsilon=1.0, delta=1e-6, sparsity=3, y_bound=1.4,
                                       random_state=seed), simulated_labels, 400),
}  # fmt: skip


def covers(fitted, truth, level=0.95):
    ends = fitted.interval(level)
    return (ends[:, 0] <= truth) & (truth <= ends[:, 1])


@pytest.mark.parametrize("name", QUICK)
def test_coverage(name):
    made, draw, users = QUICK[name]
    hits = []
    for seed in range(40):
        data, truth = draw(users, np.random.default_rng((3, seed)))
        hits.append(covers(made(seed).fit(*data), truth))
    assert 0.9 <= np.mean(hits) <= 0.985


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name} {case.data} {case.delta}")
def test_coverage_on_simulated_and_real_data(case):
    share = np.mean([case.covered(25, seed) for seed in range(20)])
    assert 0.93 <= share <= (1.0 if case.name == "PrivateMean" else 0.97)


def test_the_laplace_quantile_is_that_of_the_sum():
    rng = np.random.default_rng(0)
    for scale, deviation in [(1.0, 0.01), (1.0, 1.0), (0.05, 1.0), (1e-3, 1.0)]:
        ends = laplace_interval(np.zeros(1), scale, np.array([deviation]), 0.9)
        drawn = rng.laplace(0, scale, 200_000) + rng.normal(0, deviation, 200_000)
        assert np.mean(np.abs(drawn) <= ends[0, 1]) == pytest.approx(0.9, abs=0.004)
    alone = laplace_interval(np.zeros(1), 2.0, np.zeros(1), 0.95)[0, 1]
    assert alone == pytest.approx(-2 * np.log(0.05))
    normal = normal_interval(np.zeros(1), np.ones(1), 0.95)[0, 1]
    assert normal == pytest.approx(stats.norm.ppf(0.975))


def test_without_spread_an_interval_allows_the_largest_variance():
    data, truth = simulated_vectors(500, np.random.default_rng(0))
    wide = PrivateMean(epsilon=8.0, random_state=0).fit(*data)
    ends = wide.interval()
    assert covers(wide, truth).all()
    half = stats.norm.ppf(0.975) / 500**0.5
    assert (ends[:, 1] - ends[:, 0] >= 2 * half * 0.999).all()
    assert np.abs(ends).max() <= 1.0


def test_the_squares_are_paid_from_the_budget():
    for delta in (0.0, 1e-6):
        made = PrivateMean(epsilon=1.0, delta=delta, variance_share=0.3, random_state=0)
        made.fit(np.full((100, 3), 0.1))
        assert 0.9999 < float(made.summary().split("(")[1].split(",")[0]) <= 1.0
        assert len(made.transcript_) == 2
        assert (
            made.plan_.parts[0].scale > PrivateMean(epsilon=1.0, delta=delta).plan((100, 3)).scale
        )


def test_squares_move_by_what_is_declared():
    radius, users = 2.0, 50
    far, near = np.zeros((users, 2)), np.zeros((users, 2))
    far[0], near[0] = [radius, 0], [0, radius]
    moved = (far**2).mean(axis=0) - (near**2).mean(axis=0)
    made = PrivateMean(epsilon=1.0, delta=1e-6, row_bound=radius, variance_share=0.5)
    gaussian = made.plan((users, 2))
    assert np.linalg.norm(moved) == pytest.approx(gaussian.parts[1].sensitivity, rel=1e-9)
    laplace = PrivateMean(epsilon=1.0, row_bound=radius, variance_share=0.5).plan((users, 2))
    assert np.abs(moved).sum() == pytest.approx(laplace.parts[1].sensitivity, rel=1e-9)


class UnshortenedSquares(PrivateMean):
    """Releases mean squares of records as they are."""

    def run(self, ledger):
        first, second = ledger.plan.leaves()
        ledger.release(
            first, lambda rows: np.clip(rows, -0.1, 0.1).mean(axis=0), shape=ledger.shape[1]
        )
        return ledger.release(second, lambda rows: (rows**2).mean(axis=0), shape=ledger.shape[1])


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_squares_leak_nothing_more_than_is_paid(delta):
    near = np.full((40, 2), 0.1)
    far = near.copy()
    far[0] = [30.0, 0.0]  # shortened inside
    honest = PrivateMean(epsilon=1.0, delta=delta, variance_share=0.5)
    assert replay(honest, near, far, rng=1).sound
    losses = privacy_losses(honest, near, far, 100, rng=2)
    assert np.mean(np.abs(losses) > 1.0 + 1e-9) <= (0.05 if delta else 0.0)
    wrong = UnshortenedSquares(epsilon=1.0, delta=delta, variance_share=0.5)
    assert np.abs(privacy_losses(wrong, near, far, 20, rng=2)).max() > 2.0


def test_labels_of_any_form_give_the_same_intervals():
    (x, y), _ = simulated_labels(400, np.random.default_rng(1))
    kind = {"epsilon": 2.0, "delta": 1e-6, "y_bound": 1.4, "random_state": 0}
    dense = LabelIHT(**kind, sparsity=3).fit(x, y).interval()
    thin = LabelIHT(**kind, sparsity=3).fit(sparse.csr_matrix(x), y).interval()
    pieces = Chunks(lambda: ((x[s], y[s]) for s in (slice(0, 150), slice(150, 400))), x.shape)
    streamed = LabelIHT(**kind, sparsity=3).fit(pieces).interval()
    assert thin == pytest.approx(dense)
    assert streamed == pytest.approx(dense)
    assert LabelLasso(**kind, noise_bound=0.1).fit(x, y).interval() == pytest.approx(dense)


def test_in_stages_they_are_made_of_labels_alone():
    (x, y), truth = simulated_labels(4000, np.random.default_rng(1))
    kind = {"epsilon": 1.0, "delta": 1e-6, "y_bound": 1.4, "sparsity": 3, "random_state": 0}
    made = LabelIHT(**kind).fit(x, y)
    assert len(made.transcript_) > 1
    assert covers(made, truth, 0.999).all()
    users = len(made.transcript_[0].output)
    error = (noise_variance(made.plan_.parts[0], 1.4) / users) ** 0.5
    ends = made.interval(0.95)
    assert ends[:, 1] - ends[:, 0] == pytest.approx(2 * 1.96 * error, rel=0.2)
    pieces = Chunks(lambda: ((x[s], y[s]) for s in (slice(0, 1500), slice(1500, 4000))), x.shape)
    assert LabelIHT(**kind).fit(pieces).interval() == pytest.approx(ends)


def test_a_local_mean_of_numbers_has_one_too():
    numbers = np.random.default_rng(0).uniform(-0.5, 1.0, (2000, 1))
    made = LocalMean(epsilon=1.0, random_state=0).fit(numbers)
    ends = made.interval(0.95)
    assert ends.shape == (1, 2)
    assert ends[0, 0] < 0.25 < ends[0, 1]
    assert ends[0, 1] - ends[0, 0] == pytest.approx(4 * 2.2 / 2000**0.5, rel=0.2)


def test_behind_a_link_too():
    rng = np.random.default_rng(2)
    x = rng.choice([-1.0, 1.0], (3000, 4))
    theta = np.array([0.5, 0.0, -0.3, 0.0])
    inner = x @ theta
    y = 8 * inner + np.cos(inner)
    made = LabelIHT(epsilon=4.0, delta=1e-6, sparsity=2, y_bound=9.0, link="8x + cos x",
                    random_state=0).fit(x, y)  # fmt: skip
    assert covers(made, theta, 0.999).all()


def test_what_has_no_interval_is_refused():
    (x, y), _ = simulated_labels(60, np.random.default_rng(1))
    made = LabelIHT(epsilon=2.0, delta=1e-6, sparsity=3, y_bound=1.4, random_state=0)
    with pytest.raises(ParameterError, match="at least 4 users for each feature"):
        made.fit(x, y).interval()
    (x, y), _ = simulated_labels(400, np.random.default_rng(1))
    with pytest.raises(ParameterError, match="before pickling"):
        pickle.loads(pickle.dumps(made.fit(x, y))).interval()
    mean = LocalMean(epsilon=1.0, random_state=0).fit(x / 5)
    for level in (0.0, 1.0, float("nan"), True, "all"):
        with pytest.raises(ParameterError, match="confidence"):
            mean.interval(level)
    with pytest.raises(ParameterError, match="variance_share"):
        PrivateMean(epsilon=1.0, variance_share=1.0).fit(x)
    assert THETA.size == 20
    assert CENTRE.size == 5
