"""What laws share: every registered instance, and neighbouring values of any mechanism."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from mechanisms import Mechanism, registry

INSTANCES = [one for cls in registry() for one in cls.instances()]
every_mechanism = pytest.mark.parametrize("mechanism", INSTANCES, ids=repr)
# the density of noise is the same for both kinds of arithmetic, but for the rounding of the exact
REPRS = {repr(one) for one in INSTANCES}
every_density = pytest.mark.parametrize(
    "mechanism",
    [
        pytest.param(one, marks=pytest.mark.slow)
        if "IDEALISED" in repr(one) and repr(one).replace("IDEALISED", "EXACT") in REPRS
        else one for one in INSTANCES
    ],
    ids=repr,
)  # fmt: skip
every_class = pytest.mark.parametrize("cls", registry(), ids=lambda cls: cls.__name__)

FALSE_ALARM_RATE = 1e-9  # of every statistical law; seeds are fixed besides


def example_value(mechanism: Mechanism, rng: np.random.Generator) -> Any:
    """Some value that the mechanism can release, beyond its bound too where that is clipped."""
    value = mechanism.values.example(rng)
    return value * rng.choice([1.0, 3.0]) if getattr(mechanism.values, "clip", False) else value


def neighbouring_values(
    mechanism: Mechanism, rng: np.random.Generator, count: int
) -> Iterator[Any]:
    """Pairs of values within the declared sensitivity, extremes among them."""
    for _ in range(count):
        value = example_value(mechanism, rng)
        yield value, mechanism.values.neighbour(value, rng)
