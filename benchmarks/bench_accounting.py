"""The accountants beside dp-accounting (and others where installed) on the same plans.

Same process, medians of several runs, peak memory of one run, signed error against 13 digits that
an independent road found.
"""

import argparse
import importlib.util
import math
import resource
import tracemalloc

import numpy as np
from dp_accounting import dp_event
from dp_accounting.pld import pld_privacy_accountant
from dp_accounting.privacy_accountant import NeighboringRelation

from accountant import (
    Budget,
    Filter,
    GaussianLoss,
    LaplaceLoss,
    PairLoss,
    PoissonSampled,
    PureLoss,
    Sequential,
    Tight,
    calibrate,
)
from benchmarks.measure import beside, median_seconds, seconds_of
from mechanisms import Gaussian

C, G = np.linspace(50, 150, 50), np.linspace(400, 900, 500)
E, TOTAL = math.e, math.e + 9
TEN_ARY = PairLoss((E / TOTAL, 1 / TOTAL, 8 / TOTAL), (1 / TOTAL, E / TOTAL, 8 / TOTAL))
RANDOM_EPSILONS = np.random.default_rng(7).uniform(0.05, 0.3, 200)


def mixed(scales, count):
    return Sequential(
        [count * LaplaceLoss(1 / s) for s in scales] + [count * GaussianLoss(1 / s) for s in scales]
    )


def mixed_events(scales, count):
    return [(dp_event.LaplaceDpEvent(s), count) for s in scales] + [
        (dp_event.GaussianDpEvent(s), count) for s in scales
    ]


# name: plan, delta, true epsilon, dp-accounting's events, its relation
ADD, REPLACE = NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_ONE
WORKLOADS = {
    "a: 1000 Gaussians": (1000 * GaussianLoss(0.01), 1e-6, 1.36757147508430669,
                          [(dp_event.GaussianDpEvent(100.0), 1000)], ADD),
    "b: DP-SGD": (15_000 * PoissonSampled(GaussianLoss(1 / 0.8), 0.004), 1e-5, 4.37947436007037055,
                  [(dp_event.PoissonSampledDpEvent(0.004, dp_event.GaussianDpEvent(0.8)), 15_000)],
                  ADD),
    "c: 50 + 50 distinct, x10": (mixed(C, 10), 1e-6, 1.60676542832806054, mixed_events(C, 10), ADD),
    "d: 200 binary responses": (200 * PureLoss(0.1), 1e-6, 7.18559445767234769,
        [(dp_event.RandomizedResponseDpEvent(2 / (math.exp(0.1) + 1), 2), 200)], REPLACE),
    "e: 100 ten-ary responses": (100 * TEN_ARY, 1e-6, 39.9020148861256307,
        [(dp_event.RandomizedResponseDpEvent(10 / TOTAL, 10), 100)], REPLACE),
    "g: 500 + 500 distinct, x100": (mixed(G, 100), 1e-6, 2.38902286857057208,
                                    mixed_events(G, 100), ADD),
    "64 Laplaces": (64 * LaplaceLoss(1 / 20), 1e-6, 1.70036092537116301,
                    [(dp_event.LaplaceDpEvent(20.0), 64)], ADD),
    "200 different responses": (Sequential([PureLoss(float(e)) for e in RANDOM_EPSILONS]), 1e-6, None,
        [(dp_event.DiscreteLaplaceDpEvent(float(e), 1), 1) for e in RANDOM_EPSILONS], ADD),
    "4 incommensurable, x40": (Sequential([40 * PureLoss(0.1 * math.sqrt(n)) for n in (1, 2, 3, 5)]),
        1e-6, None, [(dp_event.DiscreteLaplaceDpEvent(0.1 * math.sqrt(n), 1), 40)
                     for n in (1, 2, 3, 5)], ADD),
}  # fmt: skip


def timed(work, repeats):
    """Median seconds, and the last answer."""
    answers = []
    return median_seconds(lambda: answers.append(work()), repeats), answers[-1]


def peak_memory_mib(work):
    tracemalloc.start()
    work()
    top = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return top


def dp_accounting_epsilon(events, delta, relation):
    accountant = pld_privacy_accountant.PLDAccountant(relation)
    for event, count in events:
        accountant.compose(event, count)
    return accountant.get_epsilon(delta)


def relative_error(found, truth):
    return "?" if truth is None else f"{found / truth - 1:+.1e}"


def peer_time(theirs, ours, answer, truth):
    """The peer's time as a ratio; a wrong answer has no time worth comparing."""
    too_small = truth is not None and answer < truth * (1 - 1e-6)
    return "wrong: below the truth" if too_small else beside(theirs, ours, "Tight")


def rows(workloads):
    for name, (plan, delta, truth, events, relation) in workloads.items():
        Tight().certify(plan, delta)  # what is imported once
        ours, found = timed(lambda plan=plan, delta=delta: Tight().certify(plan, delta), 9)
        mine = peak_memory_mib(lambda plan=plan, delta=delta: Tight().certify(plan, delta))
        theirs, answer = timed(lambda: dp_accounting_epsilon(events, delta, relation), 3)  # at once
        memory = peak_memory_mib(lambda: dp_accounting_epsilon(events, delta, relation))
        yield (name, found.engine, f"{ours * 1e3:.1f} ms", relative_error(found.upper, truth),
               f"{found.width / found.upper:.1e}", f"{mine:.0f} MiB", f"{theirs * 1e3:.0f} ms",
               relative_error(answer, truth), f"{memory:.0f} MiB", peer_time(theirs, ours, answer, truth))  # fmt: skip


HEAD = ("workload", "engine", "Tight", "error", "width", "peak", "dp-accounting", "its error",
        "its peak", "its time")  # fmt: skip


def calibrations():
    """Beside dp-accounting's own calibration, to 1e-4 within a bracket of a few steps."""
    from dp_accounting import mechanism_calibration as theirs

    def library(event_of, epsilon, delta):
        return theirs.calibrate_dp_mechanism(
            pld_privacy_accountant.PLDAccountant, event_of, epsilon, delta,
            # a wider bracket has it build tables of gigabytes
            theirs.ExplicitBracketInterval(80.0, 120.0), tol=1e-4,
        )  # fmt: skip

    def gaussians(scale):
        return dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(scale), 500)

    seconds, scale = timed(lambda: calibrate(lambda s: 500 * Gaussian(s), epsilon=1.0, delta=1e-6),
                           9)  # fmt: skip
    peer, answer = timed(lambda: library(gaussians, 1.0, 1e-6), 1)
    yield (f"f1, calibrate 500 Gaussians: {seconds * 1e3:.1f} ms, scale {scale:.6f} (94.466692); "
           f"dp-accounting {answer:.6f}, {beside(peer, seconds, 'calibrate')}")  # fmt: skip
    plan, delta, *_ = WORKLOADS["b: DP-SGD"]
    one = median_seconds(lambda: Tight().certify(plan, delta), 5)
    seconds, sigma = timed(lambda: calibrate(
        lambda s: 15_000 * PoissonSampled(Gaussian(s), 0.004), epsilon=3.0, delta=1e-5), 5)  # fmt: skip
    yield (f"f2, calibrate b's noise: {seconds * 1e3:.0f} ms, sigma {sigma:.8f} (.95001323); "
           f"{beside(seconds, one, 'one answer')}")  # fmt: skip


def long_plans(spends, releases):
    gate, noise = Filter(np.ones(3), Budget(1e9, 1e-6)), Gaussian(1e3)
    seconds = median_seconds(lambda: [gate.spend(noise) for _ in range(spends)])
    sums = median_seconds(lambda: [math.fsum((1e-3, 1e3)) for _ in range(spends)])
    yield f"{spends:,} spends of a filter: {seconds:.2f} s, {beside(seconds, sums, 'two-term sums')}"
    shifts = np.linspace(1e-4, 3e-4, releases // 2)
    many = Sequential(
        [LaplaceLoss(float(x)) for x in shifts] + [GaussianLoss(float(x)) for x in shifts]
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    listing = median_seconds(lambda: dict(many.losses()), 1)
    (took,), found = seconds_of(lambda: Tight().certify(many, 1e-6)), Tight().certify(many, 1e-6)
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    yield (f"{releases:,} different releases: {took:.1f} s, {beside(took, listing, 'their list')}, "
           f"{memory:.0f} MiB more, width {found.width / found.upper:.0e}")  # fmt: skip


def peers():
    """Other accountants on workload b, where they are installed."""
    truth, steps = 4.37947436007037055, 15_000
    if importlib.util.find_spec("prv_accountant"):
        from prv_accountant import PRVAccountant
        from prv_accountant.privacy_random_variables import PoissonSubsampledGaussianMechanism

        def ask():
            law = PoissonSubsampledGaussianMechanism(
                sampling_probability=0.004, noise_multiplier=0.8
            )
            return PRVAccountant(law, max_self_compositions=steps, eps_error=0.01, delta_error=1e-10
                                 ).compute_epsilon(1e-5, steps)[2]  # fmt: skip

        yield "prv-accountant", *timed(ask, 1), truth
    if importlib.util.find_spec("autodp"):
        from autodp import mechanism_zoo, transformer_zoo

        def ask():
            sampled = transformer_zoo.AmplificationBySampling(PoissonSampling=True)
            one = mechanism_zoo.GaussianMechanism(0.8, name="g")
            one.replace_one = False
            many = transformer_zoo.Composition()
            return many([sampled(one, 0.004, improved_bound_flag=True)], [steps]).get_approxDP(1e-5)

        yield "autodp (RDP)", *timed(ask, 1), truth


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", action="store_true", help="ask other installed accountants too")
    parser.add_argument("--quick", action="store_true", help="few workloads: the script works")
    given = parser.parse_args()
    quick = ("a: 1000 Gaussians", "64 Laplaces")
    workloads = {name: WORKLOADS[name] for name in quick} if given.quick else WORKLOADS
    table = [HEAD, *rows(workloads)]
    lines = ["| " + " | ".join(row) + " |" for row in table]
    lines.insert(1, "|" + " --- |" * len(HEAD))
    print("\n".join(lines), flush=True)
    parts = (long_plans(2_000, 2_000),) if given.quick else (
        calibrations(), long_plans(100_000, 1_000_000))  # fmt: skip
    rest = [line for part in parts for line in part]
    print("\n".join(rest), flush=True)
    if given.peers:
        for name, seconds, found, truth in peers():
            print(f"b by {name}: {seconds:.1f} s, error {found / truth - 1:+.1e}")


if __name__ == "__main__":
    main()
