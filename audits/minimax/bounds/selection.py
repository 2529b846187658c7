"""The best of k candidates, selected under central privacy: the least expected gap to the best.

In the hard data sets m users vote for one candidate, and none for another.  Any two such data
sets are m records apart, so that a private choice often misses the candidate, which costs m votes.

Proofs: `docs/proofs/minimax_selection.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from accountant.domains import POSITIVE, IntegerRange
from accountant.errors import ParameterError
from accountant.numerics import Array
from audits.minimax.bounds.bound import LowerBound
from audits.minimax.information.group_decoding import most_right_at_distance


@final
@dataclass(frozen=True, slots=True)
class FewVotes:
    """Data sets of ``n`` users' scores in which ``votes`` users give 1 to one candidate.

    All other scores are 0.  A point's parameter is the vector of the candidates' sums; any two data
    sets are ``votes`` records apart.

    Parameters
    ----------
    k : int
        Number of candidates, at least 2.
    n : int
        Number of users.
    votes : int
        Number of users who vote, 1 to n.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> from audits.minimax import FewVotes
    >>> family = FewVotes(k=4, n=10, votes=3)
    >>> family.parameter(2)
    array([0., 0., 3., 0.])
    >>> round(family.most_right(10, epsilon=0.5), 4)
    0.599
    """

    k: int
    n: int
    votes: int
    central: ClassVar[bool] = True  # the central model

    def __post_init__(self) -> None:
        IntegerRange(2).check("k", self.k)
        IntegerRange(1, IntegerRange(1).check("n", self.n)).check("votes", self.votes)

    @property
    def points(self) -> int:
        """``k``: one for each candidate."""
        return self.k

    @property
    def separation(self) -> float:
        """The loss of choosing any other candidate, in votes."""
        return float(self.votes)

    def parameter(self, which: int) -> Array:
        """Compute the sums of the candidates' scores at a point.

        Parameters
        ----------
        which : int
            The candidate with the votes, from 0 to ``k - 1``.

        Returns
        -------
        array
            The sums, shape (k,).
        """
        which = IntegerRange(0, self.k - 1).check("which", which)
        sums: Array = self.votes * (np.arange(self.k) == which).astype(float)
        return sums

    def sample(self, which: int, n: int, rng: np.random.Generator) -> Array:
        """Draw the data set of a point, in random order.

        Parameters
        ----------
        which : int
            The candidate with the votes, from 0 to ``k - 1``.
        n : int
            Number of users, which must be the family's own.
        rng : numpy.random.Generator
            The generator of the order.

        Returns
        -------
        array
            The scores, shape (n, k).
        """
        if n != self.n:
            raise ParameterError("n", n, f"{self.n}, the size of these data sets")
        scores = np.zeros((n, self.k))
        scores[
            rng.permutation(n)[: self.votes], IntegerRange(0, self.k - 1).check("which", which)
        ] = 1.0
        return scores

    def decode(self, estimate: Array) -> int:
        """Find the candidate that an answer means.

        Parameters
        ----------
        estimate : array or int
            The candidate, or estimated sums of shape (k,), whose largest counts.

        Returns
        -------
        int
            The candidate, from 0 to ``k - 1``.
        """
        answer = np.asarray(estimate)
        return int(np.argmax(answer)) if answer.ndim else int(answer)

    def most_right(self, n: int, epsilon: float, delta: float = 0.0) -> float:
        """Bound the probability of the right choice under central privacy for one replaced record.

        Parameters
        ----------
        n : int
            Number of users, which must be the family's own.
        epsilon : float
            Positive.
        delta : float, optional
            In [0, 1).

        Returns
        -------
        float
            The probability, rounded up.
        """
        if n != self.n:
            raise ParameterError("n", n, f"{self.n}, the size of these data sets")
        return most_right_at_distance(math.log(self.k), self.votes, epsilon, delta)


def private_selection(n: int, k: int, epsilon: float) -> LowerBound:
    """Bound the worst-case expected gap between the best sum of scores and that of the chosen one.

    Each of n users gives each of k candidates a score in [0, 1].

    Parameters
    ----------
    n : int
        Number of users.
    k : int
        Number of candidates, at least 2.
    epsilon : float
        Positive; central, one user's scores replaced.

    Returns
    -------
    LowerBound
        The bound, rounded down, in units of one user's score.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Proof: ``docs/proofs/minimax_selection.md``.

    Examples
    --------
    >>> from audits.minimax import private_selection
    >>> round(private_selection(n=1000, k=10, epsilon=0.1).value, 3)
    11.01
    """
    n, k = IntegerRange(1).check("n", n), IntegerRange(2).check("k", k)
    epsilon = POSITIVE.check("epsilon", epsilon)
    gaps = {m: expected_gap(m, k, epsilon) for m in vote_counts_near_best(n, k, epsilon)}
    best = max(gaps, key=gaps.__getitem__)
    return LowerBound(
        value=gaps[best] * (1 - 1e-12),
        published=None,
        statement=f"worst-case expected gap of the chosen one's sum of scores in [0, 1] to the "
        f"best of {k:,}, {n:,} users, epsilon = {epsilon:g}",
        construction=FewVotes(k, n, best),
        valid_for="central epsilon-DP, one user's scores exchanged, delta = 0, every epsilon, n, k",
        optimised_over=f"the number of votes for the best: {best:,}",
    )


def expected_gap(votes: int, k: int, epsilon: float) -> float:
    """``m (1 - right)``, with right at most ``1 / (1 + (k-1) e^-(m epsilon))``."""
    return votes * (1 - most_right_at_distance(math.log(k), votes, epsilon))


def vote_counts_near_best(n: int, k: int, epsilon: float) -> set[int]:
    """The integers next to the number of votes whose expected gap is largest.

    ``d/dx x (k-1) / (e^x + k-1) = 0`` at ``x = 1 + W((k-1) / e)``.
    """
    from scipy.special import lambertw

    x = 1 + float(lambertw((k - 1) / math.e).real)
    middle = math.floor(min(x / epsilon, float(n)))
    return {min(max(m, 1), n) for m in (middle, middle + 1)}
