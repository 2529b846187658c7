"""Events of dp-accounting's main branch (August 2026) that the installed release may lack.

Readers go by class name and attributes, so classes with the names and fields of its `dp_event.py`
serve.  `RandomAllocationDpEvent` is as its tests and jax-privacy make it.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class EpsilonDeltaDpEvent:
    """A release that is known to be (epsilon, delta)-private."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class DiscreteGaussianDpEvent:
    """Discrete Gaussian noise on a function of this sensitivity."""

    sigma: float
    sensitivity: float = 1.0
    dimension: int | None = None


@dataclass(frozen=True)
class ExponentialMechanismDpEvent:
    """The exponential mechanism of this epsilon."""

    epsilon: float


@dataclass(frozen=True)
class PermuteAndFlipDpEvent:
    """Permute-and-flip of this epsilon."""

    epsilon: float


@dataclass(frozen=True)
class RandomAllocationDpEvent:
    """An event in every step, each record in ``num_selected`` random ones."""

    event: Any
    num_selected: int
    num_steps: int


STAND_INS = (
    EpsilonDeltaDpEvent,
    DiscreteGaussianDpEvent,
    ExponentialMechanismDpEvent,
    PermuteAndFlipDpEvent,
    RandomAllocationDpEvent,
)
