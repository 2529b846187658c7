"""Row 42: stored answers come back to the last bit, and never by unpickling."""

import base64
import enum
import io
import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given

from accountant import Book, Budget, LedgerCorrupt, PrivateValueError
from accountant.book.chain.entries import digest
from accountant.book.stored_values import decode_answer, encode_answer
from mechanisms import Laplace
from tests.strategies import answers

DATA = np.arange(20.0)
TENTH = Laplace(10.0)


def same(one, other):
    if isinstance(one, np.ndarray | np.generic):
        equal = one.tobytes() == np.asarray(other).tobytes()
        return type(one) is type(other) and one.dtype == other.dtype and equal
    if isinstance(one, float) and math.isnan(one):
        return math.isnan(other)
    if isinstance(one, list | tuple):
        return type(one) is type(other) and all(map(same, one, other)) and len(one) == len(other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return type(one) is type(other) and (one == other or repr(one) == repr(other))


@given(answers)
def test_what_is_stored_comes_back_to_the_last_bit(answer):
    assert same(answer, decode_answer(encode_answer(answer)))


@pytest.mark.parametrize(
    "number", [np.float64(0.1), np.float32(2), np.int8(-3), np.bool_(True), np.complex128(1j),
               np.str_("word"), np.bytes_(b"")],
)  # fmt: skip
def test_a_number_of_numpy_is_stored_as_numpy_writes_it(number):
    file = io.BytesIO()
    np.save(file, number)
    assert base64.b64decode(json.loads(encode_answer(number))["scalar"]) == file.getvalue()


@pytest.mark.parametrize(
    "answer", [object(), {1: 2}, np.array([object()]), {1, 2}, b"raw", lambda: 0,
               np.array("2020", "M8"), np.ma.array([1.0, 2.0], mask=[False, True])],
    ids=["object", "number key", "objects", "set", "bytes", "function", "date", "masked"],
)  # fmt: skip
def test_what_cannot_be_stored_is_refused(answer):
    with pytest.raises(PrivateValueError, match="the value is private and not shown"):
        encode_answer(answer)


def test_an_answer_beyond_the_limit_is_refused(monkeypatch):
    monkeypatch.setattr("accountant.book.stored_values.MAX_ANSWER_BYTES", 1000)
    for answer in (np.zeros(126), "x" * 1000, [[0.0] * 100]):
        with pytest.raises(PrivateValueError, match="answer must be of numbers"):
            encode_answer(answer)


class Trap:
    def __reduce__(self):
        return pytest.fail, ("unpickled",)


def objects():
    file = io.BytesIO()
    np.save(file, np.array([Trap()], dtype=object), allow_pickle=True)
    import base64

    return json.dumps({"array": base64.b64encode(file.getvalue()).decode()}).encode()


WRONG = {
    "a pickle": pickle.dumps([1]),
    "an array of pickles": objects(),
    "1e999": b'{"float": 1e999}',
    "a decimal": b"0.1",
    "NaN": b"NaN",
    "a tag": b'{"pickle": ""}',
    "two tags": b'{"int": "1", "float": "0x0p0"}',
    "nothing": b"",
    "an int that is none": b'{"int": null}',
    "a float that is a number": b'{"float": 5}',
    "a dict that is a list": b'{"dict": [1]}',
    "an array that is a number": b'{"array": 5}',
}


class Level(int, enum.Enum):
    LOW = 1


def test_a_member_of_an_enum_of_whole_numbers_is_stored_as_its_number():
    assert decode_answer(encode_answer(Level.LOW)) == 1


@pytest.mark.parametrize("what", WRONG)
def test_row_42_what_was_never_stored_is_not_read(any_book, what):
    with pytest.raises(ValueError, match=r".*"):
        decode_answer(WRONG[what])
    with Book.create(any_book.url) as book:
        book.dataset("d", Budget(1.0))
        with book.ledger("d", DATA) as ledger:
            entry = ledger._book_meter.reservations.reserve(
                TENTH, None, {"label": None}, ledger._noise_fingerprint
            )
            log = ledger._book_meter.account.log
            with log.writing():  # as a thief of the key to the chain would
                facts = {"of": entry.seq, "answer": digest(WRONG[what]), "size": 0}
                made = log.append("release", facts, "d", '{"dataset":"d","label":"x"}')
                log.attach(made, WRONG[what])
            before = any_book.hash_rows()
            with pytest.raises(LedgerCorrupt, match="an answer of no known form"):
                ledger.release(TENTH, np.sum, label="x")
            with pytest.raises(LedgerCorrupt, match="an answer of no known form"):
                book.answer(book.history("d")[0])
    assert any_book.hash_rows() == before


def test_an_answer_that_cannot_be_stored_is_not_given(any_book):
    class Odd:
        value_axes, loss, relation = None, TENTH.loss, None

        def release(self, value, rng, size=None):
            return object()

    from accountant.plans.plan import Release

    odd = type("Declared", (Odd, Release), {"reversed": None, "losses": None})()
    with Book.create(any_book.url) as book:
        book.dataset("d", Budget(1.0))
        with book.ledger("d", DATA, undeclared=True) as ledger, pytest.raises(PrivateValueError):
            ledger.release(odd, np.sum)
        assert book.spent("d") == 0.1
        assert [line.outcome for line in book.history("d")] == ["reserved"]
        book.verify()
