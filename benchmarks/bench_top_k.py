"""The most frequent categories beside OpenDP and diffprivlib, and keys that may be released.

Errors of top 10 are people: how many fewer than possible the chosen categories have, and the mean
error of the released counts.  A person is added or removed, and has one category.  Keys: how many
of those that 1, 2, 3, ... people hold are lost.  A ratio is ours over a peer's; below 1 ours is
better.
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


def errors(method, codes, counts, epsilon, seeds):
    """(people missed, error of counts), or None where the library is not here."""
    best, found = np.sort(counts)[-K:].sum(), []
    for seed in range(seeds):
        try:
            top, noisy = METHODS[method](codes, counts, epsilon, seed)
        except ImportError:
            return None
        found.append([best - counts[top].sum(), np.abs(noisy - counts[top]).mean()])
    return np.mean(found, axis=0)


def compare(name, epsilon, given):
    _, codes = np.unique(column(name, given.quick), return_inverse=True)
    counts = np.bincount(codes)
    row = {}
    for method in METHODS:
        found = errors(method, codes, counts, epsilon, given.seeds)
        if found is not None:
            row[method] = found
    words = ", ".join(
        f"{method} {missed:.4g} and {off:.4g}" for method, (missed, off) in row.items()
    )
    print(f"top {K} of {counts.size} {name}, epsilon {epsilon:g}: {words}", flush=True)
    for method in list(row)[1:]:
        print(f"  error of counts: {beside(row['ours'][1], row[method][1], method)}")


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
    for name in COLUMNS[:1] if given.quick else COLUMNS:
        for epsilon in (0.1, 1.0):
            compare(name, epsilon, given)
    keys(given)


if __name__ == "__main__":
    main()
