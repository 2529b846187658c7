"""What is wrong is refused before anything is spent, and no message shows a row."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from accountant import Budget, BudgetExceeded, Filter, ParameterError, PrivateValueError
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
    mean,
    median,
    quantile,
    regression,
    top_k,
    variance,
)
from algorithms.frames.columns.keys import SelectedKeys
from algorithms.frames.questions import unseen
from mechanisms import Laplace
from tests.algorithms.frames.frames_of import COLUMNS, frame_of, rows, schema

AGE = {"age": Number(0, 100)}


@pytest.mark.parametrize(("make", "words"), [
    (lambda: Number(5, 5), "high must be"),
    (lambda: Number(0, 5e-324), "high must be a number above low"),
    (lambda: Number(0, float("nan")), "high must be"),
    (lambda: Number(0, 9, missing=10), 'missing must be "drop", or a number within'),
    (lambda: Number(True, 9), "low must be"),
    (lambda: Integer(0, 2.5), "high must be a whole number"),
    (lambda: Integer(0, 2**31), "high must be a whole number"),
    (lambda: Flag(missing=1), "missing must be"),
    (lambda: Category("cook"), "categories must be a list"),
    (lambda: Category(["a", 1]), "categories must be a list"),
    (lambda: Category(["a", "a"]), "categories must be a list"),
    (lambda: Category(["a", "drop"]), "categories must be a list"),
    (lambda: Category(["a"], missing=3), "missing must be"),
    (lambda: Schema({}), "columns must be a dict"),
    (lambda: Schema({"age": (0, 100)}), r"columns\['age'\] must be a dict from names"),
    (lambda: Schema(AGE, rows_per_person=2), "person must be the column"),
    (lambda: Schema(AGE, person="id", rows_per_person=0), "rows_per_person must be"),
    (lambda: Schema(AGE, relation="label-replace"), "relation must be one of"),
    (lambda: mean("age").plan(schema()), "epsilon, rho, scale must be one of them"),
    (lambda: mean("age", epsilon=1.0, rho=1.0), "epsilon, rho, scale must be one of them"),
    (lambda: mean("age", epsilon=-1.0), "epsilon must be"),
    (lambda: mean("age", epsilon=1.0, noise="gaussian"), "delta must be above 0"),
    (lambda: mean("age", rho=1.0, delta=1e-6), "delta must be given with epsilon"),
    (lambda: mean("age", rho=1.0, noise="laplace"), "noise must be"),
    (lambda: mean("age", scale=1.0), "noise must be"),
    (lambda: count(epsilon=1.0, where="age > 3"), "where must be a comparison"),
    (lambda: count(epsilon=1.0, by=["job", "job"]), "by must be the name"),
    (lambda: histogram("age", [3, 2], epsilon=1.0), "bins must be rising"),
    (lambda: histogram("age", 0, epsilon=1.0), "bins must be"),
    (lambda: histogram("age", range(4097), epsilon=1.0), "bins must be 4,096 edges at most"),
    (lambda: contingency(["job"], bins={"age": 3}, epsilon=1.0), "bins must be those of"),
    (lambda: contingency([], epsilon=1.0), "bins must be those of"),
    (lambda: col("age") > 1 and col("age") < 5, "condition must be joined by &"),
    (lambda: col(""), "name must be"),
    (lambda: Number(100, 0), "high must be a number above low"),
    (lambda: Schema({"age": Number}), "Number takes what is public"),
    (lambda: Schema({"age": (0, 100)}), r"bounds are Number\(0, 100\)"),
    (lambda: Schema({"job": ["a", "b"]}), r"labels are Category\(\['a', 'b'\]\)"),
    (lambda: mean("age").plan(schema()), r"such as epsilon=1\.0"),
    (lambda: quantile("age", 50, epsilon=1.0), "50 per cent are 0.5"),
    (lambda: mean("age", 1.0), r"epsilon must be given by name: mean\('age', epsilon=1\.0\)"),
    (lambda: histogram("age", 10, 1.0), "epsilon must be given by name: histogram"),
    (lambda: median("age").plan(schema()), "one of them: it says what"),
    (lambda: mean(epsilon=1.0), "column must be given: mean"),
    (lambda: mean("age", epsilonn=1.0), "no argument: did you mean 'epsilon'?"),
    (lambda: mean("age", eps=1.0), "no argument: mean"),
    (lambda: mean("age", column="age", epsilon=1.0), "column must be given once"),
    (Number, r"low, high must be given: Number\(0, 100\)"),
    (lambda: Integer(0), "high must be given: Integer"),
    (lambda: Number(0, 1, 0, 5), r"value 4 must be left out: Number\(0, 100\), got 5"),
    (Category, "categories must be given"),
    (Schema, "columns must be given: Schema"),
    (lambda: top_k("job", 1, epsilon=1.0).group_by(["x", "x"]), "keys must be the name"),
    (lambda: top_k("job", 1, by="job", epsilon=1.0).plan(Schema({"job": Category(["a"])})),
     "by must be columns beside 'job'"),
    (lambda: count(by="job", epsilon=1.0).group_by("owner"), "'count by job' has groups"),
    (lambda: count(by={"age": "monthly"}, epsilon=1.0), "bins must be one of 'day'"),
    (lambda: Filter({"age": [1]}, Budget(1.0)), r"pandas\.DataFrame\(data\) makes one"),
])  # fmt: skip
def test_arguments(make, words):
    with pytest.raises(ParameterError, match=words):
        make()


@pytest.mark.parametrize(("query", "words"), [
    (mean("agee", epsilon=1.0), "column must be declared in the schema: did you mean 'age'?"),
    (mean("job", epsilon=1.0), "column 'job' must be a Number or an Integer"),
    (count("wage", epsilon=1.0), "column must be declared in the schema"),
    (count(by="age", epsilon=1.0), "column 'age' must be a Category or a Flag; of numbers"),
    (histogram("job", 5, epsilon=1.0), "bins must be None: 'job' has labels"),
    (histogram("age", epsilon=1.0), "column 'age' must be a Category or a Flag; of numbers"),
    (count(epsilon=1.0, where=col("jobb") == "cook"), "did you mean 'job'?"),
    (count(epsilon=1.0, where=col("job") == "cok"), "the value for column 'job' must be one of"),
    (count(epsilon=1.0, where=col("job") < "cook"), "where must be ==, != or is_in"),
    (count(epsilon=1.0, where=col("owner") == 1), "the value for column 'owner' must be one of"),
    (mean("AGE", epsilon=1.0), "did you mean 'age'?"),
    (mean("job", epsilon=1.0), "count(by='job') counts"),
    (count(by="age", epsilon=1.0), "by={'age': 10} has ten"),
    (histogram("age", [200, 300], epsilon=1.0), "within the bounds of 'age', 0 .. 100"),
    (histogram("age", "month", epsilon=1.0), "'age' has no dates"),
    (count(epsilon=100.0), "epsilon must be smaller"),
    (count(epsilon=1.0, where=col("age") > "old"), "the value for column 'age' must be a number"),
])  # fmt: skip
def test_questions_that_the_schema_does_not_know(query, words):
    ledger = Filter(frame_of("pandas", rows(5)), Budget(5.0), rng=0)
    for asked in (query.plan, lambda declared: query.release(ledger, declared)):
        with pytest.raises(ParameterError) as error:
            asked(schema())
        assert words in str(error.value)
    assert ledger.spent == 0


KINDS_IN_WORDS = [
    (Number(0, 1), "a number"), (Integer(0, 1), "an integer"), (Flag(), "a flag"),
    (Date("2020-01-01", "2021-01-01"), "a date"), (Category(["a", "b"]), "a category"),
    (Key(), "a key"), (SelectedKeys(("a", "b")), "a key"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "words"), KINDS_IN_WORDS)
def test_a_column_of_another_type_is_told_the_declared_kind(kind, words):
    facts = FrameFacts("polars", {"x": "Binary"})
    with pytest.raises(ParameterError, match=f"of a type that is {words}, as the schema declares"):
        Schema({"x": kind}).check_frame(facts, ["x"])


@pytest.mark.parametrize(("frame", "words"), [
    (pl.DataFrame({"Age": [1.0]}), "column must be a column of the frame: did you mean 'Age'?"),
    (pl.DataFrame({"age": ["1.0"]}), "column 'age' must be of a type that is a number"),
    (pd.DataFrame({"age": [True]}), "column 'age' must be of a type that is a number"),
    (pd.DataFrame({"age": pd.date_range("2020", periods=2)}), "of a type that is a number"),
    (pl.DataFrame({"age": [1.0]}), "person must be a column of the frame, one of 'age'"),
    (pl.DataFrame({"age": ["1.0"]}), "numbers as strings are converted before"),
    (pl.DataFrame({"age": [None]}), "convert the column to such a type before, got 'Null'"),
    (pd.DataFrame({"age": [True]}), "declared as Flag"),
    (pd.DataFrame({"age": pd.date_range("2020", periods=2)}), "declared as Date"),
    (np.zeros((3, 2)), "ledger must be a ledger on a data frame"),
])  # fmt: skip
def test_frames_that_are_not_those_of_the_schema(frame, words):
    ledger = Filter(frame, Budget(5.0), rng=0)
    declared = Schema(AGE, person="id" if "one of 'age'" in words else None)
    with pytest.raises(ParameterError, match=words.replace("?", r"\?")):
        mean("age", epsilon=1.0).release(ledger, declared)
    assert ledger.spent == 0


@pytest.mark.parametrize(("kind", "frame", "words"), [
    (Flag(), {"x": ["yes"]}, "its labels are strings"), (Flag(), {"x": [1]}, "Integer"),
    (Category([1, 2]), {"x": ["1"]}, "its labels are strings"),
    (Category(["1"]), {"x": [1]}, "declared as such"),
])  # fmt: skip
def test_types_that_do_not_fit_get_a_suggestion(kind, frame, words):
    ledger = Filter(pl.DataFrame(frame), Budget(1.0))
    with pytest.raises(ParameterError, match=words):
        count(by="x", epsilon=1.0).release(ledger, Schema({"x": kind}))
    assert ledger.spent == 0


def test_columns_and_conditions_of_libraries_are_not_shown():
    frame = pd.DataFrame({"age": [31.25, 41.75]})
    for make in (
        lambda: mean(frame["age"], epsilon=1.0).plan(schema()),
        lambda: median(frame["age"], epsilon=1.0).plan(schema()),
        lambda: regression(frame["age"], ["kids"], rho=1.0).plan(schema()),
        lambda: count(where=frame["age"] > 35, epsilon=1.0),
        lambda: mean("age", epsilon=1.0).release(frame, schema()),
    ):
        with pytest.raises(ParameterError) as error:
            make()
        assert "31.25" not in repr(str(error.value))
        assert "True" not in str(error.value)


def test_groups_may_be_said_later():
    asked = mean("age", epsilon=1.0).group_by({"owner": None, "kids": 4})
    assert asked == mean("age", by={"owner": None, "kids": 4}, epsilon=1.0)
    assert median("age", epsilon=1.0).group_by("job") == median("age", by="job", epsilon=1.0)
    assert repr(col("age").between(3, 5)) == "(age >= 3) and (age <= 5)"


def test_a_ledger_protects_one_unit():
    ledger = Filter(frame_of("polars", rows(9)), Budget(5.0), rng=0)
    count(epsilon=1.0).release(ledger, schema())
    count(epsilon=1.0).release(ledger, schema())
    for facts in ({"person": "id"}, {"relation": "replace-one"}):
        with pytest.raises(ParameterError, match="this ledger protects that"):
            count(epsilon=1.0).release(ledger, schema(**facts))
    assert ledger.spent == pytest.approx(2.0, rel=1e-5)


def test_what_does_not_fit_spends_nothing():
    ledger = Filter(frame_of("polars", rows(9)), Budget(1.0), rng=0)
    with pytest.raises(BudgetExceeded):
        mean("age", epsilon=1.5).release(ledger, schema())
    assert ledger.spent == 0
    with pytest.raises(ParameterError, match="ledger must be a Ledger, a Filter"):
        mean("age", epsilon=1.0).release(Budget(1.0), schema())


def test_no_message_shows_a_row():
    def fails(frame):
        raise ValueError(frame["job"][1])

    frame = pd.DataFrame({"age": [1.0, 2.0], "job": ["cook", "secret"]})
    with pytest.raises(PrivateValueError) as error:
        Filter(frame, Budget(5.0), rng=0).release(Laplace(1.0), unseen(fails))
    assert "secret" not in str(error.value)
    assert error.value.__cause__ is None
    assert error.value.__suppress_context__


def test_schemas_are_files(tmp_path):
    path = str(tmp_path / "people.toml")
    declared = Schema({**COLUMNS, "odd name": Category([1, 2], missing=7)}, "id", 3, "replace-one")
    assert Schema.from_toml(path) == declared if declared.to_toml(path) else False
    assert hash(Schema.from_toml(path)) == hash(declared)
    assert Schema(AGE).to_toml().startswith('rows_per_person = 1\nrelation = "add-remove"\n\n')
    for text, words in (
        ("x = 1", "schema must be keys person"),
        ("[columns.age]\nkind = 'numbr'", "columns.age.kind must be one of number"),
        ("[columns.age]\nlow = 0\nhigh = 1", "columns.age.kind must be one of number"),
        ("[columns]\nage = 'number'", "columns.age.kind must be one of number"),
        ("columns = 3", "schema must be keys person"),
        ("odd = 1\n[columns.age]\nkind = 'flag'", "schema must be keys person"),
        ("[columns.age]\nkind = 'number'\nlow = 0\nhigh = 1\nodd = 1", "columns.age must be"),
        ("[columns.age]\nkind = 'number'\nlow = 0", "columns.age must be the keys kind, low, high"),
        ("[columns.age]\nkind = 'number'\nlow = 0\nhigh = -1", "columns.age.high must be"),
        ("[columns", "path must be a TOML file"),
    ):
        (tmp_path / "wrong.toml").write_text(text)
        with pytest.raises(ParameterError, match=words):
            Schema.from_toml(str(tmp_path / "wrong.toml"))


@pytest.mark.parametrize("column", [
    pl.Series("id", [1, 2, 3], dtype=pl.Int128), pl.Series("id", [{"a": 1}, {"a": 1}, {"a": 2}]),
    pl.Series("id", [[1], [1], [2]]), pl.Series("id", [None, None, None]),
])  # fmt: skip
def test_persons_of_types_that_name_no_person_are_refused_before_the_charge(column):
    gate = Filter(pl.DataFrame([column, pl.Series("age", [1, 2, 3])]), Budget(1.0))
    with pytest.raises(ParameterError, match="person 'id' must be a column of whole numbers"):
        mean("age", epsilon=1.0).release(gate, Schema(AGE, person="id"))
    assert gate.spent == 0


def test_a_variance_beyond_the_floats_is_refused_before_the_charge():
    gate = Filter(pd.DataFrame({"age": [1.0, 2.0, 3.0]}), Budget(1.0))
    with pytest.raises(ParameterError, match="column 'age' must be bounds at most 1e\\+150 apart"):
        variance("age", epsilon=1.0).release(gate, Schema({"age": Number(-1e300, 1e300)}))
    assert gate.spent == 0
    variance("age", epsilon=1.0).release(gate, Schema({"age": Number(-4e149, 4e149)}))
