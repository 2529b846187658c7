"""Answers of Tumult Analytics for `bench_frames --tumult`, run by a Python that has it.

`pip install tmlt-analytics` asks for an older numpy than ours, so it has an environment of its own.
Prints for each question a line of JSON: the case, the answers, and the median seconds of one.
"""

import json
import sys
import time

import numpy as np

CASES = (("count", "adult"), ("sum", "adult", "age"), ("mean", "adult", "age"),
         ("median", "adult", "weight"), ("count", "adult", "", "job"))  # fmt: skip
BOUNDS = {"age": (0, 100), "weight": (0, 1_500_000)}


def main(folder: str, runs: int) -> None:
    """Ask each question so many times."""
    from pyspark.sql import SparkSession
    from tmlt.analytics import AddOneRow, KeySet, PureDPBudget, QueryBuilder, Session

    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    rows = spark.read.csv(f"{folder}/adult.csv", header=True, inferSchema=True)
    jobs = sorted(row.job for row in rows.select("job").distinct().collect())
    session = Session.from_dataframe(
        PureDPBudget(float("inf")), "rows", rows, protected_change=AddOneRow()
    )
    for case in CASES:
        kind, column, query = case[0], (*case, "")[2], QueryBuilder("rows")
        if len(case) > 3:
            query = query.groupby(KeySet.from_dict({case[3]: jobs}))
        asked = {
            "count": lambda query=query: query.count("answer"),
            "sum": lambda query=query: query.sum(column, *BOUNDS[column], "answer"),
            "mean": lambda query=query: query.average(column, *BOUNDS[column], "answer"),
            "median": lambda query=query: query.median(column, *BOUNDS[column], "answer"),
        }[kind]()
        values, seconds = [], []
        for _ in range(runs):
            start = time.perf_counter()
            table = session.evaluate(asked, PureDPBudget(1.0)).toPandas()
            seconds.append(time.perf_counter() - start)
            if len(case) > 3:
                table = table.sort_values(case[3])
            values.append([float(value) for value in table["answer"]])
        said = {"case": case, "values": values, "seconds": float(np.median(seconds))}
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
