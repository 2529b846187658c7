"""Broken selections for tests of the audits: noisy maxima and sparse vectors with known faults.

Each function claims epsilon = 1 but leaks more; `specimens` lists it with a pair of neighbouring
inputs and its true epsilon at that pair, where it is finite: the largest log ratio of the two
probabilities, or densities, of an output.  The audits must falsify the claim.  Below, f and F are
the density and the distribution function of the Laplace noise.

Reference: Lyu, Su & Li (2017), whose Algorithms 6, 4, 3 and 5 have the faults of the sparse vectors
below, in this order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.zoo.honest.mechanisms import FIRST_SCORE_HIGH
from audits.zoo.specimen import Specimen, specimen

Generator = np.random.Generator
Output = NDArray[Any]
# Of these five answers the last one alone is high; in the neighbour, 1 minus them, all others are.
FIFTH_ANSWER_HIGH = np.array([0.0, 0.0, 0.0, 0.0, 1.0])


def value_of_noisy_max(scores: Output, rng: Generator, size: int) -> Output:
    """Releases the winning noisy value at the cost of its index."""
    # the largest of five has the density 5 F^4 f; in the lower tail each of the five factors
    # changes by e^(1/2) if the scores move by 1, so epsilon is 5/2
    noisy: Output = scores + rng.laplace(scale=2.0, size=(size, len(scores)))
    winner: Output = noisy.max(axis=1)
    return winner


def noisy_max_of_half_the_noise(scores: Output, rng: Generator, size: int) -> Output:
    """The index of the greatest score, with noise for scores that all move one way."""
    # at the pair the first score is 1 above the four others, or 1 below: epsilon is the log ratio
    # of the integrals of f(x) F(x + 1)^4 and f(x) F(x - 1)^4, by quadrature
    noisy: Output = scores + rng.laplace(scale=1.0, size=(size, 5))
    index: Output = noisy.argmax(axis=1)
    return index


def bare_max(scores: Output, rng: Generator, size: int) -> Output:
    """The index of the greatest score, with noise that only breaks ties."""
    noisy: Output = scores + rng.uniform(0, 1e-6, size=(size, 5))
    index: Output = noisy.argmax(axis=1)
    return index


def sparse_vector_without_stop(answers: Output, rng: Generator, size: int) -> Output:
    """Releases for all twenty answers whether they are above, at the cost of one."""
    # the true epsilon is the largest log ratio of the probabilities of a pattern of answers;
    # with i answers below and j above, a probability is the integral of F^i (1 - F)^j over the
    # threshold, by quadrature
    threshold = rng.laplace(scale=2.0, size=(size, 1))
    return (answers + rng.laplace(scale=4.0, size=(size, 20)) >= threshold).astype(int)


def sparse_vector_unscaled(answers: Output, rng: Generator, size: int) -> Output:
    """The first answer above, with noise that ignores the cost of the answer."""
    # of very many answers the threshold costs 1/4 and the answer above costs 2 / (4/3) = 3/2; of
    # five it is less: the log ratio of the probabilities of the fifth, by quadrature
    threshold = rng.laplace(scale=4.0, size=(size, 1))
    above = answers + rng.laplace(scale=4 / 3, size=(size, 5)) >= threshold
    return np.where(above.any(axis=1), above.argmax(axis=1), 5)


def sparse_vector_releasing_values(answers: Output, rng: Generator, size: int) -> Output:
    """The first answer above, and the noisy value that was compared."""
    # nineteen answers below and the released value each cost 1/2 in the lower tail: 20/2 = 10
    noisy = answers + rng.laplace(scale=2.0, size=(size, 20))
    above = noisy >= rng.laplace(scale=2.0, size=(size, 1))
    first_above = np.where(above.any(axis=1), above.argmax(axis=1), 19)
    value = np.where(above.any(axis=1), noisy[np.arange(size), first_above], -1e6)
    return np.stack([first_above + 0.0, value], axis=1)


def sparse_vector_without_noise_on_answers(answers: Output, rng: Generator, size: int) -> Output:
    """Only the threshold is noisy: answers on either side of it reveal their order."""
    return (answers >= rng.laplace(scale=1.0, size=(size, 1))).astype(int)


def specimens() -> list[Specimen]:
    """Specimens of broken selections, with their true epsilons; None where that is infinite."""
    ten = np.ones(10)
    return [
        specimen(value_of_noisy_max, (np.zeros(5), np.ones(5)), 2.5),
        specimen(
            noisy_max_of_half_the_noise, (FIRST_SCORE_HIGH, 1 - FIRST_SCORE_HIGH), 1.75895312863188
        ),
        specimen(bare_max, (FIRST_SCORE_HIGH, 1 - FIRST_SCORE_HIGH), None),
        specimen(
            sparse_vector_without_stop, (np.zeros(20), np.concatenate([ten, -ten])), 4.6068349
        ),
        specimen(
            sparse_vector_unscaled, (FIFTH_ANSWER_HIGH, 1 - FIFTH_ANSWER_HIGH), 1.6739626055526267
        ),
        specimen(sparse_vector_releasing_values, (np.zeros(20), np.ones(20)), 10.0),
        specimen(
            sparse_vector_without_noise_on_answers,
            (np.array([1.0, 0.0]), np.array([0.0, 1.0])),
            None,
        ),
    ]
