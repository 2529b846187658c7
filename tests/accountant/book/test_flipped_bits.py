"""One flipped bit in a book's file, or in its log ahead, gives no budget back and hides nowhere."""

import random
import sqlite3
from collections import Counter
from contextlib import suppress

import numpy as np
import pytest

from accountant import Book, Budget, BudgetExceeded, LedgerCorrupt, OffPlan, ParameterError, Repeat
from accountant.book.databases.sqlite import has_flipped_bit
from accountant.errors import LedgerUnwritable
from mechanisms import Laplace
from tests.accountant.book.throwaway_books import SQLiteBookFile, unlooked

DATA = np.arange(20.0)
TENTH, WHOLE = Laplace(10.0), Laplace(1.0)
NOTICED = LedgerCorrupt, LedgerUnwritable, OffPlan, ParameterError
SMALL = [f"survey {k}" for k in range(40)]  # spent to the last
LABELS = [f"sum {k}" for k in range(4)]


@pytest.fixture(scope="module", autouse=True)
def no_flush():
    """Nothing here dies: the disk is not waited for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fdatasync", lambda _: None)
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A book, what it says, and its files while it was open and after it was closed."""
    place = SQLiteBookFile(tmp_path_factory.mktemp("flipped") / "book.db")
    said, while_open = written(place)
    return place, said, while_open, files_of(place)


def written(place):
    """A book of many pages: full data sets, one with room, labels, users, a run that stopped."""
    with Book.create(place.url) as book:
        book.dataset("d", Budget(1.0))
        book.dataset("long", Budget(40.0))
        book.dataset("users", Budget(1.0), users=20)
        for name in SMALL:
            book.dataset(name, Budget(1.0))
        with book.ledger("d", DATA) as ledger:
            for label in LABELS:
                ledger.release(TENTH, np.sum, label=label)
        with book.ledger("long", DATA) as ledger:
            for _ in range(200):
                ledger.release(TENTH, np.sum)
        with book.ledger("users", DATA) as ledger:
            ledger.release_each(TENTH, lambda rows: rows, [3, 1, 2])
        with book.ledger("long", DATA, Repeat(WHOLE, 3), run="june") as ledger:
            ledger.release(WHOLE, np.sum)
        for name in SMALL:
            with book.ledger(name, DATA) as ledger:
                ledger.spend(WHOLE)
        return what_it_says(book), files_of(place)


def what_it_says(book):
    names = book.names
    lines = {name: book.history(name) for name in names}
    said = {name: (book.spent(name), lines[name]) for name in names}
    answers = [str(book.answer(line)) for held in lines.values() for line in held]
    return names, said, answers, book.spent_each("users").tolist()


def files_of(place):
    """The bytes of the file and of its log ahead, as a crash would leave them."""
    log = place.path.with_name(place.path.name + "-wal")
    return {place.path: place.path.read_bytes(), log: log.read_bytes() if log.exists() else b""}


def put(files):
    for path, raw in files.items():
        path.with_name(path.name.removesuffix("-wal") + "-shm").unlink(missing_ok=True)
        path.unlink(missing_ok=True)
        if raw:
            path.write_bytes(raw)


def is_verified(place, said):
    """Whether the book verifies; then it says what it said."""
    try:
        with Book.open(place.url) as book:
            book.verify()
            assert what_it_says(book) == said
    except NOTICED:
        return False
    return True


def is_spent_from(place):
    """Whether some spend was possible; none goes beyond a budget or repeats a label."""
    spends = 0
    try:
        with Book.open(place.url, wait=0.5) as book:
            for attack in (spend_all_of, spend_a_full_one, open_anew, ask_a_label_again, go_on):
                with suppress(NOTICED):
                    spends += attack(book)
    except NOTICED:
        pass
    return spends > 0


def spend_all_of(book):
    made = 0
    with book.ledger("d", DATA) as ledger:
        try:
            while made < 7:
                ledger.spend(TENTH)
                made += 1
        except BudgetExceeded:
            pass
    assert made <= 6
    return made


def spend_a_full_one(book):
    for name in SMALL:
        try:
            with book.ledger(name, DATA) as ledger, pytest.raises(BudgetExceeded):
                ledger.spend(Laplace(1e6))
        except NOTICED:
            pass
    return 0


def open_anew(book):
    for name in ["d", *SMALL]:
        with pytest.raises(NOTICED):
            book.dataset(name, Budget(100.0))
    return 0


def ask_a_label_again(book):
    with book.ledger("d", DATA) as ledger:
        for label in LABELS:
            ledger.release(TENTH, unlooked, label=label)
    return 0


def go_on(book):
    """The first step of the run is not looked at again."""
    with book.ledger("long", DATA, Repeat(WHOLE, 3), run="june") as ledger:
        ledger.release(WHOLE, unlooked)
        ledger.release(WHOLE, np.sum)
        ledger.release(WHOLE, np.sum)
    assert book.spent("long") == 23.0
    return 2


def flip(files, path, rng):
    bent = bytearray(files[path])
    bent[rng.randrange(len(bent))] ^= 1 << rng.randrange(8)
    put({**files, path: bytes(bent)})


def outcomes(place, files, path, said, flips, seed):
    rng, found = random.Random(seed), Counter()
    for _ in range(flips):
        state = rng.getstate()
        flip(files, path, rng)
        verified = is_verified(place, said)
        rng.setstate(state)
        flip(files, path, rng)
        spent = is_spent_from(place)
        found["verified" if verified else "noticed", "spent" if spent else "refused"] += 1
    print(path.name, len(files[path]), dict(found))
    return found


SWEEP = [pytest.param(1250, seed, marks=pytest.mark.slow) for seed in range(1, 5)]


@pytest.mark.parametrize(("flips", "seed"), [(50, 0), *SWEEP])
def test_no_flipped_bit_in_the_file_gives_budget_back_or_hides(whole, flips, seed):
    place, said, _, files = whole
    found = outcomes(place, files, place.path, said, flips, seed)
    assert found["noticed", "refused"] > 0
    assert found.total() == flips


@pytest.mark.parametrize(
    ("flips", "seed"), [(12, 0), pytest.param(1000, 1, marks=pytest.mark.slow)]
)
def test_no_flipped_bit_in_the_log_ahead_gives_budget_back_or_hides(whole, flips, seed):
    place, said, files, _ = whole
    log = place.path.with_name(place.path.name + "-wal")
    assert len(files[log]) > 100_000
    found = outcomes(place, files, log, said, flips, seed)
    assert found["noticed", "refused"] > flips / 10  # the others lie in frames of an older log
    assert found.total() == flips


def test_any_bit_of_a_log_ahead_is_noticed_by_itself(tmp_path):
    """Its header, and of a frame the salt, the sums and the page; a whole log has none."""
    place = tmp_path / "small.db"
    database = sqlite3.connect(place, isolation_level=None)
    database.execute("PRAGMA page_size = 512")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("CREATE TABLE t (x)")
    log = place.with_name("small.db-wal")
    whole = log.read_bytes()
    assert not has_flipped_bit(log)
    # one of each word of the header of the log, and of that of its first frame
    bits = [32 * word + 5 * word % 32 for word in range(8 + 6)]
    unnoticed = []
    for bit in (*bits, 8 * 60, 8 * 300 + 5):
        turned = bytearray(whole)
        turned[bit // 8] ^= 1 << bit % 8
        log.write_bytes(turned)
        if not has_flipped_bit(log):
            unnoticed.append(bit // 8)
    log.write_bytes(whole)
    database.close()
    assert unnoticed == []
