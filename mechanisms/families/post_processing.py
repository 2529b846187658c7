"""What mechanisms made of another mechanism share."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

from accountant.errors import ParameterError
from accountant.losses.loss import Loss
from accountant.plans.adjacency import Adjacency
from mechanisms.base.mechanism import Mechanism
from mechanisms.base.values import Values


@dataclasses.dataclass(frozen=True, slots=True)
class MechanismsWithAttribute:
    """Mechanisms that have an attribute, described in words."""

    attribute: str
    description: str

    def check(self, argument: str, value: object) -> Mechanism:
        """The mechanism itself."""
        if not isinstance(value, Mechanism) or not hasattr(value, self.attribute):
            raise ParameterError(argument, value, str(self))
        return value

    def __str__(self) -> str:
        return self.description


class PostProcessing(Mechanism):
    """Post-processing of what ``inner`` releases: it costs what the inner release costs."""

    __slots__ = ()
    inner: Any

    @property
    def loss(self) -> Loss:
        """That of the inner release."""
        loss: Loss = self.inner.loss
        return loss

    @property
    def relation(self) -> Adjacency | None:
        """That of the inner mechanism."""
        relation: Adjacency | None = self.inner.relation
        return relation

    @property
    def loss_is_upper_bound(self) -> bool:
        """What is done afterwards may hide something."""
        return True

    def worst_pair(self, epsilon: float = 0.0) -> tuple[Any, Any]:
        """That of the inner mechanism."""
        pair: tuple[Any, Any] = self.inner.worst_pair(epsilon)
        return pair

    @property
    def values(self) -> Values:
        """Those of the inner mechanism."""
        values: Values = self.inner.values
        return values

    @property
    def arithmetic(self) -> str:
        """That of the inner mechanism."""
        arithmetic: str = self.inner.arithmetic
        return arithmetic

    def with_noise_factor(self, factor: float) -> Self:
        """The same with the inner knob at ``factor`` times what it is."""
        changed: Self = dataclasses.replace(self, inner=self.inner.with_noise_factor(factor))  # type: ignore[type-var]  # declared
        return changed
