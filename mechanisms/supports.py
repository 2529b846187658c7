"""Where a mechanism's outputs lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray


class Support(Protocol):
    """Finitely many outcomes, or None for the real line."""

    @property
    def value_axes(self) -> int | None:
        """Axes of one value: 0 for a label, 1 for scores, None where any array is one value."""
        ...

    def outcomes(self, value: Any) -> NDArray[np.intp] | None:
        """Every output that can follow ``value``, or None where they fill the real line."""
        ...


@dataclass(frozen=True, slots=True)
class Line:
    """The real line, one for each coordinate of the value."""

    value_axes: ClassVar[None] = None

    def outcomes(self, value: Any) -> None:
        """None: outputs are real numbers."""
        del value


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels 0 to ``count - 1``."""

    count: int
    value_axes: ClassVar[int] = 0

    def outcomes(self, value: Any) -> NDArray[np.intp]:
        """All labels, whatever the value."""
        del value
        return np.arange(self.count)


@dataclass(frozen=True, slots=True)
class Candidates:
    """The indices of the candidates that the value scores."""

    value_axes: ClassVar[int] = 1

    def outcomes(self, value: Any) -> NDArray[np.intp]:
        """One outcome for each score."""
        return np.arange(np.shape(value)[-1])
