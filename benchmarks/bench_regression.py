"""Sparse regression beside the arithmetic it cannot do without."""

import time

import numpy as np

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


if __name__ == "__main__":
    local()
    labels()
