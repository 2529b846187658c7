"""The sum of many clients' vectors under secure aggregation, each with a share of the noise.

A server sees the sum alone, modulo 2^bits.  Every client adds noise to its vector before; the noise
of those who drop out, or who tell their noise to the server, does not count: `SumOfClients`.

Vectors of real numbers become whole ones by `ClientVectors`.  A client scales its vector down to a
norm, rotates it at random, divides it by a step and rounds it at random, again and again until the
norm of the whole numbers is within a bound.  That bound is the sensitivity of the sum: it is
checked in whole numbers, and no float can break it.  The modulus is post-processing, which costs
nothing, but a sum that leaves the range wraps around; how likely that is, at most, is counted.

References: Kairouz, Liu & Steinke (2021); Agarwal, Kairouz & Liu (2021).  Proofs:
docs/proofs/summed_noise.md.
"""

from __future__ import annotations

import dataclasses
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.domains import POSITIVE, Domain, IntegerRange, Interval, OrNone
from accountant.errors import ParameterError, PrivateValueError
from accountant.losses.summed_noise import CLIENTS, SummedNoise
from accountant.numerics import Array
from accountant.planning.calibration import calibrate
from accountant.plans.adjacency import Adjacency
from accountant.randomness import Rng, generator
from mechanisms.base import declare, finite_floats, param
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.families.post_processing import MechanismsWithAttribute
from mechanisms.families.summed_noise import SummedIntegerNoise

OPEN_SHARE = Interval(0.0, 1.0, "()")
DIMENSION = IntegerRange(1, 2**30)
BITS = IntegerRange(2, 62)
SEED = OrNone(IntegerRange(0))
FINEST, COARSEST = -50, 10  # binary logarithms of the steps that are tried, in clips


@dataclasses.dataclass(frozen=True, slots=True)
class DropOut:
    """A number of clients, or a share of them, as a domain; a share becomes a number."""

    clients: int

    def check(self, argument: str, value: object) -> int:
        """Return the number, a share rounded up, or raise `ParameterError`."""
        number = value
        if isinstance(value, (float, np.floating)) and 1 / CLIENTS.high <= value < 1:
            # The share is the decimal that is printed: 0.29 of 100 clients are 29.
            number = math.ceil(Fraction(Decimal(repr(float(value)))) * self.clients)
        try:
            return IntegerRange(0, self.clients - 1).check(argument, number)
        except ParameterError:
            raise ParameterError(argument, value, str(self)) from None

    def __str__(self) -> str:
        return f"a whole number below {self.clients} clients, or a share in (0, 1) of them"


@final
@declare
class SumOfClients(SummedIntegerNoise):
    """The sum of the vectors of all clients, with the noise of those who did not drop out.

    Each client releases its own vector by ``mechanism``, whose sensitivity says how far one
    record, or one client, moves the sum.  Secure aggregation shows the sum alone.  The loss holds
    however the clients who drop out are chosen, and also where they stay but tell the server
    their noise.  How many clients there are is public, and equal on both neighbours: a client is
    protected by zeroing its vector, not by leaving it out, as its noise would be missed.

    ``PoissonSampled(SumOfClients(...), rate)`` samples records: all clients add noise in every
    round, also those with no record in the sample.  If clients are sampled, and only those in the
    sample add noise, use ``SampledWithoutReplacement``, with as many clients as are in a sample.

    Examples
    --------
    >>> import numpy as np
    >>> from accountant import Tight
    >>> from mechanisms import DiscreteGaussian, Skellam, SumOfClients
    >>> share = DiscreteGaussian(scale=10.0, sensitivity=100.0, dimension=1024)
    >>> plan = SumOfClients(share, clients=1000, dropout=0.1)
    >>> plan.dropout, round(Tight().epsilon(plan, delta=1e-6), 4)
    (100, 1.448)
    >>> total = SumOfClients(Skellam(scale=0.5), clients=100)
    >>> int(total.release(1234, rng=0)), round(Tight().epsilon(total, delta=1e-6), 4)
    (1238, 0.7757)
    """

    releases: ClassVar[str] = "the sum of many clients' whole vectors"
    reference: ClassVar[str] = "Kairouz, Liu & Steinke (2021)"
    limits: ClassVar[str] = "discrete Gaussians: the time of a draw grows with the clients"

    mechanism: Any = param(
        MechanismsWithAttribute("noise_of_sum", "a DiscreteGaussian or a Skellam"),
        "noise that each client adds to its own vector",
        typical=(DiscreteGaussian(1.25),),
    )
    clients: int = param(CLIENTS, "clients who add noise", typical=(9,))
    dropout: int = param(
        lambda others: DropOut(others.clients),
        "clients, or the share of them, whose noise may be missing or known",
        typical=(0, 2),
        default=0,
    )

    @property
    def survivors(self) -> int:
        """The clients whose noise counts."""
        return self.clients - self.dropout

    @property
    def sensitivity(self) -> float:  # type: ignore[override]  # read only
        """The L2 sensitivity of the sum, as the mechanism states it."""
        return float(self.mechanism.sensitivity)

    @property
    def dimension(self) -> int:  # type: ignore[override]  # read only
        """The coordinates of a vector, as the mechanism states them."""
        return int(self.mechanism.dimension)

    @property
    def scale(self) -> float:  # type: ignore[override]  # read only
        """The scale of one client's noise."""
        return float(self.mechanism.scale)

    @property
    def relation(self) -> Adjacency | None:
        """The neighbours of the mechanism."""
        relation: Adjacency | None = self.mechanism.relation
        return relation

    @property
    def noise(self) -> SummedNoise:
        """The law of the noise of the survivors, in one coordinate."""
        noise: SummedNoise = self.mechanism.noise_of_sum(self.survivors)
        return noise

    def draw_noise(self, size: int, rng: np.random.Generator) -> Any:
        """Return independent draws of the noise of the survivors."""
        return self.mechanism.draw_sum(self.survivors, size, rng)

    @classmethod
    def knob(cls, **fixed: Any) -> tuple[str, Interval]:
        """Refuse: the noise is a field of ``mechanism``."""
        remedy = "calibrate(SumOfClients(share, clients), epsilon=...) scales that of a sum"
        raise ParameterError(
            "fixed", fixed, f"fields of a mechanism with noise of its own; {remedy}"
        )

    def with_noise_factor(self, factor: float) -> Self:
        """Return the same sum whose clients add noise of ``factor`` times the scale."""
        changed: Self = dataclasses.replace(
            self, mechanism=self.mechanism.with_noise_factor(factor)
        )
        return changed

    @property
    def drawn_numbers(self) -> dict[str, Any]:
        """The law of the sum in plain numbers; no value is rounded to a grid."""
        return {
            "share": type(self.mechanism).__name__,
            "sensitivity": self.sensitivity,
            "dimension": self.dimension,
            "drawn_scale": self.scale,
            "survivors": self.survivors,
            "step": 0.0,
        }

    @property
    def drawn_tables(self) -> list[dict[str, Any]]:
        """The tables of one client's draws, or of the draw of the sum."""
        tables: list[dict[str, Any]] = self.mechanism.drawn_tables
        return tables


@final
@dataclasses.dataclass(frozen=True, slots=True)
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
    [0.56, 0.56, 0.44]
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
        domains: dict[str, Domain] = {
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
        scaled = values * (min(1.0, self.clip / norm) if norm else 0.0) / self.step
        if self.rotation is not None:
            padding = np.zeros(self.coordinates - self.dimension)
            scaled = hadamard(self._signs() * np.append(scaled, padding))
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

        It counts the noise of all clients, and rounding, but neither vectors that are longer than
        ``clip`` nor sums that wrap around.

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

    def _signs(self) -> Array:
        """Return the public random signs of all coordinates."""
        coins = np.random.default_rng(self.rotation).integers(0, 2, self.coordinates)
        return 1.0 - 2.0 * coins.astype(float)


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
    if not hasattr(share, "noise_of_sum"):
        raise ParameterError("share", share, "DiscreteGaussian or Skellam")

    def at(step: float) -> tuple[ClientVectors, SumOfClients]:
        vectors = ClientVectors(dimension, clip, step, bits, rotation=rotation)
        fixed = vectors.sensitivity, vectors.coordinates

        def total(scale: float) -> SumOfClients:
            return SumOfClients(share(scale, *fixed), clients, dropout)  # type: ignore[arg-type]  # a share

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
