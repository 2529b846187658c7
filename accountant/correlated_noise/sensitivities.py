"""The sensitivity of a strategy: how far one record moves all that it releases.

References: Denisov, McMahan, Rush, Smith & Thakurta (2022); Choquette-Choo et al. (2023).  Proofs:
`docs/proofs/correlated_noise.md`.
"""

from __future__ import annotations

import functools

from accountant.correlated_noise.participation import Participation
from accountant.correlated_noise.strategy import Sensitivity, Strategy
from accountant.errors import ParameterError
from accountant.plans.declared_releases import is_plan_field


def sensitivity(strategy: Strategy, participation: Participation) -> Sensitivity:
    """Return how far one record moves the rows of a strategy in all, in the L2 norm.

    Parameters
    ----------
    strategy : Strategy
        `StrategyMatrix`, `BandedMatrix`, `Toeplitz`, `BufferedToeplitz` or `BinaryTree`.
    participation : Participation
        In which steps a record is used: `Once`, `MinSeparation` or `FixedEpochs`.

    Returns
    -------
    Sensitivity
        Rounded up, where a record moves each step by a vector of norm at most 1; its ``exact`` says
        whether a record can move the rows so far, and otherwise it is an upper bound.

    Raises
    ------
    ParameterError
        If the participation does not fit the steps.

    References
    ----------
    Denisov et al. (2022), Theorem 2.1; Kairouz et al. (2021), Appendix D, for trees; Kalinin &
    Lampert (2024), Theorem 2, for Toeplitz matrices.

    Examples
    --------
    >>> from accountant import BinaryTree, MinSeparation, sensitivity
    >>> sensitivity(BinaryTree(24), MinSeparation(participations=8, separation=3)).squared
    88
    """
    if not isinstance(strategy, Strategy) or not is_plan_field(strategy):
        raise ParameterError("strategy", strategy, "a strategy, such as BinaryTree(steps)")
    if not isinstance(participation, Participation) or not is_plan_field(participation):
        allowed = "Once(), MinSeparation(participations, separation) or FixedEpochs(epochs)"
        raise ParameterError("participation", participation, allowed)
    return _sensitivity_of(strategy, participation)


@functools.lru_cache(maxsize=64)
def _sensitivity_of(strategy: Strategy, participation: Participation) -> Sensitivity:
    return strategy.sensitivity_under(participation)
