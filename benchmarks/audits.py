"""The audit beside its figures to reach: share of the limit's power, early stop, speed.

    python benchmarks/audits.py [--seeds 200] [--only power|stop|broken|speed]

A share is the runs that a perfect auditor needs over the runs used.  With a true epsilon e, a
bound b and a limit l at the same runs, whose gaps shrink as one over the root of the runs, it is
((e - l) / (e - b))^2; where delta > 0 the limit's own growth with the runs is looked up.
"""

# ruff: noqa: E402  # imports follow what makes them possible

import argparse
import math
import pathlib
import sys
import time

import numpy as np
from scipy.optimize import brentq

# run as a script this file would be taken for the package of its name
sys.path[:] = [one for one in sys.path if pathlib.Path(one) != pathlib.Path(__file__).parent]

from accountant import GaussianLoss, PureLoss, calibrate
from audits import audit
from audits.features import features
from audits.stopping import watch
from audits.zoo import ZOO
from audits.zoo_honest import specimens
from mechanisms import Gaussian, Laplace, RandomizedResponse

ONE = PureLoss(1.0)
SIGMA = 3.7306334
RUNS = 200_000  # 100,000 a side


def pure_limit(p, q, epsilon, runs):
    """Neyman-Pearson bound on epsilon at 95 % for outcomes of masses p, q a side.

    Against the least favourable pair (the posterior of the side clipped at the claim) by the
    normal law of the log-likelihood ratio.
    """

    def gap(claim):
        both, high = (p + q) / 2, 1 / (1 + np.exp(-claim))
        post = np.where(p + q > 0, p / np.maximum(p + q, 1e-300), 0.5)
        null = np.clip(post, 1 - high, high)
        # per run: log ratio of a side's chance under the truth against the null
        with np.errstate(divide="ignore", invalid="ignore"):
            one = np.where(post > 0, np.log(post / null), 0.0)
            two = np.where(post < 1, np.log((1 - post) / (1 - null)), 0.0)
        mean = [both @ (w * one + (1 - w) * two) for w in (post, null)]
        spread = both @ (null * one**2 + (1 - null) * two**2) - mean[1] ** 2
        return (mean[0] - mean[1]) * math.sqrt(runs) - 1.645 * math.sqrt(max(spread, 1e-300))

    return brentq(gap, 1e-6, epsilon * (1 - 1e-9)) if gap(1e-6) > 0 else 0.0


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


def laplace_masses():
    edges = np.concatenate([[-np.inf], np.linspace(0, 1, 401), [np.inf]])

    def cdf(x):
        return np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2)

    return np.diff(cdf(edges)), np.diff(cdf(edges - 1))


def bare_laplace(value, rng, size):
    return value + rng.laplace(size=size)


def bare_gaussian(value, rng, size):
    return value + rng.normal(scale=SIGMA, size=size)


def gaussian_share(bound, runs):
    """Runs at which the limit of audit-statistics 1.3 reaches the bound, over those used."""
    known = {0.565: 1e4, 0.741: 1e5, 0.80: 251e3, 0.873: 1e6, 0.90: 1.92e6, 0.949: 1e7}
    at = np.interp(bound, list(known), np.log(list(known.values())))
    return math.exp(at) / (runs / 2)


def row(name, found, true, limit, aim=None, share=None):
    bound = float(np.median([one.epsilon_lower for one in found]))
    alarms = sum(one.epsilon_lower > true for one in found)
    part = share if share is not None else ((true - limit) / max(true - bound, 1e-9)) ** 2
    seconds = np.median([one.seconds for one in found])
    target = f"aim {aim:.2f}" if aim else ""
    print(f"  {name:34} bound {bound:.4f}  limit {limit:.4f}  share {part:5.0%}  above the truth "
          f"{alarms}/{len(found)}  {seconds:.2f} s  {target}", flush=True)  # fmt: skip
    return part


def power(seeds):
    print(f"power at {RUNS:,} runs in all, 95 %, medians of {seeds} seeds")

    def many(*arguments, runs=RUNS):
        return [audit(*arguments, runs=runs, rng=seed) for seed in range(seeds)]

    p, q = laplace_masses()
    shares = {"densities": [], "few outcomes or one number": [], "black box": []}
    k_ary = calibrate(RandomizedResponse, k=10, epsilon=1.0)
    limits = {"laplace": pure_limit(p, q, 1.0, RUNS), "k-ary": 0.985, "gaussian": 0.741}
    one = shares["densities"]
    one.append(row("Laplace, declared", many(Laplace(1.0)), 1.0, limits["laplace"]))
    one.append(row("ten-ary response, declared", many(k_ary), 1.0, limits["k-ary"]))
    found = many(Gaussian(SIGMA))
    bound = float(np.median([f.epsilon_lower for f in found]))
    one.append(
        row("Gaussian (1, 1e-5), declared", found, 1.0, 0.741, 0.70, gaussian_share(bound, RUNS))
    )
    found = [audit(Gaussian(SIGMA), runs=2_000_000, rng=seed) for seed in range(min(seeds, 40))]
    bound = float(np.median([f.epsilon_lower for f in found]))
    row("Gaussian, declared, 10^6 a side", found, 1.0, 0.873, 0.84, gaussian_share(bound, 2e6))
    two = shares["few outcomes or one number"]
    found = many(bare_laplace, (0.0, 1.0), ONE, runs=80_000)
    two.append(row("Laplace, black box, 80,000", found, 1.0, pure_limit(p, q, 1.0, 80_000), 0.98))
    found = many(bare_gaussian, (0.0, 1.0), GaussianLoss(1 / SIGMA))
    bound = float(np.median([f.epsilon_lower for f in found]))
    two.append(row("Gaussian, black box", found, 1.0, 0.741, None, gaussian_share(bound, RUNS)))
    skip = {"laplace", "gaussian", "nothing", "exact_laplace", "even_tempo"}
    for one in specimens():
        if (
            one.honest
            and one.caught_by == "guess test"
            and one.true_epsilon
            and one.name not in skip
        ):
            try:
                masses = outcomes(one.broken, one.pair)
            except TypeError:  # called in a loop
                continue
            known = masses is not None and not one.claim.infinity
            limit = pure_limit(*masses, one.true_epsilon, RUNS) if known else 0.0
            found = many(one.broken, one.pair, one.claim)
            if limit:
                kind = "few outcomes or one number" if len(masses[0]) < 64 else "black box"
                shares[kind].append(row(one.name, found, one.true_epsilon, limit))
            else:
                row(
                    f"{one.name} (limit not listed)",
                    found,
                    one.true_epsilon,
                    math.nan,
                    share=math.nan,
                )
    for name, parts in shares.items():
        if parts:
            print(f"  median share of {name}: {np.median(parts):.0%}")


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
                audit(one.broken, one.pair, one.claim, runs, rng=seed) for seed in range(seeds)
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
