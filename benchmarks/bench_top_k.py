"""The most frequent categories beside OpenDP and diffprivlib, and keys that may be released.

Errors of top 10 are people: how many fewer than possible the chosen categories have, and the mean
error of the released counts.  A person is added or removed, and has one category.  Keys: how many
of those that 1, 2, 3, ... people hold are lost.  A ratio is ours over a peer's; below 1 ours is
better.  `make bench` installs the peers in a folder of their own; without one of them this fails.
"""

import csv
import gzip
import math
import time
import warnings

import numpy as np

from algorithms import PrivateTopK, best_partition_selection
from algorithms.statistics.partition_selection import keys_lost
from benchmarks.measure import beside, options
from experiments.datasets import SHARED, present
from mechanisms.families.key_counts import KeyCounts

ADULT = "adult/adult.csv.gz"
COLUMNS = ("education", "occupation", "native_country")
K = 10
DEVIATIONS = 6  # of a mean error below the least one, until a peer is called wrong


def column(name, quick):
    """The categories of a column, or made-up ones."""
    if quick or not present(SHARED, ADULT):
        return np.random.default_rng(0).geometric(0.2, 3000) % 40
    with gzip.open(SHARED / ADULT, "rt", newline="") as lines:
        return np.array([row[name].strip() for row in csv.DictReader(lines)])


def ours(codes, counts, epsilon, seed):
    made = PrivateTopK(
        k=K, categories=range(counts.size), epsilon=epsilon, relation="add-remove",
        random_state=seed,
    ).fit(codes)  # fmt: skip
    return made.top_, made.counts_


def of_diffprivlib(codes, counts, epsilon, seed):
    """Its histogram, one bin a category."""
    from diffprivlib.tools import histogram

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        noisy, _ = histogram(codes, epsilon=epsilon, bins=counts.size,
                             range=(-0.5, counts.size - 0.5), random_state=seed)  # fmt: skip
    top = np.argsort(-noisy, kind="stable")[:K]
    return top, noisy[top]


def of_opendp(codes, counts, epsilon, seed):
    """Its noisy top k with half of epsilon, and Laplace noise on these counts with the rest."""
    del seed, codes
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=dp.i32)), dp.linf_distance(T=dp.i32, monotonic=True)
    select = dp.binary_search_chain(
        lambda s: dp.m.make_noisy_top_k(*space, dp.max_divergence(), K, s),
        d_in=1, d_out=epsilon / 2, T=float,
    )  # fmt: skip
    top = np.array(select(counts.tolist()))
    some = dp.vector_domain(dp.atom_domain(T=dp.i32)), dp.l1_distance(T=dp.i32)
    noise = dp.m.make_laplace(*some, 2 / epsilon)
    return top, np.array(noise(counts[top].tolist()))


def histogram_of_opendp(codes, counts, epsilon, seed):
    """Laplace noise on all counts, of which the largest are taken."""
    del seed, codes
    import opendp.prelude as dp

    dp.enable_features("contrib")
    some = dp.vector_domain(dp.atom_domain(T=dp.i32)), dp.l1_distance(T=dp.i32)
    noisy = np.array(dp.m.make_laplace(*some, 1 / epsilon)(counts.tolist()))
    top = np.argsort(-noisy, kind="stable")[:K]
    return top, noisy[top]


METHODS = {
    "ours": ours, "OpenDP top k": of_opendp, "OpenDP histogram": histogram_of_opendp,
    "diffprivlib histogram": of_diffprivlib,
}  # fmt: skip


def measured(method, codes, counts, epsilon, seeds):
    """By seed: people missed, error of counts, seconds of processor time; None without the peer."""
    best, found = np.sort(counts)[-K:].sum(), []
    for seed in range(seeds):
        start = time.process_time()
        try:
            top, noisy = METHODS[method](codes, counts, epsilon, seed)
        except ImportError:
            return None
        seconds = time.process_time() - start
        if len(set(top.tolist())) != K:
            raise ValueError(f"{method} names {top}: not {K} categories")
        found.append([best - counts[top].sum(), np.abs(noisy - counts[top]).mean(), seconds])
    return np.array(found)


def is_wrong(count_errors, epsilon):
    """Whether the errors of counts are less than any epsilon-private count has."""
    # Ghosh, Roughgarden & Sundararajan (2009): geometric noise is the best, 2 a / (1 - a^2) with
    # a = e^-epsilon
    least = 1 / math.sinh(epsilon)
    spread = np.std(count_errors, ddof=1) / math.sqrt(count_errors.size)
    return bool(np.mean(count_errors) + DEVIATIONS * spread < least)


def compare(name, epsilon, given):
    """Print a row of all methods, and the ratios to each peer; return the peers that are absent."""
    _, codes = np.unique(column(name, given.quick), return_inverse=True)
    counts = np.bincount(codes)
    runs = {method: measured(method, codes, counts, epsilon, given.seeds) for method in METHODS}
    means = {method: run.mean(axis=0) for method, run in runs.items() if run is not None}
    words = ", ".join(
        f"{one} {missed:.4g} and {off:.4g}" for one, (missed, off, _) in means.items()
    )
    print(f"top {K} of {counts.size} {name}, epsilon {epsilon:g}: {words}", flush=True)
    for method in list(means)[1:]:
        if is_wrong(runs[method][:, 1], epsilon):
            print(f"  {method} is wrong: less noise than epsilon {epsilon:g} needs")
            continue
        ours_missed, ours_off, _ = means["ours"]
        missed, off, _ = means[method]
        # the first run also imports the library
        ours_seconds, seconds = (np.median(runs[one][:, 2]) for one in ("ours", method))
        people = f", people missed {beside(ours_missed, missed, method)}" if missed else ""
        print(f"  error of counts {beside(ours_off, off, method)}{people}, "
              f"processor time {beside(ours_seconds, seconds, method)}")  # fmt: skip
    return [method for method, run in runs.items() if run is None]


def keys(given):
    """Keys lost beside Laplace noise with a threshold (Korolova et al. 2009)."""
    for epsilon, most in ((1.0, 1), (0.1, 1), (1.0, 20)):
        made, each, share = (
            best_partition_selection(epsilon, 1e-6, most),
            epsilon / most,
            1e-6 / most,
        )
        # kept where count + Laplace(1 / each) >= 1 + ln(1 / 2 delta) / each
        start = 1 + math.log(1 / (2 * share)) / each
        gap = (np.arange(int(4 * start)) - start) * each
        peer = np.where(
            gap < 0, 1 - np.exp(np.minimum(gap, 0)) / 2, np.exp(-np.maximum(gap, 0)) / 2
        )
        ratio = beside(keys_lost(made), float(peer[1:].sum()), "Laplace noise and a threshold")
        print(f"keys lost, {most} a person, epsilon {epsilon:g}: {keys_lost(made):.4g}: {ratio}")
    size = 10_000 if given.quick else 1_000_000
    many = KeyCounts(np.arange(size), np.random.default_rng(0).geometric(0.05, size))
    start = time.process_time()
    kept = best_partition_selection(1.0, 1e-6).release(many, 0).size
    print(f"{size:,} keys: {kept:,} kept in {time.process_time() - start:.3g} s")


def main():
    given = options(__doc__, seeds=50)
    if given.quick:
        given.seeds = 3
    absent = []
    for name in COLUMNS[:1] if given.quick else COLUMNS:
        for epsilon in (0.1, 1.0):
            absent = compare(name, epsilon, given)
    keys(given)
    if absent:
        print(f"left out, for they are not installed: {', '.join(absent)}")
    if absent and not given.quick:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
