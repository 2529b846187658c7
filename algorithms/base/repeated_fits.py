"""Which routine of scikit-learn is fitting clones of a model, and how often it will.

Recognised are the public functions and classes of `FITS`: the number follows from their public
parameters, read from the call that is running.  Any other routine of the packages in `REPEATING` is
recognised too, but not how often it fits.  `tests/algorithms/base/test_repeated_fits.py` compares
every number with the fits that scikit-learn makes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import ParameterGrid, ParameterSampler, check_cv

# Modules of scikit-learn whose routines fit clones of one model several times on one data set.
REPEATING = (
    "sklearn.model_selection.",
    "sklearn.feature_selection.",
    "sklearn.ensemble.",
    "sklearn.multiclass",
    "sklearn.multioutput",
    "sklearn.calibration",
)
# Each of these routines calls this function for its fits, with the same parameters.
DELEGATES = {"cross_val_score": "cross_validate"}


class RepeatedFits(NamedTuple):
    """A routine that fits clones of a model, and how often; None where it does not say."""

    routine: str
    fits: int | None


def repeated_fits() -> RepeatedFits | None:
    """Return the routine of scikit-learn that is fitting clones now, by the stack of calls."""
    routine, fits = "", 1
    for name, call in _routines(sys._getframe(1)):  # noqa: SLF001  # no public name
        routine = name
        if name not in DELEGATES:
            fits *= FITS[name](call) if name in FITS else 0
    return RepeatedFits(routine, fits or None) if routine else None


def _routines(frame: FrameType | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the running routines from the inside out: their names, and their parameters."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith(REPEATING):
            code, variables = frame.f_code, frame.f_locals
            holder = variables.get("self")
            if holder is None and not code.co_name.startswith(("_", "<")):
                names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
                yield code.co_name, {name: variables[name] for name in names if name in variables}
            elif holder is not None and code.co_name.startswith("fit"):
                arguments = {name: variables.get(name) for name in ("X", "y", "params")}
                yield type(holder).__name__, arguments | holder.get_params(deep=False)
        frame = frame.f_back


def _folds(call: dict[str, Any]) -> int:
    """Return how many parts ``cv`` makes of the data; 0 where it cannot say that."""
    if isinstance(call["cv"], Iterator):  # counting would use up the iterator
        return 0
    # scikit-learn may already have replaced a number by a splitter.
    cv = check_cv(call["cv"], call["y"], classifier=is_classifier(call["estimator"]))
    groups = call.get("groups", (call.get("params") or {}).get("groups"))
    try:
        return int(cv.get_n_splits(call["X"], call["y"], groups))
    except ValueError:  # the splitter needs groups, which are not among the parameters
        return 0


def _search(count: Callable[[dict[str, Any]], int]) -> Callable[[dict[str, Any]], int]:
    """Return the fits of a search: the folds of each setting, and one fit of the best setting."""

    def fits(call: dict[str, Any]) -> int:
        tried = _folds(call) * count(call)
        return tried + bool(tried and call["refit"])

    return fits


FITS: dict[str, Callable[[dict[str, Any]], int]] = {
    "cross_validate": _folds,
    "cross_val_predict": _folds,
    "learning_curve": lambda call: _folds(call) * len(np.unique(call["train_sizes"])),
    "validation_curve": lambda call: _folds(call) * len(call["param_range"]),
    "permutation_test_score": lambda call: _folds(call) * (call["n_permutations"] + 1),
    "GridSearchCV": _search(lambda call: len(ParameterGrid(call["param_grid"]))),
    "RandomizedSearchCV": _search(
        lambda call: len(
            list(ParameterSampler(call["param_distributions"], call["n_iter"], random_state=0))
        )
    ),
}
