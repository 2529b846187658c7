"""Generalised linear models: plans, sensitivity, accuracy, weights, and refusals."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import HuberRegressor, PoissonRegressor, QuantileRegressor

from accountant import Budget, Chunks, ParameterError
from algorithms import PrivateGeneralizedLinearModel, PrivateLinearRegression
from algorithms.base.clipped_gradient_descent import BlockClippedGradient, FeatureMap
from algorithms.base.glm_losses import LOGISTIC, huber_loss, poisson_loss
from algorithms.base.non_private import NotPrivateWarning
from algorithms.linear_models.regression_rounds import REGRESSION_LOSSES, SHARES, Progress
from audits import replay
from tests.algorithms.scikit_learn_checks import passes_scikit_learn_checks

RNG = np.random.default_rng(6)
X = RNG.uniform(-1, 1, (6000, 4))
TRUTH = np.array([0.4, -0.3, 0.0, 0.2])
SCORES = X @ TRUTH
COUNTS = RNG.poisson(np.exp(SCORES + 0.3)).astype(float)
NORMAL = 0.5 * SCORES + 0.1 + 0.1 * RNG.normal(size=6000)
DIRTY = np.where(RNG.random(6000) < 0.1, 1.0, NORMAL)  # a tenth at the bound
LOSSES = ["poisson", "huber", "quantile"]
TARGETS = {"poisson": COUNTS, "huber": DIRTY, "quantile": NORMAL}
SETTINGS = {
    "poisson": {"loss": "poisson", "y_bound": 20.0},
    "huber": {"loss": "huber"},
    "quantile": {"loss": "quantile", "quantile": 0.8},
}
CLAIM = {"epsilon": 2.0, "delta": 1e-6, "random_state": 0}
FREE = {"epsilon": math.inf, "delta": 1e-6, "non_private": True}


def model_of(loss, **settings):
    """A model of the loss; its settings replace the usual ones."""
    return PrivateGeneralizedLinearModel(**SETTINGS[loss] | settings)


@passes_scikit_learn_checks(
    *[model_of(loss, rounds=3, **CLAIM) for loss in LOSSES],
    model_of("poisson", weight_bound=5.0, **FREE),
)
@pytest.mark.filterwarnings("ignore::algorithms.base.non_private.NotPrivateWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "loss", [LOGISTIC, poisson_loss(3.0), huber_loss(0.2), huber_loss(0.2, 0.9)],
    ids=["logistic", "poisson", "huber", "quantile"],
)  # fmt: skip
def test_slopes_are_derivatives_that_rise_no_faster_than_their_bound(loss):
    rng = np.random.default_rng(0)
    inner, y = rng.uniform(-3, 3, 500), rng.choice([-1.0, 1.0], 500)
    h = 1e-6
    slope = (loss.value(inner + h, y) - loss.value(inner - h, y)) / (2 * h)
    assert loss.slope(inner, y) == pytest.approx(slope, abs=1e-6)
    bend = (loss.slope(inner + h, y) - loss.slope(inner - h, y)) / (2 * h)
    assert (bend >= 0).all()
    assert (bend <= loss.smoothness + 1e-8).all()


def test_a_tilted_huber_loss_is_the_pinball_loss_outside_of_its_threshold():
    residual = np.array([-0.7, -0.3, 0.3, 0.7])  # u - y
    pinball = np.where(residual < 0, 0.9 * -residual, 0.1 * residual)
    found = huber_loss(0.2, 0.9).value(residual, np.zeros(4))
    assert found == pytest.approx(2 * pinball - 0.1)  # less half of the threshold


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (8.0, 1e-3)])
def test_plans_meet_their_budgets_and_are_those_of_linear_regression(epsilon, delta, relation):
    claim = {"epsilon": epsilon, "delta": delta, "relation": relation}
    plans = [PrivateGeneralizedLinearModel(loss=one, **claim).plan((9000, 6)) for one in LOSSES]
    assert plans[0] == plans[1] == plans[2]
    assert plans[0] == PrivateLinearRegression(method="descent", **claim).plan((9000, 6))
    assert 0.999 * epsilon <= Budget(epsilon, delta).check(plans[0]) <= epsilon


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("loss", LOSSES)
def test_no_record_moves_a_round_by_more_than_declared(loss, relation, kind):
    rng, greatest = np.random.default_rng(1), 0.0
    features = FeatureMap(1.0, 1.0, np.array([0.4, -0.9, 0.1]), np.diag([3.0, 0.5, 30.0]))
    theta = np.array([[2.0], [-1.0], [0.5], [0.3]])
    x = rng.choice([-1.0, 1.0], (100, 3)) * 10 ** rng.uniform(-3, 3, (100, 1))
    y = rng.choice([-1.0, 1.0], 100) * 10 ** rng.uniform(-3, 9, 100)
    weights = rng.choice([-5.0, 0.5, 3.0, 1e9], 100)
    for level in (1e-4, 0.05, 1.0):
        at = REGRESSION_LOSSES[loss](2.0, 0.8).at(Progress(0.5, level, 0.5, 0.1, 0.2))
        work = BlockClippedGradient(at.residuals, at.norm, features, 3.0, theta,
                                    SHARES.unclipped_weight, within=at.within)  # fmt: skip
        sums = np.array([
            work((kind(x[i : i + 1]), y[i : i + 1], weights[i : i + 1])) for i in range(100)
        ])  # fmt: skip
        if relation == "add-remove":
            greatest = max(greatest, np.linalg.norm(sums, axis=1).max())
        else:
            greatest = max(greatest, *(np.linalg.norm(sums - one, axis=1).max() for one in sums))
    made = PrivateGeneralizedLinearModel(epsilon=1.0, delta=1e-6, relation=relation)
    declared = 4000 * made.plan((4000, 3)).parts[-1].part.sensitivity
    assert 0.9 * declared < greatest <= declared


@pytest.mark.parametrize("loss", LOSSES)
def test_it_learns_replays_and_reads_rows_in_any_form(loss):
    y, made = TARGETS[loss], model_of(loss, **CLAIM)
    coefficients = made.fit(X, y).coef_
    scale = 1.0 if loss == "poisson" else 0.5
    assert coefficients == pytest.approx(scale * TRUTH, abs=0.05)
    assert "clipped to" in made.summary()
    assert made.fit(sparse.csr_array(X), y).coef_ == pytest.approx(coefficients, abs=1e-8)

    def pieces():
        for part in np.array_split(np.arange(6000), 3):
            yield X[part], y[part]

    with ThreadPoolExecutor(2) as pool:
        made.fit(Chunks(pieces, X.shape), executor=pool)
    assert np.array_equal(made.coef_, coefficients)
    other = X[:300].copy(), y[:300].copy()
    other[0][0], other[1][0] = 9.0, -9.0
    found = replay(model_of(loss, **CLAIM), (X[:300], y[:300]), other, rng=3)
    assert found.leak_free
    assert found.on_plan
    assert found.deterministic


def test_predictions_are_near_those_without_privacy():
    made = model_of("poisson", **CLAIM).fit(X, COUNTS)
    exact = PoissonRegressor(alpha=0).fit(X, COUNTS)
    assert made.score(X, COUNTS) > exact.score(X, COUNTS) - 0.005
    assert made.predict(X).min() > 0
    made = model_of("quantile", **CLAIM).fit(X, NORMAL)
    exact = QuantileRegressor(quantile=0.8, alpha=0).fit(X[:1500], NORMAL[:1500])
    assert made.score(X, NORMAL) > exact.score(X, NORMAL) - 0.01
    assert np.mean(made.predict(X) >= NORMAL) == pytest.approx(0.8, abs=0.03)
    made = model_of("huber", **CLAIM).fit(X, DIRTY)
    least_squares = PrivateLinearRegression(**CLAIM | {"epsilon": 50.0}).fit(X, DIRTY)
    truth = 0.5 * SCORES + 0.1
    errors = [np.square(one.predict(X) - truth).mean() for one in (made, least_squares)]
    assert errors[0] < errors[1] / 4  # a tenth of the targets are wrong
    assert made.score(X, NORMAL) > 0.5


@pytest.mark.filterwarnings("ignore::algorithms.base.non_private.NotPrivateWarning")
def test_without_privacy_they_are_scikit_learns():
    exact = PoissonRegressor(alpha=0, tol=1e-10, max_iter=1000).fit(X, COUNTS)
    made = model_of("poisson", **FREE).fit(X, COUNTS)
    assert made.coef_ == pytest.approx(exact.coef_, abs=1e-4)
    assert made.intercept_ == pytest.approx(exact.intercept_, abs=1e-4)
    made = model_of("quantile", **FREE).fit(X, NORMAL)
    exact = QuantileRegressor(quantile=0.8, alpha=0).fit(X, NORMAL)
    assert made.predict(X) == pytest.approx(exact.predict(X), abs=0.01)
    made = model_of("huber", **FREE).fit(X, NORMAL)
    # a share of .8 within is a threshold of 1.28 deviations
    exact = HuberRegressor(epsilon=1.28, alpha=0).fit(X, NORMAL)
    assert made.coef_ == pytest.approx(exact.coef_, abs=1e-3)
    with pytest.warns(NotPrivateWarning):
        made.predict(X)


def test_weights_are_shares_of_their_bound():
    made = model_of("poisson", weight_bound=2.0, **CLAIM)
    plain = made.fit(X, COUNTS).coef_
    assert np.array_equal(made.fit(X, COUNTS, sample_weight=np.full(6000, 2.0)).coef_, plain)
    assert np.array_equal(made.fit(X, COUNTS, sample_weight=np.full(6000, 9.0)).coef_, plain)
    rare = np.where(np.arange(6000) < 3000, 2.0, 0.0)
    turned = np.where(rare > 0, COUNTS, 0.0)
    weighted = made.fit(X, turned, sample_weight=rare)
    assert weighted.coef_ == pytest.approx(TRUTH, abs=0.15)
    assert weighted.intercept_ == pytest.approx(0.3, abs=0.1)
    assert weighted.plan_ == made.plan((6000, 4))
    gap = rare.astype(object)
    gap[0] = None
    assert np.array_equal(
        made.fit(X, turned, sample_weight=gap).coef_,
        made.fit(X, turned, sample_weight=np.where(np.arange(6000) == 0, 0.0, rare)).coef_,
    )
    for wrong in (np.ones(5), np.ones((6000, 2))):
        with pytest.raises(ParameterError, match="sample_weight must be numbers, one for each"):
            made.fit(X, COUNTS, sample_weight=wrong)
    chunks = Chunks(lambda: iter([(X, COUNTS)]), X.shape)
    assert np.array_equal(made.fit(chunks, sample_weight=rare).coef_,
                          made.fit(X, COUNTS, sample_weight=rare).coef_)  # fmt: skip


@pytest.mark.parametrize("method", ["descent", "statistics"])
def test_weights_of_linear_regression_leave_out_records(method):
    made = PrivateLinearRegression(method=method, **CLAIM | {"epsilon": 8.0})
    half = (np.arange(6000) < 3000) * 1.0
    turned = np.where(half > 0, NORMAL, -NORMAL)
    assert made.fit(X, turned, sample_weight=half).coef_ == pytest.approx(0.5 * TRUTH, abs=0.05)
    with pytest.raises(ParameterError, match="records of equal weight"):
        made.interval()
    made.set_params(intervals=True)
    with pytest.raises(ParameterError, match="None where intervals are wanted"):
        made.fit(X, turned, sample_weight=half)


WRONG = [
    ({"loss": "squared"}, "loss must be"),
    ({"quantile": 1.0}, "quantile must be"),
    ({"quantile": math.nan}, "quantile must be"),
    ({"y_bound": 0.0}, "y_bound must be"),
    ({"x_bound": True}, "x_bound must be"),
    ({"weight_bound": math.inf}, "weight_bound must be"),
    ({"rounds": 0}, "rounds must be"),
    ({"epsilon": math.inf}, "epsilon must be"),
]


@pytest.mark.parametrize(("settings", "message"), WRONG)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(ParameterError, match=message):
        PrivateGeneralizedLinearModel(**CLAIM | settings).fit(X, NORMAL)


def held_out_scores(loss, records, features, epsilon, seed):
    """The explained shares of new records: of a private fit, of scikit-learn's."""
    rng = np.random.default_rng((seed, records, features))
    x = rng.uniform(-1, 1, (records + 5000, features))
    truth = rng.normal(size=features)
    scores = x @ (truth * math.sqrt(3) / np.linalg.norm(truth))  # of deviation 1
    settings = SETTINGS[loss]
    if loss == "poisson":
        y = np.minimum(rng.poisson(np.exp(0.5 * scores + 0.5)), 20.0)
        exact = PoissonRegressor(alpha=0, max_iter=1000)
    elif loss == "huber":
        y = 0.2 * scores + 0.1 * rng.standard_t(2, records + 5000)
        y = np.where(rng.random(len(y)) < 0.05, 1.0, y)
        exact = HuberRegressor(epsilon=1.28, alpha=0, max_iter=1000)
    else:
        y = 0.2 * scores + 0.1 * rng.gumbel(size=records + 5000)
        exact = QuantileRegressor(quantile=0.8, alpha=0)
    made = PrivateGeneralizedLinearModel(
        **settings, epsilon=epsilon, delta=1e-6, random_state=seed
    ).fit(x[:records], y[:records])
    exact.fit(x[: min(records, 5000)], y[: min(records, 5000)])
    new, wanted = x[records:], y[records:]
    if loss == "huber":  # the centre, which the contaminated targets do not show
        truth = 0.2 * scores[records:]
        found = [
            1 - np.mean((one.predict(new) - truth) ** 2) / truth.var() for one in (made, exact)
        ]
        return np.array(found)
    made_score = made.score(new, wanted)
    made.coef_, made.intercept_ = exact.coef_, exact.intercept_
    return np.array([made_score, made.score(new, wanted)])


# A constant has the score 0.  Means over five fits.
@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("records", "features"), [(2000, 5), (20_000, 5), (20_000, 20)])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_scores_beside_scikit_learn(loss, records, features, epsilon):
    scores = np.mean(
        [held_out_scores(loss, records, features, epsilon, seed) for seed in range(5)], axis=0
    )
    print(f"\n{loss:9}{records:7,}{features:4}{epsilon:5g}{scores[0]:9.3f}{scores[1]:9.3f}")
    if records >= 1000 * features and epsilon >= 1:
        assert scores[0] > scores[1] - 0.02
