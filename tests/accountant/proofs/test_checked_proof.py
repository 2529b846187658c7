"""A proof is taken for one plan at one delta, and only where the checker proves it."""

import pickle
from dataclasses import replace

import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

from accountant import (
    Budget,
    GaussianLoss,
    LaplaceLoss,
    ParameterError,
    PureLoss,
    Repeat,
    Sequential,
    Tight,
    compare,
)
from accountant.composition.certificate import Certificate
from accountant.proofs.checked_proof import CheckedProof, checked_proof, claimed_words
from accountant.proofs.writer import write_proof
from accountant.reports.plan_lines import lines_of
from accountant.reports.plan_summary import summarise
from accountant.serialisation.plan_json import to_dict
from accountant.verifier.document import Verdict
from accountant.verifier.plan_parts import same_plan
from mechanisms import Laplace

PLAN, DELTA = 3 * GaussianLoss(0.25) + 2 * PureLoss(0.125), 1e-6


@pytest.fixture(scope="module")
def proof():
    found = Tight().certify(PLAN, DELTA)
    return write_proof(PLAN, DELTA, found.lower, found.upper)


def test_a_certificate_verifies_and_its_file_is_written_whole(tmp_path, proof):
    path = tmp_path / "cost.proof.json"
    found = Tight().certify(PLAN, DELTA, proof=path)
    assert path.read_bytes() == proof
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    for one in (found, pickle.loads(pickle.dumps(found))):
        verdict = one.verify()
        assert (verdict.word, verdict.lower, verdict.upper) == ("PROVED", found.lower, found.upper)
    assert found == Tight().certify(PLAN, DELTA)
    assert "check" not in repr(found)
    assert found.to_records()[0].keys() == {"lower", "upper", "width", "engine", "terms"}


@pytest.mark.parametrize(
    "plan", [2 * PureLoss(0.09083298708782535), LaplaceLoss(0.9902346388558191), 3 * PureLoss(0.1)]
)
def test_at_delta_0_plan_and_ends_are_what_is_printed(plan):
    """The floats of the ends may be below the sum of the floats of the plan."""
    assert Tight().certify(plan, 0.0).verify().word == "PROVED"


def test_a_certificate_of_no_plan_says_where_one_is():
    with pytest.raises(ParameterError, match=r"made by Tight\(\).certify\(plan, delta\)"):
        Certificate(0.0, 1.0, "contour").verify()


def test_a_claim_that_is_not_so_is_not_proved():
    found = Tight().certify(PLAN, DELTA)
    lower = replace(found, check=replace_ends(found.check, 0.9))
    assert lower.verify().word == "NOT PROVED"


def replace_ends(check, factor):
    """The same check of a claim whose ends are moved."""
    plan, delta, *ends = check.args
    return type(check)(check.func, plan, delta, *(factor * one for one in ends))


@pytest.mark.parametrize(
    ("word", "lower_clause"), [("PROVED", "at least 0.750000000000 and "), ("PROVED UPPER", "")]
)
def test_the_words_of_a_claim_name_the_ends_that_are_proved(word, lower_clause):
    verdict = Verdict(word, "", 0.75, 1.25, 1e-6, to_dict(PLAN), "")
    words = f"epsilon of this plan at delta 1e-6 is {lower_clause}at most 1.25000000000"
    assert claimed_words(verdict) == words


@pytest.mark.parametrize("target", ["no/such/folder/x.json", "", 3, True, b"x"])
def test_a_wrong_target_is_refused_before_the_work(target, monkeypatch):
    monkeypatch.setattr(Tight, "_interval", None)
    with pytest.raises(ParameterError, match="proof must be"):
        Tight().certify(PLAN, DELTA, proof=target)


def test_parts_are_compared_whatever_their_order():
    a, b = PureLoss(0.5), GaussianLoss(1.0)
    one = Sequential([a, 3 * b, a])
    for other in (2 * a + 3 * b, Sequential([Repeat(b, 3), Repeat(Sequential([a]), 2), 0 * a])):
        assert same_plan(to_dict(one), to_dict(other))
    for other in (a + 3 * b, 2 * a + 3 * GaussianLoss(1.5), 2 * a + 3 * Laplace(1.0)):
        assert not same_plan(to_dict(one), to_dict(other))
    whole, real = {"kind": "X", "scale": 4}, {"kind": "X", "scale": 4.0}
    assert same_plan(whole, real)
    assert not same_plan({"kind": "X", "scale": 1}, {"kind": "X", "scale": True})
    assert not same_plan({"kind": "X", "scale": 2**53 + 1}, {"kind": "X", "scale": 2.0**53})


def test_no_proof_of_another_claim_is_taken(proof):
    held = checked_proof(PLAN, DELTA, proof)
    assert checked_proof(PLAN, DELTA, held) is held
    for plan, delta in ((2 * PLAN, DELTA), (PLAN, 2e-6), (PLAN, 0.0)):
        for given in (proof, held):
            with pytest.raises(ParameterError, match="proof must be of"):
                checked_proof(plan, delta, given)
    with pytest.raises(ParameterError, match="a proof \\("):
        CheckedProof(PLAN, DELTA, proof.replace(b'"proof":1', b'"proof":7'))


@pytest.mark.usefixtures("small_grid")
def test_reports_show_the_proved_end(proof):
    held = checked_proof(PLAN, DELTA, proof)
    [*_, row] = compare(PLAN, DELTA, proof=proof)
    assert (row.epsilon, row.note) == (held.epsilon, held.words)
    loose = write_proof(PLAN, DELTA, 0.0, 2 * held.epsilon)  # a true claim, and a wide one
    wide = checked_proof(PLAN, DELTA, loose)
    budget = Budget(1.5 * held.epsilon, DELTA)
    lines = lines_of(PureLoss(0.125) * 2 + 3 * GaussianLoss(0.25))
    summary = summarise(lines, budget, proof=wide)
    assert summary.epsilon == wide.epsilon == 2 * held.epsilon
    for changed in ({"proof": held}, {"plan": 2 * PLAN}, {"budget": Budget(1.0, 1e-9)}):
        with pytest.raises(ParameterError, match="proof must be of"):
            replace(summary, **changed)
