"""Law: what decodes is unbiased, and its variance is the declared one.

By enumeration to 1e-10 where the outputs can be listed; else by 200,000 draws and an empirical
Bernstein bound, false alarm 1e-9, of bounded reports that decode to their mean.
"""

import numpy as np
import pytest

from mechanisms import Mechanism
from mechanisms.families.frequency_oracle import FrequencyOracle
from mechanisms.families.sphere_support import SphereSupport
from tests.laws.common import FALSE_ALARM_RATE, INSTANCES, example_value

TOLERANCE = 1e-10
DRAWS = 200_000
DECODERS = [one for one in INSTANCES if hasattr(one, "decode")]
every_decoder = pytest.mark.parametrize("mechanism", DECODERS, ids=repr)


def violation(mechanism: Mechanism) -> str:
    """Where the law fails; "" where it holds."""
    rng = np.random.default_rng(31)
    for value in [example_value(mechanism, rng) for _ in range(5)]:
        truth, declared = expected(mechanism, value)
        cells = exact_cells(mechanism, value)
        if cells is not None:
            weights = cells.measure * np.exp(mechanism.log_density(cells.outputs, value))
            decoded = np.stack([mechanism.decode(one) for one in cells.outputs[:, None]])
            mean, allowed = weights @ decoded, (TOLERANCE, TOLERANCE)
            squares = squared(decoded - truth, declared)
        else:
            reports = mechanism.release(value, rng, DRAWS)
            mean, squares = mechanism.decode(reports), squared(reports - truth, declared)
            weights = np.full(DRAWS, 1 / DRAWS)
            allowed = deviation(reports), deviation(squares)
        bias, excess = np.abs(mean - truth), np.abs(weights @ squares - declared)
        for name, gap, most in (("bias", bias, allowed[0]), ("variance", excess, allowed[1])):
            if not np.all(gap <= most):
                return f"{name} of {np.max(gap):.3g} at {value}"
    return ""


def squared(errors: np.ndarray, declared: np.ndarray) -> np.ndarray:
    """Squares of errors, summed where the variance of the whole vector is declared."""
    axes = tuple(range(1 + np.ndim(declared), errors.ndim))
    return np.sum(errors**2, axis=axes)


def expected(mechanism: Mechanism, value) -> tuple[np.ndarray, np.ndarray]:
    """What one report decodes to on average, and its declared variance."""
    if isinstance(mechanism, FrequencyOracle):
        truth = np.eye(mechanism.k)[value]
        return truth, mechanism.variance(truth, 1)
    return mechanism.values.check(value), np.asarray(mechanism.variance(value))


def exact_cells(mechanism: Mechanism, value):
    """The cells, where each is one output."""
    if isinstance(mechanism.support, SphereSupport):
        return None
    cells = mechanism.support.cells(value, value)
    return cells if cells is not None and np.all(cells.measure == 1) else None


def deviation(terms: np.ndarray) -> np.ndarray:
    """How far a mean of draws may be off: empirical Bernstein (Maurer & Pontil, 2009)."""
    # sqrt(2 V ln(2/a) / n) + 7 R ln(2/a) / (3 (n - 1)), a shared by the coordinates and both sides;
    # twice the range that was seen stands for R
    rate = np.log(4 * max(1, terms[0].size) / FALSE_ALARM_RATE) / len(terms)
    reach = 2 * np.ptp(terms, axis=0)
    # 1e-12 of the size, where all draws are the same but for rounding
    rounding = 1e-12 * (1 + np.abs(terms).max(axis=0))
    return np.sqrt(2 * terms.var(axis=0) * rate) + 7 * reach * rate / 3 + rounding


@every_decoder
def test_decoding_is_unbiased_and_of_the_declared_variance(mechanism):
    assert violation(mechanism) == ""


def mean_violation(mechanism: Mechanism) -> str:
    """Whether many reports decode to something else than the mean of what each decodes to."""
    rng = np.random.default_rng(32)
    values = np.stack([np.asarray(example_value(mechanism, rng)) for _ in range(50)])
    reports = mechanism.release(values, rng)
    singles = [mechanism.decode(one) for one in reports[:, None]]
    gap = np.abs(mechanism.decode(reports) - np.mean(singles, axis=0))
    bound = 1e-12 * (1 + np.abs(np.mean(singles, axis=0)))
    return "" if np.all(gap <= bound) else f"off by {np.max(gap):.3g}"


@every_decoder
def test_many_reports_decode_to_the_mean_of_what_each_decodes_to(mechanism):
    assert mean_violation(mechanism) == ""


class WrongOracle:
    """A decoder that passes everything on but for what is changed."""

    def __init__(self, inner, **changes):
        self.inner = inner
        vars(self).update(changes)

    def __getattr__(self, name):
        return getattr(self.inner, name)

    __class__ = property(lambda self: type(self.inner))


@every_decoder
def test_a_tenth_too_much_and_a_variance_a_tenth_too_small_are_caught(mechanism):
    loud = WrongOracle(mechanism, decode=lambda reports: 1.1 * mechanism.decode(reports))
    proud = WrongOracle(mechanism, variance=lambda *given: 0.9 * mechanism.variance(*given))
    assert violation(loud) != ""
    assert violation(proud) != ""
