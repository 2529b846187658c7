"""The base of mechanisms that release a function of what another mechanism releases.

Such a function cannot cost more privacy than its input, so its loss is that of the inner
mechanism unless it states a smaller one.

References: Dwork & Roth (2014), Proposition 2.1.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Self

from accountant.errors import ParameterError
from accountant.losses.loss import Loss
from accountant.plans.adjacency import Adjacency
from mechanisms.base import Mechanism, Values


@dataclasses.dataclass(frozen=True, slots=True)
class MechanismsWithAttribute:
    """The mechanisms that have a given attribute, as a domain with a description."""

    attribute: str
    description: str

    def check(self, argument: str, value: object) -> Mechanism:
        """Return the mechanism, or raise `ParameterError`."""
        if not isinstance(value, Mechanism) or not hasattr(value, self.attribute):
            raise ParameterError(argument, value, str(self))
        return value

    def __str__(self) -> str:
        return self.description


class PostProcessing(Mechanism):
    """Post-processing of the release of ``inner``: its loss is that of the inner release."""

    __slots__ = ()
    inner: Any

    @property
    def loss(self) -> Loss:
        """The privacy loss of the inner release."""
        loss: Loss = self.inner.loss
        return loss

    @property
    def relation(self) -> Adjacency | None:
        """The neighbours of the inner mechanism."""
        relation: Adjacency | None = self.inner.relation
        return relation

    @property
    def loss_is_upper_bound(self) -> bool:
        """True: post-processing may hide part of what the inner release shows."""
        return True

    @property
    def why_no_formula(self) -> str:
        """The inner mechanism's claim is what is proved."""
        return f"the loss is that of {type(self.inner).__name__}"

    def worst_pair(self, epsilon: float = 0.0) -> tuple[Any, Any]:
        """Return the worst pair of the inner mechanism."""
        pair: tuple[Any, Any] = self.inner.worst_pair(epsilon)
        return pair

    @property
    def values(self) -> Values:
        """The values of the inner mechanism."""
        values: Values = self.inner.values
        return values

    @property
    def hidden_axes(self) -> int:
        """The number of hidden axes of the inner mechanism."""
        axes: int = self.inner.hidden_axes
        return axes

    @property
    def arithmetic(self) -> str:
        """The arithmetic of the inner mechanism."""
        arithmetic: str = self.inner.arithmetic
        return arithmetic

    def with_noise_factor(self, factor: float) -> Self:
        """Return a copy whose inner mechanism has its calibrated parameter times ``factor``."""
        changed: Self = dataclasses.replace(self, inner=self.inner.with_noise_factor(factor))
        return changed
