"""The estimator `PrivateQuantiles`: quantiles of one column of numbers within public bounds.

A trusted curator draws m quantiles by a binary tree of about log2(m) levels.  The first level draws
the middle quantile by an exponential mechanism on ranks; each further level draws the middle one of
every part between two that are drawn, all parts in one release.  The ends of a confidence interval
are two further quantiles, far enough below and above to cover the noise of ranks and the sampling
from a population (`with_ends`).

References: Smith (2011); Kaplan, Schnapp & Stemmer (2022); proof in docs/proofs/quantiles.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from accountant.domains import DELTA, Interval
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.numerics.rounding import round_up
from accountant.planning.calibration import calibrate
from accountant.plans.adjacency import RECORD_RELATIONS, REPLACE, Adjacency, check_relation
from accountant.plans.plan import Sequential
from algorithms.base.estimators import PrivateEstimator
from algorithms.base.fit_data import checked_shape, generator_of, validated_data
from algorithms.base.intervals import CONFIDENCE, laplace_interval
from algorithms.base.renamed_parameters import renamed_parameters
from algorithms.statistics.quantile_scores import ValueGrid
from algorithms.statistics.quantile_tree import levels_of, rank_noise, released_places
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.run_length_exponential import RunLengthExponential

SHARE = Interval(0.0, 1.0)
COUNT_SHARE = 1 / 32  # share of epsilon for the noisy count of records, if intervals need one
# In place of a quantile, a stretch of the grid without records may be drawn.  At a distance of
# FAR_SCALES + ln(points) scales of the noise of the rank, for a grid of so many points, this has a
# probability below e^-FAR_SCALES.  More than EMPTIEST points count as EMPTIEST: this is right if
# the numbers near the quantile fill at least 1 / EMPTIEST of the bounds.
FAR_SCALES, EMPTIEST = 4.0, 1e5


@renamed_parameters(lower="low", upper="high", step="grid_step", level="confidence")
@dataclass(eq=False, repr=False)
class PrivateQuantiles(PrivateEstimator):
    """Quantiles of one column, differentially private for one record.

    A level is one release, of the middle quantile of every part between those that are known: m
    quantiles take about log2(m) levels.  The results ascend with the quantiles.  The ranks of
    results have errors of about ``2 levels / epsilon`` records where one record is replaced, and of
    half as many where one is added or removed, whatever the bounds are.  Numbers beyond the bounds
    move to them.

    Parameters
    ----------
    quantiles : float or sequence of float
        The quantiles, each in [0, 1].
    low, high : float
        Public bounds of the numbers.
    grid_step : float or None
        Distance of the points ``low, low + grid_step, ...`` that can be results: 1 for whole
        numbers.  None takes 2^24 steps.
    epsilon : float
        Target epsilon, positive, in nats.
    delta : float
        Target delta, in [0, 1).
    confidence : float or None
        Probability that an interval covers its quantile of the population, in (0, 1); None releases
        no intervals.  The ends of intervals are quantiles too, and take about two levels more.
    relation : {"replace-one", "add-remove"} or Adjacency
        How neighbours differ.  The number of records is public where one is replaced; else the
        intervals take a noisy count of them.
    random_state : int, numpy.random.Generator or None
        Seed of the noise; None draws from the operating system's entropy.

    Attributes
    ----------
    quantiles_ : numpy.ndarray of shape (quantiles,)
        The results, in the order of ``quantiles``.
    intervals_ : numpy.ndarray of shape (quantiles, 2)
        Lower and upper ends, where a ``confidence`` is given.
    plan_, ledger_, transcript_
        What was released, and through which ledger.

    References
    ----------
    Smith (2011); Kaplan, Schnapp & Stemmer (2022); Dong, Durfee & Rogers (2020) for the cost.

    Examples
    --------
    >>> import numpy as np
    >>> from algorithms import PrivateQuantiles
    >>> ages = np.arange(2000) % 90
    >>> made = PrivateQuantiles(
    ...     quantiles=[0.25, 0.5, 0.75], low=0, high=120, grid_step=1, epsilon=1.0, random_state=0
    ... )
    >>> made.fit(ages[:, None]).quantiles_.tolist()
    [22.0, 44.0, 67.0]
    """

    _: KW_ONLY
    quantiles: float | Sequence[float] = 0.5
    low: float
    high: float
    grid_step: float | None = None
    epsilon: float
    delta: float = 0.0
    confidence: float | None = None
    relation: str = REPLACE
    random_state: Any = None

    def plan(self, shape: tuple[int, ...]) -> Sequential:
        """Return what a fit on ``shape = (records, 1)`` will release; needs no data.

        Where intervals are asked for, and neighbours have one record more or less, the noisy count
        of records comes first.
        """
        if checked_shape(shape)[1] != 1:
            raise ParameterError("shape", shape, "(records, 1): one column")
        self._grid()
        released_quantiles = self._checked_quantiles().size * (
            1 if self._checked_confidence() is None else 3
        )
        levels = levels_of(released_quantiles)
        counted = not self._replaced and self.confidence is not None
        epsilon, delta = self._checked_epsilon(), DELTA.check("delta", self.delta)
        sensitivity = 1.0 if self._replaced else 0.5

        # The count and the levels are charged by basic composition: quick and nearly exact.
        count = [DiscreteLaplace(round_up(1 / (COUNT_SHARE * epsilon)))] if counted else []
        remaining_epsilon = (1 - COUNT_SHARE * counted) * epsilon

        def plan_of(scale: float) -> Sequential:
            return Sequential([RunLengthExponential(scale, sensitivity)] * levels)

        if delta:
            chosen = plan_of(calibrate(plan_of, epsilon=remaining_epsilon, delta=delta))
        else:
            chosen = plan_of(round_up(2 * sensitivity * levels / remaining_epsilon))
        return Sequential([*count, *chosen.parts])

    def run(self, ledger: Any, column: Callable[[Any], Array] | None = None) -> Array:
        """Return the quantiles, and intervals if asked for, from released values only.

        Parameters
        ----------
        ledger : Ledger
            A ledger on the data, with the plan of `plan`.
        column : callable or None
            The numbers of the rows; the first column by default.

        Returns
        -------
        numpy.ndarray of shape (quantiles, 1) or (quantiles, 3)
            Each quantile, with the two ends behind it.
        """
        column = first_column if column is None else column
        leaves, grid = list(ledger.plan.leaves()), self._grid()
        quantiles, confidence = self._checked_quantiles(), self._checked_confidence()
        targets, level_mechanisms = quantiles[:, None], leaves
        if confidence is not None:
            records = float(ledger.shape[0])
            if not self._replaced:
                noisy = ledger.release(leaves[0], lambda rows: len(column(rows)))
                records, level_mechanisms = max(float(noisy), 1.0), leaves[1:]
            targets = self._with_ends(quantiles, records, level_mechanisms[0].scale, confidence)
        levels, order = ascending(targets)
        places = released_places(ledger, level_mechanisms, levels, grid, column, self._replaced)
        estimates = np.empty(targets.shape)
        estimates.flat[order] = grid.value_at(np.array(places))
        if confidence is not None:  # nothing is known beyond the least and the greatest record
            estimates[:, 1][targets[:, 1] <= 0] = grid.lower
            estimates[:, 2][targets[:, 2] >= 1] = grid.upper
        return estimates

    def _with_ends(
        self, quantiles: Array, records: float, scale: float, confidence: float
    ) -> Array:
        """Return each quantile, and two around it for the interval of the population's quantile."""
        sampling = np.sqrt(quantiles * (1 - quantiles) / records)
        points = self._grid().points
        return with_ends(quantiles, sampling, records, scale, confidence, points, self._replaced)

    def fit(self, X: Any, y: Any = None, ledger: Any = None) -> Self:
        """Fit on numbers; nothing is released if the input is bad.

        Parameters
        ----------
        X : array_like of shape (records, 1)
            Numbers.
        y : object
            Ignored.
        ledger : Budget, Filter, Book, tuple or None
            What the fit draws on, see `PrivateEstimator`; None charges nothing.

        Returns
        -------
        self
            The fitted estimator.
        """
        del y
        X = validated_data(self, X, dtype=np.float64)
        plan, rng = self.plan(X.shape), generator_of(self.random_state)
        self.ledger_ = self.open_ledger(X, plan, rng=rng, ledger=ledger)
        estimates = self.run(self.ledger_)
        self.quantiles_ = estimates[:, 0]
        if self.confidence is not None:
            self.intervals_ = estimates[:, 1:]
        self.transcript_ = self.ledger_.transcript
        return self

    def rank_deviations(self, records: int) -> Array:
        """Return the standard deviation of each result's rank, from the noise alone.

        Parameters
        ----------
        records : int
            Number of records.

        Returns
        -------
        numpy.ndarray of shape (quantiles,)
            In records, where the numbers near a quantile are spread evenly; to nearest.  It is
            that of a fit without intervals or with them, as ``confidence`` says.
        """
        steps: list[Any] = list(self.plan((records, 1)).leaves())
        scale = steps[-1].scale
        quantiles, confidence = self._checked_quantiles(), self._checked_confidence()
        targets = quantiles[:, None]
        if confidence is not None:
            targets = self._with_ends(quantiles, float(records), scale, confidence)
        sorted_targets, order = ascending(targets)
        noise, by_target = rank_noise(sorted_targets, scale, self._replaced), np.empty(targets.size)
        by_target[order] = np.sqrt(2 * noise.own**2 + noise.rest)
        deviations: Array = by_target.reshape(targets.shape)[:, 0]
        return deviations

    @property
    def _replaced(self) -> bool:
        """Whether neighbours replace a record."""
        neighbours = check_relation("relation", self.relation, RECORD_RELATIONS)
        return neighbours is Adjacency.REPLACE_ONE

    def _grid(self) -> ValueGrid:
        return ValueGrid.of(self.low, self.high, self.grid_step)

    def _checked_confidence(self) -> float | None:
        return None if self.confidence is None else CONFIDENCE.check("confidence", self.confidence)

    def _checked_quantiles(self) -> Array:
        listed = np.atleast_1d(np.asarray(self.quantiles, dtype=object))
        if listed.ndim != 1 or not listed.size:
            raise ParameterError("quantiles", self.quantiles, "a number, or a list of them")
        return np.array([SHARE.check("quantiles", quantile) for quantile in listed])

    def __sklearn_tags__(self) -> Any:
        """Return tags of one column."""
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = True, False
        return tags

    def _noise_summary(self) -> str:
        check_is_fitted(self)
        scale = list(self.plan_.leaves())[-1].scale
        return f"exponential mechanism of scale {scale:.4g} on ranks, {len(self.transcript_)} times"


def first_column(rows: Any) -> Array:
    """Return the first column of rows."""
    column: Array = np.asarray(rows)[:, 0]
    return column


def with_ends(
    quantiles: Array,
    sampling: Array,
    records: float,
    scale: float,
    confidence: float,
    points: int,
    replaced: bool,
) -> Array:
    """Return each quantile, and two quantiles around it that are the ends of its interval.

    All quantiles and errors of ranks are shares of the records.  An end lies half a width from its
    quantile q, the sum of two terms:

    - the half width of the interval of this ``confidence`` for Laplace + normal noise.  The Laplace
      part is the noise of the rank of the end itself.  The normal part has the variance of
      ``sampling``, which is the standard deviation of the sample's quantile around that of the
      population, and the noise that the rank inherits from the ends of its part in the tree.
      ``sampling`` is zero for the quantile of the sample itself;
    - ``pull``: by how much the rank moves if quantiles at the ends of its part, where these are
      within the margin of an extreme record, move to that record.

    ``records`` is their number, ``scale`` that of a level's release, and ``points`` those of the
    grid.  ``replaced`` says that neighbours replace a record.
    """
    targets = np.repeat(quantiles[:, None], 3, axis=1)
    margin_in_scales = math.log(min(points, EMPTIEST)) + FAR_SCALES
    for _ in range(3):  # The noise of the ends depends a little on where they are.
        sorted_targets, order = ascending(targets)
        noise = rank_noise(sorted_targets, scale, replaced)
        # Within the margin of the least or the greatest record, a place in the empty part of the
        # grid beyond that record is likely.  So the rank of such a quantile may be wrong by its
        # distance to that record.
        margin = margin_in_scales * noise.own / records
        positions = np.array(sorted_targets)
        distance_to_end = np.where(
            (positions < margin) | (positions > 1 - margin),
            np.minimum(positions, 1 - positions),
            0.0,
        )
        # From here on arrays have the order of `targets`: three entries for each quantile.
        own_noise, other_variance, pull, margins = (np.empty(positions.size) for _ in range(4))
        own_noise[order], other_variance[order] = noise.own / records, noise.rest
        margins[order] = margin
        pull[order] = noise.mixed @ distance_to_end - distance_to_end
        # `laplace_interval` has the scale 1, so the deviation of the normal part is in units of the
        # rank's own noise.  Of the three entries of a row only the two ends are used.
        deviation = np.hypot(np.repeat(sampling, 3), np.sqrt(other_variance) / records) / own_noise
        noise_half_widths = (
            laplace_interval(np.zeros(own_noise.size), 1.0, deviation, confidence)[:, 1] * own_noise
        )
        half_widths = (noise_half_widths + pull).reshape(targets.shape)[:, 1:]
        below, above = quantiles - half_widths[:, 0], quantiles + half_widths[:, 1]
        margin_below, margin_above = margins.reshape(targets.shape).T[1:]
        # An end within the margin of an extreme record has no reliable rank: it moves inwards to
        # the margin, or outwards to the share 0 or 1, which stands for the bound of the numbers.
        below = np.minimum(below, 1 - margin_below)
        above = np.maximum(above, margin_above)
        below = np.where(below < margin_below, 0.0, below)
        above = np.where(above > 1 - margin_above, 1.0, above)
        targets = np.stack([quantiles, below, above], axis=1)
    return targets


def ascending(targets: Array) -> tuple[list[float], Any]:
    """Return all targets in ascending order, and their indices in the flat array."""
    order = np.argsort(targets, axis=None, kind="stable")
    return targets.ravel()[order].tolist(), order
