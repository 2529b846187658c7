"""Calibration of any plan: fields, brackets, corners and ends of a range."""

import pytest

from accountant import PLD, ParameterError, PureLoss, Tight, calibrate
from mechanisms import Gaussian, Laplace, RandomizedResponse


def test_calibrate_turns_either_way_and_takes_a_bracket():
    noise = calibrate(lambda s: 10 * Gaussian(s), epsilon=1.0, delta=1e-5)
    assert 0.999 <= Tight().epsilon(10 * Gaussian(noise), 1e-5) <= 1.0
    share = calibrate(lambda e: 10 * PureLoss(e), epsilon=1.0)
    assert share == pytest.approx(0.1, rel=2e-6)
    assert share <= 0.1
    again = calibrate(lambda e: 10 * PureLoss(e), epsilon=1.0, bracket=(0.01, 5.0))
    assert again == pytest.approx(0.1, rel=2e-6)
    with pytest.raises(ParameterError, match="epsilon must be between the costs"):
        calibrate(lambda e: 10 * PureLoss(e), epsilon=1.0, bracket=(1.0, 5.0))
    with pytest.raises(ParameterError, match="epsilon must be between the costs"):
        calibrate(lambda e: PureLoss(2.0), epsilon=1.0)


def test_calibrate_refuses_unknown_fields_and_what_is_no_function():
    with pytest.raises(ParameterError, match="fields of Laplace other than its knob"):
        calibrate(Laplace, epsilon=1.0, k=3)
    with pytest.raises(ParameterError, match="fields of Laplace other than its knob"):
        calibrate(Laplace, epsilon=1.0, scale=3.0)
    with pytest.raises(ParameterError, match="plan_of must be"):
        calibrate(3, epsilon=1.0)
    with pytest.raises(ParameterError, match="plan_of must be"):
        calibrate(lambda s: 2 * Laplace(s), epsilon=1.0, sensitivity=2.0)
    with pytest.raises(ParameterError, match="plan must be"):
        calibrate(lambda s: s, epsilon=1.0)


@pytest.mark.parametrize(
    ("plan_of", "words"),
    [(RandomizedResponse, "fields of RandomizedResponse"), (PureLoss(1.0), "plan_of must be")],
)
def test_calibrate_says_what_is_missing(plan_of, words):
    with pytest.raises(ParameterError, match=words):
        calibrate(plan_of, epsilon=1.0)
    with pytest.raises(ParameterError, match=r"RandomizedResponse\.k must be"):
        calibrate(RandomizedResponse, k=0, epsilon=1.0)
    for bad in (5.0, [1.0], (1.0, float("nan")), "ab"):
        with pytest.raises(ParameterError, match="bracket must be"):
            calibrate(lambda s: 2 * Gaussian(s), epsilon=1.0, delta=1e-6, bracket=bad)
    for bad in ("PLD", PLD, 3):
        with pytest.raises(ParameterError, match="accountant must be"):
            calibrate(lambda s: 2 * Gaussian(s), epsilon=1.0, delta=1e-6, accountant=bad)


def test_calibrate_finds_knobs_that_live_in_a_corner():
    # keep lies in (1/k, 1), near its lower end; no bracket is needed
    for k, epsilon in ((10, 1.0), (1000, 0.01), (2, 8.0), (2, 20.0)):
        keep = calibrate(lambda x, k=k: RandomizedResponse(k, x), epsilon=epsilon)
        spent = RandomizedResponse(k, keep).loss.pure
        assert (1 - 2e-6) * epsilon <= spent <= epsilon


def test_calibrate_reaches_the_ends_of_a_range():
    made = calibrate(RandomizedResponse, k=2, epsilon=30.0)
    assert 30.0 * (1 - 1e-3) <= made.loss.pure <= 30.0
