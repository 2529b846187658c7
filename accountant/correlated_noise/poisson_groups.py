"""Banded strategies whose batches are Poisson samples of groups that take turns.

References: Choquette-Choo, Ganesh, McKenna, McMahan, Rush, Thakurta & Xu (2023), "(Amplified)
banded matrix factorization: a unified approach to private training", for cyclic Poisson.  Proof:
`docs/proofs/correlated_noise.md`.
"""

from __future__ import annotations

from accountant.amplification.poisson_sampling import PoissonSampled
from accountant.correlated_noise.participation import Once
from accountant.correlated_noise.strategy import Strategy, sensitivity
from accountant.domains import POSITIVE, IntegerRange
from accountant.errors import ParameterError
from accountant.losses.gaussian import GaussianLoss
from accountant.numerics.rounding import round_up_product, round_up_ratio
from accountant.plans.plan import Plan


def cyclic_poisson(
    strategy: Strategy,
    scale: float,
    rate: float,
    groups: int | None = None,
    step_sensitivity: float = 1.0,
) -> Plan:
    """Return what a banded strategy costs where groups of records take turns, Poisson sampled.

    The records are dealt into ``groups`` groups without a look at what they hold; step i samples
    each record of group i modulo ``groups`` at ``rate``.  C is the matrix of the strategy.  A step
    changes as many rows of C x as there are bands, so with no more bands than groups two steps of a
    group change different rows.  A record then costs as many sampled Gaussians as its group has
    steps.  For the batch that DP-SGD gets at rate q, the rate here is ``groups`` times q.

    Parameters
    ----------
    strategy : Strategy
        A lower triangular strategy with at most as many bands as groups.
    scale : float
        Standard deviation of the noise that is added to C x, x the sums of all steps.
    rate : float
        Probability with which a step samples each record of its group, from 0 to 1.
    groups : int, optional
        Number of groups that take turns; that of the bands where it is left out.
    step_sensitivity : float
        The greatest L2 norm of what a record adds to a step: the clipping norm.

    Returns
    -------
    Plan
        A `PoissonSampled` Gaussian, repeated as often as a group has steps, for add/remove
        neighbours.  Its mu is the norm of the longest column of C times ``step_sensitivity`` over
        ``scale``, rounded up.

    Raises
    ------
    ParameterError
        If the strategy has more bands than groups, or is not lower triangular.

    References
    ----------
    Choquette-Choo et al. (2023), "(Amplified) banded matrix factorization".

    Examples
    --------
    >>> from accountant import Tight, Toeplitz, cyclic_poisson
    >>> plan = cyclic_poisson(Toeplitz((0.8, 0.6), steps=1000), scale=2.0, rate=0.02)
    >>> plan.count, plan.part.rate
    (500, 0.02)
    >>> round(Tight().epsilon(plan, delta=1e-6), 3)
    1.063
    """
    longest = sensitivity(strategy, Once())
    bands = strategy.bands
    if bands is None:
        raise ParameterError("strategy", strategy, "banded: square and lower triangular")
    turns = bands if groups is None else groups
    taking_turns = IntegerRange(bands, strategy.columns).check("groups", turns)
    deviation = POSITIVE.check("scale", scale)
    norm = POSITIVE.check("step_sensitivity", step_sensitivity)
    moved = round_up_product(longest.value, norm)
    steps = -(-strategy.columns // taking_turns)
    sampled = PoissonSampled(GaussianLoss(round_up_ratio(moved, deviation)), rate)
    return steps * sampled
