"""The checks of OpenDP that a stand-in can judge: the time of a draw, and a delta of its counts."""

import importlib
import sys
import types
from functools import partial

import numpy as np
import pytest

from audits.attacks.timing import audit_timing
from audits.results.rows import Settings

MODULE = "audits.libraries.opendp_checks"
SETTINGS = Settings(1000, 0.95, 7)


def module_with(measurement, patch):
    """The module of the checks, on a library whose integer noise is drawn by ``measurement``."""
    prelude = types.ModuleType("opendp.prelude")
    prelude.enable_features = lambda *names: None
    prelude.atom_domain = prelude.absolute_distance = lambda **types: None
    prelude.m = types.SimpleNamespace(make_laplace=lambda *space, scale: measurement)
    patch.setitem(sys.modules, "opendp", types.ModuleType("opendp"))
    patch.setitem(sys.modules, "opendp.prelude", prelude)
    patch.delitem(sys.modules, MODULE, raising=False)
    module = importlib.import_module(MODULE)
    patch.delitem(sys.modules, MODULE)
    return module


@pytest.mark.parametrize("slow", [False, True])
def test_noise_that_takes_longer_where_it_is_larger_is_found(slow, monkeypatch):
    noise, ticks, calls = np.random.default_rng(5), [0.0], []

    def measurement(value):
        output = value + int(noise.laplace(scale=100.0))
        calls.append(value)
        ticks[0] += 200 + noise.uniform(0, 50) + abs(output) * slow
        return output

    module = module_with(measurement, monkeypatch)
    monkeypatch.setattr(module, "audit_timing", partial(audit_timing, clock=lambda: ticks[0]))
    monkeypatch.setattr(module, "TIMED_PAIRS", 60)
    monkeypatch.setattr(module, "ROUNDS", 2)
    found = module.integer_laplace_time(SETTINGS, np.random.default_rng(7))
    assert found.falsified == slow
    assert (float(found.witness.split()[2]) > 0.8) == slow
    # each round begins with a pair that is not timed
    assert found.runs == len(calls) - 2 * module.ROUNDS


@pytest.mark.parametrize(("count", "falsified"), [(0, False), (20, False), (130, True)])
def test_a_delta_is_refuted_by_keys_that_are_released_too_often(count, falsified, monkeypatch):
    module = module_with(None, monkeypatch)
    found = module.compare_with_delta(count, 10_000, (1.0, 0.003))
    assert found.falsified == falsified
    assert f"{count:,} of 10,000 keys held by one person" in found.witness
    assert (found.runs, found.claim) == (10_000, (1.0, 0.003))
