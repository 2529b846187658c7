"""Pairs of any kinds: what is refused, and that no message shows a record."""

import numpy as np
import pytest

from accountant import ApproxLoss, Budget, GaussianLoss, ParameterError, PureLoss
from audits import audit, audit_atoms, audit_bits, audit_family, search_pairs, watch
from audits.claims.arguments import checked_pair, pair_of_one_shape
from audits.claims.claims import checked_claim, checked_claims
from audits.claims.findings import Outcome
from audits.neighbours.value_spaces import Box
from mechanisms import Laplace

RECORDS = np.array([31415.0, 27182.0])


def total(value, rng, size):
    return np.sum(value) + rng.laplace(size=size)


@pytest.mark.parametrize(
    "pair",
    [(0.0, 0), (float("nan"), float("nan")), (RECORDS, RECORDS.copy()), (["Alice"], ["Alice"]),
     (total, total), ({"x": RECORDS}, {"x": RECORDS.copy()}), (None, None)],
)  # fmt: skip
@pytest.mark.parametrize(
    "audited",
    [audit, watch, audit_atoms, lambda f, pair, claim: audit_family(f, [pair], claim),
     audit_bits],
)  # fmt: skip
def test_a_pair_of_equal_values_is_refused(pair, audited):
    with pytest.raises(ParameterError, match="pair must be two values that differ") as error:
        audited(total, pair, 1.0)
    assert not any(word in str(error.value) for word in ("31415", "Alice"))


@pytest.mark.parametrize("pair", [RECORDS, [RECORDS], (RECORDS,) * 3, {"a": RECORDS}, "Alice"])
def test_what_is_no_pair_is_refused_without_a_record(pair):
    with pytest.raises(ParameterError, match="pair must be two neighbouring values") as error:
        checked_pair(pair)
    assert not any(word in str(error.value) for word in ("31415", "Alice"))


def test_no_message_of_a_mechanism_or_a_family_shows_a_record():
    with pytest.raises(ParameterError, match="one shape") as error:
        audit(Laplace(1.0), (RECORDS, RECORDS[1:]), runs=100)
    assert "27182" not in str(error.value)
    with pytest.raises(ParameterError, match="one shape"):
        watch(Laplace(1.0), (RECORDS, RECORDS[1:]), runs=100)
    for pairs, claims, shown in (
        ([(RECORDS, RECORDS[1:])], [], "1 pairs and 0 claims"),
        ([], [1.0, 2.0], "0 pairs and 2 claims"),
    ):
        with pytest.raises(ParameterError, match=f"at least one pair .* got '{shown}'") as error:
            audit_family(total, pairs, claims)
        assert "27182" not in str(error.value)
    with pytest.raises(ParameterError, match="vectors") as error:
        audit_bits(total, (["31415"], ["x"]), 1.0)
    assert "31415" not in str(error.value)
    assert pair_of_one_shape((0, 1)) == (0, 1)


@pytest.mark.parametrize(
    "pair",
    [(RECORDS, RECORDS[1:]), ([0.5, 1.0], [0.5]), ((), (1.0,)), ({"a": 1.0}, {}), (RECORDS, [1.0])],
)  # fmt: skip
def test_one_record_more_or_less_is_a_pair(pair):
    def clipped(value, rng, size):
        numbers = value.values() if isinstance(value, dict) else value
        return sum(min(one, 1.0) for one in numbers) + rng.laplace(size=size)

    def count(value, rng):
        return len(value) + rng.laplace(scale=0.1)

    honest = audit(clipped, pair, 1.0, runs=2000, confidence=1 - 1e-6, rng=1)
    assert honest.outcome is Outcome.SURVIVED
    if len(pair[0]) != len(pair[1]):
        assert audit(count, pair, 1.0, runs=1000, rng=1).outcome is Outcome.FALSIFIED
        assert watch(count, pair, 1.0, runs=1000, rng=1).outcome is Outcome.FALSIFIED


def test_frames_with_one_row_less_are_a_pair():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": np.arange(4.0), "name": ["Alice", "Bob", "Carol", "Dan"]})

    def rows(value, rng, size):
        return len(value) + rng.laplace(scale=0.2, size=size)

    found = audit(rows, (frame, frame.iloc[1:]), 1.0, runs=2000, rng=1)
    assert found.outcome is Outcome.FALSIFIED
    assert "Alice" not in found.witness
    assert "a DataFrame of shape (4, 2) against a DataFrame of shape (3, 2)" in found.witness
    with pytest.raises(ParameterError, match="differ"):
        audit(rows, (frame, frame.copy()), 1.0)


def test_a_witness_shows_numbers_of_a_pair_and_no_records():
    def doubled(value, rng, size):
        return 2 * np.sum(value) + rng.laplace(size=size)

    numbers = audit(doubled, (0, 3), 1.0, runs=2000, rng=1).witness
    assert "guessing 0 where" in numbers
    assert "pair" not in numbers
    other = RECORDS + np.array([0.0, 5.0])
    hidden = audit(doubled, (RECORDS, other), 1.0, runs=2000, rng=1).witness
    assert "guessing the first value where" in hidden
    assert "each an array of shape (2,); differ in entry 1; sha256 " in hidden
    assert "31415" not in hidden
    family = audit_family(doubled, [(RECORDS, other), (0, 3)], 1.0, runs=2000, rng=1)
    assert "31415" not in family.members[0].name
    assert family.members[1].name == "0 against 3, PureLoss(epsilon=1.0)"
    assert audit(Laplace(1.0), runs=1000, rng=1).witness.startswith("guessing ")
    assert "pair" not in audit(Laplace(1.0), runs=1000, rng=1).witness


def test_a_claim_is_a_loss_a_number_two_numbers_or_a_budget():
    assert checked_claim(1) == checked_claim(np.float64(1.0)) == PureLoss(1.0)
    assert checked_claim((1.0, 1e-5)) == checked_claim(Budget(1.0, 1e-5)) == ApproxLoss(1.0, 1e-5)
    assert checked_claim((1.0, 0)) == checked_claim(Budget(1.0)) == PureLoss(1.0)
    assert checked_claim(0.0) == ApproxLoss(0.0, 0.0)
    assert checked_claim(GaussianLoss(1.0)) == GaussianLoss(1.0)
    assert checked_claim(None) is None
    assert checked_claims((1.0, 1e-5)) == [ApproxLoss(1.0, 1e-5)]
    assert checked_claims([1.0, (2.0, 1e-5)]) == [PureLoss(1.0), ApproxLoss(2.0, 1e-5)]
    assert checked_claims((1.0, 2.0, 3.0)) == [PureLoss(1.0), PureLoss(2.0), PureLoss(3.0)]
    assert checked_claims(None) == [None]
    for wrong in (float("nan"), -1.0, (1.0, 1.0), (1.0, float("nan")), float("inf")):
        with pytest.raises(ParameterError, match="claim must be a number in"):
            checked_claim(wrong)


@pytest.mark.parametrize(
    "audited",
    [lambda claim: audit(total, (0.0, 3.0), claim, 2000, rng=1),
     lambda claim: watch(total, (0.0, 3.0), claim, 2000, rng=1),
     lambda claim: audit_family(total, [(0.0, 3.0)], claim, runs=2000, rng=1).members[0].finding,
     lambda claim: audit_bits(total, (0.0, 3.0), claim, 2000, rng=1),
     lambda claim: audit_atoms(total, (0.0, 3.0), claim, 2000, rng=1),
     lambda claim: search_pairs(total, Box(0.0, 3.0), claim, 2000, 1).finding],
)  # fmt: skip
def test_every_audit_takes_every_form_of_a_claim(audited):
    for claim, loss in [(1.0, PureLoss(1.0)), ((1.0, 1e-3), ApproxLoss(1.0, 1e-3)),
                        (Budget(1.0, 1e-3), ApproxLoss(1.0, 1e-3))]:  # fmt: skip
        found, same = audited(claim), audited(loss)
        assert found.claim == loss
        assert (found.guesses, found.witness) == (same.guesses, same.witness)


def test_a_pair_that_can_be_read_only_once_is_refused():
    with pytest.raises(ParameterError, match="no iterators"):
        audit(lambda v, rng: sum(v), (iter_of(3), iter_of(4)), 1.0, runs=1000, rng=0)


def iter_of(count):
    yield from range(count)
