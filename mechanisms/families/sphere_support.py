"""Reports on a sphere whose density depends only on the height along the value, in steps.

A mechanism such as PrivUnit reports a point of a sphere, more likely in a cap around the value.
Planes across the value at a few heights cut the sphere into *slices* of constant density.  A
hockey-stick divergence of two values is then a sum over finitely many cells, the intersections of
the slices of both; this file has the shares of the sphere that these cells have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.numerics.quadrature import gauss_legendre_panels
from mechanisms.base import Cells, Support


@dataclass(frozen=True, slots=True)
class SphereSupport(Support):
    """The sphere of a radius; the density is constant between ``heights`` along the value.

    A height is the product of the unit vectors of an output and of the value, and stands for its
    opposite, too.  The measure is the share of the sphere.  Two values along two lines need a
    single height.
    """

    dimension: int
    radius: float
    heights: tuple[float, ...]

    def cells(self, first: Any, second: Any) -> Cells:
        """Return slices of the sphere across the values, or intersections of two sets of slices."""
        values = np.stack([first, second]).astype(float)
        length = np.sqrt(np.square(values).sum(axis=1))
        longer = int(np.argmax(length))
        axis = values[longer] / length[longer] if length[longer] else np.eye(len(first))[0]
        other_axis = values[1 - longer] / (length[1 - longer] or 1.0)
        across = other_axis - (other_axis @ axis) * axis
        # Values less apart than this lie along one line, up to rounding.
        if np.sqrt(across @ across) > 1e-9:
            return self._cap_intersections(axis, other_axis)
        # Each slice has the point at its middle height, in the direction `orthogonal` to the axis.
        edges = np.concatenate([[-1.0], self._signed_heights, [1.0]])
        measure = np.diff(self._share_below(edges))
        ends = np.array([-1.0, 1.0]) if self.dimension == 1 else (edges[1:] + edges[:-1]) / 2
        orthogonal = np.roll(np.eye(self.dimension), 1, axis=1)[np.argmax(np.abs(axis))]
        orthogonal = orthogonal - (orthogonal @ axis) * axis
        orthogonal /= np.sqrt(orthogonal @ orthogonal) or 1.0
        slant = np.sqrt(np.maximum(1 - ends**2, 0.0))
        outputs = self.radius * (np.outer(ends, axis) + np.outer(slant, orthogonal))
        return Cells(outputs, measure, lambda output: self._slice_index(output, axis))

    def _cap_intersections(self, axis: Array, other_axis: Array) -> Cells:
        """Return the intersections of the slices along two axes, for a single height h.

        The slices along an axis are the cap below -h, the middle and the cap above h; for h = 0
        there is no middle.
        """
        # In the plane of both lines a uniform point has a uniform angle, and length above r with
        # probability (1 - r^2)^((p-2)/2).  So caps whose centres are an angle t apart share
        # 1/pi int_{t/2}^{arccos h} (1 - h^2 / cos^2 x)^((p-2)/2) dx of the sphere.
        if len(self.heights) != 1:
            raise ParameterError("pair", "two directions", "two vectors along one line")
        height, slices = self.heights[0], self._signed_heights.size + 1
        plane = np.linalg.qr(np.stack([axis, other_axis], axis=1))[0].T
        places = plane @ np.stack([axis, other_axis], axis=1)  # both in coordinates of the plane
        start, end = np.arctan2(places[1], places[0])
        separation, reach = float(np.arccos(np.clip(axis @ other_axis, -1, 1))), math.acos(height)

        def lens(angle: float) -> float:
            """Return the share of the sphere that two caps at this angle have in common."""
            # With x = arccos h - s^2 the integrand is smooth in s; panels get finer towards 0.
            end = math.sqrt(max(reach - angle / 2, 0.0))
            nodes, weights, _ = gauss_legendre_panels(
                end * np.append(0.0, 2.0 ** np.arange(-30, 1))
            )
            inside = 1 - np.square(height / np.cos(reach - nodes**2))
            power = np.maximum(inside, 0.0) ** ((self.dimension - 2) / 2)
            return float(weights @ (2 * nodes * power)) / math.pi

        # A cap of one axis overlaps the cap of the other axis on the same side (`near_share`) and
        # the one on the opposite side (`far_share`).  The rest of it is in the middle slice of the
        # other axis.
        near_share, far_share = lens(separation), lens(math.pi - separation)
        cap = 1 - float(self._share_below(height))
        side = max(cap - near_share - far_share, 0.0)
        middle = max(1 - 4 * cap + 2 * near_share + 2 * far_share, 0.0)
        table = np.array(
            [[near_share, side, far_share], [side, middle, side], [far_share, side, near_share]]
        )
        if slices == 2:
            table = table[::2, ::2]  # without the middle slices
        # Each cell needs a point in it.  On the circle in the plane of the axes, the slices change
        # at eight angles, the cuts.  The points are one off the plane and one of every arc between
        # cuts.  A later point replaces an earlier one of the same cell, so the longest arc is last.
        cuts = np.add.outer([start, start + np.pi, end, end + np.pi], [-reach, reach]).ravel()
        cuts = np.sort(cuts % (2 * np.pi))
        arcs = np.diff(cuts, append=cuts[0] + 2 * np.pi)
        middles = (cuts + arcs / 2)[np.argsort(arcs)]
        points = np.stack([np.cos(middles), np.sin(middles)], axis=1) @ plane
        if self.dimension > 2:
            normal = np.linalg.qr(np.vstack([plane, np.eye(self.dimension)]).T)[0].T[2]
            points = np.vstack([normal, points])

        def locate(output: NDArray[Any]) -> NDArray[np.intp]:
            return self._slice_index(output, axis) * slices + self._slice_index(output, other_axis)

        outputs = np.zeros((slices * slices, self.dimension))
        outputs[locate(self.radius * points)] = self.radius * points
        return Cells(outputs, table.ravel(), locate)

    @property
    def _signed_heights(self) -> Array:
        """The heights of both signs, in ascending order: the ends of the slices."""
        return np.array(sorted({side * h for h in self.heights for side in (-1.0, 1.0)}))

    def _slice_index(self, output: NDArray[Any], axis: Array) -> NDArray[np.intp]:
        """Return in which slice along the axis each output lies, from the lowest one."""
        return np.searchsorted(self._signed_heights, np.asarray(output) @ axis / self.radius)

    def _share_below(self, height: Any) -> Array:
        """Return the share of the sphere below t, ``(1 + sign(t) I_{t^2}(1/2, (p-1)/2)) / 2``."""
        from scipy.special import betainc

        if self.dimension == 1:
            return np.asarray((np.sign(height) + 1) / 2)
        half = (self.dimension - 1) / 2
        below: Array = (1 + np.sign(height) * betainc(0.5, half, np.square(height))) / 2
        return below
