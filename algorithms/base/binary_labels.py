"""Labels of public classes, encoded as numbers; two classes as -1 and 1.

Which labels occur in private data is itself private: one record may hold the only label of a class.
So classes are declared, and a label that is none of them counts as the first class: a refusal would
tell that it is there.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, column_or_1d

from accountant.errors import ParameterError
from algorithms.base.fit_data import cells_of

REMEDY = (
    "a list of all labels that may occur, classes=[...]: which of them do occur is private (None "
    "is enough for boolean labels); for numbers to predict take a regressor, or loss='squared'"
)


def encode_classes(y: Any, classes: Any = None, non_private: bool = False) -> tuple[Any, Any]:
    """Return the classes in order, and 0, 1, ... in place of every label.

    ``classes`` are the public ones; None takes False and True of boolean labels, and with
    ``non_private`` those of the labels, as scikit-learn does.  A label of no class gives 0.
    """
    of_data = non_private and classes is None
    cells = np.asarray(y) if of_data else cells_of(y)
    if cells.dtype.kind == "c":  # scikit-learn's own message shows labels
        allowed = "numbers or strings that stand for classes. Complex data not supported"
        raise ParameterError("y", cells.dtype, allowed)
    try:
        labels = cells if cells is y and cells.ndim == 1 else column_or_1d(cells, warn=True)
    except ValueError as error:
        message = str(error).split(" Got ", maxsplit=1)[0]
        raise ParameterError("y", message, "one class label for each row") from None
    if of_data:
        return _classes_of_labels(labels)
    # A column of True and False stays boolean if one of its cells is missing.
    declared = str(getattr(y, "dtype", getattr(y, "type", labels.dtype))).lower()
    public = public_classes(classes, bool if declared.startswith("bool") else labels.dtype)
    return public, _places(labels, public).astype(float)


def encode_two_classes(y: Any, classes: Any = None, non_private: bool = False) -> tuple[Any, Any]:
    """Return the two classes, and -1 for the first and 1 for the second in place of every label."""
    both_classes, codes = encode_classes(y, classes, non_private)
    if both_classes.size != 2:
        class_count = f"{both_classes.size} class" + "es" * (both_classes.size != 1)
        allowed = "two classes. Only binary classification is supported"
        raise ParameterError("y" if classes is None else "classes", class_count, allowed)
    return both_classes, 2.0 * codes - 1


def public_classes(classes: Any, dtype: Any) -> Any:
    """Return two or more distinct public classes of labels of this type, in order."""
    if classes is None:
        if np.dtype(dtype).kind == "b":
            return np.array([False, True])
        raise ParameterError("classes", None, REMEDY)
    distinct = checked_classes(classes)
    kinds = {
        "text" if labels.kind in "US" else "number"
        for labels in (distinct.dtype, np.dtype(dtype))
        if labels.kind != "O"
    }
    if len(kinds) > 1:  # every label would count as the first class
        raise ParameterError("classes", distinct.dtype, f"labels of the type of y, {dtype}")
    return distinct


def checked_classes(classes: Any) -> Any:
    """Return two or more distinct public classes, in order."""
    try:
        distinct = np.unique(np.asarray(classes))
    except TypeError:
        raise ParameterError("classes", classes, "labels that have an order") from None
    if distinct.size != np.size(classes) or distinct.size < 2:
        raise ParameterError("classes", classes, "two or more distinct labels")
    return distinct


def _places(labels: Any, public: Any) -> NDArray[np.intp]:
    """Return the index of every label among the classes; 0 where it is none of them."""
    if "O" not in (labels.dtype.kind, public.dtype.kind):
        if public.size == 2:  # the quick way, for chunks whose labels are encoded in every round
            return np.asarray(labels == public[1], dtype=np.intp)
        nearest = np.searchsorted(public, labels).clip(max=public.size - 1)
        return np.where(public[nearest] == labels, nearest, 0)
    indices = {label: index for index, label in enumerate(public.tolist())}
    codes = np.zeros(len(labels), dtype=np.intp)
    for place, label in enumerate(labels.tolist()):
        with suppress(TypeError):  # a label that cannot be hashed is none of the classes
            codes[place] = indices.get(label, 0)
    return codes


def _classes_of_labels(labels: Any) -> tuple[Any, Any]:
    """Return the classes that occur, and the index of every label; refuse what is no class."""
    try:
        assert_all_finite(labels, input_name="y")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check_classification_targets(labels)
        classes, index = np.unique(labels, return_inverse=True)
    except (TypeError, ValueError) as error:
        # The messages of scikit-learn show labels, which are private: they are replaced.
        reason = "Unknown label type: "
        if "NaN" in str(error) or "infinity" in str(error):
            reason = "Input y contains NaN or infinity"
        raise ParameterError(
            "y", labels.dtype, f"labels that stand for classes. {reason}"
        ) from None
    if classes.size < 2:
        allowed = "labels of two classes or more. Classifier can't train on one class"
        raise ParameterError("y", "1 class", allowed)
    return classes, index.astype(float)
