"""Statistics of data frames: error and time, beside OpenDP and diffprivlib where they are installed.

OpenDP (its context on polars) and diffprivlib are asked at epsilon 1 for the neighbours they have:
one row more or less, and one row exchanged.  Times are seconds of the processor; data of the census
(Adult) are read where they lie beside the repository, else ages are made up.
"""

import csv
import gzip
import importlib.util
import time
import warnings

import numpy as np
import pandas as pd
import polars as pl

from accountant import Budget, Filter
from algorithms.frames import Category, Number, Schema, count, histogram, mean, sum_, variance
from benchmarks.estimator_rows.classification import ADULT
from benchmarks.measure import beside, options
from experiments.datasets import SHARED, present

OPTIONS = options(__doc__, rows=1_000_000, runs=200)
ROWS, RUNS = (4_000, 20) if OPTIONS.quick else (OPTIONS.rows, OPTIONS.runs)
SLOW_RUNS = 30  # of OpenDP, whose release takes most of a second on any frame
EDGES = np.linspace(0, 100, 21)
ASKED = {
    "count": count(epsilon=1.0),
    "sum": sum_("age", epsilon=1.0),
    "mean": mean("age", epsilon=1.0),
    "variance": variance("age", epsilon=1.0),
    "histogram": histogram("age", 20, epsilon=1.0),
    "count by job": count(by="job", epsilon=1.0),
    "mean by job": mean("age", by="job", epsilon=1.0),
}


def people():
    """Ages and jobs of the census, or made-up ones."""
    if OPTIONS.quick or not present(SHARED, ADULT):
        return made_up(ROWS)
    with gzip.open(SHARED / ADULT, "rt", newline="") as lines:
        rows = list(csv.DictReader(lines))
    return pl.DataFrame({"age": [float(row["age"]) for row in rows],
                         "job": [row["occupation"].strip() for row in rows]})  # fmt: skip


def made_up(rows):
    rng = np.random.default_rng(0)
    jobs = np.array([f"job {i}" for i in range(14)])[rng.integers(14, size=rows)]
    return pl.DataFrame({"age": np.clip(rng.normal(38, 13, rows), 0, 100), "job": jobs.tolist()})


def schema_of(frame, relation):
    return Schema({"age": Number(0, 100, missing=50),
                   "job": Category(frame["job"].unique().sort().to_list())},
                  relation=relation)  # fmt: skip


def plain(name, frame):
    """The statistic itself, without noise; of jobs in the order of their names."""
    ages = frame["age"].to_numpy()

    def by_job(column):
        grouped = frame.group_by("job").agg(pl.len(), pl.col("age").mean())
        return grouped.sort("job")[column].to_numpy()

    return {
        "count": lambda: len(ages),
        "sum": ages.sum,
        "mean": ages.mean,
        "variance": ages.var,
        "histogram": lambda: np.histogram(ages, EDGES)[0],
        "count by job": lambda: by_job("len"),
        "mean by job": lambda: by_job("age"),
    }[name]()


def ours(name, frame, relation):
    declared, ledger = schema_of(pl.DataFrame(frame), relation), Filter(frame, Budget(1e9))
    return lambda: ASKED[name].release(ledger, declared).value


def opendp(name, frame):
    """A release of OpenDP, and None for what it does not have."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    jobs, age = frame.select("job").unique().sort("job").lazy(), pl.col("age")
    total = age.dp.sum((0.0, 100.0))
    asks = {
        "count": lambda query: query.select(dp.len()),
        "sum": lambda query: query.select(total),
        "mean": lambda query: query.select(age.dp.mean((0.0, 100.0))),
        "count by job": lambda query: query.group_by("job").agg(dp.len()).with_keys(jobs),
        "mean by job": lambda query: query.group_by("job").agg(total, dp.len()).with_keys(jobs),
    }
    lazy = frame.with_columns(age.fill_nan(50.0)).lazy()

    def release():
        context = dp.Context.compositor(
            data=lazy, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(1.0),
            split_evenly_over=1, margins=[dp.polars.Margin(max_length=2 * len(frame))],
        )  # fmt: skip
        found = asks[name](context.query()).release().collect()
        if name == "mean by job":
            found = found.sort("job")
            return (found["age"] / found["len"]).to_numpy()
        return found.sort("job")["len"].to_numpy() if "job" in name else found.item(0, 0)

    return release if name in asks else None


def diffprivlib(name, frame):
    """A release of diffprivlib, and None for what it does not have."""
    from diffprivlib import tools

    ages, bounds = frame["age"].to_numpy(), {"epsilon": 1.0, "bounds": (0, 100)}
    asks = {
        "sum": lambda: tools.sum(ages, **bounds),
        "mean": lambda: tools.mean(ages, **bounds),
        "variance": lambda: tools.var(ages, **bounds),
        "histogram": lambda: tools.histogram(ages, 1.0, bins=20, range=(0, 100))[0],
    }
    return asks.get(name)


PEERS = {"opendp": (opendp, "add-remove"), "diffprivlib": (diffprivlib, "replace-one")}


def installed():
    return {name: peer for name, peer in PEERS.items() if importlib.util.find_spec(name)}


def root_mean_square(release, truth, runs=RUNS):
    return float(
        np.sqrt(np.mean([(np.asarray(release(), float) - truth) ** 2 for _ in range(runs)]))
    )


def errors(frame):
    print(
        f"error (root mean square) on {len(frame):,} ages at epsilon 1, {RUNS} runs (opendp {SLOW_RUNS})",
        flush=True,
    )
    for name in ASKED:
        truth = plain(name, frame)
        for relation in ("add-remove", "replace-one"):
            found = root_mean_square(ours(name, frame, relation), truth)
            words = [f"{found:.4g}"]
            for peer, (of, its) in installed().items():
                # histograms of diffprivlib are for one row more or less
                same = (its == relation) != (peer == "diffprivlib" and name == "histogram")
                release = of(name, frame) if same else None
                if release is not None:
                    runs = min(RUNS, SLOW_RUNS) if peer == "opendp" else RUNS
                    words.append(beside(found, root_mean_square(release, truth, runs), peer))
            print(f"  {name:13} {relation:12} {', '.join(words)}", flush=True)


def times():
    frame = made_up(ROWS)
    print(f"time on {ROWS:,} rows")
    for name in ASKED:
        bare = seconds(lambda name=name: plain(name, frame))
        for library, given in (("polars", frame), ("pandas", pd.DataFrame(frame.to_dict()))):
            found = seconds(ours(name, given, "add-remove"))
            words = [f"{found * 1e3:.1f} ms", beside(found, bare, "numpy and polars without noise")]
            if library == "polars":
                for peer, (of, _) in installed().items():
                    release = of(name, frame)
                    if release is not None:
                        words.append(beside(found, seconds(release), peer))
            print(f"  {name:13} {library:7} {', '.join(words)}", flush=True)


def seconds(work, repeats=3):
    """The least seconds of the processor."""
    least = np.inf
    for _ in range(repeats):
        start = time.process_time()
        work()
        least = min(least, time.process_time() - start)
    return max(least, 1e-7)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of the peers
    errors(people())
    times()
