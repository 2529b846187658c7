"""Law: mechanisms are values: equality is meaning, repr rebuilds, nothing changes in place."""

import pickle

import numpy as np
import pytest

import mechanisms
from mechanisms.base.parameters import parameters_of
from tests.laws.common import every_mechanism


@every_mechanism
def test_equal_hash_pickle_and_repr(mechanism):
    rebuilt = eval(
        repr(mechanism),
        {name: getattr(mechanisms, name) for name in mechanisms.__all__} | {"numpy": np},
    )
    for twin in (rebuilt, pickle.loads(pickle.dumps(mechanism))):
        assert twin == mechanism
        assert hash(twin) == hash(mechanism)
        assert twin.loss == mechanism.loss


@every_mechanism
def test_frozen(mechanism):
    name = next(iter(parameters_of(type(mechanism))))
    with pytest.raises(AttributeError):
        setattr(mechanism, name, 2.0)


@every_mechanism
def test_described(mechanism):
    assert mechanism.reference
    assert mechanism.releases
    assert type(mechanism).__doc__
    assert "\n" not in mechanism.reference


@every_mechanism
def test_same_seed_same_release(mechanism):
    from tests.laws.common import example_value

    value = example_value(mechanism, np.random.default_rng(2))
    first, second = (np.asarray(mechanism.release(value, 9, 100)) for _ in range(2))
    assert first.tobytes() == second.tobytes()
    assert first.shape[0] == 100
