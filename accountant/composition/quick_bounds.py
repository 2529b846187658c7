"""Bounds that are quicker than an interval: does a composition surely cost at most an epsilon?"""

from __future__ import annotations

import math

import numpy as np

from accountant.composition.cgf import log_chernoff
from accountant.composition.composition import TILT_FACTORS, ignore_overflow
from accountant.composition.contour import Contour
from accountant.composition.query import Query
from accountant.numerics.rounding import ULP

ACCURACY = 1e-6  # of delta, where two directions are compared
MAX_NODES = 1024  # of a contour that costs less than a second interval
FEW_NODES, NODE_SHARE = 100, 0.75  # of the other direction's contour, for about this accuracy


@ignore_overflow
def costs_at_most(query: Query, epsilon: float, like: Query | None = None) -> bool:
    """Return whether a quick bound says that a composition costs at most ``epsilon > 0``.

    ``like``: an answered query of a composition that costs about as much.
    """
    composition, cgf = query.composition, query.composition.cgf
    finite_delta = query.delta - composition.infinity * (1 + 8 * ULP)
    if finite_delta <= 0:
        return False
    if composition.max_loss <= epsilon:
        return True
    log_delta = math.log(finite_delta)
    if like is not None and like.composition.has_exact_cgf and len(composition.items) == 1:
        like_contour = like.neighbourhood.contour
        if like_contour.nodes <= FEW_NODES:
            grid = like_contour.step, NODE_SHARE * like_contour.nodes
            contour = Contour(cgf, like_contour.tilt, epsilon, 0.0, ACCURACY, grid=grid)
            contour.integrate()
            if contour.bounds(epsilon)[1] <= log_delta:
                return True
    if query.rough_epsilon is None:
        return composition.chernoff(query.delta) <= epsilon
    tilt = query.neighbourhood.tilt
    # where an estimate says so Chernoff's bound is asked for, at one order
    orders = tilt * TILT_FACTORS
    rough_exponents = log_chernoff(cgf.rough_at(orders), orders) - orders * epsilon
    if float(np.nanmin(rough_exponents)) <= log_delta:
        best = orders[[int(np.nanargmin(rough_exponents))]]
        exponent = float((cgf.log_chernoff(best) - best * epsilon)[0])
        if exponent + 64 * ULP * (1 + tilt * epsilon) <= log_delta:
            return True
    contour = Contour(cgf, tilt, epsilon, 0.0, ACCURACY, only_above=True)
    if not contour.nodes <= MAX_NODES:
        return False
    contour.integrate()
    return contour.bounds(epsilon)[1] <= log_delta
