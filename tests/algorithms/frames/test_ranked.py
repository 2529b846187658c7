"""Quantiles and top labels of frames: beside the sorted rows, and in three libraries."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from accountant import Budget, BudgetExceeded, Filter, Ledger, OffPlan, ParameterError, Tight
from algorithms import PrivateQuantiles
from algorithms.frames import (
    Category,
    Flag,
    Integer,
    Key,
    Number,
    Schema,
    col,
    median,
    quantile,
    quantiles,
    top_k,
)
from tests.algorithms.frames.frames_of import LIBRARIES, frame_of, rows, schema
from tests.algorithms.frames.test_statistics import counted_rows

LOUD = 1e6  # an epsilon with next to no noise, for the numbers themselves
EVEN = Schema({"age": Number(0, 100)})


def released(query, frame, declared, seed=0):
    return query.release(Filter(frame, Budget(1e9, 1e-6), rng=seed), declared)


@pytest.mark.parametrize("facts", [{}, {"person": "id", "rows_per_person": 2}])
def test_quantiles_are_those_of_the_rows_that_count(facts):
    columns, declared = rows(90, 3, persons=30), schema(**facts)
    kept = counted_rows(columns, ["age", "job", "owner"], declared, lambda row: row["age"] > 10)
    query = quantiles("age", [0.2, 0.5, 0.9], by=["job", "owner"], where=col("age") > 10,
                      epsilon=LOUD, confidence=None)  # fmt: skip
    found = {released(query, frame_of(one, columns), declared).value.tobytes() for one in LIBRARIES}
    assert len(found) == 1  # the same bits
    value = np.frombuffer(found.pop()).reshape(3, 2, 3)
    for i, job in enumerate(("cook", "nurse", "other")):
        for j, owner in enumerate((False, True)):
            ages = [r["age"] for r in kept if (r["job"], r["owner"]) == (job, owner)]
            for share, number in zip((0.2, 0.5, 0.9), value[i, j], strict=True):
                assert (np.array(ages) < number - 1e-4).sum() <= share * len(ages) + 1
                assert (np.array(ages) <= number + 1e-4).sum() >= share * len(ages) - 1


@pytest.mark.parametrize("library", LIBRARIES)
def test_answers_are_frames_of_the_library_asked(library):
    columns, declared = rows(300, 1), schema()
    frame = frame_of(library, columns)
    answer = released(quantiles("kids", [0.5, 0.9], by="owner", epsilon=50.0), frame, declared)
    table = answer.frame
    names = list(table.columns) if library != "pyarrow" else table.column_names
    assert type(table) is type(frame)
    assert names == ["owner", "quantile", "kids", "lower", "upper"]
    assert answer.value.shape == (2, 2)
    assert answer.interval().shape == (2, 2, 2)
    assert (answer.interval()[..., 0] <= answer.value).all()
    assert answer.value.dtype.kind == "i"
    with pytest.raises(ParameterError, match=r"confidence must be 0\.95, as asked"):
        answer.interval(0.9)
    one = released(median("age", epsilon=50.0), frame, declared)
    assert isinstance(one.value, float)
    assert repr(one).startswith("ListedAnswer(quantile 0.5 of age: ")
    assert "<th>lower</th>" in one._repr_html_()


def test_a_column_of_an_answer_takes_the_name_of_no_other_column():
    names = ("quantile", "quantile_", "lower", "lower_")
    declared = Schema({"age": Integer(0, 9), **dict.fromkeys(names, Flag())})
    frame = frame_of("polars", {"age": [1, 2], **{name: [True, False] for name in names}})
    answer = released(quantiles("age", [0.5], by=list(names), epsilon=1.0), frame, declared)
    assert answer.frame.columns == [*names, "quantile__", "age", "lower__", "upper"]


def test_a_person_with_several_rows_costs_as_many_times():
    for relation, row in (("add-remove", 0.5), ("replace-one", 1.0)):
        for most in (1, 7):
            declared = schema(person="id", rows_per_person=most, relation=relation)
            plan = quantiles("age", [0.1, 0.5, 0.9], epsilon=1.0, confidence=None).plan(declared)
            steps = list(plan.leaves())
            assert [one.sensitivity for one in steps] == [row * most] * 2
            assert steps[0].scale == pytest.approx(4 * row * most)
            assert 0.999 < Tight().epsilon(plan, 0.0) <= 1.0
            counted = median("age", epsilon=1.0, by="job").plan(declared)
            first = next(counted.leaves())
            assert first.sensitivity == most * (1 if relation == "add-remove" else 2)
            assert 0.999 < Tight().epsilon(counted, 0.0) <= 1.0


@pytest.mark.parametrize(("count", "confidence", "wasted"), [(7, None, 1e-3), (15, 0.9, 0.02)])
def test_a_plan_at_a_delta_takes_its_epsilon_at_this_delta(count, confidence, wasted):
    def plan(delta):
        levels = np.linspace(0.1, 0.9, count).tolist()
        query = quantiles("age", levels, epsilon=0.5, delta=delta, confidence=confidence)
        return query.plan(schema())

    assert 0.5 * (1 - wasted) < Tight().epsilon(plan(1e-6), 1e-6) <= 0.5
    assert Tight().epsilon(plan(0.0), 1e-6) < 0.97 * 0.5


def test_of_rows_whose_number_is_public_it_is_the_estimator():
    ages = np.random.default_rng(0).normal(40, 12, 500)
    public = Schema({"age": Number(0, 100, missing=50)}, relation="replace-one")
    query = quantiles("age", [0.25, 0.5], epsilon=1.0, confidence=None)
    found = released(query, frame_of("polars", {"age": ages}), public, 5).value
    made = PrivateQuantiles(quantiles=[0.25, 0.5], low=0, high=100, epsilon=1.0, random_state=5)
    assert found.tolist() == made.fit(ages[:, None]).quantiles_.tolist()
    assert len(list(median("age", epsilon=1.0).plan(public).leaves())) == 2  # no count of rows


def missed(runs, n=1200, seed=3, epsilon=0.5):
    """How many of so many intervals of three quantiles miss those of evenly spread numbers."""
    ages = (np.random.default_rng(1).permutation(n) + 0.5) * 100 / n
    query = quantiles("age", [0.2, 0.5, 0.9], epsilon=epsilon)
    ledger = Filter(frame_of("pyarrow", {"age": ages}), Budget(1e9), rng=seed)
    ends = np.array([query.release(ledger, EVEN).interval() for _ in range(runs)])
    truth = np.array([20.0, 50.0, 90.0])
    return ((ends[..., 0] > truth) | (ends[..., 1] < truth)).sum(axis=0)


def test_intervals_of_quantiles_cover_as_often_as_they_say():
    # of 1,200 so few or so many miss with chance below 1e-6, where 4.25 to 5 % do
    assert 20 <= missed(400, epsilon=4.0).sum() <= 101


@pytest.mark.slow
def test_how_often_intervals_cover():
    covered = 1 - missed(10_000) / 10_000
    assert ((covered > 0.93) & (covered < 0.97)).all(), covered


def test_an_interval_costs_5_per_cent_of_what_a_median_takes():
    for relation in ("add-remove", "replace-one"):
        declared = schema(relation=relation)
        alone, beside = (
            list(median("age", epsilon=0.5, confidence=level).plan(declared).leaves())
            for level in (None, 0.95)
        )
        assert len(alone) == 1
        _, found, ends = beside
        assert alone[0].scale < found.scale < 1.05 * alone[0].scale
        assert ends.scale > 20 * found.scale


@pytest.mark.parametrize("numbers", [[], [3.0], [5.0] * 40, list(range(1, 60)), [None, 2.0]])
def test_intervals_of_few_rows_are_wide(numbers):
    frame = frame_of("polars", {"age": pl.Series(numbers, dtype=pl.Float64)})
    for by in ((), "job"):
        declared = Schema({"age": Number(0, 100), "job": Category(["a", "b", "c"])})
        rows = frame.with_columns(job=pl.lit("b"))
        query = quantiles("age", [1.0, 0.5, 0.5, 0.0], epsilon=0.1, by=by)
        answer = released(query, rows, declared)
        low, high = np.moveaxis(answer.interval(), -1, 0)
        assert (low <= answer.value).all()
        assert (answer.value <= high).all()
        assert (low[..., 3] == 0).all()
        assert (high[..., 0] == 100).all()


@pytest.mark.parametrize("library", LIBRARIES)
def test_top_labels_count_persons(library):
    columns = {"id": [1, 1, 1, 2, 2, 3, None], "drink": [*"ttcctx", "c"]}
    frame = frame_of(library, columns)
    kind = Category(["c", "m", "t"])
    answer = released(
        top_k("drink", 2, epsilon=50.0), frame, Schema({"drink": kind}, "id", rows_per_person=2)
    )
    assert answer.labels == {"drink": ["c", "t"]} or answer.labels == {"drink": ["t", "c"]}
    assert sorted(answer.value.tolist()) == [1, 2]
    assert answer.value[answer.labels["drink"].index("t")] == 2  # 1 and 2; of 1 the first two rows
    each = released(top_k("drink", 3, epsilon=50.0), frame, Schema({"drink": kind}))
    assert dict(zip(each.labels["drink"], each.value.tolist(), strict=True)) == {
        "c": 3, "m": 0, "t": 3,
    }  # fmt: skip
    assert type(answer.frame) is type(frame)


@pytest.mark.parametrize("library", LIBRARIES)
def test_top_labels_of_every_group(library):
    rng, size = np.random.default_rng(0), 900
    columns = {
        "id": rng.integers(0, 300, size),
        "shop": rng.integers(0, 2, size) == 1,
        "drink": rng.choice(["c", "m", "t"], size),
        "age": rng.uniform(0, 10, size),
    }
    frame, drinks = frame_of(library, columns), ["c", "m", "t"]
    kinds = {"drink": Category(drinks), "shop": Flag(), "age": Number(0, 10)}
    declared = Schema(kinds, "id", rows_per_person=10)
    by = {"shop": None, "age": [0, 5, 9]}  # rows from 9 on are in no cell
    query = top_k("drink", 2, by=by, epsilon=900.0)
    answer = released(query, frame, declared)
    facts = pd.DataFrame(columns)
    facts["age_from"] = pd.cut(facts["age"], [0, 5, 9], right=False, labels=[0, 5])
    cells = ["shop", "age_from", "drink"]
    persons = facts.dropna().groupby(cells, observed=True)["id"].nunique()
    truth = np.sort(persons.to_numpy().reshape(2, 2, 3))[..., :0:-1]
    assert (answer.value == truth).all()
    table = pd.DataFrame(answer.labels)
    assert table.columns.tolist() == ["shop", "age_from", "age_to", "drink"]
    listed = persons.loc[list(table[cells].itertuples(index=False, name=None))]
    assert listed.tolist() == truth.ravel().tolist()
    assert answer.interval().shape == (2, 2, 2, 2)
    assert type(answer.frame) is type(frame)
    assert str(query) == "top 2 of drink by shop, age (bins 0.0, 5.0, 9.0)"


def test_top_labels_of_groups_cost_what_a_person_moves():
    kinds = {"drink": Category(["c", "m", "t"]), "shop": Flag()}
    for relation, moved in (("add-remove", 2), ("replace-one", 4)):
        declared = Schema(kinds, "id", rows_per_person=2, relation=relation)
        (noise,) = top_k("drink", 1, by="shop", epsilon=1.0).plan(declared).leaves()
        assert noise.sensitivity == moved  # not 1 for groups that are disjoint in rows alone
        assert moved <= noise.scale < moved * (1 + 1e-9)


def test_top_labels_of_many():
    rng = np.random.default_rng(0)
    columns = {"word": np.minimum(rng.geometric(0.3, 20_000), 200), "id": np.arange(20_000)}
    frame = frame_of("polars", columns)
    declared = Schema({"word": Category(range(1, 201))}, "id", rows_per_person=20)
    query = top_k("word", 4, epsilon=0.5)
    assert len(list(query.plan(declared).leaves())) == 5  # rounds, then counts
    ledger = Ledger(frame, query.plan(declared), rng=0)
    answer = query.release(ledger, declared)
    assert ledger.next is None
    assert answer.labels["word"] == [1, 2, 3, 4]
    assert answer.value.dtype == np.int64  # also where the noise of the counts is on floats
    truth = np.bincount(frame["word"].to_numpy())[1:5]
    ends = answer.interval()
    assert ((ends[:, 0] <= truth) & (truth <= ends[:, 1])).all()
    assert "4 rounds of the exponential mechanism" in query.explain(declared)


def test_several_releases_are_all_made_or_none():
    declared = Schema({"age": Integer(0, 100), "job": Category(["a", "b"])})
    frame = frame_of("polars", {"age": [1, 2, 3], "job": ["a", "b", "b"]})
    for query in (quantiles("age", [0.1, 0.9], epsilon=1.0), median("age", epsilon=1.0, by="job")):
        short = Filter(frame, Budget(0.9), rng=0)
        with pytest.raises(BudgetExceeded):
            query.release(short, declared)
        assert short.spent == 0
        steps = list(query.plan(declared).leaves())
        other = Ledger(frame, steps[0] + steps[1] + 3 * steps[0], rng=0)
        with pytest.raises(OffPlan):
            query.release(other, declared)
        assert len(other.transcript) == 0
        with pytest.raises(ParameterError, match="label must be None: only the ledger of a book"):
            query.release(Filter(frame, Budget(5.0), rng=0), declared, label="ages")


@pytest.mark.parametrize(("make", "words"), [
    (lambda: quantile("age", 1.5, epsilon=1.0), "quantile must be"),
    (lambda: quantiles("age", [], epsilon=1.0), "quantiles must be a list of numbers"),
    (lambda: quantiles("age", 0.5, epsilon=1.0), "quantiles must be a list of numbers"),
    (lambda: median("age", epsilon=float("nan")), "epsilon must be"),
    (lambda: median("age", epsilon=1.0, confidence=1.0), "confidence must be"),
    (lambda: median("agee", epsilon=1.0).plan(schema()), "did you mean 'age'?"),
    (lambda: median("job", epsilon=1.0).plan(schema()), "column 'job' must be a Number"),
    (lambda: median("age", by="kids", epsilon=1.0).plan(schema()), "must be a Category"),
    (lambda: top_k("age", 1, epsilon=1.0).plan(schema()), "must be a Category"),
    (lambda: top_k("job", 4, epsilon=1.0).plan(schema()), "k must be at most 3"),
    (lambda: top_k("job", 0, epsilon=1.0), "k must be"),
    (lambda: top_k("job", 1, epsilon=1.0).plan(Schema({"job": Key()})), "used in by= alone"),
    (lambda: median("age", epsilon=1.0, by="c").plan(
        Schema({"age": Number(0, 1), "c": Category(range(30_000))})), "columns of fewer"),
])  # fmt: skip
def test_refusals(make, words):
    with pytest.raises(ParameterError, match=words.replace("?", r"\?")):
        make()
