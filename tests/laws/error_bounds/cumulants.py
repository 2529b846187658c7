"""Cumulants of single losses and of many, whose round-off is seen beside 50 digits."""

import mpmath
import numpy as np

from accountant import (
    DiscreteLaplaceLoss,
    GaussianLoss,
    LaplaceLoss,
    PairLoss,
    PureLoss,
)
from accountant.composition.cgf import PlanCGF
from accountant.numerics.rounding import ULP

POINTS = (1e-9, 1e-3, 0.7, 3.0, 40.0, 0.7 + 3j, 2.0 + 200j, 1e-4 + 0.01j)


def _pair(p, q):
    return lambda z: mpmath.fsum(a * (a / b) ** z for a, b in zip(p, q, strict=True))


def _laplace(m):
    def moment(z):
        s = z + mpmath.mpf(1) / 2
        return mpmath.exp(-m / 2) * (mpmath.cosh(s * m) + mpmath.sinh(s * m) / (2 * s))

    return moment


def _cases():
    """Losses, and their moments as functions of z."""
    one = mpmath.mpf(1)
    e, m, mu = (mpmath.mpf(x) for x in (0.375, 0.3, 0.7))
    up = 1 / (1 + mpmath.exp(-e))
    yield PureLoss(0.375), _pair([up, 1 - up], [1 - up, up])
    yield PairLoss([0.75, 0.25], [0.5, 0.5]), _pair([one * 3 / 4, one / 4], [one / 2, one / 2])
    yield LaplaceLoss(0.3), _laplace(m)
    yield GaussianLoss(0.7), lambda z: mpmath.exp(mu * mu * z * (z + 1) / 2)
    r = mpmath.exp(-one / 3)
    q = [1 / (1 + r), (1 - r) / (1 + r) * r, r * r / (1 + r)]
    yield DiscreteLaplaceLoss(3.0, 2), _pair(q, q[::-1])


def violation():
    """A cumulant that errs more than it says, alone and a million times."""
    for loss, moment in _cases():
        for count in (1, 7, 10**6):
            cgf = PlanCGF([(loss, count)])
            z = np.array(POINTS)
            value, error = cgf.value_at(z)
            real, real_error = cgf.value_at(z.real[:5])
            nodes = (0.7 + 0.9j * np.arange(6.0)).reshape(2, 3)
            ratio, missed = cgf.cf_ratio(nodes)
            with mpmath.workdps(50):
                exact = [count * mpmath.log(moment(mpmath.mpmathify(complex(x)))) for x in POINTS]
                for x, found, off, truth in zip(
                    POINTS, [*value, *real], [*error, *real_error], [*exact, *exact[:5]],
                    strict=False,
                ):  # fmt: skip
                    turn = mpmath.mpc(0, 2 * mpmath.pi)
                    gap = mpmath.mpmathify(complex(found)) - truth
                    gap -= turn * mpmath.nint(gap.imag / (2 * mpmath.pi))
                    if abs(gap) > off:
                        return f"{loss} x {count} at {x}: {gap} off, {off} is claimed"
                base = moment(mpmath.mpf(0.7))
                for x, found, off in zip(nodes.ravel(), ratio.ravel(), missed.ravel(), strict=True):
                    truth = (moment(mpmath.mpmathify(complex(x))) / base) ** count
                    gap = abs(mpmath.mpmathify(complex(found)) - truth)
                    if gap > off + 1e-290:  # powers may be below all floats
                        return f"{loss} x {count}, ratio at {x}: {gap} off, {off} is claimed"
    return ""


def smoothing_violation():
    """The fictitious Gaussian alone: at any point, and on nodes whose real part is far larger."""
    rng = np.random.default_rng(1)  # a draw errs by more than 1 ulp
    for smoothing, x, y in (10 ** rng.uniform((-3, -2, -2), (2, 2, 2), (60, 3))).tolist():
        z = complex(x, y)
        value, error = PlanCGF([], smoothing).value_at(np.array([z]))
        with mpmath.workdps(40):
            exact = mpmath.mpmathify(z)
            gap = abs(mpmath.mpmathify(value[0]) - smoothing * (exact * exact + exact) / 2)
        if not gap <= error[0]:
            return f"{smoothing} at {z}: {gap} off, {error[0]} is claimed"
    for smoothing, a, h in (
        (1.0, 1000.0, 0.1),
        (1e-3, 1e4, 1.0),
        (0.3, 7.0, 0.9),
        (100.0, 0.1, 0.1),
    ):
        z = (a + 1j * h * np.arange(6.0)).reshape(2, 3)
        ratio, missed = PlanCGF([], smoothing).cf_ratio(z)
        for node, found, off in zip(z.ravel(), ratio.ravel(), missed.ravel(), strict=True):
            with mpmath.workdps(40):
                u = mpmath.mpf(node.imag)
                exponent = smoothing * mpmath.mpc(-u * u, (2 * a + 1) * u) / 2
                gap = abs(mpmath.mpmathify(complex(found)) - mpmath.exp(exponent))
            if not gap <= off + 2 * ULP * abs(found):  # of the exponential itself
                return f"{smoothing}, ratio at {node}: {gap} off, {off} is claimed"
    return ""
