"""PrivateLasso against the bare products it cannot avoid; a ledger's release against the draw."""

import time

import numpy as np

from accountant import Ledger
from algorithms import PrivateLasso
from mechanisms import Laplace

RECORDS, FEATURES, ROUNDS, REPEATS = 100_000, 1_000, 100, 3


def seconds(work):
    """(first, median) of a few repeats."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return times[0], float(np.median(times))


def main():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 1, (RECORDS, FEATURES)), rng.uniform(-1, 1, RECORDS)
    residual = rng.normal(size=RECORDS)
    print(f"PrivateLasso, {RECORDS:,} x {FEATURES:,}, {ROUNDS} rounds (median of {REPEATS})")
    for name, aim in (("inside the bounds", 1.3), ("clipped", 1.6)):
        if name == "clipped":
            x *= 1.5
        _, products = seconds(lambda: [residual @ x for _ in range(ROUNDS)])
        lasso = PrivateLasso(1.0, 1e-6, rounds=ROUNDS, random_state=0)
        first, fit = seconds(lambda lasso=lasso: lasso.fit(x, y))
        ratio = fit / products
        print(f"  {name:18} fit {fit:.2f} s, {ROUNDS} products X'r {products:.2f} s: "
              f"{ratio:.2f} x, the first fit {first / products:.2f} x (aim {aim})")  # fmt: skip

    count, mechanism, noise = 50_000, Laplace(1.0), np.random.default_rng(1)
    ledger = Ledger(np.arange(10.0), REPEATS * count * mechanism, rng=0)
    spend = seconds(lambda: [ledger.release(mechanism, np.sum) for _ in range(count)])[1] / count
    data = np.arange(10.0)
    draw = (
        seconds(lambda: [mechanism.release(np.sum(data), noise) for _ in range(count)])[1] / count
    )
    print(f"a ledger's release: {spend * 1e6:.1f} us (aim 20), {spend / draw:.2f} x query and draw")


if __name__ == "__main__":
    main()
