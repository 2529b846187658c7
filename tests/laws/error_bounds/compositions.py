"""Compositions by formulas and by recursions: bounded losses, and exponential mechanisms."""

import itertools
import math

import mpmath
import numpy as np

from accountant import Advanced, ApproxLoss, BoundedRangeLoss, PureLoss
from accountant.accountants import advanced
from accountant.composition.composition import Composition
from accountant.composition.engine import delta_interval
from accountant.composition.grid_pairs import PairOnGrid
from accountant.composition.tilted_law import GridLaw
from accountant.composition.value_function import ValueFunction

# --- responses of one epsilon: a binomial whose coefficients are known to few digits


def _exact_responses(epsilon, count, at):
    """Delta of equal randomised responses, in 40 digits."""
    with mpmath.workdps(40):
        e, at = mpmath.mpf(epsilon), mpmath.mpf(at)
        heads = int(mpmath.floor((at / e + count) / 2)) + 1
        if heads > count:
            return mpmath.mpf(0)
        log_p = mpmath.loggamma(count + 1) - mpmath.loggamma(heads + 1)
        log_p -= mpmath.loggamma(count - heads + 1)
        log_p += heads * e - count * mpmath.log1p(mpmath.exp(e))
        mass, total, grow = mpmath.exp(log_p), mpmath.mpf(0), mpmath.exp(e)
        for k in range(heads, count + 1):
            term = mass * -mpmath.expm1(at - (2 * k - count) * e)
            total += term
            if k > heads + 9 and term < total * mpmath.mpf(10) ** -30:
                break
            mass *= grow * (count - k) / (k + 1)
        return total


def chernoff_violation():
    """Few responses near their largest sum, where the order of Chernoff's bound is large."""
    for epsilon, count in ((1e-9, 2), (1e-6, 20), (1e-3, 200), (0.1, 2)):
        losses = Composition([(PureLoss(epsilon), count)])
        for gap in (1e-3, 1e-9, 1e-12):
            at = epsilon * count * (1 - gap)
            _, found = delta_interval(losses, at, 1e-6, ())
            truth = _exact_responses(epsilon, count, at)
            if not found >= truth:
                return f"{count} of {epsilon} at {at}: {found} is below {mpmath.nstr(truth, 20)}"
    return ""


def binomial_violation():
    """Many responses, whose logarithms of masses lose digits."""
    for epsilon, count in ((0.1, 300), (0.02, 8000)):
        binomial = advanced._Binomial(epsilon, count)
        at = epsilon * math.sqrt(count) * np.linspace(1.5, 5.0, 12)
        for e, found in zip(at.tolist(), binomial.delta(at).tolist(), strict=True):
            truth = _exact_responses(epsilon, count, e)
            if not found >= truth:
                return f"{count} of {epsilon} at {e}: {found} is below {mpmath.nstr(truth, 20)}"
    return ""


def infinity_violation():
    """Releases that reveal all with some chance, and bounds by their drift."""
    for epsilon, count, chance in ((0.1, 200, 2e-9), (0.5, 20, 2e-8)):
        plan, delta = count * ApproxLoss(epsilon, chance), 1e-6

        def truth(at, epsilon=epsilon, count=count, chance=chance):
            with mpmath.workdps(40):
                kept = (1 - mpmath.mpf(chance)) ** count
                return 1 - kept * (1 - _exact_responses(epsilon, count, at))

        found = Advanced().one_way_epsilon(plan, delta)
        if truth(found) > delta:
            return f"{plan}: at {found} delta is {truth(found)}"
        if Advanced().one_way_delta(plan, found) < truth(found):
            return f"{plan}: a delta at {found} is below {truth(found)}"
    at = advanced.kov_epsilon({1.0: 300}, 1e-6)
    if _exact_responses(1.0, 300, at) > 1e-6:
        return f"kov_epsilon of 300 times 1 says {at}"
    return ""


# --- exponential mechanisms

CHOICES = 151  # of t, a lower bound on all


def _fixed_delta(e0, count, t, epsilon):
    """Delta of equal pairs with log-ratios t and t - e0, in 30 digits."""
    with mpmath.workdps(30):
        e0, t, epsilon = mpmath.mpf(e0), mpmath.mpf(t), mpmath.mpf(epsilon)
        p = mpmath.expm1(t - e0) / mpmath.expm1(-e0)
        terms = (
            mpmath.binomial(count, low) * p ** (count - low) * (1 - p) ** low
            * max(0, -mpmath.expm1(epsilon - count * t + low * e0))
            for low in range(count + 1)
        )  # fmt: skip
        return mpmath.fsum(terms)


def fixed_ranges_violation():
    """Ranges chosen in advance: the best choice is known, so that round-off is what is left."""
    for e0, count in ((1.5, 2), (0.7, 1), (0.3, 5), (1.0, 12), (0.1, 25)):
        for share in (0.02, 0.2, 0.45, 0.8):
            epsilon = share * e0 * math.sqrt(count)
            found = advanced.nonadaptive_delta(e0, count, epsilon)
            choices = np.clip((epsilon + np.arange(1.0, count + 2) * e0) / (count + 1), 0.0, e0)
            truth = max(_fixed_delta(e0, count, t, epsilon) for t in choices.tolist())
            if not found >= truth:
                return f"{count} of {e0} at {epsilon}: {found} < {mpmath.nstr(truth, 20)}"
    return ""


def _one_release(e0, epsilon):
    """Delta of one release, the greatest over some t: at most the truth."""
    t = np.linspace(0.0, e0, CHOICES)
    p = np.expm1(t - e0) / math.expm1(-e0)
    e = np.asarray(epsilon)[..., None]
    high, low = (-np.expm1(np.minimum(e - loss, 0.0)) for loss in (t, t - e0))
    return np.max(p * high + (1 - p) * low, axis=-1)


def _two_releases(e0, epsilon):
    """The same of two, of which the second may follow the first."""
    t = np.linspace(0.0, e0, CHOICES)
    p = np.expm1(t - e0) / math.expm1(-e0)
    return np.max(p * _one_release(e0, epsilon - t) + (1 - p) * _one_release(e0, epsilon - t + e0))


def adaptive_ranges_violation():
    """One and two adaptive releases, on the lattice of a range and on one that does not suit it."""
    for e0 in (0.2, 1.0, 3.0):
        for step in (e0 / 16, e0 / 11.3):
            after_all = ValueFunction.after_all(step, 1e-15)
            for count in (1, 2):
                value = after_all.before_ranges(e0, count)
                for e in np.linspace(0.0, 0.97 * count * e0, 23).tolist():
                    low, high = value.delta_bounds(e)
                    if count == 1:  # attained at t = (e + e0) / 2
                        with mpmath.workdps(30):
                            root = mpmath.expm1((mpmath.mpf(e) - mpmath.mpf(e0)) / 2)
                            truth = root * root / -mpmath.expm1(-mpmath.mpf(e0))
                        if not low <= truth:
                            return f"{e0}, {step} at {e}: {low} is above {truth}"
                    else:
                        truth = _two_releases(e0, e)
                    if not high >= truth:
                        return f"{e0}, {step} at {e}: {high} is below {truth}"
    return outside_of_lattice_violation()


def outside_of_lattice_violation():
    """Losses that lead beyond both ends of the lattice, where V is not kept."""
    step, places = 0.5, (-6, 0, 3)
    law = GridLaw(step, -6, 0.0, np.zeros(10), 1)
    law.mass[[0, 6, 9]] = masses = 0.02, 0.5, 0.48  # Q has the mass 1.01, but for a share
    law.mass[:] *= 0.98
    pair = PairOnGrid(law, 0.02, 0.0, 0.0)

    def delta(count, epsilon):
        if count == 0:
            return max(0.0, -math.expm1(epsilon))
        return 0.02 + 0.98 * sum(
            p * delta(count - 1, epsilon - step * place)
            for p, place in zip(masses, places, strict=True)
        )

    # The greater number cuts V where it is not negligible.
    values = {negligible: ValueFunction.after_all(step, negligible) for negligible in (1e-15, 0.15)}
    for count, negligible in itertools.product((1, 2, 3), values):
        value = values[negligible] = values[negligible].before_release(pair, pair)
        for place in range(-30, 30):
            (low,), (high,) = value.lower(place, place), value.upper(place, place)
            truth = delta(count, step * place)
            if not low <= truth <= high:
                return f"{count} at {place}: {truth} is not in [{low}, {high}]"
            epsilon = step * (place + 0.3)
            lower, upper = value.epsilon_bounds(delta(count, epsilon))
            if epsilon > 0 and not lower <= epsilon <= upper:
                return f"{count}: {epsilon} is not in [{lower}, {upper}]"
    return between_cells_violation()


def between_cells_violation():
    """Answers between two cells of a wide range."""
    e0 = 5.0
    for delta in (0.3, 0.5, 0.7, 0.75):
        truth = e0 + 2 * math.log1p(-math.sqrt(delta * -math.expm1(-e0)))
        value = ValueFunction.after_all(e0 / 16, 1e-15).before_ranges(e0, 1)
        lower, found = value.epsilon_bounds(delta)
        if not lower <= truth * (1 + 1e-12):
            return f"{e0} at delta {delta}: {lower} is above {truth}"
        for adaptive in (True, False):  # of one release both are the same
            asked = Advanced(adaptive).one_way_epsilon(BoundedRangeLoss(e0), delta)
            if not truth * (1 - 1e-12) <= asked <= found:
                return f"{e0} at delta {delta}: Advanced says {asked}, between {truth} and {found}"
        if not found >= truth * (1 - 1e-12):
            return f"{e0} at delta {delta}: {found} is below {truth}"
        low, high = value.delta_bounds(truth)
        if not low <= delta * (1 + 1e-12) <= high * (1 + 2e-12):
            return f"{e0}: delta at {truth} is {delta}, not in [{low}, {high}]"
    return ""
