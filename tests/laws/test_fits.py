"""Laws: what a fit publishes beside its releases does not depend on a single record.

Every estimator is fitted on two data sets that differ in one record: a rare label, a missing value,
a huge one, one that ends a constant column, a category that is nowhere else, a text among numbers.
With the same answers everything else must be the same; with other noise, the kinds of everything.
"""

import dataclasses
import warnings
from itertools import zip_longest
from typing import Any

import numpy as np
import pytest

import algorithms
from accountant import GeometricTries, Ledger
from algorithms import (
    FrankWolfe,
    GaussianFrankWolfe,
    LabelIHT,
    LabelLasso,
    LabelPrivateClassifier,
    LabelSGD,
    LocalHistogram,
    LocalIHT,
    LocalMean,
    PrivateGeneralizedLinearModel,
    PrivateLasso,
    PrivateLinearRegression,
    PrivateLogisticLasso,
    PrivateLogisticRegression,
    PrivateMean,
    PrivateQuantiles,
    PrivateScaler,
    PrivateSearchCV,
    PrivateSelection,
    PrivateTopK,
    SignVote,
    SparseERM,
    ThresholdedMean,
    ThresholdedRegression,
)
from algorithms.frank_wolfe.convex_sets import L2Ball
from algorithms.frank_wolfe.polytopes import L1Ball
from audits import replay
from audits.algorithm_runs.fits import is_fitted_through_gates, published, run_through

# what fits nothing on private records
NO_FITS = {"BoundsScaler", "clipped_share", "best_partition_selection", "best_randomizer"}
RNG = np.random.default_rng(3)
X = RNG.uniform(-1, 1, (40, 3))
X[1:, 2] = 0.5  # constant but for the first record
Y = X[:, 0].copy()
CODES = (Y > 0).astype(int)
NAMES = np.where(Y > 0, "yes", "no").astype("<U6")
CLAIM = {"epsilon": 1.0, "delta": 1e-6}
BOTH, PAIR, SPARSE = {**CLAIM, "classes": [0, 1]}, {"classes": ["no", "yes"]}, {"sparsity": 1}


def with_first(data, value):
    """A copy of the data whose first record, or a cell of it, is another."""
    found = data.copy()
    found[0] = value
    return found


ODD_ROWS = {
    "constant column": [0.1, 0.2, 0.5], "missing": [0.1, np.nan, 0.5],
    "huge": [1e308, -1e308, 1e308], "infinite": [np.inf, -np.inf, 0.0],
}  # fmt: skip
ROWS = {name: with_first(X, row) for name, row in ODD_ROWS.items()}
ROWS["text"] = with_first(X.astype(object), [0.1, "no number", None])
TARGETS = {name: with_first(Y, one) for name, one in
           {"missing": np.nan, "huge": 1e308, "infinite": -np.inf}.items()}  # fmt: skip
ODD_LABELS = {"rare": 7.0, "missing": np.nan, "infinite": np.inf, "other": 1.0 - CODES[0]}
LABELS = {name: with_first(CODES.astype(float), one) for name, one in ODD_LABELS.items()}
LABELS["text"] = with_first(CODES.astype(object), "rare")
WORDS = {"rare": with_first(NAMES, "maybe"), "none": with_first(NAMES.astype(object), None),
         "list": with_first(NAMES.astype(object), 3).tolist()}  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False)
class Fits:
    """An estimator, data for its fit, neighbours of them, and the public features of labels."""

    made: Any
    data: Any
    neighbours: dict[str, Any]
    public: Any = None


def of_pairs(made, targets=TARGETS, y=Y, most=None):
    """Fits on features and targets, all of them private: one record is odd in both."""
    both = zip_longest(ROWS.items(), targets.items(), fillvalue=("usual", None))
    odd = {
        f"a row, {row}, and a target, {target}": (X if x is None else x, y if one is None else one)
        for (row, x), (target, one) in both
    }
    return Fits(made, (X, y), dict([*odd.items()][:most]))


WEIGHTS = np.tile([1.0, 0.3], 20)
ODD_WEIGHTS = {"missing": np.nan, "infinite": np.inf, "huge": 1e308, "negative": -1.0, "none": 0.0}


def of_weights(made, y=Y):
    """Fits with weights: one record is odd in its row and in its weight."""
    both = zip_longest(ROWS.items(), ODD_WEIGHTS.items())
    odd = {
        f"a row, {row}, and a weight, {name}": (x, y, with_first(WEIGHTS, one))
        for (row, x), (name, one) in both
    }
    return Fits(made, (X, y, WEIGHTS), odd)


def of_labels(made, labels=TARGETS, y=Y):
    """Fits on public features and private labels."""
    return Fits(made, y, labels, X)


def of_rows(made):
    """Fits on rows alone."""
    return Fits(made, X, ROWS)


def of_machines(made, data, odd):
    """Fits on the data of machines."""
    return Fits(made, (data,), {name: ([one, *data[1:]],) for name, one in odd.items()})


MACHINES = [X[at::4] for at in range(4)]
PAIRS = [(X[at::4], Y[at::4]) for at in range(4)]
ODD_MACHINES = {name: np.tile(row, (10, 1)) for name, row in ODD_ROWS.items()}
CATEGORIES = np.array([[1], [2], [3], [1]] * 10)
TOP = {name: with_first(CATEGORIES.astype(float), one) for name, one in
       {"new": 77.0, "missing": np.nan, "infinite": np.inf}.items()}  # fmt: skip
TOP["text"] = with_first(CATEGORIES.astype(object), "new").tolist()
COLUMN = {name: one[:, [1]] for name, one in ROWS.items()}
UNARY = {"randomizer": "unary"}  # the best of all takes longer to choose than the fit
CASES = {
    "FrankWolfe": of_pairs(FrankWolfe("squared", L1Ball(1.0), **CLAIM, rounds=2)),
    "GaussianFrankWolfe": of_pairs(GaussianFrankWolfe("squared", L2Ball(1.0), **CLAIM, rounds=2)),
    "LabelIHT": of_labels(LabelIHT(**CLAIM, **SPARSE, y_bound=1.0)),
    "LabelLasso": of_labels(LabelLasso(**CLAIM, y_bound=1.0, noise_bound=0.1)),
    "LabelPrivateClassifier": of_labels(
        LabelPrivateClassifier(1.0, classes=[0, 1], **UNARY), LABELS, CODES),
    "LabelPrivateClassifier, words": of_labels(
        LabelPrivateClassifier(1.0, **PAIR, **UNARY), WORDS, NAMES),
    "LabelSGD": of_labels(LabelSGD(epsilon=1.0, k=2, diameter=1.0, **UNARY),
                          {k: v for k, v in LABELS.items() if k != "text"}, CODES),
    "LocalHistogram": Fits(LocalHistogram(epsilon=1.0, k=2), CODES,
                           {"rare": with_first(CODES, 10**9), "text": ["a", *CODES[1:].tolist()]}),
    "LocalIHT": of_pairs(LocalIHT(epsilon=1.0, **SPARSE, noise_bound=0.1)),
    "LocalMean": of_rows(LocalMean(epsilon=1.0)),
    "PrivateGeneralizedLinearModel": of_pairs(PrivateGeneralizedLinearModel(**CLAIM, rounds=3)),
    "PrivateGeneralizedLinearModel, huber": of_pairs(
        PrivateGeneralizedLinearModel(loss="huber", **CLAIM, rounds=3)),
    "PrivateGeneralizedLinearModel, quantile": of_pairs(
        PrivateGeneralizedLinearModel(loss="quantile", quantile=0.9, **CLAIM, rounds=3)),
    "PrivateLasso": of_pairs(PrivateLasso(**CLAIM, rounds=2)),
    "PrivateLasso, descent": of_pairs(PrivateLasso(**CLAIM, method="descent")),
    "PrivateLinearRegression": of_pairs(PrivateLinearRegression(**CLAIM, method="statistics")),
    "PrivateLinearRegression, descent": of_pairs(
        PrivateLinearRegression(**CLAIM, method="descent", rounds=2)),
    "PrivateLasso, private bounds": of_pairs(
        PrivateLasso(**CLAIM, rounds=2, bounds="private")),
    "PrivateLinearRegression, private bounds": of_pairs(
        PrivateLinearRegression(**CLAIM, bounds="private", rounds=2, intervals=False)),
    "PrivateLogisticLasso": of_pairs(PrivateLogisticLasso(**BOTH, rounds=2), LABELS, CODES),
    "PrivateLogisticLasso, words": of_pairs(
        PrivateLogisticLasso(**CLAIM, **PAIR, rounds=2), WORDS, NAMES),
    "PrivateLogisticRegression": of_pairs(
        PrivateLogisticRegression(**BOTH, rounds=2), LABELS, CODES),
    "PrivateLogisticRegression, words": of_pairs(
        PrivateLogisticRegression(**CLAIM, **PAIR, rounds=2), WORDS, NAMES),
    "PrivateLogisticRegression, intervals": of_pairs(
        PrivateLogisticRegression(**BOTH | {"epsilon": 9.0}, rounds=2, intervals=True),
        LABELS, CODES),
    "PrivateLogisticRegression, private bounds": of_pairs(
        PrivateLogisticRegression(**BOTH, rounds=2, bounds="private"), LABELS, CODES),
    "PrivateMean": of_rows(PrivateMean(**CLAIM)),
    "PrivateQuantiles": Fits(
        PrivateQuantiles(low=0.0, high=1.0, epsilon=1.0), X[:, [1]], COLUMN),
    "PrivateScaler": of_rows(PrivateScaler(**CLAIM)),
    "PrivateSearchCV": of_pairs(PrivateSearchCV(
        PrivateLasso(1.0, 0.0, rounds=2), {"radius": [0.1, 1.0]}, epsilon=3.0,
        tries=GeometricTries(0.5)), most=2),
    "PrivateSearchCV, classes": of_pairs(PrivateSearchCV(
        PrivateLogisticLasso(1.0, 0.0, rounds=2, classes=[0, 1]), {"radius": [0.1, 1.0]},
        epsilon=3.0, tries=GeometricTries(0.5)), LABELS, CODES, most=2),
    "PrivateSelection": of_rows(PrivateSelection(epsilon=1.0)),
    "PrivateTopK": Fits(PrivateTopK(k=2, categories=[1, 2, 3, 4], epsilon=1.0), CATEGORIES, TOP),
    "SignVote": of_machines(SignVote(**CLAIM, k=1), MACHINES, ODD_MACHINES),
    "SparseERM": of_pairs(SparseERM(**BOTH, **SPARSE, rounds=2), LABELS, CODES),
    "SparseERM, squared": of_pairs(SparseERM(loss="squared", **CLAIM, **SPARSE, rounds=2)),
    **{f"{type(one).__name__}, weights{words}": of_weights(one, CODES if coded else Y)
       for one, words, coded in (
           (PrivateGeneralizedLinearModel(**CLAIM, rounds=3), "", False),
           (PrivateLasso(**CLAIM, rounds=2), "", False),
           (PrivateLasso(**CLAIM, method="descent", bounds="private"), " and bounds", False),
           (PrivateLinearRegression(**CLAIM, rounds=2, method="descent"), "", False),
           (PrivateLogisticLasso(**BOTH, rounds=2), "", True),
           (PrivateLogisticLasso(**BOTH, method="descent"), " and descent", True),
           (PrivateLogisticRegression(**BOTH, rounds=2, class_weight="balanced"), "", True),
           (SparseERM(**BOTH, **SPARSE, rounds=2), "", True),
           (SparseERM(loss="squared", **CLAIM, **SPARSE, rounds=2, rate=0.5), " and rate", False),
       )},
    "ThresholdedMean": of_machines(
        ThresholdedMean(**CLAIM, sparsity=1, x_bound=1.0), MACHINES, ODD_MACHINES),
    "ThresholdedRegression": of_machines(
        ThresholdedRegression(**CLAIM, sparsity=1, x_bound=1.0, y_bound=1.0, radius=1.0, rounds=2),
        PAIRS, {name: (one, Y[:10]) for name, one in ODD_MACHINES.items()}),
}  # fmt: skip


def replay_violation(fits):
    """What one record changes in a fit that receives the same answers."""
    if not is_fitted_through_gates(fits.made):
        return ""
    for name, neighbour in fits.neighbours.items():
        found = replay(fits.made, fits.data, neighbour, public=fits.public, rng=1)
        if not found.data_independent:
            return f"{name}: {found.witness}"
    return ""


def kinds_violation(fits):
    """What one record changes in the kinds of all that a fit publishes."""
    expected = kinds_of_fit(fits, fits.data)
    if "error" in expected:
        return expected["error"]
    for name, neighbour in fits.neighbours.items():
        found = kinds_of_fit(fits, neighbour)
        for what in expected | found:
            if expected.get(what) != found.get(what):
                return f"{name}: {what} is {found.get(what)}, and was {expected.get(what)}"
    return ""


def kinds_of_fit(fits, data):
    """The types and shapes of what is published, and the warnings or the error."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            if is_fitted_through_gates(fits.made):
                model = run_through(fits.made, data, fits.public, open_seeded)
            else:
                model = type(fits.made)(**fits.made.get_params() | {"random_state": 0}).fit(*data)
        except Exception as error:  # whatever a fit raises
            return {"error": f"{type(error).__name__}: {error}"}
        found = {name: kind_of(one) for name, one in published(model).items()}
    return found | {"warnings": [str(one.message) for one in heard]}


def open_seeded(data, plan, public):
    """A gate whose noise has a seed, so that nothing warns of its arithmetic."""
    return Ledger(data, plan, rng=0, public=public)


def kind_of(value):
    """The type of a value, of all that it holds, and the shapes of arrays."""
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape
    if isinstance(value, dict):
        return {name: kind_of(one) for name, one in value.items()}
    return [kind_of(one) for one in value] if isinstance(value, list) else type(value).__name__


@pytest.mark.parametrize("name", CASES)
def test_one_record_changes_no_more_than_the_answers(name):
    assert replay_violation(CASES[name]) == ""


@pytest.mark.parametrize("name", CASES)
def test_one_record_changes_no_kind_of_what_is_published(name):
    assert kinds_violation(CASES[name]) == ""


def test_every_estimator_is_held_to_the_laws():
    assert {name.split(",")[0] for name in CASES} == set(algorithms.__all__) - NO_FITS
