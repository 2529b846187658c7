"""Training runs: binary trees and calibrations of noise beside dp-accounting, and shuffled passes.

Its answers are computed here, with its processor time over ours; a tree also stands beside the bound
that was published for it.  A removed record of shuffled passes stands beside the bound that holds in
any order of the records.  ``cold`` rows are the first calibration of a new process.
"""

import itertools
import math
import subprocess
import sys
import time
import warnings

import accountant
from accountant import (
    BinaryTree,
    GaussianLoss,
    PoissonSampled,
    Tight,
    from_dp_event,
)
from accountant.plans.adjacency import Adjacency
from accountant.training.run import TrainingRun
from accountant.training.schemes import certified, record_scheme
from benchmarks.measure import beside, options
from mechanisms import MatrixMechanism

SAMPLED = "PoissonSampled(LaplaceLoss(1 / noise), 0.01)"
GAUSSIAN = "PoissonSampled(GaussianLoss(1 / noise), {})"
COLD = {
    "one sampled Laplace": f"lambda noise: {SAMPLED}",
    **{
        f"{count:,} sampled Laplaces": f"lambda noise: {count} * {SAMPLED}"
        for count in (2, 3, 30, 100, 1000)
    },
    "two sampled Gaussians": f"lambda noise: 2 * {GAUSSIAN.format(0.01)}",
    "three sampled Gaussians": f"lambda noise: 3 * {GAUSSIAN.format(0.004)}",
    "two different sampled Gaussians": f"lambda noise: {GAUSSIAN.format(0.01)} + "
    f"{GAUSSIAN.format(0.02)}",
    "three sampled Gaussians, two alike": f"lambda noise: 2 * {GAUSSIAN.format(0.01)} + "
    f"{GAUSSIAN.format(0.02)}",
    "DP-SGD, 1,000 steps": f"lambda noise: 1000 * {GAUSSIAN.format(0.01)}",
}
CHILD = """
import time, warnings
warnings.simplefilter("ignore")
from accountant import *
Tight().epsilon(GaussianLoss(1.0), 1e-6)
start = time.process_time()
found = calibrate({plan}, {target})
print(found, time.process_time() - start)
"""


def timed(work):
    """The answer and its processor seconds."""
    start = time.process_time()
    answer = work()
    return answer, time.process_time() - start


def said(name, answer, seconds, *others):
    """Print one row."""
    print("; ".join([f"{name}: {answer} in {1e3 * seconds:.1f} ms", *others]), flush=True)


def peer_epsilon(event, delta):
    """The epsilon of dp-accounting's Rényi accountant and its processor seconds."""
    from dp_accounting.privacy_accountant import NeighboringRelation
    from dp_accounting.rdp.rdp_privacy_accountant import RdpAccountant

    one = RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_SPECIAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return timed(lambda: float(one.compose(event).get_epsilon(delta)))


def trees():
    """Binary trees of 1,600 steps, published with a Rényi bound."""
    from dp_accounting import dp_event

    for noise, exact, published in ((1.13, 17.666751, 19.74), (8.83, 1.648659, 2.04)):
        event = dp_event.SingleEpochTreeAggregationDpEvent(noise, 1600)
        plan = MatrixMechanism(BinaryTree(1600), scale=noise)
        found, seconds = timed(lambda plan=plan: Tight().epsilon(plan, 1e-6))
        read = Tight().epsilon(from_dp_event(event), 1e-6)
        theirs, took = peer_epsilon(event, 1e-6)
        said(f"a tree of 1,600 steps, noise {noise}", f"epsilon {found:.6f}", seconds,
             f"its event {read:.6f}, figure {exact}",
             f"{beside(found, published, 'the published bound')} of {published}",
             f"dp-accounting {theirs:.4f}, {beside(took, seconds, 'ours')}")  # fmt: skip


def shuffled_passes(quick):
    """A record that is removed from shuffled passes, or replaced, and the bound in any order."""
    settings = itertools.product(
        ("add-remove", "replace-one"), (10, 1_000), (1, 100), (0.5, 1.0, 2.0, 4.0)
    )
    for relation, batches, passes, noise in itertools.islice(settings, 2 if quick else None):
        run = TrainingRun(100 * batches, 100, passes, loader="shuffled")
        scheme = record_scheme(run, noise, "shuffled", Adjacency(relation), microbatching=False)
        (lower, upper), seconds = timed(
            lambda scheme=scheme: certified(scheme, lambda plan: Tight().bracket(plan, 1e-6))
        )
        moved = math.sqrt(5) if relation == "add-remove" else 2
        in_any_order = Tight().epsilon(passes * GaussianLoss(moved / noise), 1e-6)
        said(f"shuffled passes ({passes}) of {batches:,} batches, noise {noise:g}, {relation}",
             f"epsilon {upper:.6g}", seconds, f"lower end {lower:.6g}",
             beside(upper, in_any_order, "the bound in any order"))  # fmt: skip


def cold(plan, target):
    """The answer of a calibration that a new process makes, and its processor seconds."""
    code = CHILD.format(plan=plan, target=target)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if ran.returncode:
        return None
    answer, seconds = ran.stdout.split()
    return float(answer), float(seconds)


def peer_calibration(plan, epsilon, delta):
    """The noise that dp-accounting finds in a bracket, and its processor seconds."""
    from dp_accounting import mechanism_calibration
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant

    kinds = ("PoissonSampled", "GaussianLoss", "LaplaceLoss")
    made = eval(plan, {name: getattr(accountant, name) for name in kinds})

    def event(noise):
        return accountant.to_dp_event(made(noise))

    bracket = mechanism_calibration.ExplicitBracketInterval(0.3, 300.0)
    return timed(
        lambda: mechanism_calibration.calibrate_dp_mechanism(
            PLDAccountant, event, epsilon, delta, bracket, tol=1e-6
        )
    )


def calibrations(quick):
    """Calibrations to epsilon, cold."""
    for name, plan in COLD.items():
        if quick and not name.startswith("DP-SGD"):
            continue
        ours = cold(plan, "epsilon=0.1, delta=1e-6")
        if ours is None:
            print(f"{name}: failed")
            continue
        theirs = None if quick else peer_calibration(plan, 0.1, 1e-6)
        said(f"{name} at (.1, 1e-6), cold", f"noise {ours[0]:.6f}", ours[1],
             beside(ours[1], 0.3, "the time allowed"),
             "dp-accounting: left out" if theirs is None else
             f"dp-accounting {theirs[0]:.6f}, {beside(theirs[1], ours[1], 'ours')}")  # fmt: skip


def main():
    given = options(__doc__)
    Tight().epsilon(3 * PoissonSampled(GaussianLoss(1.0), 0.1), 1e-5)  # imports
    trees()
    shuffled_passes(given.quick)
    calibrations(given.quick)


if __name__ == "__main__":
    main()
