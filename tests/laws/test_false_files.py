"""Law: files made by hand, whose numbers stand where a bound of the checker does not hold.

Each guard of a rule, each factor of a bound that only an odd rule needs, has a file that would be
proved without it.  Its claim is 99 % of what an event shows that the plan costs (`event_costs`).
"""

import math
from typing import Any, NamedTuple

import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

from accountant.verifier import verify
from tests.accountant.verifier.written_proofs import document
from tests.laws import event_costs as events
from tests.laws.event_costs import hits, normals

SHARE = 0.99


def hexadecimal(fields):
    return {key: x.hex() if isinstance(x, float) else x for key, x in fields.items()}


def moment(a, rule=None):
    """Chernoff's bound at one order; the rule is that of a mixture's moment."""
    rules = [] if rule is None else [{"alias": hexadecimal(rule)}]
    return {"road": "contour", "a": a, "b": 0.0, "h": 1.0, "smooth": 0.0, "nodes": 1,
            "rules": rules}  # fmt: skip


def lattice(rule):
    return {"road": "lattice", "a": 4.0, "h": 0.005, "slack": 0.0, "size": 1024,
            "rules": [hexadecimal(rule)]}  # fmt: skip


def epoch(**numbers):
    return {"road": "allocation", **numbers}


class Case(NamedTuple):
    """A plan and what it costs at least; entries that are hostile, and some that are good."""

    plan: dict[str, Any]
    delta: float
    cost: Any
    hostile: list[dict[str, Any]]
    good: list[dict[str, Any]]


SAMPLE = {"kind": "PoissonSampled", "part": {"kind": "GaussianLoss", "mu": 1.0}, "rate": 0.2}
REPLACED = SAMPLE | {"relation": "replace-one"}
RULE = {"y": 0.3, "h": 0.2, "first": -40, "last": 60, "far": 80}
EPOCH = {"kind": "RandomAllocation", "part": {"kind": "GaussianLoss", "mu": 0.5}, "steps": 2}
LINE = {"a": 1.0, "h": 0.5, "y": 0.5, "step": 0.1, "turn": 1.5, "nodes": 128}
FAR_LINE = LINE | {"y": 2.5, "step": 0.17, "turn": 4.6}
PICKS = {"a": 2.5, "h": 0.54, "y": 1.25, "step": 0.12, "turn": 1.72, "nodes": 256,
         "length": 512, "first": 1.05, "count": 309}  # fmt: skip
CASES = {
    # with one order alone the series of aliases has no place, and the bound is attained
    "one moment": Case(
        {"kind": "PureLoss", "epsilon": 3.0}, 0.4, events.response(3.0),
        [moment(1.0)], [moment(1.0)],
    ),
    "a moment of a xi": Case(
        {"kind": "ZCDPLoss", "rho": 1e-6, "xi": 0.3}, 1e-3, events.laplaces({0.3: 1.0}),
        [moment(20.0)], [moment(20.0)],
    ),
    # so many that what Chernoff's bound adds is little
    "a moment of a range": Case(
        {"kind": "BoundedRangeLoss", "epsilon": 0.1, "count": 2000}, 1e-60,
        events.many_responses(0.05, 2000), [moment(7.0)], [moment(7.0)],
    ),
    # the zeros of the density ratio are at Im x = pi
    "a line beyond the zeros": Case(
        SAMPLE | {"count": 5}, 1e-4,
        normals({k / math.sqrt(5): w for k, w in hits(1.0, 5, 0.2).items()}),
        [moment(2.5, {"y": 3.5, "h": 0.4, "first": -19, "last": 30, "far": 45}),
         moment(6.0, RULE)],
        [moment(2.5, RULE), moment(6.0, RULE)],
    ),
    "a last node before the peak": Case(
        REPLACED, 1e-4, normals(hits(1.0, 1, 0.2), hits(-1.0, 1, 0.2)),
        [moment(5.5, {"y": 0.3, "h": 0.8, "first": -6, "last": 1, "far": 1})], [moment(4.5, RULE)],
    ),
    "nodes on both sides of the peak": Case(
        REPLACED, 1e-4, normals(hits(1.0, 1, 0.2), hits(-1.0, 1, 0.2)),
        [moment(4.5, {"y": 0.3, "h": 10.0, "first": -1, "last": 0, "far": 2})],
        [moment(4.5, RULE)],
    ),
    # few nodes on a line far to the right, where the integrand is large
    "an epoch's line of 5 nodes": Case(
        EPOCH | {"part": {"kind": "GaussianLoss", "mu": 0.457}}, 0.02,
        events.one_of_many(0.457, 2),
        [epoch(a=8.6, h=1.78, y=0.51, step=0.08, turn=0.8, nodes=5), epoch(**LINE)],
        [epoch(**LINE)] * 2,
    ),
    "an epoch's line of 3 nodes": Case(
        EPOCH | {"part": {"kind": "GaussianLoss", "mu": 0.12}}, 2e-3, events.one_of_many(0.12, 2),
        [epoch(a=3.427, h=1.765, y=2.65, step=0.26, turn=7.85, nodes=3),
         epoch(a=2.0, h=1.022, y=2.313, step=0.3746, turn=6.0, nodes=10)],
        [epoch(**FAR_LINE)] * 2,
    ),
    # picked 2 times of 5 steps, it costs more than two epochs of 3 steps
    "picks that do not divide the steps": Case(
        EPOCH | {"steps": 5, "picks": 2}, 0.05, normals({1 / math.sqrt(5): 1.0}),
        [lattice(PICKS)] * 2,
        [lattice(PICKS | {"a": 4.35, "h": 1.02, "turn": 2.19, "nodes": 512, "length": 1024,
                          "first": 0.9, "count": 641})] * 2,
    ),
}  # fmt: skip


def word(case, end, entries):
    """The checker's word on a file of these entries, one for each direction."""
    directions = ("forward", "reversed")
    above = [
        {"way": 0, "direction": direction, "bits": 128, **hexadecimal(entry)}
        for direction, entry in zip(directions, entries, strict=False)
    ]
    ends = {"lower": (0.0).hex(), "upper": end.hex(), "delta": case.delta.hex()}
    return verify(
        document({"proof": 1, "plan": case.plan, "above": above, "below": None, **ends})
    ).word


def violation(names=tuple(CASES)) -> str:
    """A plan of which the checker proves that it costs less than it does."""
    for name in names:
        case = CASES[name]
        least = case.cost(case.delta)
        claim = SHARE * least
        if word(case, claim, case.hostile) != "NOT PROVED":
            return f"{name}: proved that {case.plan} costs {claim}, and it costs {least}"
    return ""


@pytest.mark.parametrize("name", CASES)
def test_a_rule_where_its_bound_does_not_hold_proves_nothing(name):
    assert violation([name]) == ""


@pytest.mark.parametrize("name", CASES)
def test_such_a_file_with_a_good_rule_is_a_proof(name):
    """Only the numbers of the rule are wrong: others prove an end that is large enough."""
    case = CASES[name]
    assert word(case, 1.5 * case.cost(case.delta) + 0.5, case.good) == "PROVED"
