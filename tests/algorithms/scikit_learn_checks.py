"""scikit-learn's checks of estimators, and which ones private estimators may fail, and why.

Fits without privacy look at labels and at missing values as scikit-learn does, and pass every check
whose minimum exists.  The checks of the array API need ``SCIPY_ARRAY_API=1`` before SciPy is
imported, which changes SciPy: `test_array_api` runs them in a process of its own.
"""

import os

import pytest
import sklearn
from numpy.lib import NumpyVersion
from sklearn.base import is_classifier
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import has_fit_parameter

LEAK = "a refusal that one record decides tells that the record is there"
CLASSES = "its classes are declared, and the labels of this check are others"
OF_ANY_FIT = {"check_supervised_y_no_nan": LEAK}
EQUAL = "a weight of two is no second record: it has no noise of its own, and costs the same"
COLUMN = "the categories of persons are mostly one column"
SEPARABLE = "fifteen records are separable by ten features: their minimum is at infinity"
ORDER = "up to scikit-learn 1.6 the two classes of this check follow the order of records"
BEFORE_1_7 = NumpyVersion(sklearn.__version__) < "1.7.0"
EQUIVALENCE = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
OF_WEIGHTS = {"check_all_zero_sample_weights_error": LEAK} | dict.fromkeys(EQUIVALENCE, EQUAL)
OF_PRIVATE_FEATURES = {"check_dtype_object": LEAK}
OF_LABELS = {
    "check_classifiers_classes": CLASSES,
    "check_classifiers_regression_target": LEAK,
}
NOISE = {"check_classifiers_one_label": "noise hides what ten records have in common"}
OF_PAIRS = {"check_classifier_not_supporting_multiclass": LEAK} | NOISE
OF_MANY_CLASSES = {
    "check_classifiers_train": CLASSES,
    "check_estimator_sparse_array": CLASSES,
    "check_estimator_sparse_matrix": CLASSES,
}
ARRAY_API = os.environ.get("SCIPY_ARRAY_API") == "1"


def passes_scikit_learn_checks(*estimators):
    """A decorator: run a test of ``estimator`` and ``check`` with every check of each estimator."""
    every = parametrize_with_checks(list(estimators), expected_failed_checks=expected_failures)
    names, pairs = every.args
    chosen = [pair for pair in pairs if ("array_api" in str(_check_of(pair))) is ARRAY_API]
    return pytest.mark.parametrize(names, chosen, **every.kwargs)


def _check_of(pair):
    """The check of a pair of an estimator and a check, with or without marks."""
    return getattr(pair, "values", pair)[1]


def expected_failures(estimator):
    """The checks that an estimator may fail, each with its reason."""
    if not hasattr(estimator, "epsilon"):
        return {}
    tags = estimator.__sklearn_tags__()
    if getattr(estimator, "non_private", False):
        weighs = has_fit_parameter(estimator, "sample_weight")
        unbound = not hasattr(estimator, "radius")
        at_infinity = unbound and (
            is_classifier(estimator) or getattr(estimator, "loss", "") == "poisson"
        )
        found = dict.fromkeys(EQUIVALENCE, SEPARABLE) if weighs and at_infinity else {}
        of_two = is_classifier(estimator) and not tags.classifier_tags.multi_class
        return found | (dict.fromkeys(EQUIVALENCE, ORDER) if of_two and BEFORE_1_7 else {})
    found = dict(OF_ANY_FIT)
    if has_fit_parameter(estimator, "sample_weight"):
        found |= OF_WEIGHTS
    if tags.input_tags.categorical:
        found |= {"check_fit1d": COLUMN}
    elif tags.input_tags.allow_nan:
        found |= OF_PRIVATE_FEATURES
    if tags.estimator_type == "classifier":
        found |= OF_LABELS | (OF_MANY_CLASSES if tags.classifier_tags.multi_class else OF_PAIRS)
        found |= {} if tags.input_tags.allow_nan else NOISE  # reports of ten labels
    return found
