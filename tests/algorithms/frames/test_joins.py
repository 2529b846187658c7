"""Joins with a public table and with a private one: values, what a person moves, and refusals."""

import datetime as dt
import math

import dask
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from accountant import Budget, Filter, Ledger, ParameterError
from accountant.numerics.rounding import round_up
from algorithms.frames import (
    Category,
    Flag,
    Integer,
    Key,
    Number,
    Schema,
    bounds,
    col,
    count,
    join_private,
    join_public,
    mean,
    median,
    persons,
    regression,
    sum_,
    top_k,
    variance,
)
from algorithms.frames.cells import table_shape
from tests.algorithms.frames.engines_of import HERE, on

TEXTLESS = {"SQLFrame", "Ibis"}  # engines whose texts are refused
ENGINES = [
    pytest.param(e, marks=pytest.mark.slow) if e in {"Dask", "Spark"} else e
    for e in HERE if e not in TEXTLESS
]  # fmt: skip


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set({"scheduler": "sync", "dataframe.convert-string": False}):
        yield


def gaps(rng, values, share=0.1):
    return [None if gap else v for v, gap in zip(values, rng.random(len(values)) < share,
                                                 strict=True)]  # fmt: skip


def visits(n=200, people=40, seed=0, first=0):
    rng = np.random.default_rng(seed)
    return pa.table({
        "id": pa.array(gaps(rng, (first + rng.integers(0, people, n)).tolist(), 0.03), pa.int64()),
        "shop": pa.array(gaps(rng, rng.choice(["a", "A", "b", "c", "é", ""], n).tolist())),
        "code": pa.array(gaps(rng, rng.integers(0, 6, n).tolist()), pa.int64()),
        "cost": pa.array(gaps(rng, rng.uniform(-5, 60, n).tolist()), pa.float64()),
        "time": pa.array(rng.permutation(n).tolist(), pa.int64()),
    })  # fmt: skip


def owners(n=40, people=40, seed=1, first=0):
    rng = np.random.default_rng(seed)
    return pa.table({
        "own": pa.array((first + rng.integers(0, people, n)).tolist(), pa.int64()),
        "shop": pa.array(gaps(rng, rng.choice(["a", "A", "b", "d", "é"], n).tolist())),
        "age": pa.array(gaps(rng, rng.uniform(-9, 120, n).tolist()), pa.float64()),
        "job": pa.array(gaps(rng, rng.choice(["cook", "nurse"], n).tolist())),
    })  # fmt: skip


SHOPS = pd.DataFrame({
    "shop": ["a", "b", "c", "é", "z"], "region": ["north", "south", None, "north", "west"],
    "rent": [1.5, math.nan, -0.0, 9.0, 2.0], "open": [True, False, True, True, False],
    "since": pd.to_datetime(["2020-01-02", "2021-03-04", "2020-01-02", "2024-05-06", None]),
})  # fmt: skip
SIZES = pl.DataFrame({"code": [0, 1, 2, 9], "size": [10, 20, 90, 40], "flat": [7, 7, 7, 7]})
VISITS = {"cost": Number(0, 50)}


def with_public(**facts):
    joined = join_public(Schema(VISITS, **facts), SHOPS, on="shop")
    joined = join_public(joined, SIZES, on="code", columns={"size": Integer(0, 50, missing=3)})
    return joined.derive(paid=col("cost") * col("rent"), unknown=col("region").is_null())


ASKED = [
    count(by=["region", "open"], epsilon=1.0), sum_("rent", by="unknown", epsilon=1.0),
    count(by={"since": "year"}, where=col("size") > 15, epsilon=1.0),
    mean("paid", by="region", epsilon=1.0), persons(by="open", epsilon=1.0),
    median("size", epsilon=1.0), top_k("region", 2, epsilon=1.0),
]  # fmt: skip


def bits(query, frame, schema):
    value = query.release(Ledger(frame, query.plan(schema), rng=4), schema).value
    return np.asarray(value).tolist()


TABLE = visits()
PUBLIC = with_public(person="id", rows_per_person=2, order="hash")
EXPECTED = [bits(query, on("polars", TABLE), PUBLIC) for query in ASKED]


def test_domains_follow_from_the_public_table():
    kinds = PUBLIC.columns
    assert kinds["region"] == Category(["north", "south", "west"])
    assert kinds["rent"].bounds == (0, 9)
    assert (kinds["open"], kinds["size"].bounds) == (Flag(), (0, 50))
    assert (kinds["since"].low, kinds["since"].high) == ("2020-01-02", "2024-05-06")
    assert kinds["paid"].bounds == (0, 450)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_public_join_gives_the_same_bits_on_every_engine(engine):
    frame = on(engine, TABLE)
    assert [bits(query, frame, PUBLIC) for query in ASKED] == EXPECTED


def test_a_row_finds_what_the_public_table_has():
    rows, schema = TABLE.to_pandas(), with_public()
    merged = rows.merge(SHOPS, on="shop", how="left").merge(SIZES.to_pandas(), how="left")
    for engine in ("pandas", "polars", "DuckDB"):
        frame = on(engine, TABLE)
        regions = count(by="region", epsilon=1.0).sums(frame, schema, "laplace")
        counted = merged["region"].value_counts()
        assert regions.tolist() == [counted.get(r, 0) for r in ("north", "south", "west")]
        sizes = merged["size"].fillna(3).clip(0, 50)
        assert sum_("size", epsilon=1.0).sums(frame, schema, "laplace") == sizes.sum()
        unknown = count(by="unknown", epsilon=1.0).sums(frame, schema, "laplace")
        assert unknown.tolist()[1] == merged["region"].isna().sum()


def test_a_public_join_moves_no_sensitivity_and_no_plan():
    plain, joined = Schema({"size": Integer(0, 50)}, "id", 2), PUBLIC
    assert sum_("size", epsilon=1.0).mechanism(joined) == sum_("size", epsilon=1.0).mechanism(plain)


A = Schema(VISITS, "id", 2, order="time")
B = Schema({"age": Number(0, 100), "job": Category(["cook", "nurse"])}, "own", 3, order="hash")
BY_SHOP = join_private(A, B, on="shop", rows_per_key=(9, 4))
BY_PERSON = join_private(A, B, on={"id": "own"}, rows_per_key=(2, 3))
BY_BOTH = join_private(A, B, on={"id": "own", "shop": "shop"}, rows_per_key=(2, 1))
OF_JOINED = [
    count(epsilon=1.0), sum_("cost", where=col("age") > 30, by="job", epsilon=1.0),
    mean("age", epsilon=1.0), variance("cost", rho=0.5), median("age", epsilon=1.0),
]  # fmt: skip


def two(engine, first, second):
    if engine == "DuckDB":
        connection = duckdb.connect()
        return {"visits": connection.from_arrow(first), "owners": connection.from_arrow(second)}
    return {"visits": on(engine, first), "owners": on(engine, second)}


PAIR = (TABLE, owners())
JOINED = {"by shop": BY_SHOP, "by person": BY_PERSON, "by both": BY_BOTH}
OF_POLARS = {
    name: [bits(query, two("polars", *PAIR), schema) for query in OF_JOINED]
    for name, schema in JOINED.items()
}


@pytest.mark.parametrize("name", JOINED)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_private_join_gives_the_same_bits_on_every_engine(engine, name):
    frames = two(engine, *PAIR)
    assert [bits(query, frames, JOINED[name]) for query in OF_JOINED] == OF_POLARS[name]


def first_rows(table, person, order, rows):
    """The first rows of each person that have a shop and a cost, as a pandas frame."""
    frame = table.to_pandas()
    needed = frame[["shop", *({"cost", "age"} & set(frame))]].notna().all(axis=1)
    known = frame[needed & (frame["shop"] != "") & frame[person].notna()].sort_values(order)
    return known.groupby(person).head(rows)


@pytest.mark.parametrize(("keep", "rows"), [((9, 4), 2), ((1, 1), 2), ((100, 100), 9)])
@pytest.mark.parametrize("engine", ["pandas", "Arrow", "DuckDB"])
def test_so_many_rows_of_each_key_are_joined(engine, keep, rows):
    first = Schema(VISITS, "id", rows, order="time")
    second = Schema({"age": Number(0, 100)}, order=None)
    joined = join_private(first, second, on="shop", rows_per_key=keep)
    query = count(where=(col("cost") >= 0) & (col("age") >= 0), epsilon=1.0)
    left = first_rows(TABLE, "id", "time", rows)["shop"].value_counts().clip(upper=keep[0])
    right = owners().to_pandas().dropna(subset=["shop", "age"])["shop"].value_counts()
    expected = (left * right.clip(upper=keep[1])).dropna().sum()
    assert query.sums(two(engine, TABLE, owners()), joined, "laplace") == expected


@pytest.mark.parametrize("engine", ["pandas", "DuckDB"])
def test_a_join_on_persons_is_that_of_their_rows(engine):
    wide = join_private(
        Schema(VISITS, "id", 50, order="time"),
        Schema(B.columns, "own", 50, order="hash"),
        on={"id": "own"},
        rows_per_key=(50, 50),
    )
    frames = two(engine, TABLE, owners())
    merged = TABLE.to_pandas().merge(owners().to_pandas(), left_on="id", right_on="own")
    known = merged.dropna(subset=["age"])
    assert count(epsilon=1.0).sums(frames, wide, "laplace") == len(merged)
    assert count("age", epsilon=1.0).sums(frames, wide, "laplace") == len(known)
    old = count(where=col("age") > 50, epsilon=1.0).sums(frames, wide, "laplace")
    assert old == (known["age"] > 50).sum()
    assert persons(epsilon=1.0).sums(frames, wide, "laplace") == merged["id"].nunique()


def test_what_a_person_moves_follows_from_both_tables():
    assert BY_SHOP.rows_per_person == 2 * 4 + 3 * 9
    assert BY_PERSON.rows_per_person == min(2 * 3, 3 * 2)
    exchanged = join_private(
        Schema(VISITS, "id", 2, "replace-one"),
        Schema(B.columns, "own", 3, "replace-one"),
        on="shop",
        rows_per_key=(9, 4),
    )
    assert exchanged.rows_per_person == 2 * BY_SHOP.rows_per_person
    plain = Schema(BY_SHOP.columns, "id", 35, "replace-one")
    for query in OF_JOINED[:4]:
        assert query.mechanism(BY_SHOP) == query.mechanism(plain)
    assert OF_JOINED[0].mechanism(BY_SHOP).sensitivity == 35


def extreme(rng, person, rows, second):
    """Rows of one person with values at the ends, of few shops."""
    shops = rng.choice(["a", "b", "é"], rows).tolist()
    ends = rng.choice([-1e9, 0.0, 50.0, 1e9], rows).tolist()
    own = {"own": [person] * rows, "shop": shops, "age": ends,
           "job": rng.choice(["cook", "nurse"], rows).tolist()}  # fmt: skip
    first = {"id": [person] * rows, "shop": shops, "code": [1] * rows, "cost": ends,
             "time": (1000 * rng.random(rows)).astype(int).tolist()}  # fmt: skip
    return own if second else first


def with_person(table, rng, person, rows, second):
    added = pa.table(extreme(rng, person, rows, second), schema=table.schema)
    together = pa.concat_tables([table, added])
    return together.take(rng.permutation(len(together))) if second else together


QUESTIONS = [
    count(epsilon=1.0), count(by="job", epsilon=1.0), sum_("cost", epsilon=1.0),
    sum_("age", by="job", epsilon=1.0), mean("age", epsilon=1.0), variance("cost", epsilon=1.0),
]  # fmt: skip


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("engine", ENGINES)
def test_no_person_moves_joined_sums_by_more_than_is_declared(engine, relation):
    rng = np.random.default_rng(len(engine) + len(relation))
    for name, on_columns in (("shop", "shop"), ("person", {"id": "own"})):
        rows, keep = rng.integers(1, 4, 2).tolist(), tuple(rng.integers(1, 6, 2).tolist())
        first = Schema(VISITS, "id", rows[0], relation, order="time")
        second = Schema(B.columns, "own", rows[1], relation, order="hash")
        schema = join_private(first, second, on=on_columns, rows_per_key=keep)
        others = visits(40, 9, int(rng.integers(99)), 100), owners(20, 9, 3, 100)
        pair = []
        for who in (7, 8 if relation == "replace-one" else None):
            lots = rng.integers(0, 8, 2).tolist()
            pair.append(two(engine, *(
                table if who is None else with_person(table, rng, who, lots[second], second)
                for second, table in enumerate(others)
            )))  # fmt: skip
        query, kind = (
            QUESTIONS[rng.integers(len(QUESTIONS))],
            str(rng.choice(["laplace", "gaussian"])),
        )
        declared = query.statistic.moved(schema, kind, math.prod(table_shape(query.keys, schema)))
        sums = [np.array(query.sums(f, schema, kind), float) for f in pair]
        moved = (sums[0] - sums[1]).ravel()
        assert np.abs(moved).sum() <= declared.l1, (name, str(query), rows, keep)
        assert np.linalg.norm(moved) <= round_up(declared.l2), (name, str(query), rows, keep)


def test_joined_tables_are_answered_by_a_filter_and_a_book(tmp_path):
    from accountant import Book

    frames = two("DuckDB", *PAIR)
    gate = Filter(frames, Budget(2.0), rng=0)
    answer = sum_("cost", by="job", epsilon=1.0).release(gate, BY_PERSON)
    assert (answer.value.shape, gate.spent) == ((2,), pytest.approx(1.0))
    book = Book.create(f"sqlite:///{tmp_path}/budgets.db")
    book.dataset("visits", Budget(1.0))
    with book.session("visits", frames, BY_SHOP) as ask:
        assert ask(count(), epsilon=0.5).noise_scale == pytest.approx(70, rel=1e-3)
        assert ask.left == pytest.approx(0.5)
    book.close()


def test_joins_in_words():
    words = count(by="region", epsilon=1.0).explain(PUBLIC)
    assert "region: by shop of a public table of 4 keys; 3 public labels" in words
    words = count(epsilon=1.0).explain(BY_SHOP)
    assert "joined on shop: of a key the first 9 and 4 rows; a person exchanges 35 joined" in words
    assert "one person more or less (column 'id' of the first table, column 'own' of" in words
    assert hash(BY_SHOP) == hash(join_private(A, B, on="shop", rows_per_key=(9, 4)))
    assert BY_SHOP != BY_PERSON


def asked(query, schema, data=None):
    return lambda: query.release(
        Filter(two("polars", *PAIR) if data is None else data, Budget(9.0)), schema
    )


FEW = {"rows_per_key": (1, 1)}
STRANGE = pd.DataFrame({"shop": ["a", "a"], "x": [1, 2], "y": ["u", "v"], "z": [None, None],
                        "big": [2**60, 1], "when": [dt.date(2020, 1, 1)] * 2})  # fmt: skip


HALVES = pd.DataFrame({"half": ["a", "\ud800"], "whole": ["a", "b"]}, dtype=object)


@pytest.mark.parametrize(("make", "words"), [
    (lambda: join_public(A, STRANGE, "shop"), "in one row of the table"),
    (lambda: join_public(A, STRANGE, "shp"), "did you mean 'shop'"),
    (lambda: join_public(A, STRANGE, 3), "the name of a column"),
    (lambda: join_public(A, [1], "shop"), "a data frame of pandas"),
    (lambda: join_public(A, STRANGE, "big"), r"below 2\^53"),
    (lambda: join_public(A, STRANGE, "z"), "that has a key for each row"),
    (lambda: join_public(A, STRANGE, "x", ["z"]), "gives its kind"),
    (lambda: join_public(A, STRANGE, "x", ["when"]), "gives its kind"),
    (lambda: join_public(A, STRANGE, "x", {"y": Key()}), "a Flag or a Category"),
    (lambda: join_public(A, STRANGE, "x", {"y": Category(["w"])}), "with values for keys"),
    (lambda: join_public(A, STRANGE, "x", ["x"]), "other than 'x'"),
    (lambda: join_public(join_public(A, SHOPS, "shop"), SHOPS, "shop"), "that the schema has"),
    (PUBLIC.to_toml, "without derived and joined columns"),
    (BY_SHOP.to_toml, "of one table: write both before"),
    (lambda: join_public(BY_SHOP, SHOPS, "shop"), "before"),
    (lambda: join_private(A, A, "id", **FEW), "with other columns"),
    (lambda: join_private(A, B, [], **FEW), "a name of columns"),
    (lambda: join_private(A, B, "shop", 3), "a pair, one for each table"),
    (lambda: join_private(A, B, "shop", (0, 1)), "rows_per_key must be"),
    (lambda: join_private(A, B, "shop", (True, 1)), "rows_per_key must be"),
    (lambda: join_private(A, B, "shop", (2**19, 2**19)), "rows_per_person must be"),
    (lambda: join_private(A, "B", "shop", **FEW), "the Schema of a table"),
    (lambda: join_private("A", B, "shop", **FEW), "the Schema of a table"),
    (lambda: join_private(A, B, 5, **FEW), "a name of columns"),
    (lambda: join_private(A, B, [["shop"]], **FEW), "a name of columns"),
    (lambda: join_private(A, B, {"shop": 5}, **FEW), "a name of columns"),
    (lambda: join_public(A, HALVES, "half"), "that UTF-8 can encode"),
    (lambda: join_public(A, HALVES, "whole", {"half": Category(["\ud800"])}), "UTF-8 can encode"),

    (lambda: join_private(A, Schema(B.columns, "own", relation="replace-one"), "shop", **FEW),
     "'add-remove', as there"),
    (lambda: join_private(BY_SHOP, B, "shop", **FEW), "of a single table"),
    (lambda: join_private(A, Schema({"c": Key()}, "own"), "shop", **FEW), "a Category in a join"),
    (lambda: BY_SHOP.with_kind("job", Key()), "a Category in a join"),
    (lambda: BY_PERSON.with_columns({**BY_PERSON.columns, "c": Key()}), "a Category in a join"),
    (lambda: Schema(BY_SHOP.columns, joined=BY_SHOP.joined), "those of the joined tables"),
    (lambda: Schema(BY_PERSON.columns, "own", 6, joined=BY_PERSON.joined), "those of the joined"),
    (lambda: Schema(BY_PERSON.columns, "id", 6, order="hash", joined=BY_PERSON.joined),
     "those of the joined tables"),
    (lambda: BY_SHOP.derive(**{"key 0": 2 * col("cost")}), "joins have such names"),
    (lambda: join_private(A, Schema({"missing n0": Flag()}), "shop", **FEW), "have such names"),
    (lambda: join_private(A, Schema(B.columns, "own", groups_per_person=2), "shop", **FEW),
     "rows_per_person bounds"),
    (asked(persons(epsilon=1.0), BY_SHOP), "joined on the persons of both tables too"),
    (asked(top_k("job", 1, epsilon=1.0), BY_SHOP), "joined on the persons of both tables too"),
    (asked(count(epsilon=1.0), A), "of two private tables join_private"),
    (asked(count(epsilon=1.0), BY_SHOP, on("polars", TABLE)), "a ledger on both tables"),
    (asked(count(epsilon=1.0), join_private(A, B, "shp", **FEW)), "did you mean 'shop'"),
    (asked(count(epsilon=1.0), join_private(A, B, {"shop": "age"}, **FEW)), "of a type that is"),
    (asked(count("new", epsilon=1.0), BY_SHOP.with_columns({"new": Number(0, 1)})),
     "of one of the tables when they were joined"),
    (lambda: Filter({"a": on("polars", TABLE), "b": TABLE}, Budget(1.0)), "of one library"),
])  # fmt: skip
def test_refusals(make, words):
    with pytest.raises(ParameterError, match=words):
        make()


def test_persons_of_two_types_are_not_joined():
    second = owners()
    texts = second.set_column(0, "own", second["own"].cast(pa.string()))
    with pytest.raises(ParameterError, match="of one type in both tables joined"):
        asked(count(epsilon=1.0), BY_PERSON, two("polars", TABLE, texts))()


@pytest.mark.parametrize("text", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_keys_of_arrow_are_joined_whatever_type_their_texts_have(text):
    second = owners().set_column(1, "shop", owners()["shop"].cast(text))
    joined = count(epsilon=1.0).sums({"visits": TABLE, "owners": second}, BY_SHOP, "laplace")
    assert joined == count(epsilon=1.0).sums(two("polars", *PAIR), BY_SHOP, "laplace")


def test_keys_of_arrow_that_are_numbers_find_those_that_are_texts():
    joined = join_private(A, B, on={"code": "shop"}, rows_per_key=(9, 9))
    second = owners().set_column(1, "shop", owners()["own"].cast(pa.large_string()))
    for codes in (TABLE["code"], TABLE["code"].dictionary_encode()):
        frames = {"visits": TABLE.set_column(2, "code", codes), "owners": second}
        expected = count(epsilon=1.0).sums(two("polars", TABLE, second), joined, "laplace")
        assert count(epsilon=1.0).sums(frames, joined, "laplace") == expected > 0


@pytest.mark.parametrize("unit", ["ms", "us"])
def test_a_join_that_an_engine_would_refuse_costs_nothing(unit):
    times = [table["time" if "time" in table.column_names else "own"].cast(pa.timestamp(u))
             for table, u in zip(PAIR, (unit, "us"), strict=True)]  # fmt: skip
    frames = {"visits": TABLE.set_column(0, "id", times[0]),
              "owners": PAIR[1].set_column(0, "own", times[1])}  # fmt: skip
    gate = Filter(frames, Budget(1.0))
    with pytest.raises(ParameterError, match="of whole numbers, texts or dates"):
        count(epsilon=1.0).release(gate, BY_PERSON)
    assert gate.spent == 0


def test_tables_of_two_connections_cost_nothing():
    gate = Filter({"visits": on("DuckDB", TABLE), "owners": on("DuckDB", PAIR[1])}, Budget(1.0))
    with pytest.raises(ParameterError, match="one connection can join"):
        count(epsilon=1.0).release(gate, BY_SHOP)
    assert gate.spent == 0


@pytest.mark.parametrize("engine", ["polars", "DuckDB"])
def test_closer_bounds_of_joined_columns_clip_the_rows(engine):
    frames = two(engine, *PAIR)
    closer = BY_SHOP.with_kind("cost", Number(0, 1)).with_kind("age", Number(-1, 2))
    for column in ("cost", "age"):
        query = sum_(column, epsilon=1.0)
        rows = count(column, epsilon=1.0).sums(frames, closer, "laplace")
        unit = query.statistic.basis(closer, "laplace").unit
        assert abs(query.sums(frames, closer, "laplace") * unit) <= 2 * rows
    unknown = BY_SHOP.with_kind("cost", Number.unknown())
    ends = bounds("cost", epsilon=50.0).release(Filter(frames, Budget(99.0), rng=0), unknown)
    assert ends.value[1] == 64
    mean_cost = mean("cost", epsilon=1.0)
    expected = mean_cost.mechanism(BY_SHOP)
    assert mean_cost.mechanism(ends.bounded(unknown)) == expected


@pytest.mark.parametrize("schema", [
    PUBLIC, Schema(VISITS).derive(rent=2 * col("cost")),
], ids=["of a table", "of a formula"])  # fmt: skip
def test_columns_that_follow_from_others_keep_their_domains(schema):
    with pytest.raises(ParameterError, match="derive or join it anew"):
        schema.with_columns({**schema.columns, "rent": Number(0, 1)})
    with pytest.raises(ParameterError, match="derive or join it anew"):
        schema.with_kind("rent", Number(0, 1))


def test_a_regression_of_joined_rows_moves_by_exchanged_rows():
    query = regression("cost", ["age"], rho=0.5)
    plain = Schema(BY_SHOP.columns, "id", 35, "replace-one")
    assert query.mechanism(BY_SHOP) == query.mechanism(plain)
    sums = [query.sums(two(e, *PAIR), BY_SHOP).tolist() for e in ("polars", "DuckDB")]
    assert sums[0] == sums[1]
