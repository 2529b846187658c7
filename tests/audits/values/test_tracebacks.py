"""Tracebacks of wrong arguments: pytest shows what a frame holds, so no frame may hold the pair."""

import inspect

import numpy as np
import pytest

from accountant import ParameterError
from audits import assert_private, audit, audit_timing, record, watch
from audits.values.tracebacks import without_values

SECRET = np.array([31337.25, 4.0])


def noisy(value, rng):
    return value.sum() + rng.laplace()


def raising(value, rng, size):
    raise ValueError(str(value))


@pytest.mark.parametrize(
    "call",
    [
        lambda: audit(noisy, (SECRET, SECRET), 1.0),
        lambda: audit(noisy, (SECRET, SECRET + 1), 1.0, runs=3),
        lambda: audit(raising, (SECRET, SECRET + 1), 1.0, runs=300),
        lambda: assert_private(noisy, (SECRET, SECRET), 1.0),
        lambda: watch(noisy, (SECRET, SECRET), 1.0),
        lambda: audit_timing(noisy, (SECRET, SECRET + 1), -1),
        lambda: record(noisy, SECRET, SECRET + 1, claim="x"),
    ],
)
def test_no_frame_of_ours_holds_the_pair(call):
    with pytest.raises(ParameterError) as caught:
        call()
    error, held = caught.value, []
    while error is not None:
        held += (
            [one.frame for one in inspect.getinnerframes(error.__traceback__)]
            if error.__traceback__
            else []
        )
        error = error.__cause__ or error.__context__
    ours = [frame for frame in held if "/audits/" in frame.f_code.co_filename
            and "/tests/" not in frame.f_code.co_filename]  # fmt: skip
    assert ours
    assert not any("31337" in repr(frame.f_locals) for frame in ours)


@without_values
def raised_beside_another(secret):
    cause = None
    try:
        float("x")
    except ValueError as error:
        cause = error
    try:
        int("x")
    except ValueError:
        raise ParameterError("secret", "it", "another") from cause


def test_an_error_keeps_no_frame_of_its_cause_nor_of_what_was_handled_then():
    with pytest.raises(ParameterError) as caught:
        raised_beside_another(SECRET)
    causes = caught.value.__cause__, caught.value.__context__
    assert len(set(causes)) == 2
    assert [error.__traceback__ for error in causes] == [None, None]


def test_a_wrapped_audit_keeps_its_name_and_its_arguments():
    assert audit.__name__ == "audit"
    assert list(inspect.signature(audit).parameters)[:3] == ["release", "pair", "claim"]
