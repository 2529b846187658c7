"""Programs that draw, choose or repeat noise wrongly: retries, tables, seeds, caches, selections.

Each function adds enough noise at first sight.  `specimens` states of each function the two values
that an audit is to tell apart, and their true epsilon, which is None where it is infinite or not
known.  The comments derive it.  The claim is 1-DP.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from audits.zoo.specimen import Specimen, program, specimen, whole_noise

Generator = np.random.Generator
Array = NDArray[Any]
Output = Any  # an array; numpy's types lose it where a number of the data is added
TABLE = np.random.default_rng(5).laplace(size=200)  # 200 draws of noise
FIVE_SCORES = np.array([1.0, 0.0, 0.0, 0.0, 0.0])


# --- the noise itself ---


def truncated_noise(value: int, rng: Generator, size: int) -> Output:
    """Cuts the decimals of Laplace noise off, so that 0 comes too often."""
    # P(0) = 1 - 1/e, and P(1) = (1/e - 1/e^2) / 2: their ratio is 2 e.
    return value + np.trunc(rng.laplace(size=size)).astype(int)


def noise_from_a_table(value: float, rng: Generator, size: int) -> Output:
    """Draws its noise from a table of 200 numbers."""
    return value + rng.choice(TABLE, size)


def noise_of_few_bits(value: float, rng: Generator, size: int) -> Output:
    """Makes Gaussian noise of the quantiles of random bytes."""
    return value + 4.0 * ndtri((rng.integers(256, size=size) + 0.5) / 256)


def die_as_noise(value: int, rng: Generator, size: int) -> Output:
    """Adds the sum of three dice, less their mean."""
    return value + rng.integers(1, 7, size=(size, 3)).sum(axis=1) - 10


def coins_as_noise(value: int, rng: Generator, size: int) -> Output:
    """Adds a number of heads of twelve coins, which is claimed to have no delta."""
    return value + rng.binomial(12, 0.5, size)


def extreme_noise(value: float, rng: Generator, size: int) -> Output:
    """Adds Gumbel noise, which is hardly ever far below 0."""
    return value + rng.gumbel(size=size)


def noise_most_of_the_time(value: float, rng: Generator, size: int) -> Output:
    """Adds no noise in one of ten runs."""
    return value + rng.laplace(size=size) * (rng.random(size) < 0.9)


def noise_in_proportion(value: float, rng: Generator, size: int) -> Output:
    """Multiplies by noise, so that small values have little of it."""
    return value * (1 + rng.laplace(size=size))


def noise_seeded_by_the_value(value: float, rng: Generator, size: int) -> Output:
    """Seeds its noise with the value, so that equal answers look alike."""
    del rng
    return np.full(size, value + np.random.default_rng(int(value)).laplace())


def mirrored_noise(values: Array, rng: Generator, size: int) -> Output:
    """Gives two answers opposite noise, so that their sum has none."""
    noise = rng.laplace(scale=2.0, size=size)
    return np.column_stack([values[0] + noise, values[1] - noise])


def noise_beside_the_answer(value: float, rng: Generator, size: int) -> Output:
    """Reports its own noise, for error bars."""
    noise = rng.laplace(size=size)
    return np.column_stack([value + noise, np.abs(noise)])


# --- repeated until it is pleasant ---


def retries_until_positive(value: float, rng: Generator, size: int) -> Output:
    """Draws again while the answer is below 0."""
    # Of the value 1 the density at x is e^-|x-1| / (2 - 1/e), of 0 it is e^-x; the greatest ratio
    # is at 0: (2 - 1/e) e.
    answers = value + rng.laplace(size=size)
    while (answers < 0).any():
        below = answers < 0
        answers[below] = value + rng.laplace(size=int(below.sum()))
    return answers


def retries_until_near(value: float, rng: Generator, size: int) -> Output:
    """Draws again while the error exceeds 2."""
    noise = rng.laplace(size=size)
    while (np.abs(noise) > 2).any():
        far = np.abs(noise) > 2
        noise[far] = rng.laplace(size=int(far.sum()))
    return value + noise


def number_of_retries(value: float, rng: Generator) -> tuple[float, int]:
    """Draws again while the answer is below 0, and reports how often."""
    tries = 1
    while (answer := value + rng.laplace()) < 0:
        tries += 1
    return answer, tries


def nearest_of_five(value: float, rng: Generator, size: int) -> Output:
    """Draws five times, and releases the answer with the least error."""
    noise = rng.laplace(size=(size, 5))
    return value + noise[np.arange(size), np.abs(noise).argmin(axis=1)]


def best_model_of_ten(losses: Array, rng: Generator, size: int) -> Output:
    """Tries ten settings, and releases the one that is best without noise."""
    return np.column_stack([np.full(size, losses.argmin()), rng.normal(size=size)])


# --- selections ---


def exponential_without_the_two(scores: Array, rng: Generator, size: int) -> Output:
    """The exponential mechanism with chances in proportion to e^score, not e^(score / 2)."""
    # P(0 | first) = e / (e + 4), and P(0 | second) = 1 / (1 + 4 e).
    index: Output = (scores + rng.gumbel(size=(size, 5))).argmax(axis=1)
    return index


def top_three_for_one(scores: Array, rng: Generator, size: int) -> Output:
    """The three greatest of eight noisy scores, in order, at the cost of one."""
    noisy = scores + rng.laplace(scale=2.0, size=(size, 8))
    order: Output = np.argsort(-noisy, axis=1)[:, :3]
    return order


def exact_gap_of_noisy_max(scores: Array, rng: Generator, size: int) -> Output:
    """A noisy winner, with its exact lead over the next."""
    winner = (scores + rng.laplace(scale=2.0, size=(size, 5))).argmax(axis=1)
    ranked = np.sort(scores)
    return np.column_stack([winner, np.full(size, ranked[-1] - ranked[-2])])


def ties_by_order(scores: Array, rng: Generator, size: int) -> Output:
    """The winner of the exact scores, with noise among ties alone."""
    ties = np.flatnonzero(scores == scores.max())
    return rng.choice(ties, size)


def sparse_vector_with_one_noise(answers: Array, rng: Generator, size: int) -> Output:
    """One draw for the threshold and all answers, which falls out of the comparison."""
    noise = rng.laplace(scale=2.0, size=(size, 1))
    return (answers + noise >= 0.5 + noise).astype(int)


def sparse_vector_of_an_exact_threshold(answers: Array, rng: Generator, size: int) -> Output:
    """All forty answers under noise, the threshold without."""
    return (answers + rng.laplace(scale=4.0, size=(size, 40)) >= 0.5).astype(int)


def sparse_vector_of_exact_hits(answers: Array, rng: Generator, size: int) -> Output:
    """The first noisy hit, with a sign whether it is a true one."""
    noisy = answers + rng.laplace(scale=4.0, size=(size, 6)) >= rng.laplace(
        scale=2.0, size=(size, 1)
    )
    hit = np.where(noisy.any(axis=1), noisy.argmax(axis=1), 5)
    return np.column_stack([hit, answers[hit] >= 0.5])


# --- memory, order, time ---


@functools.lru_cache
def exact_answer(value: float) -> float:
    """An answer that a cache remembers."""
    return 3 * value


def cache_before_the_noise(value: float, rng: Generator) -> float:
    """Remembers the exact answer, and returns it as it is where it is asked again."""
    asked_before = rng.random() < 0.5
    return exact_answer(value) if asked_before else exact_answer(value) + rng.laplace(scale=3.0)


def one_report_a_record(records: int, rng: Generator) -> list[float]:
    """One random number for each record: the length is the count."""
    return rng.laplace(scale=10.0, size=records).tolist()  # type: ignore[no-any-return]


def only_counts_that_exist(counts: dict[str, int], rng: Generator) -> dict[str, int]:
    """Noisy counts of the keys that the data have."""
    return {key: count + whole_noise(rng) for key, count in counts.items()}


def sorted_by_the_truth(scores: Array, rng: Generator, size: int) -> Output:
    """Names in the order of their exact scores, with noisy scores."""
    order = np.argsort(-scores)
    noisy = scores[order] + rng.laplace(scale=20.0, size=(size, len(scores)))
    return np.hstack([np.broadcast_to(order, noisy.shape), noisy])


def searched_from_the_left(place: int, rng: Generator) -> float:
    """Looks through a list until it finds the record, and so takes longer for a later one."""
    for candidate in range(20_000):
        if candidate == place:
            break
    return float(rng.laplace())


def specimens() -> list[Specimen]:
    """Programs that draw wrongly, with their true epsilons where these are known."""
    numbers, sides = (0.0, 1.0), (0, 1)
    scores = FIVE_SCORES, 1 - FIVE_SCORES
    return [
        specimen(truncated_noise, sides, 1 + math.log(2)),
        specimen(noise_from_a_table, numbers, None),
        specimen(noise_of_few_bits, numbers, None),
        specimen(die_as_noise, sides, None),
        specimen(coins_as_noise, sides, None),
        specimen(extreme_noise, numbers, None),
        specimen(noise_most_of_the_time, numbers, None),
        specimen(noise_in_proportion, (1.0, 2.0), None),
        specimen(noise_seeded_by_the_value, numbers, None),
        specimen(mirrored_noise, (np.zeros(2), np.array([1.0, 0.0])), None),
        specimen(noise_beside_the_answer, numbers, None),
        specimen(retries_until_positive, numbers, 1 + math.log(2 - math.exp(-1))),
        specimen(retries_until_near, numbers, None),
        program(number_of_retries, numbers),
        specimen(nearest_of_five, numbers, None),
        specimen(best_model_of_ten, (np.arange(10.0), np.arange(10.0)[::-1].copy()), None),
        specimen(
            exponential_without_the_two,
            scores,
            math.log(math.e * (1 + 4 * math.e) / (math.e + 4)),
        ),
        specimen(top_three_for_one, (np.repeat([0.0, 1.0], 4), np.repeat([1.0, 0.0], 4)), None),
        specimen(exact_gap_of_noisy_max, (np.arange(5.0), np.arange(5.0) ** 1.2), None),
        specimen(ties_by_order, scores, None),
        specimen(sparse_vector_with_one_noise, (np.zeros(6), np.ones(6)), None),
        specimen(sparse_vector_of_an_exact_threshold, (np.zeros(40), np.ones(40)), None),
        specimen(sparse_vector_of_exact_hits, (np.zeros(6), np.ones(6)), None),
        program(cache_before_the_noise, numbers),
        program(one_report_a_record, (20, 21)),
        program(only_counts_that_exist, ({"a": 5}, {"a": 5, "b": 1})),
        specimen(sorted_by_the_truth, (np.array([5.0, 4.0]), np.array([4.0, 5.0])), None),
        specimen(searched_from_the_left, (100, 15_000), None, "timing"),
    ]
