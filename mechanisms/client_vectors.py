"""Vectors of real numbers as the whole numbers that clients send under secure aggregation.

A client scales its vector down to a norm, rotates it at random, divides it by a step and rounds it
at random to whole numbers, again and again until their norm is within a bound.  That bound is the
sensitivity of the sum: it is checked in whole numbers, and no float can break it.  Sums are taken
modulo 2^bits.  This is post-processing, which costs nothing, but a sum that leaves the range wraps
around; how likely that is, at most, is counted here.

References: Kairouz, Liu & Steinke (2021), Sections 4 and 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.domains import POSITIVE, IntegerRange, Interval, OrNone
from accountant.errors import ParameterError, PrivateValueError
from accountant.numerics import Array
from accountant.planning.calibration import calibrate
from accountant.randomness import Rng, generator
from mechanisms.base.values import finite_floats
from mechanisms.sum_of_clients import SumOfClients

OPEN_SHARE = Interval(0.0, 1.0, "()")
DIMENSION = IntegerRange(1, 2**30)
BITS = IntegerRange(2, 62)
SEED = OrNone(IntegerRange(0))
FINEST, COARSEST = -50, 10  # binary logarithms of the steps that are tried, in clips


@final
@dataclass(frozen=True, slots=True)
class ClientVectors:
    """How clients turn vectors into whole numbers, and the server their sum into a vector.

    Parameters
    ----------
    dimension : int
        Coordinates of a vector.
    clip : float
        The largest L2 norm; longer vectors are scaled down to it.
    step : float
        What one whole number stands for.
    bits : int
        Sums are taken modulo ``2^bits``, from 2 to 62.
    excess : float
        In (0, 1), the chance at most that a rounding is drawn again, because it made the vector
        longer than `sensitivity` says.  The larger it is, the smaller is the sensitivity, and the
        more are long vectors drawn towards 0.
    rotation : int, optional
        Seed of a random rotation, which is public and the same for all clients.  It spreads a
        vector over all coordinates, whose number becomes a power of 2; None leaves vectors as they
        are.

    References
    ----------
    Kairouz, Liu & Steinke (2021), Proposition 22 and Section 4.2.

    Examples
    --------
    >>> import numpy as np
    >>> from mechanisms import ClientVectors, Skellam, SumOfClients
    >>> vectors = ClientVectors(dimension=3, clip=1.0, step=0.01, bits=12)
    >>> total = SumOfClients(Skellam(5.0, vectors.sensitivity, 3), clients=2)
    >>> data = np.array([[0.6, -0.1, 0.2], [0.1, 0.5, 0.3]])
    >>> messages = [total.mechanism.release(vectors.encode(x, rng=0), rng=1) for x in data]
    >>> vectors.decode(vectors.wrapped(sum(messages))).round(2).tolist()
    [0.69, 0.42, 0.57]
    >>> vectors.wrap_probability(total) < 1e-100
    True
    """

    dimension: int
    clip: float
    step: float
    bits: int
    excess: float = math.exp(-0.5)
    rotation: int | None = None

    def __post_init__(self) -> None:
        domains = {
            "dimension": DIMENSION,
            "clip": POSITIVE,
            "step": POSITIVE,
            "bits": BITS,
            "excess": OPEN_SHARE,
            "rotation": SEED,
        }
        for name, domain in domains.items():
            object.__setattr__(self, name, domain.check(name, getattr(self, name)))
        if self.clip / self.step > 2.0**50:
            raise ParameterError("step", self.step, f"at least clip / 2^50, {self.clip / 2**50:g}")

    @property
    def coordinates(self) -> int:
        """The coordinates of a message: with a rotation the next power of 2."""
        if self.rotation is None:
            return self.dimension
        return 1 << (self.dimension - 1).bit_length()

    @property
    def squared_norm(self) -> int:
        """The largest sum of squares of the whole numbers of one client."""
        # The norm of rounded numbers is at most their norm and sqrt(d) more, for each moves by at
        # most 1.  It is seldom more than the second bound (the reference's Proposition 22).
        norm, d = self.clip / self.step, self.coordinates
        always = (norm + math.sqrt(d)) ** 2
        spread = math.sqrt(-2 * math.log(self.excess)) * (norm + math.sqrt(d) / 2)
        return math.floor(min(always, norm * norm + d / 4 + spread) * (1 + 1e-12)) + 1

    @property
    def sensitivity(self) -> float:
        """The L2 norm of one client's whole numbers, at most; twice that if it is replaced."""
        return math.nextafter(math.sqrt(self.squared_norm), math.inf)

    def encode(self, vector: ArrayLike, rng: Rng = None) -> NDArray[np.int64]:
        """Return the whole numbers of one client's vector, before noise.

        Parameters
        ----------
        vector : array_like
            ``dimension`` finite numbers.
        rng : numpy.random.Generator, int or None
            Source of randomness or a seed.

        Returns
        -------
        numpy.ndarray
            Of `coordinates` whole numbers, whose norm is at most `sensitivity`.
        """
        values, source = finite_floats(vector), generator(rng)
        if values.shape != (self.dimension,):
            raise PrivateValueError("vector", f"one vector of {self.dimension} numbers")
        largest = float(np.max(np.abs(values), initial=0.0))
        norm = largest * math.sqrt(float(np.square(values / largest).sum())) if largest else 0.0
        scaled = self._rotated(values * min(1.0, self.clip / norm) if norm else values) / self.step
        floor = np.floor(scaled)
        while True:
            numbers = (floor + (source.random(scaled.size) < scaled - floor)).astype(np.int64)
            # The sum is one of Python's integers, which do not overflow.
            if sum(k * k for k in numbers.tolist()) <= self.squared_norm:
                return numbers

    def wrapped(self, numbers: ArrayLike) -> NDArray[np.int64]:
        """Return whole numbers modulo ``2^bits``, from ``-2^(bits - 1)`` on.

        Parameters
        ----------
        numbers : array_like
            Whole numbers: a message, or a sum of messages.

        Returns
        -------
        numpy.ndarray
            What the server sees of them.
        """
        half = np.int64(1) << np.int64(self.bits - 1)
        return (np.asarray(numbers, dtype=np.int64) + half) % (2 * half) - half

    def decode(self, total: ArrayLike) -> Array:
        """Return the vector for which a sum of messages stands.

        Parameters
        ----------
        total : array_like
            `coordinates` whole numbers.

        Returns
        -------
        numpy.ndarray
            ``dimension`` floats.
        """
        values = np.asarray(total, dtype=float) * self.step
        if self.rotation is None:
            return values
        return (self._signs() * hadamard(values))[: self.dimension]

    def wrap_probability(self, total: SumOfClients, largest: float | None = None) -> float:
        """Return a bound of the chance that any coordinate of the sum leaves the range.

        Parameters
        ----------
        total : SumOfClients
            Whose noise is added, that of all clients.
        largest : float, optional
            The largest L2 norm of the sum of all vectors; by default ``clients * clip``, which
            holds always.

        Returns
        -------
        float
            At most 1.  With a rotation it is over its random signs too.
        """
        norm = total.clients * self.clip if largest is None else POSITIVE.check("largest", largest)
        # Rounding moves a coordinate of each client by less than 1.
        room = 2.0 ** (self.bits - 1) - 1 - total.clients
        noise = total.mechanism.noise_of_sum(total.clients)
        if self.rotation is None:
            splits, of_signal = np.array([norm / self.step]), np.zeros(1)
        else:
            # A coordinate is a sum of d numbers with random signs, whose squares add up to
            # norm^2 / d: it exceeds t with at most 2 e^(-t^2 d / (2 norm^2)) (Hoeffding).
            splits = np.linspace(0.0, max(room, 0.0), 257)
            deviations = splits * self.step * math.sqrt(self.coordinates) / norm
            of_signal = 2 * np.exp(-np.square(deviations) / 2)
            of_signal[splits >= norm / self.step] = 0.0
        rooms = room - splits
        of_noise = np.exp(np.minimum(noise.log_tail(np.maximum(rooms, 0.0)), 0.0))
        chances = np.where(rooms > 0, of_signal + of_noise, 1.0)
        return min(1.0, self.coordinates * float(chances.min()))

    def deviation(self, total: SumOfClients) -> float:
        """Return the root mean square error of a coordinate of the sum, at most.

        It counts the noise of all clients, and rounding; wrapping around is not in it.

        Parameters
        ----------
        total : SumOfClients
            Whose noise is added.

        Returns
        -------
        float
            In the units of the vectors.
        """
        n, chance = total.clients, self.excess
        variance = total.mechanism.noise_of_sum(n).variance
        # Rounding that is drawn again with a chance has at most 1 / (1 - chance) times the variance
        # and a bias of a vector of at most sqrt(d) chance / (1 - chance) steps (the reference's
        # Proposition 22).
        of_rounding = n / 4 / (1 - chance) + (n * chance / (1 - chance)) ** 2
        return self.step * math.sqrt(variance + of_rounding)

    def _rotated(self, values: Array) -> Array:
        if self.rotation is None:
            return values
        padded = np.zeros(self.coordinates)
        padded[: values.size] = values
        return hadamard(self._signs() * padded)

    def _signs(self) -> Array:
        """Return the public random signs of all coordinates."""
        signs: Array = 1.0 - 2 * np.random.default_rng(self.rotation).integers(
            0, 2, self.coordinates
        )
        return signs


def hadamard(values: Array) -> Array:
    """Return the orthogonal Walsh-Hadamard transform of 2^n numbers, its own inverse."""
    size, transformed = 1, values
    while size < values.size:
        pairs = transformed.reshape(-1, 2, size)
        transformed = np.concatenate([pairs[:, :1] + pairs[:, 1:], pairs[:, :1] - pairs[:, 1:]], 1)
        size *= 2
    return transformed.reshape(values.size) / math.sqrt(values.size)


def calibrate_sum(
    share: Any,
    *,
    dimension: int,
    clip: float,
    bits: int,
    clients: int,
    epsilon: float,
    delta: float,
    dropout: float = 0,
    rounds: int = 1,
    wrap: float = 1e-6,
    rotation: int | None = 0,
) -> tuple[ClientVectors, SumOfClients]:
    """Return the finest step, and the least noise, with which sums cost epsilon and fit into bits.

    Parameters
    ----------
    share : type
        `DiscreteGaussian` or `Skellam`, the noise that each client adds.
    dimension : int
        Coordinates of a vector.
    clip : float
        The largest L2 norm of a client's vector.
    bits : int
        Sums are taken modulo ``2^bits``.
    clients : int
        Clients in a round.
    epsilon, delta : float
        What all rounds may cost, at most.
    dropout : int or float
        Clients, or the share of them, whose noise may be missing or known.
    rounds : int
        Number of sums.
    wrap : float
        In (0, 1), the chance at most that any coordinate of a sum wraps around.
    rotation : int, optional
        As in `ClientVectors`.

    Returns
    -------
    tuple of ClientVectors and SumOfClients
        ``rounds`` times the second costs at most epsilon.

    Raises
    ------
    ParameterError
        If no step fits into so few bits.

    Examples
    --------
    >>> from mechanisms import Skellam, calibrate_sum
    >>> vectors, total = calibrate_sum(
    ...     Skellam, dimension=1000, clip=1.0, bits=16, clients=100, epsilon=2.0, delta=1e-5
    ... )
    >>> vectors.wrap_probability(total) <= 1e-6
    True
    """
    target = OPEN_SHARE.check("wrap", wrap)

    def at(step: float) -> tuple[ClientVectors, SumOfClients]:
        vectors = ClientVectors(dimension, clip, step, bits, rotation=rotation)
        fixed = vectors.sensitivity, vectors.coordinates

        def total(scale: float) -> SumOfClients:
            return SumOfClients(share(scale, *fixed), clients, dropout)

        scale = calibrate(lambda x: rounds * total(x), epsilon=epsilon, delta=delta)
        return vectors, total(scale)

    def fits(step: float) -> bool:
        try:
            vectors, total = at(step)
        except ParameterError:  # steps so fine need more noise than can be drawn
            return False
        return vectors.wrap_probability(total) <= target

    at(clip)  # raises what is wrong with the other arguments
    # The longer a step, the smaller are the numbers, and the seldomer they wrap around.
    exponent, too_fine = float(COARSEST), float(FINEST)
    if not fits(clip * 2**exponent):
        raise ParameterError("bits", bits, f"more for {clients} clients and this epsilon")
    while exponent - too_fine > 1e-5:
        middle = (exponent + too_fine) / 2
        exponent, too_fine = (middle, too_fine) if fits(clip * 2**middle) else (exponent, middle)
    return at(clip * 2**exponent)
