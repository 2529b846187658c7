"""Honest specimens, most of them exactly at their claim: a FALSIFIED verdict is a false alarm.

A specimen is a release function with known truth, by which audits are tested.  Its docstring says
what it releases.  `specimens` states of each function the two values that an audit is to tell
apart, their true epsilon, and the kind of audit: the guess test where none is named.  The claim is
1-DP where no other is stated.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant.losses.pure_and_approximate import ApproxLoss
from audits.claims.findings import Outcome
from audits.neighbours.value_spaces import Box
from audits.zoo.specimen import Query, Specimen, query_specimen, specimen
from mechanisms.laplace import Laplace

Generator = np.random.Generator
Output = NDArray[Any]
FLIP_PROBABILITY = 1 / (1 + math.e)  # an answer is flipped with chance 1 / (1 + e^1)
# One value of a pair; the other value is 1 minus it.
FIRST_SCORE_HIGH = np.array([1.0, 0.0, 0.0, 0.0, 0.0])
ELEVENTH_ANSWER_HIGH = np.append(np.zeros(10), 1.0)


def laplace(value: float, rng: Generator, size: int) -> Output:
    """Laplace noise of scale 1."""
    return value + rng.laplace(size=size)


def geometric(value: int, rng: Generator, size: int) -> Output:
    """Discrete Laplace noise, P(k) in proportion to e^-|k|."""
    success = -math.expm1(-1.0)
    return value + rng.geometric(success, size) - rng.geometric(success, size)


def gaussian(value: float, rng: Generator, size: int) -> Output:
    """Gaussian noise calibrated to (1, 1e-5)."""
    # The scale is the least s with Phi(1/(2s) - s) - e Phi(-1/(2s) - s) <= 1e-5: Balle & Wang
    # (2018).
    return value + rng.normal(scale=3.7306317, size=size)


def ten_labels(label: int, rng: Generator, size: int) -> Output:
    """Ten-ary response: the truth with chance e / (e + 9), else another label."""
    another = (label + rng.integers(1, 10, size)) % 10
    return np.where(rng.random(size) < math.e / (math.e + 9), label, another)


def two_answers(answer: int, rng: Generator, size: int) -> Output:
    """Binary response with keep e / (1 + e)."""
    return np.where(rng.random(size) < FLIP_PROBABILITY, 1 - answer, answer)


def unary_optimised(label: int, rng: Generator, size: int) -> Output:
    """Optimised unary encoding of five labels: ones kept with 1/2, zeros raised with 1/(1+e)."""
    # With p = 1/2 and q = 1 / (1 + e) epsilon is ln (p (1 - q) / (q (1 - p))) = ln ((1 - q) / q) =
    # 1.
    chance = np.where(np.arange(5) == label, 0.5, FLIP_PROBABILITY)
    return (rng.random((size, 5)) < chance).astype(int)


def unary_symmetric(label: int, rng: Generator, size: int) -> Output:
    """Symmetric unary encoding of five labels: every bit is flipped with 1 / (1 + e^(1/2))."""
    # Two bits differ between two labels, and each costs 1/2.
    bits = (np.arange(5) == label).astype(int)
    flipped: Output = bits ^ (rng.random((size, 5)) < 1 / (1 + math.exp(0.5)))
    return flipped


def noisy_histogram(counts: Output, rng: Generator, size: int) -> Output:
    """Counts of four bins under Laplace noise of scale 1, one record more or less."""
    return counts + rng.laplace(size=(size, 4))


def parallel_laplaces(value: float, rng: Generator, size: int) -> Output:
    """Twenty answers under Laplace noise of scale 20."""
    # Each of the 20 coordinates costs 1/20.
    return value + rng.laplace(scale=20.0, size=(size, 20))


def noisy_max(scores: Output, rng: Generator, size: int) -> Output:
    """The index of the greatest of five scores under Laplace noise of scale 2."""
    noisy: Output = scores + rng.laplace(scale=2.0, size=(size, 5))
    index: Output = noisy.argmax(axis=1)
    return index


def exponential(scores: Output, rng: Generator, size: int) -> Output:
    """The exponential mechanism, chance in proportion to e^(score / 2), by Gumbel noise."""
    noisy: Output = scores / 2 + rng.gumbel(size=(size, 5))
    index: Output = noisy.argmax(axis=1)
    return index


def sparse_vector(answers: Output, rng: Generator, size: int) -> Output:
    """The first of eleven answers above a noisy threshold: scales 2 and 4, one stop."""
    above = answers + rng.laplace(scale=4.0, size=(size, 11)) >= rng.laplace(
        scale=2.0, size=(size, 1)
    )
    return np.where(above.any(axis=1), above.argmax(axis=1), 11)


def clamped_laplace(value: float, rng: Generator, size: int) -> Output:
    """Laplace noise, the sum clamped to [0, 1]: masses at both ends."""
    # The ratio at an end is P(1 | 1) / P(1 | 0) = (1/2) / (e^-1 / 2) = e.
    return np.clip(value + rng.laplace(size=size), 0.0, 1.0)


def leaky_response(answer: int, rng: Generator, size: int) -> Output:
    """The worst (1, 0.01) mechanism: reveals the answer with 0.01, else a binary response."""
    revealed = rng.random(size) < 0.01
    return np.where(revealed, 2 + answer, two_answers(answer, rng, size))


def strings(answer: int, rng: Generator) -> str:
    """A word, the true one with chance e / (1 + e)."""
    return ("no", "yes")[answer if rng.random() > FLIP_PROBABILITY else 1 - answer]


def sometimes_none(value: float, rng: Generator) -> float | None:
    """No answer every other time, whatever the value, else a Laplace release."""
    return None if rng.random() < 0.5 else value + rng.laplace()


def any_length(value: int, rng: Generator) -> list[int]:
    """A list whose length is independent of the answer: one binary response and public zeros."""
    return [*[0] * int(rng.integers(4)), int(two_answers(value, rng, 1)[0])]


def nothing(value: float, rng: Generator, size: int) -> Output:
    """A constant."""
    del value, rng
    return np.zeros(size)


def exact_laplace(value: float, rng: Generator, size: int) -> Output:
    """Laplace noise in exact arithmetic: its bits reveal no more than its value."""
    release: Output = Laplace(1.0, 1.0, "exact").release(value, rng, size)
    return release


def even_tempo(value: float, rng: Generator, size: int) -> Output:
    """A release whose time is independent of the value."""
    return value + rng.laplace(size=size)


def clipped_sum(records: Output) -> float:
    """A sum of clipped records, none of them missing."""
    return float(np.clip(np.nan_to_num(records), 0.0, 1.0).sum())


def clipped_mean(records: Output) -> float:
    """A mean of clipped records over a public count."""
    return clipped_sum(records) / 50


def specimens() -> list[Specimen]:
    """Honest specimens with their true epsilons."""
    numbers, root = (0.0, 1.0), math.exp(0.5)
    fifty = Box(0.0, 1.0, (50,))
    rows = [
        specimen(laplace, numbers, 1.0),
        specimen(geometric, (0, 1), 1.0),
        specimen(gaussian, numbers, 1.0, claim=ApproxLoss(1.0, 1e-5)),
        specimen(ten_labels, (0, 1), 1.0),
        specimen(two_answers, (0, 1), 1.0),
        specimen(unary_optimised, (0, 1), 1.0),
        specimen(unary_symmetric, (0, 1), 1.0),
        specimen(noisy_histogram, (np.array([5, 5, 5, 5]), np.array([6, 5, 5, 5])), 1.0),
        specimen(parallel_laplaces, numbers, 1.0),
        # The true epsilon is the greatest of |ln P(i | first) / P(i | second)|, by quadrature.
        specimen(noisy_max, (FIRST_SCORE_HIGH, 1 - FIRST_SCORE_HIGH), 0.9184395448806043),
        # The greatest ratio is P(0 | first) = e^(1/2) / (e^(1/2) + 4) over 1 / (1 + 4 e^(1/2)).
        specimen(
            exponential,
            (FIRST_SCORE_HIGH, 1 - FIRST_SCORE_HIGH),
            math.log(root * (1 + 4 * root) / (root + 4)),
        ),
        # The true epsilon is the greatest log-ratio of the twelve outputs, by quadrature over the
        # threshold.
        specimen(
            sparse_vector, (ELEVENTH_ANSWER_HIGH, 1 - ELEVENTH_ANSWER_HIGH), 0.9940101636381473
        ),
        specimen(clamped_laplace, numbers, 1.0),
        specimen(leaky_response, (0, 1), 1.0, claim=ApproxLoss(1.0, 0.01)),
        specimen(strings, (0, 1), 1.0, "atoms"),
        # Half of the runs reveal nothing, and the others are a Laplace release.
        specimen(sometimes_none, numbers, 1.0, "atoms"),
        specimen(any_length, (0, 1), 1.0, "atoms"),
        specimen(nothing, numbers, 0.0),
        specimen(exact_laplace, (1 / 3, 4 / 3), 1.0, "bits"),
        specimen(even_tempo, numbers, 1.0, "timing"),
    ]
    rows += [
        query_specimen(Query(clipped_sum, fifty, 1.0, hostile=True)),
        query_specimen(Query(clipped_mean, fifty, 0.02, hostile=True)),
    ]
    return [dataclasses.replace(row, expected=Outcome.SURVIVED) for row in rows]
