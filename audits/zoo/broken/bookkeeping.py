"""Programs that charge too little: sensitivity, bounds, counts, composition, gradients.

Each function adds noise, and is wrong about how far the number under it moves, or about how often
the data are used.  `specimens` states of each function the two values that an audit is to tell
apart, and their true epsilon, which is None where it is infinite or not known.  The comments derive
it.  The claim is 1-DP where no other is stated.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant.losses.pure_and_approximate import ApproxLoss, PureLoss
from audits.zoo.specimen import Specimen, specimen

Generator = np.random.Generator
Array = NDArray[Any]
Output = Any  # an array; numpy's types lose it where a number of the data is added
SIGMA = 3.7306317  # Gaussian noise of (1, 1e-5)-DP at sensitivity 1, by Balle & Wang (2018)
HALF = math.log1p(math.expm1(1.0) / 2)  # epsilon of 1-DP on a secret half of the records
CLIP = 1.0  # the norm that gradients are to be clipped to


# --- bounds and sensitivities ---


def clips_after_the_noise(record: float, rng: Generator, size: int) -> Output:
    """Clips the noisy record to [0, 1] and not the record."""
    # The masses at 0 of records 0 and 3 are 1/2 and e^-3 / 2.
    return np.clip(record + rng.laplace(size=size), 0.0, 1.0)


def clips_above_only(record: float, rng: Generator, size: int) -> Output:
    """Clips records at 1 from above, and lets negative ones be."""
    return min(record, 1.0) + rng.laplace(size=size)


def counts_rows_not_persons(rows: int, rng: Generator, size: int) -> Output:
    """Adds noise for one row where a person has three."""
    return rows + rng.laplace(size=size)


def rounds_before_the_noise(value: float, rng: Generator, size: int) -> Output:
    """Rounds to tens before the noise, so that a step of 1 becomes one of 10."""
    return round(value, -1) + rng.laplace(size=size)


def squares_without_a_clip(record: float, rng: Generator, size: int) -> Output:
    """Sums squares of records in [0, 2] under noise for those in [0, 1]."""
    return record**2 + rng.laplace(size=size)


def drops_outliers(records: Array, rng: Generator, size: int) -> Output:
    """Leaves out what is far from the mean, before the sum."""
    # One record at 1 of ten is far from the mean and left out; two are not: the sum moves by 2.
    far = np.abs(records - records.mean()) > 2.5 * records.std()
    return np.clip(records[~far], 0.0, 1.0).sum() + rng.laplace(size=size)


def scale_from_the_range(records: Array, rng: Generator, size: int) -> Output:
    """Noise for the range of the data, which the data choose."""
    return records.mean() + rng.laplace(scale=np.ptp(records) / len(records), size=size)


def divides_by_the_exact_count(records: Array, rng: Generator, size: int) -> Output:
    """A noisy sum over the exact number of records."""
    return (records.sum() + rng.laplace(size=size)) / len(records)


def edges_from_the_data(records: Array, rng: Generator, size: int) -> Output:
    """A noisy histogram beside its edges, which are the extremes of the data."""
    counts, edges = np.histogram(records, bins=2)
    noisy = counts + rng.laplace(size=(size, 2))
    return np.hstack([noisy, np.broadcast_to(edges, (size, 3))])


def units_of_the_greatest(counts: Array, rng: Generator, size: int) -> Output:
    """Shares of the greatest count, which itself has no noise."""
    return (counts + rng.laplace(size=(size, len(counts)))) / counts.max()


def missing_if_one_is_missing(records: Array, rng: Generator, size: int) -> Output:
    """A mean that is missing where a record is."""
    return float(np.mean(records)) + rng.laplace(scale=1 / len(records), size=size)


def noise_of_whole_epsilon(value: float, rng: Generator, size: int) -> Output:
    """Rounds the scale, 1 / 0.7, to a whole number."""
    return value + rng.laplace(scale=int(1 / 0.7), size=size)


# --- composition ---


def three_statistics(value: float, rng: Generator, size: int) -> Output:
    """Three statistics, of which each spends the whole budget."""
    return value + rng.laplace(size=(size, 3))


def every_level_of_a_tree(count: int, rng: Generator, size: int) -> Output:
    """Counts of a town, its county and its state, each under noise for one count."""
    return np.array([0, 10, 100]) + count + rng.laplace(size=(size, 3))


def prefix_sums(record: int, rng: Generator, size: int) -> Output:
    """Running sums of eight days, each under noise for one sum."""
    return np.arange(8) + record + rng.laplace(size=(size, 8))


def groups_that_overlap(counts: Array, rng: Generator, size: int) -> Output:
    """Counts of two groups under noise for one, where people are in both."""
    return counts + rng.laplace(size=(size, 2))


def last_bin_by_difference(counts: Array, rng: Generator, size: int) -> Output:
    """Noisy bins, of which the last makes the total exact."""
    noisy = counts[:-1] + rng.laplace(size=(size, len(counts) - 1))
    return np.column_stack([noisy, counts.sum() - noisy.sum(axis=1)])


def mean_of_nine_draws(value: float, rng: Generator, size: int) -> Output:
    """The mean of nine draws of noise, each of which was paid for once."""
    return value + rng.laplace(size=(size, 9)).mean(axis=1)


def sample_that_is_fixed(value: float, rng: Generator, size: int) -> Output:
    """Charges for a random half of the records, and always takes the same half."""
    return value + rng.laplace(size=size)


def sample_that_is_shown(value: float, rng: Generator, size: int) -> Output:
    """Charges for a secret half of the records, and shows who is in it."""
    is_in = rng.integers(2, size=size)
    return np.column_stack([is_in, is_in * value + rng.laplace(size=size)])


def shuffle_that_does_not(answers: Array, rng: Generator, size: int) -> Output:
    """Charges for a shuffle of twenty local reports, and keeps their order."""
    # Each report is kept with e^3 / (1 + e^3): epsilon is 3.
    flip = rng.random((size, len(answers))) < 1 / (1 + math.exp(3.0))
    flipped: Output = answers ^ flip
    return flipped


# --- thresholds ---


def exact_count_decides(count: int, rng: Generator, size: int) -> Output:
    """A noisy count, or 0 if the exact one is below 5."""
    return np.full(size, 0.0) if count < 5 else count + rng.laplace(size=size)


def delta_that_is_not_said(count: int, rng: Generator, size: int) -> Output:
    """A key that one person holds appears above a threshold; the claim has no delta."""
    noisy = count + rng.laplace(size=size)
    return np.where((noisy > 2.0) & (count > 0), noisy, 0.0)


def key_of_the_exact_maximum(counts: Array, rng: Generator, size: int) -> Output:
    """The key of the greatest exact count, with that count under noise."""
    noisy = counts.max() + rng.laplace(size=size)
    return np.column_stack([np.full(size, counts.argmax()), noisy])


def comparisons_without_noise(middle: int, rng: Generator, size: int) -> Output:
    """A binary search of the median, of which only the last answer is noisy."""
    low, high = 0, 64
    while high - low > 8:
        center = (low + high) // 2
        low, high = (center, high) if middle >= center else (low, center)
    return np.column_stack([np.full(size, low), middle + rng.laplace(size=size)])


# --- gradients ---


def gradient_without_a_clip(gradient: Array, rng: Generator, size: int) -> Output:
    """Gaussian noise on a gradient whose norm nothing bounds."""
    return gradient + rng.normal(scale=SIGMA, size=(size, len(gradient)))


def clips_the_mean_gradient(gradients: Array, rng: Generator, size: int) -> Output:
    """Clips the mean of the gradients in place of each, and adds noise for one of four."""
    mean = gradients.mean(axis=0)
    mean = mean * min(1.0, CLIP / max(float(np.linalg.norm(mean)), 1e-12))
    return mean + rng.normal(scale=SIGMA * CLIP / len(gradients), size=(size, len(mean)))


def clips_each_coordinate(gradient: Array, rng: Generator, size: int) -> Output:
    """Clips coordinates to [-1, 1], so that sixteen of them have the norm 4."""
    clipped = np.clip(gradient, -CLIP, CLIP)
    return clipped + rng.normal(scale=SIGMA, size=(size, len(clipped)))


def divides_the_noise_twice(gradient: float, rng: Generator, size: int) -> Output:
    """Takes a mean of eight after the noise was made for a mean of eight."""
    return gradient / 8 + rng.normal(scale=SIGMA / 64, size=size)


def bias_without_noise(gradient: Array, rng: Generator, size: int) -> Output:
    """Noise on all weights but the last, which is the bias."""
    noise = rng.normal(scale=SIGMA, size=(size, len(gradient)))
    noise[:, -1] = 0.0
    return gradient + noise


def no_noise_on_empty_batches(gradient: Array, rng: Generator, size: int) -> Output:
    """A batch without records sends zeros, and no noise."""
    if not gradient.any():
        return np.zeros((size, len(gradient)))
    return gradient + rng.normal(scale=SIGMA, size=(size, len(gradient)))


def momentum_of_exact_gradients(gradient: float, rng: Generator, size: int) -> Output:
    """Noisy steps whose momentum was taken before the noise."""
    step = gradient + rng.normal(scale=SIGMA, size=size)
    return np.column_stack([step, np.full(size, 0.9 * gradient)])


def same_noise_each_step(gradients: Array, rng: Generator, size: int) -> Output:
    """Seeds each step alike, so that the steps differ by their gradients alone."""
    return gradients + rng.normal(scale=SIGMA * math.sqrt(2), size=(size, 1))


def stops_by_the_exact_loss(loss: float, rng: Generator) -> list[float]:
    """Trains until the exact loss is small: the number of steps tells it."""
    steps = []
    while loss > 0.1:
        steps.append(float(rng.normal(scale=50.0)))
        loss /= 2
    return steps


def specimens() -> list[Specimen]:
    """Programs that charge too little, with their true epsilons where these are known."""
    numbers, approximate = (0.0, 1.0), ApproxLoss(1.0, 1e-5)
    twenty = np.linspace(-1.0, 1.0, 21)
    outlier = np.append(np.zeros(20), 8.0)
    five = np.array([5, 5, 5])
    moved = np.array([6, 5, 5])
    steps = np.zeros(2), np.array([1.0, 0.0])
    four = np.zeros((4, 3)), np.vstack([np.zeros((3, 3)), [[4.0, 0.0, 0.0]]])
    return [
        specimen(clips_after_the_noise, (0.0, 3.0), 3.0),
        specimen(clips_above_only, (0.0, -4.0), 4.0),
        specimen(counts_rows_not_persons, (0, 3), 3.0),
        specimen(rounds_before_the_noise, (14.0, 15.0), 10.0),
        specimen(squares_without_a_clip, (0.0, 2.0), 4.0),
        specimen(drops_outliers, (1.0 * (np.arange(10) > 8), 1.0 * (np.arange(10) > 7)), 2.0),
        specimen(scale_from_the_range, (np.zeros(20) + 0.01 * np.arange(20), outlier), None),
        specimen(divides_by_the_exact_count, (np.ones(1), np.ones(2)), None),
        specimen(edges_from_the_data, (twenty, np.append(twenty[:-1], 0.5)), None),
        specimen(units_of_the_greatest, (five, np.array([8, 5, 5])), None),
        specimen(missing_if_one_is_missing, (twenty, np.append(twenty[:-1], np.nan)), None),
        specimen(noise_of_whole_epsilon, numbers, 1.0, claim=PureLoss(0.7)),
        specimen(three_statistics, numbers, 3.0),
        specimen(every_level_of_a_tree, (0, 1), 3.0),
        specimen(prefix_sums, (0, 1), 8.0),
        specimen(groups_that_overlap, (np.array([4, 4]), np.array([5, 5])), 2.0),
        specimen(last_bin_by_difference, (five, moved), None),
        specimen(mean_of_nine_draws, numbers, None),
        specimen(sample_that_is_fixed, numbers, 1.0, claim=PureLoss(HALF)),
        specimen(sample_that_is_shown, numbers, 1.0, claim=PureLoss(HALF)),
        specimen(shuffle_that_does_not, (np.zeros(20, int), np.eye(20, dtype=int)[0]), 3.0),
        specimen(exact_count_decides, (4, 5), None),
        specimen(delta_that_is_not_said, (0, 1), None),
        specimen(key_of_the_exact_maximum, (np.array([5, 5]), np.array([5, 6])), None),
        specimen(comparisons_without_noise, (31, 32), None),
        specimen(gradient_without_a_clip, (np.zeros(3), np.full(3, 5.0)), None, claim=approximate),
        specimen(clips_the_mean_gradient, four, None, claim=approximate),
        specimen(clips_each_coordinate, (np.zeros(16), np.ones(16)), None, claim=approximate),
        specimen(divides_the_noise_twice, numbers, None, claim=approximate),
        specimen(bias_without_noise, (np.zeros(3), np.eye(3)[2]), None, claim=approximate),
        specimen(no_noise_on_empty_batches, (np.zeros(3), np.eye(3)[0]), None, claim=approximate),
        specimen(momentum_of_exact_gradients, numbers, None, claim=approximate),
        specimen(same_noise_each_step, steps, None, claim=approximate),
        specimen(stops_by_the_exact_loss, (0.5, 1.5), None),
    ]
