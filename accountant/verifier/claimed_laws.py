"""The law of a mechanism: delta of its worst pair at an epsilon, and its densities at outputs.

A law is computed on balls from the textbook's definition of a density, and never from the code of a
mechanism.  Parameters are floats taken as the fractions they are, and whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from types import SimpleNamespace
from typing import Any, NamedTuple

from flint import arb, fmpq

Parameters = SimpleNamespace  # of a mechanism, by name
Ends = tuple[arb, arb]  # a lower and an upper bound
DeltaEnds = Callable[[Any], Ends]  # of the worst pair, at an epsilon
WORDS = 2**63  # the number of random words; a range of words decides an exact draw
# How far a log-density, and the epsilon of a profile, may be off: room for the round-off of floats.
SLACK = fmpq(1, 2**30)


class Law(NamedTuple):
    """Both ends of delta at an epsilon, and whether an output has given log-densities.

    ``has_density`` takes an output and the logarithms of its densities at the two values.
    """

    delta: DeltaEnds
    has_density: Callable[..., bool]


def exact_parameters(numbers: dict[str, Any]) -> Parameters:
    """Return parameters of a claim: floats as the fractions they are."""
    return Parameters(**{k: fraction(x) if isinstance(x, float) else x for k, x in numbers.items()})


def fraction(value: Any) -> fmpq:
    """Return a float or a whole number as a fraction."""
    return fmpq(*value.as_integer_ratio())


def exp(value: Any) -> arb:
    """Return the exponential of a number as a ball."""
    return arb(value).exp()


def is_near(log: float, density: Any) -> bool:
    """Return whether the logarithm that is claimed is that of a density, up to round-off."""
    if density == 0:
        return log == -inf
    return log != -inf and bool(abs(arb(log) - arb(density).log()) < SLACK)


def hockey_stick(p: Any, q: Any, epsilon: Any) -> arb:
    """Return (p - e^eps q)_+."""
    positive_part: arb = (p - exp(epsilon) * q).max(arb(0))
    return positive_part


def exchanged_law(count: Any, p: Any, q: Any, *alike: Any, pairs: Sequence[Any] = ()) -> Law:
    """Return the law of which ``count`` outcomes have the densities (p, q), and as many (q, p).

    All other outcomes have equal densities at both values, those in ``alike``, and add nothing.

    ``pairs``: the densities that an output may have at both values, where they are not p, q and
    those that are alike.
    """
    densities = pairs or [(p, q), (q, p), *((density, density) for density in alike)]

    def delta(epsilon: Any) -> Ends:
        value = count * (hockey_stick(p, q, epsilon) + hockey_stick(q, p, epsilon))
        return value, value

    def has_density(_output: Any, *logs: float) -> bool:
        return any(all(map(is_near, logs, pair)) for pair in densities)

    return Law(delta, has_density)
