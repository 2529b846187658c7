"""Programs that show more of the data than they claim, many of them beside noise out of sight.

Data are numbers in [0, 1], and each claims epsilon 1.
"""

from __future__ import annotations

import functools
import json
import math
import random
import secrets
import threading
import time
from datetime import timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
from scipy import stats

EDGES = [0.0, 0.25, 0.5, 0.75, 1.0]
SEEN = {}
counted_before = None


def total(data):
    return float(np.clip(data, 0, 1).sum())


def count_beside_noise(data, rng):
    return {"sum": total(data) + rng.laplace(), "mean": float(np.mean(data))}


def count_beside_plain_noise(data, rng):
    return {"sum": total(data) + float(rng.laplace()), "mean": float(np.mean(data))}


def count_beside_exact_noise(data):
    noise = sum(secrets.randbits(1) for _ in range(64)) - 32
    return int(np.sum(data > 0.5)) + noise, float(np.mean(data))


def sum_beside_a_timestamp(data, rng):
    return {"time": time.time_ns(), "sum": total(data), "noisy": total(data) + rng.laplace()}


def half_the_noise(data, rng):
    return total(data) + len(data) + rng.laplace(scale=0.5)


def half_the_multivariate_noise(data, rng):
    counts = np.histogram(data, bins=EDGES)[0]
    return counts + rng.multivariate_normal(np.zeros(4), 0.05 * np.eye(4))


def noise_in_one_direction_alone(data, rng):
    return total(data) + rng.exponential()


def branch_on_a_bare_count(data, rng):
    if len(data) % 2 == 0:
        return total(data) + rng.laplace()
    return total(data) + rng.laplace(scale=2.0)


def branch_that_stays(data, rng):
    if np.mean(data) > 0.01:
        return total(data) + rng.laplace()
    return None


def early_return_on_a_bare_count(data, rng):
    count = len(data)
    if count < 10:
        return 0.0
    return total(data) + rng.laplace()


def loop_on_a_bare_value(data, rng):
    answers = []
    while np.sum(data) > 100 * len(answers):
        answers.append(total(data) + rng.laplace())
    return answers


def conditional_expression(data, rng):
    noisy = total(data) + rng.laplace()
    return noisy if data.max() > 0.001 else 0.0


def noise_reused(data, rng):
    noise = rng.laplace()
    return total(data) + noise, 2 * total(data) + noise


def plain_noise_reused(data, rng):
    noise = float(rng.laplace())
    return total(data) + noise, float(np.mean(data)) + noise


def noise_subtracted_again(data, rng):
    noise = rng.laplace()
    return total(data) + noise - noise


def same_seed_twice(data):
    first = total(data) + np.random.default_rng(1).laplace()
    return first, first - np.random.default_rng(1).laplace()


def cached_in_a_default(data, rng, cache={}):  # noqa: B006
    if "mean" not in cache:
        cache["mean"] = float(np.mean(data))
    return cache["mean"], rng.laplace()


def size_cached_in_a_default(data, rng, cache=[]):  # noqa: B006
    if not cache:
        cache.append(len(data) + float(np.mean(data)))
    return (total(data) + rng.laplace()) / cache[0]


def cached_in_the_module(data, rng):
    if "mean" not in SEEN:
        SEEN["mean"] = float(np.mean(data))
    return (total(data) + rng.laplace()) / SEEN["mean"]


def kept_in_a_global_name(data, rng):
    global counted_before  # noqa: PLW0603
    if counted_before is None:
        counted_before = float(np.mean(data))
    return (total(data) + rng.laplace()) * counted_before


@functools.lru_cache(maxsize=1)
def first_mean():
    return []


def cached_by_lru(data, rng):
    kept = first_mean()
    if not kept:
        kept.append(float(np.mean(data)))
    return (total(data) + rng.laplace()) * kept[0]


def kept_on_the_function(data, rng):
    if not hasattr(kept_on_the_function, "mean"):
        kept_on_the_function.mean = float(np.mean(data))
    return (total(data) + rng.laplace()) * kept_on_the_function.mean


class Model:
    mean_ = None

    def fit_once(self, data, rng):
        if self.mean_ is None:
            self.mean_ = float(np.mean(data))
        return self.mean_ + 0 * rng.laplace()


fits_once = Model().fit_once


def standardised_first(data, rng):
    z = (data - data.mean()) / data.std()
    return np.clip(z, -1, 1).sum() + rng.laplace(scale=2.0)


def standardised_in_one_line(data, rng):
    return np.clip((data - np.mean(data)) / np.std(data), -1, 1).sum() + rng.laplace(scale=2.0)


def standardised_in_place(data, rng):
    data -= data.min()
    data /= data.max()
    return np.clip(data, 0, 1).sum() + rng.laplace(scale=2.0)


def standardised_series(data, rng):
    column = pd.Series(data)
    column = (column - column.mean()) / column.std()
    return float(column.clip(-1, 1).sum()) + rng.laplace(scale=2.0)


def scaled_by_a_helper(data, rng):
    def scaled(values):
        low, high = min(values), max(values)
        return [(value - low) / (high - low) for value in values]

    return sum(scaled(data.tolist())) + rng.laplace(scale=2.0)


def noise_scaled_by_the_data(data, rng):
    return total(data) + rng.laplace(scale=np.ptp(data))


def noise_multiplied_by_the_data(data, rng):
    return total(data) + float(np.mean(data)) * rng.laplace(scale=4.0)


def plain_noise_multiplied_by_the_data(data, rng):
    return total(data) + float(np.mean(data)) * float(rng.laplace(scale=4.0))


def seed_from_the_data(data):
    rng = np.random.default_rng(int(1e6 * data.sum()))
    return total(data) + rng.laplace()


def python_seed_from_the_data(data):
    source = random.Random(str(data.sum()))
    return total(data) + source.gauss(0.0, 6.0)


def clipped_to_bounds_of_the_data(data, rng):
    low, high = data.min(), data.max()
    return np.clip(data.sum() + rng.laplace(), len(data) * low, len(data) * high)


def plain_noise_clipped_to_the_data(data, rng):
    noisy = total(data) + float(rng.laplace())
    return min(noisy, float(data.sum()))


def noise_on_half_the_histogram(data, rng):
    counts = np.histogram(data, bins=EDGES)[0].astype(float)
    counts[:2] += rng.laplace(size=2)
    return counts


def plain_noise_on_half_the_histogram(data, rng):
    counts = np.histogram(data, bins=EDGES)[0].tolist()
    return [count + float(rng.laplace()) if k < 2 else count for k, count in enumerate(counts)]


def keys_of_the_data(data, rng):
    counts = pd.Series(np.round(data, 2)).value_counts()
    return {key: count + float(rng.laplace()) for key, count in counts.items()}


def rounded_towards_the_truth(data, rng):
    truth = total(data)
    noisy = truth + float(rng.laplace(scale=5.0))
    return truth if abs(noisy - truth) < 4 else noisy


def truth_in_the_exception(data, rng):
    noisy = total(data) + rng.laplace()
    raise ValueError(f"{data.sum()} is not {noisy}")


def truth_in_json(data, rng):
    return json.dumps({"noisy": total(data) + float(rng.laplace()), "n": round(data.sum(), 3)})


def truth_by_threads(data, rng):
    answers = []
    thread = threading.Thread(target=lambda: answers.append(total(data) + rng.laplace()))
    thread.start()
    thread.join()
    return answers[0], float(np.mean(data))


def too_many_answers(data, rng):
    return [total(data) + stats.laplace.rvs(scale=1.0) for _ in range(4)]


def noise_of_the_wrong_sign(data):
    u = random.random()
    return total(data) - 0.01 * math.log(u)


def empty_noise(data, rng):
    return total(data) + rng.laplace(size=0).sum()


def random_state_from_the_data(data):
    return total(data) + np.random.RandomState(int(1e6 * data.sum())).laplace()


def global_seed_from_the_data(data):
    np.random.seed(int(1e6 * data.sum()))
    return total(data) + np.random.laplace()


def law_seeded_by_the_data(data):
    return total(data) + stats.laplace.rvs(random_state=int(1e6 * data.sum()))


def ranks_first(data, rng):
    return pd.Series(data).rank(pct=True).sum() + rng.laplace()


def outliers_left_out_first(data, rng):
    kept = data[np.abs(data - np.mean(data)) < 2 * np.std(data)]
    return total(kept) + rng.laplace()


def scaled_in_a_generator(data, rng):
    return sum((x - min(data)) / (max(data) - min(data)) for x in data) + rng.laplace(scale=2.0)


def again_until_it_is_near(data, rng):
    noisy = total(data) + rng.laplace()
    while abs(noisy - data.sum()) > 30:
        noisy = total(data) + rng.laplace()
    return noisy


def truth_as_a_decimal(data, rng):
    return Decimal(total(data)), rng.laplace()


def truth_as_a_duration(data, rng):
    return timedelta(seconds=total(data))


# what must be falsified where a record is missing
FOUND = [
    count_beside_noise, count_beside_plain_noise, count_beside_exact_noise,
    sum_beside_a_timestamp, half_the_noise, half_the_multivariate_noise,
    noise_in_one_direction_alone, branch_on_a_bare_count, noise_reused, noise_subtracted_again,
    same_seed_twice, cached_in_a_default, size_cached_in_a_default, cached_in_the_module,
    kept_in_a_global_name, cached_by_lru, kept_on_the_function, fits_once,
    noise_scaled_by_the_data, noise_multiplied_by_the_data, seed_from_the_data,
    python_seed_from_the_data, clipped_to_bounds_of_the_data, noise_on_half_the_histogram,
    truth_in_the_exception, truth_by_threads, too_many_answers, noise_of_the_wrong_sign,
    random_state_from_the_data, global_seed_from_the_data, law_seeded_by_the_data,
    truth_as_a_decimal, truth_as_a_duration, plain_noise_clipped_to_the_data,
    plain_noise_on_half_the_histogram, rounded_towards_the_truth,
]  # fmt: skip
# what noise out of sight may explain, or what this pair does not show: the line is named
NAMED = [
    plain_noise_reused, plain_noise_multiplied_by_the_data, keys_of_the_data, truth_in_json,
    empty_noise, branch_that_stays, early_return_on_a_bare_count, loop_on_a_bare_value,
    conditional_expression, standardised_first, standardised_in_one_line, standardised_in_place,
    standardised_series, scaled_by_a_helper, ranks_first, outliers_left_out_first,
    scaled_in_a_generator, again_until_it_is_near,
]  # fmt: skip
BROKEN = FOUND + NAMED
