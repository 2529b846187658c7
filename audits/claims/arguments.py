"""Arguments that all audits share (pair, runs, confidence, delta, seed), checked before a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from accountant.domains import IntegerRange, Interval
from accountant.errors import ParameterError
from accountant.losses.loss import Loss
from accountant.randomness import Rng, generator
from audits.values.copies import is_shared
from audits.values.descriptions import describe_pair, describe_value
from audits.values.digests import digest, equal_values

CONFIDENCE = Interval(0.0, 1.0, "()")
RUNS = IntegerRange(10)


def claimed_delta(claim: Loss | None) -> float:
    """The delta at which a claim is tested: its own, else 0 if pure, else 1e-5.

    An own delta of at most 1e-12, which no number of runs could show, counts as none.
    """
    if claim is None:
        return 0.0
    own_delta = max(claim.infinity, claim.reversed.infinity)
    return own_delta if own_delta > 1e-12 or np.isfinite(claim.pure) else 1e-5


def seed_and_generator(rng: Rng) -> tuple[int | None, np.random.Generator]:
    """The seed that repeats the work, and its generator; the seed of a given generator is None."""
    if isinstance(rng, np.random.Generator):
        return None, rng
    seed = int(np.random.SeedSequence().generate_state(1)[0]) if rng is None else rng
    source = generator(seed)
    return int(seed), source


def stream_digest(source: np.random.Generator) -> str:
    """The SHA-256 of what a generator will draw, by its state; "" if its state cannot be read."""
    return digest(source.bit_generator.state) or ""


def checked_pair(pair: Any) -> tuple[Any, Any]:
    """The pair, or `ParameterError` unless it is two values that differ, of any kinds."""
    if not isinstance(pair, (tuple, list)):
        raise ParameterError("pair", describe_value(pair), "two neighbouring values")
    if len(pair) != 2:
        raise ParameterError("pair", f"{len(pair)} values", "two neighbouring values")
    first_value, second_value = pair
    if any(isinstance(value, Iterator) and is_shared(value) for value in pair):
        shown = describe_pair(first_value, second_value)
        raise ParameterError("pair", shown, "values that every call can read: lists, no iterators")
    if equal_values(first_value, second_value):
        shown = f"{describe_value(first_value)} twice"
        raise ParameterError("pair", shown, "two values that differ: no audit can tell equal apart")
    return first_value, second_value


def pair_of_one_shape(pair: Any) -> tuple[Any, Any]:
    """The pair, or `ParameterError` unless it is two values of one shape that differ."""
    first_value, second_value = checked_pair(pair)
    if _shape(first_value) != _shape(second_value):
        allowed = "two neighbouring values of one shape, as a mechanism takes"
        raise ParameterError("pair", describe_pair(first_value, second_value), allowed)
    return first_value, second_value


def _shape(value: Any) -> tuple[int, ...] | None:
    """The shape of an array-like; None if it has none."""
    try:
        shape: tuple[int, ...] = np.shape(value)
    except ValueError:  # ragged
        return None
    return shape
