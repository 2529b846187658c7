"""An error measure states the error of one mechanism, and of nothing made of it."""

import functools

import numpy as np
import pytest

from accountant import Deviation, Maximum, ParameterError, PoissonSampled
from accountant.domains import Interval
from accountant.planning.requests import RELATIVE_TOLERANCE, largest_scale
from mechanisms import Clamped, Gaussian, Laplace, Mapped, PureFromApproximate


@pytest.mark.parametrize(
    "wrapper",
    [
        Mapped(Gaussian(1.0), function=functools.partial(np.multiply, 1000)),
        PureFromApproximate(Gaussian(40.0), odds=0.2, candidates=12),
        Clamped(Laplace(1.0), low=-5.0, high=6.0),
    ],
    ids=["Mapped", "PureFromApproximate", "Clamped"],
)
def test_an_error_of_the_noise_inside_is_none_of_what_is_made_of_it(wrapper):
    for measure in (Deviation(), Maximum(3)):
        with pytest.raises(ParameterError, match="declares"):
            measure.of(wrapper)
    # a sample has the noise of its part
    assert Deviation().of(PoissonSampled(Gaussian(2.0), rate=0.1)) == Gaussian(2.0).deviation


@pytest.mark.parametrize("start", [1e-3, 1.0, 700.0])
@pytest.mark.parametrize("error", [lambda s: 3 * s, lambda s: s * s, lambda s: 2 + s / 9, np.floor])
def test_the_largest_scale_meets_its_target_and_a_little_more_does_not(error, start):
    domain = Interval(1e-4, 1e4)
    found = largest_scale(error, 4.0, start, domain)
    assert error(found) <= 4.0 < error(found * (1 + 4 * RELATIVE_TOLERANCE))
    assert largest_scale(error, 1e9, start, domain) == domain.high
    assert largest_scale(lambda s: 5.0 + error(s), 4.0, start, domain) is None
