"""A session over a book: questions to one frame, charged and kept under their words."""

import pandas as pd
import pytest

from accountant import Book, Budget, BudgetExceeded, ParameterError
from algorithms.frames import Category, Number, Schema, col, count, mean, median, top_k

FRAME = pd.DataFrame({"region": ["north", "south"] * 400, "x": range(800)})
SCHEMA = Schema({"region": Category(["north", "south"]), "x": Number(0, 800)})


@pytest.fixture
def book(tmp_path):
    with Book.create(f"sqlite:///{tmp_path / 'book.db'}") as opened:
        opened.dataset("visits", Budget(1.0, 1e-6))
        yield opened


def test_a_question_is_answered_charged_and_given_again(book):
    with book.session("visits", FRAME, SCHEMA) as ask:
        first = ask(count(by="region"), epsilon=0.1)
        spent = book.spent("visits")
        assert spent == pytest.approx(0.1)
        assert ask(count(by="region"), epsilon=0.1).value.tolist() == first.value.tolist()
        assert ask(count(by="region", epsilon=0.1)).value.tolist() == first.value.tolist()
        assert book.spent("visits") == spent
        middle = ask(median("x"), epsilon=0.2)
        assert list(ask.answers) == [
            "count by region, epsilon 0.1",
            "quantile 0.5 of x, epsilon 0.2",
        ]
        assert ask.left == pytest.approx(0.7, abs=1e-5)
    with book.session("visits", FRAME, SCHEMA) as ask:
        assert ask(median("x"), epsilon=0.2).value == middle.value
        assert book.spent("visits") == pytest.approx(0.3)
        assert "visits" in repr(ask)
        assert "quantile 0.5 of x" in ask.to_frame()["question"].tolist()[0]


def test_the_same_words_under_another_schema_are_another_question(book):
    wide = Schema({"region": Category(["north", "south"]), "x": Number(0, 1600)})
    with book.session("visits", FRAME, SCHEMA) as ask:
        narrow = ask(mean("x"), epsilon=0.4)
    with book.session("visits", FRAME, wide) as ask:
        assert ask(mean("x"), epsilon=0.4).value != narrow.value
    assert book.spent("visits") == pytest.approx(0.8)


LONG = col("x").is_in([i / 3 for i in range(90)])


@pytest.mark.parametrize(("first", "second"), [
    (median("x", epsilon=0.2), median("x", epsilon=0.2, confidence=0.5)),
    (median("x", epsilon=0.2), median("x", epsilon=0.2, confidence=None)),
    (top_k("region", 1, epsilon=0.2), top_k("region", 1, epsilon=0.2, confidence=0.5)),
    (count(epsilon=0.1), count(epsilon=0.10000000001)),
    (count(epsilon=0.1, delta=1e-7, noise="laplace"),
     count(epsilon=0.1, delta=1e-7, noise="gaussian")),
    (count(epsilon=0.1, where=LONG), count(epsilon=0.1, where=LONG & (col("x") > 5))),
    (count(by="e\u0301\n", epsilon=0.1), count(by="e\u0301\n", epsilon=0.2)),
])  # fmt: skip
def test_questions_of_nearly_the_same_words_are_two_questions(book, first, second):
    frame = FRAME.assign(**{"e\u0301\n": FRAME["region"]})
    schema = SCHEMA.with_columns({**SCHEMA.columns, "e\u0301\n": SCHEMA.columns["region"]})
    with book.session("visits", frame, schema) as ask:
        answers = [ask(first)]
        spent = book.spent("visits")
        answers.append(ask(second))
        assert spent < book.spent("visits")
        spent = book.spent("visits")
        assert list(ask.answers.values()) == answers
        assert [str(ask(question)) for question in (first, second)] == [*map(str, answers)]
        assert book.spent("visits") == spent
        assert len(ask.answers) == 2


def test_what_a_question_costs_and_whether_it_fits(book):
    with book.session("visits", FRAME, SCHEMA) as ask:
        assert ask.cost(count(), epsilon=0.3) == pytest.approx(0.3, rel=1e-4)
        assert 0.5 < ask.cost(mean("x"), rho=0.01) < 0.6
        assert ask.fits(count(), epsilon=0.3) == 3
        assert ask.fits(count(), epsilon=3.0) == 0
        with pytest.raises(BudgetExceeded):
            ask(count(), epsilon=3.0)
        with pytest.raises(ParameterError, match="epsilon, rho, scale must be one of them"):
            ask(count())
        with pytest.raises(ParameterError, match="did you mean 'region'"):
            ask(count(by="regoin"), epsilon=0.1)
        assert ask.left == 1.0
