"""The mean of bounded vectors: the least error of any private estimate.

Proofs: `docs/proofs/minimax_mean.md`.  References: Assouad (1983) for the signs; Gill & Levit
(1995) for van Trees' inequality; Ahlswede & Gacs (1976) for the information in noisy signs.
"""

from __future__ import annotations

import math

import numpy as np

from accountant.domains import DELTA, POSITIVE, Interval, OneOf
from accountant.errors import ParameterError
from audits.minimax.bounds.bound import LowerBound
from audits.minimax.bounds.central_mean import approximate_mean, pure_mean
from audits.minimax.families.sign_means import SignMeans, user_information
from audits.minimax.information.sign_information import posterior_divergence, sign_error
from audits.minimax.information.theorem_domains import DIMENSION, USERS

MODEL = OneOf(("local", "central"))
RADIUS = Interval(1e-150, 1e150)  # its square is a float
SHIFTS = np.geomspace(1e-6, 1.0, 500)


def private_mean(
    n: int,
    dimension: int,
    epsilon: float,
    model: str = "local",
    delta: float = 0.0,
    radius: float = 1.0,
) -> LowerBound:
    """Bound the worst-case ``E |estimate - mean|^2`` of vectors of bounded Euclidean length.

    Parameters
    ----------
    n : int
        Number of users or records.
    dimension : int
        Length of a vector.
    epsilon : float
        Positive.
    model : {"local", "central"}, optional
        "local": each user is epsilon-DP and reports once; the mean is the distribution's.
        "central": (epsilon, delta)-DP for one replaced record; the mean is that of the data set.
    delta : float, optional
        In [0, 1); 0 in the local model.
    radius : float, optional
        Largest Euclidean length of a vector.

    Returns
    -------
    LowerBound
        The bound, rounded down, in the units of ``radius^2``.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Assouad (1983); Gill & Levit (1995) for van Trees' inequality; Ahlswede & Gacs (1976).  Proof:
    ``docs/proofs/minimax_mean.md``.

    Examples
    --------
    >>> from audits.minimax import private_mean
    >>> round(private_mean(n=1000, dimension=10, epsilon=1.0).value, 5)
    0.01207
    """
    n, p = USERS.check("n", n), DIMENSION.check("dimension", dimension)
    epsilon, radius = POSITIVE.check("epsilon", epsilon), RADIUS.check("radius", radius)
    delta = DELTA.check("delta", delta)
    if MODEL.check("model", model) == "central":
        return (approximate_mean if delta else pure_mean)(n, p, epsilon, delta, radius)
    if delta:
        raise ParameterError(
            "delta", delta, '0, as the local bound is for pure epsilon, or "central"'
        )
    signs, shift = by_signs(n, p, epsilon)
    curved, width = by_information(n, p, epsilon)
    candidates = f"signs of mean {shift:.4g}: {signs:.4g}; means up to {width:.4g}: {curved:.4g}"
    return LowerBound(
        value=radius * radius * max(signs, curved),
        published=None,
        statement="worst-case E |estimate - mean|^2 over distributions in the ball, "
        f"{n:,} users, each epsilon = {epsilon:g} for their own vector",
        construction=SignMeans(p, shift, radius),
        valid_for="non-interactive epsilon-LDP, delta = 0, every epsilon, n and dimension",
        optimised_over=f"the signs' mean, and the width of a prior on means; {candidates}",
    )


def by_signs(n: int, dimension: int, epsilon: float) -> tuple[float, float]:
    """``max_d d^2 (1 - m^2)`` and its d at unit radius.

    m is the root mean square correlation that reports allow with a sign.
    """
    informations = [user_information(dimension, float(d), epsilon) for d in SHIFTS]
    risks = SHIFTS**2 * sign_error(n * np.array(informations) / dimension)
    best = int(np.argmax(risks))
    return float(risks[best]) * (1 - 1e-12), float(SHIFTS[best])


def by_information(n: int, dimension: int, epsilon: float) -> tuple[float, float]:
    """``max_w p / (n J(w) + p pi^2 / w^2)`` and its w at unit radius, by van Trees' inequality.

    ``J(w) = min(2 (A - 1 - ln A) / (1 - w^2)^2, p / (1 - w^2))`` bounds the trace of a report's
    Fisher information if means are at most w.  It holds for sequential interaction, too.
    """
    widths = SHIFTS[:-1]
    variance_factor = 1 - widths**2
    fisher = np.minimum(
        2 * posterior_divergence(epsilon) / variance_factor**2, dimension / variance_factor
    )
    risks = dimension / (n * fisher + dimension * math.pi**2 / widths**2)
    best = int(np.argmax(risks))
    return float(risks[best]) * (1 - 1e-12), float(widths[best])
