"""Law: calibration lands within 1e-6 of the target and never past it."""

import pytest

from accountant import ParameterError, Tight, calibrate
from mechanisms.parameters import meanings
from tests.laws.common import every_mechanism

TARGETS = [(0.01, 1e-6), (0.5, 1e-5), (1.0, 1e-6), (4.0, 1e-9), (20.0, 1e-3)]


@every_mechanism
@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
def test_calibration_meets_the_target_from_the_private_side(mechanism, epsilon, delta):
    names = meanings(type(mechanism))
    fixed = {name: getattr(mechanism, name) for name in names if not names[name].knob}
    made = calibrate(type(mechanism), **fixed, epsilon=epsilon, delta=delta)
    spent = Tight().epsilon(made, delta)
    assert 0.99 * epsilon <= spent <= epsilon
    assert spent >= (1 - 2e-6) * epsilon
    assert all(getattr(made, name) == value for name, value in fixed.items())


@every_mechanism
@pytest.mark.parametrize("bad", [0, -1.0, float("nan"), float("inf"), True, "1", None])
def test_a_target_that_is_none_is_refused(mechanism, bad):
    names = meanings(type(mechanism))
    fixed = {name: getattr(mechanism, name) for name in names if not names[name].knob}
    with pytest.raises(ParameterError, match="epsilon must be"):
        calibrate(type(mechanism), **fixed, epsilon=bad, delta=1e-6)
