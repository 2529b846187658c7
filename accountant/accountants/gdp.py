"""Accounting by Gaussian differential privacy: the squares of mu add up.

A release is mu-GDP if no test that tells its neighbours apart does better than the best test of
N(0, 1) against N(mu, 1).  A plan of releases that are mu_i-GDP is mu-GDP with
mu = sqrt(sum_i mu_i^2).  `CentralLimit` estimates a mu
by the central limit theorem, which gives no bound.

References: Dong, Roth & Su (2022), Corollary 3.3 (composition) and Theorem 3.4 (central limit).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from accountant.accountants.base import Accountant
from accountant.composition.composed_loss import loss_of_item
from accountant.composition.plan_totals import fold_plan
from accountant.domains import DELTA
from accountant.errors import UnsupportedPlan
from accountant.losses.gaussian import GaussianLoss
from accountant.numerics.rounding import round_up
from accountant.plans.plan import Plan, as_plan


@final
@dataclass(frozen=True, slots=True)
class GDP(Accountant):
    """Gaussian DP: exact for Gaussians, an upper bound for pure losses; others are refused.

    References
    ----------
    Dong, Roth & Su (2022), Corollary 3.3.

    Examples
    --------
    >>> from accountant import GDP, GaussianLoss
    >>> round(GDP().mu(100 * GaussianLoss(0.1)), 6)
    1.0
    """

    def mu(self, plan: Plan) -> float:
        """Return the total mu of one direction of a plan.

        Parameters
        ----------
        plan : Plan
            A plan, a loss or a mechanism.

        Returns
        -------
        float
            The root of the sum of squares, rounded up.
        """
        square = float(
            fold_plan(plan, lambda loss: loss.gdp_mu**2 if loss.gdp_mu < 1e150 else math.inf)
        )
        if math.isinf(square):
            unbounded = (item for item, _ in plan.losses() if math.isinf(loss_of_item(item).gdp_mu))
            raise UnsupportedPlan(next(unbounded, plan), self.name, "no mu bounds it; ask Tight")
        return round_up(math.sqrt(square), 8)  # ulps, for the root and the sum of squares

    def one_way_epsilon(self, plan: Plan, delta: float) -> float:
        """Return the epsilon of N(mu, 1) against N(0, 1) with the total mu; infinite at delta 0."""
        mu = self.mu(plan)
        if mu == 0:
            return 0.0
        return GaussianLoss(mu).inverse_profile(delta) if delta else math.inf

    def one_way_delta(self, plan: Plan, epsilon: float) -> float:
        """Return the delta of N(mu, 1) against N(0, 1) with the total mu."""
        mu = self.mu(plan)
        return GaussianLoss(mu).delta_at(epsilon) if mu else 0.0


@final
@dataclass(frozen=True, slots=True)
class CentralLimit:
    """What a plan would cost if its loss were Gaussian: an estimate, NO BOUND, often too small.

    Opacus's "gdp" accountant reports such a value, with the mu of the limit of small rates; on 300
    steps of rate .05 at noise 1.0 it says 5.07 at delta 1e-5 where the truth is 5.795.  `mu` takes
    the moments of the loss at the plan's own rate, which says 4.55.

    Examples
    --------
    >>> from accountant import CentralLimit, GaussianLoss, PoissonSampled
    >>> dp_sgd = 300 * PoissonSampled(GaussianLoss(1.0), rate=0.05)
    >>> round(CentralLimit().estimate(dp_sgd, delta=1e-5), 2)
    4.55
    """

    def mu(self, plan: Plan) -> float:
        """Return twice the mean of the loss over its standard deviation.

        Parameters
        ----------
        plan : Plan
            A plan, a loss or a mechanism.

        Returns
        -------
        float
            The mu of the Gaussian that stands for the plan: an estimate.
        """
        # For small h the cumulant of the loss is K(ih) = i h mean - h^2 variance / 2.  A Gaussian
        # of mu has a loss of mean mu^2 / 2 and deviation mu.  With h = 1e-4 the rounding of K, over
        # h^2, is about 1e-8.
        h = 1e-4
        k = sum(
            n * complex(loss_of_item(item).cumulant(1j * h)) for item, n in as_plan(plan).losses()
        )
        mean, variance = k.imag / h, -2 * k.real / h**2
        return 2 * mean / math.sqrt(variance) if variance > 0 else 0.0

    def estimate(self, plan: Plan, delta: float) -> float:
        """Return the epsilon at ``delta`` of the Gaussian with that mu.

        Parameters
        ----------
        plan : Plan
            A plan, a loss or a mechanism.
        delta : float
            In (0, 1).

        Returns
        -------
        float
            An estimate, no bound.
        """
        mu = self.mu(plan)
        return GaussianLoss(mu).epsilon_at(DELTA.check("delta", delta)) if mu > 0 else 0.0
