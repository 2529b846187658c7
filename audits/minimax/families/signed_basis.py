"""The 2p points of sparse regression: labels that correlate with one coordinate, or its opposite.

A hard family of a minimax lower bound: each point has a law of records, and the laws are so alike
that private reports of records hardly tell which point it is.

Reference: Wang & Xu (2021), the family of Theorems 1 to 4; every constant is exact here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from accountant.domains import POSITIVE, IntegerRange, Interval
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.numerics.rounding import ULP


@final
@dataclass(frozen=True, slots=True)
class SignedBasis:
    """Signs x and labels y whose mean is ``d <x, v>`` for a point ``v = +-e_j``.

    ``P_v(x, y) = (1 + d y <x, v> / a^2) / 2^(p + 1)`` on ``{-1, 1}^p x {-a, a}``, with ``a =
    noise_bound / 2``.  The parameter of v is ``d v``; the noise ``y - d <x, v>`` has mean 0 given x
    and size at most ``noise_bound``.  Points 0 to p - 1 are ``e_j``, p to 2p - 1 are ``-e_j``.

    Parameters
    ----------
    p : int
        Number of features, at most 10^9.
    d : float
        Size of the one coefficient, in (0, min(1, noise_bound / 2)].
    noise_bound : float, optional
        Largest size of the noise, positive.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Wang & Xu (2021), Theorems 1 to 4.

    Examples
    --------
    >>> import numpy as np
    >>> from audits.minimax import SignedBasis
    >>> family = SignedBasis(p=3, d=0.5)
    >>> x, y = family.sample(4, n=1000, rng=np.random.default_rng(0), dtype=float)
    >>> family.parameter(4), family.decode(x.T @ y)
    (array([ 0. , -0.5,  0. ]), 4)
    """

    p: int
    d: float
    noise_bound: float = 2.0
    largest: ClassVar[int] = 20  # 2^21 atoms

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", IntegerRange(1, 10**9).check("p", self.p))
        object.__setattr__(self, "noise_bound", POSITIVE.check("noise_bound", self.noise_bound))
        allowed = Interval(0.0, min(1.0, self.label), "(]")
        object.__setattr__(self, "d", allowed.check("d", self.d))

    @property
    def points(self) -> int:
        """``2 p``, the number of points."""
        return 2 * self.p

    @property
    def label(self) -> float:
        """The size of every label, ``noise_bound / 2``."""
        return self.noise_bound / 2

    @property
    def lean(self) -> float:
        """``d / a``: twice the distance of a label's probability from 1/2, given x; in (0, 1]."""
        return min(1.0, self.d / self.label)

    @property
    def separation(self) -> float:
        """``||d e_i - d e_j|| = sqrt(2) d``, rounded down; ``e_j`` and ``-e_j`` lie at ``2 d``."""
        return math.sqrt(2) * self.d * (1 - 4 * ULP) if self.p > 1 else 2 * self.d

    @property
    def c_infinity(self) -> float:
        """``lean^2 / p``, the ``sup_g avg_v (E_v g - E_0 g)^2`` over ``|g| <= 1``, exactly."""
        # E_v g - E_0 g = lean <E[g W], v>, where W = y x / a is uniform on the cube.  The average
        # of the square over v is lean^2 ||E[g W]||^2 / p.  The supremum of ||E[g W]|| over g is
        # that of E |<u, W>| over unit vectors u, which is 1, at u = e_1.
        return self.lean**2 / self.p

    @property
    def c_two(self) -> float:
        """``lean^2 / p``, the ``sup_g avg_v (E_v g - E_0 g)^2`` over ``E_0 g^2 <= 1``."""
        # As for `c_infinity`; ||E[g W]|| is at most 1 by Bessel's inequality, as the coordinates of
        # W are orthonormal.
        return self.lean**2 / self.p

    def parameter(self, which: int) -> Array:
        """Compute the parameter ``d v`` of a point.

        Parameters
        ----------
        which : int
            The point, from 0 to ``2p - 1``.

        Returns
        -------
        array
            The parameter, shape (p,).
        """
        at, sign = self._place(which)
        theta = np.zeros(self.p)
        theta[at] = sign * self.d
        return theta

    def sample(
        self, which: int, n: int, rng: np.random.Generator, dtype: Any = np.int8
    ) -> tuple[Any, Array]:
        """Draw the records of ``n`` users.

        Parameters
        ----------
        which : int
            The point, from 0 to ``2p - 1``.
        n : int
            Number of users.
        rng : numpy.random.Generator
            The generator.
        dtype : dtype, optional
            Type of x.  Sums of the default bytes wrap around, so give ``float`` to code that
            multiplies x by itself.

        Returns
        -------
        tuple of arrays
            X of shape (n, p) with entries -1 and 1, and y of shape (n,) with entries -a and a.
        """
        at, sign = self._place(which)
        n = IntegerRange(1).check("n", n)
        cells = n * self.p
        bits = np.unpackbits(np.frombuffer(rng.bytes(-(-cells // 8)), dtype=np.uint8), count=cells)
        x = bits.view(np.int8).reshape(n, self.p)
        x <<= 1  # bits become signs in place
        x -= 1
        agrees = rng.random(n) < (1 + self.lean) / 2  # whether y has the sign of <x, v>
        y: Array = np.where(agrees, sign * self.label, -sign * self.label) * x[:, at]
        return (x if np.dtype(dtype) == np.int8 else x.astype(dtype)), y

    def decode(self, estimate: Array) -> int:
        """Find the point that an estimate means: its largest entry in size, and the sign of that.

        Parameters
        ----------
        estimate : array
            An estimate of the parameter, shape (p,).

        Returns
        -------
        int
            The point, from 0 to ``2p - 1``.
        """
        theta = np.asarray(estimate, dtype=float)
        if theta.shape != (self.p,):
            raise ParameterError("estimate", theta.shape, f"an array of shape ({self.p},)")
        at = int(np.argmax(np.abs(theta)))
        return at if theta[at] >= 0 else self.p + at

    def atoms(self) -> tuple[Array, Array]:
        """List all records ``{-1, 1}^p x {-a, a}``, for p up to 20.

        Returns
        -------
        tuple of arrays
            X of shape (2^(p + 1), p) and y of shape (2^(p + 1),).
        """
        if self.p > self.largest:
            raise ParameterError("p", self.p, f"at most {self.largest} where atoms are listed")
        bits = (np.arange(2 ** (self.p + 1))[:, None] >> np.arange(self.p + 1)) & 1
        signs: Array = np.where(bits, 1.0, -1.0)
        return signs[:, :-1], self.label * signs[:, -1]

    def distribution(self, which: int) -> Array:
        """Compute the probabilities of the `atoms` at a point.

        Parameters
        ----------
        which : int
            The point, from 0 to ``2p - 1``.

        Returns
        -------
        array
            Probabilities, shape (2^(p + 1),); not rounded to either side.
        """
        at, sign = self._place(which)
        x, y = self.atoms()
        law: Array = (1 + self.lean * sign * x[:, at] * (y / self.label)) / len(y)
        return law

    def _place(self, which: int) -> tuple[int, int]:
        which = IntegerRange(0, self.points - 1).check("which", which)
        return (which, 1) if which < self.p else (which - self.p, -1)
