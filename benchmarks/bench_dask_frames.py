"""Statistics of a Dask frame on two workers: what is fetched and sent, and the same bits as pandas.

Persons have three rows, in any partitions, of which two count.
"""

import os
import resource
import subprocess
import sys
import time

import numpy as np
import pandas as pd

from accountant import Budget, Filter, Ledger
from algorithms.frames import (
    Category,
    Flag,
    Key,
    Number,
    Schema,
    contingency,
    count,
    mean,
    median,
    regression,
    sum_,
    top_k,
    variance,
)
from benchmarks.bench_dask import between_workers, processor_seconds
from benchmarks.measure import beside, options

JOBS = ["clerk", "cook", "guard", "nurse", "pilot"]
SCHEMA = Schema(
    {"age": Number(18, 90), "wage": Number(0, 100_000), "job": Category(JOBS), "owner": Flag(),
     "shop": Key()}, person="id", rows_per_person=2,
)  # fmt: skip
ASKED = [
    count(by=["job", "owner"], epsilon=1.0),
    sum_("wage", epsilon=1.0),
    mean("wage", by="job", epsilon=1.0),
    variance("age", epsilon=1.0),
    contingency(["age", "job"], bins={"age": 12}, epsilon=1.0),
    regression("wage", ["age", "job", "owner"], epsilon=1.0, delta=1e-6),
    top_k("job", 2, epsilon=1.0),
    median("wage", epsilon=1.0),
    count(by="shop", epsilon=1.0, delta=1e-6),
]  # fmt: skip
CHUNKS = 50  # rows are made in so many, of which partitions have some


def sizes(rows):
    """Return how many chunks there are, the rows of each, and how many persons."""
    return CHUNKS, rows // CHUNKS, max(1, rows // 3)


def rows_of(chunks, size, persons):
    """Return the rows of some chunks; workers make their own."""
    return pd.concat([chunk(seed, size, persons) for seed in chunks], ignore_index=True)


def chunk(seed, size, persons):
    """Return rows of persons from anywhere."""
    rng = np.random.default_rng(seed)
    age, job = rng.uniform(16, 95, size), rng.integers(0, len(JOBS) + 1, size)
    wage = 800 * age + 5_000 * job + rng.normal(0, 9_000, size)
    names = np.array([*JOBS, "other"], dtype=object)
    shops = np.array([f"shop {i}" for i in range(2_000)], dtype=object)
    found = {
        "id": rng.integers(0, persons, size),
        "age": age,
        "wage": wage,
        "job": names[job],
        "owner": rng.random(size) < 0.4,
        "shop": shops[rng.integers(0, 2_000, size)],
    }
    return pd.DataFrame(found).astype({"job": "string[pyarrow]", "shop": "string[pyarrow]"})


def answers(frame):
    """Yield (question, answer)."""
    for asked in ASKED:
        yield asked, asked.release(Ledger(frame, asked.plan(SCHEMA), rng=0), SCHEMA)


def digest(answer):
    """Return an answer in text, to the last bit."""
    return "bits:" + np.asarray(answer.value).tobytes().hex()


class Fetched:
    """Counts the bytes of what is computed and brought to this process."""

    def __init__(self):
        import dask

        self.bytes, self._compute = 0, dask.compute
        dask.compute = self

    def __call__(self, *tasks, **facts):
        """Count, and compute as before."""
        from cloudpickle import dumps

        found = self._compute(*tasks, **facts)
        self.bytes += len(dumps(found))
        return found


def framed(rows, partitions):
    """Return a Dask frame of so many partitions, with the same rows in the same order."""
    import dask.dataframe as dd

    count, size, persons = sizes(rows)
    chunks = np.array_split(np.arange(count), partitions)
    meta = rows_of([0], 2, persons).iloc[:0]
    return dd.from_map(rows_of, [c.tolist() for c in chunks], size=size, persons=persons, meta=meta)


def measured(client, rows, partitions):
    """Print the traffic and the seconds of each question."""
    frame = framed(rows, partitions).persist()
    gate, fetched = Filter(frame, Budget(1.0)), Fetched()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{gate.shape[0]:,} rows in {partitions} partitions")
    made, moved, cpu = answers(frame), between_workers(client), processor_seconds(client)
    column, most = 8 * gate.shape[0], {"fetched": 0, "sent between workers": 0}
    while True:
        fetched.bytes, start = 0, time.perf_counter()
        try:
            asked, _ = next(made)
        except StopIteration:
            break
        now, used = between_workers(client), processor_seconds(client)
        print(f"  {asked!s:40} {fetched.bytes:>10,} bytes fetched, {now - moved:>13,} sent "
              f"between workers, {time.perf_counter() - start:6.1f} s, {used - cpu:6.1f} s of "
              "processors")  # fmt: skip
        for way, amount in zip(most, (fetched.bytes, now - moved), strict=True):
            most[way] = max(most[way], amount)
        moved, cpu = now, used
    for way, amount in most.items():
        print(f"  {way}: at most {beside(amount, column, 'a column of numbers')}")
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"  peak memory of this process: {after / 1024:,.0f} MB, {(after - before) / 1024:,.0f} MB "
          "of it after the start")  # fmt: skip


def main():
    given = options(__doc__, rows=10_000_000, partitions=50, compared=1_000_000)
    rows, partitions, compared = given.rows, given.partitions, given.compared
    if given.quick:
        rows, partitions, compared = 3_000, 3, 2_000
    if os.environ.get("BENCH_PANDAS"):  # in a process of its own, as it holds all rows
        count, size, persons = sizes(compared)
        frame = rows_of(range(count), size, persons)
        print(" ".join(digest(answer) for _, answer in answers(frame)))
        return
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=1 if given.quick else os.cpu_count(), threads_per_worker=1,
            processes=not given.quick, dashboard_address=":0",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        measured(client, rows, partitions)
        counts = (partitions, 7, 1)
        frames = [framed(compared, count) for count in counts]
        found = [[digest(answer) for _, answer in answers(frame)] for frame in frames]
    command = [sys.executable, "-m", "benchmarks.bench_dask_frames", "--compared", str(compared)]
    whole = subprocess.run(command, env={**os.environ, "BENCH_PANDAS": "1"}, check=True,
                           capture_output=True, text=True).stdout.split()  # fmt: skip
    same = all(one == whole for one in found)
    print(f"{compared:,} rows, the same bits for {', '.join(map(str, counts))} partitions and for "
          f"pandas: {same}")  # fmt: skip


if __name__ == "__main__":
    main()
