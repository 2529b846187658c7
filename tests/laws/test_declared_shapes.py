"""Law: no gate shows a shape that depends on the data, whatever a query gives."""

import numpy as np
import pytest

from accountant import (
    Book,
    Budget,
    Filter,
    Ledger,
    Odometer,
    Parallel,
    ParameterError,
    PoissonSampled,
    PrivateValueError,
)
from mechanisms import (
    Clamped,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    HemisphereL2,
    Laplace,
    RandomizedResponse,
    registry,
)
from mechanisms.base.mechanism import Mechanism

NOISE, CHOICE = Laplace(10.0), Exponential(20.0)
MANY, FEW = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]), np.array([1.0] * 7)


def counts(rows):
    """The query of the issue: as many counts as there are different numbers."""
    return np.unique(rows, return_counts=True)[1]


def some_of_each(rows):
    """A vector a user, of which the length is the number of different numbers."""
    return np.tile(rows[:, None], counts(rows).size)


def outcome(ask):
    """The shape of what a gate gave, or the words of its refusal."""
    try:
        given = ask()
    except (PrivateValueError, ParameterError) as error:
        return str(error)
    return np.shape(given)


def asks(data):
    """Releases by every way of asking, without a shape and with one."""
    for make in (
        lambda made: Ledger(data, made, rng=0),
        lambda made: Filter(data, Budget(9.0, 1e-6), rng=0),
        lambda made: Odometer(data, 1e-6, rng=0),
    ):
        for made in (NOISE, CHOICE):
            for shape in (None, (), 1, 7, (7,), (7, 1)):
                yield lambda make=make, made=made, shape=shape: make(made).release(
                    made, counts, shape=shape
                )
    sampled = PoissonSampled(NOISE, 0.5)
    yield lambda: Ledger(data, sampled, rng=0).release(sampled, counts)
    part = Laplace(1.0)
    for shape in (None, 1, 7):
        yield lambda shape=shape: Ledger(data, Parallel([part]), rng=0).release_each(
            part, some_of_each, shape=shape
        )
        yield lambda shape=shape: [
            *Ledger(data, Parallel([part]), rng=0).release_blocks(
                part, some_of_each, [slice(0, 7)], shape=shape
            )
        ]


def violation():
    """The way of asking that shows the shape of what a query gives; "" if there is none."""
    for number, (many, few) in enumerate(zip(asks(MANY), asks(FEW), strict=True)):
        one, other = outcome(many), outcome(few)
        shapes = {found for found in (one, other) if isinstance(found, tuple)}
        if len(shapes) > 1:
            return f"way {number} gives shapes {shapes}"
        # what was refused names the declared shape alone, the same for both
        if isinstance(one, str) and isinstance(other, str) and one != other:
            return f"way {number} tells the data apart: {one!r}, {other!r}"
    return ""


def test_no_gate_shows_a_shape_that_depends_on_the_data():
    assert violation() == ""


def test_a_vector_needs_its_shape_and_the_message_says_the_remedy():
    ledger = Ledger(MANY, 2 * NOISE, rng=0)
    with pytest.raises(PrivateValueError, match="a vector needs shape=, which must be public"):
        ledger.release(NOISE, counts)
    # charged first: the refusal came from the query's value
    assert [entry.output for entry in ledger.transcript] == [None]
    assert ledger.release(NOISE, counts, shape=7).shape == (7,)
    assert ledger.next is None
    with pytest.raises(PrivateValueError, match=r"of shape \(3,\), as declared") as refused:
        Filter(MANY, Budget(1.0), rng=0).release(NOISE, counts, shape=3)
    assert "7" not in str(refused.value)


def test_a_shape_that_no_query_can_have_is_refused_before_anything_is_spent():
    for made, shape, words in (
        (CHOICE, None, "shape must be given: how many candidates"),
        (CHOICE, (2, 2), "shape must be 1 numbers"),
        (NOISE, -1, "shape must be"),
        (NOISE, 2.0, "shape must be"),
        (NOISE, True, "shape must be"),
        (RandomizedResponse(2, 0.75), 3, "shape must be 0 numbers"),
        (Laplace(10.0, dimension=3), 4, r"at most \(3,\)"),
        (HemisphereL2(3, 1.0, 0.7), 4, r"at most \(3,\)"),
    ):
        gate = Filter(MANY, Budget(9.0), rng=0)
        with pytest.raises(ParameterError, match=words):
            gate.release(made, lambda rows: 1 / 0, shape=shape)
        assert gate.spent == 0
        assert gate.transcript == ()


def test_a_mechanism_says_its_own_shape():
    gate = Filter(MANY, Budget(9.0, 1e-6), rng=0)
    assert gate.release(Gaussian(10.0, dimension=3), lambda rows: rows[:3]).shape == (3,)
    assert gate.release(Gaussian(10.0, dimension=3), lambda rows: rows[:2], shape=2).shape == (2,)
    assert np.shape(gate.release(Laplace(10.0), np.sum)) == ()
    with pytest.raises(PrivateValueError, match=r"of shape \(3,\)"):
        gate.release(Gaussian(10.0, dimension=3), lambda rows: rows[:2])


@pytest.mark.parametrize("cls", registry(), ids=lambda cls: cls.__name__)
def test_every_mechanism_has_a_shape_or_asks_for_one(cls: type[Mechanism]):
    for made in cls.instances():
        value = np.asarray(made.values.example(np.random.default_rng(0)))
        shape, ends = made.value_shape, value.ndim - made.hidden_axes
        # of one value: only noise of these classes is added to arrays of any shape
        takes_any = isinstance(made, (Gaussian, Laplace, DiscreteLaplace, Clamped))
        assert made.value_axes == (None if takes_any else value.ndim)
        if shape is not None and made.value_axes is not None:
            assert shape == value.shape[:ends]
        else:  # whatever the shape is, a release declares it
            assert made.value_axes is None or made.value_axes > made.hidden_axes


def test_a_book_asks_for_the_shape_too(tmp_path):
    with Book.create(tmp_path / "book.db") as book:
        book.dataset("d", Budget(9.0), unit="one person")
        with book.ledger("d", MANY) as ledger:
            with pytest.raises(PrivateValueError, match="a vector needs shape="):
                ledger.release(NOISE, counts, label="counts")
            found = ledger.release(NOISE, counts, label="again", shape=7)
            assert np.array_equal(found, ledger.release(NOISE, counts, label="again", shape=7))
