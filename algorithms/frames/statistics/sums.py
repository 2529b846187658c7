"""The statistics of a frame that add up its rows: counts, sums, means, shares and variances.

Each function returns a question, whose plan and release are methods of it.  A call with wrong
arguments is answered with an example of a right one (`answered`).

References: Ghosh, Roughgarden & Sundararajan (2012); Canonne, Kamath & Steinke (2020).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from algorithms.frames.arguments import answered
from algorithms.frames.bases import Count, Persons, Sum
from algorithms.frames.cells import keys_of
from algorithms.frames.conditions import Condition, checked_where
from algorithms.frames.guarantees import Guarantee
from algorithms.frames.moments import Deviation, Mean, Share, Variance
from algorithms.frames.queries import FrameQuery


@answered("count(epsilon=1.0)")
def count(
    column: str | None = None,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    scale: float | None = None,
    noise: str = "auto",
    where: Condition | None = None,
    by: str | Sequence[str] | Mapping[str, Any] = (),
) -> FrameQuery:
    """Count rows.

    Noise is whole, and counts below 0 are given as 0.

    Parameters
    ----------
    column : str, optional
        A column that the rows must have a value of; all rows count without it.
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
    by : str, list of str or dict
        Columns of categories or flags: every combination of their labels has an answer.  A dict
        gives columns of numbers and dates their bins, as in `histogram`.

    Returns
    -------
    FrameQuery
        A question that is still to be planned and released.

    Examples
    --------
    >>> from algorithms.frames import Flag, Schema, count
    >>> schema = Schema({"owner": Flag()})
    >>> count(by="owner", epsilon=1.0).plan(schema).part.scale < 1.001
    True
    """
    guarantee = Guarantee(epsilon, delta, rho, scale, noise)
    return FrameQuery(Count(column), keys_of(by), checked_where(where), guarantee)


@answered("sum_('visits', epsilon=1.0)")
def sum_(
    column: str,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    scale: float | None = None,
    noise: str = "auto",
    where: Condition | None = None,
    by: str | Sequence[str] | Mapping[str, Any] = (),
) -> FrameQuery:
    """Sum the numbers of a column.

    Parameters
    ----------
    column : str
        A column of numbers.
    epsilon, delta : float, optional
        The privacy that the answer may cost; with delta above 0 Gaussian noise is tried too.
    rho : float, optional
        The privacy that it may cost as zero-concentrated rho, in place of epsilon and delta; the
        noise is then Gaussian.
    scale : float, optional
        The scale of the noise, in the units of the column, in place of a cost.
    noise : {"auto", "laplace", "gaussian"}
        Kind of the noise; "auto" takes the one with the least error.
    where : Condition, optional
        Which rows count, such as ``col("age") >= 18``.
    by : str, list of str or dict
        Columns of categories or flags: every combination of their labels has an answer.  A dict
        gives columns of numbers and dates their bins, as in `histogram`.

    Returns
    -------
    FrameQuery
        A question that is still to be planned and released.

    Examples
    --------
    >>> from algorithms.frames import Integer, Schema, sum_
    >>> sum_("cars", epsilon=1.0).plan(Schema({"cars": Integer(0, 8)})).part.sensitivity
    8
    """
    guarantee = Guarantee(epsilon, delta, rho, scale, noise)
    return FrameQuery(Sum(column), keys_of(by), checked_where(where), guarantee)


@answered("mean('age', epsilon=1.0)")
def mean(
    column: str,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    scale: float | None = None,
    noise: str = "auto",
    where: Condition | None = None,
    by: str | Sequence[str] | Mapping[str, Any] = (),
) -> FrameQuery:
    """Take the mean of a column.

    The number of rows is private: what is released tells it apart from their sum, at no cost.

    Parameters
    ----------
    column : str
        A column of numbers.
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
    by : str, list of str or dict
        Columns of categories or flags: every combination of their labels has an answer.  A dict
        gives columns of numbers and dates their bins, as in `histogram`.

    Returns
    -------
    FrameQuery
        A question that is still to be planned and released.

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
    guarantee = Guarantee(epsilon, delta, rho, scale, noise)
    return FrameQuery(Mean(column), keys_of(by), checked_where(where), guarantee)


@answered("variance('age', epsilon=1.0)")
def variance(
    column: str,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    scale: float | None = None,
    noise: str = "auto",
    where: Condition | None = None,
    by: str | Sequence[str] | Mapping[str, Any] = (),
) -> FrameQuery:
    """Take the variance of a column: the mean square of the distances from the mean.

    Parameters
    ----------
    column : str
        A column of numbers.
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
    by : str, list of str or dict
        Columns of categories or flags: every combination of their labels has an answer.  A dict
        gives columns of numbers and dates their bins, as in `histogram`.

    Returns
    -------
    FrameQuery
        A question that is still to be planned and released.

    Examples
    --------
    >>> from algorithms.frames import variance
    >>> print(variance("age", rho=0.1, by=["job"]))
    variance of age by job
    """
    guarantee = Guarantee(epsilon, delta, rho, scale, noise)
    return FrameQuery(Variance(column), keys_of(by), checked_where(where), guarantee)


@answered("persons(epsilon=1.0)")
def persons(
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    scale: float | None = None,
    noise: str = "auto",
    where: Condition | None = None,
    by: str | Sequence[str] | Mapping[str, Any] = (),
) -> FrameQuery:
    """Count persons: each once, or once in each group, however many rows it has.

    Parameters
    ----------
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
    by : str, list of str or dict
        Columns of categories or flags: every combination of their labels has an answer.  A dict
        gives columns of numbers and dates their bins, as in `histogram`.

    Returns
    -------
    FrameQuery
        A question that is still to be planned and released.

    Examples
    --------
    >>> from algorithms.frames import Category, Schema, persons
    >>> schema = Schema({"ward": Category(["a", "b", "c"])}, person="id", rows_per_person=2)
    >>> persons(epsilon=1.0).plan(schema).part.sensitivity
    1
    >>> persons(by="ward", epsilon=1.0).plan(schema).part.sensitivity
    2
    """
    guarantee = Guarantee(epsilon, delta, rho, scale, noise)
    return FrameQuery(Persons(None), keys_of(by), checked_where(where), guarantee)


@answered("standard_deviation('age', epsilon=1.0)")
def standard_deviation(
    column: str,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    scale: float | None = None,
    noise: str = "auto",
    where: Condition | None = None,
    by: str | Sequence[str] | Mapping[str, Any] = (),
) -> FrameQuery:
    """Take the standard deviation of a column: the root of its variance.

    Parameters
    ----------
    column : str
        A column of numbers.
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
    by : str, list of str or dict
        Columns of categories or flags: every combination of their labels has an answer.  A dict
        gives columns of numbers and dates their bins, as in `histogram`.

    Returns
    -------
    FrameQuery
        A question that is still to be planned and released.

    Examples
    --------
    >>> from algorithms.frames import standard_deviation
    >>> print(standard_deviation("age", rho=0.1, by=["job"]))
    standard deviation of age by job
    """
    guarantee = Guarantee(epsilon, delta, rho, scale, noise)
    return FrameQuery(Deviation(column), keys_of(by), checked_where(where), guarantee)


@answered("share('owner', epsilon=1.0)")
def share(
    column: str,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    scale: float | None = None,
    noise: str = "auto",
    where: Condition | None = None,
    by: str | Sequence[str] | Mapping[str, Any] = (),
) -> FrameQuery:
    """Take the share of rows in which a flag is True, of those that have one.

    Parameters
    ----------
    column : str
        A column of flags.
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
    by : str, list of str or dict
        Columns of categories or flags: every combination of their labels has an answer.  A dict
        gives columns of numbers and dates their bins, as in `histogram`.

    Returns
    -------
    FrameQuery
        A question that is still to be planned and released.

    Examples
    --------
    >>> from algorithms.frames import share
    >>> print(share("owner", by="job", epsilon=1.0))
    share of owner by job
    """
    guarantee = Guarantee(epsilon, delta, rho, scale, noise)
    return FrameQuery(Share(column), keys_of(by), checked_where(where), guarantee)
