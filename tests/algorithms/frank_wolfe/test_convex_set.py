"""Frank-Wolfe by noisy gradients: oracles, Gaussian widths, sensitivity, error below its bound."""

import math

import numpy as np
import pytest
from scipy import sparse

from accountant import GDP, Budget, ParameterError
from algorithms.base.glm_losses import DeclaredLoss, glm_loss_of
from algorithms.base.noisy_gradient_rounds import mu_of_budget
from algorithms.frank_wolfe.convex_set import ClippedMeanGradient, GaussianFrankWolfe
from algorithms.frank_wolfe.convex_sets import GroupBall, L2Ball, NuclearBall
from algorithms.frank_wolfe.user_sets import CheckedConvexSet
from audits import privacy_losses, replay
from mechanisms import Gaussian

RNG = np.random.default_rng(6)
X = RNG.normal(size=(500, 6)) / 3
Y = np.clip(X @ [0.9, -0.5, 0, 0, 0, 0.4] + 0.05 * RNG.normal(size=500), -1, 1)


class Ellipsoid:
    """A user's set: ``sum theta_j^2 / a_j^2 <= 1``."""

    axes = np.array([1.0, 0.5, 0.5, 0.1, 0.1, 0.5])
    radius = 1.0

    def width(self, features):
        return float(np.linalg.norm(self.axes))

    def minimiser(self, direction):
        scaled = self.axes * direction
        return -self.axes * scaled / np.linalg.norm(scaled)

    def contains(self, point):
        return np.sum((point / self.axes) ** 2) <= 1 + 1e-9


SETS = {
    "l2": L2Ball(1.5), "groups": GroupBall([0, 0, 1, 2, 2, 2], 1.2), "user": Ellipsoid(),
    "nuclear": NuclearBall((2, 3), 1.3),
}  # fmt: skip
sets = pytest.mark.parametrize("convex", SETS.values(), ids=SETS)


def norm_of(name, point):
    """The set's norm over its radius, by another road than the code's."""
    if name == "l2":
        return math.sqrt(sum(point**2)) / 1.5
    if name == "groups":
        return sum(math.sqrt(sum(part**2)) for part in np.split(point, [2, 3])) / 1.2
    if name == "nuclear":
        return np.trace(sqrt_of(point.reshape(2, 3))) / 1.3
    return math.sqrt(sum((point / Ellipsoid.axes) ** 2))


def sqrt_of(matrix):
    values, vectors = np.linalg.eigh(matrix @ matrix.T)
    return vectors * np.sqrt(np.maximum(values, 0)) @ vectors.T


@pytest.mark.parametrize("name", SETS)
def test_oracles_find_the_point_that_goes_furthest(name):
    rng, convex = np.random.default_rng(1), SETS[name]
    greatest = 0.0
    for _ in range(200):
        direction = rng.normal(size=6)
        best = convex.minimiser(direction)
        assert convex.contains(best)
        assert norm_of(name, best) == pytest.approx(1.0, abs=1e-7)
        assert np.linalg.norm(best) <= convex.radius * (1 + 1e-9)
        greatest = max(greatest, np.linalg.norm(best))
        others = rng.normal(size=(100, 6))
        others /= np.array([norm_of(name, one) for one in others])[:, None]
        assert (others @ direction >= best @ direction - 1e-9).all()
        assert not convex.contains(1.001 * best)
    # the declared l2 norm is attained
    assert greatest > 0.9 * convex.radius
    assert np.all(np.isfinite(SETS["l2"].minimiser(np.zeros(6))))


@sets
def test_widths_bound_the_expected_maximum(convex):
    rng, width = np.random.default_rng(2), convex.width(6)
    furthest = np.array([-g @ convex.minimiser(g) for g in rng.normal(size=(4000, 6))])
    assert 0.6 * width < furthest.mean() < width * 1.02


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@sets
def test_plans_meet_the_budget_by_exact_calibration(convex, relation):
    made = GaussianFrankWolfe("squared", convex, 1.0, 1e-6, rounds=25, relation=relation)
    plan = made.plan(X.shape)
    assert isinstance(plan.part, Gaussian)
    assert Budget(1.0, 1e-6).check(plan) >= 0.999
    # (T - 1) x Gaussian with l2 sensitivity 2 L2 / n (methods 11); L2 = 2 (radius + 1) on unit rows
    times = 2 if relation == "replace" else 1
    assert plan.part.sensitivity == pytest.approx(times * 2 * (convex.radius + 1) / 500)
    # T Gaussians of mu / sqrt T are one of mu
    mu = mu_of_budget(1.0, 1e-6)
    assert plan.part.scale == pytest.approx(plan.part.sensitivity * 5 / mu, rel=1e-5)
    assert GDP().epsilon(plan, 1e-6) == pytest.approx(1.0, rel=1e-4)


def test_best_rounds_minimise_the_bound():
    made = GaussianFrankWolfe("squared", L2Ball(1.0), 1.0, 1e-6)
    shape = (2000, 5)
    best = made.plan(shape).count
    bounds = {
        rounds: 2 * 8 / rounds + made.set_params(rounds=rounds).plan(shape).part.scale * 5**0.5
        for rounds in (best - 1, best, best + 1)
    }
    assert best > 3
    assert min(bounds, key=bounds.get) == best


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("thin", [False, True])
def test_no_record_moves_a_gradient_by_more_than_declared(loss, thin):
    rng, kind = np.random.default_rng(3), sparse.csr_array if thin else np.asarray
    made = GaussianFrankWolfe(loss, L2Ball(1.0), 1.0, 1e-6, row_bound=1.5, rounds=1)
    declared, greatest = made.plan((10, 4)).part.sensitivity, 0.0
    bound = glm_loss_of(loss).bound(1.5, 1.0)
    for _ in range(600):
        x, y = rng.normal(size=(10, 4)), rng.choice([-1.0, 1.0], 10)
        other_x, other_y = x.copy(), y.copy()
        theta = rng.normal(size=4)
        theta /= np.linalg.norm(theta)
        x[0] = 1e4 * theta
        other_x[0] = 1e4 * (rng.normal(size=4) - 0.5 * rng.choice([0, 20]) * theta)
        other_y[0] = 1e9 * rng.choice([-1.0, 1.0])
        gradients = []
        for data in ((kind(x), y), (kind(other_x), other_y)):
            query = ClippedMeanGradient(glm_loss_of(loss), 1.5, 1.0, bound)
            query.theta = theta
            gradients.append(query(data))
        greatest = max(greatest, np.linalg.norm(gradients[0] - gradients[1]))
    assert 0.5 * declared < greatest <= declared * (1 + 1e-12)


@pytest.mark.parametrize("average", [False, True])
@sets
def test_the_excess_is_below_its_bound(convex, average):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(3000, 6))
    x /= np.linalg.norm(x, axis=1)[:, None]
    y = np.clip(x @ [0.9, -0.2, 0, 0, 0, 0.1] + 0.1 * rng.normal(size=3000), -1, 1)

    def loss(theta):
        return np.mean((x @ theta - y) ** 2)

    least = loss(GaussianFrankWolfe("squared", convex, 1e6, 1e-6, rounds=1000).fit(x, y).coef_)
    made = GaussianFrankWolfe("squared", convex, 1.0, 1e-6, rounds=20, average=average)
    excess = [loss(made.set_params(random_state=s).fit(x, y).coef_) - least for s in range(20)]
    bound = made.utility_bound(x.shape, loss(made.set_params().coef_ * 0) - least)
    assert 0 < np.mean(excess) + 5 * np.std(excess) / math.sqrt(20) < bound
    # without noise worth mentioning the point of least loss is found
    assert least <= min(loss(0.99 * convex.minimiser(g)) for g in rng.normal(size=(500, 6)))


@sets
def test_replay_and_losses_under_the_accountant(convex):
    made = GaussianFrankWolfe("logistic", convex, 2.0, 1e-5, rounds=10)
    labels = np.where(Y > 0, 1.0, -1.0)
    other = X.copy(), labels.copy()
    other[0][0], other[1][0] = 5.0, -labels[0]
    found = replay(made, (X, labels), other, rng=4)
    assert found.leak_free
    assert found.on_plan
    assert found.deterministic
    losses = privacy_losses(made, (X, labels), other, 60, rng=5)
    mu = math.sqrt(10) * made.plan(X.shape).part.loss.mu
    assert 0 < losses.std() < 1.5 * mu


def test_dense_and_sparse_agree():
    made = GaussianFrankWolfe("squared", L2Ball(1.0), 1.0, 1e-5, rounds=10, random_state=1)
    dense = made.fit(X, Y).coef_
    assert made.fit(sparse.csr_matrix(X), Y).coef_ == pytest.approx(dense, abs=1e-9)


class Outside(Ellipsoid):
    """Returns points outside."""

    def minimiser(self, direction):
        return 1.01 * super().minimiser(direction)


class Long(Ellipsoid):
    """Declares a shorter radius than its points have."""

    radius = 0.1


class Misshapen(Ellipsoid):
    """Points of another space."""

    def minimiser(self, direction):
        return np.ones(3)


class Endless(Ellipsoid):
    """Unbounded."""

    radius = math.inf


BAD = [
    ({"convex_set": Outside()}, "a point of the set"),
    ({"convex_set": Long()}, "a point of the set"),
    ({"convex_set": Misshapen()}, "a point of the set"),
    ({"convex_set": Endless()}, "convex_set.radius must be"),
    ({"convex_set": None}, "an object with radius"),
    ({"convex_set": GroupBall([0, 1], 1.0)}, "of 6 features"),
    ({"convex_set": NuclearBall((2, 2), 1.0)}, "number of features, 6"),
    ({"loss": DeclaredLoss(lambda theta, x, y: x, 1.0, 1.0)}, "loss must be a LinearLoss"),
    ({"delta": 0.0}, "delta must be"),
    ({"row_bound": math.inf}, "row_bound must be"),
    ({"y_bound": math.nan}, "y_bound must be"),
    ({"rounds": 1.5}, "rounds must be"),
    ({"relation": "both"}, "relation must be"),
    ({"average": None}, "average must be"),
]


@pytest.mark.parametrize(("changes", "words"), BAD, ids=lambda one: str(one)[:40])
def test_bad_settings_are_refused_before_any_spend(changes, words):
    settings = {"loss": "squared", "convex_set": L2Ball(1.0), "epsilon": 1.0, "delta": 1e-6}
    made = GaussianFrankWolfe(**{**settings, **changes})
    with pytest.raises(ParameterError, match=words):
        made.fit(X, Y)
    assert not hasattr(made, "ledger_")


@pytest.mark.parametrize(
    "make",
    [lambda: L2Ball(0.0), lambda: GroupBall([0.5], 1.0), lambda: GroupBall([[1]], 1.0),
     lambda: GroupBall([0], math.inf), lambda: NuclearBall((2, 0), 1.0),
     lambda: NuclearBall(4, 1.0), lambda: NuclearBall((2, 2), math.nan)],
)  # fmt: skip
def test_sets_without_bounds_cannot_be_made(make):
    with pytest.raises(ParameterError, match="must be"):
        make()


def test_the_width_of_a_users_set_is_asked_for_its_own_space():
    class Cube(Ellipsoid):
        def width(self, features):
            return 0.1 * features

        def minimiser(self, direction):
            return -np.sign(direction) / math.sqrt(len(direction))

        def contains(self, point):
            return bool(np.abs(point).max() <= 1.0)

    assert CheckedConvexSet(Cube()).width(7) == pytest.approx(0.7)
