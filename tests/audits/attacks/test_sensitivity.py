"""The sensitivity probe finds what arithmetic does, and passes what is honest."""

import functools
import operator

import numpy as np
import pytest

from accountant import ParameterError
from audits.attacks.sensitivity import BUDGET, TOLERANCE, answer_distance, probe_sensitivity
from audits.neighbours.value_spaces import Box
from audits.zoo.catalogue import SPECIMENS
from mechanisms.base.values import Categories, Reals

UNIT = Box(0.0, 1.0, (50,))
LARGE = Box(2.0**50, 2.0**50 + 1, (1024,))


def added(records):
    """One by one: Python's own sum compensates since 3.12."""
    return functools.reduce(operator.add, records.tolist())


def clipped_sum(records):
    return np.clip(np.nan_to_num(records), 0.0, 1.0).sum()


FOUND = {
    # the sum is near 2^60, whose floats are 256 apart
    "large floats": (np.sum, LARGE, "replace", 1.0, {}, 256.0),
    "large floats, one by one": (added, LARGE, "replace", 1.0, {}, 256.0),
    "a clip that lets NaN through": (
        lambda x: np.clip(x, 0, 1).sum(), UNIT, "replace", 1.0, {"hostile": True}, np.inf),
    "a sum that is not clipped": (np.sum, UNIT, "replace", 1.0, {"hostile": True}, np.inf),
    # from 2^31 - 1 to -2^31 and nearly so
    "a sum of 32 bits": (lambda x: np.sum(x, dtype=np.int32), Box(0, 2**30, (9,), True),
                         "replace", 2.0**30, {}, None),
    "a sum of 64 bits": (np.sum, Box(0, 2**62, (9,), True), "replace", 2.0**62, {}, None),
    "a mean of a private count": (
        lambda x: x.mean() if len(x) else 0.5, UNIT, "add/remove", 0.02, {}, 0.5),
    "a mean of nothing": (np.mean, UNIT, "add/remove", 0.02, {}, np.inf),
    "a sum of squared deviations": (
        lambda x: ((x - x.mean()) ** 2).sum(), UNIT, "replace", 0.9, {}, 0.98),
    "a median": (np.median, Box(0.0, 1.0, (51,)), "replace", 0.1, {}, 1.0),
    "a mode": (lambda x: np.bincount(x).argmax(), Box(0, 9, (10,), True), "replace", 1.0, {}, 9.0),
    "a histogram where records move": (
        lambda x: np.histogram(x, 5, (0, 1))[0], UNIT, "replace", 1.0, {"norm": 1}, 2.0),
    "the same in l2": (lambda x: np.histogram(x, 5, (0, 1))[0], UNIT, "replace", 1.0,
                       {"norm": 2}, np.sqrt(2)),
    "an answer whose length is the count's": (np.sort, UNIT, "add/remove", 1.0, {}, np.inf),
    "the first of a set": (lambda x: 2 * x[0], UNIT, "replace", 1.0, {}, 2.0),
    "two answers that move together": (lambda x: x, Box(0.0, 9.0, (2,)), "each", 1.0, {}, 2.0),
    "any two values": (lambda x: 3 * x, Box(-1.0, 1.0), "any", 5.0, {}, 6.0),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_what_must_be_found(name):
    query, space, relation, declared, options, found = FOUND[name]
    probe = probe_sensitivity(query, space, relation, declared, budget=1500, rng=1, **options)
    assert probe.outcome.name == "FALSIFIED"
    assert probe.found > declared
    if found is not None:
        assert probe.found == pytest.approx(found)
    # the witness is what it says: the query gives these answers on these data
    for data, answer in zip(probe.pair, probe.answers, strict=True):
        with np.errstate(all="ignore"):
            if len(np.atleast_1d(data)):
                np.testing.assert_array_equal(query(data), answer)
    assert answer_distance(*probe.answers, probe.norm) == probe.found
    assert probe.kind in probe.witness


HONEST = {
    "clipped sum": (clipped_sum, UNIT, "replace", 1.0, {"hostile": True}),
    "clipped sum, one more": (clipped_sum, UNIT, "add/remove", 1.0, {"hostile": True}),
    "clipped sum of many": (clipped_sum, Box(0.0, 1.0, (1000,)), "replace", 1.0, {"hostile": True}),
    "clipped mean": (lambda x: clipped_sum(x) / 50, UNIT, "replace", 0.02, {"hostile": True}),
    "whole sum": (np.sum, Box(-5, 5, (20,), True), "replace", 10.0, {}),
    "large whole sum": (lambda x: sum(x.tolist()), Box(0, 2**62, (9,), True), "replace", 2.0**62,
                        {}),
    "large floats, subtracted first": (lambda x: (x - 2.0**50).sum(), LARGE, "replace", 1.0, {}),
    "histogram": (lambda x: np.histogram(x, 5, (0, 1))[0], UNIT, "add/remove", 1.0, {}),
    "histogram of replaced": (lambda x: np.histogram(x, 5, (0, 1))[0], UNIT, "replace", 2.0, {}),
    "squared deviations": (lambda x: ((x - x.mean()) ** 2).sum(), UNIT, "replace", 0.98, {}),
    "weights of places": (lambda x: x @ np.linspace(0, 1, 50), UNIT, "replace", 1.0,
                          {"ordered": True}),
    "answers as they are": (lambda x: x, Box(0.0, 9.0, (4,)), "each", 1.0, {"norm": np.inf}),
    "nothing": (lambda x: 7, UNIT, "replace", 0.0, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
def test_what_must_pass(name):
    query, space, relation, declared, options = HONEST[name]
    probe = probe_sensitivity(query, space, relation, declared, budget=1500, rng=1, **options)
    assert probe.outcome.name == "SURVIVED", probe.witness
    # and the declared bound is nearly attained: the search looks where it counts
    assert probe.found >= 0.99 * declared
    assert probe.evaluations <= 1500


@pytest.mark.parametrize(
    "one", [s for s in SPECIMENS if s.caught_by == "sensitivity"], ids=lambda s: s.name
)
def test_the_zoos_queries(one):
    made = one.implementation
    probe = probe_sensitivity(
        made.query,
        made.space,
        made.relation,
        made.declared,
        budget=1500,
        rng=3,
        hostile=made.hostile,
    )
    assert probe.outcome is one.expected


def test_one_data_set_and_its_neighbours():
    data = np.random.default_rng(1).random(60)
    assert probe_sensitivity(clipped_sum, data, budget=500, rng=1).outcome.name == "SURVIVED"
    tripled = probe_sensitivity(lambda x: 3 * clipped_sum(x), data, budget=500, rng=1)
    assert tripled.outcome.name == "FALSIFIED"
    assert 2.5 < tripled.found < 3
    bare = probe_sensitivity(np.sum, data, rng=1, hostile=True)
    assert bare.found == np.inf


def test_the_values_of_a_mechanism():
    doubled = probe_sensitivity(
        lambda x: 2 * np.sum(x), Reals(1.0), declared=1.0, budget=300, rng=1
    )
    assert doubled.found == pytest.approx(2.0)
    label = probe_sensitivity(lambda x: x, Categories(5), declared=4.0, budget=300, rng=1)
    assert (label.found, label.outcome.name) == (4.0, "SURVIVED")


def test_the_order_of_a_sum_of_floats_counts():
    # a large number swallows the small ones that come after it, not their sum before it
    data = np.append(np.ones(300), 2.0**60)

    def over(records):
        return float(added(records) > 2.0**60)

    assert probe_sensitivity(over, data, declared=0.5, budget=200, rng=1).found == 1.0
    same = np.full(301, 2.0**52)
    assert probe_sensitivity(over, same, declared=0.5, budget=200, rng=1).found == 0.0


def test_a_query_that_refuses_is_no_distance():
    def strict(records):
        if not np.isfinite(records).all() or np.abs(records).max(initial=0) > 1:
            raise ValueError("bad record")
        return records.sum()

    probe = probe_sensitivity(strict, UNIT, budget=1000, rng=1, hostile=True)
    assert probe.outcome.name == "SURVIVED"
    assert probe.refused > 0
    never = probe_sensitivity(lambda x: 1 / 0, UNIT, budget=100, rng=1)
    assert (never.found, never.outcome.name) == (0.0, "INCONCLUSIVE")


def test_the_query_gets_a_copy_and_may_ruin_it():
    def ruins(records):
        total = float(records.sum())
        records[:] = 0
        return total

    assert probe_sensitivity(ruins, UNIT, budget=1000, rng=1).found == pytest.approx(1.0)


def test_distances():
    assert answer_distance(2**62 + 1, 2**62, 1) == 1.0  # equal as floats
    assert answer_distance(np.int64(2**63 - 1), np.int64(-(2**63)), 1) == 2.0**64
    assert answer_distance([3.0, 0.0], [0.0, 4.0], 1) == 7.0
    assert answer_distance([3.0, 0.0], [0.0, 4.0], 2) == 5.0
    assert answer_distance([3.0, 0.0], [0.0, 4.0], np.inf) == 4.0
    assert answer_distance([1.0], [1.0, 2.0], 1) == np.inf
    assert answer_distance(np.nan, np.nan, 1) == np.inf
    assert answer_distance([], [], 1) == 0.0
    assert answer_distance(1e308, -1e308, 1) == np.inf  # without a warning
    assert 0 < TOLERANCE < 1e-6


def test_a_seed_repeats():
    one, two = (probe_sensitivity(np.median, UNIT, rng=9, budget=700) for _ in range(2))
    assert (one.found, one.kind, one.evaluations) == (two.found, two.kind, two.evaluations)
    assert one.seed == 9


@pytest.mark.parametrize(
    "bad",
    [{"declared": -1.0}, {"declared": np.nan}, {"norm": 0.5}, {"budget": 0}, {"budget": True},
     {"query": 3}, {"rng": -1}, {"space": "records"}, {"space": np.array(3.0)},
     {"space": np.array(["a"])}],
    ids=repr,
)  # fmt: skip
def test_nonsense_is_refused(bad):
    def query(data):
        raise AssertionError("called")

    with pytest.raises(ParameterError, match="must"):
        probe_sensitivity(**{"query": query, "space": UNIT, **bad})
    assert BUDGET.check("budget", 5) == 5


def test_the_claim_of_a_sensitivity_is_audited():
    from audits import audit
    from audits.claims.claims import Sensitivity

    assert audit(np.median, UNIT, Sensitivity(0.1), 1000, rng=1).outcome.name == "FALSIFIED"
    assert audit(clipped_sum, UNIT, Sensitivity(1.0), 1000, rng=1).outcome.name == "SURVIVED"
    pair = (np.zeros(3), np.ones(3))
    assert audit(np.sum, pair, Sensitivity(2.9), 1000, rng=1).outcome.name == "FALSIFIED"
    assert audit(np.sum, pair, Sensitivity(3.0), 1000, rng=1).outcome.name == "SURVIVED"
