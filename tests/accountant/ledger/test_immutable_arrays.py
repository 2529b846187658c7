"""Immutable arrays: no road leads to writable memory, and nothing is copied twice."""

import numpy as np
import pytest

from accountant import Ledger, ParameterError
from accountant.ledger.immutable_arrays import immutable, immutable_output, is_immutable, lent
from accountant.ledger.private_data import Lent
from mechanisms import Laplace

GIVEN = {
    "matrix": np.arange(6.0).reshape(2, 3),
    "columns": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "empty": np.zeros((0, 3)),
    "number": np.array(3.0),
    "words": np.array(["ab", "c"]),
    "steps": np.arange(10)[::-2],
    "dates": np.zeros(3, dtype="M8[s]"),
    "records": np.zeros(2, dtype=[("a", "f8"), ("b", "i4", (2,))]),
    "read-only": np.zeros(3),
}
GIVEN["read-only"].flags.writeable = False


@pytest.mark.parametrize("kind", GIVEN)
def test_the_copy_is_the_same_and_closed(kind):
    given = GIVEN[kind]
    made = immutable(given)
    assert not is_immutable(given)
    assert (made.dtype, made.shape, made.flags.fnc) == (given.dtype, given.shape, given.flags.fnc)
    assert made.tobytes() == given.tobytes()
    for one in (made, made.view(), made[...], made.T):
        assert is_immutable(one)
        assert immutable(one) is one
        with pytest.raises(ValueError, match="WRITEABLE"):
            one.flags.writeable = True


@pytest.mark.parametrize(("mode", "kept"), [("r", True), ("r+", False), ("c", False)])
def test_a_file_stays_where_it_is_if_nothing_can_write_to_it(tmp_path, mode, kept):
    np.save(tmp_path / "data.npy", np.arange(5.0))
    mapped = np.load(tmp_path / "data.npy", mmap_mode=mode)
    assert np.shares_memory(immutable(mapped, mapped=True), mapped) is kept
    assert not np.shares_memory(immutable(mapped), mapped)  # an answer is never a file
    ledger = Ledger(mapped, Laplace(1.0), rng=1)
    seen = []
    ledger.release(Laplace(1.0), lambda data: seen.append(data) or 0.0)
    assert np.shares_memory(seen[0], mapped) is kept
    assert type(seen[0]) is np.ndarray


def test_a_ledger_copies_data_once_and_the_next_one_not_at_all():
    given, seen = np.arange(6.0), []
    for data in (given, given):
        ledger = Ledger(data, Laplace(1.0), rng=1)
        ledger.release(Laplace(1.0), lambda data: seen.append(data) or 0.0)
    third = Ledger(seen[0], Laplace(1.0), rng=1)
    third.release(Laplace(1.0), lambda data: seen.append(data) or 0.0)
    assert not np.shares_memory(seen[0], given)
    assert np.shares_memory(seen[2], seen[0])
    given[:] = 9.0
    assert seen[0].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


class Liar(np.ndarray):
    """An array that calls itself read-only."""

    flags = property(lambda self: np.zeros(0).view().flags)


def test_what_an_output_says_of_itself_is_not_asked():
    made = immutable_output(np.zeros(3).view(Liar))
    assert type(made) is np.ndarray
    assert is_immutable(made)
    pair = immutable_output((np.zeros(2), 1.0))
    assert is_immutable(pair[0])
    objects = immutable_output(np.array([[1], None], dtype=object))
    assert not objects.flags.writeable


@pytest.mark.parametrize("kind", GIVEN)
def test_what_is_lent_is_closed_to_its_holder(kind):
    given = GIVEN[kind]
    shown = lent(given)
    assert (shown.dtype, shown.shape, shown.tobytes()) == (
        given.dtype,
        given.shape,
        given.tobytes(),
    )
    base = shown
    while isinstance(base, np.ndarray):
        assert not base.flags.writeable
        with pytest.raises(ValueError, match="WRITEABLE"):
            base.flags.writeable = True
        base = base.base
    assert not hasattr(base, "obj")  # as a memoryview has it: the array behind
    copied = given.dtype.kind not in "biufc" or given.size == 0
    assert np.shares_memory(shown, given) is not copied
    assert lent(immutable(given)) is not given


def test_a_gate_of_lent_data_copies_none_and_lets_no_query_write():
    rows, targets, seen = np.ones((3, 2)), np.ones(3), []
    ledger = Ledger(Lent((rows, targets)), Laplace(1.0), rng=1)

    def writes(data):
        seen.extend(data)
        data[0][:] = 0.0

    with pytest.raises(ValueError, match="read-only"):
        ledger.release(Laplace(1.0), writes)
    assert [np.shares_memory(*pair) for pair in zip(seen, (rows, targets), strict=True)] == [
        True
    ] * 2
    with pytest.raises(ParameterError, match="finite"):
        Ledger(Lent(np.array([np.nan])), Laplace(1.0))
