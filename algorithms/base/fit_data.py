"""What a fit is given: checked features and targets, shapes, and sources of noise.

A fit that refuses one record's missing value tells that this record is there.  So a private number
that is missing (NaN, or no number at all) counts as 0, and an infinite one as the largest float of
its sign, before the estimator clips it to its public bounds.  Public numbers, and those of fits
without privacy, are refused as scikit-learn refuses them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, check_X_y, validate_data

from accountant.domains import IntegerRange, OneOf
from accountant.errors import ParameterError
from accountant.ledger.chunks import Chunks
from accountant.ledger.worker_chunks import WorkerChunks
from accountant.numerics import Array
from accountant.plans.adjacency import Adjacency
from accountant.randomness import Rng, generator

Encoding = Callable[..., tuple[Any, Any]]  # of labels: see `algorithms.base.binary_labels`
PUBLIC, PRIVATE = "public", "private"
BOUNDS = OneOf((PUBLIC, PRIVATE))  # what is known of the bounds of columns
# What the names of types of columns begin with, in lower case, that hold no numbers.
NO_NUMBERS = (
    "str", "large_string", "binary", "cat", "enum", "list", "date", "time", "period", "interval",
    "duration",
)  # fmt: skip


def finds_bounds(estimator: Any) -> bool:
    """Return whether a fit finds its bounds privately; without privacy the declared ones hold."""
    private = BOUNDS.check("bounds", estimator.bounds) == PRIVATE
    return private and not _is_not_private(estimator)


def fills_features(estimator: Any) -> bool:
    """Return whether features are private, so that a public number replaces missing ones."""
    has_public_features = getattr(estimator, "neighbours", None) == Adjacency.LABEL_REPLACE
    return not _is_not_private(estimator) and not has_public_features


def _is_not_private(estimator: Any) -> bool:
    """Return whether a fit promises no privacy, and so may look at what it likes."""
    return getattr(estimator, "non_private", False) is True


def validated_labelled_data(
    estimator: Any, X: Any, y: Any, encode: Encoding
) -> tuple[Any, Any, Any]:
    """Return the public classes, checked features, and labels as numbers.

    Chunks are pairs of features and labels.  They are returned as the features, and the labels are
    None.
    """
    declared = estimator.classes, _is_not_private(estimator)
    if not isinstance(X, Chunks):
        if y is None:
            validated_fit_data(estimator, X, y)  # scikit-learn's own error
        classes, codes = encode(y, *declared)
        return (classes, *validated_fit_data(estimator, X, codes))
    X, _ = validated_fit_data(estimator, X, y, labels=True)
    labels = split_pairs(X)[1] if declared == (None, True) else np.zeros(0)
    classes, _ = encode(labels, *declared)
    return classes, X.mapped(partial(_encoded_pair, encode, classes), X.shape), None


def _encoded_pair(encode: Encoding, classes: Any, pair: tuple[Any, Array]) -> tuple[Any, Array]:
    return pair[0], encode(pair[1], classes)[1]


def validated_fit_data(
    estimator: Any,
    X: Any,
    y: Any,
    single_pass: bool = False,
    on_workers: bool = False,
    labels: bool = False,
) -> tuple[Any, Any]:
    """Return checked features and targets of a fit; `Chunks` of both are given as X alone.

    Chunks are checked when they are read.  ``single_pass`` says that the fit reads them once, and
    ``on_workers`` that it asks them in blocks of users only, so that workers may hold them.
    Targets that are ``labels`` stay as they are.
    """
    if isinstance(X, WorkerChunks) and not on_workers:
        allowed = "an array or Chunks: this fit reads rows here, not where workers hold them"
        raise ParameterError("X", X, allowed)
    if isinstance(X, Chunks | WorkerChunks):
        if y is not None:
            raise ParameterError("y", type(y), "None: the chunks are pairs of features and targets")
        if len(X.shape) != 2:
            raise ParameterError("X", X, "chunks of shape (users, features)")
        if isinstance(X, Chunks) and not (single_pass or X.restarts):
            allowed = "chunks of a function that starts anew: these data are read more than once"
            raise ParameterError("X", X, allowed)
        estimator.n_features_in_ = X.shape[1]
        # whether features, and whether targets, are filled
        fills = fills_features(estimator), not (labels or _is_not_private(estimator))
        pairs = X.mapped(partial(_pair_of_floats, fills), X.shape)
        if isinstance(pairs, Chunks):
            pairs.takes_arrays = True
        return pairs, None
    if hasattr(y, "tocsr"):
        raise ParameterError("y", type(y), "an array of numbers, not a sparse matrix")
    X, y = validated_data(
        estimator, X, y, dtype=[np.float64, np.float32], y_numeric=True, accept_sparse="csr"
    )
    return X, y


def _pair_of_floats(fills: tuple[bool, bool], piece: Any) -> tuple[Any, Array]:
    """Return a chunk of users as floats; ``fills`` says which of its two arrays are filled."""
    allowed = "a pair of numbers: features, one row a user, and a target for each row"
    if not isinstance(piece, tuple) or len(piece) != 2:
        raise ParameterError("piece", type(piece), allowed)
    x, y = (filled(array) if fill else array for array, fill in zip(piece, fills, strict=True))
    x, y = x if hasattr(x, "tocsr") else np.asarray(x), np.asarray(y)
    if x.dtype.kind not in "biuf" or y.dtype.kind not in "biuf" or y.shape != x.shape[:1]:
        shapes = f"{x.dtype}{x.shape} and {y.dtype}{y.shape}"
        raise ParameterError("piece", shapes, allowed)
    return x.astype(np.float64, copy=False), y.astype(np.float64, copy=False)


def with_weights(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """Return the data of a fit: X, with targets and weights where they are given.

    Weights are numbers, one a record; a missing one counts as 0.
    """
    if sample_weight is None:
        return X if y is None else (X, y)
    numbers: Array = filled(sample_weight)
    if numbers.shape != (X.shape[0],):
        raise ParameterError("sample_weight", numbers.shape, "numbers, one for each record")
    if _is_not_private(estimator) and not numbers.any():
        allowed = "weights that are not all zero. Sample weights must contain a non-zero number"
        raise ParameterError("sample_weight", 0, allowed)
    weights = numbers.astype(np.float64)
    return X.beside(weights) if y is None else (X, y, weights)


def split_pairs(pairs: Chunks) -> tuple[Chunks, Array]:
    """Return features as chunks, and all targets in memory."""
    targets = pairs.mapped(itemgetter(1), pairs.shape[:1])
    return pairs.mapped(itemgetter(0), pairs.shape), targets[:]


def validated_data(estimator: Any, *data: Any, **rules: Any) -> Any:
    """Return data after scikit-learn's check; its errors become one line without any data."""
    if any(isinstance(part, Chunks) for part in data):
        raise ParameterError(
            "X", data[0], "an array in memory, not chunks: all data are read at once"
        )
    try:
        if len(data) > 1 and data[1] is not None and not _is_not_private(estimator):
            data = data[0], filled(data[1]), *data[2:]  # private targets
        if fills_features(estimator):
            # `validate_data` would refuse missing features.  So its two steps are made one by one:
            # the check of the numbers, after they are filled, and then that of the names.
            X, *y = data
            reset = rules.pop("reset", True)
            rules |= {"ensure_all_finite": False, "estimator": estimator}
            checked = check_X_y(filled(X), *y, **rules) if y else check_array(filled(X), **rules)
            validate_data(estimator, X, *y, reset=reset, skip_check_array=True)
        else:
            checked = validate_data(estimator, *data, **rules)
        if isinstance(checked, tuple):
            return checked[0], np.asarray(checked[1], dtype=np.float64)
    except ParameterError:
        raise
    except ValueError as error:
        # The message must not quote numbers or strings of the data.
        message = re.sub(r"array=.*?(?=Reshape|$)", "", str(error), flags=re.DOTALL)
        quoting = r"(could not convert string to float|Complex data not supported).*"
        message = " ".join(re.sub(quoting, r"\1", message, flags=re.DOTALL).split())
        allowed = "finite numbers, one row of features a record"
        raise ParameterError("X, y", message, allowed) from None
    return checked


def generator_of(random_state: Any) -> Rng:
    """Return scikit-learn's ``random_state`` as an ``rng``; a legacy RandomState gives a seed.

    A pickled Generator draws the same noise in every process.
    """
    if random_state is None:
        return None
    if isinstance(random_state, np.random.RandomState):
        seed_words = random_state.randint(2**32, size=8, dtype=np.uint64)
        random_state = np.random.default_rng(seed_words.tolist())
    try:
        return generator(random_state)
    except ParameterError as error:
        raise ParameterError("random_state", random_state, error.allowed) from None


def checked_shape(shape: Any) -> tuple[int, int]:
    """Return (records, features), or raise `ParameterError`."""
    if not isinstance(shape, tuple) or len(shape) != 2:
        raise ParameterError("shape", shape, "(records, features)")
    records, features = (IntegerRange(1).check("shape", n) for n in shape)
    return records, features


def cells_of(data: Any) -> Any:
    """Return data as an array whose type does not depend on single values.

    Arrays and frames have a type of their own, which is public.  The type of a list would be that
    of its odd cell, so its cells stay objects.
    """
    return np.asarray(data, dtype=object) if isinstance(data, (list, tuple)) else np.asarray(data)


def filled(data: Any) -> Any:
    """Return numbers, dense or sparse, with a public number in place of each missing one.

    Text is refused where the type of an array or of a column says that there is nothing else.
    """
    if hasattr(data, "tocsr"):
        rows = data.tocsr()
        finite_numbers = _finite(rows.data)
        if finite_numbers is rows.data:
            return data
        rows = rows.copy()
        rows.data = finite_numbers
        return rows
    cells, types = cells_of(data), getattr(data, "dtypes", ())
    columns = types if hasattr(types, "__iter__") else (types,)
    if cells.dtype.kind not in "biufO" or any(
        str(dtype).lower().startswith(NO_NUMBERS) for dtype in columns
    ):
        reason = "Complex data not supported" if cells.dtype.kind == "c" else "encode text first"
        raise ParameterError("X, y", cells.dtype, f"numbers. {reason}")
    return _finite(numbers_of(cells) if cells.dtype.kind == "O" else cells)


def _finite(cells: Array) -> Array:
    """Return numbers with 0 for each NaN, and the largest float of its sign for an infinite one.

    Each is looked at only if their sum is not finite.
    """
    if cells.dtype.kind != "f":
        return cells
    with np.errstate(over="ignore", invalid="ignore"):
        if cells.dtype.itemsize > np.dtype(float).itemsize:  # it holds numbers beyond all floats
            cells = cells.astype(float)
        if np.isfinite(cells.sum()) or np.isfinite(cells).all():
            return cells
    finite: Array = np.nan_to_num(cells.astype(float, copy=False), nan=0.0)
    return finite


def numbers_of(cells: Any) -> Array:
    """Return objects as floats; NaN replaces an object that is not a number."""
    numbers = np.array([_number(cell) for cell in cells.ravel().tolist()], dtype=np.float64)
    return numbers.reshape(cells.shape)


def _number(cell: Any) -> float:
    """Return a cell as a float; NaN where it is no number."""
    try:
        return float(cell)
    except (TypeError, ValueError):
        return float("nan")
    except OverflowError:  # a whole number beyond all floats
        return float("inf") if cell > 0 else float("-inf")
