"""Statistics of data frames: error and time, beside OpenDP and diffprivlib where they are installed.

OpenDP (its context on polars) and diffprivlib are asked at epsilon 1 for the neighbours they have:
one row more or less, or one row exchanged.  Times are seconds of the processor.  Data of the census
(Adult) and of California's housing are read where they lie beside the repository, else made up.
``--coverage N`` counts how many of N intervals of 95 % of quantiles cover, for each setting.
``--engines N`` asks DuckDB for statistics of N rows of a table, beside its own GROUP BY.
``--keys N`` counts the private keys that are kept of N persons who have many, in rounds and at once.
``--distinct N`` counts N rows by 10^5 private keys beside pandas, and by a public table on DuckDB.
``--tumult N`` asks Tumult Analytics (PySpark) N times too, with the Python that TUMULT_PYTHON names.
"""

import csv
import gzip
import json
import os
import resource
import subprocess
import tempfile
import time
import warnings

import numpy as np
import pandas as pd
import polars as pl

from accountant import Budget, Filter, Ledger
from algorithms.frames import (
    Category,
    Integer,
    Key,
    Number,
    Schema,
    count,
    histogram,
    join_public,
    mean,
    median,
    quantiles,
    sum_,
    top_k,
    variance,
)
from benchmarks.frame_peers import BINS, Case, installed
from benchmarks.measure import beside, options
from experiments.datasets import SHARED, present

OPTIONS = options(
    __doc__, rows=1_000_000, runs=1000, coverage=0, engines=0, keys=0, distinct=0, tumult=0
)
ROWS, RUNS = (4_000, 20) if OPTIONS.quick else (OPTIONS.rows, OPTIONS.runs)
SECONDS = 0.2 if OPTIONS.quick else 3.0  # of the processor, for the error of one library
FILES = {"adult": "adult/adult.csv.gz", "housing": "california_housing/housing.csv.gz"}
BOUNDS = {"age": (0, 100), "hours": (0, 100), "weight": (0, 1_500_000), "income": (0, 16)}
READ = {
    "adult": {"age": "age", "hours": "hours_per_week", "weight": "fnlwgt", "job": "occupation",
              "school": "education"},
    "housing": {"income": "median_income", "coast": "ocean_proximity"},
}  # fmt: skip
PLAIN = {"sum": np.sum, "mean": np.mean, "variance": np.var}
QUARTILES, DECILES = (0.25, 0.5, 0.75), tuple(np.round(np.arange(1, 10) / 10, 1).tolist())
CASES = [
    Case("count", "adult"), Case("sum", "adult", "age"), Case("mean", "adult", "age"),
    Case("mean", "housing", "income"), Case("variance", "adult", "age"),
    Case("median", "adult", "weight", shares=(0.5,)),
    Case("median", "housing", "income", shares=(0.5,)),
    Case("quartiles", "adult", "weight", shares=QUARTILES),
    Case("deciles", "housing", "income", shares=DECILES),
    Case("histogram", "adult", "age"), Case("histogram", "housing", "income"),
    Case("count", "adult", by="job"), Case("mean", "adult", "age", by="job"),
    Case("mean", "housing", "income", by="coast"), Case("top 10", "adult", "school"),
]  # fmt: skip


def people(data, rows):
    """The columns of a data set, or of so many made-up rows."""
    if rows is None and not OPTIONS.quick and present(SHARED, FILES[data]):
        with gzip.open(SHARED / FILES[data], "rt", newline="") as lines:
            found = list(csv.DictReader(lines))
        return pl.DataFrame({
            name: [float(one[key]) if name in BOUNDS else one[key].strip() for one in found]
            for name, key in READ[data].items()
        })  # fmt: skip
    rng, rows = np.random.default_rng(0), rows or ROWS
    labels = np.array([f"label {i}" for i in range(14)])
    made = {"age": rng.normal(38, 13, rows), "hours": rng.normal(40, 12, rows).round(),
            "weight": rng.lognormal(12, 0.5, rows), "income": rng.lognormal(1.2, 0.5, rows)}  # fmt: skip
    return pl.DataFrame({
        name: np.clip(made[name], *BOUNDS[name]) if name in BOUNDS
        else labels[rng.integers(14, size=rows)].tolist()
        for name in READ[data]
    })  # fmt: skip


def schema_of(frame, relation):
    kinds = {
        name: Number(*BOUNDS[name], missing=BOUNDS[name][0]) if name in BOUNDS
        else Category(frame[name].unique().sort().to_list())
        for name in frame.columns
    }  # fmt: skip
    return Schema(kinds, relation=relation)


def question(case, level=None):
    """The question, at epsilon 1; quantiles with no intervals, as the peers."""
    by = {"by": case.by} if case.by else {}
    if case.shares:
        asked = quantiles(case.column, case.shares, epsilon=1.0, confidence=level)
        return (
            median(case.column, epsilon=1.0, confidence=level) if case.kind == "median" else asked
        )
    return {
        "count": lambda: count(epsilon=1.0, **by),
        "sum": lambda: sum_(case.column, epsilon=1.0),
        "mean": lambda: mean(case.column, epsilon=1.0, **by),
        "variance": lambda: variance(case.column, epsilon=1.0),
        "histogram": lambda: histogram(case.column, BINS, epsilon=1.0),
        "top 10": lambda: top_k(case.column, 10, epsilon=1.0),
    }[case.kind]()


def ours(case, frame, relation, level=None):
    declared = schema_of(pl.DataFrame(frame), relation)
    ledger, asked = Filter(frame, Budget(1e9)), question(case, level)
    return lambda: asked.release(ledger, declared).value


def plain(case, frame):
    """The statistic itself, without noise; of labels in the order of their names."""
    numbers = frame[case.column].to_numpy() if case.column in BOUNDS else None
    if case.by:
        grouped = frame.group_by(case.by).agg(pl.len().alias("n"), *(
            [pl.col(case.column).mean()] if case.column else []
        ))  # fmt: skip
        return grouped.sort(case.by)[case.column or "n"].to_numpy()
    if case.kind == "top 10":
        return np.sort(frame[case.column].value_counts()["count"].to_numpy())[::-1][:10]
    if case.kind == "histogram":
        return np.histogram(numbers, BINS, BOUNDS[case.column])[0]
    if case.shares:
        return np.quantile(numbers, case.shares, method="hazen")
    return len(frame) if case.kind == "count" else PLAIN[case.kind](numbers)


def error_of(release, truth):
    """(root mean square of errors, relative standard error): of so many runs, or some seconds."""
    squares, start = [], time.process_time()
    while len(squares) < RUNS and (len(squares) < 10 or time.process_time() - start < SECONDS):
        squares.append(np.mean((np.asarray(release(), float) - truth) ** 2))
    square = np.mean(squares)
    off = np.std(squares) / np.sqrt(len(squares)) / (2 * square) if square else 0.0
    return float(np.sqrt(square)), float(off)


def errors():
    frames = {data: people(data, None) for data in FILES}
    sizes = ", ".join(f"{len(frame):,} of {data}" for data, frame in frames.items())
    print(f"error (root mean square) at epsilon 1, rows: {sizes}", flush=True)
    for case in CASES:
        frame, truth = frames[case.data], plain(case, frames[case.data])
        for relation in ("add-remove", "replace-one"):
            found, off = error_of(ours(case, frame, relation), truth)
            words = [f"{found:.4g}"]
            for name, peer in installed().items():
                same = relation in peer.relations(case.kind)
                release = peer.made(case, frame, BOUNDS, False) if same else None
                if release is not None:
                    its, apart = error_of(release, truth)
                    spread = found / its * np.hypot(off, apart)
                    words.append(f"{beside(found, its, name)} (± {spread:.2g})")
            if case.shares:
                whole, apart = error_of(ours(case, frame, relation, 0.95), truth)
                spread = whole / found * np.hypot(off, apart)
                words.append(f"with intervals {beside(whole, found, 'that')} (± {spread:.2g})")
            print(f"  {case!s:22} {relation:12} {', '.join(words)}", flush=True)


def times():
    frames = {data: people(data, ROWS) for data in FILES}
    print(f"time on {ROWS:,} rows")
    for case in CASES:
        frame = frames[case.data]
        bare = seconds(lambda case=case, frame=frame: plain(case, frame))
        for library, given in (("polars", frame), ("pandas", pd.DataFrame(frame.to_dict()))):
            found = seconds(ours(case, given, "add-remove"))
            words = [f"{found * 1e3:.1f} ms", beside(found, bare, "numpy and polars without noise")]
            for name, peer in installed().items() if library == "polars" else ():
                release = peer.made(case, frame, BOUNDS, True)
                if release is not None:
                    words.append(beside(found, seconds(release), name))
            print(f"  {case!s:22} {library:7} {', '.join(words)}", flush=True)


def seconds(work, least=0.3):
    """The least seconds of the processor, of some repeats."""
    found, total = [], 0.0
    while len(found) < 2 or (total < least and len(found) < 30):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
        total += found[-1]
    return max(min(found), 1e-7)


def coverage(runs):
    """How many intervals of 95 % hold the quantiles of their frames."""
    frames, whole = {data: people(data, None) for data in FILES}, Integer(0, 100)
    rng = np.random.default_rng(1)
    ages = frames["adult"]["age"].to_numpy()
    columns = {
        "income": (frames["housing"]["income"].to_numpy(), Number(0, 16)),
        "uniform": (rng.uniform(0, 100, 100_000), Number(0, 100)),
        "age": (ages, whole),
        "age, spread": (ages + rng.uniform(-0.5, 0.5, ages.size), Number(0, 100)),
        "hours": (frames["adult"]["hours"].to_numpy(), whole),
        "normal": (rng.normal(0, 1, 100_000), Number(-10, 10)),
        "log-normal": (rng.lognormal(0, 1, 100_000), Number(-20, 60)),
    }
    print(f"covered by intervals of 95 %, per cent of {runs:,} for each quantile", flush=True)
    print("| column | quantiles | rows | epsilon 0.1 | epsilon 1 | epsilon 4 |")
    medians = [("median", rows, name) for rows in (200, 2_000, 20_000) for name in columns]
    others = [("quartiles", rows, name) for rows in (200, 2_000) for name in ("income", "normal")]
    for words, rows, name in [*medians, *others]:
        shares = QUARTILES if words == "quartiles" else (0.5,)
        each = (covered(*columns[name], shares, rows, one, runs) for one in (0.1, 1.0, 4.0))
        found = [" ".join(f"{100 * one:.1f}" for one in some) for some in each]
        print(f"| {name} | {words} | {rows:,} | {' | '.join(found)} |", flush=True)


def covered(numbers, kind, shares, rows, epsilon, runs):
    """The share that covers, each of a sample of its own, of so many rows and of one more."""
    asked, declared, held = quantiles("x", shares, epsilon=epsilon), Schema({"x": kind}), []
    method = "inverted_cdf" if isinstance(kind, Integer) else "hazen"
    for seed in range(runs):
        # of an odd number a median is a row, of an even one it lies between two
        rng, size = np.random.default_rng(seed), rows + seed % 2
        sample = rng.choice(numbers, size, replace=False)
        ledger = Filter(pl.DataFrame({"x": sample}), Budget(1e9), rng=seed)
        truth = np.quantile(sample, shares, method=method)
        low, high = asked.release(ledger, declared).interval().T
        held.append((low <= truth) & (truth <= high))
    return np.mean(held, axis=0)


def engines(rows):
    """Time and memory of a table of DuckDB, beside the statements that its users would write."""
    import duckdb

    with tempfile.TemporaryDirectory() as folder:
        database = duckdb.connect(f"{folder}/bench.db")
        database.execute(f"""CREATE TABLE people AS SELECT random() * 120 AS age, ['clerk', 'cook',
            'guard', 'nurse', 'pilot', 'other'][1 + i % 6] AS job, CAST(random() * {rows // 3} AS
            BIGINT) AS id FROM range({rows}) AS made(i)""")
        labels = ["clerk", "cook", "guard", "nurse", "pilot"]
        kinds = {"age": Number(0, 100), "job": Category(labels)}
        own_rows = (
            "SELECT job, greatest(least(age, 100), 0) AS age, id FROM people "
            f"WHERE age IS NOT NULL AND job IN {tuple(labels)}"
        )
        ranked = (
            f"SELECT *, row_number() OVER (PARTITION BY id ORDER BY age) AS rank FROM ({own_rows})"
        )
        own_persons = f"SELECT * FROM ({ranked}) WHERE rank <= 2"
        print(f"{rows:,} rows of DuckDB, in seconds of the processor", flush=True)
        for words, own, facts in (
            ("each row a person", own_rows, {}),
            ("two rows a person, ordered by age", own_persons,
             {"person": "id", "rows_per_person": 2, "order": "age"}),
        ):  # fmt: skip
            schema = Schema(kinds, **facts)
            ledger = Filter(database.table("people"), Budget(1e9))
            for name, asked, statement in (
                ("count by job", count(by="job", epsilon=1.0), "SELECT job, count(*)"),
                ("mean of age by job", mean("age", by="job", epsilon=1.0), "SELECT job, avg(age)"),
                ("variance of age by job", variance("age", by="job", epsilon=1.0),
                 "SELECT job, var_pop(age)"),
            ):  # fmt: skip
                query = f"{statement} FROM ({own}) GROUP BY job"
                bare = seconds(lambda query=query: database.execute(query).fetchall(), least=2.0)
                found = seconds(lambda asked=asked: asked.release(ledger, schema), least=2.0)
                print(f"  {words}: {name:22} {found:.3f} s, {beside(found, bare, 'its own GROUP BY')}",
                      flush=True)  # fmt: skip
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"  peak memory of this process: {most:.2f} GiB")


def keys(persons):
    """Private keys that are kept, of persons of whom few have very many keys."""
    print(
        f"keys kept of {persons:,} persons, epsilon 1 and delta 1e-6 of a count by keys, mean of 5"
    )
    print("| keys of a person | frequencies | keys that count | at once | in rounds | |")
    for tail, zipf in ((1.0, 1.0), (0.7, 1.3), (1.5, 1.0)):
        rng = np.random.default_rng(0)
        held = np.minimum((rng.pareto(tail, persons) + 1) * 2, 200).astype(int)
        chances = np.cumsum(1 / np.arange(1, 200_001) ** zipf)
        person = np.repeat(np.arange(persons), held)
        key = np.searchsorted(chances, rng.random(person.size) * chances[-1])
        frame = pl.DataFrame({"id": person, "key": key})
        for most in (1, 2, 5, 10, 50):
            schema = Schema({"key": Key(most)}, person="id", rows_per_person=200)
            kept = []
            for noise in ("laplace", "auto"):
                asked = count(by="key", epsilon=1.0, delta=1e-6, noise=noise)
                plan = asked.plan(schema)
                sizes = [len(asked.release(Ledger(frame, plan, rng=seed), schema).value)
                         for seed in range(5)]  # fmt: skip
                kept.append(np.mean(sizes))
            words = f"Pareto {tail:g}, {held.mean():.1f} on average | Zipf {zipf:g} | {most}"
            once, rounds = kept
            ratio = beside(rounds, once, "one selection")
            print(f"| {words} | {once:.1f} | {rounds:.1f} | {ratio} |", flush=True)


def distinct(rows):
    """Seconds of a count by private keys, and of one by a public table of keys on DuckDB."""
    import duckdb

    rng = np.random.default_rng(1)
    numbers = rng.integers(0, 100_000, rows)
    texts = np.array([f"key{i}" for i in range(100_000)], dtype=object)
    asked, schema = count(by="key", epsilon=1.0, delta=1e-6), Schema({"key": Key()})
    print(f"a count of {rows:,} rows by 10^5 keys, seconds of the processor, beside pandas groupby")
    for words, dtype in (("whole numbers", "int64"), ("pandas str", "str"), ("objects", object)):
        cells = numbers if dtype == "int64" else texts[numbers]
        frame = pd.DataFrame({"key": pd.Series(cells, dtype=dtype)})
        ledger = Filter(frame, Budget(1e6, delta=0.5), notion="pure", rng=0)
        took = seconds(lambda ledger=ledger: asked.release(ledger, schema), least=2.0)
        bare = seconds(lambda frame=frame: frame.groupby("key").size(), least=2.0)
        print(f"  {words}: {took:.2f} s, {beside(took, bare, 'pandas')}", flush=True)
    keys_of_table, many = texts[:10_000], numbers[:1_000_000] % 10_000
    table = pd.DataFrame({"key": keys_of_table, "size": rng.random(10_000)})
    visits = pd.DataFrame({"key": texts[many], "cost": rng.random(many.size)})
    database = duckdb.connect()
    database.register("made", visits)
    database.execute("CREATE TABLE visits AS SELECT * FROM made")
    joined = join_public(Schema({"cost": Number(0, 1)}), table, on="key")
    ledger = Filter(database.table("visits"), Budget(1e6), rng=0)
    took = seconds(lambda: mean("size", epsilon=1.0).release(ledger, joined), least=2.0)
    print(f"  mean of a public table of 10^4 keys, {many.size:,} rows of DuckDB: {took:.2f} s")


def tumult(runs):
    """Errors and seconds by the clock of Tumult Analytics, in its own Python, beside ours."""
    with tempfile.TemporaryDirectory() as folder:
        frame = people("adult", None)
        frame.write_csv(f"{folder}/adult.csv")
        python = os.environ.get("TUMULT_PYTHON", "python")
        script = os.path.abspath(os.path.join(os.path.dirname(__file__), "tumult_frames.py"))
        asked = [python, script, folder, str(runs)]
        said = subprocess.run(asked, check=True, capture_output=True, text=True, cwd=folder,
                              env={**os.environ, "PYSPARK_PYTHON": python}).stdout  # fmt: skip
    print(f"{len(frame):,} rows of adult, epsilon 1, a row more or less, {runs} answers of Tumult")
    for line in said.splitlines():
        if not line.startswith("{"):
            continue
        answer = json.loads(line)
        case = Case(*answer["case"])
        case = case._replace(shares=(0.5,)) if case.kind == "median" else case
        truth, release = plain(case, frame), ours(case, frame, "add-remove")
        its = np.sqrt(np.mean((np.array(answer["values"]) - truth) ** 2))
        found, _ = error_of(release, truth)
        start = time.perf_counter()
        release()
        took = time.perf_counter() - start
        print(f"  {case!s:14} error {found:.4g}, {beside(found, its, 'Tumult')}; {took:.3f} s by the "
              f"clock, {beside(took, answer['seconds'], 'Tumult')}", flush=True)  # fmt: skip


def main():
    warnings.simplefilter("ignore")  # of the peers
    if OPTIONS.coverage:
        coverage(OPTIONS.coverage)
        return
    for work, size in (
        (engines, OPTIONS.engines),
        (keys, OPTIONS.keys),
        (distinct, OPTIONS.distinct),
        (tumult, OPTIONS.tumult),
    ):
        if size:
            work(size)
            return
    errors()
    times()


if __name__ == "__main__":
    main()
