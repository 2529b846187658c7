"""How long 1,000 different releases take to plan, and how far from the least error they end.

The time is beside that of one exact answer for the plan that is found.

The gap is to a dual bound. The log-scales that a budget admits lie on one side of the tangent plane
at the allocation (their set is convex for Gaussians and for Rényi curves; a law in
tests/accountant/planning/test_allocation.py tries it for exact costs), and the least error on that
side has a closed form: with p the shares of the cost's slope and q those of the error's,
error / bound is exp(KL(p, q)).
"""

import math
import resource

import numpy as np

from accountant import Budget, Deviation, Selection, Sequential, Tight, Wanted, allocate
from benchmarks.measure import beside, median_seconds, options, seconds_of
from mechanisms import DiscreteGaussian, Exponential, Gaussian, Laplace, PermuteAndFlip

WORKLOADS = {
    "Gaussians": (Gaussian,),
    "Laplaces": (Laplace,),
    "both": (Laplace, Gaussian),
    "four kinds": (Laplace, Gaussian, DiscreteGaussian, PermuteAndFlip),
    "with selections": (Laplace, Gaussian, Exponential),
}
BUDGET = Budget(1.0, 1e-6)
SELECT = (Exponential, PermuteAndFlip)


def workload(classes, rng, many):
    return [
        Wanted(
            cls, Selection(int(rng.integers(2, 1000))) if cls in SELECT else Deviation(),
            sensitivity=float(np.exp(rng.uniform(-2, 4))), weight=float(np.exp(rng.uniform(-2, 2))),
            count=int(rng.integers(1, 4)), name=f"release {i}",
        )
        for i in range(many) for cls in [classes[i % len(classes)]]
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

    slope, error = np.zeros(len(found.scales)), np.zeros(len(found.scales))
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
    quick = options(__doc__).quick
    many, chosen = (20, [*WORKLOADS][:3:2]) if quick else (1000, [*WORKLOADS])
    allocate(workload((Laplace, Gaussian), np.random.default_rng(9), 70), BUDGET)  # imports
    print(f"{many:,} releases")
    for name in chosen:
        releases, plans = workload(WORKLOADS[name], np.random.default_rng(0), many), []
        (seconds,) = seconds_of(lambda releases=releases, plans=plans: plans.append(
            allocate(releases, BUDGET)))  # fmt: skip
        (found,) = plans
        answer = median_seconds(lambda plan=found.plan: Tight().epsilon(plan, BUDGET.delta))
        distinct = len(dict(found.plan.losses()))
        error = "" if name == "with selections" else (
            f", error {1 + gap(found):.5f} x the dual bound")  # fmt: skip
        print(f"  {name:<16}{seconds:6.2f} s, {beside(seconds, answer, 'one exact answer')}; "
              f"{distinct} losses, epsilon {found.epsilon:.8f}{error}", flush=True)  # fmt: skip
    print(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
