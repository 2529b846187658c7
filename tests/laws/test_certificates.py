"""Law: the truth lies between the ends of its certificate."""

import math

import numpy as np

from accountant import (
    ApproxLoss,
    GaussianLoss,
    LaplaceLoss,
    PoissonSampled,
    PureLoss,
    RandomAllocation,
    Sequential,
    Tight,
)

SCALES = np.linspace(50, 150, 50)
MIXED = Sequential(
    [10 * LaplaceLoss(1 / s) for s in SCALES] + [10 * GaussianLoss(1 / s) for s in SCALES]
)
DP_SGD = 15_000 * PoissonSampled(GaussianLoss(1 / 0.8), 0.004)
# truths: tests/references/truth.json
TRUTHS = [
    (MIXED, 1e-6, 1.60676542832806054),
    (64 * LaplaceLoss(1 / 20), 1e-6, 1.70036092537116301),
    (10_000 * LaplaceLoss(0.01), 1e-6, 4.87625757940063966),
    (DP_SGD, 1e-5, 4.37947436007037055),
    (DP_SGD.reversed, 1e-5, 4.37947436007037055),
    (RandomAllocation(GaussianLoss(1.0), 200), 1e-5, 0.386496878751776),
    # by quadrature in 30 digits: a lattice of few steps, and the cut
    (RandomAllocation(GaussianLoss(1.0), 2), 0.11841300217178533 / 2, 1.0),
    (RandomAllocation(GaussianLoss(4.0), 2), 0.34172373957052011, 8.0),
    # a great loss alone may cost more than epsilon (two nested rules; a contour without a cut)
    (3 * PoissonSampled(GaussianLoss(1 / 0.8), 1e-4), 1e-8, 0.0201374768929),
    (300 * PoissonSampled(GaussianLoss(1.0), 0.002), 1e-8, 0.4814354473),
    # the truncated contour answers; the truth is of the contour without a cut, 9,215 nodes
    (100 * PoissonSampled(GaussianLoss(2.0), 0.001), 1e-6, 3.14450684091),
    # hits (a contour without sure events; nested quadrature)
    (190 * PoissonSampled(GaussianLoss(1.95), 6.4e-6), 4e-12, 1.165720965424),
    (2 * PoissonSampled(GaussianLoss(4.0), 0.01), 1e-8, 27.063628268681627748),
    (40 * ApproxLoss(0.1, 1e-8) + GaussianLoss(0.3), 4.1e-7, None),
]


def violation() -> str:
    """A truth that is not in its certificate."""
    for plan, delta, truth in TRUTHS:
        found = Tight().certify(plan, delta)
        slack = 0.0
        if truth is None:  # almost all of delta is spent on the mass at infinity
            mass = -math.expm1(40 * math.log1p(-1e-8))
            rest = 40 * PureLoss(0.1) + GaussianLoss(0.3)
            truth, slack = Tight().epsilon(rest, (delta - mass) / (1 - mass)), 1e-6
        if not found.lower * (1 - slack) <= truth <= found.upper * (1 + slack):
            return f"{truth} of {plan} is not in [{found.lower}, {found.upper}]"
    return ""


def test_the_right_certificates_hold():
    assert violation() == ""
