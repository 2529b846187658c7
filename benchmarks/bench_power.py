"""The audit beside its figures to reach: share of the limit's power, early stop, speed.

    python benchmarks/audits.py [--seeds 200] [--only power|stop|broken|speed]

A share is the runs that the best conceivable test needs to reach the median bound (Neyman &
Pearson's against the nearest pair that keeps it, `audits.known_densities.sample_size.limit_runs`), over the runs used.
"""

# ruff: noqa: E402  # imports follow what makes them possible

import argparse
import math
import pathlib
import sys
import time

import numpy as np
from scipy.special import expit

# run as a script this file would be taken for the package of its name
sys.path[:] = [one for one in sys.path if pathlib.Path(one) != pathlib.Path(__file__).parent]

from accountant import GaussianLoss, PureLoss
from audits import audit
from audits.attacks.sequential import watch
from audits.claims.arguments import claimed_delta
from audits.classifiers.output_features import features
from audits.known_densities.outcome_models import Pair, mechanism_pair
from audits.known_densities.sample_size import limit_runs
from audits.zoo.catalogue import ZOO
from audits.zoo.honest import specimens
from mechanisms import Gaussian, Laplace, registry

ONE = PureLoss(1.0)
SIGMA = 3.7306334
RUNS = 200_000  # 100,000 a side


def outcomes(release, pair, draws=8_000_000, chunk=1 << 18):
    """Masses of both sides from very many runs; None where outputs hardly repeat."""
    rng, counts = np.random.default_rng(0), {}
    for side, value in enumerate(pair):
        for _ in range(draws // chunk):
            codes, times = np.unique(features(release(value, rng, chunk)).atom, return_counts=True)
            if codes.size > chunk // 16:
                return None
            for code, count in zip(codes.tolist(), times.tolist(), strict=True):
                counts.setdefault(code, [0, 0])[side] += count
    table = np.array(list(counts.values()), dtype=float)
    return table[:, 0] / table[:, 0].sum(), table[:, 1] / table[:, 1].sum()


def laplace_pair():
    edges = np.concatenate([[-np.inf], np.linspace(0, 1, 4001), [np.inf]])

    def cdf(x):
        return np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2)

    return Pair("Laplace", np.diff(cdf(edges)), np.diff(cdf(edges - 1)))


def sum_of_laplaces(width=20, draws=1_000_000):
    """Log-ratios of many answers at once, from draws: those of the mixture weigh equally."""
    rng, losses = np.random.default_rng(0), []
    for _ in range(draws // 100_000):
        x = rng.laplace(scale=width, size=(50_000, width))
        losses.append(np.sum(np.abs(x - 1) - np.abs(x), axis=1) / width)
    losses = np.concatenate([*losses, *(-one for one in losses)])
    return Pair("many", *(w / w.sum() for w in (expit(losses), expit(-losses))))


def pair_of(one):
    """The two laws of an honest specimen as masses, however they are known."""
    if one.name in ("laplace", "noisy_histogram", "clamped_laplace"):
        return laplace_pair()  # other counts say nothing, nor does what clamping takes away
    if one.name == "gaussian":
        return mechanism_pair(Gaussian(SIGMA), 1.0)
    if one.name == "parallel_laplaces":
        return sum_of_laplaces()
    return Pair(one.name, *outcomes(one.implementation, one.pair))


def bare_laplace(value, rng, size):
    return value + rng.laplace(size=size)


def bare_gaussian(value, rng, size):
    return value + rng.normal(scale=SIGMA, size=size)


def row(name, found, pair, claim, aim=None):
    delta, runs = found[0].delta, found[0].runs
    true = claim.epsilon_at(delta)
    bound = float(np.median([one.epsilon_lower for one in found]))
    part = limit_runs(pair, bound, delta, 0.05, 0.5) / runs if bound else 0.0
    alarms = sum(one.epsilon_lower > true for one in found)
    seconds = np.median([one.seconds for one in found])
    target = f"aim {aim:.2f}" if aim else ""
    print(f"  {name:46} bound {bound:.4f} of {true:.3f}  share {part:5.0%}  above the truth "
          f"{alarms}/{len(found)}  {seconds:.2f} s  {target}", flush=True)  # fmt: skip
    return part


def power(seeds):
    print(f"power at {RUNS:,} runs in all, 95 %, medians of {seeds} seeds")
    shares = {"densities": [], "one number or few outcomes": [], "any output": []}
    honest = [one for one in specimens()
              if one.caught_by == "guess test" and one.true_epsilon]  # fmt: skip
    for mechanism in (one for cls in registry() for one in cls.instances()):
        claim = mechanism.loss
        at = 0.5 * claim.epsilon_at(claimed_delta(claim))
        pair, values = mechanism_pair(mechanism, at), mechanism.worst_pair(at)
        found = [audit(mechanism, values, runs=RUNS, rng=seed) for seed in range(seeds)]
        shares["densities"].append(row(repr(mechanism)[:46], found, pair, claim))
    found = [audit(Gaussian(SIGMA), runs=2_000_000, rng=seed) for seed in range(min(seeds, 40))]
    row("Gaussian, declared, 10^6 a side", found, pair_of(honest[2]), GaussianLoss(1 / SIGMA), 0.84)
    found = [audit(bare_laplace, (0.0, 1.0), ONE, runs=80_000, rng=seed) for seed in range(seeds)]
    row("Laplace, black box, 80,000", found, laplace_pair(), ONE, 0.98)
    for one in honest:
        pair = pair_of(one)
        claim = PureLoss(one.true_epsilon) if one.claim == ONE else one.claim
        found = [audit(one.implementation, one.pair, one.claim, RUNS, rng=s) for s in range(seeds)]
        small = one.implementation(one.pair[0], np.random.default_rng(0), 10_000)
        few = small.ndim == 1 or len(np.unique(features(small).atom)) <= 64
        share = row(one.name, found, pair, claim)
        shares["any output"].append(share)
        if few:
            shares["one number or few outcomes"].append(share)
    for name, parts in shares.items():
        print(f"  median share of {name}: {np.median(parts):.0%} of {len(parts)}")


def stop(seeds):
    print(
        f"early stop of the claim epsilon = 1, medians of {seeds} seeds (aim 150, 1,200, 8,000 runs)"
    )
    for true, horizon in ((2.0, 20_000), (1.25, 60_000), (1.1, 200_000)):

        def bare(value, rng, size, true=true):
            return value + rng.laplace(scale=1 / true, size=size)

        known = [watch(Laplace(1 / true), None, ONE, horizon, rng=s) for s in range(seeds)]
        learned = [watch(bare, (0.0, 1.0), ONE, horizon, rng=s) for s in range(seeds)]
        print(
            f"  truth {true}: declared {_stops(known):,.0f}, black box {_stops(learned):,.0f}",
            flush=True,
        )


def _stops(found):
    return float(np.median([one.stopped or math.inf for one in found]))


def broken(seeds):
    print("broken specimens: the least of some numbers of runs at which most seeds are falsified")
    for one in ZOO:
        if one.honest or one.caught_by != "guess test":
            continue
        for runs in (1000, 2500, 5000, 10_000, 25_000, 50_000):
            found = [
                audit(one.implementation, one.pair, one.claim, runs, rng=seed)
                for seed in range(seeds)
            ]
            fell = sum(f.outcome.name == "FALSIFIED" for f in found)
            if fell > seeds / 2 or runs == 50_000:
                bound = np.median([f.epsilon_lower for f in found])
                print(f"  {one.name:40} {runs:6,} runs: {fell}/{seeds}, bound {bound:.2f} of "
                      f"{one.true_epsilon}, {found[0].seconds:.2f} s", flush=True)  # fmt: skip
                break


def speed():
    print("million runs a second on one core, of 20 million, drawing included (aim: 20)")
    runs, chunk = 20_000_000, 1 << 15
    for name, release, pair, claim in (
        ("Laplace, declared", Laplace(1.0), None, None),
        ("Laplace, black box", bare_laplace, (0.0, 1.0), ONE),
        ("Gaussian, black box", bare_gaussian, (0.0, 1.0), GaussianLoss(1 / SIGMA)),
    ):
        draw = release.release if pair is None else release
        rng, start = np.random.default_rng(0), time.perf_counter()
        for _ in range(runs // chunk):
            draw(0.0, rng, chunk)
        alone = time.perf_counter() - start
        seconds = audit(release, pair, claim, runs=runs, rng=1).seconds
        print(f"  {name:24} {runs / seconds / 1e6:5.1f}, {seconds / alone:.2f} x drawing alone")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=9)
    parser.add_argument("--only", choices=["power", "stop", "broken", "speed"])
    chosen = parser.parse_args()
    parts = {"speed": speed, "power": lambda: power(chosen.seeds),
             "stop": lambda: stop(chosen.seeds), "broken": lambda: broken(min(chosen.seeds, 9))}  # fmt: skip
    for name, part in parts.items():
        if chosen.only in (None, name):
            part()


if __name__ == "__main__":
    main()
