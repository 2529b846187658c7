"""PrivateLasso against the bare products it cannot avoid; a ledger's release against the draw."""

import numpy as np

from accountant import Ledger
from algorithms import PrivateLasso
from benchmarks.measure import beside, median_seconds, options, seconds_of
from mechanisms import Laplace

FEATURES, REPEATS = 1_000, 3


def lasso(records, rounds):
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 1, (records, FEATURES)), rng.uniform(-1, 1, records)
    residual = rng.normal(size=records)
    print(f"PrivateLasso, {records:,} x {FEATURES:,}, {rounds} rounds (median of {REPEATS})")
    for name, aim in (("inside the bounds", 1.3), ("clipped", 1.6)):
        if name == "clipped":
            x *= 1.5
        products = median_seconds(lambda: [residual @ x for _ in range(rounds)], REPEATS)
        made = PrivateLasso(1.0, 1e-6, rounds=rounds, random_state=0)
        first, *others = seconds_of(lambda made=made: made.fit(x, y), REPEATS)
        fit = float(np.median([first, *others]))
        print(f"  {name:18} fit {fit:.2f} s, {beside(fit, products, 'its products')} X'r "
              f"({products:.2f} s), the first fit {first / products:.2f} (aim {aim})")  # fmt: skip


def ledger(count):
    mechanism, noise, data = Laplace(1.0), np.random.default_rng(1), np.arange(10.0)
    made = Ledger(data, REPEATS * count * mechanism, rng=0)
    spend = median_seconds(lambda: [made.release(mechanism, np.sum) for _ in range(count)], REPEATS)
    draw = median_seconds(
        lambda: [mechanism.release(np.sum(data), noise) for _ in range(count)], REPEATS
    )
    print(f"a ledger's release: {spend / count * 1e6:.1f} us (aim 20), "
          f"{beside(spend, draw, 'query and draw')}")  # fmt: skip


def main():
    given = options(__doc__, records=50_000)
    lasso(*((500, 5) if given.quick else (given.records, 100)))
    ledger(500 if given.quick else 50_000)


if __name__ == "__main__":
    main()
