"""The law of a mechanism: delta of its worst pair at an epsilon, and its densities at outputs.

A mechanism claims its kind, parameters, some (epsilon, delta) and, at some outputs, the logarithms
of its densities at two values that differ most.  The verifier compares each claim with a `Law`.  A
law is computed from the textbook's definition of a density, never from the code of a mechanism, in
balls (`arb`): intervals that contain the true number.  Floats are taken as the fractions they are.

Example: randomised response with keep = 3/4 and two labels tells the truth with density p = 3/4 and
lies with q = 1/4: `exchanged_law(1, p, q)`.  A claim of delta = 0 at epsilon = ln 3, rounded up, is
right, as p - e^epsilon q <= 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from types import SimpleNamespace
from typing import Any, NamedTuple

from flint import arb, fmpq

Parameters = SimpleNamespace  # parameters of a mechanism, by name
# A lower and an upper bound, each a ball; the same ball twice where a formula gives the number.
Ends = tuple[arb, arb]
DeltaEnds = Callable[[Any], Ends]  # bounds on delta of the worst pair, from epsilon
# The number of equally likely random words.  Exact noise looks a word up in a table of ranges; the
# laws of noise and of reports compare such tables with the probabilities of the ranges.
WORDS = 2**63
# How far a claimed log-density may be off, for the round-off of floats.  Also, a claim of delta is
# not needlessly large if it is at most 1 + SLACK times delta at epsilon - SLACK.  The proof that
# delta is at most the claim has no slack.
SLACK = fmpq(1, 2**30)


class Law(NamedTuple):
    """What claims of one mechanism are compared with."""

    delta: DeltaEnds
    # Takes an output and the claimed logarithms of its densities at both values: are they right?
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
    """Return whether a claimed logarithm is surely that of a density, up to `SLACK`.

    A density is a fraction or a ball; of a ball that is too wide the answer is no.
    """
    if density == 0:
        return log == -inf
    return log != -inf and bool(abs(arb(log) - arb(density).log()) < SLACK)


def hockey_stick(p: Any, q: Any, epsilon: Any) -> arb:
    """Return (p - e^eps q)_+."""
    positive_part: arb = (p - exp(epsilon) * q).max(arb(0))
    return positive_part


def exchanged_law(count: Any, p: Any, q: Any, *equal: Any, pairs: Sequence[Any] = ()) -> Law:
    """Return the law where exchanging the values exchanges outcomes of density p and of density q.

    ``count`` outcomes (or their measure) have the densities (p, q) at the two values, as many have
    (q, p).  All others have equal densities at both, one of ``equal``, and add nothing to delta.
    A claimed output is right if its two densities are any such pair: which output it is does not
    matter.  ``pairs`` replaces these pairs where p and q are sums over several outcomes.
    """
    densities = pairs or [(p, q), (q, p), *((density, density) for density in equal)]

    def delta(epsilon: Any) -> Ends:
        value = count * (hockey_stick(p, q, epsilon) + hockey_stick(q, p, epsilon))
        return value, value

    def has_density(_output: Any, *logs: float) -> bool:
        return any(all(map(is_near, logs, pair)) for pair in densities)

    return Law(delta, has_density)
