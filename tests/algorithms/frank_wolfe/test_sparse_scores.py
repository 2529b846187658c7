"""Frank-Wolfe on sparse data: the dense form's scores and its law, at the cost of what changed."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax
from scipy.stats import chi2

from accountant import BoundedRangeLoss, Budget, Ledger, ParameterError, PrivateValueError
from algorithms.base.glm_losses import LOGISTIC, SQUARED
from algorithms.base.row_blocks import clipped_rows
from algorithms.frank_wolfe.constants import Bounds
from algorithms.frank_wolfe.dense_scores import DenseScores
from algorithms.frank_wolfe.private_lasso import PrivateLasso
from algorithms.frank_wolfe.private_logistic_lasso import PrivateLogisticLasso
from algorithms.frank_wolfe.sparse_scores import ScoreBuckets, SparseScores, step_size
from audits import privacy_losses, replay
from mechanisms import LazyExponential, NoisyMax
from mechanisms import lazy_exponential as lazy
from mechanisms.families.bounded_scores import ListedScores

RCV1 = Path(__file__).parents[3] / ".." / "shared" / "data" / "rcv1_subset" / "rcv1_subset.npz"
RNG = np.random.default_rng(12)
X = sparse.random(60, 40, 0.08, "csr", rng=RNG, data_rvs=lambda size: RNG.normal(size=size))
Y = np.where(X @ RNG.normal(size=40) + 0.1 * RNG.normal(size=60) > 0, 1.0, -1.0)
BOUNDS = Bounds(3.0, 1.0, 1.0)
ESTIMATORS = {PrivateLasso: {}, PrivateLogisticLasso: {"classes": [-1, 1]}}
LOSSES = pytest.mark.parametrize("loss", [SQUARED, LOGISTIC], ids=["squared", "logistic"])


def tail(winners, probabilities):
    """P(chi-square of so many draws is as great), rare candidates pooled."""
    expected = winners.size * probabilities
    seen = np.bincount(winners, minlength=expected.size)
    rare = expected < 20
    expected = np.append(expected[~rare], expected[rare].sum() + 1e-9)
    seen = np.append(seen[~rare], seen[rare].sum())
    return chi2.sf(((seen - expected) ** 2 / expected).sum(), expected.size - 1)


WEIGHTS = np.linspace(-0.5, 1.5, 60)  # beyond both ends of what counts
WEIGHED = pytest.mark.parametrize("weights", [(), (WEIGHTS,)], ids=["equal", "weighted"])


def rounds_of(loss, scale, count, weights=(), seed=3, bounds=BOUNDS):
    """(lazy scores, dense scores) of rounds with random moves."""
    rng = np.random.default_rng(seed)
    query, dense = SparseScores(bounds, loss, scale), DenseScores(bounds, loss)
    thick = X.toarray()
    for t in range(1, count + 1):
        yield query((X, Y, *weights)), dense((thick, Y, *weights))
        feature, vertex = int(rng.integers(40)), bounds.radius * rng.choice([-1.0, 1.0])
        query.move(feature, vertex)
        dense.move(step_size(t), feature, vertex)


@WEIGHED
@LOSSES
def test_scores_are_those_of_the_dense_form(loss, weights):
    for look, scores in rounds_of(loss, 0.05, 200, weights):
        assert look.scores() == pytest.approx(scores, abs=1e-12)
        assert look.at(np.arange(80)) == pytest.approx(scores, abs=1e-12)


@WEIGHED
@LOSSES
@pytest.mark.parametrize("scale", [1e-4, 0.05, 5.0])
def test_levels_hold_every_vertex_once_under_its_bound(loss, scale, weights):
    slack = []
    for look, scores in rounds_of(loss, scale, 150, weights):
        bounds, counts = look.levels()
        levels = np.repeat(np.arange(counts.size), counts)
        places = np.concatenate([np.arange(count) for count in counts])
        members = look.members(levels, places)
        assert np.array_equal(np.sort(members), np.arange(80))
        room = bounds[levels] - scores[members]
        assert (room >= 0).all()
        # the greatest score is not far below its level: few draws are rejected
        slack.append(room[np.argmax(scores[members])])
    if scale > 0.01:
        assert np.median(slack) < 2 * scale
    else:  # noise far below what a round moves: bounds are loose, and draws look at all scores
        assert np.median(slack) < 1.0


@LOSSES
@pytest.mark.parametrize("scale", [1e-3, 0.05, 1.0])
def test_the_selected_index_follows_the_exponential_mechanism(loss, scale):
    made, rng = LazyExponential(scale), np.random.default_rng(5)
    for t, (look, scores) in enumerate(rounds_of(loss, scale, 60)):
        if t in (0, 16, 17, 59):
            # false alarm 1e-6 / 24 each, 1e-6 together
            assert tail(made.release(look, rng, 3000), softmax(scores / scale)) > 1e-6 / 24
            found = made.log_density(np.arange(80), look)
            dense = NoisyMax(scale).log_density(np.arange(80), scores)
            assert found == pytest.approx(dense, abs=1e-9 + 1e-11 / scale)


@pytest.mark.parametrize("width", [0.01, 1.0, 1e4])
@pytest.mark.parametrize("tries", [0, 1, 16])
def test_rejection_gives_the_law_whatever_bounds_are_worth(width, tries, monkeypatch):
    monkeypatch.setattr(lazy, "MAX_REJECTIONS", tries)
    scores, made = np.array([0.0, 0.3, -2.0, 5.0, 4.9, -30.0]), LazyExponential(1.5)
    draws = made.release(ListedScores(scores, width), 1, 50_000)
    assert tail(draws, softmax(scores / 1.5)) > 1e-6 / 9
    singles = np.array([made.release(ListedScores(scores, width), rng) for rng in range(800)])
    assert tail(singles, softmax(scores / 1.5)) > 1e-6 / 9


def test_a_score_above_its_bound_is_refused_not_released():
    class Wrong(ListedScores):
        def at(self, candidates):
            return super().at(candidates) + 100.0

    Wrong.__final__ = False
    with pytest.raises(PrivateValueError, match="do not exceed their level's bound"):
        LazyExponential(1.0).release(Wrong([1.0, 2.0]), 0)
    for value in (np.zeros(3), "secret", [1.0, 2.0], None, np.array([None])):
        with pytest.raises(PrivateValueError, match="an object with levels"):
            LazyExponential(1.0).release(value, 0)


def test_one_payment_buys_one_selection():
    made = LazyExponential(2.0, 1.0)
    assert made.loss == BoundedRangeLoss(1.0)
    pair = [ListedScores([1.0, 2.0]), ListedScores([2.0, 1.0])]
    with pytest.raises(PrivateValueError, match="a single number"):
        Ledger(np.ones(3), made, rng=0).release(made, lambda data: pair)
    reports = Ledger(np.ones(2), made, rng=0).release_each(made, lambda rows: pair)
    assert reports.shape == (2,)


def test_levels_move_items_and_keep_them_all():
    rng, most = np.random.default_rng(0), np.abs(RNG.normal(size=50))
    levels = ScoreBuckets(most, 0.1, 1e-9)
    for _ in range(200):
        some = rng.choice(50, 7, replace=False)
        most[some] = np.abs(rng.normal(size=7)) * rng.choice([0.0, 1.0, 30.0])
        levels.update(some, most[some])
        bounds, counts = levels.bounds()
        found = [
            (levels.member(level, place), bounds[level])
            for level in range(bounds.size) for place in range(counts[level])
        ]  # fmt: skip
        assert sorted(item for item, _ in found) == list(range(50))
        assert all(bound - 0.1 - 2e-9 <= most[item] <= bound for item, bound in found)
        assert counts.min() > 0


def test_a_look_of_an_earlier_round_is_not_drawn_from_but_keeps_its_scores():
    looks = list(rounds_of(LOGISTIC, 0.05, 30))
    for look, scores in looks:
        assert look.scores() == pytest.approx(scores, abs=1e-12)
    with pytest.raises(RuntimeError, match="out of date"):
        looks[3][0].levels()


def test_no_record_moves_a_score_by_more_than_declared():
    rng, declared = np.random.default_rng(1), BOUNDS.score_sensitivity(60, "replace", LOGISTIC)
    greatest = 0.0
    for _ in range(50):
        other_x, other_y = X.tolil(copy=True), Y.copy()
        other_x[0] = rng.choice([-1e6, 0.0, 1e6], 40)
        other_y[0] *= rng.choice([-1.0, 1.0])
        queries = SparseScores(BOUNDS, LOGISTIC, 0.1), SparseScores(BOUNDS, LOGISTIC, 0.1)
        for _ in range(5):
            one, two = queries[0]((X, Y)), queries[1]((other_x.tocsr(), other_y))
            greatest = max(greatest, np.abs(one.scores() - two.scores()).max())
            feature, vertex = int(rng.integers(40)), 3.0 * rng.choice([-1.0, 1.0])
            for query in queries:
                query.move(feature, vertex)
    assert 0.3 * declared < greatest <= declared


def test_entries_stored_in_parts_are_added_before_they_are_clipped():
    parts = sparse.csr_array(
        (np.array([0.9, 0.9, -5.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 3)
    )
    assert clipped_rows(parts, 1.0).toarray().tolist() == [
        [0.0, 1.0, 0.0],
        [-1.0, 0.0, 0.0],
    ]
    assert parts.nnz == 3
    inside = sparse.csr_array(np.eye(3))
    assert clipped_rows(inside, 1.0) is inside


@pytest.mark.parametrize("cls", [PrivateLasso, PrivateLogisticLasso])
def test_fits_spend_what_was_planned_and_repeat(cls):
    settings = {"radius": 3.0, "random_state": 1, **ESTIMATORS[cls]}
    made = cls(2.0, 1e-6, rounds=40, **settings).fit(X, Y)
    assert [entry.mechanism for entry in made.transcript_] == list(made.plan_.leaves())
    assert isinstance(made.plan_.part, LazyExponential)
    assert made.plan_.count == 40 + 2  # two selections of the constant
    assert Budget(2.0, 1e-6).check(made.plan_) >= 0.99 * 2.0
    # the dense plan has the very same scale, and the same cost
    dense = made.plan(X.shape)
    assert dense.part == NoisyMax(made.plan_.part.scale, made.plan_.part.sensitivity)
    assert dense.part.loss == made.plan_.part.loss
    again = cls(2.0, 1e-6, rounds=40, **settings).fit(X, Y)
    assert np.array_equal(made.coef_, again.coef_)
    assert np.abs(made.coef_).sum() <= 3 * (1 + 1e-12)
    assert made.predict(X).shape == (60,)
    flipped = cls(2.0, 1e-6, rounds=4, selection="laplace", **settings).fit(X, Y)
    assert isinstance(flipped.plan_.part, NoisyMax)


@pytest.mark.parametrize("cls", [PrivateLasso, PrivateLogisticLasso])
def test_without_noise_worth_mentioning_both_forms_agree(cls):
    made = cls(1e9, 1e-6, radius=3.0, rounds=60, random_state=1, **ESTIMATORS[cls])
    coefficients = made.fit(X, Y).coef_
    assert made.fit(X.toarray(), Y).coef_ == pytest.approx(coefficients, abs=1e-9)


class Thin:
    """A fit on sparse data, as audits know algorithms."""

    def __init__(self, estimator):
        self.estimator = estimator

    def plan(self, shape):
        return self.estimator.plan(shape, sparse=True)

    def run(self, ledger):
        return self.estimator.run(ledger)


@pytest.mark.parametrize("cls", [PrivateLasso, PrivateLogisticLasso])
def test_replay_and_losses_under_the_accountant(cls):
    other_x, other_y = X.tolil(copy=True), Y.copy()
    other_x[0], other_y[0] = 1.0, -Y[0]
    other = other_x.tocsr(), other_y
    algorithm = Thin(cls(2.0, 0.0, radius=3.0, rounds=20))
    found = replay(algorithm, (X, Y), other, rng=4)
    assert found.leak_free
    assert found.on_plan
    assert found.deterministic
    losses = privacy_losses(algorithm, (X, Y), other, 30, rng=5)
    # pure epsilon is shared by the rounds
    assert np.std(losses) > 0
    assert np.abs(losses).max() <= 2.0 * (1 + 1e-9)


def test_dense_and_sparse_select_alike():
    # which vertices are taken in two rounds, 200 times each: a two-sample chi-square, which finds
    # scores of half their size
    counts = []
    for data in (X[:20, :3], X[:20, :3].toarray()):
        fits = [
            PrivateLasso(100.0, 0.0, rounds=2, fit_intercept=False, random_state=seed).fit(
                data, Y[:20]
            )
            for seed in range(200)
        ]
        words = [sum(int(e.output) * 6**i for i, e in enumerate(fit.transcript_)) for fit in fits]
        counts.append(np.bincount(words, minlength=36))
    total = sum(counts)
    common = total >= 20
    gap = (counts[0] - counts[1]) ** 2 / np.maximum(total, 1)
    pooled = [c[~common].sum() for c in counts]
    statistic = gap[common].sum() + (pooled[0] - pooled[1]) ** 2 / max(sum(pooled), 1)
    assert chi2.sf(statistic, common.sum()) > 1e-6


@pytest.mark.skipif(not RCV1.exists(), reason="no rcv1 here")
def test_rcv1_is_learned_from_a_vanishing_part_of_its_scores(monkeypatch):
    found = np.load(RCV1)
    x = sparse.csr_matrix((found["data"], found["indices"], found["indptr"]), tuple(found["shape"]))
    y, test = found["label"], found["is_test"] == 1
    made = PrivateLogisticLasso(
        2e3, 1e-6, radius=100.0, rounds=150, classes=[-1, 1], random_state=0
    )
    assert made.fit(x[~test], y[~test]).score(x[test], y[test]) > 0.7
    looked = []
    at = SparseScores.at
    monkeypatch.setattr(
        SparseScores, "at", lambda query, some: (looked.append(some.size), at(query, some))[1]
    )
    monkeypatch.setattr(SparseScores, "scores", lambda *_: pytest.fail("all scores were listed"))
    PrivateLogisticLasso(1.0, 1e-6, radius=100.0, rounds=150, classes=[-1, 1], random_state=0).fit(
        x, y
    )
    assert 150 <= sum(looked) < 4 * 150


@pytest.mark.parametrize(
    ("data", "labels"),
    [(X[:, :0], Y), (X, Y[:-1])],
    ids=["no features", "a label too few"],
)
def test_sparse_data_that_are_none_are_refused_before_anything_is_spent(data, labels):
    lasso = PrivateLasso(1.0, 1e-6, rounds=5)
    with pytest.raises(ParameterError, match="X, y must be"):
        lasso.fit(data, labels)
    assert not hasattr(lasso, "ledger_")


@pytest.mark.parametrize(
    ("data", "labels", "public"),
    [
        (X * np.nan, Y, (X * 0.0, Y)),
        (abs(X) * np.inf, Y, (abs(X) * 1e300, Y)),  # both are clipped to the bound
        (X, Y * np.nan, (X, 0.0 * Y)),
    ],
    ids=["missing features", "infinite features", "missing targets"],
)
def test_missing_and_infinite_entries_count_as_public_numbers(data, labels, public):
    settings = {"radius": 3.0, "rounds": 20, "random_state": 1}
    found = PrivateLasso(1e3, 1e-6, **settings).fit(data, labels)
    expected = PrivateLasso(1e3, 1e-6, **settings).fit(*public)
    assert np.array_equal(found.coef_, expected.coef_)
    assert found.intercept_ == expected.intercept_


def test_the_law_at_a_scale_of_a_thousandth_is_all_in_few_vertices():
    # a guard of the tests above: there the fallback to all scores is what draws
    look, scores = next(iter(rounds_of(SQUARED, 1e-3, 1)))
    assert softmax(scores / 1e-3).max() > 0.99
    assert math.isclose(look.scores().max(), scores.max())


@pytest.mark.parametrize("width", [0.1, 1.0, 1e300])
def test_a_listed_score_never_exceeds_its_bound(width):
    scores = np.array([-1.7e308, -1e-300, 0.3, 0.7, 1.7e308])
    listed = ListedScores(scores, width)
    bounds, counts = listed.levels()
    level = np.repeat(np.arange(counts.size), counts)
    place = np.concatenate([np.arange(count) for count in counts])
    members = listed.members(level, place)
    assert sorted(members.tolist()) == list(range(scores.size))
    assert (listed.at(members) <= bounds[level]).all()


@pytest.mark.parametrize("width", [0.1, 1.0, 7.0])
def test_the_scores_of_a_level_are_within_one_width(width):
    scores = np.random.default_rng(4).normal(scale=20.0, size=300)
    bounds, counts = ListedScores(scores, width).levels()
    # Sorted scores are those of one level after the other.
    ends = np.cumsum(counts)
    increasing = np.sort(scores)
    assert bounds.tolist() == increasing[ends - 1].tolist()
    assert (bounds - increasing[ends - counts] < width).all()
    # Levels are as few as multiples of the width allow.
    assert bounds.size == len({math.ceil(score / width) for score in scores.tolist()})
