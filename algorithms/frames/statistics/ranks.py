"""The statistics of a frame that rank its numbers (quantiles), or its labels (`top_k`).

Each function returns a question, whose plan and release are methods of it.  A call with wrong
arguments is answered with an example of a right one (`answered`).

References: Kaplan, Schnapp & Stemmer (2022) for quantiles; Durfee & Rogers (2019) for top labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from accountant.domains import IntegerRange
from accountant.errors import ParameterError
from algorithms.base.intervals import CONFIDENCE
from algorithms.base.renamed_parameters import renamed_arguments
from algorithms.frames.arguments import answered
from algorithms.frames.cells import keys_of
from algorithms.frames.conditions import Condition, checked_where
from algorithms.frames.guarantees import Guarantee
from algorithms.frames.quantile_query import QuantileQuery
from algorithms.frames.top_query import TopQuery
from algorithms.statistics.private_quantiles import SHARE


@renamed_arguments(shares="quantiles", level="confidence")
@answered("quantiles('age', [0.1, 0.9], epsilon=1.0)")
def quantiles(
    column: str,
    quantiles: Sequence[float],
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    confidence: float | None = 0.95,
    where: Condition | None = None,
    by: str | Sequence[str] | Mapping[str, Any] = (),
) -> QuantileQuery:
    """Find quantiles of a column: the more at once, the less each of them costs.

    Parameters
    ----------
    column : str
        A column of numbers.
    quantiles : list of float
        The quantiles, each in [0, 1].
    epsilon, delta : float, optional
        The privacy that the answer may cost.
    confidence : float or None
        Probability that an interval covers its quantile of the frame.  Intervals take at most a
        share 1 - confidence of the cost, which is 5 % at 0.95, and a little for a count of the
        rows; None asks for none.
    where : Condition, optional
        Which rows count, such as ``col("age") >= 18``.
    by : str, list of str or dict
        Columns of categories or flags: every combination of their labels has an answer.  A dict
        gives columns of numbers and dates their bins, as in `histogram`.

    Returns
    -------
    QuantileQuery
        A question that is still to be planned and released.

    Examples
    --------
    >>> from algorithms.frames import Number, Schema, quantiles
    >>> query = quantiles("age", [0.1, 0.5, 0.9], epsilon=1.0, confidence=None)
    >>> print(query.explain(Schema({"age": Number(0, 100)}, person="id", rows_per_person=2)))
    quantile 0.1, 0.5, 0.9 of age
      age: clipped to 0 .. 100, rows without one do not count
      of each 'id' the first 2 rows that can count
      neighbours: one person more or less (column 'id')
      2 times exponential mechanism of scale 4 on ranks
      costs epsilon 1
    """
    listed: object = quantiles  # it may be anything, whatever its annotation says
    if isinstance(listed, str) or not isinstance(listed, Sequence) or not listed:
        raise ParameterError("quantiles", quantiles, "a list of numbers in [0, 1]")
    return _quantiles(column, quantiles, epsilon, delta, confidence, where, by)


@renamed_arguments(share="quantile", level="confidence")
@answered("quantile('age', 0.9, epsilon=1.0)")
def quantile(
    column: str,
    quantile: float,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    confidence: float | None = 0.95,
    where: Condition | None = None,
    by: str | Sequence[str] | Mapping[str, Any] = (),
) -> QuantileQuery:
    """Find a quantile of a column.

    Parameters
    ----------
    column : str
        A column of numbers.
    quantile : float
        The quantile, in [0, 1].
    epsilon, delta : float, optional
        The privacy that the answer may cost.
    confidence : float or None
        Probability that the interval covers the quantile of the frame; None asks for no interval.
    where : Condition, optional
        Which rows count, such as ``col("age") >= 18``.
    by : str, list of str or dict
        Columns of categories or flags: every combination of their labels has an answer.  A dict
        gives columns of numbers and dates their bins, as in `histogram`.

    Returns
    -------
    QuantileQuery
        A question that is still to be planned and released.

    Examples
    --------
    >>> from algorithms.frames import quantile
    >>> print(quantile("age", 0.9, epsilon=1.0, by="job"))
    quantile 0.9 of age by job
    """
    return _quantiles(column, [quantile], epsilon, delta, confidence, where, by, single=True)


@renamed_arguments(level="confidence")
@answered("median('age', epsilon=1.0)")
def median(
    column: str,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    confidence: float | None = 0.95,
    where: Condition | None = None,
    by: str | Sequence[str] | Mapping[str, Any] = (),
) -> QuantileQuery:
    """Find the median of a column.

    Parameters
    ----------
    column : str
        A column of numbers.
    epsilon, delta : float, optional
        The privacy that the answer may cost.
    confidence : float or None
        Probability that the interval covers the median of the frame; None asks for no interval.
    where : Condition, optional
        Which rows count, such as ``col("age") >= 18``.
    by : str, list of str or dict
        Columns of categories or flags: every combination of their labels has an answer.  A dict
        gives columns of numbers and dates their bins, as in `histogram`.

    Returns
    -------
    QuantileQuery
        A question that is still to be planned and released.

    Examples
    --------
    >>> from algorithms.frames import median
    >>> print(median("age", epsilon=1.0))
    quantile 0.5 of age
    """
    return _quantiles(column, [0.5], epsilon, delta, confidence, where, by, single=True)


@answered("minimum('age', epsilon=1.0)")
def minimum(
    column: str,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    confidence: float | None = 0.95,
    where: Condition | None = None,
    by: str | Sequence[str] | Mapping[str, Any] = (),
) -> QuantileQuery:
    """Find about the least number of a column, within its bounds: its quantile 0.

    Parameters
    ----------
    column : str
        A column of numbers.
    epsilon, delta : float, optional
        The privacy that the answer may cost.
    confidence : float or None
        Probability that the interval covers that of the frame; None asks for no interval.
    where : Condition, optional
        Which rows count, such as ``col("age") >= 18``.
    by : str, list of str or dict
        Columns of categories or flags: every combination of their labels has an answer.  A dict
        gives columns of numbers and dates their bins, as in `histogram`.

    Returns
    -------
    QuantileQuery
        A question that is still to be planned and released.

    Examples
    --------
    >>> from algorithms.frames import minimum
    >>> print(minimum("age", epsilon=1.0))
    quantile 0 of age
    """
    return _quantiles(column, [0.0], epsilon, delta, confidence, where, by, single=True)


@answered("maximum('age', epsilon=1.0)")
def maximum(
    column: str,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    confidence: float | None = 0.95,
    where: Condition | None = None,
    by: str | Sequence[str] | Mapping[str, Any] = (),
) -> QuantileQuery:
    """Find about the largest number of a column, within its bounds: its quantile 1.

    Parameters
    ----------
    column : str
        A column of numbers.
    epsilon, delta : float, optional
        The privacy that the answer may cost.
    confidence : float or None
        Probability that the interval covers that of the frame; None asks for no interval.
    where : Condition, optional
        Which rows count, such as ``col("age") >= 18``.
    by : str, list of str or dict
        Columns of categories or flags: every combination of their labels has an answer.  A dict
        gives columns of numbers and dates their bins, as in `histogram`.

    Returns
    -------
    QuantileQuery
        A question that is still to be planned and released.

    Examples
    --------
    >>> from algorithms.frames import maximum
    >>> print(maximum("age", epsilon=1.0))
    quantile 1 of age
    """
    return _quantiles(column, [1.0], epsilon, delta, confidence, where, by, single=True)


@renamed_arguments(level="confidence")
@answered("top_k('job', 3, epsilon=1.0)")
def top_k(
    column: str,
    k: int,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
    where: Condition | None = None,
    by: str | Sequence[str] | Mapping[str, Any] = (),
) -> TopQuery:
    """Find the labels that most persons have, and how many have them.

    A person counts once for each label (of each group), with at most ``rows_per_person`` rows.

    Parameters
    ----------
    column : str
        A column of categories, or flags.
    k : int
        How many labels, at least 1.
    epsilon, delta : float, optional
        The privacy that the answer may cost.
    confidence : float
        Probability that an interval covers its number of persons, at least.
    where : Condition, optional
        Which rows count, such as ``col("age") >= 18``.
    by : str, list of str or dict
        Columns of categories or flags: every combination of their labels has its own top labels.
        A dict gives columns of numbers and dates their bins, as in `histogram`.

    Returns
    -------
    TopQuery
        A question that is still to be planned and released.

    Examples
    --------
    >>> from algorithms.frames import Category, Schema, top_k
    >>> print(top_k("job", 2, epsilon=1.0).explain(Schema({"job": Category(["cook", "nurse"])})))
    top 2 of job
      job: 2 public labels, rows with none of them do not count
      neighbours: one person more or less (each row is a person)
      DiscreteLaplace noise of scale 1 persons
      costs epsilon 1
    """
    cost = Guarantee(epsilon, delta)
    checked = checked_where(where)
    count, chance = IntegerRange(1).check("k", k), CONFIDENCE.check("confidence", confidence)
    return TopQuery(column, count, checked, cost.epsilon, cost.delta, chance, keys_of(by))


def _quantiles(
    column: str,
    quantiles: Sequence[float],
    epsilon: float | None,
    delta: float,
    confidence: float | None,
    where: Condition | None,
    by: str | Sequence[str] | Mapping[str, Any],
    *,
    single: bool = False,
) -> QuantileQuery:
    """Return the query of checked arguments; ``single`` answers one number without a list."""
    argument = "quantile" if single else "quantiles"
    for share in quantiles:
        if isinstance(share, int | float) and 1 < share <= 100:
            raise ParameterError(
                argument, share, f"in [0, 1]: {share:g} per cent are {share / 100:g}"
            )
    checked_quantiles = tuple(SHARE.check(argument, share) for share in quantiles)
    cost = Guarantee(epsilon, delta)
    chance = None if confidence is None else CONFIDENCE.check("confidence", confidence)
    checked = checked_where(where)
    keys = keys_of(by)
    limit = cost.epsilon
    return QuantileQuery(
        column, checked_quantiles, single, keys, checked, limit, cost.delta, chance
    )
