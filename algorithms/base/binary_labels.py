"""Labels of public classes, encoded as numbers; two classes as -1 and 1."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.utils.multiclass import check_classification_targets

from accountant.errors import ParameterError
from accountant.numerics import Array


def encode_classes(y: Any, classes: Any = None) -> tuple[Any, Any]:
    """Return the classes in order, and 0, 1, ... in place of every label.

    ``classes`` are the public ones; None takes those of the labels.
    """
    given = np.asarray(y)
    if given.dtype.kind == "f" and not np.isfinite(given).all():
        raise ParameterError("y", "Input y contains NaN or infinity", "finite")
    try:
        check_classification_targets(given)
        found, index = np.unique(given, return_inverse=True)
    except (TypeError, ValueError):
        # scikit-learn's own message shows labels
        why = "Complex data not supported" if given.dtype.kind == "c" else "Unknown label type: "
        allowed = f"numbers or strings that stand for classes. {why}"
        raise ParameterError("y", given.dtype, allowed) from None
    if classes is None:
        return found, index.astype(float)
    public = checked_classes(classes)
    if not np.isin(found, public).all():
        raise ParameterError("y", "a label of another class", "labels of the public `classes`")
    return public, np.searchsorted(public, found)[index].astype(float)


def checked_classes(classes: Any) -> Any:
    """Return two or more distinct public classes, in order."""
    found = np.unique(np.asarray(classes))
    if found.size != np.size(classes) or found.size < 2:
        raise ParameterError("classes", classes, "two or more distinct labels, or None")
    return found


def encode_two_classes(y: Any) -> tuple[Any, Any]:
    """Return the two classes, and -1 for the first and 1 for the second in place of every label."""
    classes, codes = encode_classes(y)
    if classes.size != 2:
        found = f"{classes.size} class" + "es" * (classes.size != 1)
        allowed = "labels of two classes. Only binary classification is supported"
        raise ParameterError("y", found, allowed)
    return classes, 2.0 * codes - 1


def binary_probabilities(scores: Array) -> Array:
    """Return (records, 2) probabilities of the first and the second class."""
    return np.stack([expit(-scores), expit(scores)], axis=1)
