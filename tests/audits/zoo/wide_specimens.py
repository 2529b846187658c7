"""Specimens whose outputs have many numbers: what leaks is one number, a direction, or a spread.

A specimen is a release function with known truth, by which audits are tested.  Its docstring says
what is wrong with it, or why it is honest; the zoo shows the first line.  Each function here
releases one of two values, or images; its claim is 1-DP, or mu-GDP with mu = 1.

These specimens are not in the zoo, because a score of 200,000 runs of each would take minutes.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant.losses.gaussian import GaussianLoss
from audits.claims.findings import Outcome
from audits.zoo.specimen import Specimen, specimen

Generator = np.random.Generator
Output = NDArray[Any]
PLACE = 2917  # index of the number that leaks, among 4,096
SIDE = 32  # pixels along each side of an image


def one_number_of_4096(value: float, rng: Generator, size: int) -> Output:
    """4,096 numbers under Laplace noise, of which one has half of it."""
    noisy = rng.laplace(size=(size, 4096))
    noisy[:, PLACE] = value + 0.5 * noisy[:, PLACE]
    return noisy


def image_under_half_the_noise(image: Output, rng: Generator, size: int) -> Output:
    """An image of 32 x 32 pixels under Gaussian noise of half the standard deviation."""
    return image + rng.normal(size=(size, SIDE, SIDE))


def dense_direction(value: float, rng: Generator, size: int) -> Output:
    """A thousand numbers that all move, under Gaussian noise calibrated to half the norm."""
    return value * _direction(1000) + rng.normal(size=(size, 1000))


def spread_of_one_number(value: float, rng: Generator, size: int) -> Output:
    """Two hundred noises, of which one is twice as wide for one value; no mean moves."""
    noise = rng.normal(size=(size, 200))
    noise[:, 137] *= 1 + value  # any one of them
    return noise


def one_honest_of_a_thousand(value: float, rng: Generator, size: int) -> Output:
    """A thousand numbers under Laplace noise of scale 1, of which one moves by 1."""
    noisy = rng.laplace(size=(size, 1000))
    noisy[:, 421] += value
    return noisy


def image_under_its_noise(image: Output, rng: Generator, size: int) -> Output:
    """An image of 32 x 32 pixels under Gaussian noise of its own norm."""
    return image / 2 + rng.normal(size=(size, SIDE, SIDE))


def _direction(width: int) -> Output:
    """A vector of norm 2 whose entries have both signs and many sizes.

    Under noise of standard deviation 1 two values that differ by it have mu = 2.
    """
    weights = np.cos(np.arange(width) ** 2)
    unit: Output = weights * (2 / np.linalg.norm(weights))
    return unit


def specimens() -> list[Specimen]:
    """Specimens of wide outputs, with their true epsilons where these are known.

    The broken ones are to be falsified, the honest ones are to survive.
    """
    numbers = (0.0, 1.0)
    images = np.zeros((SIDE, SIDE)), _direction(SIDE * SIDE).reshape(SIDE, SIDE)
    gaussian = GaussianLoss(1.0)
    broken = [
        specimen(one_number_of_4096, numbers, 2.0),
        specimen(image_under_half_the_noise, images, None, claim=gaussian),
        specimen(dense_direction, numbers, None, claim=gaussian),
        specimen(spread_of_one_number, numbers, None),
    ]
    honest = [
        specimen(one_honest_of_a_thousand, numbers, 1.0),
        specimen(image_under_its_noise, images, None, claim=gaussian),
    ]
    return broken + [dataclasses.replace(row, expected=Outcome.SURVIVED) for row in honest]
