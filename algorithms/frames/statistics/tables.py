"""Tables of a frame: how many rows are in each bin, or have each combination of labels.

Each function returns a question, whose plan and release are methods of it.  A call with wrong
arguments is answered with an example of a right one (`answered`).

References: Ghosh, Roughgarden & Sundararajan (2012); Canonne, Kamath & Steinke (2020).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from accountant.errors import ParameterError
from algorithms.frames.arguments import answered
from algorithms.frames.bases import Count
from algorithms.frames.cells import Axis, checked_bins, keys_of
from algorithms.frames.conditions import Condition, checked_where
from algorithms.frames.guarantees import Guarantee
from algorithms.frames.queries import FrameQuery


@answered("histogram('age', bins=10, epsilon=1.0)")
def histogram(
    column: str,
    bins: int | str | Sequence[Any] | None = None,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    scale: float | None = None,
    noise: str = "auto",
    where: Condition | None = None,
) -> FrameQuery:
    """Count the rows in public bins of a column, or with each of its labels.

    Parameters
    ----------
    column : str
        A column of numbers, dates or categories.
    bins : int, list of float or of dates, or str, optional
        How many bins of one width between the bounds of numbers, or the edges: each bin has its
        lower end, and the last one both.  Of dates "day", "week", "month", "quarter" or "year".
    epsilon, delta : float, optional
        The privacy that the answer may cost; with delta above 0 Gaussian noise is tried too.
    rho : float, optional
        The privacy that it may cost as zero-concentrated rho, in place of epsilon and delta; the
        noise is then Gaussian.
    scale : float, optional
        The scale of the noise, in rows, in place of a cost.
    noise : {"auto", "laplace", "gaussian"}
        Kind of the noise; "auto" takes the one with the least error.
    where : Condition, optional
        Which rows count, such as ``col("age") >= 18``.

    Returns
    -------
    FrameQuery
        A question that is still to be planned and released.

    Examples
    --------
    >>> from algorithms.frames import histogram
    >>> print(histogram("age", bins=[0, 18, 65, 120], epsilon=1.0))
    count by age (bins 0.0, 18.0, 65.0, 120.0)
    """
    guarantee = Guarantee(epsilon, delta, rho, scale, noise)
    key = Axis(column, checked_bins(bins))
    return FrameQuery(Count(None), (key,), checked_where(where), guarantee)


@answered("contingency(['job', 'owner'], epsilon=1.0)")
def contingency(
    columns: Sequence[str],
    bins: Mapping[str, int | str | Sequence[Any]] | None = None,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    scale: float | None = None,
    noise: str = "auto",
    where: Condition | None = None,
) -> FrameQuery:
    """Count the rows with each combination of labels or bins.

    Sums over an axis are the counts of the other columns, so all margins add up.

    Parameters
    ----------
    columns : list of str
        Columns of categories, flags, or of numbers and dates with bins.
    bins : dict, optional
        The bins of columns of numbers and dates by name, as in `histogram`.
    epsilon, delta : float, optional
        The privacy that the answer may cost; with delta above 0 Gaussian noise is tried too.
    rho : float, optional
        The privacy that it may cost as zero-concentrated rho, in place of epsilon and delta; the
        noise is then Gaussian.
    scale : float, optional
        The scale of the noise, in rows, in place of a cost.
    noise : {"auto", "laplace", "gaussian"}
        Kind of the noise; "auto" takes the one with the least error.
    where : Condition, optional
        Which rows count, such as ``col("age") >= 18``.

    Returns
    -------
    FrameQuery
        A question that is still to be planned and released.

    Examples
    --------
    >>> from algorithms.frames import Category, Flag, Schema, contingency
    >>> schema = Schema({"job": Category(["cook", "nurse"]), "owner": Flag()})
    >>> contingency(["job", "owner"], epsilon=1.0).plan(schema).part.sensitivity
    1
    """
    guarantee = Guarantee(epsilon, delta, rho, scale, noise)
    bins_by_column = dict(bins or {})
    keys = tuple(
        Axis(key.column, checked_bins(bins_by_column.pop(key.column, None)))
        for key in keys_of(columns)
    )
    if bins_by_column or not keys:
        raise ParameterError(
            "bins", sorted(bins_by_column), f"those of some of the columns {columns!r}"
        )
    return FrameQuery(Count(None), keys, checked_where(where), guarantee)
