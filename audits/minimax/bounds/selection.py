"""The best of k candidates, chosen by a curator: how often, and how near, any private one can be.

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
    """Data sets of ``n`` users' scores: ``votes`` of them give 1 to one candidate, all else is 0.

    A point's parameter is the candidates' sums; any two data sets are ``votes`` records apart.
    """

    k: int
    n: int
    votes: int
    central: ClassVar[bool] = True  # who is trusted with the data

    def __post_init__(self) -> None:
        IntegerRange(2).check("k", self.k)
        IntegerRange(1, IntegerRange(1).check("n", self.n)).check("votes", self.votes)

    @property
    def points(self) -> int:
        """One for each candidate."""
        return self.k

    @property
    def separation(self) -> float:
        """What the choice of any other candidate loses."""
        return float(self.votes)

    def parameter(self, which: int) -> Array:
        """Sums of the scores, (k,)."""
        which = IntegerRange(0, self.k - 1).check("which", which)
        sums: Array = self.votes * (np.arange(self.k) == which).astype(float)
        return sums

    def sample(self, which: int, n: int, rng: np.random.Generator) -> Array:
        """The data set, (n, k), in random order; n is its own."""
        if n != self.n:
            raise ParameterError("n", n, f"{self.n}, the size of these data sets")
        scores = np.zeros((n, self.k))
        scores[
            rng.permutation(n)[: self.votes], IntegerRange(0, self.k - 1).check("which", which)
        ] = 1.0
        return scores

    def decode(self, estimate: Array) -> int:
        """The candidate itself, or the greatest of estimated sums."""
        given = np.asarray(estimate)
        return int(np.argmax(given)) if given.ndim else int(given)

    def most_right(self, n: int, epsilon: float, delta: float = 0.0) -> float:
        """Largest probability of the right choice, central (epsilon, delta)-DP, replace-one."""
        if n != self.n:
            raise ParameterError("n", n, f"{self.n}, the size of these data sets")
        return most_right_at_distance(math.log(self.k), self.votes, epsilon, delta)


def private_selection(n: int, k: int, epsilon: float) -> LowerBound:
    """Least worst-case expected gap, of the best sum of scores over that of the chosen candidate.

    Each of n users gives each of k candidates a score in [0, 1].
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
    """``m (1 - right)``, right at most ``1 / (1 + (k-1) e^-(m epsilon))``."""
    return votes * (1 - most_right_at_distance(math.log(k), votes, epsilon))


def vote_counts_near_best(n: int, k: int, epsilon: float) -> set[int]:
    """Whole numbers about the best number of votes, which is one valley's top.

    ``d/dx x (k-1) / (e^x + k-1) = 0`` at ``x = 1 + W((k-1) / e)``.
    """
    from scipy.special import lambertw

    x = 1 + float(lambertw((k - 1) / math.e).real)
    middle = math.floor(min(x / epsilon, float(n)))
    return {min(max(m, 1), n) for m in (middle, middle + 1)}
