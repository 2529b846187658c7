"""Sparse regression under local privacy: plans, bounds that hold, replay, and its error."""

import itertools
import math
import re
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from accountant import Budget, Ledger, ParameterError
from algorithms import LabelIHT, LabelLasso, LocalIHT, SparseERM
from algorithms.base.hard_thresholding import (
    checked_step,
    default_step,
    iht_step,
    keep_largest,
    project_to_ball,
    step_window,
)
from algorithms.sparse_regression.links import LINEAR_PLUS_COSINE, LINKS, Link
from algorithms.sparse_regression.local_iht import UserGradients
from audits import privacy_losses, replay
from tests.algorithms.scikit_learn_checks import passes_scikit_learn_checks

LOCAL = LocalIHT(epsilon=2.0, sparsity=1, noise_bound=0.1, rounds=2, random_state=0)
LABEL = LabelIHT(epsilon=1.0, delta=1e-3, sparsity=1, y_bound=2.0, random_state=0)
LASSO = LabelLasso(epsilon=1.0, delta=1e-3, y_bound=2.0, noise_bound=0.1, random_state=0)
NARROWING = LocalIHT(epsilon=2.0, sparsity=1, noise_bound=0.1, random_state=0)


def model(users, features, sparsity, seed=0, noise=0.05):
    rng = np.random.default_rng(seed)
    theta = np.zeros(features)
    theta[:sparsity] = 1 / math.sqrt(sparsity)
    x = rng.choice([-1.0, 1.0], (users, features))
    return x, x @ theta + rng.uniform(-noise, noise, users), theta


@passes_scikit_learn_checks(LOCAL, NARROWING, LABEL, LASSO)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_step_windows():
    # methods 3.1 and 3.4: 5/7 .. 9/7; f = 8x + cos x: .01458 .. .01587, Delta <= .0426
    assert step_window(0.0) == pytest.approx((5 / 7, 9 / 7))
    assert step_window(0.0, 7.0, 9.0) == pytest.approx((0.01458, 0.01587), rel=1e-3)
    least, most = step_window(0.0426, 7.0, 9.0)
    assert least == pytest.approx(most, rel=1e-3)
    assert default_step() == pytest.approx(math.sqrt(45) / 7)
    with pytest.warns(UserWarning, match="step 0.2 lies outside"):
        checked_step(0.2)


def test_a_round_contracts_without_noise():
    x, y, theta = model(5000, 60, 3, noise=0.0)
    found = np.zeros(60)
    for _ in range(30):
        found = iht_step(found, x.T @ (x @ found - y) / len(y), default_step(), 3)
    assert found == pytest.approx(theta, abs=1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_plans_meet_their_budgets_and_waste_none(epsilon):
    local = LocalIHT(epsilon=epsilon, sparsity=3, noise_bound=0.1).plan((10_000, 20))
    assert 0.99 * epsilon <= Budget(epsilon).check(local) <= epsilon
    for noise in ("gaussian", "laplace", "bounded"):
        made = LabelIHT(epsilon=epsilon, delta=1e-6, sparsity=3, y_bound=2.0, randomizer=noise)
        assert 0.99 * epsilon <= Budget(epsilon, 1e-6).check(made.plan((100, 20))) <= epsilon


def test_pure_labels_from_gaussian_noise():
    made = LabelIHT(
        epsilon=1.0, delta=1e-8, sparsity=2, y_bound=2.0, randomizer="pure", random_state=1
    )
    plan = made.plan((100, 5))
    assert Budget(1.0).check(plan) <= 1.0
    x, y, _ = model(2000, 5, 2)
    assert made.fit(x, y).coef_.shape == (5,)


def test_no_gradient_exceeds_the_norm_bound():
    # methods 3.1, 3.4; the published bound C sqrt p is exceeded by everybody at theta = 0 (E2)
    rng = np.random.default_rng(3)
    for link in ("identity", LINEAR_PLUS_COSINE):
        made = LocalIHT(epsilon=1.0, sparsity=4, true_sparsity=2, noise_bound=0.05, link=link)
        bound, greatest = made.norm_bound(12), 0.0
        if link == "identity":
            function = Link("identity", lambda u: u, np.ones_like, 1, 1)
        else:
            function = made.link
        for _ in range(200):
            x = rng.choice([-1.0, 1.0], (50, 12))
            true, theta = (
                project_to_ball(keep_largest(5 * np.sign(x[0]) * rng.random(12), kept))
                for kept in (2, 4)
            )
            inner = x @ true
            y = (inner if link == "identity" else LINEAR_PLUS_COSINE.function(inner)) + rng.uniform(
                -0.05, 0.05, 50
            )
            gradients = UserGradients(function, None, theta)((x, y))
            greatest = max(greatest, np.linalg.norm(gradients, axis=1).max())
        assert 0.3 * bound < greatest <= bound
    assert LocalIHT(epsilon=1.0, sparsity=4, noise_bound=0.05, residual_bound=0.5).norm_bound(
        16
    ) == pytest.approx(2.0)
    for true_sparsity in (1, 16):  # the least and the most
        made = LocalIHT(epsilon=1.0, sparsity=4, true_sparsity=true_sparsity, noise_bound=0.05)
        assert made.norm_bound(16) == pytest.approx(4 * (2 + true_sparsity**0.5 + 0.05))
    for true_sparsity in (0, 17):
        made = LocalIHT(epsilon=1.0, sparsity=4, true_sparsity=true_sparsity, noise_bound=0.05)
        with pytest.raises(ParameterError, match="true_sparsity"):
            made.norm_bound(16)


NEIGHBOUR_X, NEIGHBOUR_Y, _ = model(60, 4, 2)


@pytest.mark.parametrize("estimator", [LOCAL, LABEL], ids=lambda one: type(one).__name__)
def test_replay_finds_no_leak_and_losses_within_epsilon(estimator):
    x, y = NEIGHBOUR_X, NEIGHBOUR_Y
    other_y = y.copy()
    other_y[0] = 1e6 if estimator is LOCAL else -1e6
    if estimator is LOCAL:
        other_x = x.copy()
        other_x[0] = -x[0]
        data, neighbour, public, bound = (x, y), (other_x, other_y), None, 2.0
    else:
        data, neighbour, public, bound = y, other_y, x, None
    found = replay(estimator, data, neighbour, public=public, rng=1)
    assert found.leak_free
    assert found.on_plan
    assert found.deterministic
    losses = privacy_losses(estimator, data, neighbour, 300, public=public, rng=2)
    assert np.abs(losses).max() > 0
    if bound:
        assert np.abs(losses).max() <= bound + 1e-9


def test_label_errors_are_those_of_honest_noise():
    # methods 3.2: .95 / .14 / .061 at n = 2e3 / 2e4 / 2e5, five runs each, step .2, 40 rounds
    for users, expected in ((2000, 0.95), (20_000, 0.14)):
        errors = []
        for seed in range(5):
            x, y, theta = model(users, 100, 5, seed)
            made = LabelIHT(
                epsilon=1.0, delta=1e-3, sparsity=5, y_bound=math.sqrt(5) + 0.05, rounds=40,
                step=0.2, randomizer="gaussian", random_state=seed,
            )  # fmt: skip
            with pytest.warns(UserWarning, match="step"):
                errors.append(np.linalg.norm(made.fit(x, y).coef_ - theta))
        assert np.mean(errors) == pytest.approx(expected, rel=0.35)


def test_local_errors_fall_with_users_and_grow_with_features():
    def error(users, features):
        found = []
        for seed in range(4):
            x, y, theta = model(users, features, 2, seed)
            made = LocalIHT(epsilon=4.0, sparsity=2, noise_bound=0.05, rounds=3, random_state=seed)
            found.append(np.linalg.norm(made.fit(x, y).coef_ - theta))
        return np.mean(found)

    few, many, wide = error(6000, 8), error(100_000, 8), error(100_000, 64)
    assert many < 0.6 * few
    assert wide > 1.5 * many


def test_summaries_say_what_is_guaranteed_and_what_is_noise():
    x, y, _ = model(3000, 6, 2)
    noisy = (
        clone(LABEL).set_params(randomizer="gaussian", step=default_step()),
        clone(LASSO).set_params(randomizer="gaussian", refit=False),
    )
    words = [one.fit(x, y).summary() for one in (LOCAL, *noisy)]
    assert words[0].startswith("LocalIHT: (2, 0)-differential privacy: one user's own record")
    assert re.search("at least 9[0-9.]+% of each report's square is noise", words[0])
    for one in words[1:]:
        assert re.search(r"\((1|0.99999\d), 0.001\)-differential privacy: one record's label", one)
        assert re.search("noise of deviation 10[.].*: 9[0-9]% of the labels' square", one)


def test_sparse_features_give_the_same_fit():
    x, y, _ = model(500, 12, 2)
    x[np.abs(x).cumsum(axis=1) % 3 == 0] = 0
    dense, thin = (LABEL.fit(one, y).coef_ for one in (x, sparse.csr_array(x)))
    assert dense == pytest.approx(thin, abs=1e-12)


def test_lasso_takes_the_stated_penalty():
    x, y, theta = model(200_000, 50, 3)
    made = LabelLasso(
        epsilon=2.0, delta=1e-3, y_bound=1.8, noise_bound=0.05, randomizer="gaussian",
        refit=False, random_state=1,
    ).fit(x, y)  # fmt: skip
    tau = made.plan_.parts[0].scale
    assert made.penalty_ == pytest.approx(
        0.7 * math.sqrt((0.05**2 + tau**2) * 2 * math.log(50) / 2e5)
    )
    assert np.linalg.norm(made.coef_ - theta) < 0.3


@pytest.mark.parametrize("noise_bound", [0.0, 0.6])
@pytest.mark.parametrize(
    ("randomizer", "clip"),
    [*itertools.product(["gaussian", "laplace", "none"], [1.8, 0.45]), ("pure", 1.8)],
)
def test_the_penalty_is_of_the_noise_of_the_model_and_of_the_reports(randomizer, noise_bound, clip):
    x, y, _ = model(300, 6, 2)
    private = randomizer != "none"
    made = LabelLasso(
        epsilon=2.0 if private else math.inf, delta=1e-3 * private, y_bound=1.8,
        noise_bound=noise_bound, non_private=not private,
        randomizer=randomizer if private else "auto",
    )  # fmt: skip
    (mechanism,) = made.plan(x.shape).parts
    weights = np.random.default_rng(1).choice([0.0, 0.3, 1.0], 300)
    of_reports = {
        "gaussian": lambda: mechanism.scale**2, "laplace": lambda: 2 * mechanism.scale**2,
        "pure": lambda: math.inf, "none": lambda: 0.0,
    }[randomizer]() * (clip / 1.8) ** 2  # fmt: skip
    if clip == 1.8:  # the reports themselves vary by no less than their noise
        of_reports = min(of_reports, y[weights > 0].var())
    expected = 0.7 * math.sqrt(
        2 * math.log(6) * (of_reports + noise_bound**2) / weights.sum()
    )  # fmt: skip
    assert made._penalty(mechanism, (x, y, weights), clip) == pytest.approx(expected)


BAD = [
    (LocalIHT(epsilon=1.0, sparsity=9, noise_bound=0.1), "sparsity must be"),
    (LocalIHT(epsilon=1.0, sparsity=2, noise_bound=0.1, rounds=100), "rounds must be"),
    (LocalIHT(epsilon=1.0, sparsity=2, noise_bound=-1.0), "noise_bound must be"),
    (LocalIHT(epsilon=math.inf, sparsity=2, noise_bound=0.1), "epsilon must be"),
    (LocalIHT(epsilon=1.0, sparsity=2, noise_bound=0.1, link="square"), "link must be"),
    (LabelIHT(epsilon=1.0, delta=0.0, sparsity=2, y_bound=1.0, randomizer="gaussian"), "delta mu"),
    (LabelIHT(epsilon=1.0, delta=1e-6, sparsity=2, y_bound=0.0), "y_bound must be"),
    (LabelIHT(epsilon=1.0, delta=1e-6, sparsity=2, y_bound=1.0, randomizer="none"), "randomizer"),
]


@pytest.mark.parametrize(("estimator", "words"), BAD, ids=lambda one: str(one)[:40])
def test_bad_settings_are_refused_before_any_spend(estimator, words):
    x, y, _ = model(50, 4, 2)
    with pytest.raises(ParameterError, match=words):
        estimator.fit(x, y)
    assert not hasattr(estimator, "ledger_")


def test_a_link_that_is_not_monotone_is_refused():
    with pytest.raises(ParameterError, match=re.escape("monotone with a derivative from 1 to 2")):
        Link("square", np.square, lambda u: 2 * np.asarray(u), 1.0, 2.0)


@pytest.mark.parametrize("estimator", [LABEL, LASSO], ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_public_features_are_refused_before_any_spend(estimator, bad):
    x, y, _ = model(30, 3, 1)
    x[3, 1] = bad
    with pytest.raises(ParameterError):
        estimator.fit(x, y)


KINDS = {
    LocalIHT: {"sparsity": 2, "noise_bound": 0.1},
    LabelIHT: {"delta": 1e-3, "sparsity": 2, "y_bound": 1.0},
    LabelLasso: {"delta": 1e-3, "y_bound": 1.0, "noise_bound": 0.1},
    SparseERM: {"delta": 1e-3, "sparsity": 2, "loss": "squared"},
}
PUBLIC_FEATURES = {LabelIHT, LabelLasso}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x, y: (x[:0], y[:0]), "0 sample"),
        (lambda x, y: (x, y[1:]), "inconsistent numbers of samples"),
        (lambda x, y: (x[:, 0], y), "2D array"),
        (lambda x, y: (sparse.csr_array(x * 1j), y), "[Cc]omplex"),
        (lambda x, y: (x, sparse.csr_array(y[:, None])), "not a sparse matrix"),
        (lambda x, y: (x, None), "y"),
    ],
)
def test_data_of_the_wrong_kind_are_refused_before_any_spend(kind, change, words):
    made, (x, y, _) = kind(epsilon=1.0, **KINDS[kind]), model(40, 3, 1)
    with pytest.raises(ParameterError, match=words):
        made.fit(*change(x, y))
    assert not hasattr(made, "ledger_")


@pytest.mark.parametrize("kind", KINDS)
def test_cells_are_refused_in_public_features_alone(kind):
    x, y, _ = model(40, 3, 1)
    missing = sparse.csr_array(np.where(x > 0, np.nan, x))
    private = [
        (x, ["a"] * len(y)),
        (x, np.where(y > 0, np.inf, y)),
        (x, np.where(y > 0, np.nan, y)),
    ]
    if kind in PUBLIC_FEATURES:
        with pytest.raises(ParameterError, match="NaN"):
            kind(epsilon=1.0, **KINDS[kind]).fit(missing, y)
    else:
        private.append((missing, y))
    # a refusal that one record decides would tell that the record is there
    for data in private:
        made = kind(epsilon=1.0, random_state=0, **KINDS[kind]).fit(*data)
        assert np.isfinite(made.coef_).all()


def test_a_constant_column_and_other_sparse_formats_are_no_fault():
    x, y, _ = model(300, 4, 2)
    x[:, 3] = 1.0
    expected = LABEL.fit(sparse.csr_array(x), y).coef_.copy()
    for kind in (sparse.coo_array, sparse.csc_matrix, sparse.dok_array):
        assert LABEL.fit(kind(x), y).coef_.tobytes() == expected.tobytes()


SIGNS = np.where(np.arange(64) % 2, 1.0, -1.0)


@pytest.mark.parametrize("link", ["identity", "8x + cos x"])
def test_one_huge_target_decides_nothing_about_success(link):
    x, y = np.ones((64, 3)), SIGNS.copy()
    y[3] = 1.7e308
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = LocalIHT(epsilon=1.0, sparsity=2, noise_bound=0.1, rounds=2, link=link)
        assert np.isfinite(made.run(Ledger((x, y), made.plan(x.shape), rng=0))).all()


@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)
def test_the_slope_of_a_link_is_its_derivative(link):
    x, step = np.linspace(-7, 7, 101), 1e-5
    slope = (link.function(x + step) - link.function(x - step)) / (2 * step)
    assert link.derivative(x) == pytest.approx(slope, abs=1e-8)
    assert link.low <= slope.min() + 1e-8
    assert link.high >= slope.max() - 1e-8
