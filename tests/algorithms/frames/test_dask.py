"""Frames in partitions: the same bits as in one piece, and few of them brought here."""

import pickle

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest

from accountant import Budget, Filter, Ledger, ParameterError, PrivateValueError
from algorithms.frames import (
    Date,
    Key,
    Schema,
    cell_places,
    col,
    contingency,
    count,
    histogram,
    mean,
    median,
    quantiles,
    regression,
    sum_,
    top_k,
    variance,
)
from algorithms.statistics.quantile_scores import ValueGrid
from mechanisms import Laplace
from tests.algorithms.frames.frames_of import COLUMNS, rows

EVERY = {**COLUMNS, "shop": Key(2), "day": Date("2026-01-01", "2026-06-30")}
ROWS, PERSONS = 300, 80
ASKED = [
    count(by=["job", "owner"], epsilon=1.0),
    sum_("change", where=col("age") > 30, epsilon=1.0),
    mean("age", by="job", epsilon=1.0),
    variance("age", rho=0.5),
    contingency(["job", "age"], bins={"age": 5}, epsilon=1.0),
    histogram("day", "month", epsilon=1.0),
    regression("change", ["age", "job", "owner"], epsilon=1.0, delta=1e-6),
    top_k("job", 2, epsilon=1.0),
    top_k("job", 1, by="owner", epsilon=1.0),
    median("age", epsilon=1.0, confidence=None),
    quantiles("kids", [0.2], by="owner", epsilon=2.0),
    mean("age", by="shop", epsilon=3.0, delta=1e-3),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="sync"):
        yield


def some_rows(n=ROWS):
    columns = rows(n, 3, persons=PERSONS)
    rng = np.random.default_rng(9)
    columns["shop"] = rng.choice(["a", "b", "c", ""], n).tolist()
    columns["day"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 200, n), "D")
    return pd.DataFrame(columns).convert_dtypes()


def declared(**facts):
    return Schema(EVERY, **{"person": "id", "rows_per_person": 2, **facts})


def answered(query, frame, schema, seed=4):
    answer = query.release(Ledger(frame, query.plan(schema), rng=seed), schema)
    return pickle.dumps(np.asarray(answer.value).tolist()), answer


@pytest.mark.parametrize("query", ASKED, ids=str)
def test_the_same_bits_whatever_the_partitions(query):
    frame = some_rows()
    for schema, pieces in ((declared(), (1, 4)), (Schema(EVERY), (3,))):
        whole, answer = answered(query, frame, schema)
        for parts in pieces:
            found, made = answered(query, dd.from_pandas(frame, npartitions=parts, sort=False),
                                   schema)  # fmt: skip
            assert found == whole
            assert type(made.frame) is type(answer.frame) is pd.DataFrame


@pytest.mark.parametrize("name", [
    lambda i: i * 10**12 - 2**62, lambda i: f"person {i}",
], ids=["far numbers", "strings"])  # fmt: skip
def test_persons_of_any_type_meet(name):
    frame = some_rows()
    named = [None if pd.isna(one) else name(int(one)) for one in frame["id"]]
    frame["id"] = pd.Series(named, dtype=object).convert_dtypes()
    whole = answered(count(epsilon=1.0), frame, declared())[0]
    parts = dd.from_pandas(frame, npartitions=3, sort=False)
    assert answered(count(epsilon=1.0), parts, declared())[0] == whole


@pytest.mark.parametrize("query", [*ASKED[:6:2], *ASKED[6:]], ids=str)
def test_a_lazy_frame_of_polars_has_the_same_bits(query):
    whole = pl.from_pandas(some_rows()).with_columns(pl.col("job", "shop").cast(pl.String))
    for schema in (declared(), Schema(EVERY)):
        here, answer = answered(query, whole, schema)
        found, made = answered(query, whole.lazy(), schema)
        assert found == here
        assert type(made.frame) is type(answer.frame) is pl.DataFrame


def test_the_number_of_rows_is_public_where_it_was():
    schema = Schema({"kids": COLUMNS["kids"]}, relation="replace-one")
    whole = answered(mean("kids", epsilon=1.0), some_rows(), schema)[0]
    parts = dd.from_pandas(some_rows(), npartitions=5, sort=False)
    assert answered(mean("kids", epsilon=1.0), parts, schema)[0] == whole


def test_rows_are_not_fetched(monkeypatch):
    fetched, compute = [], dask.compute

    def counted(*tasks, **facts):
        found = compute(*tasks, **facts)
        fetched.append(len(pickle.dumps(found)))
        return found

    monkeypatch.setattr(dask, "compute", counted)
    sizes = []
    for row_count in (12_000, 6_000):
        frame = dd.from_pandas(some_rows(row_count), npartitions=4, sort=False)
        fetched.clear()
        for query in (ASKED[4], ASKED[6], ASKED[7]):
            answered(query, frame, declared())
        sizes.append(max(fetched))
    # bytes of the sums of groups, as many for twice the rows, of which these have 400,000
    assert sizes[0] <= sizes[1] * 1.1 < 10_000
    # of a quantile the window of ranks that scores are of, and counts below as many points
    monkeypatch.setattr(cell_places, "MOST_BUCKETS", 256)
    fetched.clear()
    answered(median("change", epsilon=2.0, confidence=None), frame, declared())
    assert sum(fetched) < 0.3 * 8 * 6_000


def test_a_frame_that_is_changed_later_is_not_changed_here():
    frame = dd.from_pandas(some_rows(), npartitions=3, sort=False)
    ledger = Ledger(frame, count(where=col("age") > 50, epsilon=1.0).plan(declared()), rng=4)
    whole = answered(count(where=col("age") > 50, epsilon=1.0), some_rows(), declared())[1].value
    frame["age"] = 99.0
    query = count(where=col("age") > 50, epsilon=1.0)
    assert query.release(ledger, declared()).value == whole


@pytest.mark.parametrize(
    "columns", [{"id": [1.0], "x": [1]}, {"id": [1], "y": [1]}, {"x": [1], "id": [1]}]
)
def test_partitions_must_have_the_columns_of_the_frame(columns):
    pieces = [pd.DataFrame({"id": [1], "x": [1]}), pd.DataFrame(columns)]
    frame = dd.from_map(lambda i: pieces[i], [0, 1], meta=pieces[0])
    with pytest.raises(ParameterError, match="partition 1"):
        Filter(frame, Budget(1.0))


def test_no_message_shows_a_row(monkeypatch):
    frame = dd.from_pandas(some_rows(), npartitions=3, sort=False)
    ledger = Filter(frame, Budget(9.0), rng=0)

    def failing(*_):
        raise ValueError("the secret row")

    monkeypatch.setattr("algorithms.frames.rows.typed", failing)
    for query in (mean("age", epsilon=1.0), median("age", epsilon=1.0)):
        with pytest.raises(PrivateValueError) as error:
            query.release(ledger, declared())
        assert "secret" not in str(error.value)
        assert error.value.__suppress_context__


def test_other_questions_get_the_frame_of_workers():
    frame = dd.from_pandas(some_rows(), npartitions=3, sort=False)
    ledger = Filter(frame, Budget(2.0), rng=0)
    found = ledger.release(Laplace(scale=1.0), lambda data: float(data["kids"].count().compute()))
    assert abs(found - some_rows()["kids"].count()) < 30
    with pytest.raises(ParameterError, match="rows of a Dask frame are not brought here"):
        ledger.release_each(Laplace(scale=1e3), lambda data: data)


@pytest.mark.parametrize("many", [1, 5, 70_000, 200_000])
def test_equal_numbers_have_the_places_that_they_have_in_one_piece(many):
    grid = ValueGrid.of(0, 8, 1.0)
    numbers = np.append(np.full(many, 3.0), [5.0, 5.0, 7.0])
    places, counts = grid.places_of(numbers), np.array([many, 2, 1])
    points = np.array([3, 5, 7])
    for first, last in ((0, many + 3), (many // 2, many), (many - 1, many + 2)):
        found = cell_places.tied_places(points, counts, first, last)
        assert found.tolist() == places[first:last].tolist()
    for offset in (0, 1, 777, 65_535):
        below = int(np.searchsorted(places, (3 << 16) + offset))
        assert cell_places.ties_below(many, offset) == below
