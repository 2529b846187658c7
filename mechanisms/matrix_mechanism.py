"""Correlated noise for a run of steps: a strategy matrix times the steps, plus Gaussian noise.

A value x has a row for each step, the sum of what all records add in it.  With a strategy matrix C
the mechanism releases the noisy rows C x + Z, decoded to prefix sums of the steps or to the steps
themselves.  One record takes part in several steps, as its *participation* says; how far it moves
C x at most is the sensitivity, and the loss is that of one Gaussian.

References: Li, Miklau, Hay, McGregor & Rastogi (2015); Denisov, McMahan, Rush, Smith & Thakurta
(2022).  Proofs: `docs/proofs/correlated_noise.md`.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.correlated_noise.banded_matrix import BandedMatrix
from accountant.correlated_noise.binary_tree import BinaryTree
from accountant.correlated_noise.buffered_toeplitz import BufferedToeplitz
from accountant.correlated_noise.dense_matrix import StrategyMatrix
from accountant.correlated_noise.participation import (
    FixedEpochs,
    MinSeparation,
    Once,
    Participation,
)
from accountant.correlated_noise.strategy import Sensitivity, Strategy, sensitivity
from accountant.correlated_noise.toeplitz import Toeplitz
from accountant.domains import POSITIVE, IntegerRange, OneOf, OrNone
from accountant.errors import ParameterError, PrivateValueError
from accountant.losses.gaussian import GaussianLoss
from accountant.numerics import Array
from accountant.numerics.rounding import ULP, round_up, round_up_product, round_up_ratio
from accountant.randomness import Rng, generator
from mechanisms.base import (
    EXACT,
    IDEALISED,
    Mechanism,
    RealLine,
    arithmetic_field,
    declare,
    draw_shape,
    finite_floats,
    param,
    refuse_size_for_batch,
)
from mechanisms.exact_noise.integer_noise import IntegerNoise
from mechanisms.exact_noise.rounding_grid import (
    MAX_GRID_STEPS,
    grid_exponent,
    grid_step,
    widened_scale,
)
from mechanisms.exact_noise.whole_products import as_floats, entry_exponent, product_in_steps

# Starts of patterns of participation that are tried for the worst pair.  With more the pair may be
# nearer to the sensitivity; the loss does not depend on it.
TRIED_STARTS = 64
# Largest number of rows of a matrix whose error is computed by decoding; time and memory grow with
# its square at least.
MOST_DECODED = 2048
DECODERS = ("prefix sums", "steps", "rows")
STRATEGIES = (BandedMatrix, BinaryTree, BufferedToeplitz, StrategyMatrix, Toeplitz)
PARTICIPATIONS = (FixedEpochs, MinSeparation, Once)


@dataclass(frozen=True, slots=True)
class Strategies:
    """Strategy matrices as a domain; a numpy matrix means a `StrategyMatrix`."""

    def check(self, argument: str, value: object) -> Strategy:
        """Return the strategy, or raise `ParameterError`."""
        if isinstance(value, np.ndarray) and value.ndim == 2:
            return StrategyMatrix(value)
        if not isinstance(value, STRATEGIES):
            raise ParameterError(argument, value, str(self))
        return value

    def __str__(self) -> str:
        names = ", ".join(cls.__name__ for cls in STRATEGIES)
        return f"a strategy ({names}) or a matrix of numpy"


@dataclass(frozen=True, slots=True)
class Participations:
    """Patterns of participation as a domain; a pair (k, b) means a `MinSeparation`."""

    def check(self, argument: str, value: object) -> Participation:
        """Return the pattern, or raise `ParameterError`."""
        if isinstance(value, tuple) and len(value) == 2:
            return MinSeparation(*value)
        if not isinstance(value, PARTICIPATIONS):
            raise ParameterError(argument, value, str(self))
        return value

    def __str__(self) -> str:
        return "Once(), MinSeparation(participations, separation) or FixedEpochs(epochs)"


@dataclass(frozen=True, slots=True)
class StepSums:
    """A row for each step: the sum of what records add to it.  A run of one step may be a number.

    Neighbours differ in the steps of a pattern, in each by at most ``sensitivity``.
    """

    strategy: Strategy
    sensitivity: float  # the largest L2 norm of what a record moves in one step
    dimension: int | None  # coordinates of a step; None where steps are numbers

    @property
    def axes(self) -> int:
        """2 with coordinates; 1 for numbers, and 0 for the number of one step."""
        if self.dimension is not None:
            return 2
        return 1 if self.strategy.columns > 1 else 0

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one value."""
        return (self.strategy.columns, self.dimension or 1)[: self.axes]

    def check(self, value: ArrayLike) -> Array:
        """Return finite floats of the shape of a value, or a batch of such."""
        steps = finite_floats(value)
        if (
            steps.shape[max(steps.ndim - self.axes, 0) :] != self.shape
            or steps.ndim > 1 + self.axes
        ):
            raise PrivateValueError("value", f"an array of shape {self.shape}, or a batch of such")
        return steps

    def example(self, rng: np.random.Generator) -> Any:
        """Return random steps."""
        steps = rng.normal(scale=10, size=self.shape)
        return float(steps) if self.axes == 0 else steps

    def neighbour(self, value: Any, rng: np.random.Generator) -> Any:
        """Return the value with one step moved by at most the sensitivity, along a coordinate."""
        step = float(rng.choice([1.0, -1.0, rng.uniform(-1, 1)])) * self.sensitivity
        if self.axes == 0:
            return value + step
        moved = np.array(value, dtype=float)
        moved.reshape(len(moved), -1)[rng.integers(len(moved)), 0] += step
        return moved


@final
@declare
class MatrixMechanism(Mechanism):
    """The rows of ``C x`` plus Gaussian noise, decoded to noisy prefix sums of the steps x.

    A row of x is the sum of what all records add in one step, and C is the strategy.  The noise in
    the prefix sums is correlated, and much less than if each sum had noise of its own.  In
    training, the same noise ``C^-1 Z`` is added to the gradients, and this mechanism says what the
    run costs.

    Examples
    --------
    >>> import numpy as np
    >>> from accountant import BinaryTree, FixedEpochs, Tight
    >>> from mechanisms import MatrixMechanism
    >>> round(Tight().epsilon(MatrixMechanism(BinaryTree(1600), scale=8.83), delta=1e-6), 4)
    1.6487
    >>> two_epochs = MatrixMechanism(BinaryTree(8), 0.5, FixedEpochs(epochs=2))
    >>> two_epochs.moved.squared, round(two_epochs.loss.mu, 4)
    (10, 6.3246)
    >>> two_epochs.release(np.ones(8), rng=0).round(1).tolist()
    [0.8, 2.0, 2.9, 3.8, 4.2, 6.2, 7.0, 7.7]
    """

    releases: ClassVar[str] = "prefix sums of a run of steps"
    reference: ClassVar[str] = "Denisov, McMahan, Rush, Smith & Thakurta (2022)"
    limits: ClassVar[str] = "idealised: low-order bits leak; exact: the time of a draw varies"

    strategy: Any = param(
        Strategies(),
        "matrix C: `BinaryTree`, `Toeplitz`, `BufferedToeplitz`, `BandedMatrix` or "
        "`StrategyMatrix`",
        typical=(Toeplitz((2.0,), 1),),
    )
    # At the typical scale the typical strategy, with sensitivity 2, is (1, 1e-5)-DP.
    scale: float = param(
        POSITIVE,
        "standard deviation of the noise in each row of C x",
        typical=(7.4612668,),
        knob=True,
    )
    participation: Any = param(
        Participations(),
        "steps that may use one record: `Once`, `MinSeparation` or `FixedEpochs`",
        typical=(Once(),),
        default=Once(),
    )
    sensitivity: float = param(
        POSITIVE,
        "L2 norm of what a record moves in one step, at most",
        typical=(1.0,),
        default=1.0,
    )
    arithmetic: str = arithmetic_field(EXACT, IDEALISED)
    dimension: int | None = param(
        OrNone(IntegerRange(1)),
        "coordinates of a step; None where steps are numbers",
        typical=(None,),
        default=None,
    )
    decoder: str = param(
        OneOf(DECODERS),
        "what is made of the noisy rows: their prefix sums, the steps, or nothing",
        typical=("prefix sums",),
        default="prefix sums",
    )

    def __post_init__(self) -> None:
        Mechanism.__post_init__(self)
        if self.decoder != "rows" and not self.strategy.is_invertible:
            allowed = "'rows' for a strategy that is not invertible"
            raise ParameterError("MatrixMechanism.decoder", self.decoder, allowed)

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Return the decoded noisy rows; see `Mechanism.release`."""
        steps, source = self.values.check(value), generator(rng)
        is_batch = steps.ndim > self.values.axes
        refuse_size_for_batch(size, steps, self.values.axes)
        coordinates = self.dimension or 1
        # The axes are steps or rows, values of the batch or draws, and coordinates.
        batch = steps.reshape(-1, self.strategy.columns, coordinates).swapaxes(0, 1)
        draws = batch.shape[1] if size is None else draw_shape(size, ())[0]
        noisy = self._noisy_rows(batch, source, (self.strategy.rows, draws, coordinates))
        # Now draws come first, and the axes that a value does not have are taken away.
        decoded = _decoded(self.strategy, self.decoder, noisy).swapaxes(0, 1)
        decoded = decoded if is_batch or size is not None else decoded[0]
        if self.dimension is None:
            decoded = decoded[..., 0]
        is_one_number = self.values.axes == 0 and decoded.shape[-1] == 1
        answer: Array = decoded[..., 0] if is_one_number else decoded
        return answer

    def _noisy_rows(self, steps: Array, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        """Return ``C x`` plus noise, in whole steps of a grid or in floats."""
        if self.arithmetic is not EXACT:
            noisy: Array = self.strategy.times(steps) + self.scale * rng.standard_normal(shape)
            return noisy
        k = grid_exponent(self.scale)
        law = IntegerNoise(math.ldexp(self.drawn_scale, -k), power=2)
        noise = law.draw(math.prod(shape), rng).reshape(shape)
        rows = product_in_steps(self.strategy, steps, k)
        if rows.size == 0 or max(int(rows.max()), -int(rows.min())) < MAX_GRID_STEPS:
            return as_floats(rows.astype(np.int64) + noise, k)
        return as_floats(rows + noise.astype(object), k)

    def log_density(self, output: ArrayLike, value: ArrayLike, each: bool = False) -> Array:
        """Return the log-density of Gaussian rows, or of what a decoder makes of them."""
        centre, coordinates = np.asarray(value, dtype=float), self.dimension or 1
        outputs = np.asarray(output, dtype=float)
        # Outputs and values get the axes of `release`: steps or rows first, coordinates last.
        length = self.strategy.rows if self.decoder == "rows" else self.strategy.columns
        # A number of one step may have several rows.
        axes = self.values.axes + (self.values.axes == 0 and length > 1)
        outputs = outputs.reshape(*outputs.shape[: outputs.ndim - axes], length, coordinates)
        batch_shape = centre.shape[: centre.ndim - self.values.axes]
        centre = centre.reshape(*batch_shape, self.strategy.columns, coordinates)
        centre = np.moveaxis(centre, -2, 0)
        outputs = np.moveaxis(outputs, -2, 0)
        # Steps s that are decoded by least squares are x plus Gaussian noise of the covariance
        # scale^2 (C^T C)^-1, so their density falls as e^(-|C (s - x)|^2 / (2 scale^2)).
        if self.decoder == "rows":
            residual = outputs - _with_axes(self.strategy.times(centre), outputs.ndim)
        else:
            sums = self.decoder == "prefix sums"
            steps = np.diff(outputs, axis=0, prepend=0.0) if sums else outputs
            residual = self.strategy.times(steps - _with_axes(centre, outputs.ndim))
        # Decoding divides volumes by the square root of det(C^T C), whose logarithm is log_volume.
        log_volume = 0.0 if self.decoder == "rows" else self.strategy.log_volume
        scale = self.drawn_scale
        log_density_of_zero = log_volume - length * math.log(scale * math.sqrt(2 * math.pi))
        log_constant = coordinates * log_density_of_zero
        density: Array = log_constant - np.square(residual / scale).sum(axis=(0, -1)) / 2
        return density.sum(axis=-1) if batch_shape and not each else density

    @property
    def moved(self) -> Sensitivity:
        """How far one record moves all rows, where it moves each step by a vector of norm 1."""
        return sensitivity(self.strategy, self.participation)

    @property
    def drawn_scale(self) -> float:
        """The scale of the noise as it is drawn: exact noise is wider, as the grid moves."""
        if self.arithmetic is not EXACT:
            return self.scale
        return widened_scale(self.scale, self._distance, self._rounding_moves)

    @property
    def _distance(self) -> float:
        """How far one record moves all rows."""
        return round_up_product(self.moved.value, self.sensitivity)

    @property
    def _rounding_moves(self) -> float:
        """How much farther rounding can move neighbours apart: of entries, steps, and rows."""
        rounded_sensitivity = _rounded_sensitivity(self.strategy, self.participation)
        grid, coordinates = grid_step(self.scale), self.dimension or 1
        # Rounding to the grid moves each coordinate, of x in the steps of a pattern and of all rows
        # of C x, by half a grid step at both neighbours, so by one in total.
        of_steps = rounded_sensitivity * math.sqrt(coordinates) * grid
        of_rows = math.sqrt(self.strategy.rows * coordinates) * grid
        of_entries = max(rounded_sensitivity - self.moved.value, 0.0) * self.sensitivity
        total = of_entries + of_steps + of_rows
        # The last term is for the round-off of this sum and of the distance.
        return total + 8 * ULP * (total + self._distance)

    @property
    def deviation(self) -> float:
        """The largest standard deviation of a decoded number."""
        return self.drawn_scale * _largest_error(self.strategy, self.decoder)

    @property
    def loss(self) -> GaussianLoss:
        """One Gaussian, as far as the rows move in standard deviations of the noise."""
        if self.arithmetic is EXACT and self.drawn_scale == self.scale:
            # The noise was not widened, so that rounding counts as sensitivity; the 2^-80 pays for
            # discrete in place of continuous noise (docs/proofs/discrete.md).
            distance_with_rounding = round_up(self._distance + self._rounding_moves)
            return GaussianLoss(round_up(distance_with_rounding / self.scale + 2.0**-80))
        return GaussianLoss(round_up_ratio(self._distance, self.scale))

    @property
    def loss_is_upper_bound(self) -> bool:
        """Whether the known worst pair moves the rows by less than the sensitivity, up to 1e-9."""
        _, known_distance = self._worst_steps
        return known_distance < self.moved.value * (1 - 1e-9)

    @property
    def why_no_formula(self) -> str:
        """The profile is that of a Gaussian; how far C x moves is computed, not a formula."""
        return "one Gaussian, of a sensitivity that is computed from the matrix"

    def worst_pair(self, epsilon: float = 0.0) -> tuple[Any, Any]:
        """Return steps that differ in a pattern, along one coordinate, and steps without."""
        del epsilon
        steps = np.zeros(self.values.shape)
        if steps.ndim == 0:
            return self.sensitivity, 0.0
        pattern, _ = self._worst_steps
        steps.reshape(len(steps), -1)[pattern, 0] = self.sensitivity
        return steps, np.zeros_like(steps)

    @property
    def _worst_steps(self) -> tuple[NDArray[np.int64], float]:
        """Return the best pattern of steps at equal distances, and how far it moves the rows."""
        uses, spacing = _uses_and_spacing(self.participation, self.strategy.columns)
        last_start = self.strategy.columns - (uses - 1) * spacing - 1
        starts = np.unique(np.linspace(0, last_start, TRIED_STARTS).astype(int))
        patterns = starts + spacing * np.arange(uses)[:, None]
        indicators = np.zeros((self.strategy.columns, starts.size))
        indicators[patterns, np.arange(starts.size)] = 1.0
        norms = np.sqrt(np.square(self.strategy.times(indicators)).sum(axis=0))
        best = int(np.argmax(norms))
        return patterns[:, best], float(norms[best])

    @property
    def values(self) -> StepSums:
        """A number or a vector for each step."""
        return StepSums(self.strategy, self.sensitivity, self.dimension)

    @property
    def support(self) -> RealLine:
        """The real line."""
        return RealLine()


def _decoded(strategy: Strategy, decoder: str, rows: Array) -> Array:
    """Return the decoded rows, along the first axis."""
    if decoder == "rows":
        return rows
    steps = strategy.recovered(rows)
    return np.cumsum(steps, axis=0) if decoder == "prefix sums" else steps


@functools.lru_cache(maxsize=64)
def _largest_error(strategy: Strategy, decoder: str) -> float:
    """Return the greatest norm of a row of the decoding matrix."""
    if decoder == "rows":
        return 1.0
    if isinstance(strategy, (Toeplitz, BufferedToeplitz)):
        # The decoding matrix is Toeplitz too: its last row is its first column reversed.
        first_column = _decoded(strategy, decoder, np.eye(strategy.rows, 1))
        return float(np.linalg.norm(first_column))
    if strategy.rows > MOST_DECODED:
        raise ParameterError(
            "strategy", strategy, f"of at most {MOST_DECODED:,} rows for its error"
        )
    return float(np.linalg.norm(_decoded(strategy, decoder, np.eye(strategy.rows)), axis=1).max())


@functools.lru_cache(maxsize=64)
def _rounded_sensitivity(strategy: Strategy, participation: Participation) -> float:
    """Return the sensitivity of the matrix that exact arithmetic multiplies with."""
    return sensitivity(strategy.rounded(entry_exponent(strategy)), participation).value


def _with_axes(array: Array, axes: int) -> Array:
    """Return an array with axes of length 1 behind its first one, for draws."""
    return array.reshape(array.shape[0], *([1] * (axes - array.ndim)), *array.shape[1:])


def _uses_and_spacing(participation: Participation, steps: int) -> tuple[int, int]:
    """Return how often a record can be used in all steps, and how many steps apart."""
    match participation:
        case FixedEpochs():
            return participation.epochs, participation.period(steps)
        case MinSeparation():
            return participation.most(steps), participation.separation
    return 1, steps
