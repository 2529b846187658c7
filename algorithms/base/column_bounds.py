"""Bounds of columns that are only loosely known: one noisy histogram of magnitudes finds them.

The declared bound of a column is public.  Below it the magnitudes |x| are counted by octave: one
count for each power of two, one more for what lies beyond the bound, none for 0 and for what is far
too small.  The counts of all columns are one release with Gaussian noise.  A record is in at most
one octave of each of d columns.  So it moves the table of counts by at most sqrt(2 d), in Euclidean
length, if it is replaced, and by sqrt d if it is blanked.

From the largest magnitudes down, the first run of 1, 2, 4 or 8 octaves whose noisy sum is larger
than noise would be (`noise_quantiles`) begins what is taken for data: its upper end is the *scale*
of the column, a power of two.  A column without such a run keeps its declared bound.  How many
records are clipped follows from the same release.

docs/proofs/column_bounds.md has the proofs, and other ways to find bounds with what they cost.
References: Karwa & Vadhan (2018) for a noisy histogram in place of bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar, NamedTuple, Self, final

import numpy as np

from accountant.domains import DELTA, POSITIVE_DELTA, Interval
from accountant.errors import ParameterError
from accountant.ledger.chunks import HELD_BYTES, Chunks
from accountant.ledger.private_data import Users, first_array
from accountant.losses.gaussian import GaussianLoss
from accountant.numerics import Array
from accountant.numerics.rounding import round_up
from accountant.planning.calibration import calibrate_near
from accountant.plans.adjacency import RECORD_RELATIONS, Adjacency, check_relation
from accountant.plans.plan import Plan, Sequential
from algorithms.base.budgets import Gates
from algorithms.base.estimators import PrivateRegressor
from algorithms.base.fit_data import PUBLIC, cells_of
from algorithms.base.noisy_gradient_rounds import mu_of_budget
from algorithms.base.row_blocks import clipped_rows, same_memory, sum_over_blocks
from algorithms.base.score_classifier import ScoreClassifier
from mechanisms.gaussian import Gaussian

SHARE = Interval(0.0, 1.0, "()")
DECLARED = Interval(1e-300, 1e300)  # bounds whose powers of two, and their quotients, are floats
# The octaves reach down to 2^-OCTAVES of the declared bound, and to 2^-OCTAVES_BELOW_ONE.
OCTAVES, OCTAVES_BELOW_ONE = 128, 64
BOUNDS_SHARE = 1 / 20  # of the squared budget, if no other is asked for
# The constants below were chosen once; docs/proofs/column_bounds.md says how.  No privacy rests on
# them.  Where gradients are clipped and rows shortened, features are clipped at this multiple of
# their scales only.
HEADROOM = 16.0
# A column that is clipped at its scale has it up to OCTAVES_UP octaves higher, as long as more than
# the share CLIPPED of the records may lie in the two octaves above it.
OCTAVES_UP, CLIPPED = 2, 0.05
# So many rows, end to end, are clipped as one: numpy takes three times as long for short rows.
ROWS_TOGETHER = 64
RUNS = (1, 2, 4, 8)  # numbers of octaves whose sum may be distinguished from noise


class ColumnBounds(NamedTuple):
    """What one noisy histogram says of columns; the last one is the target's, if it was asked."""

    scales: Array  # powers of two: hardly a magnitude is larger
    limits: Array  # magnitudes beyond are clipped
    clipped_shares: Array  # noisy shares of the records that are clipped
    share_errors: Array  # deviations of the noise of these shares

    def scaled(self, rows: Any) -> Any:
        """Return features, dense or sparse, or a column of targets, clipped and over the scales."""
        columns = slice(-1, None) if rows.ndim == 1 else slice(rows.shape[1])
        scales, limits = self.scales[columns], self.limits[columns]
        if isinstance(rows, np.ndarray):
            scaled_rows = np.array(rows, dtype=np.float64, order="C")
            grouped, width = len(rows) - len(rows) % ROWS_TOGETHER, math.prod(rows.shape[1:])
            wide = scaled_rows[:grouped].reshape(-1, ROWS_TOGETHER * width)
            for part, count in ((wide, ROWS_TOGETHER), (scaled_rows[grouped:], 1)):
                ends = np.tile(limits, count)
                np.minimum(part, ends, out=part)  # both take less time than `numpy.clip`
                np.maximum(part, -ends, out=part)
                np.divide(part, np.tile(scales, count), out=part)
            return scaled_rows
        scaled = clipped_rows(rows, math.inf).copy()
        limits, scales = limits[scaled.indices], scales[scaled.indices]
        scaled.data = np.clip(scaled.data, -limits, limits) / scales
        return scaled

    def clipped(self, rows: Any) -> Any:
        """Return features, dense or sparse, clipped in their own units."""
        limits = self.limits[: rows.shape[1]]
        if isinstance(rows, np.ndarray):
            return np.clip(rows, -limits, limits)
        clipped = clipped_rows(rows, math.inf).copy()
        limits = limits[clipped.indices]
        clipped.data = np.clip(clipped.data, -limits, limits)
        return clipped

    def units(self, features: int) -> Array:
        """Return what coefficients of scaled columns are multiplied by; the constant's is last."""
        target = self.scales[features:].prod()  # 1 where there is no target
        with np.errstate(over="ignore"):
            quotients = target / np.append(self.scales[:features], 1.0)
        return np.asarray(np.minimum(quotients, DECLARED.high))


def noise_quantiles(columns: int, octaves: int) -> Array:
    """Return how many deviations of its noise a sum must have that ends at each octave.

    At the depth e = 1, 2, ... it is z = sqrt(2 ln(20 d e^2)) for d columns: noise is larger with a
    probability below 1 / (20 d e^2), and in less than one of forty fits anywhere above the data.
    So a declared bound that is a thousand octaves too large costs a few deviations more.
    """
    depths = np.arange(1.0, octaves + 1)
    return np.asarray(np.sqrt(2 * np.log(20 * columns * depths**2)))


@final
@dataclass(frozen=True, slots=True)
class BoundsSearch:
    """The public side of the histogram: declared bounds, and where to clip beside the scale."""

    declared: tuple[float, ...]  # a bound for each column
    relation: Adjacency
    headrooms: tuple[float, ...]  # magnitudes are clipped at this multiple of the scale
    has_target: bool = False  # whether the last column is that of the targets

    @property
    def tops(self) -> Any:
        """For each column the exponent of the least power of two that is not below its bound."""
        return exponents_of(np.array(self.declared))

    @property
    def octaves(self) -> int:
        """The number of octaves that are counted in each column."""
        top = int(self.tops.max())
        return top - min(top - OCTAVES, -OCTAVES_BELOW_ONE)

    @property
    def sensitivity(self) -> float:
        """How far one record moves the table of counts, in Euclidean length; rounded up."""
        replaced = self.relation is Adjacency.REPLACE_ONE
        return round_up(math.sqrt((2 if replaced else 1) * len(self.declared)))

    def mechanism(self, noise: float) -> Gaussian:
        """Return the release of all counts, with the mu 1 / ``noise``."""
        size = len(self.declared) * (self.octaves + 1)
        return Gaussian(noise * self.sensitivity, self.sensitivity, "exact", size)

    def is_hidden(self, records: int, noise: float) -> bool:
        """Return whether a release of this mu cannot tell half of so many records from noise."""
        deviation = noise * self.sensitivity
        return float(noise_quantiles(len(self.declared), 1)[0]) * deviation > records / 2

    def counts_of_block(self, block: tuple[Any, ...]) -> Array:
        """Return the counts of a block of records, the octaves of each column in turn."""
        rows, *targets = block
        width = self.octaves + 1
        parts = [(rows, 0)] + ([(targets[0][:, None], -1)] if self.has_target else [])
        totals = np.zeros(len(self.declared) * width)
        for part, start in parts:
            if isinstance(part, np.ndarray):
                columns = np.broadcast_to(np.arange(part.shape[1]), part.shape)
                magnitudes = np.abs(part)
            else:
                entries = clipped_rows(part, math.inf)  # those stored in parts would count anew
                columns, magnitudes = entries.indices, np.abs(entries.data)
            columns = columns + start % len(self.declared)
            # 0: beyond the bound; 1: the octave below it
            places = 1 + self.tops[columns] - exponents_of(magnitudes)
            places = np.where(magnitudes > np.array(self.declared)[columns], 0, places)
            counted = (magnitudes > 0) & (places < width)
            places = (columns * width + places)[counted]
            totals += np.bincount(places.ravel(), minlength=totals.size)
        return totals

    def release(
        self, ledger: Any, mechanism: Any, executor: Executor | None = None
    ) -> ColumnBounds:
        """Release the counts, and return the bounds that they give."""
        query = partial(sum_over_blocks, self.counts_of_block, executor=executor)
        released = ledger.release(mechanism, query, shape=mechanism.dimension)
        return self.bounds_of(released, mechanism.scale, ledger.shape[0])

    def scaled_gate(self, ledger: Any, executor: Executor | None) -> ScaledGate:
        """Release the counts, if they are planned; return the gate for what the plan ends with."""
        *counts, after = ledger.plan.parts
        columns = self.declared_bounds()
        if counts:
            columns = self.release(ledger, counts[0], executor)
        return ScaledGate(ledger, after, columns, self.has_target)

    def declared_bounds(self) -> ColumnBounds:
        """Return the declared bounds, where nothing is known of what lies beyond."""
        unknown = np.full(len(self.declared), math.nan)
        return ColumnBounds(np.ldexp(1.0, self.tops), np.array(self.declared), unknown, unknown)

    def bounds_of(self, released: Any, noise: float, records: int) -> ColumnBounds:
        """Return the bounds that released counts give, whose noise has the deviation ``noise``."""
        columns, width = len(self.declared), self.octaves + 1
        sums = np.cumsum(np.reshape(released, (columns, width)), axis=1)
        sums = np.hstack([np.zeros((columns, 1)), sums])  # of the places before each
        quantiles, all_columns = noise_quantiles(columns, width), np.arange(columns)
        ends, starts = np.full(columns, width + 1), np.ones(columns, dtype=int)
        for run in RUNS:
            exceeds = sums[:, run:] - sums[:, :-run] > quantiles[run - 1 :] * noise * math.sqrt(run)
            start = exceeds.argmax(axis=1)
            better = exceeds[all_columns, start] & (start + run < ends)
            ends, starts = np.where(better, start + run, ends), np.where(better, start, starts)
        # The place 0 is beyond the bound, and 1 is the octave that ends at the bound.
        depths = np.maximum(starts - 1, 0)
        for _ in range(OCTAVES_UP):
            above = sums[all_columns, depths + 1] - sums[all_columns, np.maximum(depths - 1, 0)]
            may_clip_many = above + noise * math.sqrt(2) > CLIPPED * records
            depths -= may_clip_many & (np.array(self.headrooms) == 1) & (depths > 0)
        scales = np.ldexp(1.0, self.tops - depths)
        declared, headrooms = np.array(self.declared), np.array(self.headrooms)
        limits = np.minimum(declared / headrooms, scales) * headrooms
        # Of the places below, whole octaves beyond the limit are clipped.
        beyond = np.maximum(1 + self.tops - exponents_of(limits), 1)
        shares = np.clip(sums[all_columns, beyond] / records, 0.0, 1.0)
        return ColumnBounds(scales, limits, shares, noise * np.sqrt(beyond) / records)


def exponents_of(magnitudes: Array) -> Any:
    """Return e with 2^(e - 1) < magnitude <= 2^e."""
    fractions, exponents = np.frexp(magnitudes)
    return exponents.astype(np.int64) - (fractions == 0.5)


@final
class ScaledRows:
    """Rows of a large array, each scaled where it is read: there is no scaled copy of them all."""

    def __init__(self, rows: Array, columns: ColumnBounds) -> None:
        self.shape = rows.shape
        self._rows, self._columns = rows, columns

    def __getitem__(self, who: Users) -> Any:
        return self._columns.scaled(self._rows[who])


class ScaledGate:
    """The gate of a fit, seen by an estimator of scaled columns: its plan, and data in scales."""

    def __init__(self, ledger: Any, plan: Plan, columns: ColumnBounds, has_target: bool) -> None:
        self.plan, self.shape = plan, ledger.shape
        self.columns = columns
        self._ledger, self._has_target = ledger, has_target
        self._known: tuple[Any, Any] | None = None

    @property
    def transcript(self) -> Any:
        """What was released of scaled columns."""
        return self._ledger.transcript[-len(list(self.plan.leaves())) :]

    def release(self, mechanism: Any, query: Callable[[Any], Any], **settings: Any) -> Any:
        """Release a query of the scaled data, which costs what it does on the data themselves."""
        return self._ledger.release(mechanism, lambda data: query(self.scaled(data)), **settings)

    def scaled(self, data: Any) -> Any:
        """Return the data in scales: the same array again for the same memory."""
        features = first_array(data)
        if self._known is None or not same_memory(self._known[0], features):
            scaled = self._of_records(data)
            if isinstance(features, Chunks):
                return scaled
            self._known = features, scaled
        return self._known[1]

    def _of_records(self, data: Any) -> Any:
        if isinstance(data, Chunks):
            return data.mapped(self._of_records, data.shape)
        if not isinstance(data, tuple):
            return self.columns.scaled(data)
        rows, targets, *others = data
        if isinstance(rows, Chunks):
            rows = rows.mapped(self.columns.scaled, rows.shape)
        elif isinstance(rows, np.ndarray) and rows.nbytes > HELD_BYTES:
            rows = ScaledRows(rows, self.columns)
        else:
            rows = self.columns.scaled(rows)
        return rows, self.columns.scaled(targets) if self._has_target else targets, *others


@lru_cache(maxsize=64)
def plan_with_search(
    search: BoundsSearch, share: float, after: Plan, budget: tuple[float, float]
) -> Sequential:
    """Return the histogram and what comes ``after`` it, within ``budget``: epsilon and delta.

    ``after`` meets the budget of 1 - share of the squared mu.  The noise of the histogram is the
    least with which the whole meets the budget.
    """

    def plan_of(noise: float) -> Sequential:
        return Sequential([search.mechanism(noise), after])

    return plan_of(calibrate_near(plan_of, 1 / (mu_of_budget(*budget) * math.sqrt(share)), *budget))


class ScaledGates(Gates):
    """Opens the gate of a fit on scaled columns, whose histogram and plan are paid for together."""

    within_a_fit: ClassVar[bool] = True

    def __init__(self, open_gate: Callable[[Any, Plan, Any], ScaledGate]) -> None:
        self._open_gate = open_gate

    def open(
        self, data: Any, plan: Plan, *, rng: Any = None, public: Any = None, transcript: str
    ) -> ScaledGate:
        """Return the gate on scaled columns."""
        del public, transcript
        return self._open_gate(data, plan, rng)


class PrivatelyBounded(PrivateRegressor):
    """A regression or a classification that finds its bounds privately if ``bounds="private"``.

    It is then the same estimator on columns over their scales, with what the histogram leaves of
    the budget.  Coefficients and predictions are in the units of the data.

    Attributes
    ----------
    column_bounds_ : ColumnBounds or None
        Scales, limits and noisy clipped shares of features, and of the target last; None where
        bounds are public.
    """

    x_bound: float
    y_bound: float
    bounds: str
    bounds_share: float
    relation: str
    coef_: Any
    intercept_: Any
    column_bounds_: ColumnBounds | None = None
    scaled_fit_: Any = None  # the fit on scaled columns, where bounds are private
    # Features are clipped at this multiple of their bounds: the ``_headroom`` of a class where
    # columns are scaled, as lengths of rows and gradients are bounded whatever the features are.
    _reach: float = 1.0
    _headroom: ClassVar[float] = 1.0
    # A descent ends with the nearest coefficients of at most this l1 norm.
    _l1_radius: float = math.inf

    @property
    def _scales_target(self) -> bool:
        """Whether the coefficients of targets over their scale are over it too."""
        return not isinstance(self, ScoreClassifier)

    def _search(self, features: int) -> BoundsSearch:
        """Return the search for the bounds of the features, and of the target of a regression."""
        has_target = self._scales_target
        declared = features * (DECLARED.check("x_bound", self.x_bound),)
        if has_target:
            declared += (DECLARED.check("y_bound", self.y_bound),)
        relation = check_relation("relation", self.relation, RECORD_RELATIONS)
        headrooms = features * (self._headroom,) + (1.0,) * has_target
        return BoundsSearch(declared, relation, headrooms, has_target)

    def _share_of_search(self, shape: tuple[int, ...]) -> float:
        """Return the share of the squared budget that the counts get.

        It is 0 where noise would hide them, which the shape says: the declared bounds hold then.
        """
        if self.delta == 0:
            raise ParameterError("delta", self.delta, 'above 0, or bounds="public"')
        mu = mu_of_budget(self._checked_epsilon(), POSITIVE_DELTA.check("delta", self.delta))
        share = SHARE.check("bounds_share", self.bounds_share)
        hidden = self._search(shape[1]).is_hidden(shape[0], 1 / (mu * math.sqrt(share)))
        return 0.0 if hidden else share

    def _of_scaled(self, shape: tuple[int, ...]) -> Self:
        """Return this estimator for scaled columns, with what remains of the budget."""
        epsilon, delta = self._checked_epsilon(), DELTA.check("delta", self.delta)
        if share := self._share_of_search(shape):
            remaining = GaussianLoss(mu_of_budget(epsilon, delta) * math.sqrt(1 - share))
            if (remaining_epsilon := remaining.epsilon_at(delta)) > epsilon / 2:
                epsilon = remaining_epsilon
            else:  # at a large delta epsilon would be 0, and at a large epsilon delta would be 0
                delta = min(delta, remaining.delta_at(0.0) / 2)
                epsilon = min(epsilon, remaining.epsilon_at(delta))
                delta = remaining.delta_at(epsilon)
        scaled = type(self)(**self.get_params(deep=False))
        scaled.__dict__ |= {"bounds": PUBLIC, "x_bound": 1.0, "epsilon": epsilon, "delta": delta}
        scaled.__dict__["_reach"] = self._headroom
        if self._scales_target:
            scaled.y_bound = 1.0
        return scaled

    def _with_search(self, after: Plan, shape: tuple[int, ...]) -> Sequential:
        """Return the release of the counts, if noise does not hide them, and ``after`` it."""
        if share := self._share_of_search(shape):
            budget = float(self.epsilon), float(self.delta)
            return plan_with_search(self._search(shape[1]), share, after, budget)
        return Sequential([after])

    def _plan_with_bounds(self, shape: tuple[int, ...], **settings: Any) -> Sequential:
        """Return the plan of a fit that finds its bounds."""
        return self._with_search(self._of_scaled(shape).plan(shape, **settings), shape)

    def _fit_scaled(
        self, X: Any, y: Any, executor: Executor | None, ledger: Any, **settings: Any
    ) -> Self:
        """Find the bounds, fit on scaled columns, and keep the results in the data's own units."""

        def open_gate(data: Any, plan: Plan, rng: Any) -> ScaledGate:
            full_plan = self._with_search(plan, shape)
            self.ledger_ = self.open_ledger(data, full_plan, rng=rng, ledger=ledger)
            return self._search(shape[1]).scaled_gate(self.ledger_, executor)

        shape = X.shape if hasattr(X, "shape") else cells_of(X).shape
        # What is no table is refused by the fit.
        shape = shape if len(shape) == 2 and all(shape) else (1, 1)
        model: Any = self._of_scaled(shape)
        scaled = model.fit(X, y, executor, ledger=ScaledGates(open_gate), **settings)
        plan, gate = self.plan_, scaled.ledger_
        scaled.ledger_ = self.ledger_
        self.__dict__ |= {name: value for name, value in vars(scaled).items() if name[-1] == "_"}
        self.plan_, self.transcript_, self.scaled_fit_ = plan, self.ledger_.transcript, scaled
        self.column_bounds_ = gate.columns
        units = gate.columns.units(self.n_features_in_)
        self.coef_, self.intercept_ = scaled.coef_ * units[:-1], scaled.intercept_ * units[-1]
        return self

    def _run_scaled(self, ledger: Any, executor: Executor | None) -> Array:
        """Return the coefficients, the constant last if one is fitted, in the data's own units."""
        features = ledger.shape[1]
        gate = self._search(features).scaled_gate(ledger, executor)
        scaled: Any = self._of_scaled(ledger.shape)
        result = scaled.run(gate, executor)
        units = gate.columns.units(features)[: len(result)]
        return np.asarray((result.T * units).T)

    def _scaled_interval(self, confidence: float) -> Array:
        """Return the intervals of the fit on scaled columns, in the data's own units."""
        scaled: Array = self.scaled_fit_.interval(confidence)
        columns: Any = self.column_bounds_
        return np.asarray(columns.units(self.n_features_in_)[: len(scaled), None] * scaled)

    def _scaled_summary(self) -> str:
        """Return a description of the noise of the histogram and of what follows it."""
        noise_after = self.scaled_fit_.summary().partition("; ")[2]
        search = "counts of magnitudes, which noise would hide, are not released"
        if len(self.plan_.parts) > 1:
            deviation = self.plan_.parts[0].scale
            search = f"noise of deviation {deviation:.4g} records on the counts of magnitudes"
        return f"{search}; then, of columns over their scales, {noise_after}"

    def _within_bounds(self, X: Any) -> Any:
        """Return features clipped as in the fit."""
        if self.column_bounds_ is None:
            return clipped_rows(X, self.x_bound * self._reach)
        return self.column_bounds_.clipped(X)
