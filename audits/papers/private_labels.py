"""The rate of label-private convex optimisation as printed, and the true one.

Each user has a label, and reports it by a randomiser.  With K labels and n users the excess risk of
the published algorithm is at most ``L D sqrt(V / n)``: L is the Lipschitz bound of the loss, D the
diameter of the set, and V the second moment of the gradient that is decoded from a report (see
`algorithms.label_privacy.report_decoders`).  For ``epsilon <= 1`` abstract and introduction print
``sqrt(K / (epsilon n))``, by which V would grow like 1 / epsilon as epsilon vanishes.  It grows
like 1 / epsilon^2, and so does the square of the lower bound, which holds for every non-interactive
algorithm.

Reference: Chua and others (2026).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from accountant.domains import POSITIVE, IntegerRange
from accountant.errors import ParameterError
from algorithms.label_privacy.label_randomizers import CLASSES, second_moments


@final
@dataclass(frozen=True, slots=True)
class PrintedRate:
    """A printed claim that a squared risk grows like ``epsilon^-power`` as epsilon vanishes."""

    name: str  # of the row in reports
    source: str  # where it is printed
    power: float  # as printed
    squared_risk: Callable[[float], float]  # from epsilon, up to a constant factor

    @property
    def true_power(self) -> float:
        """The power at epsilon = 1e-3: the slope of ln risk^2 on -ln epsilon, by a difference."""
        low, high = 1e-3, 1.001e-3
        log_fall = math.log(self.squared_risk(low) / self.squared_risk(high))
        return log_fall / math.log(high / low)

    @property
    def holds(self) -> bool:
        """True if the risk grows no faster than printed."""
        # The 0.01 allows for the slope at a small epsilon, which is only near the power.
        return self.true_power <= self.power + 0.01


def printed_upper_rate(classes: int) -> PrintedRate:
    """The printed rate of the algorithm: V of unary encoding."""
    return PrintedRate(
        f"label-private convex optimisation, K={classes}, epsilon <= 1: sqrt(K / (epsilon n))",
        '"Convex Optimization with Local Label Differential Privacy", abstract and Section 1',
        1.0,
        lambda epsilon: second_moments(classes, epsilon)["unary"],
    )


def printed_lower_rate(classes: int) -> PrintedRate:
    """The printed rate of any non-interactive algorithm: the squared lower bound for many users.

    With 10^15 users the bound's term with privacy is the larger one at the epsilons in question.
    """
    return PrintedRate(
        f"lower bound on label-private convex optimisation, K={classes}, epsilon <= 1",
        '"Convex Optimization with Local Label Differential Privacy", Section 1',
        1.0,
        lambda epsilon: lower_bound(classes, epsilon, 10**15) ** 2,
    )


def lower_bound(
    classes: int, epsilon: float, users: int, diameter: float = 1.0, lipschitz: float = 1.0
) -> float:
    """The least excess risk of any non-interactive epsilon-label-private algorithm.

    For an even number of labels, ``L D max(sqrt(K) / (32 sqrt(2 n c)), 1 / (8 sqrt(1.5 n)))`` with
    ``c = min((e^epsilon - 1)^2, 4 e^epsilon)``.  The hard labels come in pairs of probability
    ``(1 +- d) / K``, ``d = K / (2 sqrt(2 n c))``, under the linear loss; ``n >= K^2 / (2 c)``
    keeps d at most 1/2.
    """
    k, users = CLASSES.check("classes", classes), IntegerRange(1).check("users", users)
    epsilon = POSITIVE.check("epsilon", epsilon)
    if k % 2:
        raise ParameterError("classes", classes, "even: hard labels come in pairs")
    # c of the docstring; beyond epsilon 300 its exponentials could overflow.
    c = min(math.expm1(min(epsilon, 300.0)) ** 2, 4 * math.exp(min(epsilon, 300.0)))
    if users < k * k / (2 * c):
        fewest_users = math.ceil(k * k / (2 * c))
        raise ParameterError("users", users, f"at least K^2 / (2 c) = {fewest_users}")
    scale = POSITIVE.check("diameter", diameter) * POSITIVE.check("lipschitz", lipschitz)
    private = math.sqrt(k) / (32 * math.sqrt(2 * users * c))
    return scale * max(private, 1 / (8 * math.sqrt(1.5 * users)))
