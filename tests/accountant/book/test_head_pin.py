"""A head that cannot be pinned is an error that says why."""

import pytest

from accountant import LedgerUnwritable
from accountant.book.chain.entries import ChainHead
from accountant.book.chain.head_pin import HeadPin


def test_a_folder_that_went_away_is_named(tmp_path):
    folder = tmp_path / "pins"
    folder.mkdir()
    pin = HeadPin(folder / "pin")
    folder.rmdir()
    assert pin.read() is None
    with pytest.raises(LedgerUnwritable, match="the head was not pinned") as found:
        pin.advance(ChainHead(1, "a" * 64))
    assert "No such file" in str(found.value)
