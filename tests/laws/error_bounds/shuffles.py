"""Hockey sticks of shuffled reports: windows that end early, and the last atom of a law."""

import mpmath
import numpy as np
import pytest

from accountant.amplification import shuffling


def _exact_clones(e0, users, epsilon):
    """The hockey stick of the clone pair, in 40 digits."""
    with mpmath.workdps(40):
        e0, epsilon, total = mpmath.mpf(e0), mpmath.mpf(epsilon), mpmath.mpf(0)
        d = 1 / (1 + mpmath.exp(-e0))
        alpha, beta = d - mpmath.exp(epsilon) * (1 - d), mpmath.exp(epsilon) * d - (1 - d)
        chance = 2 * (1 - d)
        for c in range(users):
            weight = mpmath.binomial(users - 1, c) * chance**c * (1 - chance) ** (users - 1 - c)
            m = int(mpmath.floor((c + 1) * beta / (alpha + beta)))
            equal = mpmath.binomial(c, m) / mpmath.mpf(2) ** c
            above = sum(mpmath.binomial(c, i) for i in range(m + 1, c + 1)) / mpmath.mpf(2) ** c
            total += weight * (alpha * equal - mpmath.expm1(epsilon) * above)
        return total


def clones_violation():
    """Numbers of clones within one deviation of their mean, and within all that matter."""
    for e0, users in ((0.3, 20), (1.2, 40), (3.0, 25)):
        for deviations in ((0.5,), (1.0,), (2.0,), shuffling.DEVIATIONS):
            epsilon = e0 * np.array([0.0, 0.2, 0.4, 0.7])
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(shuffling, "DEVIATIONS", deviations)
                patch.setattr(shuffling, "NEGLIGIBLE", 1e-300)
                found = shuffling.clone_hockey_sticks(e0, users, epsilon)
            for e, stick in zip(epsilon.tolist(), found.tolist(), strict=True):
                truth = _exact_clones(e0, users, e)
                if not stick >= truth:
                    return f"{e0}, {users}, {deviations} at {e}: {stick} is below {truth}"
    return ""


def _exact_responses(e0, users, epsilon):
    """The hockey stick of responses that are counted, at the worst others, in 40 digits."""
    with mpmath.workdps(40):
        honest = 1 / (1 + mpmath.exp(-mpmath.mpf(e0)))
        grow, best = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(0)
        for others in range(users):
            law = [mpmath.mpf(1)]
            for user in range(users - 1):
                yes = honest if user < others else 1 - honest
                law = [a * (1 - yes) + b * yes for a, b in zip([*law, 0], [0, *law], strict=True)]
            stick = mpmath.mpf(0)
            for same, more in zip([*law, 0], [0, *law], strict=True):
                p, q = honest * more + (1 - honest) * same, (1 - honest) * more + honest * same
                stick += max(p - grow * q, mpmath.mpf(0))
            best = max(best, stick)
        return best


def responses_violation():
    """Sticks that are a small difference of two masses: near the largest loss."""
    for e0, users in ((0.5, 3), (1.0, 6), (2.0, 9)):
        shuffling._tails_by_yes_count.cache_clear()
        epsilon = e0 * (1 - np.array([1e-7, 1e-8, 1e-9, 3e-10, 0.3, 0.8]))
        found = shuffling.binary_hockey_sticks(e0, users, epsilon)
        for e, stick in zip(epsilon.tolist(), found.tolist(), strict=True):
            truth = _exact_responses(e0, users, e)
            if not stick >= truth:
                return f"{e0}, {users} at {e}: {stick} is below {truth}"
    return ""
