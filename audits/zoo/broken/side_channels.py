"""Specimens that leak by side channels: bits, types, lengths, errors, exact answers, time.

A specimen is a function with a known flaw, by which audits are tested.  It releases a value once or
``size`` times; the last functions are queries without noise, whose declared sensitivity is wrong.
The first line of its docstring is the flaw that reports show.

`specimens` states of each function the two values that an audit is to tell apart, and their true
epsilon, the largest log-ratio of an outcome's probabilities; it is None where it is infinite or not
known.  Comments derive it.  Then comes the name of the kind of audit that finds the flaw, the guess
test where none is named.  The claim is 1-DP, or the sensitivity of a query, where no other is
stated.

References: Mironov (2012); Jin, McMurtry, Rubinstein & Ohrimenko (2022).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant.losses.pure_and_approximate import ApproxLoss
from accountant.plans.adjacency import Adjacency
from audits.neighbours.value_spaces import Box
from audits.zoo.specimen import Query, Specimen, query_specimen, specimen

Generator = np.random.Generator
Output = NDArray[Any]


def grid_of_floats(value: float, rng: Generator, size: int) -> Output:
    """Laplace noise of floats: near 0 the bits reveal which value was rounded."""
    return value + rng.laplace(size=size)


def grid_of_gaussians(value: float, rng: Generator, size: int) -> Output:
    """Gaussian noise of floats."""
    # The scale is that of (1, 1e-5)-DP at sensitivity 1, by Balle & Wang (2018).
    return value + rng.normal(scale=3.7306317, size=size)


def whole_noise_on_a_fraction(value: float, rng: Generator, size: int) -> Output:
    """Integer noise on a fraction: the digits after the point stay."""
    success = -math.expm1(-1.0)
    return value + (rng.geometric(success, size) - rng.geometric(success, size))


def even_noise(value: int, rng: Generator, size: int) -> Output:
    """Noise of even numbers only: parity reveals the value."""
    success = -math.expm1(-1.0)
    return value + 2 * (rng.geometric(success, size) - rng.geometric(success, size))


def strings_kept(answer: int, rng: Generator) -> str:
    """A word, the true one with chance 0.9."""
    # Epsilon is ln (0.9 / 0.1).
    return ("no", "yes")[answer if rng.random() < 0.9 else 1 - answer]


def none_tells(answer: int, rng: Generator) -> float | None:
    """Gives no answer five times as often for one value."""
    # No answer costs ln (0.5 / 0.1), which is more than the ln (0.9 / 0.5) of an answer.
    return None if rng.random() < (0.5 if answer else 0.1) else 1.5


def second_part(value: float, rng: Generator) -> tuple[float, bool]:
    """A Laplace release with a label beside it, kept with 0.9."""
    # The parts are independent: epsilon is 1 + ln 9.
    return value + rng.laplace(), bool(rng.random() < (0.9 if value else 0.1))


def length_tells(answer: int, rng: Generator) -> list[float]:
    """A list of two numbers with probability 0.9 for one value, 0.1 for the other."""
    # Epsilon is ln (0.9 / 0.1).
    return rng.random(2 if rng.random() < (0.9 if answer else 0.1) else 1).tolist()  # type: ignore[no-any-return]


def raises(value: float, rng: Generator) -> float:
    """Raises ten times as often for one value."""
    # An error costs ln (0.5 / 0.05), and a number less: 1 + ln (0.95 / 0.5) = 1.642.
    if rng.random() < (0.5 if value else 0.05):
        raise ValueError("no convergence")
    return value + rng.laplace()


def type_tells(answer: int, rng: Generator) -> Any:
    """A count as numpy's integer or as Python's."""
    # Epsilon is ln (0.8 / 0.2).
    count = int(rng.integers(10))
    return np.int64(count) if rng.random() < (0.8 if answer else 0.2) else count


def missing_tells(value: float, rng: Generator) -> float:
    """Not a number, three times of ten, for one value only."""
    return math.nan if rng.random() < 0.3 * value else rng.laplace()


def bare_answer(value: float, rng: Generator) -> tuple[float, float]:
    """A release, with the exact answer beside it every twentieth time."""
    return value + rng.laplace(), value if rng.random() < 0.05 else rng.random()


def rare_key(count: int, rng: Generator) -> list[float]:
    """A key that one person holds is released above a threshold set too low."""
    # With the person a key is released with P(1 + Laplace > t) = e^-(t - 1) / 2 = 0.013, where
    # delta is claimed to be 0.0049; without the person it never is.
    noisy = count + rng.laplace()
    return [noisy] if count and noisy > 1 + math.log(0.5 / 0.013) else []


def leak_and_shame(answer: int, rng: Generator, size: int) -> Output:
    """Publishes the answer twice as often as its delta allows, else nothing."""
    return np.where(rng.random(size) < 0.004, 1 + answer, 0)


def slow_for_one(value: float, rng: Generator) -> float:
    """Works longer for the greater value."""
    for _ in range(int(200 + 400 * value)):
        pass
    return value + rng.laplace()


def slow_for_noise(value: int, rng: Generator) -> int:
    """Counts its noise up one by one, so that larger noise takes longer."""
    count = 0
    while rng.random() < 0.9:
        count += 1
    return value + count * int(rng.choice([-1, 1]))


def sum_of_floats(records: Output) -> float:
    """A sum of large floats, of which each step rounds."""
    return float(np.sum(records))


def clip_lets_nan_through(records: Output) -> float:
    """Clips, which leaves what is not a number as it is."""
    return float(np.clip(records, 0.0, 1.0).sum())


def sum_that_wraps(records: Output) -> int:
    """A sum in 32 bits, which overflows."""
    return int(np.sum(records.astype(np.int32), dtype=np.int32))


def mean_of_a_private_count(records: Output) -> float:
    """A mean over as many records as there are, where one may be missing."""
    return float(np.clip(records, 0.0, 1.0).mean()) if len(records) else 0.5


def sum_of_squared_deviations(records: Output) -> float:
    """Squared deviations from the mean, declared as if the mean were fixed."""
    return float(((records - records.mean()) ** 2).sum())


def specimens() -> list[Specimen]:
    """Specimens of side channels, with their true epsilons where these are known."""
    numbers, answers = (0.0, 1.0), (0, 1)
    large = Box(2.0**50, 2.0**50 + 1, (1024,))
    hundred = Box(0.0, 1.0, (100,))
    return [
        specimen(grid_of_floats, numbers, None, "bits"),
        specimen(grid_of_gaussians, numbers, None, "bits", ApproxLoss(1.0, 1e-5)),
        specimen(whole_noise_on_a_fraction, (1 / 3, 0.0), None, "bits"),
        specimen(even_noise, answers, None, "bits"),
        specimen(strings_kept, answers, math.log(9), "atoms"),
        specimen(none_tells, answers, math.log(5), "atoms"),
        specimen(second_part, numbers, 1 + math.log(9), "atoms"),
        specimen(length_tells, answers, math.log(9), "atoms"),
        specimen(raises, numbers, math.log(10), "atoms"),
        specimen(type_tells, answers, math.log(4), "atoms"),
        specimen(missing_tells, numbers, None, "atoms"),
        specimen(bare_answer, numbers, None, "atoms"),
        specimen(rare_key, answers, None, "atoms", ApproxLoss(1.0, 0.0049)),
        specimen(leak_and_shame, answers, None, claim=ApproxLoss(1.0, 0.002)),
        specimen(slow_for_one, numbers, None, "timing"),
        specimen(slow_for_noise, answers, None, "timing"),
        query_specimen(Query(sum_of_floats, large, 1.0)),
        query_specimen(Query(clip_lets_nan_through, hundred, 1.0, hostile=True)),
        query_specimen(Query(sum_that_wraps, Box(0, 2**30, (20,), whole=True), 2.0**30)),
        query_specimen(Query(mean_of_a_private_count, hundred, 0.01, Adjacency.ADD_REMOVE)),
        query_specimen(Query(sum_of_squared_deviations, hundred, 0.25)),
    ]
