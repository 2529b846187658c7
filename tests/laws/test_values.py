"""Law: mechanisms are values: equality is meaning, repr rebuilds, nothing changes in place."""

import pickle

import numpy as np

import accountant
import mechanisms
from mechanisms import Arithmetic, Mechanism
from mechanisms.base.parameters import parameters_of
from tests.laws.common import every_mechanism, example_value


def equality_violation(mechanism: Mechanism) -> str:
    """Where a copy is not the mechanism."""
    rebuilt = eval(
        repr(mechanism),
        {name: getattr(room, name) for room in (accountant, mechanisms) for name in room.__all__}
        | {"numpy": np},
    )
    if not (rebuilt == mechanism and hash(rebuilt) == hash(mechanism)):
        return f"{mechanism!r} rebuilds another"
    twin = pickle.loads(pickle.dumps(mechanism))
    if not (twin == mechanism and hash(twin) == hash(mechanism)):
        return "the pickle is another"
    return "" if twin.loss == rebuilt.loss == mechanism.loss else "a copy has another loss"


def change_violation(mechanism: Mechanism) -> str:
    """A field that can be set."""
    name = next(iter(parameters_of(mechanism.__class__)))
    try:
        setattr(mechanism, name, 2.0)
    except AttributeError:
        return ""
    return f"{name} was set in place"


def description_violation(mechanism: Mechanism) -> str:
    """A description that is missing, a field that ``repr`` hides, or no choice of arithmetic."""
    for name in ("reference", "releases", "__doc__"):
        if not getattr(mechanism, name):
            return f"no {name}"
    parameters = parameters_of(type(mechanism))
    for name in ("sensitivity", "arithmetic"):  # shown also where they have their defaults
        if name in parameters and f"{name}=" not in repr(mechanism):
            return f"no {name} in {mechanism!r}"
    if "arithmetic" in parameters:
        domain = parameters["arithmetic"].domain_of(mechanism)
        chosen = [domain.check("arithmetic", name) for name in ("exact", "idealised")]
        if chosen != [Arithmetic.EXACT, Arithmetic.IDEALISED]:
            return f"{chosen} are the arithmetics"
    return "a reference of two lines" if "\n" in mechanism.reference else ""


def seed_violation(mechanism: Mechanism) -> str:
    """Where the same seed gives other draws, or not as many as were asked for."""
    value = example_value(mechanism, np.random.default_rng(2))
    first, second = (np.asarray(mechanism.release(value, 9, 100)) for _ in range(2))
    if first.tobytes() != second.tobytes():
        return "the same seed gave other draws"
    return "" if first.shape[0] == 100 else f"{first.shape[0]} draws of 100"


@every_mechanism
def test_equal_hash_pickle_and_repr(mechanism):
    assert equality_violation(mechanism) == ""


@every_mechanism
def test_frozen(mechanism):
    assert change_violation(mechanism) == ""


@every_mechanism
def test_described(mechanism):
    assert description_violation(mechanism) == ""


@every_mechanism
def test_same_seed_same_release(mechanism):
    assert seed_violation(mechanism) == ""
