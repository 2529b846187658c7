"""An error measure states the error of one mechanism, and of nothing made of it."""

import functools

import numpy as np
import pytest

from accountant import Deviation, Maximum, ParameterError, PoissonSampled
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
