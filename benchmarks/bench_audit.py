"""How fast an audit runs, beside drawing alone; how strong its bounds are, beside the limit."""

import math
import time
import tracemalloc

import numpy as np

from accountant import PureLoss, calibrate
from audits import audit
from mechanisms import Gaussian, Laplace, RandomizedResponse, registry

RUNS = 4_000_000
CHUNK = 1 << 15
# The Neyman-Pearson limit at 100,000 runs a side, 95 % (reverse information projection).
LIMITS = {"Laplace": 0.990, "RandomizedResponse": 0.985, "Gaussian": 0.741}


def draws_alone(mechanism):
    """Seconds to draw as many releases, without looking at them."""
    rng, value = np.random.default_rng(0), mechanism.worst_pair()[0]
    start = time.perf_counter()
    for _ in range(RUNS // CHUNK):
        mechanism.release(value, rng, CHUNK)
    return time.perf_counter() - start


def bare(value, rng, size):
    return value + rng.laplace(size=size)


def main():
    print("audit: million runs a second on one core, sampling included (aim: 20 for Laplace)")
    for cls in registry():
        for one in cls.instances():
            limit = draws_alone(one)
            seconds = audit(one, runs=RUNS, rng=1).seconds
            rate, ratio = RUNS / seconds / 1e6, seconds / limit
            print(f"  {one!s:62} {rate:6.1f}   {ratio:.2f} x drawing alone")
    tracemalloc.start()
    audit(Laplace(1.0), runs=100_000_000, rng=1)
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    print(f"  10^8 runs of Laplace: at most {peak:.1f} MiB")

    print("audit: median bound of 100 seeds at 200,000 runs, 95 % (true epsilon 1)")
    ones = [
        Laplace(1.0),
        calibrate(RandomizedResponse, k=10, epsilon=1.0),
        calibrate(Gaussian, epsilon=1.0, delta=1e-5),
    ]
    for one, aim in zip(ones, (0.985, 0.98, 0.69), strict=True):
        found = np.median([audit(one, rng=seed).epsilon_lower for seed in range(100)])
        limit = LIMITS[type(one).__name__]
        print(f"  {type(one).__name__:20} {found:.4f} (aim {aim}), {found / limit:.3f} x limit")
    claim = PureLoss(1.0)
    found = [audit(bare, (0.0, 1.0), claim, rng=seed).epsilon_lower for seed in range(100)]
    alarms = sum(bound > 1 for bound in found)
    median = np.median(found)
    print(f"  bare Laplace function {median:.4f} (aim .96), {median / LIMITS['Laplace']:.3f} x limit,"
          f" {alarms} of 100 above the truth")  # fmt: skip
    assert math.isfinite(median)


if __name__ == "__main__":
    main()
