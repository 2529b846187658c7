"""The kinds `Flag` and `Category`: columns of few values, all of which are public."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, final

import narwhals as nw

from accountant.errors import ParameterError
from algorithms.frames.arguments import answered_class
from algorithms.frames.columns.kinds import (
    DROP,
    FLAGS,
    NUMBERS,
    SURROGATES,
    TEXTS,
    ColumnKind,
    missing_in_words,
)


@final
@answered_class("Flag()")
@dataclass(frozen=True, slots=True)
class Flag(ColumnKind):
    """A column of True and False.

    Parameters
    ----------
    missing : "drop" or bool
        Whether a row without a value is left out, or the value that it counts as.

    Examples
    --------
    >>> from algorithms.frames import Flag
    >>> Flag(missing=False).labels
    (False, True)
    """

    types: ClassVar[str] = FLAGS
    kind: ClassVar[str] = "flag"

    missing: bool | str = DROP

    def __post_init__(self) -> None:
        if self.missing != DROP and not isinstance(self.missing, bool):
            raise ParameterError("missing", self.missing, '"drop", True or False')

    @property
    def labels(self) -> tuple[bool, ...]:
        """False and True."""
        return False, True

    @property
    def rule(self) -> str:
        """How values are read and replaced before they count, in words."""
        return f"False or True, {missing_in_words(self.missing)}"


@final
@answered_class("Category(['cook', 'nurse'])")
@dataclass(frozen=True, slots=True)
class Category(ColumnKind):
    """A column of labels, all known without the data; other labels are missing values.

    Parameters
    ----------
    categories : list of str or int
        The public labels, of one type.
    missing : "drop" or str or int
        Whether a row with another label or none is left out, or the label that it counts as, which
        is one more where it is not among ``categories``.

    Examples
    --------
    >>> from algorithms.frames import Category
    >>> Category(["cook", "nurse"], missing="other").labels
    ('cook', 'nurse', 'other')
    """

    kind: ClassVar[str] = "category"

    categories: tuple[str | int, ...]
    missing: str | int = DROP

    def __init__(self, categories: Iterable[str | int], missing: str | int = DROP) -> None:
        allowed = 'a list of distinct labels, all str or all int, none of them "drop"'
        if isinstance(categories, str):
            raise ParameterError("categories", categories, allowed)
        labels = tuple(categories)
        kinds = {type(label) for label in labels}
        if len(kinds) != 1 or not kinds <= {str, int} or len(set(labels)) < len(labels):
            raise ParameterError("categories", labels, allowed)
        if DROP in labels:
            raise ParameterError("categories", labels, allowed)
        if missing != DROP and type(missing) not in kinds:
            raise ParameterError("missing", missing, '"drop", or a label of the same type')
        for label in (*labels, missing):
            if isinstance(label, str) and SURROGATES.search(label):
                raise ParameterError("categories", label, "of texts that UTF-8 can encode")
        object.__setattr__(self, "categories", labels)
        object.__setattr__(self, "missing", missing)

    def fits(self, type_name: str) -> bool:
        """Return whether a column of this type may hold these labels."""
        types = TEXTS if isinstance(self.categories[0], str) else NUMBERS
        return re.fullmatch(rf"({types})\d*", type_name.lower()) is not None

    @property
    def labels(self) -> tuple[str | int, ...]:
        """The public labels; the label of missing values comes last where it is a further one."""
        complete = self.missing == DROP or self.missing in self.categories
        return self.categories if complete else (*self.categories, self.missing)

    def present(self, column: nw.Expr) -> nw.Expr:
        """Return where a row has one of the labels."""
        return column.is_in(list(self.texts))

    @property
    def rule(self) -> str:
        """How values are read and replaced before they count, in words."""
        missing_rule = missing_in_words(self.missing).replace("without one", "with none of them")
        return f"{len(self.categories)} public labels, {missing_rule}"
