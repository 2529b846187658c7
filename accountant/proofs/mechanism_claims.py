"""What mechanisms claim, in plain numbers: their profiles, densities and tables of integers."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from accountant.numerics.rounding import ACCURACY
from accountant.serialisation.registry import plan_kinds

STEPS = 8  # of epsilon up to the largest loss, and one beyond it
LEAST_DELTA = 1e-12  # up to which an unbounded loss is looked at
OUTPUTS = 8  # whose densities are compared, drawn from a fixed seed


def mechanisms() -> Iterator[Any]:
    """Yield every mechanism that an installed package declares, with its typical parameters."""
    for _, kind in sorted(plan_kinds().items()):
        if hasattr(kind, "drawn_numbers"):
            yield from kind.instances()


def claim_of(mechanism: Any) -> dict[str, Any]:
    """Return what a mechanism claims, as `accountant.verifier.mechanisms.check` reads it.

    A profile is what `Loss.profile` says, rounded up by the accuracy that it states; that of a
    bound only from its epsilon on, where it is attained.
    """
    start = STEPS if mechanism.loss_is_upper_bound else 0
    first, second = mechanism.worst_pair(_epsilons(mechanism.loss)[STEPS // 2])
    values = [np.asarray(one, dtype=float).tolist() for one in (first, second)]
    fields = {one.name: getattr(mechanism, one.name) for one in dataclasses.fields(mechanism)}
    plain = {k: x for k, x in fields.items() if x is None or isinstance(x, (bool, int, float))}
    return {
        "kind": type(mechanism).__name__,
        "parameters": {**plain, **mechanism.drawn_numbers, "values": values},
        "tables": mechanism.drawn_tables,
        "densities": list(_densities(mechanism, first, second)),
        "profile": [_claimed(mechanism.loss, e) for e in _epsilons(mechanism.loss)[start:]],
    }


def _claimed(loss: Any, epsilon: float) -> list[float]:
    """Return an epsilon, its losses rounded up, and the delta that is claimed there."""
    delta = float(loss.profile(np.array(epsilon))) * (1 + ACCURACY)
    return [math.nextafter(epsilon + loss.rounding, math.inf), delta]


def _epsilons(loss: Any) -> list[float]:
    """Return epsilons from 0 to the largest loss and beyond, or to a small delta."""
    top = min(loss.max_loss, loss.epsilon_at(LEAST_DELTA))
    return [top * i / STEPS for i in range(STEPS + 2)]


def _densities(mechanism: Any, first: Any, second: Any) -> Iterator[list[Any]]:
    """Yield some outputs with the logarithms of their densities at both values."""
    for output in mechanism.release(first, 0, OUTPUTS):
        logs = [float(mechanism.log_density(output, value)) for value in (first, second)]
        yield [np.asarray(output).tolist(), *logs]
