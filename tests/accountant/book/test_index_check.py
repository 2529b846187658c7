"""Each index of the database must lead to the entries of the chain."""

from types import SimpleNamespace

import pytest

from accountant import LedgerCorrupt
from accountant.book.chain.entries import LogEntry
from accountant.book.verification import RowCheck

ENTRIES = [
    LogEntry(1, "", {"dataset": "d", "key": "opened", "kind": "dataset"}),
    LogEntry(2, "", {"dataset": "d", "key": None, "kind": "spend"}),
    LogEntry(3, "", {"dataset": "d", "key": "label", "kind": "release"}),
]


def checked(numbers=(1, 2, 3), keys=(("label", 3), ("opened", 1)), names=("d",)):
    """Check the entries against a database that answers so."""

    def ask(words, **_):
        if words.startswith("SELECT seq"):
            return [(one,) for one in numbers]
        return list(keys) if words.startswith("SELECT key") else [(one,) for one in names]

    storage = SimpleNamespace(ask=ask)
    check = RowCheck(SimpleNamespace(name="b", head=SimpleNamespace(seq=3), storage=storage))
    for entry in ENTRIES:
        check.note_entry(entry)
    check.check_rows()


def test_rows_that_lead_to_the_entries_are_accepted():
    checked()


def test_entries_of_exchanged_keys_never_add_up_to_the_same():
    for k in range(50):
        given = {f"key {k}": 7 * k + 1, f"label {k}": 11 * k + 2}
        there = [(key, 9 * k + 5 - seq) for key, seq in given.items()]
        exchanged = list(zip(given, reversed(given.values()), strict=True))
        assert _sum(given.items()) == _sum(reversed(given.items()))
        assert _sum(given.items()) not in (_sum(there), _sum(exchanged))


def _sum(rows):
    check = RowCheck(None)
    for key, seq in rows:
        check.note_entry(LogEntry(seq, "", {"dataset": None, "key": key, "kind": "release"}))
    return check._keys


@pytest.mark.parametrize(
    ("wrong", "why"),
    [({"numbers": (1, 3)}, "index of data sets"), ({"numbers": (1, 2, 4)}, "index of data sets"),
     ({"keys": (("label", 3),)}, "index of keys does not lead to their entries"),
     ({"names": ()}, "list of data sets is another")],
    ids=repr,
)  # fmt: skip
def test_rows_that_lead_elsewhere_are_refused(wrong, why):
    with pytest.raises(LedgerCorrupt, match=why):
        checked(**wrong)
