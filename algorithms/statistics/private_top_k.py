"""The most frequent of public categories with their counts, by a trusted curator.

`PrivateTopK` is the estimator.  `top_k_plan` chooses between noise on all counts and rounds of
selection, and `released_top` releases by either plan.

References: Dwork, McSherry, Nissim & Smith (2006); Durfee & Rogers (2019) for rounds of selection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache, partial
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from accountant.domains import DELTA, IntegerRange
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.numerics.rounding import round_up
from accountant.planning.calibration import calibrate
from accountant.plans.adjacency import RECORD_RELATIONS, REPLACE, Adjacency, check_relation
from accountant.plans.plan import Repeat, Sequential
from algorithms.base.estimators import PrivateEstimator
from algorithms.base.fit_data import cells_of, checked_shape, generator_of, numbers_of
from algorithms.base.intervals import CONFIDENCE
from algorithms.base.renamed_parameters import renamed_parameters
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.exponential import Exponential

Counting = Callable[[Any], Any]


@renamed_parameters(level="confidence")
@dataclass(eq=False, repr=False)
class PrivateTopK(PrivateEstimator):
    """The k categories that most people have, with counts, differentially private for one person.

    A row is a person with at most as many categories as there are columns; a category counts once
    in a row, and what is no public category counts nowhere.  Either all counts get noise and the
    largest are taken, or k rounds of the exponential mechanism select categories, whose counts get
    noise: what has the smaller bound on its error, from the sizes alone.

    Parameters
    ----------
    k : int
        How many categories, at least 1.
    categories : sequence
        All public categories, distinct: strings or numbers.
    epsilon : float
        Target epsilon, positive, in nats.
    delta : float
        Target delta, in [0, 1).
    confidence : float
        Probability that an interval covers its count, in (0, 1).
    relation : {"replace-one", "add-remove"} or Adjacency
        How neighbours differ by a person.
    random_state : int, numpy.random.Generator or None
        Seed of the noise; None draws from the operating system's entropy.

    Attributes
    ----------
    top_ : numpy.ndarray of shape (k,)
        The categories, those of larger noisy counts first.
    counts_ : numpy.ndarray of shape (k,)
        Their noisy counts, not below 0.
    intervals_ : numpy.ndarray of shape (k, 2)
        Lower and upper ends of the counts of these data.  Of all counts with noise they hold for
        all categories at once, and so for the largest ones: a single one covers more often.
    plan_, ledger_, transcript_
        What was released, and through which ledger.

    References
    ----------
    Dwork, McSherry, Nissim & Smith (2006); Durfee & Rogers (2019).

    Examples
    --------
    >>> from algorithms import PrivateTopK
    >>> drinks = ["tea"] * 500 + ["coffee"] * 900 + ["milk"] * 3
    >>> made = PrivateTopK(
    ...     k=2, categories=["tea", "coffee", "milk", "juice"], epsilon=1.0, random_state=0
    ... )
    >>> made.fit(drinks).top_.tolist()
    ['coffee', 'tea']
    """

    _: KW_ONLY
    k: int
    categories: Sequence[Any]
    epsilon: float
    delta: float = 0.0
    confidence: float = 0.95
    relation: str = REPLACE
    random_state: Any = None

    def plan(self, shape: tuple[int, ...]) -> Sequential:
        """Return what a fit on ``shape = (people, columns)`` will release; needs no data."""
        size = self._checked_categories().size
        count = IntegerRange(1, size).check("k", self.k)
        neighbours = check_relation("relation", self.relation, RECORD_RELATIONS)
        epsilon, delta = self._checked_epsilon(), DELTA.check("delta", self.delta)
        CONFIDENCE.check("confidence", self.confidence)
        labels_each = min(checked_shape(shape)[1], size)
        return top_k_plan(
            size, count, labels_each, neighbours is Adjacency.REPLACE_ONE, epsilon, delta
        )

    def run(self, ledger: Any) -> tuple[NDArray[np.int64], Array, Array]:
        """Return indices, counts and intervals, from released values only."""
        size = self._checked_categories().size
        counts = partial(category_counts, size=size)
        return released_top(
            ledger, list(ledger.plan.leaves()), size, self.k, self.confidence, counts
        )

    def fit(self, X: Any, y: Any = None, ledger: Any = None) -> Self:
        """Fit on categories of people; nothing is released if the input is bad.

        Parameters
        ----------
        X : array_like of shape (people,) or (people, columns)
            Categories of each person, in any order.
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
        codes = self.codes(X)
        self.n_features_in_ = codes.shape[1]
        plan, rng = self.plan(codes.shape), generator_of(self.random_state)
        self.ledger_ = self.open_ledger(codes, plan, rng=rng, ledger=ledger)
        top, self.counts_, self.intervals_ = self.run(self.ledger_)
        self.top_ = self._checked_categories()[top]
        self.transcript_ = self.ledger_.transcript
        return self

    def codes(self, X: Any) -> NDArray[np.int64]:
        """Return the index of every category, and -1 for what is none of them.

        Parameters
        ----------
        X : array_like of shape (people,) or (people, columns)
            Categories.

        Returns
        -------
        numpy.ndarray of shape (people, columns)
            Indices in ``categories``: the data of `run`.
        """
        if hasattr(X, "tocsr"):
            raise ParameterError("X", type(X), "an array; sparse data are not supported")
        rows, categories = cells_of(X), self._checked_categories()
        if rows.dtype.kind == "c":
            raise ParameterError("X", rows.dtype, "categories. Complex data not supported")
        if rows.dtype.kind == "O":
            # Cells are converted one by one: a cell of another type changes no other cell.
            rows = rows.astype(str) if categories.dtype.kind == "U" else numbers_of(rows)
        rows = rows[:, None] if rows.ndim == 1 else rows
        if rows.ndim != 2 or not rows.size:
            missing = "sample" if not len(rows) else "feature"
            allowed = "categories, a row for each person"
            shape = f"0 {missing}(s) (shape={rows.shape}) while a minimum of 1 is required"
            raise ParameterError("X", shape, allowed)
        if (rows.dtype.kind in "US") != (categories.dtype.kind in "US"):
            rows = (
                rows.astype(str) if categories.dtype.kind == "U" else np.full(rows.shape, math.nan)
            )
        order = np.argsort(categories)
        nearest = np.minimum(np.searchsorted(categories[order], rows), categories.size - 1)
        indices: NDArray[np.int64] = np.where(
            categories[order][nearest] == rows, order[nearest], -1
        )
        return indices

    def _checked_categories(self) -> NDArray[Any]:
        categories = np.asarray(self.categories)
        if (
            categories.ndim != 1
            or categories.dtype.kind not in "iufU"
            or np.unique(categories).size != categories.size
        ):
            raise ParameterError("categories", self.categories, "distinct strings, or numbers")
        if not categories.size:
            raise ParameterError("categories", self.categories, "at least one category")
        return categories

    def __sklearn_tags__(self) -> Any:
        """Return tags of categories."""
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = True
        return tags

    def _noise_summary(self) -> str:
        check_is_fitted(self)
        *rounds, noise = self.plan_.leaves()
        selection = f"{len(rounds)} rounds of selection, then " if rounds else ""
        return f"{selection}{type(noise).__name__} noise of scale {noise.scale:.4g} on counts"


@lru_cache(maxsize=256)
def top_k_plan(
    size: int, k: int, labels_each: int, replaced: bool, epsilon: float, delta: float
) -> Sequential:
    """Return noise on all of ``size`` counts, or rounds of selection and noise on k counts.

    A person has at most ``labels_each`` categories; the plan follows from these numbers alone.
    """
    moved = labels_each * (2 if replaced else 1)
    every = count_noise(min(moved, size), size, epsilon, delta)
    # With one person more all counts rise, so the log-ratios have the range of one count.
    monotone, chosen = not replaced, count_noise(min(moved, k), k, epsilon / 2, delta / 2)
    if delta:
        scale = calibrate(
            lambda s: Repeat(Exponential(s, 1.0, monotone), k), epsilon=epsilon / 2, delta=delta / 2
        )
    else:
        scale = round_up((1 if monotone else 2) * k / (epsilon / 2))
    selection = Exponential(scale, 1.0, monotone)
    # Both noisy counts of a comparison may be wrong.  A round loses up to its error, and the
    # released count has one error more.
    by_counts = 2 * every.expected_maximum(size)
    by_rounds = selection.selection_error(size) + chosen.expected_maximum(k)
    if by_counts <= by_rounds:
        return Sequential([every])
    return Sequential([*[selection] * k, chosen])


def count_noise(moved: int, size: int, epsilon: float, delta: float) -> Any:
    """Return the noise for ``size`` counts, of which a person moves ``moved`` by 1 each.

    Of the mechanisms that meet the target it is that whose largest noise is expected to be least.
    """
    pure_noise: Any = DiscreteLaplace(round_up(moved / epsilon), moved)
    if not delta:
        return pure_noise
    candidates: list[Any] = [
        calibrate(DiscreteLaplace, sensitivity=moved, epsilon=epsilon, delta=delta),
        calibrate(
            DiscreteGaussian,
            sensitivity=round_up(math.sqrt(moved)),
            dimension=size,
            epsilon=epsilon,
            delta=delta,
        ),
    ]
    return min(candidates, key=lambda noise: noise.expected_maximum(size))


def noise_reach(noise: Any, confidence: float) -> float:
    """Return a whole number m with P(|noise| <= m) at least ``confidence``."""
    outside = 1 - CONFIDENCE.check("confidence", confidence)
    if isinstance(noise, DiscreteLaplace):
        # P(|k| > m) = 2 q^{m+1} / (1 + q), q = e^{-1/scale}
        b = noise.drawn_scale
        return max(0.0, math.ceil(-b * (math.log(outside / 2) + math.log1p(math.exp(-1 / b))) - 1))
    # P(|k| > m) of a discrete Gaussian is at most P(|x| > m - 1) of a continuous one.
    return float(math.ceil(-float(ndtri(outside / 2)) * noise.scale))


def released_top(
    ledger: Any, steps: Sequence[Any], size: int, k: int, confidence: float, counted: Counting
) -> tuple[NDArray[np.int64], Array, Array]:
    """Return indices, counts and intervals of the k largest of ``size`` counts, as released.

    ``steps`` are the leaves of `top_k_plan`, and ``counted`` gives all counts of the data.
    """
    *rounds, noise = steps
    if not rounds:
        return largest(ledger.release(noise, counted, shape=size), k, confidence, noise)
    remaining = np.arange(size)
    for selection in rounds:
        won = ledger.release(selection, CountsOf(counted, remaining), shape=remaining.size)
        remaining = np.delete(remaining, int(won))
    winners = np.setdiff1d(np.arange(size), remaining)
    noisy = ledger.release(noise, CountsOf(counted, winners), shape=winners.size)
    order, counts, ends = largest(noisy, k, confidence, noise, chosen=True)
    return winners[order], counts, ends


def largest(
    noisy: Array, k: int, confidence: float, noise: Any, chosen: bool = False
) -> tuple[NDArray[np.int64], Array, Array]:
    """Return indices, counts and intervals of the k largest of noisy counts, along the last axis.

    The intervals hold for all of these counts at once, as the noise chooses the largest; for each
    alone where the counts were ``chosen`` before.
    """
    top = np.argsort(-noisy, axis=-1, kind="stable")[..., :k]
    counts = np.take_along_axis(noisy, top, axis=-1).astype(float)
    half = noise_reach(noise, confidence if chosen else confidence ** (1 / noisy.shape[-1]))
    ends = np.stack([counts - half, counts + half], axis=-1)
    return top, np.maximum(counts, 0.0), np.maximum(ends, 0.0)


@final
@dataclass(frozen=True, slots=True)
class CountsOf:
    """The query of a round: the counts of some categories."""

    counted: Counting
    categories: NDArray[np.int64]

    def __call__(self, rows: Any) -> Any:
        """Return how many people have each of the categories."""
        return self.counted(rows)[self.categories]


def category_counts(rows: ArrayLike, size: int) -> NDArray[np.int64]:
    """Return how many rows hold each category, counted once a row: the query of the data."""
    codes = np.sort(np.asarray(rows), axis=1)
    # Only the first of equal codes in a row counts.
    codes[:, 1:][codes[:, 1:] == codes[:, :-1]] = -1
    return np.bincount(codes[(codes >= 0) & (codes < size)], minlength=size)
