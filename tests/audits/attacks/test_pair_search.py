"""Pairs: structured candidates are neighbours; the search finds what hides, at its stated rate."""

import itertools

import numpy as np
import pytest
from scipy.stats import binom

from accountant import ParameterError, PureLoss
from accountant.plans.adjacency import Adjacency
from audits import audit
from audits.attacks.pair_search import SEARCH_SHARE, search_pairs
from audits.neighbours.patterns import NeighbourPair, candidate_pairs
from audits.neighbours.value_spaces import (
    ALL_RELATIONS,
    Box,
    checked_relation,
    random_neighbour,
)
from audits.runs.release_functions import MAX_CALLS
from mechanisms import Laplace, registry

SPACES = [
    Box(0.0, 1.0), Box(-3, 3, whole=True), Box(0.0, 1.0, (1,)), Box(-1.0, 1.0, (5,)),
    Box(0, 100, (6,), whole=True), Box(0.0, 2.0, (4, 3)), Box(-np.inf, np.inf, (3,)),
]  # fmt: skip
SURE = 1 - 1e-9


def inside(space, value):
    low, high = space.ends
    kind = np.integer if space.whole else np.floating
    return (
        np.issubdtype(np.asarray(value).dtype, kind)
        and low <= np.min(value) <= np.max(value) <= high
    )


def is_neighbour(relation, first, second):
    """By the definitions, written again."""
    a, b = np.asarray(first), np.asarray(second)
    if relation == "any":
        return a.shape == b.shape
    if relation == "each":
        return np.all(np.abs(a - b) <= 1)
    if a.ndim == 0:
        return True
    if relation == "replace-one":
        rows = (a != b).reshape(len(a), -1).any(axis=1)
        return a.shape == b.shape and rows.sum() == 1
    short, long = sorted((a, b), key=len)
    return len(long) == len(short) + 1 and any(
        np.array_equal(np.delete(long, i, axis=0), short) for i in range(len(long))
    )


@pytest.mark.parametrize(
    ("space", "relation"),
    [(s, r) for s in SPACES for r in ALL_RELATIONS if s.shape or r != "add-remove"],
    ids=repr,
)
def test_every_candidate_is_a_pair_of_different_neighbours(space, relation):
    found = candidate_pairs(space, relation)
    assert found
    for one in found:
        assert inside(space, one.first)
        assert inside(space, one.second)
        assert is_neighbour(relation, *one.pair), one
        assert not np.array_equal(one.first, one.second)
    for one, other in itertools.combinations(found, 2):
        assert not all(map(np.array_equal, one.pair, other.pair))


@pytest.mark.parametrize(
    ("space", "relation"),
    [(s, r) for s in SPACES for r in ALL_RELATIONS if s.shape or r != "add-remove"],
    ids=repr,
)
def test_a_random_neighbour_is_one(space, relation):
    rng, adjacency = np.random.default_rng(2), checked_relation(relation, space)
    for _ in range(10):
        value = space.random(rng)
        neighbour = random_neighbour(space, adjacency, value, rng)
        assert inside(space, neighbour)
        assert is_neighbour(relation, value, neighbour) or np.array_equal(value, neighbour)


@pytest.mark.parametrize("records", [1, 2, 3, 6])
def test_one_of_several_records_is_removed_and_to_a_single_one_another_is_added(records):
    space, rng = Box(0.0, 1.0, (records, 2)), np.random.default_rng(3)
    value = space.random(rng)
    removed = [
        random_neighbour(space, Adjacency.ADD_REMOVE, value, rng).tolist() for _ in range(60)
    ]
    if records == 1:
        assert all(len(added) == 2 and added[0] == value.tolist()[0] for added in removed)
    else:  # each record is removed in some of them
        rows = value.tolist()
        assert all(rows[:i] + rows[i + 1 :] in removed for i in range(records))
        assert {len(remaining) for remaining in removed} == {records - 1}


def test_the_structured_patterns_are_there():
    words = " ".join(one.kind for one in candidate_pairs(Box(0.0, 1.0, (6,))))
    for pattern in ("all low", "all high", "half low, half high", "one high", "one low",
                    "alternating", "a ramp", "ties", "a tie"):  # fmt: skip
        assert pattern in words
    steps = " ".join(one.kind for one in candidate_pairs(Box(0.0, 9.0, (6,)), "each"))
    for pattern in ("all above", "one above, the rest below", "half above, half below"):
        assert pattern in steps


def test_every_way_in_which_numbers_move_by_1_is_there():
    steps = {
        "all above": [1, 1, 1, 1, 1], "all below": [-1, -1, -1, -1, -1],
        "one above, the rest below": [1, -1, -1, -1, -1],
        "one below, the rest above": [-1, 1, 1, 1, 1], "one above": [1, 0, 0, 0, 0],
        "half above, half below": [1, 1, 1, -1, -1], "alternating": [1, -1, 1, -1, 1],
    }  # fmt: skip
    space = Box(-9.0, 9.0, (5,))
    moved = {
        one.kind.partition(", ")[2]: (one.second - one.first).tolist()
        for one in candidate_pairs(space, "each")
        if one.kind.startswith("all middle")  # further than 1 from both ends
    }
    assert moved == steps


@pytest.mark.parametrize("cls", registry(), ids=lambda cls: cls.__name__)
def test_a_mechanisms_own_values_give_pairs_it_accepts(cls):
    for made in cls.instances():
        found = candidate_pairs(made.values)
        assert found
        for one in found:
            for value in one.pair:
                made.values.check(value)


def hidden(values, rng, size):
    """Honest but where all six numbers are one and the same."""
    scale = 0.2 if np.ptp(values) == 0 else 1.0
    return values.sum() + rng.laplace(scale=scale, size=size)


def test_a_search_finds_what_a_plain_pair_does_not_show():
    plain = (np.linspace(0, 1, 6), np.append(np.linspace(0, 1, 6)[:-1], 0.0))
    claim = PureLoss(1.0)
    assert audit(hidden, plain, claim, 20_000, SURE, rng=1).outcome.name == "SURVIVED"
    found = search_pairs(hidden, Box(0.0, 1.0, (6,)), claim, 20_000, 1, confidence=SURE)
    assert found.finding.outcome.name == "FALSIFIED"
    assert any(np.ptp(value) == 0 for value in found.candidate.pair)
    assert found.finding.witness.startswith(found.candidate.kind)
    assert found.screened[0][1] >= found.screened[-1][1]


def test_the_search_breeds_beyond_its_patterns():
    def release(value, rng, size):  # leaks around 8, far from every pattern
        return value + rng.laplace(scale=0.1 if 7 < value < 9 else 1.0, size=size)

    space = Box(0.0, 10.0)
    assert not any(7 < v < 9 for one in candidate_pairs(space, "each") for v in one.pair)
    seeds = [search_pairs(release, space, PureLoss(1.0), 40_000, s, "each") for s in range(3)]
    assert any(one.finding.epsilon_lower > 3 for one in seeds)
    assert any(one.candidate.kind == "found by the search" for one in seeds)


def test_runs_of_the_search_never_enter_the_final_test():
    drawn = []

    def release(value, rng, size):
        drawn.append(size)
        return value + rng.laplace(size=size)

    found = search_pairs(release, Box(0.0, 1.0), PureLoss(1.0), 10_000, 1)
    # draws that show what the notes say, after the runs, and how wide outputs are, before an audit
    noted, widths = 3 * MAX_CALLS, drawn.count(1)
    assert widths < 10
    assert sum(drawn) - noted - widths == found.finding.runs == 10_000
    assert 0 < found.search_runs <= SEARCH_SHARE * 10_000
    assert found.finding.guesses.runs <= 10_000 - found.search_runs
    again = search_pairs(release, Box(0.0, 1.0), PureLoss(1.0), 10_000, 1)
    assert again.finding.guesses == found.finding.guesses


def test_false_alarms_keep_the_stated_rate_however_many_pairs_were_tried():
    # binary response exactly at its claim, 150 searches at 20 %: above is a chance of 1e-6
    def response(answers, rng, size):
        return (answers[0] > 0.5) ^ (rng.random(size) < 1 / (1 + np.e))

    alarms = sum(
        search_pairs(
            response, Box(0.0, 1.0, (3,)), PureLoss(1.0), 2000, s, confidence=0.8
        ).finding.outcome.name == "FALSIFIED"
        for s in range(150)
    )  # fmt: skip
    assert alarms <= binom.ppf(1 - 1e-6, 150, 0.2)


def test_neighbours_of_different_length_are_told_apart():
    def total(records, rng, size):
        return 3 * records.sum() + rng.laplace(size=size)

    found = search_pairs(total, Box(0.0, 1.0, (5,)), PureLoss(1.0), 20_000, 2, "add/remove")
    assert found.finding.outcome.name == "FALSIFIED"
    assert abs(len(found.candidate.first) - len(found.candidate.second)) == 1


def test_a_mechanism_over_its_own_values():
    found = search_pairs(Laplace(1.0), Laplace(1.0).values, PureLoss(0.5), 20_000, 2)
    assert 0.5 < found.finding.epsilon_lower < 1.1


def test_pairs_that_a_release_refuses_are_counted():
    def picky(value, rng, size):
        if value > 0.9:
            raise RuntimeError("too large")
        return value + rng.laplace(size=size)

    found = search_pairs(picky, Box(0.0, 1.0), PureLoss(1.0), 20_000, 2)
    assert found.refused > 0
    assert max(found.candidate.pair) <= 0.9

    def never(value, rng, size):
        raise RuntimeError("no")

    with pytest.raises(ParameterError, match="release must be"):
        search_pairs(never, Box(0.0, 1.0), PureLoss(1.0), 20_000, 2)


@pytest.mark.parametrize(
    "bad",
    [{"runs": 100}, {"runs": True}, {"confidence": 1.0}, {"delta": -1.0}, {"claim": 1.0},
     {"rng": -1}],
    ids=repr,
)  # fmt: skip
def test_nonsense_is_refused_before_a_single_run(bad):
    def release(value, rng, size):
        raise AssertionError("called")

    with pytest.raises(ParameterError, match="must be"):
        search_pairs(release, Box(0.0, 1.0), **{"claim": PureLoss(1.0), "runs": 20_000, **bad})


@pytest.mark.parametrize("bad", [(1.0, 1.0), (2.0, 1.0), (np.nan, 1.0), (0.0, 1.0, (0,))], ids=repr)
def test_a_space_that_is_none(bad):
    with pytest.raises(ParameterError, match="Box"):
        Box(*bad)


@pytest.mark.parametrize(
    ("space", "relation"),
    [(Box(0.0, 1.0), "sideways"), (Box(0.0, 1.0), 3), (Box(0.0, 1.0), "add/remove"),
     ("records", "replace"), (None, "replace")],
    ids=repr,
)  # fmt: skip
def test_an_unknown_relation_or_space(space, relation):
    with pytest.raises(ParameterError, match="must be"):
        candidate_pairs(space, relation)


def test_a_candidate_is_what_audit_takes():
    one = NeighbourPair("by hand", 0.0, 1.0)
    assert audit(Laplace(1.0).release, one.pair, runs=1000, rng=1).runs == 1000


@pytest.mark.parametrize(("runs", "structured", "random"), [(1000, 1, 1), (4000, 3, 1)])
def test_a_quarter_of_the_first_pairs_is_random(runs, structured, random):
    # so few runs screen these pairs alone
    found = search_pairs(lambda v, rng, size: v.sum() + rng.laplace(size=size),
                         Box(0.0, 1.0, (6,)), PureLoss(1.0), runs, 1)  # fmt: skip
    kinds = [one.kind for one, _ in found.screened]
    assert len(kinds) == structured + random
    assert kinds.count("found by the search") == random
