"""A book with a key: a log that was rewritten without the key is found, however consistent."""

import traceback

import numpy as np
import pytest

from accountant import Book, Budget, LedgerCorrupt, ParameterError
from mechanisms import Laplace
from tests.accountant.book.throwaway_books import rewritten, unlooked

DATA = np.arange(20.0)
TENTH = Laplace(10.0)
KEY, OTHER = b"a key of the auditor", b"the key of another book"


def written(place, key, make=Book.create):
    with make(place.url, key=key) as book:
        book.dataset("d", Budget(1.0))
        with book.ledger("d", DATA) as ledger:
            for _ in range(3):
                ledger.release(TENTH, np.sum)
        return book.head


def backdated(facts):
    facts["time"] = "2001-01-01T00:00:00.000000+00:00"


def without_signatures(facts):
    backdated(facts)
    facts.pop("mac", None)


@pytest.mark.parametrize("first", [1, 4, 8])
@pytest.mark.parametrize("change", [backdated, without_signatures])
def test_a_log_rewritten_without_the_key_is_found(any_book, change, first):
    head = written(any_book, KEY)
    any_book.tamper(*rewritten(any_book, first, change))
    if first == 1 or change is backdated:  # without the key it is a good book
        with Book.open(any_book.url) as book:
            book.verify()
    with pytest.raises(LedgerCorrupt), Book.open(any_book.url, key=KEY) as book:
        book.verify()
    with pytest.raises(LedgerCorrupt), Book.open(any_book.url, key=KEY) as book:
        book.verify(head)


def test_a_log_without_signatures_is_not_signed_by_the_next_spend(any_book):
    written(any_book, KEY)
    any_book.tamper(*rewritten(any_book, 1, without_signatures))
    with pytest.raises(
        LedgerCorrupt, match="is not signed with the key, as the last entry must be"
    ):
        Book.open(any_book.url, key=KEY)
    with Book.open(any_book.url, key=KEY, accept_unsigned=True) as book:
        book.dataset("e", Budget(1.0))  # so the holder of the key vouches for all before it
        book.verify()
    with pytest.raises(ParameterError, match="accept_unsigned must be True or False"):
        Book.open(any_book.url, key=KEY, accept_unsigned="yes")


def test_a_log_rewritten_with_another_key_is_found(any_book):
    written(any_book, OTHER)
    with pytest.raises(LedgerCorrupt, match="signed with another key"):
        Book.open(any_book.url, key=KEY)


def test_a_log_that_was_cut_is_found_by_a_signed_head(sqlite_book, tmp_path):
    with Book.create(sqlite_book.url, key=KEY) as book:
        book.dataset("d", Budget(1.0))
    before = sqlite_book.path.read_bytes()
    head = written(sqlite_book, KEY, make=Book.open)
    number, mark, signature = head.split(":")
    assert (number, len(mark), len(signature)) == ("8", 64, 64)
    with Book.open(sqlite_book.url, key=KEY) as book:
        assert book.verify(head).head == head == book.head
    sqlite_book.path.write_bytes(before)
    with Book.open(sqlite_book.url, key=KEY) as book:
        book.verify()
        with pytest.raises(LedgerCorrupt, match="rolled back"):
            book.verify(head)


def test_only_a_head_that_was_signed_with_the_key_is_believed(any_book):
    head = written(any_book, KEY)
    plain = head.rpartition(":")[0]
    with Book.open(any_book.url, key=KEY) as book:
        book.verify(head)
        for wrong in (plain, f"{plain}:{'0' * 64}", f"7:{head[2:]}"):
            with pytest.raises(ParameterError, match="head must be signed with the key"):
                book.verify(wrong)
    with Book.open(any_book.url) as book:
        assert book.head == plain
        book.verify(plain)
        with pytest.raises(ParameterError, match="key must be given: the head is signed"):
            book.verify(head)


def test_a_signed_book_is_read_by_all_and_written_with_its_key(stored_book):
    written(stored_book, KEY)
    before = stored_book.hash_rows()
    with Book.open(stored_book.url) as book:
        assert book.spent("d") == 0.3
        ledger = book.ledger("d", DATA)
        with pytest.raises(ParameterError, match="the entries of this book are signed"):
            ledger.release(TENTH, unlooked)
        with pytest.raises(ParameterError, match="the entries of this book are signed"):
            book.dataset("e", Budget(1.0))
    assert stored_book.hash_rows() == before


def test_a_book_can_be_signed_later_and_from_then_on(any_book):
    written(any_book, None)
    with pytest.raises(LedgerCorrupt, match="begun without a key"):
        Book.open(any_book.url, key=KEY)
    with Book.open(any_book.url, key=KEY, accept_unsigned=True) as book:
        with pytest.raises(LedgerCorrupt, match="no entry of it is signed"):
            book.verify()
        book.dataset("e", Budget(1.0))  # covers what is before it
    with Book.open(any_book.url, key=KEY) as book:
        book.verify(book.head)
    any_book.tamper(*rewritten(any_book, 4, backdated))
    with pytest.raises(LedgerCorrupt), Book.open(any_book.url, key=KEY) as book:
        book.verify()


@pytest.mark.parametrize("key", [b"", b"short", 3, True, ["a key of the auditor"], "no/such/file"])
def test_what_is_no_key_is_refused(any_book, key):
    with pytest.raises(ParameterError, match="key must be at least 16 secret bytes"):
        Book.open(any_book.url, key=key)


def test_a_key_comes_from_a_file_and_is_never_shown(any_book, tmp_path):
    file = key_file(tmp_path, KEY + b"\n")
    head = written(any_book, file)
    with Book.open(any_book.url, key=KEY) as book:
        shown = [repr(book), repr(vars(book)), repr(vars(book._log)), str(book.verify(head))]
    for wrong in (OTHER, KEY[:5]):
        try:
            Book.open(any_book.url, key=wrong)
        except (LedgerCorrupt, ParameterError) as error:
            shown.append("".join(traceback.format_exception(error)) + repr(error.args))
    shown.append(str(any_book.fetch("SELECT * FROM entries")))
    for words in shown:
        for secret in (KEY, OTHER, KEY[:5]):
            assert secret.decode() not in words
            assert secret.hex() not in words


def key_file(folder, key, mode=0o600):
    file = folder / "book.key"
    file.write_bytes(key)
    file.chmod(mode)
    return file


BINARY = bytes(range(200, 230))


@pytest.mark.parametrize(
    ("written_bytes", "key"),
    [
        (BINARY + b"\n", BINARY + b"\n"),
        (b" " + BINARY + b"\t", b" " + BINARY + b"\t"),
        (bytes(20) + b"\n", bytes(20) + b"\n"),
        (KEY, KEY),
        (KEY + b"\n", KEY),
        (KEY + b"\r\n", KEY),
        (KEY + b"\n\n", KEY + b"\n"),
        (b" " + KEY + b" \n", b" " + KEY + b" "),
        ("the key of Ärzte und Ämter\n".encode(), "the key of Ärzte und Ämter".encode()),
    ],
)
def test_a_file_is_the_key_but_for_one_newline_of_text(sqlite_book, tmp_path, written_bytes, key):
    head = written(sqlite_book, key_file(tmp_path, written_bytes))
    with Book.open(sqlite_book.url, key=key) as book:
        book.verify(head)


def test_a_book_that_was_signed_with_the_stripped_key_goes_on_with_its_file(any_book, tmp_path):
    file = key_file(tmp_path, b"\n" + BINARY + b" ")
    head = written(any_book, BINARY)  # as earlier versions read this file
    with Book.open(any_book.url, key=file) as book:
        book.verify(head)
        book.dataset("e", Budget(1.0))
        head = book.head
    with Book.open(any_book.url, key=BINARY) as book:
        book.verify(head)
    with pytest.raises(LedgerCorrupt, match="signed with another key"):
        Book.open(any_book.url, key=key_file(tmp_path, b"\n" + OTHER + bytes(1) + b" "))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644])
def test_a_key_that_others_can_read_is_refused(any_book, tmp_path, mode):
    with pytest.raises(ParameterError, match="chmod 600"):
        Book.create(any_book.url, key=key_file(tmp_path, KEY, mode))
    with Book.create(any_book.url, key=key_file(tmp_path, KEY, 0o400)):
        pass


def test_a_secret_that_is_taken_for_a_file_is_not_shown(sqlite_book):
    with pytest.raises(ParameterError, match="no such one; key=b'") as refusal:
        Book.create(sqlite_book.url, key="secret words of 26 letters")
    assert "secret words" not in f"{refusal.value!r} {refusal.value}"
    assert "a text of 26 characters" in str(refusal.value)
