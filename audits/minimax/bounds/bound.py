"""The value types of a minimax lower bound: what it states, and the hard family behind it.

A hard family is a finite set of *points*, each with a distribution of data and a parameter.  The
parameters lie far apart and the distributions do not, so that no private algorithm can estimate
the parameter well at every point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np

from accountant.numerics import Array


class Construction(Protocol):
    """A finite family of data distributions that an accurate algorithm must tell apart.

    Parameters
    ----------
    *args : object
        A protocol takes none.
    **kwargs : object
        A protocol takes none.

    Examples
    --------
    >>> import numpy as np
    >>> from audits.minimax import Construction, SignedBasis
    >>> family: Construction = SignedBasis(p=3, d=1.0)
    >>> x, y = family.sample(4, n=50, rng=np.random.default_rng(0))
    >>> family.decode(x.T @ y)
    4
    """

    @property
    def points(self) -> int:
        """The number of distributions in the family."""
        ...

    @property
    def separation(self) -> float:
        """A certified lower bound on the distance of two parameters, in the norm of the loss."""
        ...

    def parameter(self, which: int) -> Array:
        """Compute the parameter of a point: what an algorithm should estimate.

        Parameters
        ----------
        which : int
            The point, from 0 to ``points - 1``.

        Returns
        -------
        array
            The parameter, shape (p,).
        """
        ...

    def sample(self, which: int, n: int, rng: np.random.Generator) -> Any:
        """Draw the data of ``n`` users from a point.

        Parameters
        ----------
        which : int
            The point, from 0 to ``points - 1``.
        n : int
            Number of users.
        rng : numpy.random.Generator
            The generator.

        Returns
        -------
        array or tuple of arrays
            The data, a row per user.
        """
        ...

    def decode(self, estimate: Array) -> int:
        """Find the point that an estimate is closest to.

        Parameters
        ----------
        estimate : array
            An estimate of the parameter, shape (p,).

        Returns
        -------
        int
            The point, from 0 to ``points - 1``.
        """
        ...


@final
@dataclass(frozen=True, slots=True)
class LowerBound:
    """A proof that no private algorithm has a worst-case risk below ``value``.

    Parameters
    ----------
    value : float
        The sharpest proved bound, rounded down, in the units of ``statement``.
    published : float or None
        The bound of the papers with explicit constants; None if no paper has one.
    statement : str
        What is bounded, in words.
    construction : Construction or None
        The hard family behind the bound.
    valid_for : str
        The parameters for which the bound holds.
    optimised_over : str
        The parameters of the construction that were searched, and the result of the search.

    Examples
    --------
    >>> from audits.minimax import LowerBound, private_mean
    >>> bound = private_mean(n=1000, dimension=10, epsilon=1.0)
    >>> round(bound.value, 5), bound.valid_for
    (0.01207, 'non-interactive epsilon-LDP, delta = 0, every epsilon, n and dimension')
    """

    value: float
    published: float | None
    statement: str
    construction: Construction | None
    valid_for: str
    optimised_over: str


def round_down(x: float) -> float:
    """A bound lowered by 1e-11 of itself, more than the round-off of its formula; at least 0."""
    return max(0.0, x * (1 - 1e-11))
