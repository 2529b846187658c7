"""The sampling schemes of loaders, each figure beside its peer: dp-accounting, or as published.

Times are of a processor, of the first answer.  With ``--matrix``: rows of jax-privacy's table of
batch selection for a banded strategy, beside its estimator, drawn 400,000 times here.
"""

import argparse
import math
import time
import warnings
from dataclasses import dataclass

import numpy as np

import accountant
from accountant import GaussianLoss, Tight
from benchmarks.measure import beside

QUICK = ("replace-one Poisson, noise 2,", "random allocation, noise 1, 1 of", "one ", "100 samples")


@dataclass(frozen=True)
class Scheme:
    """One row: the plan, its delta, a published figure, and the peer's event and relation."""

    name: str
    plan: object
    delta: float
    figure: str = "-"
    event: object = None
    relation: str = "ADD_OR_REMOVE_ONE"
    peer: str = "PLD"


def schemes():
    """Yield every row; plans are functions, so that no bench pays for those it leaves out."""
    from dp_accounting import dp_event as events

    gaussian, kinds = GaussianLoss, accountant
    sampled = events.PoissonSampledDpEvent

    def replaced(mu, rate):
        return kinds.PoissonSampled(gaussian(mu), rate, relation="replace-one")

    # .0580866565 etc. are deltas at epsilon 1: the plan is asked for epsilon there
    for noise, rate, delta in ((2.0, 0.8, 0.0580866565), (1.5, 0.8, 0.1371126090),
                               (2 / 3, 0.7, 0.4013057527)):  # fmt: skip
        yield Scheme(f"replace-one Poisson, noise {noise:.3g}, rate {rate}",
                     lambda noise=noise, rate=rate: replaced(1 / noise, rate), delta, "1",
                     sampled(rate, events.GaussianDpEvent(noise)), "REPLACE_ONE")  # fmt: skip
    yield Scheme("1,000 replace-one Poisson, noise 1, rate .01", lambda: 1000 * replaced(1.0, 0.01),
                 1e-6, event=events.SelfComposedDpEvent(sampled(0.01, events.GaussianDpEvent(1.0)), 1000),
                 relation="REPLACE_ONE")  # fmt: skip
    yield Scheme("random allocation, noise 1, 1 of 200",
                 lambda: kinds.RandomAllocation(gaussian(1.0), 200), 1e-5, ".3864968788")  # fmt: skip
    yield Scheme("random allocation, noise 1, 1 of 1,000",
                 lambda: kinds.RandomAllocation(gaussian(1.0), 1000), 1e-6,
                 ".1717286844; [.16844, .17591] in 52 s")  # fmt: skip
    yield Scheme("the same, 10 epochs",
                 lambda: kinds.RandomAllocation(gaussian(1.0), 1000, epochs=10), 1e-6)  # fmt: skip
    yield Scheme("random allocation, noise .7, 1 of 10,000",
                 lambda: kinds.RandomAllocation(gaussian(1 / 0.7), 10_000), 1e-9)  # fmt: skip
    yield Scheme("random allocation, noise 1, 4 of 1,000 (a bound)",
                 lambda: kinds.RandomAllocation(gaussian(1.0), 1000, picks=4), 1e-6)  # fmt: skip
    yield Scheme("100 Poisson batches of at most 120 of 10,000, rate .01, noise 1",
                 lambda: 100 * kinds.TruncatedPoisson(gaussian(1.0), 0.01, 10_000, 120), 1e-6,
                 event=events.SelfComposedDpEvent(
                     events.TruncatedSubsampledGaussianDpEvent(10_000, 0.01, 120, 1.0), 100))  # fmt: skip
    for noise, batch in ((0.7, 1130), (2.0, 1100)):
        yield Scheme(f"10,000 Poisson batches of at most {batch:,} of 10^6, rate .001, noise {noise:.3g}",
                     lambda noise=noise, batch=batch: 10_000 * kinds.TruncatedPoisson(
                         gaussian(1 / noise), 0.001, 10**6, batch), 1e-6,
                     event=events.SelfComposedDpEvent(events.TruncatedSubsampledGaussianDpEvent(
                         10**6, 0.001, batch, noise), 10_000))  # fmt: skip
    shifts, weights = (0.0, 1.0, 2.0), (0.2, 0.6, 0.2)
    yield Scheme("mixture of Gaussians, shifts 0, 1, 2",
                 lambda: kinds.MixtureOfGaussians(1.0, shifts, weights), 0.15768284088654105, "1",
                 events.MixtureOfGaussiansDpEvent(1.0, shifts, weights))  # fmt: skip
    yield Scheme("100 groups of 4 sampled records, rate .01, noise 2",
                 lambda: kinds.Grouped(100 * kinds.PoissonSampled(gaussian(0.5), 0.01), 4), 1e-6,
                 event=events.SelfComposedDpEvent(events.MixtureOfGaussiansDpEvent(
                     2.0, range(5), [math.comb(4, j) * 0.01**j * 0.99 ** (4 - j) for j in range(5)]),
                     100))  # fmt: skip
    # chosen with all earlier answers: no peer follows choices, and no figure is published
    yield Scheme("20 exponential, noise 10, then 1,000 samples, rate .01, noise 1",
                 lambda: 20 * kinds.BoundedRangeLoss(0.1) + 1000 * kinds.PoissonSampled(
                     gaussian(1.0), 0.01), 1e-6)  # fmt: skip
    yield Scheme("5 x 5 exponential and a Gaussian, noise 2 and 5",
                 lambda: 5 * (5 * kinds.BoundedRangeLoss(0.5) + gaussian(0.2)), 1e-6)  # fmt: skip
    yield Scheme("10 choices of Laplace, Gaussian and 20 samples, then a Gaussian",
                 lambda: 10 * kinds.Parallel([kinds.LaplaceLoss(0.3), gaussian(0.2),
                     20 * kinds.PoissonSampled(gaussian(1.0), 0.01)]) + gaussian(0.5),
                 1e-6)  # fmt: skip
    yield Scheme("a Laplace, then 100 samples, rate .01, noise 2, as groups of 4",
                 lambda: kinds.LaplaceLoss(0.1) + kinds.Grouped(
                     100 * kinds.PoissonSampled(gaussian(0.5), 0.01), 4), 1e-6)  # fmt: skip
    yield Scheme(
        "one shuffled epoch of 1,000 batches, noise 1",
        lambda: kinds.ShuffledEpoch(gaussian(1.0), 1000),
        1e-6,
    )
    yield Scheme(
        "one pass of 1,000 batches in order, noise 1",
        lambda: kinds.OnePass(gaussian(1.0), 1000),
        1e-6,
    )
    yield Scheme("100 samples of 10 of 1,000, noise 1",
                 lambda: 100 * kinds.SampledWithoutReplacement(gaussian(1.0), 10, 1000), 1e-6,
                 event=events.SelfComposedDpEvent(events.SampledWithoutReplacementDpEvent(
                     1000, 10, events.GaussianDpEvent(1.0)), 100),
                 relation="REPLACE_ONE", peer="RDP")  # fmt: skip


def peer_answer(scheme):
    """Processor seconds and epsilon of dp-accounting, or None where it has no such event."""
    if scheme.event is None:
        return None
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
    from dp_accounting.privacy_accountant import NeighboringRelation
    from dp_accounting.rdp.rdp_privacy_accountant import RdpAccountant

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        kind = PLDAccountant if scheme.peer == "PLD" else RdpAccountant
        one = kind(neighboring_relation=NeighboringRelation[scheme.relation])
        one.compose(scheme.event)
        epsilon = one.get_epsilon(scheme.delta)
    return time.process_time() - start, float(epsilon)


def cells(scheme):
    """The row of one scheme."""
    plan = scheme.plan()
    start = time.process_time()
    found = Tight().certify(plan, scheme.delta)
    seconds = time.process_time() - start
    width = found.width / found.upper if found.upper else 0.0
    epsilon = f"{found.upper:.10g}" if found.lower > 0 else f"at most {found.upper:.10g}"
    answer = peer_answer(scheme)
    theirs = ("-", "-") if answer is None else (
        f"{answer[1]:.10g} ({scheme.peer})", beside(answer[0], seconds, "ours"))  # fmt: skip
    return (scheme.name, epsilon, f"{width:.0e}" if found.lower > 0 else "a bound",
            f"{1e3 * seconds:.1f} ms", scheme.figure, *theirs)  # fmt: skip


def drawn_epsilon(plan, delta, runs=400_000):
    """Epsilon of a removed record where 100 steps are in random bins, or rest, by simulation."""
    rng, steps, sampling = np.random.default_rng(41), plan.strategy.columns, plan.sampling
    losses = []
    for _ in range(runs // 20_000):
        uses, chances, rests = np.zeros((steps, 20_000)), [], None
        if isinstance(sampling, accountant.BallsInBins):
            bins = np.arange(steps)[:, None] % sampling.bins
            uses += bins == rng.integers(sampling.bins, size=20_000)
        else:
            least, rate = sampling.separation, sampling.rate
            chances = [sampling.share / rate, *[sampling.share] * (least - 1)]
            rests = rng.choice(least, p=chances, size=20_000)
            for step in range(steps):
                uses[step] = (rests == 0) & (rng.random(20_000) < rate)
                rests = np.where(uses[step], least - 1, np.maximum(rests - 1, 0))
        rows = plan.strategy.times(uses) / plan.scale + rng.standard_normal(uses.shape)
        columns = plan.strategy.times(np.eye(steps)) / plan.scale
        ratios = np.exp(columns.T @ rows - (columns**2).sum(axis=0)[:, None] / 2)
        if isinstance(sampling, accountant.BallsInBins):
            products = columns.T @ columns
            members = np.arange(steps) % sampling.bins == np.arange(sampling.bins)[:, None]
            lengths = np.einsum("pi,ij,pj->p", members * 1.0, products, members * 1.0)
            moved = (members * 1.0) @ columns.T @ rows
            losses.append(np.log(np.exp(moved - lengths[:, None] / 2).mean(axis=0)))
            continue
        free = np.zeros((steps + least, 20_000))  # the ratio of those who may be used at a step
        free[:least] = np.array(chances)[:, None]
        for step in range(steps):
            free[step + 1] += (1 - rate) * free[step]
            free[step + least] += rate * free[step] * ratios[step]
        losses.append(np.log(free[steps:].sum(axis=0)))
    found = np.concatenate(losses)

    def excess(epsilon):
        return np.maximum(1 - np.exp(epsilon - found), 0.0).mean() - delta

    from scipy.optimize import brentq

    return brentq(excess, 0.0, 100.0)


def matrix_rows():
    """Yield the name, the plan, and whether it is simulated: 100 steps, a tenth of the records."""
    from mechanisms import MatrixMechanism

    strategy = accountant.Toeplitz(np.array([8.0, 4, 2, 1]) / math.sqrt(85), 100)
    for noise, delta in ((4.0, 1e-2), (2.0, 1e-4)):
        fixed = MatrixMechanism(strategy, noise, accountant.FixedEpochs(10))
        yield f"fixed order, noise {noise:g}", fixed, delta, False
        turns = accountant.cyclic_poisson(strategy, noise, 0.4)
        yield f"cyclic Poisson, noise {noise:g}", turns, delta, False
        for name, sampling in (("balls in bins", accountant.BallsInBins(10)),
                               ("b-min-sep", accountant.SpacedPoisson(1 / 7, 4))):  # fmt: skip
            plan = accountant.AmplifiedMatrix(strategy, noise, sampling)
            yield f"{name}, noise {noise:g}", plan, delta, True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="without the longest")
    parser.add_argument("--matrix", action="store_true", help="matrix mechanisms alone")
    given = parser.parse_args()
    if given.matrix:
        for name, plan, delta, is_drawn in matrix_rows():
            start = time.process_time()
            found = Tight().certify(plan, delta)
            seconds = time.process_time() - start
            drawn = f"{drawn_epsilon(plan, delta):.3f}" if is_drawn else "-"
            print(f"{name}, delta {delta:g}: [{found.lower:.4f}, {found.upper:.4f}], "
                  f"{seconds:.2f} s; drawn {drawn}", flush=True)  # fmt: skip
        return
    Tight().certify(3 * accountant.PoissonSampled(GaussianLoss(1.0), 0.1), 1e-5)  # imports
    for scheme in schemes():
        if given.quick and not scheme.name.startswith(QUICK):
            continue
        row = cells(scheme)
        print(f"{row[0]}: epsilon {row[1]} at delta {scheme.delta:.10g}, width {row[2]}, {row[3]}; "
              f"figure {row[4]}; dp-accounting {row[5]}, {row[6]}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
