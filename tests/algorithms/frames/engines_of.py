"""The same rows as frames of every engine that is installed."""

import functools
import importlib.util
import shutil

import dask.dataframe as dd
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

SPARK_TYPES = {
    "int64": "long", "int32": "int", "double": "double", "string": "string", "bool": "boolean",
    "large_string": "string",
    "date32[day]": "date", "timestamp[us]": "timestamp_ntz", "float": "float",
}  # fmt: skip


def plain_pandas(table):
    """A pandas frame in which whole numbers stay such where some are missing."""
    return table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)


@functools.cache
def spark():
    from pyspark.sql import SparkSession

    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "3",
                "spark.sql.session.timeZone": "UTC"}  # fmt: skip
    session = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def in_spark(table):
    types = ", ".join(f"`{one.name}` {SPARK_TYPES[str(one.type)]}" for one in table.schema)
    return spark().createDataFrame([tuple(row.values()) for row in table.to_pylist()], types)


def in_sqlframe(table):
    from sqlframe.duckdb import DuckDBSession

    connection = duckdb.connect()
    connection.from_arrow(table).create("rows")
    return DuckDBSession(connection).table("rows")


def in_ibis(table):
    import ibis

    return ibis.memtable(table)


ENGINES = {
    "pandas": plain_pandas,
    "pandas of Arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_arrow,
    "lazy polars": lambda table: pl.from_arrow(table).lazy(),
    "Arrow": lambda table: table,
    "DuckDB": lambda table: duckdb.connect().from_arrow(table),
    "Dask": lambda table: dd.from_pandas(plain_pandas(table), npartitions=3, sort=False),
    "Spark": in_spark,
    "SQLFrame": in_sqlframe,
    "Ibis": in_ibis,
}
MODULES = {"Spark": "pyspark", "SQLFrame": "sqlframe", "Ibis": "ibis"}
HERE = [
    name for name in ENGINES
    if name not in MODULES or importlib.util.find_spec(MODULES[name])
    if name != "Spark" or shutil.which("java")
]  # fmt: skip
# Engines that take seconds: they run with the slow tests.
MARKED = [
    pytest.param(name, marks=pytest.mark.slow) if name in {"Dask", *MODULES} else name
    for name in HERE
]


def on(engine, table):
    """The rows of a table of Arrow on an engine."""
    return ENGINES[engine](table)
