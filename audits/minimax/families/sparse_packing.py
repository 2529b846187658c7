"""The packing of sparse parameters that private labels have to distinguish.

A packing is a set of points that lie far apart: here vectors of s signs among zeros, which become
parameters of a linear model.  An accurate estimate would tell which of them the data come from.

Reference: Wang & Xu (2021), Theorems 5, 7 and 10.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.domains import POSITIVE, IntegerRange, Interval
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.numerics.rounding import ULP
from audits.minimax.families.packings import Signs, least_distance


@final
@dataclass(frozen=True, slots=True, eq=False)
class SparsePacking:
    """Linear models ``y = <x, norm v / sqrt(s)> + noise`` for rows v of a sign packing.

    x is public and the noise uniform on ``[-noise_bound, noise_bound]``.

    Parameters
    ----------
    vectors : array of int8
        Rows with s entries -1 or 1 and zeros else, shape (points, p).
    norm : float
        Euclidean norm of a parameter, in (0, 1].
    noise_bound : float, optional
        Largest size of the noise, positive.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Wang & Xu (2021), Theorems 5, 7 and 10.

    Examples
    --------
    >>> from audits.minimax import SparsePacking, disjoint_packing
    >>> family = SparsePacking(disjoint_packing(p=4, s=2, points=4), norm=0.5)
    >>> family.points, round(family.separation, 4), family.decode(family.parameter(3))
    (4, 0.7071, 3)
    """

    vectors: Signs
    norm: float
    noise_bound: float = 1.0

    def __post_init__(self) -> None:
        rows = np.asarray(self.vectors)
        sizes = np.count_nonzero(rows, axis=1) if rows.ndim == 2 else np.zeros(0)
        if rows.ndim != 2 or len(rows) < 2 or len(set(sizes)) > 1 or not sizes[0]:
            allowed = "two rows or more with the same number of +-1 in each, and 0 else"
            raise ParameterError("vectors", rows.shape, allowed)
        # np.isin takes seconds for 10^7 entries.
        if not ((rows == 0) | (rows == 1) | (rows == -1)).all():
            raise ParameterError("vectors", "other entries", "rows of -1, 0 and 1")
        Interval(0.0, 1.0, "(]").check("norm", self.norm)
        POSITIVE.check("noise_bound", self.noise_bound)
        copy = rows.astype(np.int8)
        copy.flags.writeable = False
        object.__setattr__(self, "vectors", copy)

    @property
    def points(self) -> int:
        """The number of rows."""
        return len(self.vectors)

    @property
    def s(self) -> int:
        """The number of non-zero entries of a parameter."""
        return int(np.count_nonzero(self.vectors[0]))

    @property
    def distance(self) -> int:
        """The least number of places in which two rows differ, over all pairs."""
        return least_distance(self.vectors)

    @property
    def separation(self) -> float:
        """The least Euclidean distance of two parameters, over all pairs; rounded down."""
        wide = self.vectors.astype(np.int32)
        smallest = min(
            int(((wide[i + 1 :] - wide[i]) ** 2).sum(axis=1).min()) for i in range(len(wide) - 1)
        )
        return self.norm * math.sqrt(smallest / self.s) * (1 - 8 * ULP)

    def parameter(self, which: int) -> Array:
        """Compute the parameter ``norm v / sqrt(s)`` of a point.

        Parameters
        ----------
        which : int
            The row, from 0 to ``points - 1``.

        Returns
        -------
        array
            The parameter, shape (p,).
        """
        which = IntegerRange(0, self.points - 1).check("which", which)
        theta: Array = self.vectors[which] * (self.norm / math.sqrt(self.s))
        return theta

    def sample(self, which: int, n: int, rng: np.random.Generator) -> tuple[Any, Array]:
        """Draw the records of ``n`` users.

        Parameters
        ----------
        which : int
            The row, from 0 to ``points - 1``.
        n : int
            Number of users.
        rng : numpy.random.Generator
            The generator.

        Returns
        -------
        tuple of arrays
            X of int8 -1 and 1, shape (n, p), and y of shape (n,).
        """
        theta = self.parameter(which)
        x = rng.integers(0, 2, (IntegerRange(1).check("n", n), len(theta)), dtype=np.int8)
        x <<= 1
        x -= 1
        support = np.flatnonzero(theta)
        noise = rng.uniform(-self.noise_bound, self.noise_bound, n)
        return x, x[:, support] @ theta[support] + noise

    def decode(self, estimate: Array) -> int:
        """Find the row whose parameter is nearest to an estimate.

        Parameters
        ----------
        estimate : array
            An estimate of the parameter, shape (p,).

        Returns
        -------
        int
            The row, from 0 to ``points - 1``.
        """
        theta = np.asarray(estimate, dtype=float)
        if theta.shape != self.vectors.shape[1:]:
            raise ParameterError("estimate", theta.shape, f"shape {self.vectors.shape[1:]}")
        # All parameters have the same norm: the nearest one has the largest inner product.
        return int(np.argmax(self.vectors @ theta))
