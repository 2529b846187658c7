"""Monotone links of generalised linear models, with bounds of their slope.

References: Wang & Xu (2021), Algorithms 4 and 5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.domains import POSITIVE, Interval
from accountant.errors import ParameterError
from accountant.numerics import Array


@final
@dataclass(frozen=True, slots=True)
class Link:
    """A function of ``<x, theta>`` whose derivative lies in ``[low, high]``, ``low > 0``."""

    name: str
    function: Callable[[Any], Any]
    derivative: Callable[[Any], Any]
    low: float
    high: float

    def __post_init__(self) -> None:
        low = POSITIVE.check("link.low", self.low)
        Interval(low, 1e300).check("link.high", self.high)
        # The declared bounds of the slope are checked where predictors may lie.
        slope = np.asarray(self.derivative(np.linspace(-50.0, 50.0, 20_001)))
        inside = (slope >= low * (1 - 1e-9)) & (slope <= self.high * (1 + 1e-9))
        if not inside.all():
            allowed = f"monotone with a derivative from {self.low:g} to {self.high:g}"
            raise ParameterError("link", self.name, allowed)


def identity_slope(x: Any) -> Array:
    """Return 1 for each number."""
    return np.ones_like(np.asarray(x, dtype=float))


def identity(x: Any) -> Any:
    """Return the numbers as they are."""
    return x


def linear_plus_cosine(x: Any) -> Any:
    """Return ``8 x + cos x``."""
    return 8 * x + np.cos(x)


def linear_plus_cosine_slope(x: Any) -> Any:
    """Return the derivative ``8 - sin x``."""
    return 8 - np.sin(x)


# These are named functions, so that links can be pickled.
IDENTITY = Link("identity", identity, identity_slope, 1.0, 1.0)
LINEAR_PLUS_COSINE = Link("8x + cos x", linear_plus_cosine, linear_plus_cosine_slope, 7.0, 9.0)
LINKS = {link.name: link for link in (IDENTITY, LINEAR_PLUS_COSINE)}


def link_of(link: object) -> Link:
    """Return a link by its name, or the link itself."""
    if isinstance(link, Link):
        return link
    if not isinstance(link, str) or link not in LINKS:
        names = ", ".join(map(repr, LINKS))
        raise ParameterError("link", link, f"{names}, or a Link(name, function, derivative, ...)")
    return LINKS[link]
