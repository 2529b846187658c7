"""What statistics of frames are: beside plain Python on the rows, in three libraries."""

import math
import statistics as plain

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from accountant import Budget, Filter, Ledger, Sequential, Tight
from algorithms.frames import (
    Category,
    Integer,
    Number,
    Schema,
    col,
    contingency,
    count,
    histogram,
    mean,
    median,
    quantile,
    quantiles,
    sum_,
    top_k,
    variance,
)
from tests.algorithms.frames.frames_of import COLUMNS, LIBRARIES, frame_of, rows, schema

QUIET = {"scale": 0.011, "noise": "gaussian"}  # next to no noise, for the numbers themselves
PERSON = {"person": "id", "rows_per_person": 2}


def released(query, frame, declared, seed=0):
    return query.release(Filter(frame, Budget(1e9, 1e-6), rng=seed), declared)


def counted_rows(columns, used, declared, keep=lambda row: True):
    """The rows that count, by the words of the docs: one loop over all."""
    seen, found = {}, []
    for place in range(len(columns["id"])):
        row = {name: declared_value(columns[name][place], COLUMNS[name]) for name in used}
        person = columns["id"][place]
        if None in row.values() or not keep(row) or (declared.person and person is None):
            continue
        seen[person] = seen.get(person, 0) + 1
        if not declared.person or seen[person] <= declared.rows_per_person:
            found.append(row)
    return found


def declared_value(value, kind):
    if kind.bounds is None:
        value = value if value in kind.labels else None
    elif value is not None:
        value = min(max(value, kind.low), kind.high)
    if value is None and kind.missing != "drop":
        value = kind.missing
    return value


def test_a_sum_of_numbers_whose_step_is_one_is_of_whole_numbers():
    declared, query = Schema({"x": Number(0, 2**30)}), sum_("x", scale=1.0, noise="laplace")

    def total(values):
        return query.sums(pd.DataFrame({"x": values}), declared, "laplace")

    # In floats 1 - 2^-27 + 2^30 is 2^30 + 1, and the part alone was cut to 0.
    assert total([1 - 2.0**-27, 2.0**30]) - total([1 - 2.0**-27]) == 2**30
    values = np.random.default_rng(0).uniform(0, 2**30, 100_000)
    assert total(values) == int(sum(map(round, values.tolist()))) == total(values[::-1])


@pytest.mark.parametrize("facts", [{}, PERSON], ids=["rows", "persons"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_statistics_are_those_of_the_rows_that_count(library, facts):
    columns, declared = rows(60, 3, persons=20), schema(**facts)
    frame = frame_of(library, columns)
    where = (col("age") >= 18) & ~col("job").is_in(["cook"])
    kept = counted_rows(columns, ["age", "job"], declared,
                        lambda row: row["age"] >= 18 and row["job"] != "cook")  # fmt: skip
    ages = [row["age"] for row in kept]
    assert released(count(where=where, **QUIET), frame, declared).value == len(ages)
    for query, number in (
        (sum_("age", where=where, **QUIET), math.fsum(ages)),
        (mean("age", where=where, **QUIET), plain.fmean(ages)),
        (variance("age", where=where, **QUIET), plain.pvariance(ages)),
    ):
        assert released(query, frame, declared).value == pytest.approx(
            number, abs=0.2 if query.statistic.name != "variance" else 20
        )


YOUNG, COOKS = col("age") < 30, col("job") == "cook"
CONDITIONS = [
    (lambda: YOUNG, lambda age, job: age < 30),
    (lambda: col("age") <= 40, lambda age, job: age <= 40),
    (lambda: col("age") > 40, lambda age, job: age > 40),
    (lambda: col("age").is_in(range(30)), lambda age, job: age in range(30)),
    (lambda: YOUNG | COOKS, lambda age, job: age < 30 or job == "cook"),
    (lambda: YOUNG & (col("job") != "cook"), lambda age, job: age < 30 and job != "cook"),
    (lambda: ~(YOUNG | COOKS), lambda age, job: age >= 30 and job != "cook"),
    (lambda: ~YOUNG | ~COOKS, lambda age, job: age >= 30 or job != "cook"),
]  # fmt: skip


@pytest.mark.parametrize(("made", "keep"), CONDITIONS)
def test_a_condition_holds_where_its_words_do(made, keep):
    columns, declared = rows(60, 3), schema()
    kept = counted_rows(columns, ["age", "job"], declared, lambda row: keep(row["age"], row["job"]))
    frame = frame_of("pandas", columns)
    assert released(count(where=made(), **QUIET), frame, declared).value == len(kept)
    assert 0 < len(kept) < 60


QUERIES = {
    "count": lambda **where: count(**QUIET, **where),
    "count of a column": lambda **where: count("age", by="job", **QUIET, **where),
    "sum": lambda **where: sum_("age", **QUIET, **where),
    "mean": lambda **where: mean("age", by="job", **QUIET, **where),
    "variance": lambda **where: variance("age", **QUIET, **where),
    "histogram": lambda **where: histogram("age", bins=4, **QUIET, **where),
    "contingency": lambda **where: contingency(["job", "owner"], **QUIET, **where),
    "quantiles": lambda **where: quantiles("age", [0.2, 0.7], epsilon=1000.0, **where),
    "quantile": lambda **where: quantile("age", 0.9, epsilon=1000.0, **where),
    "median": lambda **where: median("age", epsilon=1000.0, **where),
    "top_k": lambda **where: top_k("job", 2, epsilon=100.0, **where),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_condition_leaves_the_rows_that_meet_it(name):
    frame, declared, make = frame_of("pandas", rows(60, 3)), schema(), QUERIES[name]
    few = frame[frame["age"] < 30]
    answers = [
        released(query, data, declared).value
        for query, data in ((make(where=YOUNG), frame), (make(), few), (make(), frame))
    ]
    assert np.array_equal(answers[0], answers[1])
    assert not np.array_equal(answers[0], answers[2])


@pytest.mark.parametrize("library", LIBRARIES)
def test_tables_have_a_cell_for_each_combination(library):
    columns, declared = rows(80, 4), schema()
    frame = frame_of(library, columns)
    kept = counted_rows(columns, ["job", "owner", "age"], declared)
    edges = [0, 20, 50, 100]

    def cell(row):
        age = 2 if row["age"] == 100 else sum(row["age"] >= edge for edge in edges[1:])
        return ("cook", "nurse", "other").index(row["job"]), int(row["owner"]), age

    expected = np.zeros((3, 2, 3), dtype=int)
    for row in kept:
        expected[cell(row)] += 1
    asked = contingency(["job", "owner", "age"], bins={"age": edges}, **QUIET)
    answer = released(asked, frame, declared)
    assert answer.value.tolist() == expected.tolist()
    assert released(count(by="job", **QUIET), frame, declared).value.sum() == len(columns["job"])
    table = answer.frame
    assert type(table) is type(frame)
    names = list(table.columns) if library != "pyarrow" else table.column_names
    assert names == ["job", "owner", "age_from", "age_to", "count", "lower", "upper"]
    assert table["count"].to_numpy().tolist() == expected.ravel().tolist()
    assert "<th>age_from</th>" in answer._repr_html_()
    assert answer.to_frame()["count"].tolist() == expected.ravel().tolist()
    bins = released(histogram("age", 4, **QUIET), frame, declared)
    ages = [row["age"] for row in counted_rows(columns, ["age"], declared)]
    assert bins.value.tolist() == np.histogram(ages, np.linspace(0, 100, 5))[0].tolist()


def test_one_seed_gives_the_same_bits_in_every_library_and_order():
    columns, declared = rows(200, 5), schema()
    order = np.random.default_rng(1).permutation(200)
    shuffled = {name: [values[i] for i in order] for name, values in columns.items()}
    for query in (
        mean("age", epsilon=1.0),
        variance("age", by=["job", "owner"], epsilon=1.0, delta=1e-6, noise="gaussian"),
        sum_("change", rho=0.1),
    ):
        found = {
            released(query, frame_of(library, given), declared, 7).released.tobytes()
            for library in LIBRARIES for given in (columns, shuffled)
        }  # fmt: skip
        assert len(found) == 1


@pytest.mark.parametrize("frame", [
    pd.DataFrame({"job": pd.Categorical(["a", "b", None, "c"]), "n": pd.array([1, None, 2, 3])}),
    pl.DataFrame({"job": ["a", "b", None, "c"], "n": [1, None, 2, 3]},
                 schema_overrides={"job": pl.Enum(["a", "b", "c"])}),
    pl.DataFrame({"job": ["a", "b", None, "c"], "n": [1.0, float("nan"), 2, 3]},
                 schema_overrides={"job": pl.Categorical}),
    pa.table({"job": pa.array(["a", "b", None, "c"]).dictionary_encode(), "n": [1, None, 2, 3]}),
    pd.DataFrame({"job": ["a", "b", None, "c"], "n": [1, None, 2, 3]}).convert_dtypes(),
    pd.DataFrame({"job": ["a", 5, None, "c"], "n": [1, None, 2, 3]}),
])  # fmt: skip
def test_types_of_columns_that_libraries_have(frame):
    declared = Schema({"job": Category(["a", "b"]), "n": Integer(0, 9)})
    found = released(count(by="job", **QUIET), frame, declared).value.tolist()
    assert found == ([1, 0] if frame["job"].to_numpy().tolist()[1] == 5 else [1, 1])
    assert released(sum_("n", **QUIET), frame, declared).value == 6
    labels = Schema({"n": Category([1, 2, 7])})
    assert released(count(by="n", **QUIET), frame, labels).value.tolist() == [1, 1, 0]


def test_a_plan_of_several_is_what_a_ledger_then_allows():
    declared = schema()
    queries = [count(epsilon=0.2), mean("age", epsilon=0.3), histogram("job", epsilon=0.5)]
    plan = Sequential([query.plan(declared) for query in queries])
    assert plan.relation == "add-remove"
    assert 0.999 < Tight().epsilon(plan, 0.0) <= 1.0
    ledger = Ledger(frame_of("polars", rows(50)), plan, rng=0)
    answers = [query.release(ledger, declared) for query in queries]
    assert ledger.next is None
    assert [answer.asked for answer in answers] == ["count", "mean of age", "count by job"]
    assert repr(answers[0]).startswith("Answer(count: ")


def test_the_least_error_decides_between_kinds_of_noise():
    declared = schema()
    assert count(epsilon=1.0, delta=1e-6).mechanism(declared).sensitivity == 1
    kinds = {
        type(mean("age", epsilon=epsilon, delta=delta).mechanism(declared)).__name__
        for epsilon, delta in ((1.0, 1e-6), (0.001, 0.2))
    }
    assert kinds == {"DiscreteLaplace", "DiscreteGaussian"}
    for query in (count(rho=0.01), mean("age", rho=0.3), variance("age", by="job", rho=2.0)):
        rho = query.mechanism(declared).loss.rho
        assert query.guarantee.rho * (1 - 1e-9) <= rho <= query.guarantee.rho


def test_numbers_next_to_the_ends_of_floats():
    declared = Schema({"x": Number(-1e300, 1e300)})
    frame = pd.DataFrame({"x": [1e300, -1e300, np.inf, 1e308]})
    assert released(mean("x", **QUIET), frame, declared).value == pytest.approx(5e299, rel=0.05)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_without_rows(library):
    columns = {name: values[:0] for name, values in rows(3).items()}
    types = {"age": float, "kids": float, "change": float, "job": str, "owner": bool, "id": int}
    frame = {
        "pandas": lambda: pd.DataFrame({n: pd.Series([], dtype=t) for n, t in types.items()}),
        "polars": lambda: pl.DataFrame(columns, schema=types),
        "pyarrow": lambda: pa.table({n: pa.array([], pa.string() if t is str else pa.bool_()
                                                if t is bool else pa.from_numpy_dtype(t))
                                     for n, t in types.items()}),
    }[library]()  # fmt: skip
    for query in (count(**QUIET), mean("age", **QUIET), count(by=["job", "owner"], **QUIET)):
        answer = released(query, frame, schema(**PERSON))
        assert np.all(np.abs(answer.value) <= 100)
    assert answer.value.sum() == 0


@pytest.mark.parametrize("name", [
    lambda i: i, lambda i: i * 10**15 - 2**62, lambda i: f"p{i}",
], ids=["numbers", "far numbers", "strings"])  # fmt: skip
@pytest.mark.parametrize("library", LIBRARIES)
def test_persons_have_names_of_any_type(library, name):
    columns, declared = rows(60, 6, persons=15), schema(**PERSON)
    columns["id"] = [None if one is None else name(one) for one in columns["id"]]
    frame = frame_of(library, columns)
    known = len(counted_rows(columns, ["age"], declared))
    assert released(count("age", **QUIET), frame, declared).value == known
    if library == "pandas":
        labels = frame.assign(id=frame["id"].astype("category"))
        assert released(count("age", **QUIET), labels, declared).value == known


def test_many_rows_are_counted_once():
    frame = frame_of("polars", {"kids": np.arange(100_000) % 3})
    assert released(count(**QUIET), frame, schema()).value == 100_000
    two = count(where=col("kids") == 2, **QUIET)
    assert released(two, frame, schema()).value == 33_333


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_row_of_no_person_counts_nothing_where_no_person_has_too_many(library):
    columns = {"id": [1, None, 2, 2], "kids": [1, 1, 1, 3]}
    declared = schema(person="id", rows_per_person=2)
    assert released(count(**QUIET), frame_of(library, columns), declared).value == 3
    where = col("kids") == 1
    assert released(count(where=where, **QUIET), frame_of(library, columns), declared).value == 2
