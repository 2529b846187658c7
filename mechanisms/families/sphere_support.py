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

# Vectors whose directions differ by less than this sine count as vectors along one line.  A cap
# around the one and the cap of the same height around the other then differ by at most the share
# 1e-9 / pi of the sphere.
ONE_LINE = 1e-9


@dataclass(frozen=True, slots=True)
class SphereSupport(Support):
    """The sphere of a radius; the density is constant between ``heights`` along the value.

    A height is the product of the unit vectors of an output and of the value.  The density may
    change at each of the heights, which are at least 0, and at their negatives.  The measure is the
    share of the sphere.  Values in two directions, neither equal nor opposite, can be compared only
    if there is a single height.  In dimension 1 the sphere is two points and the only height is 0.
    """

    dimension: int
    radius: float
    heights: tuple[float, ...]

    def cells(self, first: Any, second: Any) -> Cells:
        """Return slices of the sphere across the values, or intersections of two sets of slices."""
        values = np.stack([first, second]).astype(float)
        lengths = np.sqrt(np.square(values).sum(axis=1))
        # The axes are the directions of the values.  A zero value has the same density everywhere,
        # so that the slices of the other value serve for both.
        longer = int(np.argmax(lengths))
        axis = values[longer] / lengths[longer] if lengths[longer] else np.eye(len(first))[0]
        other_axis = values[1 - longer] / (lengths[1 - longer] or 1.0)
        across = other_axis - (other_axis @ axis) * axis
        if np.sqrt(across @ across) > ONE_LINE:
            return self._cap_intersections(axis, other_axis)
        # Each slice has the point at its middle height, in the direction `orthogonal` to the axis.
        # That is made from a coordinate vector other than the one closest to the axis.
        edges = np.concatenate([[-1.0], self._signed_heights, [1.0]])
        measure = np.diff(self._share_below(edges))
        middles = np.array([-1.0, 1.0]) if self.dimension == 1 else (edges[1:] + edges[:-1]) / 2
        next_coordinate = (np.argmax(np.abs(axis)) + 1) % self.dimension
        orthogonal = np.eye(self.dimension)[next_coordinate]
        orthogonal = orthogonal - (orthogonal @ axis) * axis
        orthogonal /= np.sqrt(orthogonal @ orthogonal) or 1.0  # it is 0 in dimension 1
        distance_from_axis = np.sqrt(np.maximum(1 - middles**2, 0.0))
        points = np.outer(middles, axis) + np.outer(distance_from_axis, orthogonal)
        return Cells(self.radius * points, measure, lambda output: self._slice_index(output, axis))

    def _cap_intersections(self, axis: Array, other_axis: Array) -> Cells:
        """Return the intersections of the slices along two axes, for a single height h.

        The slices along an axis are the cap below -h, the middle and the cap above h; for h = 0
        there is no middle.
        """
        if len(self.heights) != 1:
            raise ParameterError("pair", "two directions", "two vectors along one line")
        height, slices = self.heights[0], self._signed_heights.size + 1
        # A cap of one axis overlaps the cap of the other axis on the same side (`near_share`) and
        # the one on the opposite side (`far_share`).  The rest of it is in the middle slice of the
        # other axis.
        angle = float(np.arccos(np.clip(axis @ other_axis, -1, 1)))
        near_share = self._shared_by_caps(height, angle)
        far_share = self._shared_by_caps(height, math.pi - angle)
        cap = 1 - float(self._share_below(height))
        side = max(cap - near_share - far_share, 0.0)
        middle = max(1 - 4 * cap + 2 * near_share + 2 * far_share, 0.0)
        shares = np.array(
            [[near_share, side, far_share], [side, middle, side], [far_share, side, near_share]]
        )
        if slices == 2:
            shares = shares[::2, ::2]  # without the middle slices

        def locate(output: NDArray[Any]) -> NDArray[np.intp]:
            return self._slice_index(output, axis) * slices + self._slice_index(output, other_axis)

        # A cell that none of the points lies in has share 0, and its output stays zero.
        outputs = np.zeros((slices * slices, self.dimension))
        points = self.radius * self._points_in_cells(axis, other_axis, height)
        outputs[locate(points)] = points
        return Cells(outputs, shares.ravel(), locate)

    def _shared_by_caps(self, height: float, angle: float) -> float:
        """Return the share of the sphere that two caps have in common.

        Both caps begin at the height, and their centres are the angle apart.
        """
        # Project a uniform point of the sphere in d dimensions to the plane of both centres.  The
        # angle of the projection is uniform, and its length is above r with probability
        # (1 - r^2)^((d-2)/2).  So caps of height h whose centres are the angle t apart share
        #     1/pi int_{t/2}^{arccos h} (1 - h^2 / cos^2 x)^((d-2)/2) dx.
        # With x = arccos h - s^2 the integrand is smooth in s.  If h is small, it changes most
        # where s^2 is near h, so the panels become shorter by halves towards s = 0.
        reach = math.acos(height)
        longest_s = math.sqrt(max(reach - angle / 2, 0.0))
        edges = longest_s * np.append(0.0, 2.0 ** np.arange(-30, 1))
        s, weights, _ = gauss_legendre_panels(edges)
        inside = np.maximum(1 - np.square(height / np.cos(reach - s**2)), 0.0)
        return float(weights @ (2 * s * inside ** ((self.dimension - 2) / 2))) / math.pi

    def _points_in_cells(self, axis: Array, other_axis: Array, height: float) -> Array:
        """Return unit vectors such that each intersection of slices has one, if it has measure.

        If a cell has several, the last one is the middle of the cell's longest arc.
        """
        # On the circle in the plane of the axes, the slices change at eight angles, the cuts.  The
        # middle of each arc between cuts is a point; the arcs are in the order of their lengths.
        plane = np.linalg.qr(np.stack([axis, other_axis], axis=1))[0].T
        in_plane = plane @ np.stack([axis, other_axis], axis=1)
        angle, other_angle = np.arctan2(in_plane[1], in_plane[0])
        centres = [angle, angle + np.pi, other_angle, other_angle + np.pi]
        reach = math.acos(height)
        cuts = np.sort(np.add.outer(centres, [-reach, reach]).ravel() % (2 * np.pi))
        arcs = np.diff(cuts, append=cuts[0] + 2 * np.pi)
        middles = (cuts + arcs / 2)[np.argsort(arcs)]
        points: Array = np.stack([np.cos(middles), np.sin(middles)], axis=1) @ plane
        if self.dimension > 2:
            # The third vector is orthogonal to the plane: a point of both middle slices, if h > 0.
            normal = np.linalg.qr(np.vstack([plane, np.eye(self.dimension)]).T)[0].T[2]
            points = np.vstack([normal, points])
        return points

    @property
    def _signed_heights(self) -> Array:
        """The heights of both signs, in ascending order: the ends of the slices."""
        return np.array(sorted({side * h for h in self.heights for side in (-1.0, 1.0)}))

    def _slice_index(self, output: NDArray[Any], axis: Array) -> NDArray[np.intp]:
        """Return in which slice along the axis each output lies, from the lowest one."""
        return np.searchsorted(self._signed_heights, np.asarray(output) @ axis / self.radius)

    def _share_below(self, height: Any) -> Array:
        """Return the share of the sphere below each height t.

        In d dimensions it is ``(1 + sign(t) I_{t^2}(1/2, (d-1)/2)) / 2``, with the regularised
        incomplete beta function I.
        """
        from scipy.special import betainc

        if self.dimension == 1:
            return np.asarray((np.sign(height) + 1) / 2)
        half = (self.dimension - 1) / 2
        below: Array = (1 + np.sign(height) * betainc(0.5, half, np.square(height))) / 2
        return below
