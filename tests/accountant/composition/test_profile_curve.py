"""Profiles of composite parts: kept engines, tables of Fourier sums, always upper bounds."""

import math

import numpy as np
import pytest

from accountant import (
    GaussianLoss,
    Grouped,
    LaplaceLoss,
    Parallel,
    ParameterError,
    PoissonSampled,
    Sequential,
    Tight,
)
from accountant.composition import profile_curve
from accountant.composition.composed_loss import ComposedLoss
from accountant.composition.composition import Composition
from accountant.composition.engine import delta_interval
from accountant.composition.engines import ENGINES_NEAR_EPSILON
from accountant.composition.lattice_above import LatticeCurve
from accountant.composition.profile_curve import ProfileCurve, _chord


@pytest.mark.parametrize(
    "items",
    [
        [(LaplaceLoss(0.3), 2)],  # a table of a smoothed contour
        [(LaplaceLoss(0.3), 3)],
        [(PoissonSampled(GaussianLoss(1.0), 0.1), 2)],  # a table without smoothing
        [(GaussianLoss(0.5), 1), (LaplaceLoss(0.3), 1)],  # summed for each epsilon
    ],
)
def test_the_profile_of_a_composition_is_just_above_its_certified_lower_end(items):
    composition = Composition(items)
    curve = ProfileCurve(composition, 1e-6)
    rng = np.random.default_rng(5)
    epsilon = rng.uniform(0.0, min(composition.max_loss, 3.0), 40)
    found = curve.profile(epsilon)
    for e, delta in zip(epsilon[:8].tolist(), found[:8].tolist(), strict=True):
        low, high = delta_interval(composition, e, 1e-6, ENGINES_NEAR_EPSILON)
        assert low <= delta <= high * (1 + 1e-3) + 1e-15
    # one at a time, and below 0, where it says nothing
    assert [float(curve.profile(np.array(e))) for e in epsilon] == pytest.approx(found, rel=1e-12)
    assert curve.profile(np.array([-0.1])).tolist() == [1.0]


def test_a_composite_part_makes_its_engines_once(monkeypatch):
    made = []
    made_by = profile_curve.delta_bounds_near

    def counted(*args):
        made.append(args[-1])
        return made_by(*args)

    monkeypatch.setattr(profile_curve, "delta_bounds_near", counted)
    # sizes of no other test, for curves are kept
    part = PoissonSampled(Sequential([GaussianLoss(0.3125), LaplaceLoss(0.3125)]), 0.3125)
    assert isinstance(part.loss, ComposedLoss)
    Tight().certify(2 * part, 1e-6)
    assert 0 < len(made) <= 2 * (len(profile_curve.RELATIVE_DELTAS) + 1)


def test_a_composite_part_makes_its_lattice_once(monkeypatch):
    made = []

    made_by = LatticeCurve.of

    def counted(*args):
        made.append(made_by(*args))
        return made[-1]

    monkeypatch.setattr(LatticeCurve, "of", counted)
    # a contour of two would be smoothed
    part = PoissonSampled(2 * LaplaceLoss(0.3125), 0.3125)
    assert isinstance(part.loss, ComposedLoss)
    found = Tight().certify(2 * part, 1e-6)
    assert 0 < len(made) <= 2
    assert part.loss.epsilon_at(1e-6) < 0.625
    assert found.upper < 2 * Tight().epsilon(part, 0.0)


def test_samples_nested_in_each_other_are_answered():
    def nested(depth):
        plan = GaussianLoss(0.5)
        for i in range(depth):
            plan = PoissonSampled(Sequential([plan, LaplaceLoss(0.3 + i / 64)]), 0.3)
        return plan

    found = [Tight().epsilon(2 * nested(depth), 1e-6) for depth in (1, 3)]
    assert 0 < found[1] < found[0] < math.inf


def test_parallel_plans_inside_parallel_plans_are_one_maximum():
    plan = Parallel([GaussianLoss(1.0)])
    for i in range(20):
        plan = Parallel([plan, LaplaceLoss(0.1 + i / 64)])
    assert len(plan.distinct) == 21
    assert Tight().epsilon(plan, 1e-6) == Tight().epsilon(GaussianLoss(1.0), 1e-6)


def test_a_large_group_of_a_loss_that_is_a_curve_is_refused():
    with pytest.raises(ParameterError, match="at most 300 where the trade-off curve is iterated"):
        Tight().epsilon(Grouped(PoissonSampled(GaussianLoss(1.0), 0.01), 2_000), 1e-6)


def test_chords_of_a_table_are_above_what_is_convex_and_meet_it_at_its_points():
    for spacing in (0.05, 1.0):
        points, epsilon = spacing * np.arange(3, 9), np.linspace(3 * spacing, 7.9 * spacing, 50)
        logs = -2 * points  # delta = e^{-2 epsilon}, which is convex in e^epsilon
        chords = _chord(3, spacing, logs, epsilon)
        x = np.exp(epsilon)
        exact = np.interp(x, np.exp(points), np.exp(logs))
        assert np.all(np.exp(chords) >= exact * (1 - 1e-14))
        assert np.all(np.exp(chords) <= exact * (1 + 1e-12))
