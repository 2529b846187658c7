"""A check of the bound on private decoding by simulation, for data too large to enumerate.

One of 2p points v = +-e_j is drawn, users draw records (x, y) whose label y correlates with <x, v>
(`SignedBasis`), and each releases one private bit.  The best known protocol guesses the point from
the bits.  How often it is right must not exceed what `most_right` allows to any protocol.
"""

from __future__ import annotations

import math

import numpy as np

from accountant.domains import IntegerRange, Interval
from accountant.randomness import Rng, generator
from audits.minimax.checks.enumeration import Check
from audits.minimax.decoding.decoding_rates import most_right
from audits.minimax.families.signed_basis import SignedBasis
from audits.statistics.binomial_bounds import clopper_pearson_lower

_EPSILON = Interval(0.0, 300.0, "(]")  # the epsilons that are admitted: up to that of the bound


def count_right_decodes(
    family: SignedBasis, n: int, epsilon: float, runs: int, rng: Rng = 0
) -> int:
    """Simulate ``runs`` data sets of n users, and return in how many the point is decoded.

    User i answers for coordinate j = i mod p: the sign of ``y x_j``, which is kept with probability
    ``e^eps / (1 + e^eps)`` and else reversed.  This randomised response is epsilon-LDP without
    interaction.  The decoded point is the one whose coordinate has the sum of answers with the
    largest absolute value, with its sign.
    """
    n, runs = IntegerRange(1).check("n", n), IntegerRange(1).check("runs", runs)
    epsilon, source = _EPSILON.check("epsilon", epsilon), generator(rng)
    coordinate = np.arange(n) % family.p
    right_count = 0
    for _ in range(runs):
        point = int(source.integers(family.points))
        x, y = family.sample(point, n, source)
        signs = np.sign(y) * x[np.arange(n), coordinate]
        reports = np.where(source.random(n) < 1 / (1 + math.exp(-epsilon)), signs, -signs)
        sums = np.bincount(coordinate, reports, minlength=family.p)
        right_count += family.decode(sums.astype(float)) == point
    return right_count


def simulated_check(
    family: SignedBasis, n: int, epsilon: float, runs: int = 2000, rng: Rng = 0
) -> Check:
    """Check the bound on decoding by simulating the best known protocol.

    User i answers for coordinate ``i mod p`` by randomised response, see `count_right_decodes`.

    Parameters
    ----------
    family : SignedBasis
        The hard family.
    n : int
        Number of users.
    epsilon : float
        Positive, at most 300.
    runs : int, optional
        Number of simulated data sets.
    rng : int, numpy.random.Generator or None, optional
        Seed or generator.

    Returns
    -------
    Check
        A lower bound on the rate of right decodes, with error probability 1e-6, next to the largest
        possible probability, rounded up.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> from audits.minimax import SignedBasis, simulated_check
    >>> check = simulated_check(SignedBasis(p=4, d=1.0), n=50, epsilon=1.0, runs=500)
    >>> check.holds, round(check.tightness, 2)
    (True, 0.56)
    """
    right = count_right_decodes(family, n, epsilon, runs, rng)
    # The error 1e-6 is so small that a failed check is no accident.
    rate_lower = float(clopper_pearson_lower(np.array(float(right)), np.array(float(runs)), 1e-6))
    case = f"p = {family.p}, n = {n}, epsilon = {epsilon:g}, d = {family.d:g}, "
    case += f"sign of a coordinate: {right} of {runs:,} runs"
    return Check("P(right decode), simulated", case, rate_lower, most_right(family, n, epsilon))
