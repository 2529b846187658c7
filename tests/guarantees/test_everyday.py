"""What means, histograms and selections promise, under the mark dp."""

import numpy as np
import pytest

from algorithms import (
    LocalHistogram,
    LocalMean,
    PrivateMean,
    PrivateQuantiles,
    PrivateSelection,
    PrivateTopK,
)

FEW = 50_000  # fifty sampled losses: the file is to take seconds
X = np.random.default_rng(7).uniform(-0.4, 0.4, (40, 3))
FIRST = (np.arange(40) == 0)[:, None]
UP, DOWN = np.where(FIRST, 1e6, X), np.where(FIRST, -1e6, X)  # shortened inside
LABELS = np.arange(40) % 4


@pytest.mark.dp(epsilon=1, runs=FEW)
def test_local_mean():
    return LocalMean(epsilon=1.0), UP, DOWN


@pytest.mark.parametrize(
    "delta",
    [
        pytest.param(0.0, marks=pytest.mark.dp(epsilon=1, runs=FEW)),
        pytest.param(1e-6, marks=pytest.mark.dp(epsilon=1, delta=1e-6, runs=FEW)),
    ],
)
def test_private_mean(delta):
    return PrivateMean(epsilon=1.0, delta=delta), UP, DOWN


@pytest.mark.parametrize("oracle", ["subset", "unary", "hadamard"])
@pytest.mark.dp(epsilon=1, runs=FEW)
def test_local_histogram(oracle):
    other = np.where(FIRST[:, 0], 3, LABELS)
    return LocalHistogram(k=4, epsilon=1.0, randomizer=oracle), LABELS, other


@pytest.mark.dp(epsilon=1, runs=FEW)
def test_private_selection():
    return PrivateSelection(epsilon=1.0), UP, DOWN


@pytest.mark.parametrize("quantiles", [0.9, [0.2, 0.5]])
@pytest.mark.dp(epsilon=1, runs=FEW)
def test_private_quantiles(quantiles):
    made = PrivateQuantiles(quantiles=quantiles, low=-1.0, high=1.0, epsilon=1.0)
    return made, UP[:, :1], DOWN[:, :1]


@pytest.mark.dp(epsilon=1, runs=FEW)
def test_private_top_k():
    other = np.where(FIRST, 3, LABELS[:, None])
    return PrivateTopK(k=2, categories=range(4), epsilon=1.0), LABELS[:, None], other


@pytest.mark.xfail(raises=AssertionError, strict=True, reason="noise for a greater epsilon")
@pytest.mark.dp(epsilon=1, runs=FEW)
def test_a_mean_with_half_the_noise_is_told():
    return PrivateMean(epsilon=2.0), UP, DOWN
