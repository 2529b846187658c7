"""Transformers that scikit-learn fits on the same data in front of a private estimator.

What a scaler or a selection of columns learns from private records is no part of the estimator's
plan: the fit would claim a privacy that the pipeline does not have.  So such a fit is refused, but
for transformers whose own fit looks at no value of the data, or at public features alone.  The
pipelines are found in the stack of calls, as routines that fit clones are (`repeated_fits`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, PolynomialFeatures
from sklearn.utils import get_tags

from accountant.errors import ParameterError
from algorithms.base.fit_data import fills_features

REMEDY = (
    "BoundsScaler(low, high) with public bounds, or another transformer whose fit looks at no data "
    "(FunctionTransformer, PolynomialFeatures, OneHotEncoder(categories=[...], "
    "handle_unknown='ignore')), or FrozenEstimator(one that was fitted on public data)"
)


def refuse_transformers_in_front(estimator: Any) -> None:
    """Refuse a fit behind a transformer that was fitted on its private data.

    Raises
    ------
    ParameterError
        With what can be put in its place; nothing is spent, read or drawn.
    """
    of_features = reads_no_data if fills_features(estimator) else reads_public_features
    for holder in _running_fits(sys._getframe(1)):  # noqa: SLF001  # no public name
        learns, transformers = of_features, []
        if isinstance(holder, Pipeline):
            transformers = [step for _, step in holder.steps[:-1]]
        elif isinstance(holder, TransformedTargetRegressor):
            learns, transformers = reads_no_data, [holder.transformer]
        for transformer in transformers:
            if not learns(transformer):
                description = (
                    f"{type(transformer).__name__} in a {type(holder).__name__}, fitted on private "
                    f"data in front of {type(estimator).__name__}"
                )
                raise ParameterError("transformer", description, REMEDY)


def _running_fits(frame: FrameType | None) -> Iterator[Any]:
    """Yield the estimators of scikit-learn that are being fitted now, from the inside out."""
    while frame is not None:
        holder = frame.f_locals.get("self")
        if isinstance(holder, BaseEstimator) and frame.f_code.co_name.startswith("fit"):
            yield holder
        frame = frame.f_back


def reads_no_data(transformer: Any) -> bool:
    """Return whether a transformer is known to learn from shapes and its own parameters alone.

    A class says so with ``fit_reads_no_data = True``, or by scikit-learn's tag that no fit is
    required: each row is then transformed by itself.
    """
    if (parts := _parts(transformer)) is not None:
        return all(map(reads_no_data, parts))
    if getattr(type(transformer), "fit_reads_no_data", False) is True:
        return True
    if isinstance(transformer, (OneHotEncoder, OrdinalEncoder)):
        # An unknown category must not decide whether the fit is refused, and rare categories must
        # not be merged: both would depend on the data.
        rare = ("min_frequency", "max_categories")
        return (
            not isinstance(transformer.categories, str)
            and transformer.handle_unknown != "error"
            and all(getattr(transformer, setting) is None for setting in rare)
        )
    return isinstance(transformer, (FrozenEstimator, PolynomialFeatures)) or not _tag(
        transformer, lambda tags: tags.requires_fit
    )


def reads_public_features(transformer: Any) -> bool:
    """Return whether a transformer learns from features alone, where only labels are private.

    That is known of those of scikit-learn which take no target, and hold no estimator that might;
    selections of features may take one without a tag that says so.
    """
    if (parts := _parts(transformer)) is not None:
        return all(map(reads_public_features, parts))
    if reads_no_data(transformer):
        return True
    inner = any(hasattr(value, "fit") for value in transformer.get_params(deep=False).values())
    module = type(transformer).__module__
    of_sklearn = module.startswith("sklearn.") and not module.startswith(
        "sklearn.feature_selection"
    )
    return (
        of_sklearn and not inner and not _tag(transformer, lambda tags: tags.target_tags.required)
    )


def _parts(transformer: Any) -> list[Any] | None:
    """Return the transformers that one is made of; None where it is no composition."""
    if transformer is None or isinstance(transformer, str):  # "passthrough" or "drop"
        return []
    if isinstance(transformer, Pipeline):
        return [step for _, step in transformer.steps]
    if isinstance(transformer, FeatureUnion):
        return [part for _, part in transformer.transformer_list]
    if isinstance(transformer, ColumnTransformer):
        columns = [where for *_, where in transformer.transformers]
        # A selector of column types reads no values; any other function may read them.
        if all(
            isinstance(selector, make_column_selector) or not callable(selector)
            for selector in columns
        ):
            return [*(part for _, part, _ in transformer.transformers), transformer.remainder]
    return None


def _tag(transformer: Any, of_tags: Callable[[Any], bool]) -> bool:
    """Return a tag of an estimator; True where it has none."""
    return of_tags(get_tags(transformer)) if hasattr(transformer, "__sklearn_tags__") else True
