"""The estimate of a target's time: by a clock of our own."""

import numpy as np
import pytest

from accountant import ParameterError
from audits.runner.target import advice, estimate_seconds


class Release:
    """Calls that take ``each`` seconds a run after one of ten seconds, which loads the code."""

    def __init__(self, each):
        self.each, self.now, self.sizes = each, 0.0, []

    def __call__(self, value, rng, size):
        self.now += self.each * size if self.sizes else 10.0
        self.sizes.append(size)
        return np.zeros(size)


@pytest.mark.parametrize(
    ("each", "runs", "workers"), [(5e-3, 1000, 4), (1e-6, 10**5, 1), (9, 9, 2)]
)
def test_an_estimate_is_the_time_of_all_runs(each, runs, workers):
    release = Release(each)
    found = estimate_seconds(release, (0, 1), runs, workers, lambda: release.now)
    assert found == pytest.approx(each * runs / workers, rel=1e-6)
    assert sum(release.sizes) <= 2 + runs / 16


def test_a_function_that_fails_has_no_estimate():
    def failing(value, rng, size):
        raise ParameterError("release", "one", "another")

    assert estimate_seconds(failing, (0, 1), 1000, 1) == 0.0


def test_advice_names_what_ends_sooner():
    assert advice(9.0, 600, early=False) is None
    assert advice(40.2, 600, early=False) == ("about 40 s left; fewer --runs or --early end sooner")
    assert advice(1000.0, 600, early=True) == (
        "at most about 17 min left, more than --max-seconds 600; fewer --runs end sooner"
    )
