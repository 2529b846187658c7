"""Rows of random signs with random column means, whose rows an accurate answer reveals.

Column by column, a mean mu is drawn, then n independent signs x_i with that mean.  The
fingerprinting lemma says that an accurate answer f(x) to the column's mean correlates with the rows
of its data: the expected score ``f(x) sum_i (x_i - mu)`` is bounded away from 0.  So the rows of an
accurate answer can be traced.

References: Bun, Ullman & Vadhan (2014), Dwork, Smith, Steinke, Ullman & Vadhan (2015) for the
lemma on uniform means; Tardos (2008) for arcsine ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from accountant.domains import IntegerRange, Interval, OneOf
from accountant.numerics import Array

LAW = OneOf(("uniform", "arcsine"))
REACH = Interval(0.0, 0.5, "(]")


@final
@dataclass(frozen=True, slots=True)
class BernoulliProducts:
    """Rows of independent signs with random column means.

    "uniform" means are uniform on [-1, 1].  "arcsine" means are ``sin(u)`` for u uniform on
    ``[-reach pi, reach pi]``, and so lie near -1 and 1, where columns are nearly unanimous.

    Parameters
    ----------
    features : int
        Number of columns.
    law : {"arcsine", "uniform"}, optional
        Distribution of the column means.
    reach : float, optional
        Range of the arcsine means, in (0, 0.5].

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Bun, Ullman & Vadhan (2014); Tardos (2008).

    Examples
    --------
    >>> import numpy as np
    >>> from audits.minimax import BernoulliProducts
    >>> family, rng = BernoulliProducts(features=4), np.random.default_rng(0)
    >>> family.sample(family.means(rng), 3, rng)
    array([[-1., -1., -1., -1.],
           [ 1., -1., -1.,  1.],
           [-1.,  1., -1., -1.]])
    """

    features: int
    law: str = "arcsine"
    reach: float = 0.45

    def __post_init__(self) -> None:
        IntegerRange(1).check("features", self.features)
        LAW.check("law", self.law)
        REACH.check("reach", self.reach)

    def means(self, rng: np.random.Generator) -> Array:
        """Draw one mean for each column.

        Parameters
        ----------
        rng : numpy.random.Generator
            The generator.

        Returns
        -------
        array
            Means in [-1, 1], shape (features,).
        """
        if self.law == "uniform":
            return rng.uniform(-1.0, 1.0, self.features)
        return np.sin(rng.uniform(-self.reach * np.pi, self.reach * np.pi, self.features))

    def sample(self, means: Array, n: int, rng: np.random.Generator) -> Array:
        """Draw ``n`` rows of signs.

        Parameters
        ----------
        means : array
            Column means in [-1, 1], shape (features,).
        n : int
            Number of rows.
        rng : numpy.random.Generator
            The generator.

        Returns
        -------
        array
            Signs -1 and 1, shape (n, features).
        """
        return np.where(rng.random((n, self.features)) < (1 + means) / 2, 1.0, -1.0)
