"""An engine for losses whose values share a unit eta: delta is a finite Fourier sum.

With the summed loss L on the points c + k eta, E e^{zL} has the period 2 pi / eta in Im z.  Hence
the contour integral for delta is a sum of M terms over one period; its only errors are round-off
and aliases, losses that are M eta away from where they belong:

    delta(e) = (1/M) sum_j Re[ e^{K(z_j)} G(z_j, e) ],  z_j = a + 2 pi i j / (M eta),
    G(z, e) = sum over lattice points x > e of e^{-z x} (1 - e^{e - x}).

Here e is epsilon, K(z) = ln E e^{zL} the cumulant, and a > 0 any real number, the tilt; it is best
near the saddle point of the integrand.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from accountant.composition.aliasing import aliasing_bound
from accountant.composition.cgf import PlanCGF
from accountant.composition.composition import Neighbourhood
from accountant.composition.engine import Attempt, DeltaBounds, EngineNearEpsilon
from accountant.losses.loss import Loss
from accountant.numerics.logspace import log_interval
from accountant.numerics.rounding import ULP

MAX_LATTICE_POINTS = 2**18  # terms M of the sum: with more, other engines are quicker
SEARCHED_LOSSES = 1000  # different losses: with more a unit is not sought
# Relative to the largest value: remainders below ROUND_OFF count as 0, since a unit of that size is
# not sought, and a unit below FINEST would need a lattice of too many points.
ROUND_OFF, FINEST = 1e-9, 1e-5


class LatticeOfSum(NamedTuple):
    """The points ``offset + unit * k``, on which all sums of the losses lie."""

    offset: float
    unit: float
    mismatch: float  # bounds how far a sum may lie from its lattice point, by round-off


def common_unit(items: list[tuple[Loss, int]]) -> LatticeOfSum | None:
    """Return the lattice of the sum of these losses; None where there is none."""
    values = []
    for loss, _ in items:
        pmf = loss.loss_pmf
        if pmf is None or len(items) > SEARCHED_LOSSES:
            return None
        values.append(pmf[0])
    gaps = np.concatenate([np.diff(np.sort(atoms)) for atoms in values])
    gaps = gaps[gaps > 0]
    size = max((float(np.max(np.abs(atoms), initial=0.0)) for atoms in values), default=0.0)
    if gaps.size == 0 or size == 0:
        return None
    # Euclid's algorithm finds the common divisor of all gaps, with the nearest multiple subtracted.
    unit, tiny = float(gaps[0]), ROUND_OFF * size
    for gap in gaps[1:].tolist():
        larger, smaller = max(unit, gap), min(unit, gap)
        while smaller > tiny:
            larger, smaller = smaller, abs(larger - smaller * round(larger / smaller))
        unit = larger
        if unit < FINEST * size:
            return None
    mismatch = offset = 0.0
    for atoms, (_, count) in zip(values, items, strict=True):
        start = float(np.min(atoms))
        steps = np.round((atoms - start) / unit)
        # Every value must be on the lattice up to its own rounding: values are never moved to it.
        largest = float(np.max(np.abs(atoms)))
        if np.max(np.abs(atoms - start - steps * unit)) > 8 * ULP * largest:
            return None
        # Twice that, as the check and the offset are rounded, too.
        mismatch += 16 * ULP * count * largest
        offset += count * start
    return LatticeOfSum(offset, unit, mismatch)


class Lattice:
    """The profile of a composition on a lattice, by a contour with real part ``a``.

    ``lattice`` is the result of `common_unit`, and ``nodes`` the number M of terms, chosen such
    that the aliases are small near ``epsilon``.  Terms are stored divided by e^{K(a)}; its
    logarithm is the height.
    """

    name = "lattice"

    def __init__(self, cgf: PlanCGF, a: float, epsilon: float, lattice: LatticeOfSum) -> None:
        self.tilt = a
        self._offset, self.unit, self.mismatch = lattice
        self._aliases, self._height, self._height_error = aliasing_bound(cgf, a, epsilon)
        self.nodes = math.ceil(self._aliases.period / self.unit) + 1

    def integrate(self, cgf: PlanCGF) -> Lattice:
        """Evaluate the terms of the sum on one period, and return the lattice."""
        # half of the nodes suffice: the others are their conjugates
        self._aliases.period = self.nodes * self.unit
        j = np.arange(self.nodes // 2 + 1)
        self._z = self.tilt + 2j * math.pi * j / (self.nodes * self.unit)
        value, error = cgf.value_at(self._z)
        # the offset may be large: its phase is computed apart from that of the lattice points
        with np.errstate(under="ignore"):
            terms = np.exp(value - self._height - 1j * self._z.imag * self._offset)
        weight = np.where((j == 0) | (2 * j == self.nodes), 1.0, 2.0) / self.nodes
        self._terms = terms * weight
        turn = 4 * ULP * (np.abs(self._z) * abs(self._offset) + 16)
        self._error = np.abs(self._terms) * (error + turn)
        return self

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """Return logarithms of a lower and an upper bound on delta at ``epsilon``."""
        # Delta falls with epsilon, so that an error of the losses is one of epsilon.
        low, _ = self._bounds(epsilon + self.mismatch)
        _, high = self._bounds(epsilon - self.mismatch)
        return low, high

    def _bounds(self, epsilon: float) -> tuple[float, float]:
        """Return the same for losses that are exactly on the lattice."""
        # the first lattice point above epsilon, and how far it is
        index = math.floor((epsilon - self._offset) / self.unit) + 1
        point = index * self.unit
        above = self._offset + point - epsilon
        z = self._z
        first_factor, second_factor = -np.expm1(-z * self.unit), -np.expm1(-(z + 1) * self.unit)
        # G(z, e) = e^{-z x} [1/(1 - e^{-z eta}) - e^{e - x} / (1 - e^{-(z+1) eta})], x the first
        # point above e; the factor e^{-a x} is part of `scale`
        kernel = 1 / first_factor - math.exp(-above) / second_factor
        phase = np.exp(-1j * z.imag * point)
        scale = self._height - self.tilt * (self._offset + point)
        total = float(np.sum((self._terms * phase * kernel).real))
        weight = np.abs(1 / first_factor) + np.abs(1 / second_factor)
        # ``noise`` bounds, in this order: errors of the terms and of their sum, with 32 ulps for
        # the kernel and for the additions; of the phases, some ulps of each angle, ``z.imag``
        # times the point; and of the exponent of the scale, which multiplies the total.
        noise = float(np.sum((self._error + 32 * ULP * np.abs(self._terms)) * weight))
        noise += 4 * ULP * abs(point) * float(np.sum(np.abs(self._terms) * weight * z.imag))
        size = abs(self._height) + abs(scale) + abs(self._offset) + abs(epsilon)
        noise += (2 * self._height_error + 4 * ULP * size) * abs(total)
        alias = math.exp(min(self._aliases.log_bound(epsilon) - scale, 700.0))
        return log_interval(total - noise - alias, total + noise, scale)


class LatticeEngine(EngineNearEpsilon):
    """A finite Fourier sum over the lattice of losses whose values share a unit."""

    name = "lattice"
    planning_cost = 1e5

    def near(self, neighbourhood: Neighbourhood) -> Iterator[Attempt[DeltaBounds]]:
        """Yield the lattice, where the losses have one and it is short."""
        composition = neighbourhood.composition
        unit = common_unit(composition.items)
        if unit is None:
            return
        lattice = Lattice(composition.cgf, neighbourhood.tilt, neighbourhood.epsilon, unit)
        if lattice.nodes > MAX_LATTICE_POINTS:
            return
        terms, _ = composition.cgf.quadrature_terms(math.pi / lattice.unit)
        yield Attempt(lattice.nodes * terms, functools.partial(lattice.integrate, composition.cgf))
