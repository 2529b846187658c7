"""One seed gives the same bits on every engine, whatever it leaves open."""

import datetime as dt

import dask
import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from accountant import Budget, Filter, Ledger, ParameterError
from accountant.ledger.frames import FrameFacts
from algorithms.frames import (
    Category,
    Date,
    Flag,
    Integer,
    Key,
    Number,
    Schema,
    col,
    contingency,
    count,
    histogram,
    join_public,
    mean,
    median,
    persons,
    quantiles,
    regression,
    sum_,
    top_k,
    variance,
)
from tests.algorithms.frames.engines_of import MARKED, on

COLUMNS = {
    "age": Number(0, 100), "kids": Integer(0, 8, missing=0),
    "change": Number(-3.1, 5.7, missing=0.5),
    "job": Category(["cook", "nurse"], missing="other"), "owner": Flag(), "code": Category([1, 2]),
    "day": Date("2024-01-10", "2025-02-20"), "shop": Key(2), "time": Integer(0, 9),
}  # fmt: skip
ASKED = [
    count(by=["job", "owner"], epsilon=1.0),
    sum_("change", where=(col("age") > 30) & ~(col("job") == "cook"), epsilon=1.0),
    mean("age", by="code", epsilon=1.0),
    variance("age", rho=0.5),
    contingency(["job", "age"], bins={"age": 7}, epsilon=1.0),
    histogram("age", [10, 20.5, 60, 99], epsilon=1.0),
    histogram("day", "month", epsilon=1.0),
    count(where=(col("day") >= "2024-06-01") | (col("code").is_in([2])), epsilon=1.0),
    regression("change", ["age", "job", "owner"], epsilon=1.0, delta=1e-6),
    top_k("job", 2, epsilon=1.0),
    top_k("job", 1, by="owner", epsilon=1.0),
    median("age", epsilon=1.0),
    quantiles("kids", [0.2, 0.7], by="owner", epsilon=2.0),
    mean("age", by="shop", epsilon=3.0, delta=1e-3),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set({"scheduler": "sync", "dataframe.convert-string": False}):
        yield


def some_rows(n=300, seed=3):
    """Rows of persons with values that engines treat in their own ways."""
    rng = np.random.default_rng(seed)

    def gaps(values, share=0.1):
        return [None if gap else v for v, gap in zip(values, rng.random(n) < share, strict=True)]

    ages = rng.normal(45, 40, n)
    ages[::9] = np.nan
    ages[1::9] = rng.choice(
        [-0.0, 0.0, np.inf, -np.inf, 50.0, 100.0, 25.0, 5e-324], ages[1::9].size
    )
    start = dt.datetime(2023, 11, 1)
    times = [start + dt.timedelta(hours=int(h)) for h in rng.integers(0, 24 * 600, n)]
    return pa.table({
        "age": pa.array(gaps(ages.tolist()), pa.float64(), from_pandas=False),
        "kids": pa.array(gaps((rng.integers(-4, 40, n) / 2).tolist()), pa.float64()),
        "change": pa.array(gaps(rng.integers(-5, 8, n).tolist()), pa.int64()),
        "job": pa.array(gaps(rng.choice(["cook", "Cook", "nurse", "nurse ", ""], n).tolist())),
        "owner": pa.array(gaps((rng.random(n) < 0.3).tolist())),
        "code": pa.array(gaps(rng.integers(0, 4, n).tolist()), pa.int64()),
        "day": pa.array(gaps(times), pa.timestamp("us")),
        "shop": pa.array(gaps(rng.choice(["a", "b", "c", "", "\u00e9", "C"], n).tolist())),
        "id": pa.array(gaps(rng.integers(0, 80, n).tolist(), 0.02), pa.int64()),
        "time": pa.array(gaps(rng.integers(0, 9, n).tolist()), pa.int64()),
    })  # fmt: skip


TABLE = some_rows()
SCHEMAS = {
    "rows": Schema(COLUMNS),
    "order": Schema(COLUMNS, "id", 2, order="time"),
    "hash": Schema(COLUMNS, "id", 2, order="hash"),
}


def answered(query, frame, schema):
    answer = query.release(Ledger(frame, query.plan(schema), rng=4), schema)
    return np.asarray(answer.value).tolist()


def asked_of(name):
    """The questions; a hash orders no rows that have a private key."""
    return [query for query in ASKED if name != "hash" or "shop" not in query.used]


EXPECTED = {
    name: [answered(query, on("polars", TABLE), schema) for query in asked_of(name)]
    for name, schema in SCHEMAS.items()
}


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("engine", MARKED)
def test_one_seed_gives_the_same_bits_on_every_engine(engine, name):
    frame = on(engine, TABLE)
    for query, expected in zip(asked_of(name), EXPECTED[name], strict=True):
        if engine in {"SQLFrame", "Ibis"} and {"job", "shop"} & set(query.used):
            with pytest.raises(ParameterError, match="whose texts may be equal where letters"):
                answered(query, frame, SCHEMAS[name])
        else:
            assert answered(query, frame, SCHEMAS[name]) == expected, str(query)


@pytest.mark.parametrize("engine", MARKED)
def test_rounds_of_a_selection_keep_the_same_keys_on_every_engine(engine):
    rng, rows = np.random.default_rng(1), 4000
    shops = pa.array([*rng.choice(["a", "b", "\u00e9"], rows - 400).tolist(),
                      *(f"shop {i % 90}" for i in range(400))])  # fmt: skip
    table = pa.table({"shop": shops, "id": pa.array(rng.permutation(np.arange(rows) // 8)),
                      "time": pa.array(rng.integers(0, 9, rows))})  # fmt: skip
    schema = Schema({"shop": Key(8)}, "id", 8, order="time")
    query = count(by="shop", epsilon=6.0, delta=1e-3)
    assert len(list(query.plan(schema).leaves())) == 4
    if engine in {"SQLFrame", "Ibis"}:
        with pytest.raises(ParameterError, match="whose texts may be equal where letters"):
            answered(query, on(engine, table), schema)
        return
    asked = [query.release(Ledger(on(one, table), query.plan(schema), rng=2), schema)
             for one in ("Arrow", engine)]  # fmt: skip
    kept = [answer._columns() for answer in asked]
    assert kept[0] == kept[1]
    assert {"a", "b", "\u00e9"} <= set(kept[0]["shop"])


SHUFFLED = TABLE.take(np.random.default_rng(5).permutation(len(TABLE)))


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("engine", ["pandas", "polars", "Arrow", "DuckDB"])
def test_no_answer_depends_on_the_order_of_the_rows(engine, name):
    for query, expected in zip(asked_of(name)[::3], EXPECTED[name][::3], strict=True):
        assert answered(query, on(engine, SHUFFLED), SCHEMAS[name]) == expected


MOVING = [
    count(by=["job", "owner"], epsilon=1.0),
    sum_("change", where=col("age") > 30, epsilon=1.0),
    mean("age", by="code", epsilon=1.0),
    contingency(["job", "age"], bins={"age": 7}, epsilon=1.0),
    histogram("day", "month", epsilon=1.0),
]


@pytest.mark.parametrize("name", ["order", "hash"])
@pytest.mark.parametrize("engine", MARKED)
def test_no_person_moves_sums_by_more_on_any_engine(engine, name):
    """A person's rows leave the table: all sums move by at most what the plan says."""
    schema, rng = SCHEMAS[name], np.random.default_rng(7)
    whole = on(engine, TABLE)
    for query in MOVING:
        before = np.array(query.sums(whole, schema, "laplace"), dtype=float)
        sensitivity = query.mechanism(schema).sensitivity
        for person in rng.choice(80, 2, replace=False).tolist():
            left = TABLE.filter(pc.fill_null(pc.not_equal(TABLE["id"], person), True))
            after = np.array(query.sums(on(engine, left), schema, "laplace"), dtype=float)
            assert np.abs(before - after).sum() <= sensitivity


def test_texts_of_a_database_are_equal_only_if_all_letters_are():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (id VARCHAR COLLATE NOCASE, job VARCHAR COLLATE NOCASE)")
    connection.execute("INSERT INTO t VALUES ('A', 'cook'), ('a', 'Cook'), ('a', 'cook')")
    schema = Schema({"job": Category(["cook"])}, person="id", order="hash")
    assert count(by="job", epsilon=1.0).sums(connection.table("t"), schema, "laplace") == 2
    every = Schema({"job": Category(["cook"], missing="other")}, person="id", order="hash")
    sums = count(by="job", epsilon=1.0).sums(connection.table("t"), every, "laplace")
    assert sums.sum() == 2


@pytest.mark.parametrize("collation", ["", "COLLATE NOCASE"])
def test_keys_of_a_public_table_are_equal_only_if_all_letters_are(collation):
    connection = duckdb.connect()
    connection.execute("SET default_collation = 'NOCASE'")
    connection.execute(f"CREATE TABLE t (shop VARCHAR {collation})")
    connection.execute("INSERT INTO t VALUES ('a'), ('A'), ('a'), ('b'), (NULL)")
    shops = pd.DataFrame({"shop": ["a", "A", "B"], "place": ["x", "y", "z"]})
    schema = join_public(Schema({"age": Number(0, 9)}), shops, on="shop")
    sums = count(by="place", epsilon=1.0).sums(connection.table("t"), schema, "laplace")
    assert sums.tolist() == [2, 1, 0]


def test_labels_that_are_one_float_double_no_rows_of_a_database():
    relation = duckdb.connect().sql(f"SELECT 1 AS id, {2**53} AS big")
    schema = Schema({"big": Category([2**53, 2**53 + 1])}, "id", 2, order="hash")
    assert count("big", epsilon=1.0).sums(relation, schema, "laplace") == 1


@pytest.mark.parametrize(("kinds", "facts", "words"), [
    ({"text": Category(["a"])}, {}, "column 'text'"), ({"text": Key()}, {}, "column 'text'"),
    ({"kids": Integer(0, 8)}, {"person": "id", "order": "text"}, "order 'text'"),
    ({"kids": Integer(0, 8)}, {"person": "text", "order": "hash"}, "person 'text'"),
])  # fmt: skip
def test_texts_that_an_engine_compares_in_its_own_way_are_refused(kinds, facts, words):
    types = {"text": "String_of_the_engine", "kids": "Int64", "id": "Int64"}
    with pytest.raises(ParameterError, match=f"{words} must be a column of whole numbers on this"):
        Schema(kinds, **facts).check_frame(FrameFacts("pyarrow", types, ordered=False), [*kinds])


def test_a_time_with_a_zone_counts_as_the_date_there():
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'Asia/Tokyo'")
    relation = connection.sql("SELECT TIMESTAMPTZ '2024-01-31 20:00:00+00' AS day")
    query = histogram("day", "month", epsilon=1.0)
    sums = query.sums(relation, Schema({"day": Date("2024-01-01", "2024-12-31")}), "laplace")
    assert sums.argmax() == 1


def test_rows_of_an_engine_without_an_order_need_one():
    ledger = Filter(on("DuckDB", TABLE), Budget(9.0), rng=0)
    query = mean("age", epsilon=1.0)
    with pytest.raises(ParameterError, match="order must be given, as tables of this engine"):
        query.release(ledger, Schema(COLUMNS, "id", 2))
    with pytest.raises(ParameterError, match="order must be a column of the frame"):
        query.release(ledger, Schema(COLUMNS, "id", 2, order="tme"))
    with pytest.raises(ParameterError, match="order 'owner' must be a column of numbers"):
        query.release(ledger, Schema(COLUMNS, "id", 2, order="owner"))
    with pytest.raises(ParameterError, match="order must be a column where rows have a Key"):
        ASKED[-1].release(ledger, SCHEMAS["hash"])
    with pytest.raises(ParameterError, match="where a column names persons"):
        Schema(COLUMNS, order="time")
    assert ledger.spent == 0


def test_rows_without_a_place_come_last():
    rows = {"id": [1, 1, 1, 2, 2], "time": [None, 3, 1, None, None], "kids": [8, 5, 3, 7, 7]}
    for limit, expected in ((1, 3 + 7), (2, 3 + 5 + 7 + 7), (3, 30)):
        schema = Schema({"kids": Integer(0, 8)}, "id", limit, order="time")
        for engine in ("pandas", "polars", "Arrow", "DuckDB"):
            frame = on(engine, pa.table(rows))
            assert sum_("kids", epsilon=1.0).sums(frame, schema, "laplace") == expected


def test_a_schema_keeps_its_order(tmp_path):
    path = str(tmp_path / "schema.toml")
    SCHEMAS["order"].to_toml(path)
    assert Schema.from_toml(path) == SCHEMAS["order"] != SCHEMAS["hash"]
    assert hash(Schema.from_toml(path)) == hash(SCHEMAS["order"])


@pytest.mark.parametrize("number", [0.5, 1.5, 2.5, -0.5])
def test_halves_are_rounded_up_on_every_engine(number):
    for engine in ("pandas", "polars", "Arrow", "DuckDB"):
        frame = on(engine, pa.table({"kids": [number]}))
        schema = Schema({"kids": Integer(-8, 8)})
        assert sum_("kids", epsilon=1.0).sums(frame, schema, "laplace") == np.floor(number + 0.5)


@pytest.mark.parametrize("engine", MARKED)
def test_rows_are_counted_whatever_their_columns_are_called(engine):
    texts = {name: ["a", None, "b"] for name in ("place", "person", "row", "count", "c0")}
    frame, schema = on(engine, pa.table(texts)), Schema({"age": Number(0, 1)})
    ledger = Filter(frame, Budget(100.0), rng=0)
    assert count(epsilon=80.0).release(ledger, schema).value == 3
    assert persons(epsilon=1.0).sums(frame, schema, "laplace") == 3
