"""Where a mechanism's outputs lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Support(Protocol):
    """Finitely many outcomes, or None for the real line."""

    def outcomes(self, value: Any) -> NDArray[np.intp] | None:
        """Every output that can follow ``value``, or None where they fill the real line."""
        ...


@dataclass(frozen=True, slots=True)
class Line:
    """The real line, one for each coordinate of the value."""

    def outcomes(self, value: Any) -> None:
        """None: outputs are real numbers."""
        del value


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels 0 to ``count - 1``."""

    count: int

    def outcomes(self, value: Any) -> NDArray[np.intp]:
        """All labels, whatever the value."""
        del value
        return np.arange(self.count)


@dataclass(frozen=True, slots=True)
class Candidates:
    """The indices of the candidates that the value scores."""

    def outcomes(self, value: Any) -> NDArray[np.intp]:
        """One outcome for each score."""
        return np.arange(np.shape(value)[-1])
