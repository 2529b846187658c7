"""The claim of a statistic, tested on the code as it runs: audits on pairs of frames, and books."""

import numpy as np
import pyarrow as pa
import pytest

from accountant import Book, Budget, ParameterError, PureLoss, Tight
from algorithms.frames import Number, Schema, count, mean, quantile, variance
from algorithms.frames.bases import Sensitivities
from algorithms.frames.guarantees import Guarantee
from audits import audit
from tests.algorithms.frames.frames_of import frame_of, rows, schema

PAIR = (
    pa.table({"age": [150.0, 99.0, 40.0, 10.0], "id": [0, 0, 1, 2]}),
    pa.table({"age": [40.0, 10.0], "id": [1, 2]}),
)
TWO = Schema({"age": Number(0, 100)}, person="id", rows_per_person=2)
ONE = Schema({"age": Number(0, 100)})  # as if each row were a person


def released_by(query, declared):
    mechanism = query.mechanism(declared)
    unit = query.statistic.basis(declared, "laplace").unit

    def release(frame, rng, size):
        sums = query.sums(frame, declared, "laplace")
        return mechanism.release(sums, rng, size) * unit

    return release


@pytest.mark.parametrize("query", [
    mean("age", epsilon=1.0), pytest.param(variance("age", epsilon=1.0), marks=pytest.mark.slow),
], ids=str)  # fmt: skip
def test_audits_find_no_more_than_was_asked_and_nearly_all_of_it(query):
    how = {"runs": 6_000, "confidence": 1 - 1e-6, "rng": 3}
    found = audit(released_by(query, TWO), PAIR, PureLoss(1.0), **how)
    assert found.outcome.name == "SURVIVED"
    assert found.epsilon_lower > 0.4
    wrong = audit(released_by(query, ONE), PAIR, PureLoss(1.0), **how)
    assert wrong.outcome.name == "FALSIFIED"


def test_books_give_an_answer_again(tmp_path):
    book = Book.create(f"sqlite:///{tmp_path}/budgets.db")
    book.dataset("people", budget=Budget(1.0), unit="one person")
    frame, declared = frame_of("polars", rows(40)), schema(person="id", rows_per_person=2)
    found = []
    for _ in range(2):
        with book.ledger("people", frame) as ledger:
            answer = count(by="job", epsilon=0.6).release(ledger, declared, label="jobs")
            found.append(answer.value.tolist())
    assert found[0] == found[1]
    assert book.spent("people") == pytest.approx(0.6, rel=1e-5)
    assert np.shape(found[0]) == (3,)
    book.close()


@pytest.mark.parametrize(("first", "second"), [
    [count(by={"age": [0, edge, 99]}, epsilon=0.1) for edge in (20, 80)],
    [count(by={"age": bins}, epsilon=0.1) for bins in (4, 5)],
    [quantile("age", share, epsilon=0.1) for share in (0.9999999, 1.0)],
], ids=["edges", "bins", "quantiles"])  # fmt: skip
def test_a_label_is_refused_to_other_bins_and_other_quantiles(first, second, tmp_path):
    """The plans are equal, so the words alone tell one question from the other."""
    frame, declared = frame_of("polars", rows(40)), schema()
    with Book.create(f"sqlite:///{tmp_path}/budgets.db") as book:
        book.dataset("people", budget=Budget(1.0))
        with book.ledger("people", frame) as ledger:
            answer = first.release(ledger, declared, label="a")
            assert str(first.release(ledger, declared, label="a")) == str(answer)
            with pytest.raises(ParameterError, match="no other question was asked"):
                second.release(ledger, declared, label="a")
        assert book.spent("people") == pytest.approx(0.1)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_only_gaussian_noise_spends_a_delta(noise):
    moved = Sensitivities(3, 1.5)
    released = Guarantee(epsilon=1.0, delta=1e-4).mechanism(noise, moved, 2, 1.0).loss
    delta = 1e-4 if noise == "gaussian" else 0.0
    assert 0.999 < Tight().epsilon(released, delta) <= 1.0
