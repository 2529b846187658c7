"""Specimens with broken noise on numbers and vectors: too little, of the wrong shape or norm.

A specimen is a release function with known truth, by which audits are tested.  Its docstring says
what is wrong with it.  `specimens` states of each function the two values that an audit is to tell
apart, and their true epsilon, which is None where it is infinite or not known.  The comments derive
it.  The claim is 1-DP where no other is stated.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant.losses.pure_and_approximate import ApproxLoss
from audits.zoo.specimen import Specimen, specimen

Generator = np.random.Generator
Output = NDArray[Any]


def half_the_noise(value: float, rng: Generator, size: int) -> Output:
    """Laplace noise of half the stated scale."""
    return value + rng.laplace(scale=0.5, size=size)


def variance_for_scale(value: float, rng: Generator, size: int) -> Output:
    """Laplace noise of variance 1 where scale 1 was meant."""
    # The variance is 2 scale^2, so that the scale is 1 / sqrt(2), and epsilon is sqrt(2).
    return value + rng.laplace(scale=math.sqrt(0.5), size=size)


def no_noise_on_zero(value: float, rng: Generator, size: int) -> Output:
    """An answer of zero is assumed to be harmless and gets no noise."""
    return np.full(size, 0.0) if value == 0 else value + rng.laplace(size=size)


def own_seed(value: float, rng: Generator, size: int) -> Output:
    """Seeds its own generator, so the noise is the same every time."""
    del rng
    return np.full(size, value + np.random.default_rng(1234).laplace())


def uniform_noise(value: float, rng: Generator, size: int) -> Output:
    """Uniform noise of the variance of Laplace noise: its end points reveal the value."""
    return value + rng.uniform(-math.sqrt(6), math.sqrt(6), size)


def one_sided_noise(value: float, rng: Generator, size: int) -> Output:
    """Exponential noise, always positive."""
    return value + rng.exponential(size=size)


def noise_cut_off(value: float, rng: Generator, size: int) -> Output:
    """Laplace noise clamped to [-2, 2], so that outliers do not look odd."""
    return value + np.clip(rng.laplace(size=size), -2.0, 2.0)


def gaussian_as_pure(value: float, rng: Generator, size: int) -> Output:
    """Gaussian noise of the standard deviation of Laplace noise, claimed to be epsilon-DP."""
    # The log-ratio (x - 1/2) / 2 has no bound.
    return value + rng.normal(scale=math.sqrt(2), size=size)


def gaussian_that_forgot_l2(value: float, rng: Generator, size: int) -> Output:
    """Gaussian noise calibrated to one coordinate, on four that all move."""
    # One coordinate at this scale is (1, 1e-5)-DP.  Four have mu = sqrt(4) / 3.7306317; its epsilon
    # at delta 1e-5 is by Balle & Wang (2018).
    return value + rng.normal(scale=3.7306317, size=(size, 4))


def scale_of_one_coordinate(value: float, rng: Generator, size: int) -> Output:
    """Four answers, each under Laplace noise that was meant for one."""
    return value + rng.laplace(size=(size, 4))


def same_noise_twice(values: Output, rng: Generator, size: int) -> Output:
    """Two answers with one and the same draw of noise: their difference has none."""
    return values + rng.laplace(size=(size, 1))


def asked_twice(value: float, rng: Generator, size: int) -> Output:
    """Two releases at the cost of one."""
    return value + rng.laplace(size=(size, 2))


def histogram_of_replaced(counts: Output, rng: Generator, size: int) -> Output:
    """Noise for one record more or less where a record may move to another bin."""
    # Two counts change by 1, and each costs 1.
    return counts + rng.laplace(size=(size, 4))


def noise_on_the_total(counts: Output, rng: Generator, size: int) -> Output:
    """The total is noisy, the first count beside it is not."""
    total = counts.sum() + rng.laplace(size=size)
    return np.stack([total, np.full(size, float(counts[0]))], axis=1)


def scale_from_the_data(value: float, rng: Generator, size: int) -> Output:
    """Noise of a scale that is the private value's own."""
    # The log-ratio ln 2 - |x - 1| + |x - 2| / 2 has no bound.
    return value + rng.laplace(scale=abs(value), size=size)


def mass_at_the_cap(value: float, rng: Generator, size: int) -> Output:
    """Caps the answer at a bound taken from the data."""
    return np.minimum(value + rng.laplace(size=size), value + 1.0)


def truth_twice(label: int, rng: Generator, size: int) -> Output:
    """The random answer of ten-ary response may be the truth again."""
    # Epsilon is ln ((keep + (1 - keep) / 10) / ((1 - keep) / 10)) = ln (1 + 10 e / 9).
    keep = math.e / (math.e + 9)
    return np.where(rng.random(size) < keep, label, rng.integers(0, 10, size))


def keep_of_two_labels(label: int, rng: Generator, size: int) -> Output:
    """Ten-ary response kept with the e / (1 + e) of two labels."""
    # With keep = e / (1 + e) epsilon is ln (keep / ((1 - keep) / 9)) = ln (9 e).
    another = (label + rng.integers(1, 10, size)) % 10
    return np.where(rng.random(size) < math.e / (1 + math.e), label, another)


def one_bit_never_flips(label: int, rng: Generator, size: int) -> Output:
    """Unary encoding whose first bit is not flipped."""
    bits = (np.arange(5) == label).astype(int)
    flip = rng.random((size, 5)) < 1 / (1 + math.exp(0.5))
    flip[:, 0] = False
    flipped: Output = bits ^ flip
    return flipped


def unary_budget_for_each_bit(label: int, rng: Generator, size: int) -> Output:
    """Unary encoding that spends the whole budget on each of the two bits that differ."""
    # Every bit is flipped with probability 1 / (1 + e), so that each of the two costs 1.
    bits = (np.arange(5) == label).astype(int)
    flipped: Output = bits ^ (rng.random((size, 5)) < 1 / (1 + math.e))
    return flipped


def specimens() -> list[Specimen]:
    """Specimens of broken noise, with their true epsilons where these are known."""
    numbers, approximate = (0.0, 1.0), ApproxLoss(1.0, 1e-5)
    five, moved = np.array([5.0, 5.0, 5.0, 5.0]), np.array([6.0, 4.0, 5.0, 5.0])
    return [
        specimen(half_the_noise, numbers, 2.0),
        specimen(truth_twice, (0, 1), math.log1p(10 * math.e / 9)),
        specimen(no_noise_on_zero, numbers, None),
        specimen(own_seed, numbers, None),
        specimen(variance_for_scale, numbers, math.sqrt(2)),
        specimen(uniform_noise, numbers, None),
        specimen(one_sided_noise, numbers, None),
        specimen(noise_cut_off, numbers, None),
        specimen(gaussian_as_pure, numbers, None),
        specimen(gaussian_that_forgot_l2, numbers, 2.15467670, claim=approximate),
        specimen(scale_of_one_coordinate, numbers, 4.0),
        specimen(same_noise_twice, (np.zeros(2), np.array([1.0, 0.0])), None),
        specimen(asked_twice, numbers, 2.0),
        specimen(histogram_of_replaced, (five, moved), 2.0),
        specimen(noise_on_the_total, (five, five + np.array([1.0, 0.0, 0.0, 0.0])), None),
        specimen(scale_from_the_data, (1.0, 2.0), None),
        specimen(mass_at_the_cap, numbers, None),
        specimen(keep_of_two_labels, (0, 1), 1 + math.log(9)),
        specimen(one_bit_never_flips, (0, 1), None),
        specimen(unary_budget_for_each_bit, (0, 1), 2.0),
    ]
