"""An answer that came in several releases: values, and the ends that were released with them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.errors import ParameterError
from accountant.numerics import Array
from algorithms.frames.framed import FramedAnswer, with_ends


@final
@dataclass(frozen=True, slots=True, eq=False)
class ListedAnswer(FramedAnswer):
    """Released quantiles, or labels with counts.

    Parameters
    ----------
    asked : str
        What was asked, in words.
    labels : dict
        The columns that say what each value is of.
    name : str
        What the values are.
    value : Any
        A number, or an array of them.
    ends : numpy.ndarray or None
        Lower and upper ends along the last axis; None if none were asked for.
    level : float or None
        Chance that an interval covers what the frame has.
    noise_scale : float
        The scale of the noise, in rows or in persons.
    backend : str
        The library of the frame.

    Examples
    --------
    >>> import pandas as pd
    >>> from accountant import Budget, Filter
    >>> from algorithms.frames import Integer, Schema, median
    >>> schema = Schema({"age": Integer(0, 100)})
    >>> ledger = Filter(pd.DataFrame({"age": range(100)}).sample(9000, replace=True,
    ...                 random_state=0), Budget(1.0), rng=0)
    >>> answer = median("age", epsilon=1.0).release(ledger, schema)
    >>> abs(answer.value - 49) <= 2, answer.interval().shape
    (True, (2,))
    """

    asked: str
    labels: Mapping[str, Sequence[Any]]
    name: str
    value: Any
    ends: Array | None
    level: float | None
    noise_scale: float
    backend: str

    def interval(self, level: float | None = None) -> Array:
        """Return an interval for what the frame itself has, clipped and cut as declared.

        Parameters
        ----------
        level : float, optional
            The level of the question: ends of another one were not released.

        Returns
        -------
        numpy.ndarray
            Lower and upper end, along the last axis; to nearest.
        """
        if self.ends is None or level not in {None, self.level}:
            allowed = f"{self.level}, as asked: give the question level=... for another one"
            raise ParameterError("level", level, allowed)
        return self.ends

    def _columns(self) -> dict[str, list[Any]]:
        labels = {name: list(column) for name, column in self.labels.items()}
        return with_ends(labels, self.name, self.value, self.ends)

    def __repr__(self) -> str:
        if np.ndim(self.value):
            return f"ListedAnswer({self.asked}: {np.size(self.value)} values)"
        if self.ends is None:
            return f"ListedAnswer({self.asked}: {shown(self.value)})"
        within = f"{self.level:.6g} within {shown(self.ends[0])} .. {shown(self.ends[1])}"
        return f"ListedAnswer({self.asked}: {shown(self.value)}, {within})"


def shown(value: Any) -> str:
    """Return a number, or a date, in few digits."""
    return str(value) if isinstance(value, dt.date | np.datetime64) else f"{value:.6g}"
