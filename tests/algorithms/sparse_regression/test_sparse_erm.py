"""SparseERM: plans, gradients within their sensitivity, secret samples, accuracy on real data."""

import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from accountant import (
    Budget,
    Chunks,
    Ledger,
    ParameterError,
    PoissonSampled,
    Repeat,
)
from accountant.ledger import chunks
from algorithms import GaussianFrankWolfe, LabelPrivateClassifier, SparseERM
from algorithms.base.erm_losses import ERM_LOSSES, MeanGradient, norm_clip_factors
from algorithms.base.non_private import NotPrivateWarning
from algorithms.frank_wolfe.convex_sets import L2Ball
from algorithms.sparse_regression.sparse_erm import shortened_columns
from audits import privacy_losses, replay
from mechanisms import Gaussian
from tests.algorithms.scikit_learn_checks import passes_scikit_learn_checks

COVTYPE = Path(__file__).parents[3] / ".." / "shared" / "data" / "covtype" / "covtype.npz"
RNG = np.random.default_rng(4)
X = RNG.normal(size=(3000, 12)) / 3
Y = np.where(0.1 * RNG.normal(size=3000) < X @ ([2.0, -1.5] + [0.0] * 10), 1.0, -1.0)


@passes_scikit_learn_checks(
    SparseERM(epsilon=math.inf, delta=1e-5, sparsity=1, rounds=5, non_private=True),
    SparseERM(epsilon=1.0, delta=1e-5, sparsity=1, rounds=5, classes=[0, 1], random_state=0),
    SparseERM(epsilon=1.0, delta=1e-5, sparsity=1, rounds=5, loss="squared", random_state=0),
)
@pytest.mark.filterwarnings("ignore::algorithms.base.non_private.NotPrivateWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-5), (2.0, 1e-3), (8.0, 1e-6)])
@pytest.mark.parametrize("rate", [None, 0.02])
def test_plans_meet_their_budgets_and_waste_none(epsilon, delta, rate):
    made = SparseERM(epsilon=epsilon, delta=delta, sparsity=3, rounds=30, rate=rate)
    plan = made.plan((10_000, 20))
    assert 0.999 * epsilon <= Budget(epsilon, delta).check(plan) <= epsilon
    assert plan.count == 30
    assert isinstance(plan.part, PoissonSampled if rate else Gaussian)


@pytest.mark.parametrize(
    ("loss", "step", "most", "records"),
    [("logistic", 7.2, 2.0, (30, 3_000, 10**6)), ("squared", 1.8, 0.5, (30, 3_000, 10**6))],
)
def test_default_rounds_are_those_that_noise_allows(loss, step, most, records):
    made = SparseERM(loss=loss, epsilon=2.0, delta=1e-5, sparsity=3, fit_intercept=False)
    plans = [made.plan((n, 20)) for n in records]
    counts = [plan.count for plan in plans]
    assert counts[0] == 1 < counts[1] < counts[2] == 200
    # what all rounds add to a coordinate, step times deviation times sqrt T, at its greatest of 20
    walk = step * plans[1].part.scale * math.sqrt(counts[1]) * math.sqrt(2 * math.log(40))
    assert 0.92 * most < walk <= most


@pytest.mark.parametrize("loss", list(ERM_LOSSES))
def test_slopes_are_clipped_by_default_where_noise_is_added(loss):
    bare = {"epsilon": 2.0, "delta": 1e-5, "fit_intercept": False}
    noisy = SparseERM(loss=loss, sparsity=3, rounds=10, **bare)
    plans = [
        noisy.plan((100, 20)),
        noisy.set_params(slope_bound=0.5).plan((100, 20)),
        noisy.set_params(slope_bound=1.0).plan((100, 20)),
    ]
    assert plans[0] == plans[1]
    assert plans[0].part.sensitivity == 0.5 * plans[2].part.sensitivity == 0.01
    free = {
        "loss": loss,
        "epsilon": math.inf,
        "delta": 1e-5,
        "sparsity": 2,
        "rounds": 10,
        "non_private": True,
    }
    with pytest.warns(NotPrivateWarning):
        whole, default, half = (
            SparseERM(**free, slope_bound=clip).fit(X, Y).coef_ for clip in (1.0, None, 0.5)
        )
    assert np.array_equal(whole, default)
    assert not np.array_equal(whole, half)


def test_golden_noise():
    # methods 11: T=50, n=1e4, G=1, (2, 1e-3), replace: mu = .691927, sigma exact 2.043877e-3
    bare = {"slope_bound": 1.0, "fit_intercept": False}
    made = SparseERM(epsilon=2.0, delta=1e-3, sparsity=5, rounds=50, **bare)
    plan = made.plan((10_000, 30))
    assert plan.part.scale == pytest.approx(2.043877e-3, rel=2e-6)
    assert plan.part.sensitivity == 2e-4
    mu = plan.part.loss.mu * math.sqrt(50)
    assert mu == pytest.approx(0.691927, rel=2e-6)


@pytest.mark.parametrize("loss", list(ERM_LOSSES))
@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_no_record_moves_a_gradient_by_more_than_declared(loss, thin, weighted):
    rng = np.random.default_rng(5)
    declared, greatest = 2 * 1.5 / 20, 0.0
    for _ in range(300):
        x, y = 3 * rng.normal(size=(20, 4)), rng.choice([-1.0, 1.0], 20)
        # both records are wrong by much, in opposite directions beside theta's
        x[0] = [*(5 * rng.normal(size=3)), -0.1 * y[0]]
        other_x, other_y = x.copy(), y.copy()
        other_x[0, :3] *= -1
        if loss == "squared":
            other_y[0] = 1e9 * rng.normal()
        gradient = MeanGradient(ERM_LOSSES[loss], 1.5, 20, weight_bound=2.0)
        gradient.theta = np.array([0.0, 0.0, 0.0, 10 ** rng.uniform(0, 5)])
        kind = sparse.csr_array if thin else np.asarray
        weights = rng.uniform(0.0, 2.0, (2, 20))
        weights[0, 0], weights[1] = 9.0, [rng.uniform(-1.0, 9.0), *weights[0, 1:]]
        pair = ((kind(x), y, weights[0]), (kind(other_x), other_y, weights[1]))
        moved = gradient(pair[0][: 2 + weighted]) - gradient(pair[1][: 2 + weighted])
        greatest = max(greatest, np.linalg.norm(moved))
    assert 0.7 * declared < greatest <= declared * (1 + 1e-12)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_columns_of_shortened_rows_are_those_of_rows_that_are_divided_by_their_length(form):
    rows = np.array([[3.0, 4.0, 0.0], [0.3, 0.0, 0.4], [0.0, -6.0, 8.0]])
    lengths = np.array([5.0, 0.5, 10.0])  # longer ones become as long as the bound
    expected = rows * (2.0 / np.maximum(lengths, 2.0))[:, None]
    for columns in ([0, 1, 2], [2, 0], [1]):
        shortened = shortened_columns(2.0, columns, form(rows))
        np.testing.assert_allclose(shortened, expected[:, columns], rtol=1e-12)


def test_rows_are_shortened():
    rows = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    for kind in (np.asarray, sparse.csr_array):
        assert norm_clip_factors(kind(rows), 1.0) == pytest.approx([0.2, 1, 1])
        assert norm_clip_factors(kind(rows), 5.0).tolist() == [1, 1, 1]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_predictions_shorten_rows_as_the_fit_does(kind):
    rng = np.random.default_rng(6)
    x = rng.normal(size=(4000, 5))  # most rows are longer than 1
    short = x * norm_clip_factors(x, 1.0)[:, None]
    y = 0.7 * short[:, 2]
    scores = []
    for epsilon in (1.0, 10.0):
        made = SparseERM(loss="squared", epsilon=epsilon, delta=1e-5, sparsity=1, random_state=0)
        made.fit(kind(x), y)
        assert made.predict(kind(x)) == pytest.approx(made.predict(kind(short)))
        scores.append(made.score(kind(x), y))
    assert min(scores) > 0.99


@pytest.mark.parametrize("rate", [None, 0.1])
def test_it_learns_and_dense_equals_sparse(rate):
    made = SparseERM(
        epsilon=4.0,
        delta=1e-5,
        sparsity=2,
        rounds=40,
        step=4.0,
        rate=rate,
        random_state=1,
        classes=[-1.0, 1.0],
    )
    dense = made.fit(X, Y)
    assert dense.score(X, Y) > 0.93
    assert set(np.flatnonzero(dense.coef_)) == {0, 1}
    coefficients = dense.coef_.copy()
    assert made.fit(sparse.csr_array(X), Y).coef_ == pytest.approx(coefficients, abs=1e-12)


def test_replay_and_losses_under_the_accountant():
    made = SparseERM(epsilon=2.0, delta=1e-5, sparsity=2, rounds=20, classes=[-1.0, 1.0])
    x, y = X[:200], Y[:200]
    other_x, other_y = x.copy(), y.copy()
    other_x[0] = -10 * x[0]
    found = replay(made, (x, y), (other_x, other_y), rng=1)
    assert found.leak_free
    assert found.on_plan
    losses = privacy_losses(made, (x, y), (other_x, other_y), 200, rng=2)
    mu = math.sqrt(20) * made.plan(x.shape).part.loss.mu
    # losses of a Gaussian of mu' <= mu: deviation at most mu, with a wide margin
    assert 0 < losses.std() < 1.25 * mu


def test_a_sample_is_secret_and_of_its_rate():
    sizes, part = [], Gaussian(1.0)
    plan = Repeat(PoissonSampled(part, 0.01), 300)
    ledger = Ledger(np.ones(10_000), plan, rng=3)
    for _ in range(300):
        ledger.release(plan.part, lambda rows: float(sizes.append(len(rows)) or len(rows)))
    assert np.mean(sizes) == pytest.approx(100, abs=6 * 10 / math.sqrt(300))
    assert np.std(sizes) == pytest.approx(math.sqrt(99), rel=0.25)
    assert {entry.who for entry in ledger.transcript} == {None}
    with pytest.raises(ParameterError, match="the sample is secret"):
        Ledger(np.ones(9), plan, rng=3).release_each(plan.part, lambda rows: rows)
    # the plan asks for the sampled mechanism, not for its part
    with pytest.raises(RuntimeError, match="the plan allows PoissonSampled"):
        Ledger(np.ones(9), plan, rng=3).release(part, np.sum)


def test_a_sampled_run_replays_with_the_same_samples():
    made = SparseERM(epsilon=2.0, delta=1e-5, sparsity=2, rounds=10, rate=0.3, classes=[-1.0, 1.0])
    other = X[:100].copy()
    other[0] *= -1
    found = replay(made, (X[:100], Y[:100]), (other, Y[:100]), rng=1)
    assert found.leak_free
    assert found.deterministic
    assert math.isnan(found.loss)  # samples are secret: no density is claimed


@pytest.mark.skipif(not COVTYPE.exists(), reason="no covtype here")
def test_covtype_within_two_points_of_no_privacy():
    data = np.load(COVTYPE)
    low = np.array([1859, 0, 0, 0, -173, 0, 0, 0, 0, 0])
    high = np.array([3858, 360, 66, 1397, 601, 7117, 254, 254, 254, 7173])
    x = np.hstack([
        (data["numeric"] - low) / (high - low),
        np.eye(4)[data["wilderness"]], np.eye(40)[data["soil"]],
    ])  # fmt: skip
    y, order = data["label"] == 2, np.random.default_rng(0).permutation(len(x))
    train, test = order[:74_000], order[74_000:]

    def accuracy(epsilon, **settings):
        made = SparseERM(epsilon=epsilon, delta=1e-5, sparsity=10, **settings)
        return made.fit(x[train], y[train]).score(x[test], y[test])

    private = [accuracy(2.0, rounds=40, step=20.0, random_state=seed) for seed in range(6)]
    with pytest.warns(NotPrivateWarning):
        free = accuracy(math.inf, rounds=200, step=8.0, non_private=True)
    assert np.mean(private) > free - 0.02 > 0.68


def test_clipped_residuals_lower_the_noise_and_what_a_record_moves():
    whole, clipped = (
        SparseERM(epsilon=2.0, delta=1e-5, sparsity=2, rounds=10, slope_bound=clip)
        for clip in (1.0, 0.3)
    )
    plans = [made.plan((60, 4)).part for made in (whole, clipped)]
    assert plans[1].sensitivity == pytest.approx(0.3 * plans[0].sensitivity)
    assert plans[1].scale == pytest.approx(0.3 * plans[0].scale)
    x = np.random.default_rng(0).normal(size=(60, 4))
    outputs = []
    for sign in (1, -1):  # at the start all slopes are a half: clipped
        y = np.where(np.arange(60) == 0, sign, 1.0)
        ledger = Ledger((9 * x, y), clipped.plan(x.shape), rng=0)
        clipped.run(ledger)
        outputs.append(ledger.transcript[0].output)
    moved = np.linalg.norm(outputs[0] - outputs[1])
    assert 0.99 * plans[1].sensitivity < moved <= plans[1].sensitivity * (1 + 1e-9)


BAD = [
    ({"sparsity": 99}, "sparsity must be"),
    ({"delta": 0.0}, "delta must be"),
    ({"epsilon": math.inf}, "epsilon must be"),
    ({"loss": "hinge"}, "loss must be"),
    ({"ridge": -1.0}, "ridge must be"),
    ({"row_bound": 0.0}, "row_bound must be"),
    ({"rate": 1.5}, "rate must be"),
    ({"rounds": 0}, "rounds must be"),
    ({"slope_bound": 0.0}, "slope_bound must be"),
    ({"step": math.nan}, "step must be"),
]


@pytest.mark.parametrize(("changes", "words"), BAD, ids=lambda one: str(one)[:30])
def test_bad_settings_are_refused_before_any_spend(changes, words):
    settings = {"epsilon": 1.0, "delta": 1e-5, "sparsity": 2, "classes": [-1.0, 1.0], **changes}
    estimator = SparseERM(**settings)
    with pytest.raises(ParameterError, match=words):
        estimator.fit(X[:50], Y[:50])
    assert not hasattr(estimator, "ledger_")


SIGNS = np.where(np.arange(64) % 2, 1.0, -1.0)


CENTRAL = {"epsilon": 1.0, "delta": 1e-5, "sparsity": 3, "random_state": 0}


@pytest.mark.parametrize(
    ("dtype", "value"), [(bool, True), (np.uint8, 16), (np.int64, 2**32), (np.float32, 1e30)]
)
def test_rows_of_any_kind_of_number_are_shortened(dtype, value):
    some, none = np.zeros((64, 100), dtype), np.zeros((64, 100), dtype)
    some[0] = value
    made = SparseERM(rounds=1, **CENTRAL)
    plan = made.plan(some.shape)

    def outputs(x):
        for data in ((x, SIGNS), Chunks(lambda: [(x, SIGNS)], x.shape)):
            ledger = Ledger(data, plan, rng=0)
            made.run(ledger)
            yield ledger.transcript[0].output

    for kind in (np.asarray, sparse.csr_array):
        both = [list(outputs(kind(x))) for x in (some, none)]
        moved = [np.linalg.norm(one - other) for one in both[0] for other in both[1]]
        assert 0.2 * plan.part.sensitivity < max(moved) <= plan.part.sensitivity * (1 + 1e-9)


def test_labels_are_within_their_bound_behind_any_gate():
    x = np.random.default_rng(0).normal(size=(64, 10))
    made = SparseERM(rounds=1, **CENTRAL)
    plan, far = made.plan(x.shape), np.where(np.arange(64) == 0, 1e4, SIGNS)
    outputs = []
    for y in (SIGNS, far):
        ledger = Ledger((x, y), plan, rng=0)
        made.run(ledger)
        outputs.append(ledger.transcript[0].output)
    assert np.linalg.norm(outputs[0] - outputs[1]) <= plan.part.sensitivity * (1 + 1e-9)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_one_huge_row_decides_nothing_about_success(loss, kind):
    x = np.random.default_rng(0).normal(size=(64, 5))
    x[3] = [1.7e308, -1.7e308, 1.7e308, 0.0, -1.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = SparseERM(rounds=6, loss=loss, **CENTRAL)
        ledger = Ledger((kind(x), SIGNS), made.plan(x.shape), rng=0)
        assert np.isfinite(made.run(ledger)).all()
        ball = GaussianFrankWolfe("squared", L2Ball(1e10), 1.0, 1e-5, rounds=4, random_state=0)
        assert np.isfinite(ball.run(Ledger((kind(x), SIGNS), ball.plan(x.shape), rng=0))).all()


def test_pieces_that_come_in_another_order_move_no_gradient_further(monkeypatch):
    monkeypatch.setattr(chunks, "HELD_BYTES", 0)  # they are read in every round
    x = np.full((64, 10), 1e-6)
    x[:4] = 100.0
    count = iter(range(100))

    def shuffled():
        order = np.random.default_rng(next(count)).permutation(64)
        yield x[order], SIGNS[order]

    made = SparseERM(rounds=5, classes=[-1.0, 1.0], **CENTRAL).fit(Chunks(shuffled, x.shape))
    for entry in made.transcript_:  # the mean gradient is at most 1, noise as declared
        assert np.linalg.norm(entry.output) < 1 + 12 * entry.mechanism.scale * math.sqrt(10)


def test_errors_and_warnings_show_no_labels():
    x = np.ones((64, 3))
    open_fit = SparseERM(epsilon=math.inf, delta=1e-5, sparsity=1, rounds=1, non_private=True)
    for bad in (SIGNS * (1.234 + 2j), np.array([1.5, "a"] * 32, dtype=object)):
        with pytest.raises((ParameterError, TypeError)) as caught:
            open_fit.fit(x, bad)
        assert "1.234" not in str(caught.value)
    with pytest.raises(ParameterError) as caught:
        SparseERM(rounds=1, classes=[-1.0, 1.0], **CENTRAL).fit(np.array(3.14159), SIGNS)
    assert "3.14" not in str(caught.value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = LabelPrivateClassifier(1.0, classes=range(100), random_state=0)
        made.fit(np.random.default_rng(0).normal(size=(64, 3)), np.arange(64))


@pytest.mark.filterwarnings("ignore::algorithms.base.non_private.NotPrivateWarning")
def test_without_privacy_a_batch_rate_changes_nothing():
    x = np.random.default_rng(0).uniform(-0.5, 0.5, (100, 3))
    settings = {"epsilon": math.inf, "delta": 1e-6, "sparsity": 2, "non_private": True}
    both = [SparseERM(rate=rate, **settings).fit(x, x[:, 0] > 0) for rate in (None, 0.5)]
    assert both[0].coef_.tobytes() == both[1].coef_.tobytes()


def test_the_warning_of_labels_of_another_type_points_to_the_call():
    made = SparseERM(epsilon=1.0, delta=1e-5, sparsity=1, rounds=2, classes=[0, 1], random_state=0)
    with pytest.warns(UserWarning, match="labels are of type float64") as seen:
        made.fit(X[:50], Y[:50])
    assert Path(seen[0].filename).name == "test_sparse_erm.py"


@pytest.mark.parametrize(("rate", "later"), [(None, 0.1), (0.1, None)])
def test_a_rate_that_changes_after_the_fit_does_not_change_its_summary(rate, later):
    made = SparseERM(epsilon=2.0, delta=1e-5, sparsity=2, rounds=3, rate=rate, classes=[-1.0, 1.0])
    said = made.fit(X, Y).summary()
    assert made.set_params(rate=later).summary() == said


def test_a_run_divides_by_the_rate_of_the_plan_of_its_ledger():
    made = SparseERM(
        epsilon=2.0, delta=1e-5, sparsity=2, rounds=3, rate=0.5, classes=[-1.0, 1.0], random_state=0
    )
    fitted = made.fit(X, Y).coef_
    ledger = made.open_ledger((X, Y), made.plan(X.shape), rng=0)
    again = made.set_params(rate=0.01).run(ledger)
    assert again[:-1] == pytest.approx(fitted, abs=1e-12)
