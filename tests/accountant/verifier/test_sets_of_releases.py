"""Plans whose releases stand for several pairs: false files of every node are refused."""

import functools
import json
from contextlib import suppress

import numpy as np
import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

from accountant import (
    ApproxLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    Grouped,
    LaplaceLoss,
    OnePass,
    PairLoss,
    Parallel,
    PoissonSampled,
    PureLoss,
    Sequential,
    ShuffledEpoch,
    Stated,
)
from accountant.__main__ import main
from accountant.plans.adjacency import Adjacency
from accountant.proofs import writer
from accountant.proofs.writer import Search, write_proof
from accountant.serialisation.plan_json import to_dict, to_json
from accountant.verifier import NoProof, ProofError, verdict, verify
from accountant.verifier.choices import alternatives, is_dominated
from accountant.verifier.neighbours import RELATIONS
from mechanisms import Gaussian, Laplace
from tests.accountant.verifier.written_proofs import coarse_lattice, document
from tests.laws.plan_paths import adaptive_delta
from tests.mutants.plan_meanings import expanded

# the plan of the issue: one part twice costs 2.01208, both parts cost 2.36629
MIXED, DELTA = 2 * Parallel([Gaussian(4.0), Laplace(1.0)]), 1e-9
FALSE = ("no proof", "NOT PROVED")
ONE_PART, BOTH_PARTS, HONEST = 2.01208, 2.36629, (2.0120777150, 2.5)


@functools.cache
def honest_file():
    """The proof of the plan of the issue at ends that hold."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "lattice_entry", coarse_lattice)
        return write_proof(MIXED, DELTA, *HONEST)


def claimed(raw, **changes):
    """A file with other fields; numbers are written as files write them."""
    numbers = {key: float(x).hex() if isinstance(x, float) else x for key, x in changes.items()}
    return document(json.loads(raw) | numbers)


def word_on(raw):
    """The checker's word, or that the file is no proof."""
    try:
        return verify(raw).word
    except ProofError:
        return "no proof"


def test_the_honest_proof_holds_above_both_parts():
    found = verify(honest_file())
    assert (found.word, found.lower) == ("PROVED", HONEST[0])
    assert BOTH_PARTS - 1e-5 < found.upper <= HONEST[1]


def below_holds(raw, lower):
    """Whether the path in a file shows a lower end."""
    whole = json.loads(raw)
    with suppress(NoProof):
        ways = alternatives(whole["plan"], decimal=False)
        verdict.check(whole["below"], ways, DELTA, lower, above=False)
        return True
    return False


def test_more_than_one_part_twice_is_proved_below():
    """The path that takes each part once."""
    assert below_holds(honest_file(), BOTH_PARTS - 1e-5)
    assert not below_holds(honest_file(), BOTH_PARTS)


def old_file(plan, delta, upper, *, repeated=True):
    """A file in which fixed paths stand for the plan, each proved, as the checker once took it."""
    (releases,) = alternatives(to_dict(plan), decimal=False)
    ways = expanded(releases, lambda _: True, repeated=repeated)
    entries = Search(ways, delta, 0.0, upper).entries()
    fields = {"proof": 1, "plan": to_dict(plan), "delta": delta.hex()}
    return document(fields | entries), float.fromhex(entries["upper"])


def on_one_way(raw):
    """The same entries, all about the plan as it is."""
    whole = json.loads(raw)
    return document(whole | {"above": [one | {"way": 0} for one in whole["above"]]})


def test_the_false_file_of_the_issue_is_refused(tmp_path, capsys):
    raw, upper = old_file(MIXED, DELTA, ONE_PART)
    assert upper == ONE_PART
    assert word_on(raw) in FALSE
    assert word_on(on_one_way(raw)) == "NOT PROVED"
    low = claimed(honest_file(), lower=0.0, upper=ONE_PART, below=None)
    assert word_on(low) == "NOT PROVED"
    plan = tmp_path / "plan.json"
    plan.write_text(to_json(MIXED))
    for file in (raw, on_one_way(raw), low):
        path = tmp_path / "cost.proof.json"
        path.write_bytes(file)
        assert main(["verify", str(path), "--plan", str(plan)]) == 1
        assert main(["explain", str(plan), "--delta", "1e-9", "--proof", str(path)]) != 0
        assert "PROVED UPPER" not in capsys.readouterr().out


def test_a_group_of_one_split_in_all_repetitions_is_refused():
    """Of the issue: 6.0868 for what costs up to 6.1103."""
    raw, upper = old_file(3 * Grouped(SAMPLE, 2), 1e-6, 6.0869)
    assert upper == 6.0869
    assert word_on(raw) in FALSE
    assert word_on(on_one_way(raw)) == "NOT PROVED"


SAMPLE = PoissonSampled(Gaussian(0.8), 0.05)
A, B, C = PairLoss([0.7, 0.3], [0.4, 0.6]), PureLoss(0.8), PairLoss([0.1, 0.9], [0.02, 0.98])
NODES = {
    "a parallel, repeated": 3 * Parallel([A, C]),
    "by value": 2 * Parallel([A, C], by="value"),
    "among other releases": Sequential([B, Parallel([A, C]), A]),
    "a parallel in another": 2 * Parallel([A + Parallel([B, C]), 2 * C]),
    "two in a sequence": Sequential([Parallel([A, C]), B, Parallel([C, B])]),
    "a pass": 2 * OnePass(Parallel([A, C]), 5),
    "stated": 2 * Stated(Parallel([A, C]), "replace-one"),
    "a group in a part": 2 * Parallel([Grouped(B, 2), C]),
    "an epoch in a part": 2 * Parallel([ShuffledEpoch(B, 9), A]),
}
NUMBERS = {"a": 2.0, "h": 0.02, "slack": 1e-9, "b": 0.0, "smooth": 0.0}
NUMBERS = {name: value.hex() for name, value in NUMBERS.items()}
ROADS = {
    "enumeration": (),
    "lattice": ("a", "h", "slack", "size", "rules"),
    "contour": ("a", "h", "b", "smooth", "nodes", "rules"),
}  # of a fine lattice, and one moment


def entry(way, direction, road):
    values = NUMBERS | {"size": 2**12, "rules": [], "nodes": 1}
    fields = {name: values[name] for name in ROADS[road]}
    return {"way": way, "direction": direction, "road": road, "bits": 192, **fields}


def file_of(plan, delta, upper, ways, road):
    """A file that bounds each of so many ways, in both directions."""
    above = [entry(way, back, road) for way in range(ways) for back in ("forward", "reversed")]
    numbers = {"delta": delta.hex(), "upper": upper.hex(), "lower": (0.0).hex()}
    return document({"proof": 1, "plan": to_dict(plan), "above": above, "below": None, **numbers})


def epsilon_of(plan, delta):
    """What an adversary who chooses the parts by earlier answers costs."""
    low, high = 0.0, 20.0
    for _ in range(40):
        middle = (low + high) / 2
        gain = max(adaptive_delta(plan, middle, back) for back in (False, True))
        low, high = (middle, high) if gain > delta else (low, middle)
    return low


@pytest.mark.parametrize("name", NODES)
def test_an_upper_end_below_what_an_adversary_gains_is_refused(name):
    plan, delta = NODES[name], 0.01
    true = epsilon_of(plan, delta)
    (releases,) = alternatives(to_dict(plan), decimal=False)
    fixed = len(expanded(releases, lambda _: True, repeated=False))
    for road in ROADS:
        for ways in (1, fixed):  # the plan as it is, and all fixed paths of it
            assert word_on(file_of(plan, delta, 0.999 * true, ways, road)) in FALSE, road
    assert word_on(file_of(plan, delta, 1.1 * true, 1, "lattice")) == "PROVED"


REFUSED = {
    "a record that moves": Parallel(
        2 * [Stated(PureLoss(1.0), "replace-one")], by="value",
        moves=2 * [Stated(PureLoss(1.0), "add-remove")]),
    "a sample of a parallel": PoissonSampled(Parallel([GaussianLoss(1.0), LaplaceLoss(1.2)]), 0.1),
    "a group of a parallel": Grouped(Parallel([PureLoss(1.0), GaussianLoss(1.0)]), 2),
    "a group of a group": Grouped(Grouped(SAMPLE, 2), 2),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_proof_is_said(name):
    above = [{"way": 0, "direction": "forward", "road": "enumeration", "bits": 128}]
    fields = {"plan": to_dict(REFUSED[name]), "above": above, "below": None, "lower": 0.0}
    found = verify(claimed(honest_file(), **fields))
    assert found.word == "NOT PROVED"
    assert "no proof here" in found.reason


def test_both_directions_of_a_set_are_asked_for():
    plan = NODES["a parallel, repeated"]
    whole = json.loads(write_proof(plan, 0.01, 0.0, 1.5))
    assert verify(document(whole)).word == "PROVED"
    assert {one["direction"] for one in whole["above"]} == {"forward", "reversed"}
    for one in whole["above"]:
        alone = verify(document(whole | {"above": [one]}))
        assert (alone.word, "a direction" in alone.reason) == ("NOT PROVED", True)
    other = {"forward": "reversed", "reversed": "forward"}
    turned = [one | {"direction": other[one["direction"]]} for one in whole["above"]]
    assert verify(document(whole | {"above": turned[:1]})).word == "NOT PROVED"


def test_one_parallel_alone_is_bounded_part_by_part():
    """No answer came before: as files had it from the first."""
    plan = Parallel([GaussianLoss(0.5), Parallel([LaplaceLoss(0.4), PureLoss(0.2)])])
    found = json.loads(write_proof(plan, 1e-3, 0.0, 1.6))
    assert [one["way"] for one in found["above"]] == [0, 1, 2]
    assert verify(document(found)).word == "PROVED"


def test_a_part_that_another_dominates_costs_no_lattice():
    parts = [Gaussian(4.0), Gaussian(2.0), Sequential([]), Gaussian(4.0) + Gaussian(4.0)]
    found = json.loads(write_proof(500 * Parallel(parts), 1e-6, 0.0, 200.0))
    assert [one["road"] for one in found["above"]] == ["contour"]


# Each part is proved to cost at least as much as the part before it.
RISING = [
    [Sequential([]), GaussianLoss(0.5), 3 * GaussianLoss(0.5), GaussianLoss(1.0)],
    [LaplaceLoss(0.5), LaplaceLoss(1.0), 2 * LaplaceLoss(1.0)],
    [PureLoss(0.5), PureLoss(1.0), ApproxLoss(1.0, 0.05), ApproxLoss(1.2, 0.05)],
    [DiscreteLaplaceLoss(2.0, shift) for shift in (1, 2, 4)],
    [DiscreteGaussianLoss(2.0, shift) for shift in (1, 2, 4)],
    [A, A + C, 2 * A + C, 2 * A + C + GaussianLoss(0.1)],
    [A + GaussianLoss(0.5), A + GaussianLoss(0.5) + PureLoss(0.1), A + GaussianLoss(0.6) + B],
]
# Of no part here is it proved that it costs at least as much as another one.
INCOMPARABLE = [
    A, B, C, GaussianLoss(0.9), LaplaceLoss(1.0), 2 * LaplaceLoss(0.9), ApproxLoss(0.4, 0.2),
    DiscreteLaplaceLoss(1.5, 1), DiscreteLaplaceLoss(2.0, 2), DiscreteGaussianLoss(1.5, 1),
    DiscreteGaussianLoss(2.0, 2), PoissonSampled(LaplaceLoss(0.5), 0.2),
    PoissonSampled(LaplaceLoss(1.0), 0.1), PoissonSampled(GaussianLoss(1.0), 0.1),
    LaplaceLoss(0.8) + DiscreteLaplaceLoss(1.4, 1), LaplaceLoss(0.7) + GaussianLoss(0.8),
    PureLoss(0.7) + DiscreteGaussianLoss(1.4, 1),
]  # fmt: skip


def releases_of(plan):
    return alternatives(to_dict(plan), decimal=False)[0]


@pytest.mark.parametrize("rising", RISING, ids=repr)
def test_a_part_dominates_those_that_are_proved_to_cost_less(rising):
    for number, part in enumerate(map(releases_of, rising)):
        dominated = [is_dominated(other, part) for other in map(releases_of, rising)]
        assert dominated == [place <= number for place in range(len(rising))]


@pytest.mark.parametrize("rising", RISING, ids=repr)
def test_a_set_costs_its_dominating_part_at_every_repetition(rising):
    for count in (2, 3):
        found = releases_of(count * Parallel(rising) + rising[-1])
        assert found == releases_of((count + 1) * rising[-1])


def test_no_part_dominates_one_of_another_kind_or_with_fewer_releases():
    lists = list(map(releases_of, INCOMPARABLE))
    for place, part in enumerate(lists):
        dominating = [is_dominated(part, other) for other in lists]
        assert np.flatnonzero(dominating).tolist() == [place], INCOMPARABLE[place]


WRONG_PATHS = (
    [], [[]], [[[1, 0, []]]], [[[3, 0, []]]], [[[2, 2, []]]], [[[2, -1, []]]], [[[2, 0, [[]]]]],
    [[[True, 0, []], [1, 1, []]]], [[[2, 0]]], [[2, 0, []]], {}, "path",
    [[[2, 0, []]], [[2, 0, []]]],
    [[[-1, 0, []], [3, 1, []]]], [[[10**30, 0, []]]],
)  # fmt: skip


@pytest.mark.parametrize("path", WRONG_PATHS, ids=repr)
def test_a_wrong_path_is_no_proof(path):
    whole = json.loads(honest_file())
    whole["above"] = []
    whole["below"]["path"] = path
    entry = whole["below"] | {"way": 0}
    with pytest.raises(ProofError):
        verdict.check(entry, alternatives(whole["plan"], decimal=False), DELTA, 1.0, above=False)


def test_the_relations_of_the_checker_are_those_of_plans():
    assert set(map(str, Adjacency)) <= set(RELATIONS)
