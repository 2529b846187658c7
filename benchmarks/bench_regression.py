"""Sparse regression beside the arithmetic it cannot do without."""

import multiprocessing
import resource
import time

import numpy as np

from accountant import Chunks
from accountant.ledger import chunks
from algorithms import LabelIHT, LocalIHT, PrivateLinearRegression
from benchmarks.measure import beside, least_seconds, options, seconds_of


def local(users, features=100):
    rng = np.random.default_rng(0)
    x = rng.choice(np.array([-1.0, 1.0]), (users, features))
    y = x[:, 0] * 0.6 + x[:, 1] * 0.5
    made = LocalIHT(epsilon=2.0, sparsity=2, noise_bound=0.1, rounds=8, random_state=0)
    seconds = least_seconds(lambda: made.fit(x, y), 2)

    def normals():
        for _ in range(62):  # in blocks, as users are
            rng.standard_normal((users // 62, features))

    peer = least_seconds(normals, 2)
    print(f"LocalIHT, {users:,} users x {features}: {seconds:.2f} s, "
          f"{beside(seconds, peer, 'drawing its normals')} ({peer:.2f} s; aim 2)")  # fmt: skip


def labels(users, features=1_000, rounds=20):
    rng = np.random.default_rng(0)
    x = rng.choice(np.array([-1.0, 1.0]), (users, features))
    y = x[:, 0] * 0.6 + x[:, 1] * 0.5
    made = LabelIHT(
        epsilon=1.0, delta=1e-5, sparsity=2, y_bound=1.2, rounds=rounds, step=1.0,
        randomizer="gaussian", random_state=0,
    )  # fmt: skip
    seconds = least_seconds(lambda: made.fit(x, y))
    theta, residual = np.zeros(features), np.zeros(users)

    def products():
        for _ in range(rounds):
            x @ theta
            x.T @ residual

    peer = least_seconds(products)
    print(f"LabelIHT, {users:,} x {features:,}, {rounds} rounds: {seconds:.2f} s, "
          f"{beside(seconds, peer, f'its {2 * rounds} matrix-vector products')} "
          f"({peer:.2f} s; aim 1.5)")  # fmt: skip


def streamed(users, features=100, length=10_000):
    length = min(length, users // 5)
    users = users // length * length
    rng = np.random.default_rng(0)
    piece = rng.choice(np.array([-1.0, 1.0]), (length, features)), rng.normal(size=length)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    made = LocalIHT(epsilon=2.0, sparsity=2, noise_bound=0.1)  # without a seed, as users have it
    pieces = Chunks((piece for _ in range(users // length)), (users, features))
    (seconds,) = seconds_of(lambda: made.fit(pieces))
    rng = np.random.default_rng(0)
    (peer,) = seconds_of(lambda: [rng.standard_normal(piece[0].shape)
                                  for _ in range(users // length)])  # fmt: skip
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 2**10
    print(f"LocalIHT, {users:,} users x {features} streamed from a generator: {seconds:.1f} s, "
          f"{beside(seconds, peer, 'as many normals')} ({peer:.1f} s; aim 1.5), "
          f"{more / 2**20:.0f} MiB more, {beside(more, 8 * users * features, 'the features')}")  # fmt: skip


def whole(users, features=20):
    """A descent on an array, and on chunks of it that are not held."""
    rng = np.random.default_rng(0)
    x = rng.random((users, features))
    y = x[:, 0] - 0.5
    made = PrivateLinearRegression(epsilon=1.0, delta=1e-6, method="descent", rounds=60)
    made.fit(x[:1000], y[:1000])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    made.fit(x, y)
    seconds = time.process_time() - start
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 2**10
    start = time.process_time()
    x @ np.ones(features)
    peer = time.process_time() - start
    print(f"PrivateLinearRegression, {users:,} x {features}: {seconds:.1f} s of a processor, "
          f"{beside(seconds, peer, 'a product with a vector')}, {more / 2**20:.0f} MiB more, "
          f"{beside(more, x.nbytes, 'the features')}")  # fmt: skip
    chunks.HELD_BYTES = 0
    pieces = Chunks(lambda: zip(np.array_split(x, 9), np.array_split(y, 9), strict=True), x.shape)
    start = time.process_time()
    made.fit(pieces)
    streamed_seconds = time.process_time() - start
    print(f"the same in chunks that are not held: {streamed_seconds:.1f} s, "
          f"{beside(streamed_seconds, seconds, 'the array (aim 1.5)')}")  # fmt: skip


def main():
    given = options(__doc__, users=300_000)
    users = 5_000 if given.quick else given.users
    sizes = {local: users, labels: users // 10, streamed: 5 * users, whole: 5 * users}
    for figure, size in sizes.items():  # each in a fresh process, whose memory is its own
        one = multiprocessing.get_context("spawn").Process(target=figure, args=(size,))
        one.start()
        one.join()
        if one.exitcode:
            raise SystemExit(one.exitcode)


if __name__ == "__main__":
    main()
