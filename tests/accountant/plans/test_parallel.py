"""Parallel plans: by index and by value, reversed, and shown."""

import pytest

from accountant import (
    RDP,
    Basic,
    GaussianLoss,
    LaplaceLoss,
    Parallel,
    ParameterError,
    PureLoss,
    Repeat,
    Stated,
    Tight,
)
from accountant.plans.adjacency import Adjacency
from mechanisms import Laplace


def test_a_parallel_of_many_equal_parts_is_reversed_at_once():
    one = Laplace(1.0)
    plan = Parallel([one] * 1_000_000)
    turned = plan.reversed
    assert turned.parts[0] is turned.parts[-1]
    assert Tight().epsilon(Repeat(plan, 1), 0.0) == pytest.approx(1.0)


def test_a_record_that_moves_leaves_a_trace_in_both_groups():
    # histogram of two groups, Laplace noise for a count: replacing a record can change both
    kept, moved = LaplaceLoss(0.1), LaplaceLoss(1.0)
    by_index = Parallel([kept, kept])
    by_value = Parallel([kept, kept], by="value", moves=[moved, moved])
    assert Tight().epsilon(by_index, 1e-6) < 0.1 + 1e-9
    assert Tight().epsilon(by_value, 1e-6) == pytest.approx(
        Tight().epsilon(2 * moved, 1e-6), rel=1e-7
    )
    assert by_value.relation == "replace-one"
    assert Basic().epsilon(by_value, 0.0) == 2.0


def test_without_the_moves_replacing_by_value_is_refused():
    stated = Stated(LaplaceLoss(0.1), "replace-one")
    with pytest.raises(ParameterError, match="can move it to another part"):
        Parallel([stated, stated], by="value")
    with pytest.raises(ParameterError, match="one plan stated for add-remove"):
        Parallel([stated], by="value", moves=[LaplaceLoss(1.0), LaplaceLoss(1.0)])
    with pytest.raises(ParameterError, match="one plan stated for add-remove"):
        Parallel([stated], by="value", moves=[stated])
    with pytest.raises(ParameterError, match="by must be one of"):
        Parallel([PureLoss(1.0)], by="colour")
    # adding or removing a record touches one group only
    assert Tight().epsilon(Parallel([LaplaceLoss(0.1)] * 3, by="value"), 0.0) == 0.1


@pytest.mark.parametrize("relation", [one for one in Adjacency if one != "replace-one"])
def test_moves_need_parts_that_say_what_a_replaced_record_costs(relation):
    # one that stays moves a count by up to 2, twice what its presence does
    parts = [Stated(LaplaceLoss(1.0), relation)]
    with pytest.raises(ParameterError, match=f"stated for replace-one.*, not {relation}"):
        Parallel(parts, by="value", moves=[LaplaceLoss(1.0)])
    stays = [Stated(LaplaceLoss(2.0), "replace-one")]
    plan = Parallel(stays, by="value", moves=[LaplaceLoss(1.0)])
    assert plan.relation is plan.reversed.relation is Adjacency.REPLACE_ONE
    assert Tight().epsilon(plan, 0.0) == 2.0


@pytest.mark.parametrize("relation", ["zero-out", "local-replace"])
def test_groups_by_value_say_for_which_neighbours_they_have_a_cost(relation):
    with pytest.raises(ParameterError, match="stated for add-remove"):
        Parallel([Stated(LaplaceLoss(1.0), relation)], by="value")


def test_parts_that_one_part_covers_cost_nothing():
    dearest = 4 * Parallel([GaussianLoss(0.5), GaussianLoss(0.3), GaussianLoss(0.1)])
    assert Tight().epsilon(dearest, 1e-6) == Tight().epsilon(4 * GaussianLoss(0.5), 1e-6)
    pure = 4 * Parallel([LaplaceLoss(0.5), PureLoss(0.5)])
    assert Tight().epsilon(pure, 1e-6) == Tight().epsilon(4 * PureLoss(0.5), 1e-6)
    assert RDP().epsilon(pure, 1e-6) == RDP().epsilon(4 * PureLoss(0.5), 1e-6)


def test_equal_parts_are_shown_as_a_multiple():
    one, other = PureLoss(1.0), PureLoss(0.5)
    for plan in (
        Parallel([one] * 3815), Parallel([one, one, other], by="value"), Parallel([]),
        Parallel([Stated(one, "replace-one")], by="value", moves=[Stated(other, "add-remove")]),
    ):  # fmt: skip
        assert eval(repr(plan)) == plan
        assert len(repr(plan)) < 200


def test_groups_by_value_are_stated_for_records_more_or_less():
    # unstated parts too: a record that is replaced may leave a trace in two groups
    groups = Parallel([PureLoss(1.0), PureLoss(0.5)], by="value")
    assert groups.relation == "add-remove"
    assert Parallel([], by="value").relation is None
    with pytest.raises(ParameterError, match="replace-one"):
        Stated(groups, "replace-one")
    with pytest.raises(ParameterError, match="do not mix"):
        Stated(PureLoss(0.1), "replace-one") + groups
