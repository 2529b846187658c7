"""What mechanisms that add noise to real numbers share."""

from __future__ import annotations

from mechanisms.mechanism import Mechanism
from mechanisms.supports import Line, Support
from mechanisms.values import Reals, Values


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
    def values(self) -> Values:
        """Numbers, or vectors of any length."""
        return Reals(self.sensitivity)

    @property
    def support(self) -> Support:
        """The real line."""
        return Line()
