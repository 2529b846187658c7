"""Reports of single numbers: what they ask, what is made of them, and how accurate that is."""

import math

import numpy as np
import pytest
from scipy import sparse

from accountant import Budget, ParameterError, Tight
from algorithms import LocalIHT
from algorithms.base.number_noise import (
    NUMBER_NOISE,
    least_noise,
    noise_variance,
    number_noise,
)
from algorithms.sparse_regression.coordinate_reports import (
    ProductReports,
    Residuals,
    SizeReports,
    SlopeReports,
    stage_blocks,
)
from algorithms.sparse_regression.links import IDENTITY, LINEAR_PLUS_COSINE
from algorithms.sparse_regression.narrowing_rounds import SHARES, NarrowingRounds
from mechanisms import (
    BinaryLabel,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PiecewiseUniform,
    Staircase,
)

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (50, 4))
Y = RNG.normal(size=50) * 3


def model(users, features, coefficients, seed, correlated=False):
    rng = np.random.default_rng(seed)
    theta = np.zeros(features)
    theta[: len(coefficients)] = coefficients
    x = rng.choice([-1.0, 1.0], (users, features))
    if correlated:
        x = np.where(rng.random(x.shape) < math.sqrt(0.5), rng.choice([-1.0, 1.0], (users, 1)), x)
    return x, x @ theta + rng.uniform(-0.05, 0.05, users), theta


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("link", [IDENTITY, LINEAR_PLUS_COSINE], ids=lambda one: one.name)
def test_a_report_is_one_number_of_the_users_own_row(link, kind):
    theta = np.array([0.5, 0.0, -0.2, 0.0])
    x = np.clip(X, -1, 1)
    residual = (Y - link.function(x @ theta)) / link.derivative(x @ theta)
    own, rows = np.arange(50), (kind(X), Y)
    slopes = SlopeReports(Residuals(link, theta), np.array([1, 3, 0]), 0.7)(rows)
    asked = x[own, np.array([1, 3, 0])[own % 3]]
    assert slopes == pytest.approx(asked * np.clip(residual / 0.7, -1, 1))
    assert np.abs(slopes).max() <= 1
    products = ProductReports(np.array([[0, 0], [1, 2]]))(rows)
    assert products == pytest.approx(x[:, 0] * x[own, np.array([1, 2])[own % 2]])
    levels = np.array([0.1, 1.0])
    assert SizeReports(Residuals(link, theta), levels)(rows) == pytest.approx(
        np.where(np.abs(residual) > levels[own % 2], 1.0, -1.0)
    )


def test_huge_targets_stay_in_the_range():
    query = SlopeReports(Residuals(IDENTITY, np.zeros(4)), np.arange(4), 1e-3)
    with np.errstate(all="raise"):
        assert np.abs(query((X, np.full(50, 1.7e308)))).max() <= 1


def test_every_user_is_in_one_stage_and_many_users_leave_more_for_the_last():
    for users, features, sparsity in ((60, 3, 1), (10_000, 700, 5), (10**6, 10, 2)):
        made = LocalIHT(epsilon=4.0, sparsity=sparsity, noise_bound=0.1)
        rounds = made._narrowing_rounds(features, least_noise(1.0, 4.0))
        stages = stage_blocks(users, features, sparsity, rounds.enough())
        assert len(stages) == len(SHARES)
        who = [i for blocks in stages for one in blocks for i in (one.start, one.stop)]
        assert who[0] == 0
        assert who[-1] == users
        assert who[1:-1:2] == who[2::2]
        last = users - stages[-1][0].start
        assert last >= (0.25 if users == 10**6 else 0.05) * users


class Exact:
    """Users without noise and without number: the population's own means."""

    def __init__(self, gram, theta):
        self.gram, self.theta = gram, theta

    def slopes(self, stage, columns, theta, clip):
        del stage, clip
        return (self.gram @ (self.theta - theta))[columns], np.full(len(columns), 1e9)

    def products(self, stage, pairs):
        del stage
        return self.gram[pairs[0], pairs[1]], np.full(pairs.shape[1], 1e9)

    def beyond(self, stage, levels, theta):
        del stage
        spread = math.sqrt((self.theta - theta) @ self.gram @ (self.theta - theta))
        return np.where(levels < spread, 0.5, 0.0), np.full(len(levels), 1e9)


@pytest.mark.parametrize("correlation", [0.0, 0.5, -0.05])
def test_without_noise_the_rounds_find_theta_whatever_the_correlation(correlation):
    gram = np.full((12, 12), correlation)
    np.fill_diagonal(gram, 1.0)
    theta = np.zeros(12)
    theta[[3, 7, 8]] = 0.8, -0.5, 0.05
    rounds = NarrowingRounds(12, 3, 2.0, 1.8, 0.05)
    assert rounds.run(Exact(gram, theta)) == pytest.approx(theta, abs=1e-9)


def test_what_noise_alone_would_explain_becomes_zero():
    x, y, _ = model(3000, 20, (), 0)
    found = [
        LocalIHT(epsilon=1.0, sparsity=3, noise_bound=0.05, random_state=seed).fit(x, y).coef_
        for seed in range(20)
    ]
    # p-value of a coordinate below 20^-1.5 / 4: a run errs with probability of about 1/4
    assert sum(one.any() for one in found) <= 14  # Binomial(20, .3): 1e-5 at most, seeds are fixed


@pytest.mark.parametrize("correlated", [False, True])
def test_errors_are_far_below_those_of_whole_gradients(correlated):
    errors = {"coordinates": [], "gradients": []}
    for seed in range(3):
        x, y, theta = model(60_000, 10, (0.8, -0.6), seed, correlated)
        for method, found in errors.items():
            made = LocalIHT(
                epsilon=2.0, sparsity=2, noise_bound=0.05, method=method, random_state=seed
            )
            found.append(np.linalg.norm(made.fit(x, y).coef_ - theta))
    # measured .002 and .15
    assert np.mean(errors["coordinates"]) < 0.01 < 0.1 * np.mean(errors["gradients"])


def test_the_method_follows_the_settings_of_gradients():
    made = LocalIHT(epsilon=1.0, sparsity=2, noise_bound=0.1)
    assert type(made.plan((100, 5)).parts[0]).__name__ == "BinaryLabel"
    for settings in ({"rounds": 2}, {"step": 0.9}, {"residual_bound": 1.0}):
        one = LocalIHT(epsilon=1.0, sparsity=2, noise_bound=0.1, **settings)
        assert type(one.plan((100, 5)).parts[0]).__name__ == "HemisphereL2"
        one.set_params(method="coordinates")
        with pytest.raises(ParameterError, match=r"None, or method='gradients'"):
            one.plan((100, 5))
    with pytest.raises(ParameterError, match="method must be"):
        LocalIHT(epsilon=1.0, sparsity=2, noise_bound=0.1, method="best").plan((100, 5))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0, 6.0])
def test_plans_cost_their_epsilon(epsilon):
    plan = LocalIHT(epsilon=epsilon, sparsity=3, noise_bound=0.1).plan((10_000, 20))
    assert 0.99 * epsilon <= Budget(epsilon).check(plan) <= epsilon


@pytest.mark.parametrize("epsilon", [0.1, 0.9, 1.4, 3.0, 5.5, 12.0])
def test_the_noise_of_a_number_has_the_least_variance(epsilon):
    chosen = noise_variance(least_noise(1.0, epsilon, 1e-6), 1.0)
    others = [noise_variance(number_noise(name, 1.0, epsilon), 1.0) for name in NUMBER_NOISE]
    assert chosen == min(others)


@pytest.mark.parametrize("bound", [0.25, 1.0, 3.0])
@pytest.mark.parametrize("name", [*NUMBER_NOISE, "Gaussian"])
def test_the_variance_of_the_noise_is_that_of_drawn_reports(name, bound):
    for epsilon in (0.7, 4.0):
        if name == "Gaussian":
            mechanism = Gaussian(2 * bound / epsilon, sensitivity=2 * bound)
        else:
            mechanism = number_noise(name, bound, epsilon)
        errors = [
            np.mean((mechanism.release(np.full(20_000, number), rng=1) - number) ** 2)
            for number in (0.0, -bound, bound)
        ]
        # A standard error of the mean square is at most 2 %.
        assert max(errors) == pytest.approx(noise_variance(mechanism, bound), rel=0.08)


@pytest.mark.parametrize(
    ("epsilon", "delta", "kind"),
    [(1e-4, 0.0, BinaryLabel), (1.0, 0.01, BinaryLabel), (2.0, 0.1, PiecewiseUniform),
     (5.0, 0.1, Staircase), (700.0, 0.0, Laplace), (1.0, 0.2, Gaussian)],
)  # fmt: skip
def test_the_least_noise_hides_which_end_of_the_range_a_number_is(epsilon, delta, kind):
    mechanism = least_noise(2.0, epsilon, delta)
    assert type(mechanism) is kind
    spent_delta = delta if kind is Gaussian else 0.0  # the others are pure
    assert 0.99 * epsilon <= Tight().epsilon(mechanism, spent_delta) <= epsilon
    if kind in (BinaryLabel, PiecewiseUniform):  # numbers beyond the bound are clipped
        reports = [mechanism.release(np.array([end, -end]), rng=3).tolist() for end in (2.0, 9.0)]
        assert reports[0] == reports[1]
    else:
        assert mechanism.sensitivity == 2.0 - -2.0


def test_noise_of_unknown_variance_is_never_that_of_the_least():
    assert noise_variance(DiscreteLaplace(2.0), 1.0) == math.inf
