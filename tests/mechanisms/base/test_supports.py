"""Supports: what they can hold, and how many cells they list."""

import math

import numpy as np
import pytest

from accountant import ParameterError
from mechanisms import SparseVector
from mechanisms.base.supports import MAX_CELLS, Candidates, Labels, Lattice, RealLine


@pytest.mark.parametrize("reach", [math.inf, math.nan, 1e300, MAX_CELLS / 2])
def test_a_lattice_of_too_many_cells_is_refused(reach):
    with pytest.raises(ParameterError, match="reach below"):
        Lattice(reach).cells(0, 1)


def test_a_lattice_lists_all_integers_within_reach():
    assert Lattice(1.5).cells(0, 1).outputs.tolist() == [-2, -1, 0, 1, 2, 3]


@pytest.mark.parametrize(
    ("support", "possible", "impossible"),
    [(Labels(3), [0, 2], [[0, 3], [-1]]), (Candidates(), [0, 99], [[-1, 0]]),
     (RealLine(ends=(0.0, 1.0)), [0.0, 1.0], [[1.5], [math.nan]]),
     (SparseVector(1.0, 1.0, 1.0).support, [[2.0, -7.5], [3.0, math.nan]],
      [[[1.5, 0.0]], [[-1.0, 0.0]], [[math.nan, 0.0]], [[math.inf, 0.0]], [[0.0, math.inf]]])],
)  # fmt: skip
def test_what_a_support_can_hold(support, possible, impossible):
    assert support.may_hold(np.array(possible))
    assert not any(support.may_hold(np.array(outputs)) for outputs in impossible)
