"""What workers return is compared with what the mechanism can release."""

import numpy as np
import pytest

from accountant.plans.adjacency import Adjacency
from mechanisms import registry

USERS = 200
MECHANISMS = [made for cls in registry() for made in cls.instances()]


def batch(made):
    """Random values of some users; vectors of one length."""
    rng = np.random.default_rng(1)
    values = [made.values.example(rng) for _ in range(USERS)]
    if np.asarray(values[0]).dtype == object:
        found = np.empty(USERS, dtype=object)
        found[:] = values
        return found
    return np.array([one for one in values if np.shape(one) == np.shape(values[0])])


@pytest.mark.parametrize("made", MECHANISMS, ids=repr)
def test_honest_outputs_pass_and_others_do_not(made):
    values = batch(made)
    users = len(values)
    outputs = np.asarray(made.release(values, 2))
    assert made.outputs_fault(outputs, users) == ""
    assert made.outputs_fault(np.asarray(made.release(values[:0], 2)), 0) == ""
    assert made.outputs_fault(outputs[:-1], users)
    assert made.outputs_fault(outputs[:, None], users) or made.value_axes is None
    assert made.outputs_fault(outputs.astype("f2"), users)
    assert made.outputs_fault(outputs.astype("U9"), users)


@pytest.mark.parametrize(
    "made", [one for one in MECHANISMS if one.relation is Adjacency.LOCAL_REPLACE], ids=repr
)
def test_every_impossible_output_of_a_local_randomiser_is_seen(made):
    values = batch(made)
    outputs = np.asarray(made.release(values, 2)).copy()
    outputs[7] = 101 if outputs.dtype.kind in "iu" else 1e9
    fault = made.outputs_fault(outputs, len(values))
    assert fault == "outputs that it can have"
