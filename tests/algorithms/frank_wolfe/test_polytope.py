"""Private Frank-Wolfe over any polytope, for any loss: constants, bounds, enforcement, replay."""

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from accountant import ZCDP, Budget, ParameterError, Repeat, Tight, calibrate
from algorithms.base.glm_losses import LOGISTIC, SQUARED, DeclaredLoss, LinearLoss
from algorithms.frank_wolfe.constants import (
    GUMBEL,
    Bounds,
    epsilon_per_selection,
    noise_scale,
    optimal_rounds,
    selection_regret,
    utility_bound,
    zcdp_loss,
)
from algorithms.frank_wolfe.dense_scores import DeclaredScores, DenseScores, run_frank_wolfe
from algorithms.frank_wolfe.polytope import FrankWolfe
from algorithms.frank_wolfe.polytopes import Hull, L1Ball, Simplex, box
from algorithms.frank_wolfe.private_logistic_lasso import PrivateLogisticLasso
from audits import privacy_losses, replay
from mechanisms import NoisyMax, PermuteAndFlip
from tests.algorithms.scikit_learn_checks import passes_scikit_learn_checks

RNG = np.random.default_rng(6)
X = RNG.uniform(-1, 1, (400, 4))
Y = np.clip(X @ [0.5, -0.3, 0, 0.1] + 0.05 * RNG.normal(size=400), -1, 1)
LABELS = np.where(Y > 0, 1.0, -1.0)
SELECTIONS = ("gumbel", "laplace", "permute-and-flip")
GRADIENT = DeclaredLoss(lambda theta, x, y: 2 * (x @ theta - y)[:, None] * x, 4.0, 8.0)


class Diamond:
    """A user's oracle: the l1 ball of radius 1, its vertices in another order."""

    norm = 1.0

    def count(self, features):
        return 2 * features

    def vertex(self, index, features):
        return np.eye(features)[index // 2] * (1 if index % 2 else -1)

    def products(self, gradient):
        return np.stack([-gradient, gradient], axis=1).ravel()


POLYTOPES = {
    "ball": L1Ball(1.5), "simplex": Simplex(2.0), "box": box([-1, -1, 0, 0], [1, 1, 0.5, 0.5]),
    "hull": RNG.normal(size=(7, 4)), "oracle": Diamond(),
}  # fmt: skip
polytopes = pytest.mark.parametrize("polytope", POLYTOPES.values(), ids=POLYTOPES)


@passes_scikit_learn_checks(
    PrivateLogisticLasso(math.inf, 1e-6, rounds=5, non_private=True, random_state=0),
    PrivateLogisticLasso(1.0, 1e-6, rounds=5, classes=[0, 1], random_state=0),
)
@pytest.mark.filterwarnings("ignore::algorithms.base.non_private.NotPrivateWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# ------------------------------------------------------------------------ constants


def test_calibrated_scales_beat_concentrated_accounting():
    # methods 7.1, T = 50, claim (1, 1e-6), units L1 |C|_1 / n: 63.4 and 126.9, printed 74.3
    rho = calibrate(zcdp_loss, epsilon=1.0, delta=1e-6, accountant=ZCDP())
    assert 4 * math.sqrt(49 / (8 * rho)) == pytest.approx(63.4, abs=0.05)
    assert 4 * math.sqrt(49 / (2 * rho)) == pytest.approx(126.9, abs=0.05)
    scales = [noise_scale(1.0, 1e-6, 49, selection, 2.0) for selection in SELECTIONS]
    assert scales == pytest.approx([59.03, 114.78, 114.19], abs=0.02)
    assert scales[0] < 63.4
    assert max(scales[1:]) < 126.9


def test_lipschitz_constants_are_attained():
    # methods 7.2: L1 = 4, Gamma = 8 on unit bounds (E21: the print misses a factor 2)
    unit = Bounds(1.0, 1.0, 1.0)
    assert unit.lipschitz() == 4.0
    assert abs(SQUARED.slope(np.array([1.0]), np.array([-1.0]))) == 4.0
    assert unit.curvature() == 8.0
    # along e1 to -e1 at x = 1, y = 1: 2 (f(b) - f(a) - f'(a) (b - a)) for the whole step
    a, b, y = (np.array([number]) for number in (1.0, -1.0, 1.0))
    found = 2 * (SQUARED.value(b, y) - SQUARED.value(a, y) - SQUARED.slope(a, y) * (b - a))
    assert found == unit.curvature()
    assert unit.lipschitz(LOGISTIC) == pytest.approx(1 / (1 + math.exp(-1)), rel=1e-14)
    slope = LOGISTIC.slope(np.array([-1.0]), np.array([1.0]))
    assert abs(slope) <= unit.lipschitz(LOGISTIC)
    assert abs(slope) == pytest.approx(unit.lipschitz(LOGISTIC), rel=1e-14)
    assert unit.curvature(LOGISTIC) == 1.0
    u = np.linspace(-3, 3, 601)
    for y in (-1.0, 1.0):
        for loss in (SQUARED, LOGISTIC):
            steps = np.diff(loss.slope(u, np.full(601, y))) / 0.01
            assert 0 < steps.min() <= steps.max() <= loss.smoothness * (1 + 1e-9)
            slopes = (loss.value(u[2:], y) - loss.value(u[:-2], y)) / 0.02
            assert slopes == pytest.approx(loss.slope(u[1:-1], np.full(599, y)), abs=1e-4)


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_best_rounds_minimise_the_bound(selection, delta):
    # with the noise of concentrated accounting the formula is the minimum of the bound
    n, vertices = 20_000, 50
    best = optimal_rounds(8.0, 8 / n, vertices, selection, 1.0, delta)
    rho = calibrate(zcdp_loss, epsilon=1.0, delta=1e-6, accountant=ZCDP())

    def bound(rounds):
        each = math.sqrt((8 if selection == "gumbel" else 2) * rho / rounds)
        each = 1.0 / rounds if delta == 0 else each
        return 2 * 8.0 / rounds + 2 * 8 / n / each * selection_regret(vertices, selection)

    assert best > 5
    assert all(bound(best) <= bound(other) for other in (best - 1, best + 1))


def test_harmonic_numbers_and_expected_losses_of_a_selection():
    exact = sum(1 / k for k in range(1, 201))
    assert selection_regret(200, "laplace") == pytest.approx(exact, rel=1e-5)
    # on equal scores but one, a selection loses less than the bound says (methods: E max <= H)
    rng, scores = np.random.default_rng(0), np.append(np.zeros(199), 3.0)
    for made in (NoisyMax(1.0), NoisyMax(1.0, 1.0, "laplace"), PermuteAndFlip(1.0)):
        noise = getattr(made, "noise", "permute-and-flip")
        lost = 3.0 - scores[made.release(scores, rng, 4000)].mean()
        assert 0.3 * selection_regret(200, noise) < lost < selection_regret(200, noise)


def test_a_linear_loss_needs_the_term_that_print_forgets():
    # E20: Gamma = 0 (nearly), no noise; h_T = 2 h_1 / (T (T + 1)) exactly
    slope = DeclaredLoss(lambda theta, x, y: np.tile([1.0, 0.0], (len(y), 1)), 1.0, 1e-12)
    made = FrankWolfe(slope, [[0.0, 1.0], [1.0, 1.0]], 1e9, 0.0, rounds=49)
    theta = made.fit(np.ones((5, 2)), np.ones(5)).coef_
    assert theta[0] == pytest.approx(0.5 * 2 / (50 * 51))
    assert theta[0] <= utility_bound(1e-12, 49, 0.0, 0.5) * (1 + 1e-9)
    assert utility_bound(1e-12, 49, 0.0, 0.5) == pytest.approx(theta[0], rel=1e-3)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("selection", SELECTIONS)
def test_the_excess_is_below_its_bound(selection, average):
    rng = np.random.default_rng(1)
    x = rng.choice([-1.0, 1.0], (4000, 5))
    y = np.clip(x @ [0.8, -0.2, 0, 0, 0] + 0.1 * rng.normal(size=4000), -1, 1)

    def loss(theta):
        return np.mean((x @ theta - y) ** 2)

    least = loss(np.linalg.lstsq(x, y)[0])
    gap = loss(np.zeros(5)) - least
    for rounds in (5, 40):
        made = FrankWolfe(
            "squared", L1Ball(1.0), 1.0, 1e-6, rounds=rounds, selection=selection, average=average
        )
        excess = [
            loss(made.set_params(random_state=seed).fit(x, y).coef_) - least for seed in range(20)
        ]
        bound = made.utility_bound(x.shape, gap)
        # excesses lie in [0, 4]; the bound is more than twice their mean, so Hoeffding is not used
        assert 0 < np.mean(excess) + 5 * np.std(excess) / math.sqrt(20) < bound
    noiseless = FrankWolfe("squared", L1Ball(1.0), 1e8, 0.0, rounds=40, average=average).fit(x, y)
    assert loss(noiseless.coef_) - least < noiseless.utility_bound(x.shape, gap) < 1.0


# ------------------------------------------------------------------------ plans and queries


@polytopes
@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_plans_meet_the_budget_and_waste_none(polytope, selection, relation):
    made = FrankWolfe(
        "squared", polytope, 2.0, 1e-6, rounds=20, selection=selection, relation=relation
    )
    plan = made.plan(X.shape)
    assert plan.count == 20
    assert 0.99 * 2 <= Budget(2.0, 1e-6).check(plan) <= 2
    assert made.set_params(rounds=None).plan(X.shape).count >= 1


@polytopes
@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("loss", ["squared", "logistic", "declared"])
def test_scores_are_products_of_vertices_with_the_gradient(polytope, thin, loss):
    made = FrankWolfe(GRADIENT if loss == "declared" else loss, polytope, 1.0, 1e-6)
    found, space, bounds = made._problem()
    y = LABELS if loss == "logistic" else Y
    data = X if not thin or loss == "declared" else sparse.csr_array(X), y
    query = (
        DeclaredScores(found, space) if loss == "declared" else DenseScores(bounds, found, space)
    )
    theta, count = space.start(4), space.count(4)
    vertices = np.array([space.vertex(i, 4) for i in range(count)])
    for t in range(1, 12):
        if loss == "declared":
            gradient = np.clip(GRADIENT.gradients(theta, X, y), -4, 4).mean(axis=0)
        else:
            gradient = found.slope(X @ theta, y) @ X / 400
        assert query(data) == pytest.approx(-vertices @ gradient, abs=1e-12)
        vertex = vertices[int(RNG.integers(count))]
        theta += 2 / (t + 2) * (vertex - theta)
        where = np.flatnonzero(vertex)
        query.move(2 / (t + 2), where, vertex[where])


@polytopes
@pytest.mark.parametrize("loss", ["squared", "logistic", "steep", "declared"])
def test_no_record_moves_a_score_by_more_than_declared(polytope, loss):
    rng, records = np.random.default_rng(3), 10
    steep = LinearLoss(lambda u, y: 1e3 * (u - y), lambda u, y: 2.0, 1e3, lambda u, y: u)
    wild = DeclaredLoss(lambda theta, x, y: 1e3 * y[:, None] * x, 1.5, 1.0)
    made = FrankWolfe({"steep": steep, "declared": wild}.get(loss, loss), polytope, 1.0, 1e-6)
    found, space, bounds = made._problem()
    declared = bounds.score_sensitivity(records, "replace", found)
    greatest, count = 0.0, space.count(4)
    for _ in range(200):
        x, y = rng.choice([-1.0, 1.0], (records, 4)), rng.choice([-1.0, 1.0], records)
        other_x, other_y = x.copy(), y.copy()
        other_x[0], other_y[0] = 1e6 * rng.normal(size=4), 1e6 * rng.normal()
        queries = [
            DeclaredScores(found, space)
            if loss == "declared"
            else DenseScores(bounds, found, space)
            for _ in range(2)
        ]
        vertex = space.vertex(int(rng.integers(count)), 4)
        for t in range(1, 5):
            one, two = queries[0]((x, y)), queries[1]((other_x, other_y))
            greatest = max(greatest, np.abs(one - two).max())
            for query in queries:
                query.move(2 / (t + 2), np.arange(4), vertex)
    # a convex loss of one record cannot attain it on every set
    assert 0.4 * declared < greatest <= declared * (1 + 1e-12)


@polytopes
@pytest.mark.parametrize("average", [False, True])
def test_without_noise_worth_mentioning_it_finds_the_minimum(polytope, average):
    made = FrankWolfe("squared", polytope, 1e9, 0.0, rounds=600, average=average, random_state=0)
    theta = made.fit(X, Y).coef_
    _, space, _ = made._problem()
    vertices = np.array([space.vertex(i, 4) for i in range(space.count(4))])

    def loss(weights):
        return np.mean((X @ (weights @ vertices) - Y) ** 2)

    best = minimize(
        loss, np.full(len(vertices), 1 / len(vertices)), bounds=[(0, 1)] * len(vertices),
        constraints={"type": "eq", "fun": lambda weights: weights.sum() - 1},
    ).fun  # fmt: skip
    reached = np.mean((X @ theta - Y) ** 2)
    assert best - 1e-6 <= reached <= best + 0.01


def test_averages_weigh_later_iterates_more():
    class StatedAnswers:
        """A gate that tells vertices from a list, and keeps what the query was asked at."""

        shape = (400, 4)

        def __init__(self):
            self.answers = iter([0, 5, 3, 7, 1])

        def release(self, mechanism, query, shape):
            assert shape == (8,)
            return next(self.answers)

    bounds = Bounds(1.5, 1.0, 1.0)
    iterates = [np.zeros(4)] + [
        run_frank_wolfe(StatedAnswers(), None, rounds, bounds) for rounds in range(1, 6)
    ]
    weights = 2 * np.arange(1, 7) / (6 * 7)
    found = run_frank_wolfe(StatedAnswers(), None, 5, bounds, average=True)
    assert weights.sum() == pytest.approx(1)
    assert found == pytest.approx(weights @ np.array(iterates))


def test_declared_losses_are_clipped_in_blocks(monkeypatch):
    expected = DeclaredScores(GRADIENT, L1Ball(1.0))((X, Y))
    monkeypatch.setattr("algorithms.frank_wolfe.dense_scores.BLOCK_ENTRIES", 100)
    assert DeclaredScores(GRADIENT, L1Ball(1.0))((X, Y)) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("kind", ["hull", "declared", "logistic"])
def test_replay_and_losses_under_the_accountant(selection, kind):
    loss = {"hull": "squared", "declared": GRADIENT, "logistic": "logistic"}[kind]
    made = FrankWolfe(loss, POLYTOPES["hull"], 2.0, 0.0, rounds=8, selection=selection)
    other = X.copy(), LABELS.copy()
    other[0][0], other[1][0] = 1.0, -1.0
    found = replay(made, (X, LABELS), other, rng=4)
    assert found.sound
    losses = privacy_losses(made, (X, LABELS), other, 30, rng=5)
    assert 0 < np.abs(losses).max() <= 2.0 * (1 + 1e-9)


# ------------------------------------------------------------------------ the classifier


def test_a_classifier_learns_names():
    names = np.where(LABELS > 0, "yes", "no")
    for data in (X, sparse.csr_matrix(X)):
        made = PrivateLogisticLasso(50.0, 1e-6, radius=10.0, rounds=60, random_state=0,
                                    classes=["no", "yes"])  # fmt: skip
        assert made.fit(data, names).score(data, names) > 0.9
        assert set(made.predict(data)) == {"yes", "no"}
        assert (made.decision_function(data) > 0).sum() == (made.predict(data) == "yes").sum()
    assert "one record exchanged" in made.summary()
    assert "scores of 60 vertices" in made.summary()


def test_a_public_number_of_records_halves_the_sensitivity():
    parts = [
        PrivateLogisticLasso(1.0, 1e-6, rounds=5, relation=relation).plan((100, 3)).part
        for relation in ("replace", "add-remove")
    ]
    assert parts[0].sensitivity == 2 * parts[1].sensitivity
    assert parts[1].sensitivity == pytest.approx(1 / (1 + math.exp(-1)) / 100)


@pytest.mark.parametrize(
    "labels", [np.zeros(400), np.arange(400) % 3, Y, LABELS * np.nan, [None] * 400],
    ids=["one", "three", "numbers", "nan", "none"],
)  # fmt: skip
def test_labels_that_are_no_two_classes_are_refused_without_privacy_alone(labels):
    made = PrivateLogisticLasso(math.inf, 1e-6, rounds=5, non_private=True)
    with pytest.raises(ParameterError, match="y must be"):
        made.fit(X, labels)
    assert not hasattr(made, "ledger_")
    made = PrivateLogisticLasso(1.0, 1e-6, rounds=5)
    with pytest.raises(ParameterError, match=r"classes=\[\.\.\.\]"):
        made.fit(X, labels)
    assert not hasattr(made, "ledger_")
    assert made.set_params(classes=[-1, 1]).fit(X, labels).classes_.tolist() == [-1, 1]
    with pytest.raises(ParameterError, match="classes must be two classes"):
        made.set_params(classes=[-1, 0, 1]).fit(X, labels)


# ------------------------------------------------------------------------ bad input


class Outside(Diamond):
    """Returns a point that does not belong."""

    def vertex(self, index, features):
        return 2 * super().vertex(index, features)


class Another(Diamond):
    """Products that are not its vertices'."""

    def products(self, gradient):
        return 3 * super().products(gradient)


class Endless(Diamond):
    """Of infinite norm."""

    norm = math.inf


class Short(Diamond):
    """Fewer products than vertices."""

    def products(self, gradient):
        return gradient


def linear(steepest):
    return LinearLoss(lambda u, y: u, lambda u, y: steepest, 1.0, lambda u, y: u)


BAD = [
    ({"vertices_or_oracle": [[math.inf, 0, 0, 0]]}, "infinite norm"),
    ({"vertices_or_oracle": [[math.nan, 0, 0, 0]]}, "infinite norm"),
    ({"vertices_or_oracle": [[1e308] * 4]}, "infinite norm"),
    ({"vertices_or_oracle": np.zeros((3, 4))}, "norm of the vertices must be"),
    ({"vertices_or_oracle": np.zeros((0, 4))}, "of shape"),
    ({"vertices_or_oracle": np.ones((3, 5))}, "X has 4 features"),
    ({"vertices_or_oracle": [["a", "b"]]}, "an array of numbers"),
    ({"vertices_or_oracle": [[1.0], [1.0, 2.0]]}, "an array of numbers"),
    ({"vertices_or_oracle": Outside()}, "a point .* of the set, of l1 norm at most 1"),
    ({"vertices_or_oracle": Another()}, "the inner products of the vertices"),
    ({"vertices_or_oracle": Endless()}, "norm must be"),
    ({"vertices_or_oracle": Short()}, "one a vertex"),
    ({"vertices_or_oracle": None}, "an object with count"),
    ({"loss": "hinge"}, "loss must be"),
    ({"loss": linear(math.inf)}, "loss.steepest must be"),
    ({"loss": linear(math.nan)}, "loss.steepest must be"),
    ({"x_bound": math.inf}, "x_bound must be"),
    ({"y_bound": math.inf}, "y_bound must be"),
    ({"rounds": 0}, "rounds must be"),
    ({"selection": "argmax"}, "selection must be"),
    ({"relation": "both"}, "relation must be"),
    ({"average": 1}, "average must be"),
    ({"epsilon": math.inf}, "epsilon must be"),
    ({"delta": 1.0}, "delta must be"),
]


@pytest.mark.parametrize(("changes", "words"), BAD, ids=lambda one: str(one)[:40])
def test_bad_settings_are_refused_before_any_spend(changes, words):
    settings = {
        "loss": "squared", "vertices_or_oracle": L1Ball(1.0), "epsilon": 1.0, "delta": 1e-6,
        "rounds": 5,
    }  # fmt: skip
    made = FrankWolfe(**{**settings, **changes})
    with pytest.raises(ParameterError, match=words):
        made.fit(X, Y)
    assert not hasattr(made, "ledger_")


@pytest.mark.parametrize(
    "make",
    [
        lambda: L1Ball(math.inf), lambda: L1Ball(0.0), lambda: Simplex(-1.0), lambda: Hull([1, 2]),
        lambda: box([0.0], [math.inf]), lambda: box([1.0], [1.0]), lambda: box([0] * 17, [1] * 17),
        lambda: DeclaredLoss(lambda theta, x, y: x, math.inf, 1.0),
        lambda: DeclaredLoss(lambda theta, x, y: x, 1.0, math.nan),
        lambda: DeclaredLoss(None, 1.0, 1.0), lambda: LinearLoss(None, None, 1.0, None),
    ],
)  # fmt: skip
def test_sets_and_losses_without_bounds_cannot_be_made(make):
    with pytest.raises(ParameterError, match="must be"):
        make()


SIGNS = np.where(np.arange(64) % 2, 1.0, -1.0)


@pytest.mark.parametrize(
    "gradients",
    [lambda theta, x, y: x.sum(axis=0), lambda theta, x, y: np.repeat(x, 5, axis=0),
     lambda theta, x, y: x[:, :1]],
)  # fmt: skip
def test_a_declared_loss_gives_one_gradient_for_each_record(gradients):
    made = FrankWolfe(DeclaredLoss(gradients, 1.0, 1.0), np.eye(5), 1.0, 1e-5, rounds=2)
    with pytest.raises(ParameterError, match="one gradient for each record"):
        made.fit(np.ones((64, 5)), SIGNS)


@pytest.mark.parametrize("rounds", [44, 310])
def test_a_calibration_asks_tight_once(rounds, monkeypatch):
    asked, certify = [], Tight.certify

    def counted(self, plan, delta):
        asked.append(plan)
        return certify(self, plan, delta)

    monkeypatch.setattr(Tight, "certify", counted)
    each = epsilon_per_selection.__wrapped__(1.3, 1e-6, rounds, GUMBEL)
    plan = Repeat(NoisyMax(1 / each, 0.5), rounds)
    assert sum(isinstance(one, Repeat) for one in asked) == 1
    assert 1.3 * (1 - 1e-6) <= Tight().epsilon(plan, 1e-6) <= 1.3
