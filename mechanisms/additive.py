"""What mechanisms that add noise to real numbers share."""

from __future__ import annotations

from mechanisms.mechanism import Mechanism
from mechanisms.supports import Line


class Additive(Mechanism):
    """Noise on every coordinate of a number or vector, whatever its value."""

    __slots__ = ()
    releases = "a number or vector"
    sensitivity: float

    def worst_pair(self, epsilon: float = 0.0) -> tuple[float, float]:
        """Two numbers one sensitivity apart, whatever epsilon."""
        del epsilon
        return self.sensitivity, 0.0

    @property
    def support(self) -> Line:
        """The real line."""
        return Line()
