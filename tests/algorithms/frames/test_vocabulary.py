"""Persons, shares, deviations, least and largest numbers, and bounds per person and group."""

import json

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from accountant import Budget, Filter, ParameterError, Tight
from algorithms.frames import (
    Category,
    Flag,
    Key,
    Number,
    Schema,
    col,
    count,
    histogram,
    maximum,
    mean,
    median,
    minimum,
    persons,
    regression,
    share,
    standard_deviation,
    sum_,
    top_k,
    variance,
)
from tests.algorithms.frames.engines_of import MARKED, on

COLUMNS = {"ward": Category(["a", "b", "c", "d"]), "cost": Number(0, 100), "owner": Flag()}
LOUD = {"scale": 0.011, "noise": "gaussian"}


def visits(n=400, people=90, seed=0):
    """Visits of people to wards, as a table of Arrow."""
    rng = np.random.default_rng(seed)
    return pa.table({
        "id": pa.array(rng.integers(0, people, n), pa.int64()),
        "ward": pa.array(rng.choice(["a", "b", "c", "d", "e"], n).tolist()),
        "cost": pa.array(rng.uniform(-5, 120, n)),
        "owner": pa.array((rng.random(n) < 0.3).tolist()),
        "time": pa.array(rng.permutation(n), pa.int64()),
    })  # fmt: skip


TABLE = visits()
FRAME = TABLE.to_pandas()
WIDE = Schema(COLUMNS, "id", 50, order="time")
GROUPED = Schema(COLUMNS, "id", order="time", groups_per_person=2, rows_per_person_and_group=2)


def released(query, schema=WIDE, table=TABLE):
    return query.release(Filter(table, Budget(1e9, 1e-6), rng=0), schema)


def bounded(frame, groups=2, rows=2):
    """The rows of the first groups of each person, and the first rows of each, by plain loops."""
    kept, seen = [], {}
    for row in frame.sort_values("time").itertuples():
        if row.ward not in "abcd":
            continue
        wards = seen.setdefault(row.id, {})
        if row.ward not in wards and len(wards) == groups:
            continue
        wards[row.ward] = wards.get(row.ward, 0) + 1
        if wards[row.ward] <= rows:
            kept.append(row)
    return pd.DataFrame(kept)


@pytest.mark.parametrize("engine", MARKED)
def test_persons_count_once_everywhere_and_once_in_each_group(engine):
    table = on(engine, TABLE)
    assert persons(epsilon=1.0).sums(table, WIDE, "laplace") == FRAME["id"].nunique()
    known = FRAME[FRAME["ward"] != "e"].groupby("ward")["id"].nunique()
    by = persons(by="ward", epsilon=1.0)
    assert by.sums(table, WIDE, "laplace").tolist() == known.tolist()
    old = persons(where=col("cost") > 50, epsilon=1.0)
    assert old.sums(table, WIDE, "laplace") == FRAME[FRAME["cost"] > 50]["id"].nunique()
    kept = bounded(FRAME)
    assert by.sums(table, GROUPED, "laplace").tolist() == (
        kept.groupby("ward")["id"].nunique().tolist()
    )
    rows = count(by="ward", epsilon=1.0).sums(table, GROUPED, "laplace")
    assert rows.tolist() == kept.groupby("ward").size().tolist()


def test_explain_says_whether_groups_or_rows_of_a_person_are_cut():
    in_groups, in_all = "the first 2 rows in each of the first 2 groups", "the first 4 rows that"
    top, middle = top_k("ward", 4, epsilon=1.0), median("cost", by="ward", epsilon=1.0)
    assert in_groups in top.explain(GROUPED)
    labels = bounded(FRAME).groupby("ward")["id"].nunique()
    assert top.persons_of_labels(TABLE, GROUPED).tolist() == labels.tolist()
    (noise,) = top.plan(GROUPED).leaves()
    assert noise.sensitivity == 2
    assert in_all in middle.explain(GROUPED)
    known = FRAME[FRAME["ward"] != "e"].sort_values("time")
    first_rows = known.groupby("id").head(4).groupby("ward").size()
    assert middle.read_by(GROUPED).counted(TABLE).tolist() == first_rows.tolist()


def test_persons_where_each_row_is_one_are_rows():
    schema = Schema(COLUMNS)
    assert persons(epsilon=1.0).sums(TABLE, schema, "laplace") == len(TABLE)
    assert persons(by="ward", epsilon=1.0).mechanism(schema).sensitivity == 1


@pytest.mark.parametrize(("schema", "l1", "square"), [
    (Schema(COLUMNS, "id", 3), 3, 3), (Schema(COLUMNS, "id", 50), 4, 4),
    (Schema(COLUMNS, "id", 3, "replace-one"), 4, 4), (GROUPED, 2, 2),
    (Schema(COLUMNS, "id", 1, "replace-one"), 2, 2),
])  # fmt: skip
def test_a_person_moves_as_many_counts_of_persons_as_there_are_groups(schema, l1, square):
    by = persons(by="ward", epsilon=1.0)
    assert by.mechanism(schema).sensitivity == l1
    gaussian = persons(by="ward", rho=0.5).mechanism(schema)
    assert gaussian.sensitivity == pytest.approx(square**0.5)
    assert persons(epsilon=1.0).mechanism(schema).sensitivity == 1


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_gaussian_noise_grows_with_the_root_of_the_groups(relation):
    bounds = {"groups_per_person": 4, "rows_per_person_and_group": 3, "relation": relation}
    grouped, plain = Schema(COLUMNS, "id", **bounds), Schema(COLUMNS, "id", 12, relation)
    for query in (count(by="ward", rho=0.1), mean("cost", by="ward", rho=0.1)):
        ratio = plain_scale(query, grouped) / plain_scale(query, plain)
        assert ratio == pytest.approx(0.5, rel=0.01)
    assert plain_scale(sum_("cost", rho=0.1), grouped) == plain_scale(sum_("cost", rho=0.1), plain)
    assert "the first 3 rows in each of the first 4 groups" in count(by="ward", rho=1.0).explain(
        grouped
    )


def plain_scale(query, schema):
    return query.mechanism(schema).scale


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("name", ["count", "persons", "sum", "mean"])
def test_no_person_moves_bounded_groups_by_more(name, relation):
    make = {"count": count, "persons": persons}.get(name)
    query = make(by="ward", rho=1.0) if make else {"sum": sum_, "mean": mean}[name](
        "cost", by="ward", rho=1.0)  # fmt: skip
    schema = Schema(COLUMNS, "id", 1, relation, "time", 2, 2)
    most = {"laplace": 0.0, "gaussian": 0.0}
    cells = 4
    for seed in range(4):
        table, rng = visits(60, 8, seed), np.random.default_rng(seed)
        frame = table.to_pandas()
        other = frame[frame["id"] != 3]
        if relation == "replace-one":
            own = visits(9, 1, seed + 50).to_pandas()
            own["id"], own["time"] = 99, rng.permutation(9) + 0
            other = pd.concat([other, own], ignore_index=True)
        pair = [pl.from_pandas(f) for f in (frame, other)]
        for noise in list(most):
            moved = query.asked_of(schema).moved(schema, noise, cells)
            one, two = (np.array(query.sums(f, schema, noise), float) for f in pair)
            norm = np.abs(one - two).sum() if noise == "laplace" else np.linalg.norm(one - two)
            declared = moved.l1 if noise == "laplace" else moved.l2
            most[noise] = max(most[noise], norm / declared)
    assert max(most.values()) <= 1 + 1e-12
    assert max(most.values()) > 0.3


def test_deviations_and_shares():
    cost = FRAME["cost"].clip(0, 100)
    answer = released(standard_deviation("cost", **LOUD))
    assert answer.value == pytest.approx(np.std(cost), abs=0.5)
    low, high = answer.interval()
    assert low <= answer.value <= high
    assert answer.value == pytest.approx(released(variance("cost", **LOUD)).value ** 0.5)
    owners = released(share("owner", by="ward", **LOUD)).value
    known = FRAME[FRAME["ward"] != "e"].groupby("ward")["owner"].mean()
    assert owners == pytest.approx(known.to_numpy(), abs=0.01)
    assert released(minimum("cost", epsilon=50.0)).value < 2
    assert released(maximum("cost", epsilon=50.0)).value > 98


def test_intervals_of_a_deviation_cover():
    truth = np.std(FRAME["cost"].clip(0, 100))
    ledger = Filter(TABLE, Budget(1e9), rng=1)
    query, schema = standard_deviation("cost", epsilon=2.0), Schema(COLUMNS)
    ends = np.array([query.release(ledger, schema).interval() for _ in range(300)])
    covered = ((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean()
    assert covered > 262 / 300  # fewer of 95 % have a chance below 1e-6


def test_persons_by_private_keys():
    table = pa.table({"id": list(range(900)) * 2, "shop": (["x", "y"] * 450) * 2})
    schema = Schema({"shop": Key()}, "id", 2, order="shop")
    query = persons(by="shop", epsilon=4.0, delta=1e-6)
    assert Tight().epsilon(query.plan(schema), 1e-6) <= 4.0
    answer = query.release(Filter(table, Budget(5.0, 1e-5), notion="pure", rng=0), schema)
    assert np.abs(answer.value - 450).max() < 20


@pytest.mark.parametrize(("make", "words"), [
    (lambda: col("a") > 3 & col("b") == "m", r"col\('b'\) must be compared, in brackets"),
    (lambda: col("b") | 3, "before it is joined"),
    (lambda: share("cost", epsilon=1.0).plan(WIDE), "column 'cost' must be a Flag"),
    (lambda: Schema(COLUMNS, "id", 3, groups_per_person=2), "rows_per_person must be left out"),
    (lambda: Schema(COLUMNS, "id", rows_per_person_and_group=2), "groups_per_person must be"),
    (lambda: Schema(COLUMNS, groups_per_person=2), "person must be the column"),
    (lambda: count().plan(WIDE), "epsilon, rho, scale must be one of them"),
    (lambda: minimum("cost").costing(rho=1.0), "epsilon must be given"),
    (lambda: count().costing(), "epsilon, rho, scale must be one of them"),
])  # fmt: skip
def test_refusals(make, words):
    with pytest.raises(ParameterError, match=words):
        make()


def test_a_question_may_say_its_cost_later():
    assert count(by="ward").costing(epsilon=0.5) == count(by="ward", epsilon=0.5)
    assert minimum("cost").costing(epsilon=0.5) == minimum("cost", epsilon=0.5)
    assert repr(~col("owner")) == "owner == False"


def test_a_schema_keeps_bounds_of_groups(tmp_path):
    path = str(tmp_path / "schema.toml")
    GROUPED.to_toml(path)
    assert Schema.from_toml(path) == GROUPED
    assert GROUPED.rows_per_person == 4


def test_answers_are_json():
    days = pa.table({"day": pa.array(pd.date_range("2026-01-01", periods=90))})
    from algorithms.frames import Date

    declared = Schema({"day": Date("2026-01-01", "2026-03-31")})
    answer = released(histogram("day", "month", epsilon=1.0), declared, days)
    read = json.loads(answer.to_json())
    assert read["asked"] == "count by day (bins month)"
    assert read["columns"]["day_from"] == ["2026-01-01", "2026-02-01", "2026-03-01"]
    assert read["columns"]["count"] == answer.value.tolist()
    hidden = regression("cost", "owner", rho=1e-6)
    columns = json.loads(released(hidden, Schema(COLUMNS)).to_json())["columns"]
    assert columns["upper"] == [None, None]


def test_a_duckdb_relation_and_a_folder_of_parquet_files_are_one_frame(tmp_path):
    connection = duckdb.connect()
    connection.from_arrow(TABLE).create("visits")
    for part in range(3):
        rows = f"SELECT * FROM visits WHERE id % 3 = {part}"
        connection.sql(rows).write_parquet(str(tmp_path / f"{part}.parquet"))
    query = mean("cost", by="ward", epsilon=1.0)
    files = connection.read_parquet(str(tmp_path / "*.parquet"))
    answers = [released(query, GROUPED, t).value.tolist() for t in (TABLE, files,
               connection.table("visits"))]  # fmt: skip
    assert answers[0] == answers[1] == answers[2]
