"""Every leaf is replaced, and nothing else."""

from accountant import Parallel, PureLoss, Repeat
from accountant.plans.map_leaves import map_leaves
from mechanisms import Laplace


def doubled(leaf):
    return Laplace(2 * leaf.scale) if isinstance(leaf, Laplace) else PureLoss(2 * leaf.epsilon)


def test_leaves_are_replaced_wherever_they_lie():
    plan = 3 * Laplace(1.0) + Parallel([Laplace(1.0), 2 * PureLoss(0.5)])
    made = map_leaves(plan, doubled)
    assert made == 3 * Laplace(2.0) + Parallel([Laplace(2.0), 2 * PureLoss(1.0)])
    assert map_leaves(Laplace(1.0), doubled) == Laplace(2.0)


def test_equal_parts_are_changed_once_and_stay_one():
    asked = []
    made = map_leaves(
        Parallel([Repeat(PureLoss(0.5), 2)] * 9), lambda leaf: asked.append(leaf) or PureLoss(1.0)
    )
    assert asked == [PureLoss(0.5)]
    assert len({id(part) for part in made.parts}) == 1
