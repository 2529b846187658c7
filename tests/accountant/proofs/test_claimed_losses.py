"""Mechanisms that the checker does not know stand in a proof with the loss that they claim."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

from accountant import (
    BandedMatrix,
    BinaryTree,
    BufferedToeplitz,
    FixedEpochs,
    GaussianLoss,
    Grouped,
    MinSeparation,
    Parallel,
    ParameterError,
    PoissonSampled,
    Sequential,
    Stated,
    StrategyMatrix,
    Tight,
    Toeplitz,
    UnsupportedPlan,
)
from accountant.proofs import writer
from accountant.proofs.checked_proof import CheckedProof, proof_of_claim
from accountant.proofs.claimed_losses import proof_plan, refuse_other_claims
from accountant.proofs.writer import write_proof
from accountant.serialisation.plan_json import to_dict
from accountant.verifier import ProofError, verify
from accountant.verifier.choices import alternatives
from accountant.verifier.document import need
from accountant.verifier.plan_parts import (
    claims_of,
    is_deep,
    same_plan,
    shown_parts,
    words_of_claims,
)
from mechanisms import (
    AboveThreshold,
    Clamped,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    HemisphereL2,
    Laplace,
    MatrixMechanism,
    NoisyMax,
    PartitionSelection,
    RandomizedResponse,
    SparseVector,
    TruncatedLaplace,
    UnaryEncoding,
)
from mechanisms.base.mechanism import registry
from tests.accountant.verifier.written_proofs import document

DELTA = 1e-6
TREE = MatrixMechanism(BinaryTree(100), scale=8.0)
PROVED = {
    "sparse vector": 20 * SparseVector(1.0, 20.0, 30.0),
    "noisy max": 50 * NoisyMax(20.0, noise="laplace") + Gaussian(10.0),
    "keys": 3 * PartitionSelection(0.5, 1e-8, keys=2),
    "a tree": 2 * TREE,
    "Toeplitz": MatrixMechanism(Toeplitz((1.0, 0.5, 0.375), 40), 5.0, MinSeparation(8, 4)),
    "buffers": MatrixMechanism(BufferedToeplitz((0.9,), (0.1,), 40), 5.0, FixedEpochs(4)),
    "bands": MatrixMechanism(BandedMatrix(np.ones((2, 30))), 5.0),
    "a matrix": MatrixMechanism(StrategyMatrix(np.tril(np.ones((5, 5)))), 5.0, dimension=3),
    "a clamped one": 3 * Clamped(Laplace(2.0), 0.0, 10.0) + Gaussian(4.0),
    "wide integers": DiscreteGaussian(80.0, dimension=4),
    "a far shift": DiscreteLaplace(9000.0, 3000),
    "local reports": Sequential([UnaryEncoding(5, 0.5, 0.3), RandomizedResponse(4, 0.4)]),
    "labels": Stated(UnaryEncoding(5, 0.5, 0.3), "label-replace"),
    "groups of users": Parallel([2 * TREE, AboveThreshold(1.0, 4.0)]),
    "a sample": PoissonSampled(TREE, 0.2),
    "a replaced sample": PoissonSampled(TREE, 0.2, "replace-one"),
    "a sample of choices": 3 * PoissonSampled(AboveThreshold(1.0, 4.0), 0.2),
}


def certified(plan, delta=DELTA):
    found = Tight().certify(plan, delta)
    return proof_of_claim(plan, delta, found.lower, found.upper)


@pytest.mark.parametrize("name", PROVED)
def test_the_loss_that_is_claimed_is_proved(name):
    plan = PROVED[name]
    found = certified(plan)
    assert found.verdict.word == "PROVED"
    [*_, claim] = claims_of(found.verdict.plan)
    assert claim["loss"] == to_dict(_mechanism_of(plan, claim["mechanism"]).loss)
    refuse_other_claims(found.verdict.plan, decimal=False)
    assert certified(plan).document == found.document


def _mechanism_of(plan, table):
    """The mechanism of a plan that has this table, wherever in the plan it is."""
    return next(leaf for leaf in _leaves(plan) if json.loads(json.dumps(to_dict(leaf))) == table)


def _leaves(plan):
    inner = [getattr(plan, name) for name in ("part", "parts") if hasattr(plan, name)]
    parts = [one for x in inner for one in (x if isinstance(x, tuple) else (x,))]
    return [leaf for part in parts for leaf in _leaves(part)] if parts else [plan]


def test_at_delta_0_the_printed_numbers_of_the_loss_count():
    assert certified(3 * NoisyMax(10.0, noise="laplace"), 0.0).verdict.word == "PROVED"


def test_of_what_the_checker_knows_nothing_is_claimed():
    known = [Gaussian(3.0), Laplace(2.0), DiscreteLaplace(3.0), DiscreteGaussian(3.0),
             RandomizedResponse(4, 0.4), GaussianLoss(1.0), PoissonSampled(Gaussian(1.0), 0.1),
             Gaussian(1e-3, arithmetic="idealised")]  # fmt: skip
    for plan in known:
        assert proof_plan(plan, decimal=False) == to_dict(plan)
        assert words_of_claims(proof_plan(plan, decimal=False)) == ""


@pytest.mark.parametrize("mechanism", [one for kind in registry() for one in kind.instances()][::3])
def test_every_mechanism_is_known_or_claimed_or_has_no_form(mechanism):
    try:
        own, loss = to_dict(mechanism), to_dict(mechanism.loss)
    except ParameterError:
        return
    found = proof_plan(mechanism, decimal=False)
    stated = {} if mechanism.relation is None else {"relation": mechanism.relation}
    assert found in (own, {"kind": "Claimed", "mechanism": own, "loss": loss, **stated})
    if found == own:
        assert type(mechanism).__name__ in {
            "Gaussian", "Laplace", "DiscreteGaussian", "DiscreteLaplace", "RandomizedResponse",
            "Skellam", "SumOfClients",
        }  # fmt: skip


def test_an_equal_part_has_one_table():
    one = NoisyMax(4.0)
    found = proof_plan(Sequential([one] * 3), decimal=False)
    assert found["parts"][0] is found["parts"][2]
    assert shown_parts(found) == [
        "3 x NoisyMax(scale=4.0) as claimed (BoundedRangeLoss(epsilon=0.5))"
    ]


def test_a_group_of_claims_is_written():
    plan = Grouped(TREE, 3)
    found = proof_plan(plan, decimal=False)
    assert (found["kind"], found["part"]["kind"]) == ("Grouped", "Claimed")
    assert Tight().certify(plan, DELTA).verify().word == "PROVED"


def test_a_claim_without_a_road_names_its_mechanism(monkeypatch):
    def without_zcdp(fields, *, decimal):
        need("ZCDPLoss" not in json.dumps(fields), "the kind ZCDPLoss has no proof here")
        return alternatives(fields, decimal=decimal)

    monkeypatch.setattr(writer, "alternatives", without_zcdp)
    words = r"the kind ZCDPLoss has no proof here \(the loss of DiscreteGaussian\); the interval"
    plan = Laplace(2.0) + DiscreteGaussian(2.0, dimension=3)
    with pytest.raises(UnsupportedPlan, match=words):
        writer.write_proof(plan, DELTA, 0.1, 1.0)
    verdict = Tight().certify(plan, DELTA).verify()
    assert (verdict.word, verdict.plan) == ("NOT PROVED", proof_plan(plan, decimal=False))


def test_a_loss_without_a_form_in_files_has_no_proof():
    with pytest.raises(UnsupportedPlan, match="the kind TruncatedLaplace has no proof here; "):
        write_proof(TruncatedLaplace(1.0, 11.0), 0.1, 0.1, 1.0)


def test_a_large_mechanism_has_no_file():
    strategy = StrategyMatrix(np.tril(np.random.default_rng(0).random((330, 330))))
    with pytest.raises(UnsupportedPlan, match=r"bytes, and 1,048,576 are allowed; the interval"):
        certified(MatrixMechanism(strategy, 5.0))


def forged(name, change):
    """The proof of a plan with another claim, at the ends of what is claimed then."""
    plan = PROVED[name]
    found = json.loads(certified(plan).document)
    change(next(claims_of(found["plan"])))
    return plan, document(found)


FORGED = {
    "another loss": lambda claim: claim["loss"].update(epsilon=1e-3),
    "another kind of loss": lambda claim: claim.update(loss={"kind": "GaussianLoss", "mu": 1e-3}),
    "another mechanism": lambda claim: claim["mechanism"].update(scale=1e3),
    "a plan": lambda claim: claim.update(mechanism=to_dict(3 * Laplace(1.0))),
    "nothing known": lambda claim: claim["mechanism"].update(kind="NoisyMin"),
    "a claim": lambda claim: claim.update(mechanism=dict(claim)),
    "a loss as a mechanism": lambda claim: claim.update(mechanism=claim["loss"]),
    "other neighbours": lambda claim: claim.update(relation="local-replace"),
    "no release": lambda claim: claim.update(count=0),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_a_claim_that_the_mechanism_does_not_make_is_refused(name):
    plan, raw = forged("sparse vector", FORGED[name])
    with pytest.raises(ParameterError, match="proof must be of this plan"):
        CheckedProof(plan, DELTA, raw)
    with pytest.raises(ParameterError, match="proof must be of "):
        refuse_other_claims(verify(raw).plan, decimal=False)


@pytest.mark.parametrize("change", [
    lambda claim: claim.pop("mechanism"),
    lambda claim: claim.update(mechanism="SparseVector"),
    lambda claim: claim["mechanism"].update(kind=""),
])  # fmt: skip
def test_a_claim_of_no_mechanism_is_no_proof(change):
    _, raw = forged("sparse vector", change)
    with pytest.raises(ProofError):
        verify(raw)


def test_of_a_claim_the_neighbours_are_kept():
    plan = proof_plan(HemisphereL2(3, 1.0, 0.7), decimal=False)
    assert plan["relation"] == "local-replace"
    assert shown_parts(plan)[0].endswith(", local-replace)")
    mixed = {"kind": "Sequential", "parts": [plan, to_dict(Stated(Laplace(1.0), "add-remove"))]}
    found = json.loads(certified(PROVED["a tree"]).document) | {"plan": mixed}
    reason = "parts stated for different neighbours have no proof here"
    assert verify(document(found)).reason == reason


def test_a_sampled_claim_about_replaced_records_is_no_claim_about_added_ones():
    plan, raw = forged("a replaced sample", lambda claim: claim.update(relation="replace-one"))
    assert verify(raw).reason == "parts stated for different neighbours have no proof here"
    assert certified(plan).verdict.word == "PROVED"


def test_whose_claims_are_used_is_said():
    found = certified(PROVED["noisy max"])
    assert found.words.endswith(
        "); the losses of NoisyMax are as that mechanism claims: `dp-attest account verify "
        "--mechanisms` says which claims it proves."
    )
    several = proof_plan(Exponential(1.0) + AboveThreshold(1.0, 1.0) + TREE, decimal=False)
    words = "the losses of Exponential, AboveThreshold and MatrixMechanism are as those mechanisms"
    assert words_of_claims(several).startswith(words)
    assert "claim" not in certified(Laplace(2.0)).words


@pytest.mark.parametrize("change", [{"count": 0}, {"relation": "add-remove"}, {"batches": 3}])
def test_a_sequence_with_further_fields_is_no_sequence(change):
    """The checker counts a sequence ``count`` times: none of them is a proof of it once."""
    plan = Sequential([100 * Laplace(1.0)])
    table = to_dict(plan) | change
    assert not same_plan(table, to_dict(plan))
    entry = {"way": 0, "direction": "forward", "road": "enumeration", "bits": 256}
    ends = {"lower": (0.0).hex(), "upper": (0.0).hex(), "above": [entry], "below": None}
    claim = {"proof": 1, "plan": to_dict(plan) | {"count": 0}, "delta": DELTA.hex(), **ends}
    assert verify(document(claim)).word == "PROVED"
    with pytest.raises(ParameterError, match="proof must be of this plan"):
        CheckedProof(plan, DELTA, document(claim))
    assert "count=0" in shown_parts(claim["plan"])[0]


def test_depth_is_that_of_tables_and_lists():
    value = 1
    for _ in range(150):
        value = [value]
    assert not is_deep(value)
    for _ in range(100):
        value = {"part": value}
    assert is_deep(value)


def test_the_page_names_the_claims_that_are_not_proved():
    page = Path(__file__).parents[3] / "docs" / "proofs" / "trusted-base.md"
    said = page.read_text(encoding="utf-8").partition("not prove those of")[2].partition("\n- ")[0]
    without = {kind.__name__ for kind in registry() for one in kind.instances()
               if one.why_no_formula}  # fmt: skip
    assert without <= {*re.findall(r"`(\w+)`", said)}
    assert "`Exponential`" not in said


def test_the_claims_of_a_plan_are_those_outside_of_their_mechanisms():
    def claim(name, **fields):
        return {"kind": "Claimed", "mechanism": {"kind": name}} | fields

    hidden, in_loss = claim("hidden"), claim("in a loss")
    outer = claim("outer", loss={"kind": "Sequential", "parts": [in_loss]})
    outer["mechanism"] |= {"part": hidden}
    other = {"kind": "Grouped", "mechanism": claim("in a field of this name"), "size": 2}
    plan = {"kind": "Sequential", "parts": [outer, other, dict(outer), "Claimed", 3]}
    names = [found["mechanism"]["kind"] for found in claims_of(plan)]
    assert names == ["outer", "in a loss", "in a field of this name"]
    assert words_of_claims(plan).startswith(
        "the losses of outer, in a loss and in a field of this name are as those mechanisms claim"
    )
    assert list(claims_of(hidden["mechanism"])) == []
