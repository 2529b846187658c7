"""What scikit-learn is doing around a fit: repeating it, or fitting transformers in front of it.

Both are found in the stack of calls.  A routine that fits clones of a model spends a budget at
every fit.  Recognised are the public functions and classes of `FITS`: the number of fits follows
from their public parameters, read from the call that is running.  Any other routine of the packages
in `REPEATING` is recognised too, but not how often it fits.  In a worker of a routine, a thread or
a process, the stack begins at a private function of these packages: what is around the fit cannot
be seen there, so the fit is refused.

What a scaler or a selection of columns learns from private records is no part of the estimator's
plan: the fit would claim a privacy that the pipeline does not have.  So such a fit is refused, but
for transformers whose own fit looks at no value of the data, or at public features alone, or draws
on the ledger of the estimator.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from itertools import takewhile
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import get_tags

from accountant.errors import ParameterError
from algorithms.base.fit_data import fills_features

REMEDY = (
    "BoundsScaler(low, high) with public bounds, a PrivateScaler with the estimator's own ledger "
    "(pipeline.fit(X, y, step__ledger=...)), another transformer whose fit looks at no data "
    "(FunctionTransformer, PolynomialFeatures, OneHotEncoder(categories=[...], "
    "handle_unknown='ignore')), or FrozenEstimator(one that was fitted on public data)"
)
# Modules of scikit-learn whose routines fit clones of one model several times on one data set.
REPEATING = (
    "sklearn.model_selection.",
    "sklearn.feature_selection.",
    "sklearn.ensemble.",
    "sklearn.multiclass",
    "sklearn.multioutput",
    "sklearn.calibration",
    "sklearn.semi_supervised.",
    "sklearn.linear_model._ransac",
    "sklearn.impute._iterative",
)
# Packages whose transformers learn from a target without a tag that says so.
LEARNING_FROM_TARGETS = ("sklearn.feature_selection.", "sklearn.cross_decomposition.")
# Each of these routines calls this function for its fits, with the same parameters.
DELEGATES = {"cross_val_score": "cross_validate"}


class RepeatedFits(NamedTuple):
    """A routine that fits clones of a model, and how often; None where it does not say."""

    routine: str
    fits: int | None


def _is_a(value: Any, module: str, *names: str) -> bool:
    """Return whether a value is of these classes of a module of scikit-learn.

    Nothing is of a class that was not imported.  A first fit would take twice as long if it
    imported them all.
    """
    imported = vars(sys.modules.get(f"sklearn.{module}", object))
    return isinstance(value, tuple(imported[name] for name in names if name in imported))


def repeated_fits() -> RepeatedFits | None:
    """Return the routine of scikit-learn that is fitting clones now, by the stack of calls."""
    routine, fits = "", 1
    for name, call in _routines():
        routine = name
        if name not in DELEGATES:
            fits *= FITS[name](call) if name in FITS else 0
    return RepeatedFits(routine, fits or None) if routine else None


def _running_calls() -> Iterator[FrameType]:
    """Yield the calls that are running, from the inside out."""
    frame = inspect.currentframe()
    if frame is None:
        raise RuntimeError("refused, because this Python shows no calls: fits may be repeated")
    while frame is not None:
        yield frame
        frame = frame.f_back


def _routines() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the running routines from the inside out: their names, and their parameters."""
    for frame in _calls_of_routines():
        if not _is_public(frame):
            continue
        code, variables = frame.f_code, frame.f_locals
        if (holder := variables.get("self")) is None:
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            yield code.co_name, {name: variables[name] for name in names if name in variables}
        else:
            arguments = {name: variables.get(name) for name in ("X", "y", "params")}
            yield type(holder).__name__, arguments | holder.get_params(deep=False)


def _calls_of_routines() -> Iterator[FrameType]:
    """Yield the running calls of the packages in `REPEATING`, from the inside out."""
    for frame in _running_calls():
        if frame.f_globals.get("__name__", "").startswith(REPEATING):
            yield frame


def _is_public(frame: FrameType) -> bool:
    """Return whether a call is that of a public function, or of a method that fits."""
    name = frame.f_code.co_name
    if frame.f_locals.get("self") is None:
        return not name.startswith(("_", "<"))
    return name.startswith(("fit", "partial_fit"))


def _model_selection() -> Any:
    """Return the module of scikit-learn that has searches; first fits need not import it."""
    import sklearn.model_selection

    return sklearn.model_selection


def _folds(call: dict[str, Any]) -> int:
    """Return how many parts ``cv`` makes of the data; 0 where it cannot say that."""
    if isinstance(call["cv"], Iterator):  # counting would use up the iterator
        return 0
    # scikit-learn may already have replaced a number by a splitter.
    cv = _model_selection().check_cv(
        call["cv"], call["y"], classifier=is_classifier(call["estimator"])
    )
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
    "SelectFromModel": lambda call: 1,  # a clone is fitted once
    "permutation_test_score": lambda call: _folds(call) * (call["n_permutations"] + 1),
    "GridSearchCV": _search(lambda call: len(_model_selection().ParameterGrid(call["param_grid"]))),
    "RandomizedSearchCV": _search(
        lambda call: len(
            list(
                _model_selection().ParameterSampler(
                    call["param_distributions"], call["n_iter"], random_state=0
                )
            )
        )
    ),
}


def refuse_transformers_in_front(estimator: Any, ledger: Any = None) -> None:
    """Refuse a fit behind a transformer that was fitted on its private data.

    A `PrivateScaler` is let through where what it spent is added up with this fit: both draw on
    ``ledger``.
    A fit in a worker of a routine, as for ``n_jobs=2``, is refused too: its stack of calls shows
    neither the transformers in front nor the routine.

    Raises
    ------
    ParameterError
        With what can be put in its place; nothing is spent, read or drawn.
    """
    routine_calls = list(_calls_of_routines())
    if routine_calls and not _is_public(routine_calls[-1]):  # the last one is the outermost
        module = routine_calls[-1].f_globals["__name__"]
        description = f"workers of {module} that fit {type(estimator).__name__}"
        raise ParameterError("n_jobs", description, "None or 1 in every routine around the fit")
    of_features = reads_no_data if fills_features(estimator) else reads_public_features
    for frame in _running_calls():
        holder: Any = frame.f_locals.get("self") if frame.f_code.co_name.startswith("fit") else None
        learns, transformers = of_features, []
        if _is_a(holder, "pipeline", "Pipeline"):
            steps = (step for _, step in holder.steps[:-1])
            transformers = list(takewhile(lambda step: step is not estimator, steps))
        elif _is_a(holder, "compose", "TransformedTargetRegressor"):
            learns, transformers = reads_no_data, [holder.transformer]
        for transformer in transformers:
            paid = getattr(transformer, "is_paid_by", None)
            if not learns(transformer) and not (paid is not None and paid(ledger)):
                description = (
                    f"{type(transformer).__name__} in a {type(holder).__name__}, fitted on private "
                    f"data in front of {type(estimator).__name__}"
                )
                raise ParameterError("transformer", description, REMEDY)


def spending_behind(estimator: Any) -> list[Any]:
    """Return what the last steps spend of the pipelines that fit the estimator as another step.

    Raises
    ------
    ParameterError
        If a last step learns and has no spending: a model inside of it could spend all once more.
    """
    spending = []
    for frame in _running_calls():
        holder: Any = frame.f_locals.get("self") if frame.f_code.co_name.startswith("fit") else None
        if (
            not _is_a(holder, "pipeline", "Pipeline")
            or (last_step := holder.steps[-1][1]) is estimator
        ):
            continue
        if hasattr(last_step, "spending"):
            spending.append(last_step.spending())
        elif not reads_no_data(last_step):
            behind = f"a Budget, with {type(last_step).__name__} behind {type(estimator).__name__}"
            allowed = "a Filter or a Book where a private model is not itself the last step"
            raise ParameterError("ledger", behind, allowed)
    return spending


def reads_no_data(transformer: Any) -> bool:
    """Return whether a transformer is known to learn from shapes and its own parameters alone.

    A class says so with ``fit_reads_no_data = True``, or by scikit-learn's tag that no fit is
    required: each row is then transformed by itself.
    """
    if (parts := _parts(transformer)) is not None:
        return all(map(reads_no_data, parts))
    if getattr(type(transformer), "fit_reads_no_data", False) is True:
        return True
    if _is_a(transformer, "preprocessing", "OneHotEncoder", "OrdinalEncoder"):
        # An unknown category must not decide whether the fit is refused, and rare categories must
        # not be merged: both would depend on the data.
        rare = ("min_frequency", "max_categories")
        return (
            not isinstance(transformer.categories, str)
            and transformer.handle_unknown != "error"
            and all(getattr(transformer, setting) is None for setting in rare)
        )
    return (
        _is_a(transformer, "frozen", "FrozenEstimator")
        or _is_a(transformer, "preprocessing", "PolynomialFeatures")
        or not _tag(transformer, lambda tags: tags.requires_fit)
    )


def reads_public_features(transformer: Any) -> bool:
    """Return whether a transformer learns from features alone, where only labels are private.

    That is known of those of scikit-learn which take no target, and hold no estimator that might.
    """
    if (parts := _parts(transformer)) is not None:
        return all(map(reads_public_features, parts))
    if reads_no_data(transformer):
        return True
    inner = any(hasattr(value, "fit") for value in transformer.get_params(deep=False).values())
    module = type(transformer).__module__
    of_sklearn = module.startswith("sklearn.") and not module.startswith(LEARNING_FROM_TARGETS)
    return (
        of_sklearn and not inner and not _tag(transformer, lambda tags: tags.target_tags.required)
    )


def _parts(transformer: Any) -> list[Any] | None:
    """Return the transformers that one is made of; None where it is no composition."""
    if transformer is None or isinstance(transformer, str):  # "passthrough" or "drop"
        return []
    if _is_a(transformer, "pipeline", "Pipeline"):
        return [step for _, step in transformer.steps]
    if _is_a(transformer, "pipeline", "FeatureUnion"):
        return [part for _, part in transformer.transformer_list]
    if _is_a(transformer, "compose", "ColumnTransformer"):
        columns = [where for *_, where in transformer.transformers]
        # A selector of column types reads no values; any other function may read them.
        if all(
            _is_a(selector, "compose", "make_column_selector") or not callable(selector)
            for selector in columns
        ):
            return [*(part for _, part, _ in transformer.transformers), transformer.remainder]
    return None


def _tag(transformer: Any, of_tags: Callable[[Any], bool]) -> bool:
    """Return a tag of an estimator; True where it has none."""
    return of_tags(get_tags(transformer)) if hasattr(transformer, "__sklearn_tags__") else True
