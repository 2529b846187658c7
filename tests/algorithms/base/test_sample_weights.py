"""Weights of records: shares of a public bound; noise and cost are those of equal weights."""

import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression, LogisticRegression

from accountant import Budget, Chunks, Filter, ParameterError
from accountant.ledger import chunks
from algorithms import (
    PrivateGeneralizedLinearModel,
    PrivateLasso,
    PrivateLinearRegression,
    PrivateLogisticLasso,
    PrivateLogisticRegression,
    SparseERM,
)
from audits import privacy_losses, replay

RNG = np.random.default_rng(5)
X = RNG.uniform(-1, 1, (2000, 4))
TARGETS = np.clip(X @ [0.5, -0.3, 0.0, 0.0] + 0.05 * RNG.normal(size=2000), -1, 1)
LABELS = (TARGETS > 0).astype(int)
WEIGHTS = RNG.uniform(0.0, 2.5, 2000)
HALF = (np.arange(2000) < 1000) * 2.0
CLAIM = {"epsilon": 4.0, "delta": 1e-6, "weight_bound": 2.0, "random_state": 0}
BOTH = CLAIM | {"classes": [0, 1]}
WALK = {"rounds": 30, "radius": 4.0}
SPARSE = {"sparsity": 2, "row_bound": 2.0}
NUMBERS = {
    "frank-wolfe": PrivateLasso(**CLAIM, rounds=40),
    "descent": PrivateLasso(**CLAIM, method="descent"),
    "private bounds": PrivateLasso(**CLAIM, method="descent", bounds="private"),
    "thresholds": SparseERM(**CLAIM, **SPARSE, loss="squared"),
    "linear": PrivateLinearRegression(**CLAIM),
    "huber": PrivateGeneralizedLinearModel(**CLAIM, loss="huber"),
}
CLASSES = {
    "logistic frank-wolfe": PrivateLogisticLasso(**BOTH, **WALK),
    "logistic descent": PrivateLogisticLasso(**BOTH, method="descent"),
    "logistic, private bounds": PrivateLogisticLasso(**BOTH, **WALK, bounds="private"),
    "logistic thresholds": SparseERM(**BOTH, **SPARSE),
    "logistic samples": SparseERM(**BOTH, **SPARSE, rate=0.2),
    "logistic": PrivateLogisticRegression(**BOTH),
}  # fmt: skip
EVERY = pytest.mark.parametrize("name", [*NUMBERS, *CLASSES])


def case(name):
    """An estimator, and the targets or labels that it fits."""
    return (NUMBERS[name], TARGETS) if name in NUMBERS else (CLASSES[name], LABELS)


def result(made, *data, **settings):
    """The coefficients of a fit and its constant, as bytes."""
    fit = made.fit(*data, **settings)
    return np.append(fit.coef_, fit.intercept_).tobytes()


def in_pieces(rows, y):
    """Chunks of pairs."""
    starts = range(0, len(y), 700)
    return Chunks(lambda: ((rows[at : at + 700], y[at : at + 700]) for at in starts), rows.shape)


@EVERY
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_weights_at_their_bound_change_no_bit(name, kind):
    (made, y), rows = case(name), kind(X)
    plain = result(made, rows, y)
    for weights in (np.full(2000, 2.0), np.full(2000, 1e300)):
        assert result(made, rows, y, sample_weight=weights) == plain
        assert made.plan_ == made.plan(X.shape, **lazily(made, kind))
    streamed = result(made, in_pieces(rows, y))
    assert result(made, in_pieces(rows, y), sample_weight=np.full(2000, 2.0)) == streamed


def lazily(made, kind):
    """The argument that sparse data add to a plan of the l1 ball."""
    takes = isinstance(made, (PrivateLasso, PrivateLogisticLasso))
    return {"sparse": True} if takes and kind is sparse.csr_array else {}


@EVERY
@pytest.mark.parametrize("held", [0, 1 << 28], ids=["streamed", "held"])
def test_chunks_and_arrays_have_the_same_weights(name, held, monkeypatch):
    monkeypatch.setattr(chunks, "HELD_BYTES", held)
    made, y = case(name)
    whole = result(made, X, y, sample_weight=WEIGHTS)
    assert result(made, in_pieces(X, y), sample_weight=WEIGHTS) == whole
    assert whole != result(made, X, y)


@EVERY
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_a_record_of_weight_zero_is_left_out(name, kind):
    made, y = case(name)
    turned = np.where(HALF > 0, y, (1 - y) if name in CLASSES else -y)
    made.fit(kind(X), turned, sample_weight=HALF)
    assert made.score(X, y) > 0.9 if name in CLASSES else made.score(X, y) > 0.8


@EVERY
def test_a_missing_weight_counts_as_zero(name):
    made, y = case(name)
    given, none = WEIGHTS.astype(object), WEIGHTS.copy()
    given[7], none[7] = None, 0.0
    assert result(made, X, y, sample_weight=given) == result(made, X, y, sample_weight=none)


@EVERY
def test_wrong_weights_are_refused_before_anything_is_spent(name):
    made, y = case(name)
    budget = Filter(X, Budget(50.0, 1e-4))
    spent = budget.spent
    for data in ((X, y), (in_pieces(X, y),)):
        for wrong in (np.ones(5), np.ones((2000, 2)), np.array(["a"] * 2000)):
            with pytest.raises(ParameterError, match="must be"):
                made.fit(*data, sample_weight=wrong, ledger=budget)
    for bound in (0.0, -1.0, math.inf, math.nan, True, "1"):
        wrong = type(made)(**made.get_params() | {"weight_bound": bound})
        with pytest.raises(ParameterError, match=f"{type(made).__name__}: weight_bound must be"):
            wrong.fit(X, y, ledger=budget)
    assert budget.spent == spent


ODD = 60
FAR = {
    "a weight": lambda x, y, w: (x, y, w * 0.0),
    "a weight and a row": lambda x, y, w: (-9 * x, y, w * 0.0),
    "all three": lambda x, y, w: (-9 * x, -y, w * 9.0),
}


def neighbours(change, y):
    """Data with weights, whose first record is heavy, and the same with another first record."""
    rows, weights = np.sign(X[:ODD]), WEIGHTS[:ODD].copy()
    weights[0] = 2.0
    changed = [one.copy() for one in (rows, y, weights)]
    for array, value in zip(changed, FAR[change](rows[0], y[0], weights[0]), strict=True):
        array[0] = value
    return (rows, y, weights), tuple(changed)


PURE = {"epsilon": 1.0, "delta": 0.0, "rounds": 4, "weight_bound": 2.0}


@pytest.mark.parametrize("change", FAR)
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("kind", [PrivateLasso, PrivateLogisticLasso])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_no_weight_costs_more_than_the_epsilon_of_equal_ones(kind, form, relation, change):
    if relation == "add-remove":  # what is removed adds nothing
        change = "a weight"
    signs = np.where(LABELS[:ODD] > 0, 1.0, -1.0)
    made = kind(**PURE, relation=relation)
    if kind is PrivateLogisticLasso:
        made.classes = [-1.0, 1.0]
    pair = [(form(x), *rest) for x, *rest in neighbours(change, signs)]
    losses = privacy_losses(made, *pair, 10, rng=1)
    assert 0.02 < np.abs(losses).max() <= 1.0 + 1e-9


@pytest.mark.parametrize("change", FAR)
@pytest.mark.parametrize("name", [name for name in [*NUMBERS, *CLASSES] if "samples" not in name])
def test_no_gradient_moves_by_more_than_its_plan_says(name, change):
    made, _ = case(name)
    targets = LABELS[:ODD].copy() if name in CLASSES else np.sign(TARGETS[:ODD])
    targets[0] = 1  # its negative is no class, and counts as the first
    made = type(made)(**made.get_params() | {"epsilon": 1.0, "random_state": None})
    data, other = neighbours(change, targets)
    found = replay(made, data, other, rng=1)
    assert found.sound, found.witness
    assert found.data_independent


WITHOUT = {"epsilon": math.inf, "delta": 1e-6, "weight_bound": 2.5, "non_private": True}


@pytest.mark.filterwarnings("ignore::algorithms.base.non_private.NotPrivateWarning")
def test_without_privacy_the_weighted_optimum_is_scikit_learns():
    noisy = np.where(RNG.random(2000) < 0.2, 1 - LABELS, LABELS)
    line = LinearRegression().fit(X, TARGETS, sample_weight=WEIGHTS)
    curve = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000)
    curve.fit(X, noisy, sample_weight=WEIGHTS)
    for made, y, peer in (
        (PrivateLasso(**WITHOUT, radius=9.0), TARGETS, line),
        (PrivateLogisticLasso(**WITHOUT, radius=99.0), noisy, curve),
        (SparseERM(**WITHOUT, sparsity=4, row_bound=9.0), noisy, curve),
        (SparseERM(**WITHOUT, sparsity=4, row_bound=9.0, loss="squared"), TARGETS, line),
    ):
        for rows in (X, sparse.csr_array(X), None):
            data = (in_pieces(X, y),) if rows is None else (rows, y)
            made.fit(*data, sample_weight=WEIGHTS)
            assert made.coef_ == pytest.approx(np.ravel(peer.coef_), abs=1e-4)
            assert made.intercept_ == pytest.approx(peer.intercept_, abs=1e-4)
