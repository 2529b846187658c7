"""Proofs of the plans of the page on exact accounting: their size, and the checker's time.

Each plan is certified by `Tight`, its proof is written, and the checker proves both ends again;
"wider" is how far beyond the certificate's ends the proof's are, of epsilon.
Times are of a processor, of the first answer.  A plan that has no proof stops the bench.
"""

import argparse
import time

import numpy as np

from accountant import (
    BinaryTree,
    GaussianLoss,
    LaplaceLoss,
    PoissonSampled,
    PureLoss,
    Sequential,
    Tight,
)
from accountant.proofs.writer import write_proof
from accountant.verifier import verify
from benchmarks.bench_sampling_schemes import schemes
from mechanisms import Exponential, Gaussian, Laplace, MatrixMechanism, NoisyMax

QUICK = ("Gaussian", "1,000", "200", "DP-SGD")


def plans(quick):
    """Yield the name, the plan and the delta of every row: the page's examples in their order."""
    scales = np.linspace(50, 150, 50)
    many = Sequential([10 * Laplace(50.0 + s) for s in range(100)] + [3 * Gaussian(40.0)])
    mixed = [10 * loss(1 / s) for loss in (LaplaceLoss, GaussianLoss) for s in scales]
    yield "Gaussian, noise 3.7306334", Gaussian(3.7306334), 1e-5
    yield "500 Laplace, noise 128", 500 * Laplace(128.0), 1e-6
    yield "1,000 Gaussian, noise 100", 1000 * GaussianLoss(0.01), 1e-6
    yield "200 pure, epsilon .1", 200 * PureLoss(0.1), 1e-6
    yield "64 Laplace, noise 20", 64 * LaplaceLoss(1 / 20), 1e-6
    yield "1,000 Laplace of 100 scales, 3 Gaussian", many, 1e-6
    yield "500 Laplace and 500 Gaussian of 50 scales", Sequential(mixed), 1e-6
    yield "100 noisy maxima and a Gaussian", 100 * NoisyMax(20.0, 0.5) + Gaussian(30.0), 1e-6
    noisy = PoissonSampled(LaplaceLoss(0.5), 0.1)
    yield "3 sampled Laplace, noise 2, rate .1", 3 * noisy, 1e-6
    yield "200 sampled Laplace, noise 2, rate .1", 200 * noisy, 1e-6
    yield "50 Exponential, noise 20", 50 * Exponential(20.0), 1e-6
    yield "a tree of 1,600 steps, noise 1.13", MatrixMechanism(BinaryTree(1600), 1.13), 1e-6
    sampled = PoissonSampled(GaussianLoss(1 / 0.8), 0.004)
    yield "DP-SGD: 15,000 steps, rate .004, noise .8", 15_000 * sampled, 1e-5
    yield "10^12 sampled Gaussians", 10**12 * PoissonSampled(GaussianLoss(0.01), 1e-4), 1e-6
    for one in () if quick else schemes():
        yield one.name, one.plan(), one.delta


def timed(make, *given):
    """Processor seconds, and what was made."""
    start = time.process_time()
    made = make(*given)
    return time.process_time() - start, made


def cells(name, plan, delta):
    """The row of one plan."""
    seconds, found = timed(Tight().certify, plan, delta)
    width = f"{found.width / found.upper:.0e}" if found.lower > 0 else "a bound"
    row = (name, f"{found.upper:.10g}", width)
    writing, proof = timed(write_proof, plan, delta, found.lower, found.upper)
    checking, verdict = timed(verify, proof)
    word = f"{verdict.word}: {verdict.reason[:120]}" if verdict.reason else verdict.word
    more = max(verdict.upper - found.upper, found.lower - verdict.lower) / found.upper
    return (*row, f"{more:.0e}" if more else "0", f"{len(proof):,} bytes", f"{seconds:.2g} s", f"{writing:.2g} s",
            f"{checking:.2g} s", f"{checking / seconds:.2g} x Tight", word)  # fmt: skip


def main():
    """Exit with status 1 where a plan of the page has no proof that checks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the first plans only")
    given = parser.parse_args()
    timed(verify, write_proof(GaussianLoss(1.0), 1e-5, 4.0, 5.0))  # imports
    Tight().certify(3 * PoissonSampled(GaussianLoss(1.0), 0.1), 1e-5)
    rows = []
    for name, plan, delta in plans(given.quick):
        if given.quick and not name.startswith(QUICK):
            continue
        rows.append(cells(name, plan, delta))
        print(" | ".join(rows[-1]), flush=True)
    proved = [row for row in rows if row[-1].startswith("PROVED")]
    print(f"bench_proofs {len(proved)} of {len(rows)} plans have a proof that checks")
    raise SystemExit(len(proved) < len(rows))


if __name__ == "__main__":
    main()
