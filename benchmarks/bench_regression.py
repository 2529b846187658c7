"""Sparse regression beside the arithmetic it cannot do without."""

import multiprocessing
import resource
import time

import numpy as np

from accountant import Chunks
from algorithms import LabelIHT, LocalIHT


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def local():
    users, features = 1_000_000, 100
    rng = np.random.default_rng(0)
    x = rng.choice(np.array([-1.0, 1.0]), (users, features))
    y = x[:, 0] * 0.6 + x[:, 1] * 0.5
    made = LocalIHT(epsilon=2.0, sparsity=2, noise_bound=0.1, rounds=8, random_state=0)
    seconds = min(timed(lambda: made.fit(x, y)) for _ in range(2))

    def normals():
        for _ in range(62):  # in blocks, as users are
            rng.standard_normal((users // 62, features))

    peer = min(timed(normals) for _ in range(2))
    print(f"LocalIHT, 10^6 users x 100: {seconds:.2f} s, {seconds / peer:.2f} x drawing its normals"
          f" ({peer:.2f} s; aim 2)")  # fmt: skip


def labels():
    users, features, rounds = 100_000, 1_000, 20
    rng = np.random.default_rng(0)
    x = rng.choice(np.array([-1.0, 1.0]), (users, features))
    y = x[:, 0] * 0.6 + x[:, 1] * 0.5
    made = LabelIHT(
        epsilon=1.0, delta=1e-5, sparsity=2, label_bound=1.2, rounds=rounds, random_state=0
    )
    seconds = min(timed(lambda: made.fit(x, y)) for _ in range(3))
    theta, residual = np.zeros(features), np.zeros(users)

    def products():
        for _ in range(rounds):
            x @ theta
            x.T @ residual

    peer = min(timed(products) for _ in range(3))
    print(f"LabelIHT, 10^5 x 1,000, {rounds} rounds: {seconds:.2f} s, {seconds / peer:.2f} x its "
          f"{2 * rounds} matrix-vector products ({peer:.2f} s; aim 1.5)")  # fmt: skip


def streamed():
    users, features, length = 10_000_000, 100, 10_000
    rng = np.random.default_rng(0)
    piece = rng.choice(np.array([-1.0, 1.0]), (length, features)), rng.normal(size=length)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    made = LocalIHT(epsilon=2.0, sparsity=2, noise_bound=0.1, random_state=0)
    pieces = Chunks((piece for _ in range(users // length)), (users, features))
    seconds = timed(lambda: made.fit(pieces))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"LocalIHT, 10^7 users x 100 streamed from a generator: {seconds:.1f} s, peak of the process "
          f"{peak / 2**20:.2f} GiB, {(peak - before) / 2**20:.2f} more than before (aim 2; features "
          f"alone are {8 * users * features / 2**30:.2f})")  # fmt: skip


if __name__ == "__main__":
    for figure in (local, labels, streamed):  # each in a fresh process, whose memory is its own
        one = multiprocessing.get_context("spawn").Process(target=figure)
        one.start()
        one.join()
        if one.exitcode:
            raise SystemExit(one.exitcode)
