"""The index of keys in the log: it agrees with a dict, in a few steps; and old books get one."""

import json
import random
import sqlite3

import numpy as np
import pytest

from accountant import Book, Budget, BudgetExceeded, LedgerCorrupt, Repeat
from accountant.book.chain.entries import canonical_json, next_hash
from accountant.book.chain.key_index import KeyTrie, descend, new_nodes
from accountant.book.databases.sqlite import has_flipped_bit
from mechanisms import Laplace
from tests.accountant.book.test_damaged_indexes import written
from tests.accountant.book.throwaway_books import rewritten, unlooked

DATA = np.arange(20.0)
TENTH = Laplace(10.0)


@pytest.mark.parametrize("seed", range(3))
def test_every_key_leads_to_its_last_entry_and_no_other_does(seed):
    rng, entries, last, reads = random.Random(seed), {}, {}, []
    trie = KeyTrie()  # from which verification computes the same paths

    def nodes_of(seq):
        reads.append(seq)
        return entries[seq]

    keys = [f"key {k}" for k in range(600)]
    for seq in range(1, 2000):
        own = rng.sample(keys[: seq + 2], rng.choice([1, 1, 1, 2, 3]))
        entries[seq] = new_nodes(own, seq - 1, seq, nodes_of)
        assert [[key, trie.put(key, seq)] for key in own] == entries[seq]
        last.update(dict.fromkeys(own, seq))
    assert trie.last_seqs() == last
    for key in [*keys, *(f"other {k}" for k in range(600))]:
        reads.clear()
        assert descend(key, seq, nodes_of)[0] == last.get(key, 0)
        assert len(reads) < 30
    assert max(len(path) for nodes in entries.values() for _, path in nodes) < 40


def make_old(place, since=1):
    """The book as if an earlier version had written it, from some entry on."""
    previous, words = "0" * 64, []
    for seq, body in place.fetch("SELECT seq, body FROM entries ORDER BY seq"):
        facts = json.loads(body)
        for name in ("index", "root", "before", "holder") if seq >= since else ():
            facts.pop(name, None)
        body = canonical_json(facts)
        previous = next_hash(previous, body)
        body = body.replace("'", "''")
        words.append(f"UPDATE entries SET body = '{body}', hash = '{previous}' WHERE seq = {seq}")
    if place.kind == "sqlite":
        words.append("PRAGMA user_version = 0")
    place.tamper(*words)


def test_an_old_book_is_read_and_gets_an_index_with_its_first_spend(stored_book):
    answer, first = written(stored_book)
    make_old(stored_book)
    for again in range(2):  # also where an old version wrote to it meanwhile
        before = stored_book.hash_rows()
        with Book.open(stored_book.url) as book:
            entries = book.verify().entries
            assert (round(book.spent("d"), 6), book.spent("e")) == (0.9, 1.0)
            assert book.names == ["d", "e"]
            with book.ledger("d", DATA) as ledger:
                assert ledger.release(TENTH, unlooked, label="sum") == answer
            with book.ledger("e", DATA, Repeat(TENTH, 10), run="june") as ledger:
                assert ledger.release(TENTH, unlooked) == first
            assert stored_book.hash_rows() == before
            with book.ledger("d", DATA) as ledger:
                with pytest.raises(BudgetExceeded):
                    ledger.spend(Laplace(5.0))
                assert stored_book.hash_rows() == before
                ledger.spend(Laplace(1e9))
                assert ledger.release(TENTH, unlooked, label="sum") == answer
            last = book.verify().entries
            assert last > entries + 5
        if not again:
            make_old(stored_book, since=last - 1)
    with Book.open(stored_book.url) as book:
        book.dataset("f", Budget(1.0))
        book.verify()


def test_a_key_that_is_no_text_is_damage(sqlite_book):
    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(1.0))
    sqlite_book.tamper(*rewritten(sqlite_book, 2, lambda facts: facts["index"].append([5, []])))
    with Book.open(sqlite_book.url) as book:
        for look in (book.verify, lambda: book.spent("d")):
            with pytest.raises(LedgerCorrupt):
                look()


def test_what_a_power_cut_leaves_of_the_log_ahead_is_no_damage(tmp_path):
    db = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE t (a)")
    for _ in range(20):
        db.execute("INSERT INTO t VALUES (randomblob(500))")
    raw = (tmp_path / "a.db-wal").read_bytes()
    db.close()
    rng, file = random.Random(0), tmp_path / "b.db-wal"
    assert not has_flipped_bit(file)
    for _ in range(200):
        place = rng.randrange(len(raw) // 512) * 512
        for bent in (raw[:place], raw[:place] + bytes(512) + raw[place + 512 :]):
            file.write_bytes(bent)
            assert not has_flipped_bit(file)
        place = rng.randrange(len(raw))
        file.write_bytes(
            raw[:place] + bytes([raw[place] ^ 1 << rng.randrange(8)]) + raw[place + 1 :]
        )
        assert has_flipped_bit(file)
