"""Tracebacks of wrong arguments: pytest shows what a frame holds, so no frame may hold the pair."""

import inspect

import numpy as np
import pytest

from accountant import ParameterError
from audits import assert_private, audit, audit_timing, record, watch

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


def test_a_wrapped_audit_keeps_its_name_and_its_arguments():
    assert audit.__name__ == "audit"
    assert list(inspect.signature(audit).parameters)[:3] == ["release", "pair", "claim"]
