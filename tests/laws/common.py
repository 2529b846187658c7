"""What laws share: every registered instance, and neighbouring values of any mechanism."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from mechanisms import Mechanism, registry
from mechanisms.supports import Candidates, Labels, Line

INSTANCES = [one for cls in registry() for one in cls.instances()]
every_mechanism = pytest.mark.parametrize("mechanism", INSTANCES, ids=repr)
every_class = pytest.mark.parametrize("cls", registry(), ids=lambda cls: cls.__name__)

FALSE_ALARM = 1e-9  # of every statistical law; seeds are fixed besides


def example_value(mechanism: Mechanism, rng: np.random.Generator) -> Any:
    """Some value that the mechanism can release."""
    match mechanism.support:
        case Line():
            return float(rng.normal(scale=10))
        case Labels(count=count):
            return int(rng.integers(count))
        case Candidates():
            return rng.normal(scale=3, size=int(rng.integers(2, 7)))
    raise AssertionError(f"no example values known for {mechanism.support!r}")


def neighbours(mechanism: Mechanism, rng: np.random.Generator, count: int) -> Iterator[Any]:
    """Pairs of values within the declared sensitivity, extremes among them."""
    for trial in range(count):
        value = example_value(mechanism, rng)
        match mechanism.support:
            case Labels(count=k):
                yield value, int(rng.integers(k))
            case Line():
                share = rng.choice([1.0, -1.0, rng.uniform(-1, 1)])
                yield value, value + share * mechanism.sensitivity
            case Candidates():
                corners = rng.choice([-1.0, 1.0], size=value.size)
                inside = rng.uniform(-1, 1, size=value.size)
                yield value, value + mechanism.sensitivity * (corners if trial % 3 else inside)
