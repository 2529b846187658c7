"""Law: the checker takes no plan whose parts the accountant says are for different neighbours."""

import itertools

import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

from accountant import ParameterError
from accountant.plans.adjacency import Adjacency
from accountant.serialisation.plan_json import from_dict
from accountant.verifier import NoProof, ProofError, plan
from accountant.verifier.neighbours import stated_neighbours
from tests.mutants import plan_meanings

GAUSSIAN = {"kind": "GaussianLoss", "mu": 0.5}
RESPONSE = {"kind": "RandomizedResponse", "k": 2, "keep": 0.6}
RELATIONS = (None, *map(str, Adjacency))


def stated(relation):
    """A Gaussian of which the neighbours are said, or not."""
    return GAUSSIAN if relation is None else one_around("Stated", GAUSSIAN, relation)


def one_around(kind, part, relation=None):
    """A node of a kind around a part, for some neighbours where it says them."""
    fields = {
        "Repeat": {"count": 2},
        "Grouped": {"size": 2},
        "OnePass": {"batches": 3},
        "ShuffledEpoch": {"batches": 3},
        "PoissonSampled": {"rate": 0.2},
        "TruncatedPoisson": {"rate": 0.2, "records": 9, "batch": 4},
        "SampledWithoutReplacement": {"sample": 1, "population": 9},
        "RandomAllocation": {"steps": 9},
    }.get(kind, {})
    named = {} if relation is None else {"relation": str(relation)}
    return {"kind": kind, "part": part, **fields, **named}


ALONE = ("Repeat", "Grouped", "OnePass")
WITH_RELATION = (
    "Stated", "ShuffledEpoch", "PoissonSampled", "TruncatedPoisson", "SampledWithoutReplacement",
    "RandomAllocation",
)  # fmt: skip


def nodes():
    """Each node around each part, in a pass and not, and next to each other one."""
    leaves = [*map(stated, RELATIONS), RESPONSE]
    around = [one_around(kind, leaf) for kind in ALONE for leaf in leaves]
    around += [
        one_around(kind, leaf, relation)
        for kind, leaf, relation in itertools.product(WITH_RELATION, leaves, RELATIONS)
        if kind != "Stated" or relation
    ]
    around += [{"kind": "Parallel", "parts": [leaf], "by": "value"} for leaf in leaves]
    yield from around
    for k, node in enumerate(around):  # a part of all pairs: each leaf is beside many nodes
        yield one_around("OnePass", node)
        for leaf in (leaves[k % len(leaves)], leaves[(k // 5) % len(leaves)]):
            yield {"kind": "Sequential", "parts": [node, one_around("OnePass", leaf)]}
            yield {"kind": "Parallel", "parts": [node, leaf]}
        yield one_around("Stated", node, RELATIONS[1 + k % (len(RELATIONS) - 1)])


def moves_violation():
    """Parts whose neighbours are not those of the plan of groups by value that holds them."""
    for relation in Adjacency:
        for moves in ([], [GAUSSIAN]):
            fields = {"kind": "Parallel", "by": "value", "parts": [stated(relation)]}
            try:
                plan_by_value = from_dict(fields | {"moves": moves} if moves else fields)
            except ParameterError:
                continue
            if plan_by_value.relation is not relation:
                return f"parts for {relation} are taken for {plan_by_value.relation}"
    return ""


def neighbours_violation():
    """A plan that the checker takes, for other neighbours than the accountant, or for mixed ones.

    Whether a node has a proof is another question: its neighbours are asked for alone.
    """
    taken = 0
    for node in nodes():
        try:
            accepted = from_dict(node)
        except ParameterError:
            accepted = None
        try:
            plan.read_plan(node, decimal=False)
        except (NoProof, ProofError):
            continue
        if accepted is None:
            return f"the accountant refuses {node}, and the checker reads it"
        found = {str(accepted.relation)} - {"None"}
        try:
            said = stated_neighbours(node, 0)
        except NoProof as refusal:
            said = str(refusal)
        if said != found:
            return f"{node} is for {found}, and the checker says {said}"
        taken += 1
    return "" if taken > 250 else f"{taken} plans were read"


def test_the_checker_takes_the_neighbours_that_the_accountant_takes():
    assert neighbours_violation() == ""


def test_groups_by_value_are_for_the_neighbours_of_their_parts():
    assert moves_violation() == ""


def test_parts_for_other_neighbours_are_caught(monkeypatch):
    plan_meanings.moves_of_any_parts(monkeypatch)
    assert moves_violation() != ""


def test_a_pass_of_a_removed_record_is_not_for_removed_records():
    """Its place stays empty, so it does not add up with what a removed record costs."""
    one_pass = one_around("OnePass", stated("add-remove"))
    assert stated_neighbours(one_pass, 0) == {"zero-out"}
    mixed = {"kind": "Sequential", "parts": [one_pass, stated("add-remove")]}
    with pytest.raises(NoProof, match="different neighbours"):
        plan.read_plan(mixed, decimal=False)
    alike = {"kind": "Sequential", "parts": [one_pass, stated("zero-out")]}
    assert plan.read_plan(alike, decimal=False)


@pytest.mark.parametrize("mutant", plan_meanings.NEIGHBOURS, ids=lambda one: one.__name__)
def test_other_neighbours_are_caught(mutant, monkeypatch):
    mutant(monkeypatch)
    assert neighbours_violation() != ""
