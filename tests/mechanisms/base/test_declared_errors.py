"""What mechanisms say of their errors, against the density."""

import math

import numpy as np
import pytest

from mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    LazyExponential,
    NoisyMax,
    PermuteAndFlip,
    Staircase,
    TruncatedLaplace,
    registry,
)

CONTINUOUS = [
    Gaussian(3.0),
    Laplace(0.7),
    TruncatedLaplace(2.0, 3.0),
    TruncatedLaplace(2.0, 900.0),
    TruncatedLaplace(1.0, 0.01),
    Staircase(1.5, 2.0, 0.3),
    Staircase(0.2, 1.0, 0.9),
]


@pytest.mark.parametrize("mechanism", CONTINUOUS, ids=repr)
def test_deviations_are_those_of_the_density(mechanism):
    width = 60 * mechanism.scale
    ends = np.arange(-width, width, getattr(mechanism, "sensitivity", 1.0) / 10)
    if isinstance(mechanism, TruncatedLaplace):
        width = min(width, mechanism.scale * mechanism.reach)
        ends = np.linspace(-width, width, 2001)
    if isinstance(mechanism, Staircase):  # its steps are among the ends
        ends = np.unique(np.round(np.concatenate([ends, -ends]), 12))
    x, w = np.polynomial.legendre.leggauss(12)
    half = np.diff(ends)[:, None] / 2
    z = ((ends[:-1, None] + ends[1:, None]) / 2 + half * x).ravel()
    mass = (half * w).ravel() * np.exp(mechanism.terms(z, 0.0))
    assert mass.sum() == pytest.approx(1.0, abs=1e-9)
    assert mechanism.deviation == pytest.approx(math.sqrt(mass @ z**2), rel=1e-8)


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.4])
@pytest.mark.parametrize("cls", [DiscreteLaplace, DiscreteGaussian])
def test_those_of_integers_by_sums(cls, scale):
    mechanism = cls(scale)
    k = np.arange(-400, 401)
    mass = np.exp(mechanism.terms(k, 0))
    deviation = math.sqrt(mass @ k**2.0)
    equal = cls is DiscreteLaplace or scale > 1
    assert mechanism.deviation >= deviation * (1 - 1e-12)
    assert not equal or mechanism.deviation == pytest.approx(deviation, rel=1e-6)
    for dimension in (1, 7, 1000):
        # E max = sum over m of P(max > m)
        within = np.array([mass[np.abs(k) <= m].sum() for m in range(400)])
        expected = np.sum(-np.expm1(dimension * np.log(np.minimum(within, 1.0))))
        assert expected <= mechanism.expected_maximum(dimension) * (1 + 1e-9)
        assert mechanism.expected_maximum(dimension) <= 1.2 * expected + 1.5


SELECTIONS = [
    Exponential(2.0), LazyExponential(2.0), PermuteAndFlip(2.0), NoisyMax(2.0),
    NoisyMax(2.0, noise="laplace"),
]  # fmt: skip


@pytest.mark.parametrize("mechanism", SELECTIONS, ids=repr)
@pytest.mark.parametrize("candidates", [1, 2, 20])
def test_no_scores_have_a_greater_selection_error(mechanism, candidates):
    # LazyExponential has the law of Exponential
    law = Exponential(2.0) if isinstance(mechanism, LazyExponential) else mechanism
    most = 0.0
    for gap in np.linspace(0.0, 30.0, 121):
        scores = np.zeros(candidates)
        scores[0] = gap
        share = np.exp(law.log_probabilities(scores))
        most = max(most, float(share @ (gap - scores)))
    stated = mechanism.selection_error(candidates)
    assert most <= stated * (1 + 1e-9)
    if candidates == 20 and isinstance(mechanism, Exponential):
        assert stated <= 2 * most


@pytest.mark.parametrize("candidates", [1, 20])
def test_the_error_of_a_noisy_maximum_is_that_of_its_own_noise(candidates):
    gumbel, laplace = (
        NoisyMax(2.0, noise=noise).selection_error(candidates) for noise in ("gumbel", "laplace")
    )
    assert gumbel == pytest.approx(Exponential(2.0).selection_error(candidates), rel=1e-9)
    harmonic = sum(1 / k for k in range(1, candidates + 1))
    assert laplace == pytest.approx(2 * harmonic, rel=1e-6)


@pytest.mark.parametrize("cls", registry(), ids=lambda cls: cls.__name__)
def test_the_table_of_mechanisms_has_words_in_each_column(cls):
    assert cls.releases
    assert cls.reference
    for words in (cls.releases, cls.reference, cls.limits):
        assert isinstance(words, str)
        assert words == words.strip(" .;")
    assert (f"Known limits: {cls.limits}." in " ".join(cls.__doc__.split())) is (cls.limits != "")
