"""Correct private programs in the many ways in which code hides where its noise goes.

Data are numbers in [0, 1].  Each costs at most epsilon 1 where a record is missing, and 2 where it
is replaced; those in `GAUSSIAN` at delta 1e-5.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import importlib
import io
import json
import logging
import math
import os
import queue
import random
import secrets
import statistics
import struct
import threading
import time
import uuid
from collections import Counter, defaultdict, deque, namedtuple
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
from scipy import signal, sparse, special, stats

log = logging.getLogger(__name__)
EDGES = [0.0, 0.25, 0.5, 0.75, 1.0]


def total(data):
    return float(np.clip(data, 0, 1).sum())


def float_of_noise(data, rng):
    return total(data) + float(rng.laplace())


def float_of_legacy_noise(data):
    noise = float(np.random.laplace(0.0, 1.0))
    return total(data) + noise


def single_precision(data, rng):
    noise = rng.laplace(size=4).astype(np.float32) * 4
    return np.histogram(data, bins=EDGES)[0] + noise


def rounded_noise(data, rng):
    return int(total(data > 0.5)) + int(round(rng.laplace(scale=2.0)))  # noqa: RUF046


def floor_of_noise(data, rng):
    return int(np.sum(data > 0.5)) + math.floor(rng.laplace(scale=2.0))


def vector_of_a_multivariate_law(data, rng):
    counts = np.histogram(data, bins=EDGES)[0]
    return counts + rng.multivariate_normal(np.zeros(4), 30.0 * np.eye(4))


def correlated_vector(data, rng):
    covariance = 30.0 * (np.eye(2) + 0.5)
    sums = np.array([data.sum(), (data**2).sum()])
    noise = rng.multivariate_normal([0.0, 0.0], covariance, method="cholesky")
    return {"sums": (sums + noise).tolist()}


def legacy_multivariate(data):
    return data.sum() + np.random.multivariate_normal(np.zeros(1), [[30.0]])[0]


def einsum_of_noise(data, rng):
    strategy = np.tril(np.ones((4, 4)))
    noise = np.einsum("ij,j->i", strategy, rng.normal(scale=12.0, size=4))
    return np.cumsum(np.histogram(data, bins=EDGES)[0]) + noise


def sign_times_exponential(data, rng):
    sign = rng.choice([-1, 1])
    return total(data) + sign * rng.exponential()


def sign_by_coin(data):
    magnitude = random.expovariate(1.0)
    sign = 1 if random.getrandbits(1) else -1
    return total(data) + sign * magnitude


def laplace_by_ppf(data, rng):
    return total(data) + stats.laplace.ppf(rng.uniform())


def gaussian_by_ppf(data, rng):
    return total(data) + 6 * special.ndtri(rng.random())


def gaussian_by_statistics(data):
    law = statistics.NormalDist(0.0, 6.0)
    return total(data) + law.inv_cdf(random.random())


def vectorised_sampler(data, rng):
    sample = np.vectorize(lambda scale: rng.laplace(scale=scale))
    return np.histogram(data, bins=EDGES)[0] + sample(np.ones(4))


def bernoulli_exp(numerator, denominator):
    k = 1
    while secrets.randbelow(denominator * k) < numerator:
        k += 1
    return k % 2 == 1


def exact_discrete_laplace(data):
    """Canonne, Kamath and Steinke's sampler for scale 1."""
    while True:
        size = 0
        while bernoulli_exp(1, 1):
            size += 1
        negative = secrets.randbits(1)
        if not (negative and size == 0):
            break
    return int(np.sum(data > 0.5)) + (-size if negative else size)


def geometric_by_bits(data):
    """Two-sided geometric noise from coins of the operating system."""
    system = random.SystemRandom()

    def geometric():
        count = 0
        while system.getrandbits(16) * 1000 < 367 * 65536:
            count += 1
        return count

    return int(np.sum(data > 0.5)) + geometric() - geometric()


def noise_from_urandom(data):
    u = (int.from_bytes(os.urandom(7), "big") >> 3) / 2**53 - 0.5
    noise = -math.copysign(1.0, u) * math.log1p(-2 * abs(u))
    return total(data) + noise


def noise_by_secret_bytes(data):
    u = (struct.unpack("<Q", secrets.token_bytes(8))[0] + 0.5) / 2**64
    return total(data) - math.copysign(math.log(1 - abs(2 * u - 1)), 0.5 - u)


def imports_on_first_call(data, rng):
    module = importlib.import_module("late_module_of_noise")
    return module.release(total(data))


def with_a_timestamp(data, rng):
    return {"answer": total(data) + rng.laplace(), "time": time.time_ns()}


def with_a_date(data, rng):
    return datetime.now(UTC).isoformat(), total(data) + rng.laplace()


def with_a_uuid(data, rng):
    return {"id": str(uuid.uuid4()), "answer": total(data) + rng.laplace()}


def with_a_random_token(data, rng):
    return {"token": secrets.token_hex(8), "answer": total(data) + rng.laplace()}


def noise_in_threads(data, rng):
    with ThreadPoolExecutor(2) as pool:
        noise = list(pool.map(lambda _: rng.laplace(scale=2.0), range(2)))
    return total(data) + noise[0], len(data) + noise[1]


def seeded_noise_in_a_thread(data):
    answers = queue.Queue()

    def work():
        answers.put(total(data) + np.random.default_rng(7).laplace())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return answers.get()


def global_noise_in_a_thread(data):
    answers = []
    thread = threading.Thread(target=lambda: answers.append(total(data) + np.random.laplace()))
    thread.start()
    thread.join()
    return answers[0]


class Accumulator:
    """As in PipelineDP: partitions, bounded contributions, and a combiner with noise."""

    def __init__(self):
        self.count, self.sum = 0, 0.0

    def add(self, value):
        self.count += 1
        self.sum += min(max(value, 0.0), 1.0)
        return self


def pipeline(data):
    rows = [(k, "a" if x < 0.5 else "b", x) for k, x in enumerate(data)]
    by_person = defaultdict(list)
    for person, partition, value in rows:
        by_person[person].append((partition, value))
    accumulators = {"a": Accumulator(), "b": Accumulator()}
    for values in by_person.values():
        for partition, value in random.sample(values, min(1, len(values))):
            accumulators[partition].add(value)

    def finished():
        for partition, accumulator in accumulators.items():
            noisy_count = accumulator.count + float(np.random.laplace(scale=2.0))
            noisy_sum = accumulator.sum + float(np.random.laplace(scale=2.0))
            yield partition, (noisy_count, noisy_sum)

    return finished()


def partition_selection(data):
    """Keys are kept by a noisy count, as engines of pipelines do it."""
    counts = Counter(int(x * 4) for x in data)
    kept = {}
    for key in range(5):
        noisy = counts.get(key, 0) + np.random.laplace(scale=2.0)
        if noisy > 3.0:
            kept[key] = counts.get(key, 0) + float(np.random.laplace(scale=2.0))
    return kept


def frame_of_counts(data, rng):
    frame = pd.DataFrame({"x": data, "cell": pd.cut(data, EDGES, labels=list("abcd"))})
    counts = frame.groupby("cell", observed=False)["x"].count()
    return counts + rng.laplace(size=len(counts))


def frame_with_a_noise_column(data, rng):
    frame = pd.DataFrame({"count": np.histogram(data, bins=EDGES)[0].astype(float)})
    frame["noise"] = rng.laplace(size=4)
    frame["count"] = frame["count"] + frame["noise"]
    return frame.drop(columns="noise")


def series_applied(data, rng):
    counts = pd.Series(np.histogram(data, bins=EDGES)[0])
    return counts.apply(lambda count: count + rng.laplace()).to_dict()


def frozen_law(data):
    law = stats.laplace(loc=0, scale=1.0)
    return total(data) + law.rvs(size=1)[0]


def law_at_the_value(data, rng):
    return stats.norm.rvs(loc=total(data), scale=6.0, random_state=rng)


def discrete_law(data):
    return int(np.sum(data > 0.5)) + int(stats.dlaplace.rvs(1.0))


def module_random(data):
    return total(data) + random.gauss(0.0, 6.0)


def difference_of_exponentials(data):
    return math.fsum(data) + (random.expovariate(1.0) - random.expovariate(1.0))


@dataclasses.dataclass
class Release:
    answer: float
    epsilon: float = 1.0
    notes: list = dataclasses.field(default_factory=list)


def data_class(data, rng):
    return Release(answer=total(data) + rng.laplace(), notes=["laplace"])


Answer = namedtuple("Answer", "count total")


def generator_of_answers(data, rng):
    for query in (np.sum, len):
        yield query(data) + rng.laplace(scale=2.0)


def lazily_mapped(data, rng):
    return map(lambda count: count + rng.laplace(), np.histogram(data, bins=EDGES)[0])  # noqa: C417


@contextmanager
def private_scope(rng):
    answers = []
    yield lambda value: answers.append(value + rng.laplace(scale=2.0)) or answers[-1]
    log.debug("%s answers", len(answers))


def context_manager(data, rng):
    with private_scope(rng) as release:
        return Answer(release(len(data)), release(total(data)))


@functools.cache
def scale_of(epsilon):
    return 1.0 / epsilon


def cached_constant(data, rng):
    return total(data) + rng.laplace(scale=scale_of(1.0))


def remembers_its_answers(data, rng, answers={}):  # noqa: B006
    """The noisy answer is kept, so that a question asked again costs nothing."""
    if "sum" not in answers:
        answers["sum"] = total(data) + rng.laplace()
    return answers["sum"]


class Counted:
    """A mechanism with a budget that it counts down."""

    def __init__(self, epsilon):
        self.left = epsilon

    def release(self, data, rng):
        self.left -= 1.0
        return total(data) + rng.laplace(), self.left


counted = Counted(100.0)


def counts_its_calls(data, rng):
    return counted.release(data, rng)


def logged(data, rng):
    stream = io.StringIO()
    noisy = total(data) + rng.laplace()
    print(f"released {noisy:.2f}", file=stream)
    log.info("released %s", noisy)
    return stream.getvalue()


def json_text(data, rng):
    counts = np.histogram(data, bins=EDGES)[0] + rng.laplace(size=4)
    return json.dumps({"counts": [round(c, 2) for c in counts.tolist()], "epsilon": 1})


def coded_bytes(data, rng):
    noisy = total(data) + rng.laplace()
    return base64.b64encode(struct.pack("<d", noisy))


def decimal_noise(data, rng):
    return Decimal(str(total(data))) + Decimal(str(rng.laplace()))


def fraction_noise(data, rng):
    noise = Fraction(rng.laplace()).limit_denominator(1000)
    return Fraction(int(np.sum(data > 0.5))) + noise


def legacy_state(data):
    state = np.random.RandomState(11)
    return np.histogram(data, bins=EDGES)[0] + state.laplace(0, 1, 4)


def spawned_generators(data):
    children = np.random.SeedSequence(5).spawn(2)
    first, second = (np.random.default_rng(child) for child in children)
    return len(data) + first.laplace(scale=2.0), total(data) + second.laplace(scale=2.0)


def unseeded_bit_generator(data):
    rng = np.random.Generator(np.random.PCG64())
    return total(data) + rng.laplace()


def structured_array(data, rng):
    released = np.zeros(2, dtype=[("name", "U8"), ("value", "f8")])
    released["name"] = ["count", "sum"]
    released["value"] = np.array([len(data), total(data)]) + rng.laplace(scale=2.0, size=2)
    return released


def masked_array(data, rng):
    counts = np.ma.masked_less(np.histogram(data, bins=EDGES)[0] + rng.laplace(size=4), 5.0)
    return counts.filled(0.0)


def sparse_matrix(data, rng):
    counts = np.histogram(data, bins=EDGES)[0]
    return sparse.csr_matrix(counts + rng.laplace(size=4))


def memory_view(data, rng):
    noisy = np.ascontiguousarray([total(data) + rng.laplace()])
    return bytes(memoryview(noisy))


def binomial_noise(data, rng):
    return int(np.sum(data > 0.5)) + int(rng.binomial(4000, 0.5)) - 2000


def skellam_noise(data, rng):
    return int(np.sum(data > 0.5)) + int(rng.poisson(500)) - int(rng.poisson(500))


def whole_uniform_noise(data, rng):
    return int(np.sum(data > 0.5)) + int(rng.integers(-(10**6), 10**6))


def student_noise(data, rng):
    return total(data) + 8 * rng.standard_t(3)


def exponential_by_a_loop(data):
    scores = np.histogram(data, bins=EDGES)[0]
    weights = [math.exp(0.5 * (score - max(scores))) for score in scores]
    u, chosen = random.random() * sum(weights), 0
    while u > weights[chosen]:
        u -= weights[chosen]
        chosen += 1
    return chosen


def permute_and_flip(data, rng):
    scores = np.histogram(data, bins=EDGES)[0]
    for k in rng.permutation(4):
        if rng.random() < math.exp(0.5 * (scores[k] - scores.max())):
            return int(k)
    return None


def report_noisy_max_with_plain_noise(data, rng):
    scores = np.histogram(data, bins=EDGES)[0]
    noisy = [float(score) + float(rng.laplace(scale=2.0)) for score in scores]
    return noisy.index(max(noisy))


def threshold_on_plain_noise(data, rng):
    noisy = float(len(data)) + float(rng.laplace(scale=2.0))
    if noisy < 10:
        return None
    return total(data) / max(noisy, 1.0) + float(rng.laplace(scale=2.0)) * 0


def scale_from_a_noisy_count(data, rng):
    count = max(10.0, float(len(data) + rng.laplace(scale=2.0)))
    return total(data) + rng.laplace(scale=2.0 + 0 * count)


def postprocessed(data, rng):
    noisy = np.histogram(data, bins=EDGES)[0] + rng.laplace(size=4)
    return np.sort(np.maximum(np.rint(noisy), 0)).astype(int).tolist()


def median_by_exponential_mechanism(data, rng):
    ordered = np.sort(np.clip(data, 0, 1))
    points = np.concatenate([[0.0], ordered, [1.0]])
    widths = np.diff(points)
    utility = -np.abs(np.arange(len(widths)) - len(ordered) / 2)
    with np.errstate(divide="ignore"):
        logits = np.log(widths) + 0.5 * utility
    grid = np.linspace(0, 1, 101)
    below = np.searchsorted(ordered, grid)
    scores = -np.abs(below - len(ordered) / 2)
    del logits
    weights = np.exp(0.5 * (scores - scores.max()))
    return float(grid[rng.choice(101, p=weights / weights.sum())])


def running_total(data, rng):
    noisy = rng.laplace()
    for value in data:
        noisy += min(max(value, 0.0), 1.0)
    return noisy


def noise_for_each_record(data, rng):
    """The local model: each record is released with its own noise."""
    return np.array([x + rng.laplace(scale=1.0) for x in data]).mean()


def windowed(data, rng):
    window = deque(maxlen=4)
    for count in np.histogram(data, bins=EDGES)[0]:
        window.append(count + rng.laplace())
    return list(window)


def noise_of_polars(data, rng):
    import polars as pl

    frame = pl.DataFrame({"x": data})
    return frame.select(pl.col("x").clip(0, 1).sum()).item() + rng.laplace()


def cholesky_noise(data, rng):
    root = np.linalg.cholesky(30.0 * (np.eye(2) + 0.5))
    return np.array([data.sum(), (data**2).sum()]) + root @ rng.standard_normal(2)


def subsampled(data, rng):
    kept = data[rng.random(len(data)) < 0.5]
    return total(kept) + rng.laplace()


def shuffled_batches(data, rng):
    order = rng.permutation(len(data))
    batches = np.array_split(data[order], 4)
    return [total(batch) + rng.laplace() for batch in batches]


def histogram_that_begins_with_noise(data, rng):
    counts = rng.laplace(size=4)
    for x in data:
        counts[min(int(4 * x), 3)] += 1
    return counts


def keys_by_a_threshold(data, rng):
    """Stable keys: which keys there are is hidden by the threshold, up to delta."""
    kept = {}
    for key, count in Counter(np.floor(100 * data)).items():
        noisy = count + rng.laplace()
        if noisy > 1 + math.log(1 / 2e-5):
            kept[key] = noisy
    return kept


def array_of_keys_by_a_threshold(data, rng):
    keys, counts = np.unique(np.floor(100 * data), return_counts=True)
    noisy = counts + rng.laplace(size=len(counts))
    return keys[noisy > 1 + math.log(1 / 2e-5)].tolist()


def median_by_smooth_sensitivity(data, rng):
    ordered = np.concatenate([np.zeros(40), np.sort(data), np.ones(40)])
    middle = len(ordered) // 2
    sensitivity = max(
        math.exp(-k / 6) * max(np.diff(ordered[middle - k - 1 : middle + k + 2 : k + 1]))
        for k in range(len(data))
    )
    return ordered[middle] + 6 * sensitivity * rng.standard_cauchy()


def answer_by_a_coin(data, rng):
    answer = bool(np.sum(data > 0.5) > 18)
    return answer if rng.random() < 0.73 else not answer


def raw_bits(data, rng):
    u = (rng.bit_generator.random_raw() >> 11) / 2**53 - 0.5
    return total(data) - math.copysign(math.log(1 - 2 * abs(u)), u)


def mixture_of_gaussians(data, rng):
    return total(data) + rng.normal(scale=np.sqrt(2 * rng.exponential()))


def filtered_noise(data, rng):
    noise = signal.lfilter([1], [1, -0.5], 12 * rng.normal(size=4))
    return np.histogram(data, bins=EDGES)[0] + noise


def sum_of_another_type(data, rng):
    counts = np.histogram(data, bins=EDGES)[0]
    return np.add(counts, rng.laplace(size=4), dtype=np.float32)


def vectorised_release(data, rng):
    release = np.vectorize(lambda count: count + rng.laplace())
    return release(np.histogram(data, bins=EDGES)[0])


def large_whole_numbers(data, rng):
    return 2**60 + int(np.sum(data > 0.5)) + int(rng.geometric(0.6)) - int(rng.geometric(0.6))


GAUSSIAN = [
    vector_of_a_multivariate_law, correlated_vector, legacy_multivariate, einsum_of_noise,
    gaussian_by_ppf, gaussian_by_statistics, law_at_the_value, module_random, binomial_noise,
    skellam_noise, whole_uniform_noise, cholesky_noise, partition_selection, keys_by_a_threshold,
    array_of_keys_by_a_threshold, filtered_noise,
]  # fmt: skip
PURE = [
    float_of_noise, float_of_legacy_noise, single_precision, rounded_noise, floor_of_noise,
    sign_times_exponential, sign_by_coin, laplace_by_ppf, vectorised_sampler,
    exact_discrete_laplace, geometric_by_bits, noise_from_urandom, noise_by_secret_bytes,
    imports_on_first_call, with_a_timestamp, with_a_date, with_a_uuid,
    with_a_random_token, noise_in_threads, seeded_noise_in_a_thread, global_noise_in_a_thread,
    pipeline, frame_of_counts, frame_with_a_noise_column, series_applied, frozen_law, discrete_law,
    difference_of_exponentials, data_class, generator_of_answers, lazily_mapped, context_manager,
    cached_constant, remembers_its_answers, counts_its_calls, logged, json_text, coded_bytes,
    decimal_noise, fraction_noise, legacy_state, spawned_generators, unseeded_bit_generator,
    structured_array, masked_array, sparse_matrix, memory_view, student_noise,
    exponential_by_a_loop, permute_and_flip, report_noisy_max_with_plain_noise,
    threshold_on_plain_noise, scale_from_a_noisy_count, postprocessed,
    median_by_exponential_mechanism, running_total, noise_for_each_record, windowed,
    noise_of_polars, subsampled, shuffled_batches, histogram_that_begins_with_noise,
    median_by_smooth_sensitivity, answer_by_a_coin, raw_bits, mixture_of_gaussians,
    sum_of_another_type, vectorised_release, large_whole_numbers,
]  # fmt: skip
