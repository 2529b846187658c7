"""Private quantiles beside OpenDP, diffprivlib and one release a quantile, at one guarantee.

Errors are mean distances from the quantiles of the data, over seeds and quantiles; neighbours add
or remove a record.  A ratio is ours over a peer's; below 1 ours is better.  OpenDP gets every whole
number as a candidate, or 1,000 numbers between the bounds.  ``--records N`` takes the first N of a
column; ``--coverage N`` measures intervals over N samples instead.
"""

import csv
import gzip
import time
import warnings

import numpy as np
from scipy.stats import lognorm, norm, uniform

from algorithms import PrivateQuantiles
from benchmarks.measure import beside, options
from experiments.datasets import SHARED, present

ADULT, HOUSING = "adult/adult.csv.gz", "california_housing/housing.csv.gz"
# the file, the column, public bounds, the step; bounds are stated without the data
COLUMNS = {
    "age": (ADULT, "age", 0, 100, 1),
    "hours a week": (ADULT, "hours_per_week", 0, 100, 1),
    "capital gain": (ADULT, "capital_gain", 0, 100_000, 1),
    "weight": (ADULT, "fnlwgt", 0, 1_500_000, 1),
    "median income": (HOUSING, "median_income", 0, 16, None),
    "house value": (HOUSING, "median_house_value", 0, 500_001, None),
    "population": (HOUSING, "population", 0, 40_000, None),
}
QUANTILES = {"median": [0.5], "quartiles": [0.25, 0.5, 0.75], "deciles": np.arange(1, 10) / 10}


def column(name, quick):
    """The numbers of a column, or made-up ones."""
    file, key, *_ = COLUMNS[name]
    if quick or not present(SHARED, file):
        return np.random.default_rng(0).gamma(2.0, 2.0, 500)
    with gzip.open(SHARED / file, "rt", newline="") as lines:
        return np.array([float(row[key]) for row in csv.DictReader(lines)])


def at_ranks(numbers, quantiles):
    return np.quantile(numbers, quantiles, method="inverted_cdf")


def ours(numbers, quantiles, low, high, step, epsilon, seed):
    made = PrivateQuantiles(
        quantiles=quantiles, low=low, high=high, grid_step=step, epsilon=epsilon,
        relation="add-remove", random_state=seed,
    )  # fmt: skip
    return made.fit(numbers[:, None]).quantiles_


def one_by_one(numbers, quantiles, low, high, step, epsilon, seed):
    """A release of its own for every quantile, with its share of epsilon."""
    share = epsilon / len(quantiles)
    return [ours(numbers, q, low, high, step, share, seed * 100 + i)[0]
            for i, q in enumerate(quantiles)]  # fmt: skip


def of_diffprivlib(numbers, quantiles, low, high, step, epsilon, seed):
    del step
    from diffprivlib.tools import quantile

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.atleast_1d(quantile(
            numbers, list(quantiles), epsilon=epsilon, bounds=(low, high), random_state=seed
        ))  # fmt: skip


def of_opendp(numbers, quantiles, low, high, step, epsilon, seed):
    del seed  # it cannot be seeded
    import opendp.prelude as dp

    dp.enable_features("contrib")
    points = (
        np.linspace(low, high, 1001) if step is None or high > 1000 else np.arange(low, high + 1)
    )
    clamped = np.clip(numbers, low, high).tolist()
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    found = []
    for q in quantiles:
        made = dp.binary_search_chain(
            lambda s, q=q: dp.m.make_private_quantile(
                *space, dp.max_divergence(), points.astype(float).tolist(), float(q), s
            ),
            d_in=1, d_out=epsilon / len(quantiles), T=float,
        )  # fmt: skip
        found.append(made(clamped))
    return np.array(found)


METHODS = {
    "ours": ours,
    "one by one": one_by_one,
    "OpenDP": of_opendp,
    "diffprivlib": of_diffprivlib,
}


def errors(method, numbers, quantiles, bounds, epsilon, seeds):
    """(mean error, its standard error), or None where the library is not here."""
    truth, found = at_ranks(np.clip(numbers, *bounds[:2]), quantiles), []
    for seed in range(seeds):
        try:
            drawn = METHODS[method](numbers, quantiles, *bounds, epsilon, seed)
        except ImportError:
            return None
        except RuntimeError as error:  # no candidate has a weight
            print(f"  {method} fails: {str(error)[:40]}")
            return None
        found.append(np.abs(np.asarray(drawn) - truth).mean())
    return np.mean(found), np.std(found) / np.sqrt(max(1, seeds - 1))


def compare(name, kind, epsilon, given):
    numbers, bounds = column(name, given.quick), COLUMNS[name][2:]
    numbers = numbers[: given.records] if given.records else numbers
    row = {}
    for method in METHODS:
        found = errors(method, numbers, QUANTILES[kind], bounds, epsilon, given.seeds)
        if found is not None:
            row[method] = found
    words = ", ".join(f"{method} {mean:.4g} ± {error:.1g}" for method, (mean, error) in row.items())
    print(f"{name}, {kind}, epsilon {epsilon:g}, {numbers.size:,} records: {words}", flush=True)
    for method in list(row)[1:]:
        if row[method][0] > 0 and row["ours"][0] > 0:
            print(f"  error: {beside(row['ours'][0], row[method][0], method)}")


def times(given):
    """Processor time of quartiles of many numbers."""
    numbers = np.random.default_rng(0).normal(size=10_000 if given.quick else 1_000_000)
    took = {}
    for method, work in METHODS.items():
        start = time.process_time()
        try:
            work(numbers, QUANTILES["quartiles"], -10, 10, None, 1.0, 0)
        except ImportError:
            continue
        took[method] = time.process_time() - start
    for method, seconds in took.items():
        ratio = "" if method == "ours" else ": ours takes " + beside(took["ours"], seconds, method)
        print(f"quartiles of {numbers.size:,} numbers, {method}: {seconds:.3g} s{ratio}")


def coverage(runs):
    """How often intervals of 95 % hold the quantiles of the population that was sampled."""
    laws = {"uniform": uniform(-10, 20), "Gaussian": norm(), "log-normal": lognorm(1.0)}
    quantiles = [0.25, 0.5, 0.9]
    for name, law in laws.items():
        for records, epsilon, relation in (
            (1000, 1.0, "add-remove"), (10_000, 0.5, "replace-one"), (100_000, 0.1, "add-remove"),
        ):  # fmt: skip
            made = PrivateQuantiles(quantiles=quantiles, low=-20, high=60, epsilon=epsilon,
                                    confidence=0.95, relation=relation)  # fmt: skip
            held = []
            for seed in range(runs):
                numbers = law.rvs((records, 1), random_state=seed)
                low, high = made.set_params(random_state=seed).fit(numbers).intervals_.T
                held.append((low <= law.ppf(quantiles)) & (law.ppf(quantiles) <= high))
            words = ", ".join(f"{share:.3f}" for share in np.mean(held, axis=0))
            print(
                f"{name}, {records:,} records, epsilon {epsilon:g}, {relation}: {words}", flush=True
            )


def main():
    given = options(__doc__, seeds=20, records=0, coverage=0)
    if given.coverage:
        coverage(given.coverage)
        return
    names, epsilons = list(COLUMNS), (0.1, 1.0)
    if given.quick:
        given.seeds, names, epsilons = 3, ["weight"], (1.0,)
    for name in names:
        for kind in QUANTILES:
            for epsilon in epsilons:
                compare(name, kind, epsilon, given)
    times(given)


if __name__ == "__main__":
    main()
