"""The statistics of a frame that can be asked for.

References: Ghosh, Roughgarden & Sundararajan (2012); Canonne, Kamath & Steinke (2020).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from accountant.errors import ParameterError
from algorithms.frames.bases import Count, Statistic, Sum
from algorithms.frames.cells import Axis, checked_bins, keys_of
from algorithms.frames.conditions import Condition, checked_condition
from algorithms.frames.guarantees import Guarantee
from algorithms.frames.moments import Mean, Variance
from algorithms.frames.queries import FrameQuery


def count(
    column: str | None = None,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    scale: float | None = None,
    noise: str = "auto",
    where: Condition | None = None,
    by: str | Sequence[str] = (),
) -> FrameQuery:
    """Count rows.

    Noise is whole, and counts below 0 are given as 0.

    Parameters
    ----------
    column : str, optional
        A column that the rows must have a value of; all rows count without it.
    epsilon, delta : float, optional
        What it may cost; with delta above 0 Gaussian noise is tried too.
    rho : float, optional
        What it may cost as zero-concentrated privacy, instead of epsilon: by Gaussian noise.
    scale : float, optional
        The scale of the noise instead, in rows.
    noise : {"auto", "laplace", "gaussian"}
        Its kind; "auto" takes the one with the least error.
    where : Condition, optional
        Which rows count, such as ``col("age") >= 18``.
    by : str or list of str
        Columns of categories or flags: every combination of their labels has an answer.

    Returns
    -------
    FrameQuery
        To be planned and released.

    Examples
    --------
    >>> from algorithms.frames import Flag, Schema, count
    >>> schema = Schema({"owner": Flag()})
    >>> count(by="owner", epsilon=1.0).plan(schema).part.scale < 1.001
    True
    """
    asked = Guarantee(epsilon, delta, rho, scale, noise)
    return query_of(Count(column), by, where, asked)


def sum_(
    column: str,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    scale: float | None = None,
    noise: str = "auto",
    where: Condition | None = None,
    by: str | Sequence[str] = (),
) -> FrameQuery:
    """Sum the numbers of a column.

    Parameters
    ----------
    column : str
        A column of numbers.
    epsilon, delta : float, optional
        What it may cost; with delta above 0 Gaussian noise is tried too.
    rho : float, optional
        What it may cost as zero-concentrated privacy, instead of epsilon: by Gaussian noise.
    scale : float, optional
        The scale of the noise instead, in the units of the column.
    noise : {"auto", "laplace", "gaussian"}
        Its kind; "auto" takes the one with the least error.
    where : Condition, optional
        Which rows count, such as ``col("age") >= 18``.
    by : str or list of str
        Columns of categories or flags: every combination of their labels has an answer.

    Returns
    -------
    FrameQuery
        To be planned and released.

    Examples
    --------
    >>> from algorithms.frames import Integer, Schema, sum_
    >>> sum_("cars", epsilon=1.0).plan(Schema({"cars": Integer(0, 8)})).part.sensitivity
    8
    """
    asked = Guarantee(epsilon, delta, rho, scale, noise)
    return query_of(Sum(column), by, where, asked)


def mean(
    column: str,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    scale: float | None = None,
    noise: str = "auto",
    where: Condition | None = None,
    by: str | Sequence[str] = (),
) -> FrameQuery:
    """Take the mean of a column.

    The number of rows is private: what is released tells it apart from their sum, at no cost.

    Parameters
    ----------
    column : str
        A column of numbers.
    epsilon, delta : float, optional
        What it may cost; with delta above 0 Gaussian noise is tried too.
    rho : float, optional
        What it may cost as zero-concentrated privacy, instead of epsilon: by Gaussian noise.
    scale : float, optional
        The scale of the noise instead, in rows.
    noise : {"auto", "laplace", "gaussian"}
        Its kind; "auto" takes the one with the least error.
    where : Condition, optional
        Which rows count, such as ``col("age") >= 18``.
    by : str or list of str
        Columns of categories or flags: every combination of their labels has an answer.

    Returns
    -------
    FrameQuery
        To be planned and released.

    Examples
    --------
    >>> from algorithms.frames import Number, Schema, col, mean
    >>> query = mean("age", epsilon=0.5, where=col("age") >= 18)
    >>> print(query.explain(Schema({"age": Number(0, 100)})))
    mean of age where age >= 18
      age: clipped to 0 .. 100, rows without one do not count
      neighbours: one person more or less (each row is a person)
      DiscreteLaplace noise of scale 2 rows
      costs epsilon 0.5
    """
    asked = Guarantee(epsilon, delta, rho, scale, noise)
    return query_of(Mean(column), by, where, asked)


def variance(
    column: str,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    scale: float | None = None,
    noise: str = "auto",
    where: Condition | None = None,
    by: str | Sequence[str] = (),
) -> FrameQuery:
    """Take the variance of a column: the mean square of the distances from the mean.

    Parameters
    ----------
    column : str
        A column of numbers.
    epsilon, delta : float, optional
        What it may cost; with delta above 0 Gaussian noise is tried too.
    rho : float, optional
        What it may cost as zero-concentrated privacy, instead of epsilon: by Gaussian noise.
    scale : float, optional
        The scale of the noise instead, in rows.
    noise : {"auto", "laplace", "gaussian"}
        Its kind; "auto" takes the one with the least error.
    where : Condition, optional
        Which rows count, such as ``col("age") >= 18``.
    by : str or list of str
        Columns of categories or flags: every combination of their labels has an answer.

    Returns
    -------
    FrameQuery
        To be planned and released.

    Examples
    --------
    >>> from algorithms.frames import variance
    >>> print(variance("age", rho=0.1, by=["job"]))
    variance of age by job
    """
    asked = Guarantee(epsilon, delta, rho, scale, noise)
    return query_of(Variance(column), by, where, asked)


def histogram(
    column: str,
    bins: int | Sequence[float] | None = None,
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
        A column of numbers, or of categories.
    bins : int or list of float, optional
        How many bins of one width between the bounds of numbers, or the edges: each bin has its
        lower end, and the last one both.
    epsilon, delta : float, optional
        What it may cost; with delta above 0 Gaussian noise is tried too.
    rho : float, optional
        What it may cost as zero-concentrated privacy, instead of epsilon: by Gaussian noise.
    scale : float, optional
        The scale of the noise instead, in rows.
    noise : {"auto", "laplace", "gaussian"}
        Its kind; "auto" takes the one with the least error.
    where : Condition, optional
        Which rows count, such as ``col("age") >= 18``.

    Returns
    -------
    FrameQuery
        To be planned and released.

    Examples
    --------
    >>> from algorithms.frames import histogram
    >>> print(histogram("age", bins=[0, 18, 65, 120], epsilon=1.0))
    count by age
    """
    asked = Guarantee(epsilon, delta, rho, scale, noise)
    return query_of(Count(None), (Axis(column, checked_bins(bins)),), where, asked)


def contingency(
    columns: Sequence[str],
    bins: Mapping[str, int | Sequence[float]] | None = None,
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
        Columns of categories, flags, or of numbers with bins.
    bins : dict, optional
        The bins of columns of numbers by name, as in `histogram`.
    epsilon, delta : float, optional
        What it may cost; with delta above 0 Gaussian noise is tried too.
    rho : float, optional
        What it may cost as zero-concentrated privacy, instead of epsilon: by Gaussian noise.
    scale : float, optional
        The scale of the noise instead, in rows.
    noise : {"auto", "laplace", "gaussian"}
        Its kind; "auto" takes the one with the least error.
    where : Condition, optional
        Which rows count, such as ``col("age") >= 18``.

    Returns
    -------
    FrameQuery
        To be planned and released.

    Examples
    --------
    >>> from algorithms.frames import Category, Flag, Schema, contingency
    >>> schema = Schema({"job": Category(["cook", "nurse"]), "owner": Flag()})
    >>> contingency(["job", "owner"], epsilon=1.0).plan(schema).part.sensitivity
    1
    """
    asked = Guarantee(epsilon, delta, rho, scale, noise)
    given = dict(bins or {})
    keys = tuple(
        Axis(key.column, checked_bins(given.pop(key.column, None))) for key in keys_of(columns)
    )
    if given or not keys:
        raise ParameterError("bins", sorted(given), f"those of some of the columns {columns!r}")
    return query_of(Count(None), keys, where, asked)


def query_of(
    statistic: Statistic, by: Any, where: Condition | None, asked: Guarantee
) -> FrameQuery:
    """Return a query; ``by`` are names of columns, or keys."""
    keys = by if isinstance(by, tuple) and by and isinstance(by[0], Axis) else keys_of(by)
    return FrameQuery(statistic, keys, None if where is None else checked_condition(where), asked)
