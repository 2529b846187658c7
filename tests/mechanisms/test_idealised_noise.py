"""Idealised noise is what numpy draws, times the scale."""

import numpy as np
import pytest

from mechanisms import Gaussian, Laplace

VALUES = [3.0, [1.0, -2.0, 0.5], [[0.0, 1.0], [2.0, 3.0]]]
STANDARD = {
    Gaussian: lambda rng, shape: rng.standard_normal(shape),
    Laplace: lambda rng, shape: rng.laplace(size=shape),
}


@pytest.mark.parametrize("value", VALUES, ids=str)
@pytest.mark.parametrize("size", [None, 0, 5])
@pytest.mark.parametrize("kind", STANDARD)
def test_a_release_is_the_value_and_scaled_noise_of_numpy(kind, size, value):
    mechanism = kind(2.5, sensitivity=0.7, arithmetic="idealised")
    shape = np.shape(value) if size is None else (size, *np.shape(value))
    noise = STANDARD[kind](np.random.default_rng(8), shape)
    released = mechanism.release(value, np.random.default_rng(8), size)
    assert np.shape(released) == shape
    np.testing.assert_allclose(released, np.asarray(value) + 2.5 * noise, rtol=1e-14)
