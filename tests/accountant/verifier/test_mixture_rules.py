"""A rule for the transform of a mixture is taken where it converges, and nowhere else."""

import math

import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

from flint import arb, ctx

from accountant.verifier.balls import Budget
from accountant.verifier.document import Fields, NoProof
from accountant.verifier.moments import MixtureMoments

SIDES = [[(0.5, 0.0), (0.5, 1.0)], [(0.5, -0.25), (0.5, -0.75)]]
ORDER = 2.0
# Nodes to the right of 3 * 1 + 2 * 0.75 = 4.5 fall, and y must be below pi / 2 / 1.75 = 0.8976.
RULE = {"y": 0.89, "h": 0.25, "first": -8, "last": 12, "far": 19}
TAKEN = [
    {}, {"first": 0, "last": 0}, {"last": 19}, {"h": 1.5, "first": -2, "last": 3, "far": 4},
    {"y": 0.05, "h": 0.1, "far": 46},
]  # fmt: skip
REFUSED = [
    {"far": 18}, {"y": 0.9}, {"first": 1}, {"last": -1}, {"last": 20}, {"far": -19},
    {"h": 2.2, "first": -2, "last": 3, "far": 4}, {"y": 1.8}, {"y": 0.02},
]  # fmt: skip


def error_of(changed):
    """The error of a rule, of which some fields are changed."""
    fields = {k: x.hex() if isinstance(x, float) else x for k, x in (RULE | changed).items()}
    sides = [[(arb(w), arb(s)) for w, s in side] for side in SIDES]
    Budget.remaining = math.inf
    with ctx.workprec(64):
        return MixtureMoments(sides, Fields({"line": fields}, "rules")).quadrature(ORDER, "line")[2]


@pytest.mark.parametrize("changed", TAKEN, ids=repr)
def test_a_rule_that_converges_is_taken(changed):
    assert 0 < float(error_of(changed)) < math.inf


@pytest.mark.parametrize("changed", REFUSED, ids=repr)
def test_a_rule_that_may_not_converge_is_refused(changed):
    with pytest.raises(NoProof):
        error_of(changed)
