"""How long 1,000 different releases take to plan, and how far from the least error they end.

.venv/bin/python benchmarks/bench_planning.py [--gap]

The gap is to a dual bound. The log-scales that a budget admits lie on one side of the tangent plane
at the allocation (their set is convex for Gaussians and for Rényi curves; a law in
tests/accountant/planning/test_allocation.py tries it for exact costs), and the least error on that
side has a closed form: with p the shares of the cost's slope and q those of the error's,
error / bound is exp(KL(p, q)).
"""

import math
import resource
import sys
import time

import numpy as np

from accountant import Budget, Deviation, Selection, Sequential, Tight, Wanted, allocate
from mechanisms import DiscreteGaussian, Exponential, Gaussian, Laplace, PermuteAndFlip

WORKLOADS = {
    "Gaussians": (Gaussian,),
    "Laplaces": (Laplace,),
    "both": (Laplace, Gaussian),
    "four kinds": (Laplace, Gaussian, DiscreteGaussian, PermuteAndFlip),
    "with selections": (Laplace, Gaussian, Exponential),
}
MANY, BUDGET = 1000, Budget(1.0, 1e-6)
SELECT = (Exponential, PermuteAndFlip)


def workload(classes, rng):
    return [
        Wanted(
            cls, Selection(int(rng.integers(2, 1000))) if cls in SELECT else Deviation(),
            sensitivity=float(np.exp(rng.uniform(-2, 4))), weight=float(np.exp(rng.uniform(-2, 2))),
            count=int(rng.integers(1, 4)), name=f"release {i}",
        )
        for i in range(MANY) for cls in [classes[i % len(classes)]]
    ]  # fmt: skip


def gap(found):
    """Error over the dual bound, less 1; equal losses of a rung move together."""
    groups = {}
    for i, (one, scale) in enumerate(zip(found.releases, found.scales, strict=True)):
        groups.setdefault(one.plan(scale).loss, []).append(i)
    judge, step = Tight(width=1e-7), 0.01

    def cost(members, factor):
        chosen = set(members)
        return judge.epsilon(Sequential([
            one.count * one.plan(s * factor if i in chosen else s)
            for i, (one, s) in enumerate(zip(found.releases, found.scales, strict=True))
        ]), found.budget.delta)  # fmt: skip

    slope, error = np.zeros(MANY), np.zeros(MANY)
    for members in groups.values():
        counts = np.array([found.releases[i].count for i in members])
        whole = cost(members, math.exp(-step)) - cost(members, math.exp(step))
        slope[members] = whole * counts / counts.sum()
    for i, (one, scale) in enumerate(zip(found.releases, found.scales, strict=True)):
        rise = one.error_at(scale * math.exp(step)) - one.error_at(scale * math.exp(-step))
        error[i] = one.count * one.weight * rise
    p, q = slope / slope.sum(), error / error.sum()
    return math.expm1(p @ np.log(p / q))


def main():
    small = workload((Laplace, Gaussian), np.random.default_rng(9))[:70]
    allocate(small, BUDGET)  # imports
    print(
        f"{'1,000 releases':<18}{'seconds':>9}{'CPU':>9}{'losses':>8}{'epsilon':>14}{'over dual bound':>17}"
    )
    for name, classes in WORKLOADS.items():
        releases = workload(classes, np.random.default_rng(0))
        start, worked = time.perf_counter(), time.process_time()
        found = allocate(releases, BUDGET)
        seconds, worked = time.perf_counter() - start, time.process_time() - worked
        distinct = len(dict(found.plan.losses()))
        ratio = f"{1 + gap(found):.5f}" if "--gap" in sys.argv and name != "with selections" else ""
        print(
            f"{name:<18}{seconds:>9.2f}{worked:>9.2f}{distinct:>8}{found.epsilon:>14.8f}{ratio:>17}"
        )
    print(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
