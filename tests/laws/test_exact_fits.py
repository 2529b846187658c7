"""Fits without privacy are the optima of their objectives, and epsilon 50 comes near them.

Tolerances of epsilon 50 are for 2,000 records and five features.  Noise alone costs about p / (n
mu)^2, below 1e-6 here; what is left is the bias of clipped gradients and rounds that end.  With the
map of `PrivateLogisticRegression` and `PrivateLinearRegression` that is below .005 of a loss on
every design.  Without a map descent has not arrived where columns are nearly constant or of very
different sizes, and such designs are left out of its tolerance: scale columns by public bounds.
"""

import inspect
import math

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor

import algorithms
from algorithms import (
    FrankWolfe,
    GaussianFrankWolfe,
    LabelIHT,
    LabelLasso,
    LabelPrivateClassifier,
    LabelSGD,
    LocalIHT,
    PrivateGeneralizedLinearModel,
    PrivateLasso,
    PrivateLinearRegression,
    PrivateLogisticLasso,
    PrivateLogisticRegression,
    SparseERM,
)
from algorithms.base.estimators import PrivateEstimator
from algorithms.base.noisy_gradient_rounds import mu_of_budget
from algorithms.base.signal import NoSignalWarning
from algorithms.frank_wolfe.convex_sets import L2Ball
from algorithms.frank_wolfe.polytopes import L1Ball
from tests.laws.exact_fits import (
    CLASSES,
    FEATURES,
    INFINITE,
    LARGE,
    MAPPED_ONLY,
    NAMES,
    RECORDS,
    best_of_supports,
    calibrated,
    coefficient_violation,
    design,
    lasso_in_a_ball,
    least_squares,
    logistic,
    logistic_in_a_ball,
    nearness_violation,
    optimum_violation,
    quiet_fit,
    scores_of,
    shortened,
    sklearn_logistic,
    squared,
)
from tests.mutants import exact_fits as mutants

EVERY_DESIGN = pytest.mark.parametrize("name", NAMES)
# descent without a map takes a second on a design: two of them stand for the others
QUICK = {"imbalanced", "one-hot"}
WITHOUT_A_MAP = pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
     for name in NAMES if name not in MAPPED_ONLY],
)  # fmt: skip
ROW_BOUND = math.sqrt(FEATURES)
ERM = {"sparsity": FEATURES, "row_bound": ROW_BOUND}
FITS = {FrankWolfe, GaussianFrankWolfe, LabelIHT, LabelLasso, LabelPrivateClassifier, LabelSGD,
        LocalIHT, PrivateGeneralizedLinearModel, PrivateLasso, PrivateLinearRegression,
        PrivateLogisticLasso, PrivateLogisticRegression, SparseERM}  # fmt: skip


def test_every_estimator_that_fits_without_privacy_is_held_to_its_objective():
    public = {getattr(algorithms, name) for name in algorithms.__all__}
    known = {one for one in public if isinstance(one, type) and issubclass(one, PrivateEstimator)
             and "non_private" in inspect.signature(one).parameters}  # fmt: skip
    statistics = {one for one in known if not hasattr(one, "predict") and one not in FITS}
    assert known - statistics == FITS
    assert {one.__module__.split(".")[1] for one in statistics} <= {"statistics"}


@EVERY_DESIGN
def test_logistic_regression_is_scikit_learns(name):
    X, labels, _ = design(name)
    reference = sklearn_logistic(X, labels)
    made = PrivateLogisticRegression(classes=CLASSES, **INFINITE)
    assert optimum_violation(made, X, labels, reference, logistic) == ""
    assert calibrated(reference[0], labels) == pytest.approx(logistic(reference[0], labels))
    if name != "one-hot":  # whose coefficients are not unique
        assert coefficient_violation(made, reference) == ""
    near = PrivateLogisticRegression(classes=CLASSES, **LARGE)
    best = logistic(reference[0], labels)
    assert nearness_violation(near, X, labels, best, logistic, 0.005) == ""


@EVERY_DESIGN
def test_poisson_regression_is_scikit_learns(name):
    X, _, targets = design(name)
    counts = np.random.default_rng(1).poisson(np.exp(2 * targets)).astype(float)

    def deviance(scores, y):
        return float(np.mean(np.exp(scores) - y * scores))

    exact = PoissonRegressor(alpha=0, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
    best = np.log(exact.fit(X, counts).predict(X))
    greatest = {"y_bound": float(counts.max())}
    made = PrivateGeneralizedLinearModel(**greatest, **INFINITE)
    assert np.log(scores_of(quiet_fit(made, X, counts), X)) == pytest.approx(best, abs=1e-4)
    near = quiet_fit(PrivateGeneralizedLinearModel(**greatest, **LARGE), X, counts)
    found = np.log(scores_of(near, X))
    assert deviance(found, counts) <= deviance(best, counts) + 0.005


@EVERY_DESIGN
def test_robust_regressions_come_near_their_optimum(name):
    X, _, targets = design(name)
    for settings in ({"loss": "huber"}, {"loss": "quantile", "quantile": 0.8}):
        exact = PrivateGeneralizedLinearModel(**settings, **INFINITE)
        best = scores_of(quiet_fit(exact, X, targets), X)
        near = PrivateGeneralizedLinearModel(**settings, **LARGE)
        found = scores_of(quiet_fit(near, X, targets), X)
        assert np.mean((found - best) ** 2) < 0.02 * targets.var()


@EVERY_DESIGN
def test_linear_regression_is_least_squares(name):
    X, _, targets = design(name)
    reference = least_squares(X, targets)
    made = PrivateLinearRegression(**INFINITE)
    assert optimum_violation(made, X, targets, reference, squared) == ""
    if name != "one-hot":
        assert coefficient_violation(made, reference) == ""
    best = squared(reference[0], targets)
    near = PrivateLinearRegression(**LARGE)
    assert nearness_violation(near, X, targets, best, squared, 0.01 * targets.var()) == ""


@EVERY_DESIGN
def test_lassos_are_optima_in_their_balls(name):
    X, labels, targets = design(name)
    for radius in (0.3, 4.0):
        reference = lasso_in_a_ball(X, targets, radius)
        made = PrivateLasso(radius=radius, **INFINITE)
        assert optimum_violation(made, X, targets, reference, squared) == ""
    # a gap of 1e-10 of the loss bounds neither scores nor coefficients so closely
    reference = logistic_in_a_ball(X, labels, 3.0)
    made = PrivateLogisticLasso(radius=3.0, **INFINITE)
    assert optimum_violation(made, X, labels, reference, logistic, near=0.02) == ""


@WITHOUT_A_MAP
def test_lassos_of_large_epsilon_are_near_their_optima(name):
    X, labels, targets = design(name)
    for kind, y, loss, settings in (
        (PrivateLasso, targets, squared, {}),
        (PrivateLogisticLasso, labels, logistic, {"classes": CLASSES}),
    ):
        best = loss(scores_of(quiet_fit(kind(**settings, **INFINITE), X, y), X), y)
        tolerance = 0.01 * targets.var() if loss is squared else 0.02
        assert nearness_violation(kind(**settings, **LARGE), X, y, best, loss, tolerance) == ""


@EVERY_DESIGN
def test_sparse_erm_is_the_optimum_on_shortened_rows(name):
    X, labels, targets = design(name)
    rows = shortened(X, ROW_BOUND)
    made = SparseERM(**ERM, **INFINITE)
    assert optimum_violation(made, X, labels, sklearn_logistic(rows, labels), logistic) == ""
    made = SparseERM(loss="squared", **ERM, **INFINITE)
    assert optimum_violation(made, X, targets, least_squares(rows, targets), squared) == ""


@WITHOUT_A_MAP
def test_sparse_erm_of_large_epsilon_is_near_its_optimum(name):
    X, labels, targets = design(name)
    rows = shortened(X, ROW_BOUND)
    best = squared(least_squares(rows, targets)[0], targets)
    near = SparseERM(loss="squared", **ERM, **LARGE)
    assert nearness_violation(near, X, targets, best, squared, 0.02 * targets.var()) == ""
    # slopes of its loss are clipped to a half: another loss, of nearly the same optimum
    best = logistic(sklearn_logistic(rows, labels)[0], labels)
    near = SparseERM(classes=CLASSES, **ERM, **LARGE)
    assert nearness_violation(near, X, labels, best, logistic, 0.03) == ""


@pytest.mark.parametrize("name", ["coins", "long rows", "imbalanced"])
def test_thresholding_finds_most_of_what_the_best_columns_explain(name):
    X, labels, targets = design(name)
    rows = shortened(X, ROW_BOUND)
    for loss, y, optimum, kind in (
        (logistic, labels, sklearn_logistic, "logistic"),
        (squared, targets, least_squares, "squared"),
    ):
        best = best_of_supports(rows, y, 2, optimum, loss)
        constant = loss(np.full(RECORDS, optimum(np.zeros((RECORDS, 1)), y)[0][0]), y)
        made = SparseERM(loss=kind, sparsity=2, row_bound=ROW_BOUND, **INFINITE)
        # hard thresholding is a heuristic: nine tenths of the gain where columns have one size
        assert nearness_violation(made, X, y, best, loss, 0.1 * (constant - best)) == ""


@pytest.mark.parametrize("name", ["coins", "collinear", "heavy tails"])
def test_frank_wolfe_keeps_its_bound(name):
    X, labels, targets = design(name)
    centred = targets - targets.mean()
    for made, y in (
        (FrankWolfe("squared", L1Ball(1.0), rounds=100, **INFINITE), centred),
        (GaussianFrankWolfe("squared", L2Ball(1.0), rounds=100, row_bound=ROW_BOUND, **INFINITE),
         centred),
    ):  # fmt: skip
        quiet_fit(made, X, y)
        gap = squared(np.zeros(RECORDS), y)
        free = np.linalg.lstsq(X, y, rcond=None)[0]
        assert np.abs(free).sum() <= 1 or name != "coins"
        # no point of the ball is better than the free optimum: the bound holds of that where it
        # lies inside
        if np.abs(free).sum() <= 1:
            excess = squared(X @ made.coef_, y) - squared(X @ free, y)
            assert -1e-12 <= excess <= made.utility_bound(X.shape, gap)
    signs = 2.0 * labels - 1
    walk = FrankWolfe("logistic", L1Ball(1.0), rounds=100, **INFINITE)
    quiet_fit(walk, X, signs)
    exact = PrivateLogisticLasso(radius=1.0, fit_intercept=False, **INFINITE)
    best = logistic(scores_of(quiet_fit(exact, X, labels), X), labels)
    excess = logistic(X @ walk.coef_, labels) - best
    assert -1e-9 <= excess <= walk.utility_bound(X.shape, math.log(2))


@pytest.mark.parametrize("name", ["coins", "long rows", "spread"])
def test_label_regressions_are_least_squares_on_the_columns_they_keep(name):
    X, _, targets = design(name)
    y = targets - targets.mean()
    rows = X / np.sqrt(np.mean(X**2, axis=0))
    free = LinearRegression(fit_intercept=False).fit(rows, y).predict(rows)
    tolerance = 0.02 * y.var()  # columns that noise alone would explain are left out
    both = {"y_bound": 2.0, **INFINITE}
    for made in (
        LabelIHT(sparsity=FEATURES, **both), LabelLasso(noise_bound=0.1, **both),
    ):  # fmt: skip
        assert nearness_violation(made, rows, y, squared(free, y), squared, tolerance) == ""
    if name == "coins":  # entries are clipped to [-1, 1] there
        local = LocalIHT(sparsity=FEATURES, noise_bound=0.3, epsilon=np.inf, non_private=True)
        # each user answers one question, so that sampling is left: .15 of the variance
        assert nearness_violation(local, rows, y, squared(free, y), squared, 0.15 * y.var()) == ""


@EVERY_DESIGN
@pytest.mark.filterwarnings("ignore:.*NOT private")
def test_label_classifier_is_scikit_learns_on_prepared_rows(name):
    X, labels, _ = design(name)
    given = {"epsilon": np.inf, "non_private": True, "random_state": 0}
    made = quiet_fit(LabelPrivateClassifier(classes=CLASSES, ridge=0.5, **given), X, labels)
    rows = made.prepared(X)
    # two rows of coefficients, w / 2 and -w / 2, have a quarter of the penalty of w
    peer = LogisticRegression(C=2 / 0.5, fit_intercept=False, tol=1e-10, max_iter=50_000)
    wanted = peer.fit(rows, labels).decision_function(rows)
    assert scores_of(made, X) == pytest.approx(wanted, abs=1e-4 * np.abs(wanted).max())
    assert (made.coef_.shape, made.intercept_.shape) == ((1, FEATURES), (1,))
    three = np.digitize(X[:, 0], np.quantile(X[:, 0], [0.3, 0.7]))
    if len(np.unique(three)) == 3:
        made = quiet_fit(LabelPrivateClassifier(classes=[0, 1, 2], ridge=5.0, **given), X, three)
        rows = made.prepared(X)
        peer = LogisticRegression(C=1 / 5.0, fit_intercept=False, tol=1e-10, max_iter=50_000)
        wanted = peer.fit(rows, three).predict_proba(rows)
        assert made.coef_.shape == (3, FEATURES)
        whole = X @ made.coef_.T + made.intercept_
        assert (made.classes_[whole.argmax(axis=1)] == made.predict(X)).all()
        assert np.abs(made.predict_proba(X) - wanted).max() < 1e-4


def test_one_pass_of_labels_keeps_its_bound():
    X, labels, _ = design("coins")
    sgd = LabelSGD(epsilon=np.inf, non_private=True, k=2, diameter=4.0, batch=10,
                   random_state=0)  # fmt: skip
    quiet_fit(sgd, X, labels)
    free = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10).fit(X, labels)
    assert np.linalg.norm(free.coef_) / math.sqrt(2) < 2  # inside of the ball
    excess = logistic(X @ (sgd.coef_[1] - sgd.coef_[0]), labels) - logistic(
        free.decision_function(X), labels
    )
    # the expected excess; one run of 200 steps varies by less than half of it
    assert -1e-9 <= excess <= 1.5 * sgd.utility_bound(RECORDS, sgd.lipschitz_)


@pytest.mark.parametrize("mutant", mutants.AT_THE_OPTIMUM, ids=lambda one: one.__name__)
def test_the_law_of_optima_catches(mutant):
    name, y, reference, loss = mutants.AT_THE_OPTIMUM[mutant]
    given = design(name)
    targets = getattr(given, y)
    found = optimum_violation(mutant(**mutants.SETTINGS.get(mutant, {}), **INFINITE), given.X,
                              targets, reference(given.X, targets), loss)  # fmt: skip
    assert found


@pytest.mark.parametrize("mutant", mutants.NEAR_IT, ids=lambda one: one.__name__)
def test_the_law_of_large_epsilon_catches(mutant):
    name, tolerance = mutants.NEAR_IT[mutant]
    X, labels, _ = design(name)
    best = logistic(sklearn_logistic(X, labels)[0], labels)
    made = mutant(**mutants.SETTINGS.get(mutant, {}), **LARGE)
    assert nearness_violation(made, X, labels, best, logistic, tolerance)


KINDS = {
    PrivateLogisticRegression: {"classes": CLASSES},
    PrivateLinearRegression: {},
    PrivateLasso: {"method": "descent"},
    PrivateLogisticLasso: {"method": "descent", "classes": CLASSES},
    SparseERM: {"classes": CLASSES, "sparsity": 1, "row_bound": math.sqrt(20)},
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda one: one.__name__)
def test_a_plan_warns_where_not_even_one_feature_that_decides_is_found(kind):
    features, budget = 20, {"epsilon": 1.0, "delta": 1e-6}
    # a regression makes a constant alone where slopes are expected to be worse
    decides = kind in {PrivateLinearRegression, PrivateLasso}
    signals = (3, 10 if decides else 5)
    records, more_records = (int(signal * math.sqrt(features + 1) / mu_of_budget(1.0, 1e-6))
                             for signal in signals)  # fmt: skip
    made = kind(**KINDS[kind], **budget)
    with pytest.warns(NoSignalWarning, match=f"{kind.__name__}: noise exceeds any signal"):
        plan = made.plan((records, features))
    assert made.hidden_by_noise(plan, features)
    assert not made.hidden_by_noise(made.plan((more_records, features)), features)
    gained = []
    for seed in range(9):
        rng = np.random.default_rng(seed)
        X, new = rng.choice([-1.0, 1.0], (2, 3000, features))
        y, wanted = ((0.9 * one[:, 0] if decides else (one[:, 0] > 0) * 1) for one in (X, new))
        made = kind(**KINDS[kind], **budget, random_state=seed)
        made.fit(X[:records], y[:records])
        assert "noise exceeds any signal" in made.summary()
        gained.append(made.score(new, wanted))
    # an accuracy of a half, or an R2 of 0, is that of a constant
    assert np.median(gained) < (0.25 if decides else 0.75)


def test_selections_warn_too():
    small = PrivateLasso(1.0, 0.0)
    with pytest.warns(NoSignalWarning):
        assert small.hidden_by_noise(small.plan((60, 4000)), 4000)
    assert not small.hidden_by_noise(small.plan((60_000, 40)), 40)
