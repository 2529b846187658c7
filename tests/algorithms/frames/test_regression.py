"""Regression of frames: beside least squares by numpy, intervals, cells, refusals."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from accountant import Book, Budget, Filter, ParameterError, Tight
from algorithms.frames import Date, Key, Number, Schema, col, regression
from tests.algorithms.frames.frames_of import COLUMNS, LIBRARIES, frame_of, rows, schema
from tests.algorithms.frames.test_statistics import PERSON, counted_rows

QUIET = {"rho": 1e9}
FEATURES = ["age", "kids", "job", "owner"]


def released(query, frame, declared, seed=0):
    ledger = Filter(frame, Budget(1e12, 1e-6), rng=seed)
    return query.release(ledger, declared)


def least_squares(kept):
    """Coefficients by numpy, of rows as declared."""
    design = [
        [r["age"], r["kids"], r["job"] == "nurse", r["job"] == "other", r["owner"], 1]
        for r in kept
    ]  # fmt: skip
    target = [r["change"] for r in kept]
    return np.linalg.lstsq(np.array(design, float), np.array(target), rcond=None)[0]


@pytest.mark.parametrize("facts", [{}, PERSON], ids=["rows", "persons"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_coefficients_are_those_of_least_squares(library, facts):
    columns, declared = rows(400, 3, persons=150), schema(**facts)
    query = regression("change", FEATURES, where=col("age") < 90, **QUIET)
    answer = released(query, frame_of(library, columns), declared)
    kept = counted_rows(columns, ["change", *FEATURES], declared, lambda r: r["age"] < 90)
    assert answer.value == pytest.approx(least_squares(kept), abs=2e-3)
    table = answer.frame
    assert type(table) is type(frame_of(library, columns))
    terms = ["age", "kids", "job = nurse", "job = other", "owner = True", "constant"]
    assert list(table["term"].to_numpy()) == terms
    assert "owner = True" in answer._repr_html_()
    assert np.diff(answer.interval()).max() < 0.1


def test_cells_have_fits_of_their_own():
    columns = rows(600, 4)
    answer = released(
        regression("change", ["age", "kids"], by="owner", **QUIET),
        frame_of("polars", columns), schema(),
    )  # fmt: skip
    assert answer.value.shape == (2, 3)
    kept = counted_rows(columns, ["change", "age", "kids", "owner"], schema())
    for flag in (False, True):
        some = [row for row in kept if row["owner"] == flag]
        design = np.array([[row["age"], row["kids"], 1.0] for row in some])
        found = np.linalg.lstsq(design, np.array([row["change"] for row in some]), rcond=None)[0]
        assert answer.value[int(flag)] == pytest.approx(found, abs=2e-3)
    assert list(answer.frame.columns) == ["owner", "term", "coefficient", "lower", "upper"]


def test_the_plan_costs_what_was_asked_for_persons_with_several_rows():
    for facts in ({}, {"person": "id", "rows_per_person": 3}):
        for relation in ("add-remove", "replace-one"):
            declared = schema(relation=relation, **facts)
            query = regression("change", FEATURES, epsilon=0.7, delta=1e-6)
            assert 0.69 < Tight().epsilon(query.plan(declared), 1e-6) <= 0.7
    one, three = (query.mechanism(schema(**PERSON | {"rows_per_person": m})) for m in (1, 3))
    assert three.sensitivity == 3 * one.sensitivity


def some_frame(rng):
    age = rng.uniform(20, 70, 20_000)
    wage = 10 + 0.6 * age + rng.normal(0, 8, age.size)
    return pd.DataFrame({"age": age, "wage": wage, "owner": rng.random(age.size) < 0.3})


WAGES = Schema({**COLUMNS, "age": Number(18, 75), "wage": Number(0, 90)})


def covered(seeds, rho):
    """How many of the intervals of 95 % cover the coefficients of the frame itself."""
    frame = some_frame(np.random.default_rng(1))
    query = regression("wage", ["age", "owner"], rho=rho)
    kept = frame.assign(wage=frame["wage"].clip(0, 90))
    design = np.column_stack([kept["age"], kept["owner"], np.ones(len(kept))]).astype(float)
    truth = np.linalg.lstsq(design, kept["wage"].to_numpy(), rcond=None)[0]
    exact, mechanism = query.sums(frame, WAGES), query.mechanism(WAGES)
    answer = released(query, frame, WAGES)
    hits = np.zeros(3)
    for seed in range(seeds):
        noisy = mechanism.release(exact, rng=seed)
        object.__setattr__(answer, "released", noisy)
        ends = answer.interval()
        hits += (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    return hits / seeds


def test_intervals_cover():
    # of 400, fewer than 355 of 95 % have a chance below 1e-6
    assert covered(400, 0.01).min() > 355 / 400


@pytest.mark.slow
def test_how_often_intervals_cover():
    found = np.array([covered(5000, rho) for rho in (0.1, 0.01, 0.001)])
    words = "; ".join(", ".join(f"{100 * one:.1f}" for one in row) for row in found)
    print(words)
    assert 0.93 < found.min() < found.max() < 0.97
    page = Path(__file__).parents[3] / "docs" / "frames.md"
    assert words in " ".join(page.read_text(encoding="utf-8").split())


def test_where_noise_hides_the_features_intervals_have_no_ends():
    answer = released(regression("change", FEATURES, rho=1e-4), frame_of("pandas", rows(50)),
                      schema())  # fmt: skip
    assert np.isinf(answer.interval()).all()
    assert np.isfinite(answer.value).all()
    assert np.isinf(answer.frame["upper"].to_numpy()).all()


def test_a_book_gives_it_again(tmp_path):
    query = regression("change", "age", epsilon=0.5, delta=1e-6)
    frame = frame_of("polars", rows(200))
    with Book.create(f"sqlite:///{tmp_path / 'book.db'}") as book:
        book.dataset("people", Budget(1.0, 1e-5))
        with book.ledger("people", frame) as ledger:
            first = query.release(ledger, schema(), label="fit")
        spent = book.spent("people")
        with book.ledger("people", frame) as ledger:
            again = query.release(ledger, schema(), label="fit")
        assert again.released.tolist() == first.released.tolist()
        assert book.spent("people") == spent


def test_dates_are_numbers_of_days():
    days = pd.date_range("2026-01-01", periods=300)
    frame = pd.DataFrame({"day": days, "x": 2.0 + 0.01 * np.arange(300)})
    declared = Schema({"day": Date("2026-01-01", "2026-12-31"), "x": Number(0, 10)})
    answer = released(regression("x", "day", **QUIET), frame, declared)
    assert answer.value[0] == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize(("make", "words"), [
    (lambda: regression("age", "kids", epsilon=1.0), "delta must be above 0, or a rho"),
    (lambda: regression("age", [], rho=1.0), "features must be columns beside the target 'age'"),
    (lambda: regression("age", ["age"], rho=1.0), "features must be columns beside the target"),
    (lambda: regression("age", ["a", "a"], rho=1.0), "features must be the name of a column"),
    (lambda: regression("job", "age", rho=1.0).plan(schema()), "column 'job' must be a Number"),
    (lambda: regression("age", "kid", rho=1.0).plan(schema()), "did you mean 'kids'"),
    (lambda: regression("age", "zip", rho=1.0).plan(Schema({**COLUMNS, "zip": Key()})),
     "used in by= alone"),
    (lambda: regression("age", "kids", by="zip", rho=1.0).plan(Schema({**COLUMNS, "zip": Key()})),
     "column 'zip' must be a Category here"),
    (lambda: regression("age", "kids", rho=math.nan), "rho must be"),
])  # fmt: skip
def test_refusals(make, words):
    with pytest.raises(ParameterError, match=words):
        make()
