"""The sum of many clients' integer vectors under secure aggregation, each with a share of noise.

A server sees the sum alone, modulo 2^bits.  Every client adds noise to its vector before; the noise
of those who drop out, or who tell their noise to the server, does not count.

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

from accountant.domains import IntegerRange, Interval
from accountant.errors import ParameterError
from accountant.losses.summed_noise import CLIENTS, SummedNoise
from accountant.plans.adjacency import Adjacency
from mechanisms.base import declare, param
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.families.post_processing import MechanismsWithAttribute
from mechanisms.families.summed_noise import SummedIntegerNoise


@dataclasses.dataclass(frozen=True, slots=True)
class DropOut:
    """A number of clients, or a share of them, as a domain; a share becomes a number."""

    clients: int

    def check(self, argument: str, value: object) -> int:
        """Return the number, a share rounded up, or raise `ParameterError`."""
        if isinstance(value, (float, np.floating)) and 1 / CLIENTS.high <= value < 1:
            # The share is the decimal that is printed: 0.29 of 100 clients are 29.
            value = math.ceil(Fraction(Decimal(repr(float(value)))) * self.clients)
        try:
            return IntegerRange(0, self.clients - 1).check(argument, value)
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

    Examples
    --------
    >>> import numpy as np
    >>> from accountant import Tight
    >>> from mechanisms import DiscreteGaussian, Skellam, SumOfClients
    >>> share = DiscreteGaussian(scale=10.0, sensitivity=100.0, dimension=1024)
    >>> plan = SumOfClients(share, clients=1000, dropout=0.1)
    >>> plan.dropout, round(Tight().epsilon(plan, delta=1e-6), 4)
    (100, 1.4119)
    >>> total = SumOfClients(Skellam(scale=0.5), clients=100)
    >>> int(total.release(1234, rng=0)), round(Tight().epsilon(total, delta=1e-6), 4)
    (1233, 0.8072)
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
    def sensitivity(self) -> float:
        """The L2 sensitivity of the sum, as the mechanism states it."""
        return float(self.mechanism.sensitivity)

    @property
    def dimension(self) -> int:
        """The coordinates of a vector, as the mechanism states them."""
        return int(self.mechanism.dimension)

    @property
    def scale(self) -> float:
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
        raise ParameterError("fixed", fixed, f"fields of a mechanism with noise of its own; {remedy}")

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
