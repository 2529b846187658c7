"""What mechanisms claim, in plain numbers: their profiles, densities and tables of integers.

`accountant.verifier.mechanisms` compares these claims with its own definitions of the mechanisms.
A profile is delta as a function of epsilon, here at the points of a small grid.  Densities are
those of the mechanism's output at two values, a worst pair of neighbours.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from accountant.numerics.rounding import ACCURACY
from accountant.serialisation.registry import plan_kinds

STEPS = 8  # steps of epsilon up to the largest of the grid; beyond a bounded loss there is one more
LEAST_DELTA = 1e-12  # the grid ends at the epsilon of this delta, unless the largest loss is less
OUTPUTS = 8  # outputs whose densities are compared, drawn from a fixed seed


def declared_mechanisms() -> Iterator[Any]:
    """Yield every mechanism that an installed package declares, with its typical parameters."""
    kinds: dict[str, Any] = dict(sorted(plan_kinds().items()))
    for kind in kinds.values():
        if hasattr(kind, "drawn_numbers"):
            yield from kind.instances()


def claim_of(mechanism: Any) -> dict[str, Any]:
    """Return what a mechanism claims, as `accountant.verifier.mechanisms.check` reads it.

    The profile is what `Loss.profile` says, rounded up by the accuracy that it states.  Where the
    loss is only an upper bound, it is claimed from its largest epsilon on, where it is attained.
    """
    loss = mechanism.loss
    largest_epsilon = min(loss.max_loss, loss.epsilon_at(LEAST_DELTA))
    steps_beyond = 1 if loss.max_loss < math.inf else 0
    grid = [largest_epsilon * i / STEPS for i in range(STEPS + 1 + steps_beyond)]
    first, second = mechanism.worst_pair(grid[STEPS // 2])
    values = [np.asarray(value, dtype=float) for value in (first, second)]
    # Whether the mechanism adds noise to one number: not to a vector, nor to scores of candidates.
    is_number = "drawn_scale" in mechanism.drawn_numbers and values[0].size == 1
    fields = {field.name: getattr(mechanism, field.name) for field in dataclasses.fields(mechanism)}
    plain = {
        name: field
        for name, field in fields.items()
        if field is None or isinstance(field, (bool, int, float))
    }
    plain_values = [value.item() if is_number else value.tolist() for value in values]
    profile = []  # pairs of an epsilon, rounded up, and the delta that is claimed there
    for epsilon in grid[STEPS if mechanism.loss_is_upper_bound else 0 :]:
        delta = float(loss.profile(np.array(epsilon))) * (1 + ACCURACY)
        # Logarithms of the loss's masses may differ from the mechanism's by `loss.rounding`.
        epsilon_upper = math.nextafter(epsilon + loss.rounding, math.inf) if epsilon else 0.0
        profile.append([epsilon_upper, delta])
    densities = []
    if not (is_number and values[0].ndim):  # one coordinate of a vector has no density of its own
        for output in mechanism.release(first, rng=0, size=OUTPUTS):
            logs = [float(mechanism.log_density(output, value)) for value in (first, second)]
            densities.append([np.asarray(output).tolist(), *logs])
    return {
        "kind": type(mechanism).__name__,
        "parameters": {**plain, **mechanism.drawn_numbers, "values": plain_values},
        "tables": mechanism.drawn_tables,
        "densities": densities,
        "profile": profile,
    }
