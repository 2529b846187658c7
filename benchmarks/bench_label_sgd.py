"""LabelSGD beside the products of matrices it cannot do without."""

import numpy as np

from algorithms.label_privacy.label_sgd import LabelSGD
from benchmarks.measure import beside, options, seconds_of

CLASSES, FEATURES = 100, 50


def main():
    given = options(__doc__, users=200_000)
    users = 2_000 if given.quick else given.users
    rng = np.random.default_rng(0)
    x = rng.normal(size=(users, FEATURES))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = rng.integers(0, CLASSES, users)
    theta = rng.normal(size=(CLASSES, FEATURES))
    print(f"LabelSGD, {users:,} users, K = {CLASSES}, d = {FEATURES}, epsilon 1 "
          "(aim 60 s of a million)")  # fmt: skip
    for name, size in (("unary", 64), ("subset", 64), ("response", 64), ("duchi", 64),
                       ("unary", 1)):  # fmt: skip
        made = LabelSGD(
            epsilon=1.0, k=CLASSES, diameter=20.0, randomizer=name, batch=size,
            random_state=0,
        )  # fmt: skip
        (seconds,) = seconds_of(lambda made=made: made.fit(x, y))

        def products(size=size):
            for start in range(0, users, size):
                rows = x[start : start + size]
                (rows @ theta.T).T @ rows

        (peer,) = seconds_of(products)
        print(f"  {name:8} batch {size:2}: {seconds:5.2f} s, "
              f"{beside(seconds, peer, 'its two products a step')} ({peer:.2f} s)")  # fmt: skip


if __name__ == "__main__":
    main()
