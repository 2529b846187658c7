"""The profile of one composition at many epsilons: engines are made once and kept."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from accountant.composition.certified_composition import CertifiedComposition, ignore_overflow
from accountant.composition.cgf import PlanCGF
from accountant.composition.closed_form import Engine
from accountant.composition.contour import Contour
from accountant.composition.engines import engines_near, has_exact_engine
from accountant.composition.enumeration import Enumeration
from accountant.composition.saddlepoint import saddlepoint
from accountant.numerics import Array
from accountant.numerics.rounding import ULP, round_up

# one engine each
DELTAS = (0.3, 0.05, 3e-3, 1e-5, 1e-9, 1e-20)
RELATIVE_DELTAS = (0.2, 0.03, 1e-3, 1e-5, 1e-8, 1e-12, 1e-20, 1e-50)

MAX_SUMMED_NODES = 2**11  # for each epsilon; of more, a table is made


class ProfileCurve:
    """Upper bounds on delta, in the direction of ``composition``.

    About ``accuracy`` loose; where it is None, as loose as the composition's ``width``, which is
    relative to epsilon, makes it.
    """

    @ignore_overflow
    def __init__(self, composition: CertifiedComposition, accuracy: float | None = None) -> None:
        self._composition, self._accuracy = composition, accuracy
        self.max_loss, self.loss_pmf = composition.max_loss, None
        self._cgf = PlanCGF(composition.items)
        self._bounds: dict[int, Callable[[Array], Array]] = {}
        # where an engine's range starts, its real part, about delta
        self._aims: list[tuple[float, float, float]] = []
        if composition.items and composition.max_loss > 0 and composition.infinity < 1:
            aims = [(0.0, saddlepoint(self._cgf, epsilon=0.0), 1.0)]
            for delta in RELATIVE_DELTAS if accuracy is None else DELTAS:
                a, epsilon = composition.tilt_and_epsilon(math.log(delta))
                aims.append((epsilon, a, delta))
            self._aims = sorted(aim for aim in aims if aim[0] >= 0)

    @property
    @ignore_overflow
    def is_exact(self) -> bool:
        """Whether no bound is smoothed or a chord: they are exact but for round-off."""
        return all(
            has_exact_engine(self._composition.items, self._cgf, a, epsilon, MAX_SUMMED_NODES)
            for epsilon, a, _ in self._aims
        )

    @ignore_overflow
    def profile(self, epsilon: Array) -> Array:
        """Return delta at each epsilon, rounded up; 1 below 0."""
        infinity = round_up(self._composition.infinity, 16)
        flat = np.ravel(epsilon)
        result = np.full(flat.shape, infinity)
        result[flat < 0] = 1.0
        inside = (flat >= 0) & (flat < self.max_loss)
        if self._aims and inside.any():
            served = np.searchsorted([e for e, _, _ in self._aims[1:]], flat, side="right")
            for i in np.unique(served[inside]).tolist():
                mask = inside & (served == i)
                result[mask] += self._finite_part(i, flat[mask])
        capped: Array = np.minimum(result, 1.0).reshape(np.shape(epsilon))
        return capped

    def _finite_part(self, i: int, epsilon: Array) -> Array:
        """Return the delta of the finite losses, by the ``i``-th engine."""
        if i not in self._bounds:
            ends = [e for e, _, _ in self._aims[i + 1 :]] + [self.max_loss]
            self._bounds[i] = _upper_bounds(self._engine(*self._aims[i]), self._aims[i][0], ends[0])
        delta: Array = np.exp(np.minimum(self._bounds[i](epsilon), 0.0))
        return delta

    def _engine(self, epsilon: float, a: float, delta: float) -> Engine | None:
        width = self._composition.width
        if self._accuracy is not None:
            # smoothing S raises delta by S / 2 times the density, about a (a + 1) delta, and
            # `engines_near` takes S = 0.7 width epsilon / (a + 1)
            width = min(3 * self._accuracy / (a * delta * max(epsilon, 1e-3 / a)), 1e-2)
        return next(engines_near(self._composition.items, self._cgf, a, epsilon, width), None)


def _upper_bounds(engine: Engine | None, low: float, high: float) -> Callable[[Array], Array]:
    """Return what gives logarithms of upper bounds at epsilons between two ends."""
    if engine is None:
        return np.zeros_like
    if isinstance(engine, Enumeration):
        return engine.log_upper_bounds
    if not isinstance(engine, Contour):
        return lambda epsilon: np.array([engine.bounds(e)[1] for e in epsilon.tolist()])
    table = engine.upper_table(low, high) if engine.nodes > MAX_SUMMED_NODES else None
    return engine.log_upper_bounds if table is None else functools.partial(_chord, *table)


def _chord(first_index: int, spacing: float, logs: Array, epsilon: Array) -> Array:
    """Return the logarithms of the chords of a table, in ``x = e^epsilon``."""
    # delta is convex in x and falls: round-off of the places is made good by a smaller epsilon
    epsilon = epsilon * (1 - 8 * ULP)
    cell = np.floor(epsilon / spacing)
    index = cell.astype(int) - first_index
    share = np.clip(np.expm1(epsilon - cell * spacing) / math.expm1(spacing), 0.0, 1.0)
    top = np.maximum(logs[index], logs[index + 1])
    left, right = np.exp(logs[index] - top), np.exp(logs[index + 1] - top)
    chord: Array = top + np.log((1 - share) * left + share * right) + 16 * ULP
    return np.where(np.isfinite(top), chord, top)
