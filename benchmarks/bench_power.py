"""What an audit sees beside the best conceivable test: its bounds, its early stop, broken code.

A ratio is the runs that are used over those that the best test needs for the same bound (Neyman &
Pearson's against the nearest pair that keeps it, `neyman_pearson_runs`); below 1 is luck.  A median
of five bounds near their claim moves by a third or more with the seeds.
"""

import math
import time

import numpy as np
from scipy.special import expit
from scipy.stats import laplace

from accountant import ApproxLoss, PureLoss
from audits import audit
from audits.attacks.sequential import watch
from audits.claims.arguments import claimed_delta
from audits.classifiers.output_features import extract_features
from audits.classifiers.screening import block_rows
from audits.known_densities.outcome_models import OutcomePair, two_outcomes, worst_outcome_pair
from audits.known_densities.sample_size import neyman_pearson_runs
from audits.zoo.catalogue import ZOO
from audits.zoo.honest.mechanisms import specimens
from benchmarks.measure import beside, options
from mechanisms import Gaussian, Laplace, registry

ONE = PureLoss(1.0)
SIGMA = 3.7306334
RUNS = 200_000  # 100,000 a side


def outcomes(release, pair, draws=2_000_000, chunk=1 << 18):
    """Masses of both sides from very many runs; None where outputs hardly repeat."""
    rng, counts = np.random.default_rng(0), {}
    for side, value in enumerate(pair):
        for _ in range(draws // chunk):
            codes, times = np.unique(
                extract_features(release(value, rng, chunk)).category, return_counts=True
            )
            if codes.size > chunk // 16:
                return None
            for code, count in zip(codes.tolist(), times.tolist(), strict=True):
                counts.setdefault(code, [0, 0])[side] += count
    table = np.array(list(counts.values()), dtype=float)
    return table[:, 0] / table[:, 0].sum(), table[:, 1] / table[:, 1].sum()


def exact_outcomes(name):
    """Masses of both sides of an honest specimen of few outputs, None if its law is not here.

    Those of draws are lucky for some outputs, and the best test would use the luck.
    """
    e, root = math.e, math.exp(0.5)
    if name in ("two_answers", "geometric"):  # both say the sign of a ratio of e, no more
        return np.array([e, 1]) / (1 + e), np.array([1, e]) / (1 + e)
    if name == "ten_labels":
        return np.array([e, 1, 8]) / (e + 9), np.array([1, e, 8]) / (e + 9)
    if name == "exponential":
        one, four = np.array([root, 1, 1, 1, 1]), np.array([1, root, root, root, root])
        return one / one.sum(), four / four.sum()
    if name == "leaky_response":
        said = 0.99 * np.array([e, 1]) / (1 + e)
        return np.array([*said, 0.01, 0.0]), np.array([*said[::-1], 0.0, 0.01])
    x = np.linspace(-150, 150, 300_001)  # of the noisy threshold, or of the greatest score
    if name == "noisy_max":
        one, four = ([1, 0, 0, 0, 0], [0, 1, 1, 1, 1])
        return tuple(np.array([_integral(x, laplace.pdf(x, own, 2) * np.prod(
            [laplace.cdf(x, other, 2) for j, other in enumerate(side) if j != i], axis=0))
            for i, own in enumerate(side)]) for side in (one, four))  # fmt: skip
    if name == "sparse_vector":
        sides = []
        for answers in ([0] * 10 + [1], [1] * 10 + [0]):
            left, masses = laplace.pdf(x, 0, 2), []
            for answer in answers:
                below = laplace.cdf(x, answer, 4)
                masses.append(_integral(x, left * (1 - below)))
                left = left * below
            sides.append(np.array([*masses, _integral(x, left)]))
        return tuple(sides)
    return None


def _integral(x, y):
    return float(np.sum((y[1:] + y[:-1]) * np.diff(x)) / 2)


def laplace_pair():
    edges = np.concatenate([[-np.inf], np.linspace(0, 1, 4001), [np.inf]])

    def cdf(x):
        return np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2)

    return OutcomePair("Laplace", np.diff(cdf(edges)), np.diff(cdf(edges - 1)))


def sum_of_laplaces(width=20, draws=1_000_000):
    """Log-ratios of many answers at once, from draws: those of the mixture weigh equally."""
    rng, losses = np.random.default_rng(0), []
    for _ in range(draws // 100_000):
        x = rng.laplace(scale=width, size=(50_000, width))
        losses.append(np.sum(np.abs(x - 1) - np.abs(x), axis=1) / width)
    losses = np.concatenate([*losses, *(-one for one in losses)])
    return OutcomePair("many", *(w / w.sum() for w in (expit(losses), expit(-losses))))


def pair_of(one):
    """The two laws of an honest specimen as masses, however they are known."""
    if one.name in ("laplace", "noisy_histogram", "clamped_laplace"):
        return laplace_pair()  # other counts say nothing, nor does what clamping takes away
    if one.name == "gaussian":
        return worst_outcome_pair(Gaussian(SIGMA), 1.0)
    if one.name == "parallel_laplaces":
        return sum_of_laplaces()
    return OutcomePair(
        one.name, *(exact_outcomes(one.name) or outcomes(one.implementation, one.pair))
    )


def bare_laplace(value, rng, size):
    return value + rng.laplace(size=size)


def row(name, found, pair, claim, aim=None):
    """Print a median bound and the best test's runs; return its share of those that were used."""
    delta, runs = found[0].delta, found[0].runs
    true = claim.epsilon_at(delta)
    bound = float(np.median([one.epsilon_lower for one in found]))
    part = neyman_pearson_runs(pair, bound, delta, 0.05, 0.5) / runs if bound else 0.0
    alarms = sum(one.epsilon_lower > true for one in found)
    seconds = np.median([one.seconds for one in found])
    target = f", aim a bound of {aim:.2f}" if aim else ""
    ratio = beside(1, part, "the best test's runs") if part else "no bound"
    print(f"  {name:46} bound {bound:.4f} of {true:.3f}, {ratio}, above the truth "
          f"{alarms}/{len(found)}, {seconds:.2f} s{target}", flush=True)  # fmt: skip
    return part


def power(seeds, quick):
    print(f"bounds at {RUNS:,} runs in all, 95 %, medians of {seeds} seeds")
    shares = {"densities": [], "any output": []}
    honest = [one for one in specimens()
              if one.caught_by == "guess test" and one.true_epsilon]  # fmt: skip
    for mechanism in [Laplace(1.0)] if quick else [cls.instances()[0] for cls in registry()]:
        claim = mechanism.loss
        at = 0.5 * claim.epsilon_at(claimed_delta(claim))
        pair, values = worst_outcome_pair(mechanism, at), mechanism.worst_pair(at)
        found = [audit(mechanism, values, runs=RUNS, rng=seed) for seed in range(seeds)]
        shares["densities"].append(row(repr(mechanism)[:46], found, pair, claim))
    found = [audit(bare_laplace, (0.0, 1.0), ONE, runs=80_000, rng=seed) for seed in range(seeds)]
    row("Laplace, black box, 80,000", found, laplace_pair(), ONE, 0.98)
    for one in [] if quick else honest:
        pair = pair_of(one)
        claim = PureLoss(one.true_epsilon) if one.claim == ONE else one.claim
        found = [audit(one.implementation, one.pair, one.claim, RUNS, rng=s) for s in range(seeds)]
        shares["any output"].append(row(one.name, found, pair, claim))
    for name, parts in shares.items():
        if parts:
            print(f"  {name}: the best test needs {np.median(parts):.0%} of the runs, "
                  f"median of {len(parts)}")  # fmt: skip


def hidden_laplace(width):
    """Laplace noise on many numbers, of which one, at a place of its own, moves."""

    def release(value, rng, size):
        noise = rng.laplace(size=(size, width))
        noise[:, 2 * width // 3] += value
        return noise

    return release


def dense_gaussian(width, shift):
    """Gaussian noise on numbers that all move, up or down, by a norm of ``shift`` together."""
    direction = np.random.default_rng(5).normal(size=width)
    direction *= shift / np.linalg.norm(direction)

    def release(value, rng, size):
        return value * direction + rng.normal(size=(size, width))

    return release


def drawn_a_second(release, width, numbers=10_000_000):
    """Runs a processor second of a release alone, in blocks that stay in the processor's cache."""
    rng, block = np.random.default_rng(0), block_rows(width)
    start = time.process_time()
    for _ in range(0, numbers, block * width):
        release(0.0, rng, block)
    return numbers / width / (time.process_time() - start)


def wide(seeds, quick):
    """Print bounds for vectors, and runs a processor second beside their noise alone.

    The noise alone is a limit that no audit can pass, measured before and after.
    """
    print(f"vectors, bounds at 95 %, medians of {seeds} seeds, and runs a processor second")
    shares = []
    sizes = ((100, 200_000), (1000, 100_000), (10_000, 20_000))
    for width, runs in ((100, 20_000),) if quick else sizes:
        for name, release, pair, claim in (
            ("one number", hidden_laplace(width), laplace_pair(), ONE),
            ("dense, 4", dense_gaussian(width, 4.0), worst_outcome_pair(Gaussian(0.25), 1.0),
             ApproxLoss(1.0, 1e-3)),
        ):  # fmt: skip
            before, start = drawn_a_second(release, width), time.process_time()
            found = [audit(release, (0.0, 1.0), claim, runs, rng=s) for s in range(seeds)]
            rate = seeds * runs / (time.process_time() - start)
            alone = (before + drawn_a_second(release, width)) / 2
            bound = float(np.median([one.epsilon_lower for one in found]))
            delta = found[0].delta
            part = neyman_pearson_runs(pair, bound, delta, 0.05, 0.5) / runs if bound else 0.0
            shares.append(part)
            print(f"  {name} of {width:6,}, {runs:7,} runs: bound {bound:.4f}, "
                  f"{beside(1, part, 'the best test of the known direction') if part else '-'}, "
                  f"{rate:,.0f} runs a second, {beside(rate, alone, 'their noise alone')}",
                  flush=True)  # fmt: skip
    print(f"  vectors: the best test needs {np.median(shares):.0%} of the runs, median")


def shifted_laplace(epsilon):
    """The release of Laplace noise that costs epsilon."""
    return lambda value, rng, size: value + rng.laplace(scale=1 / epsilon, size=size)


def stop(seeds, quick):
    print(f"early stop of the claim epsilon = 1, medians of {seeds} seeds "
          "(aim 150, 1,200, 8,000 runs)")  # fmt: skip
    for true, horizon in ((2.0, 20_000), (1.25, 60_000), (1.1, 200_000))[: 1 if quick else None]:
        laplace = Laplace(1 / true)
        least = neyman_pearson_runs(worst_outcome_pair(laplace, 1.0), 1.0, 0.0, 0.05, 0.5)
        known = _stops([watch(laplace, None, ONE, horizon, rng=s) for s in range(seeds)])
        learned = _stops(
            [watch(shifted_laplace(true), (0.0, 1.0), ONE, horizon, rng=s) for s in range(seeds)]
        )
        print(f"  truth {true}: declared {known:,.0f}, "
              f"{beside(known, least, 'the best test of a fixed size')} ({least:,.0f}); "
              f"black box {learned:,.0f}", flush=True)  # fmt: skip


def _stops(found):
    return float(np.median([one.stopped or math.inf for one in found]))


def broken(seeds, quick):
    print("broken code: the least of some numbers of runs at which most seeds are falsified, beside "
          "the best test of binary answers of the true epsilon")  # fmt: skip
    ones = [one for one in ZOO if not one.honest and one.caught_by == "guess test"]
    for one in ones[: 2 if quick else None]:
        for runs in (1000, 2500, 5000, 10_000, 25_000, 50_000):
            found = [
                audit(one.implementation, one.pair, one.claim, runs, rng=seed)
                for seed in range(seeds)
            ]
            fell = sum(f.outcome.name == "FALSIFIED" for f in found)
            if fell > seeds / 2 or runs == 50_000:
                bound = np.median([f.epsilon_lower for f in found])
                print(f"  {one.name:40} {runs:6,} runs, {_beside_answers(one, runs)}: "
                      f"{fell}/{seeds}, bound {bound:.2f} of {one.true_epsilon}, "
                      f"{found[0].seconds:.2f} s", flush=True)  # fmt: skip
                break


def _beside_answers(one, runs):
    delta = claimed_delta(one.claim)
    claim, true = one.claim.epsilon_at(delta), one.true_epsilon
    if not true or not claim < true < 30:
        return "no finite epsilon"
    return beside(
        runs, neyman_pearson_runs(two_outcomes(true), claim, delta, 0.05, 0.5), "the best test's"
    )


def main():
    given = options(__doc__, seeds=5)
    seeds = 1 if given.quick else given.seeds
    for part in (power, wide, stop, broken):
        part(seeds, given.quick)


if __name__ == "__main__":
    main()
