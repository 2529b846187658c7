"""LabelSGD beside the products of matrices it cannot do without."""

import time

import numpy as np

from algorithms.label_privacy.label_sgd import LabelSGD

USERS, CLASSES, FEATURES = 1_000_000, 100, 50


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(USERS, FEATURES))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = rng.integers(0, CLASSES, USERS)
    theta = rng.normal(size=(CLASSES, FEATURES))
    print(f"LabelSGD, {USERS:,} users, K = {CLASSES}, d = {FEATURES}, epsilon 1 (aim 60 s)")
    for name, size in (("unary", 64), ("subset", 64), ("response", 64), ("duchi", 64),
                       ("unary", 1)):  # fmt: skip
        made = LabelSGD(
            epsilon=1.0, classes=CLASSES, diameter=20.0, randomizer=name, batch_size=size,
            random_state=0,
        )  # fmt: skip
        seconds = timed(lambda made=made: made.fit(x, y))

        def products(size=size):
            for start in range(0, USERS, size):
                rows = x[start : start + size]
                (rows @ theta.T).T @ rows

        peer = timed(products)
        print(f"  {name:8} batch {size:2}: {seconds:5.1f} s, {seconds / peer:.1f} x its two products"
              f" a step ({peer:.1f} s)")  # fmt: skip


if __name__ == "__main__":
    main()
