"""Sampled and truncated Laplace noise against integrals of 25 digits."""

import math

import mpmath
import numpy as np
import pytest

from accountant import LaplaceLoss, PoissonSampled, Tight
from accountant.amplification.sampled_ratio_cgf import SampledRatioLaw
from accountant.amplification.sampled_ratio_filon import FilonRule
from accountant.losses.ratio_law import laplace_ratio_law
from accountant.numerics.quadrature import gauss_legendre_panels
from mechanisms import TruncatedLaplace
from mechanisms.truncated_laplace import TruncatedLaplaceLoss

CASES = [(0.5, math.inf, 0.01), (3.0, math.inf, 0.2), (1.0, 4.0, 0.3), (3.0, 2.0, 0.1)]
both_ways = pytest.mark.parametrize("added", [False, True], ids=["remove", "add"])


def moment(shift, reach, rate, power):
    """``E_Q r^power`` of Laplace noise, over the output x itself."""
    with mpmath.workdps(25):
        m, q, p = mpmath.mpf(shift), mpmath.mpf(rate), mpmath.mpmathify(power)
        c = 1 / (2 * (1 - mpmath.exp(-reach))) if reach < math.inf else mpmath.mpf(1) / 2
        ends = (-reach, reach) if reach < math.inf else (mpmath.mpf(-60), mpmath.mpf(60))

        def term(x):
            inside = abs(x - m) <= reach
            ratio = mpmath.exp(abs(x) - abs(x - m)) if inside else 0
            return c * mpmath.exp(-abs(x)) * (1 - q + q * ratio) ** p

        marks = sorted({*ends, mpmath.mpf(0), *(x for x in (m, m - reach) if abs(x) < ends[1])})
        return mpmath.quad(term, marks)


@both_ways
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_cumulant_is_its_integral(case, added):
    shift, reach, rate = case
    law = laplace_ratio_law(shift, reach)
    for z in (12.0, 3 + 20j):
        value, error = SampledRatioLaw(law, rate, added).cgf(np.array([z]))
        truth = mpmath.log(moment(shift, reach, rate, -z if added else z + 1))
        assert abs(complex(truth) - value[0]) <= error[0] + 1e-15
        assert error[0] < 1e-12


@both_ways
@pytest.mark.parametrize("reach", [math.inf, 3.0])
def test_the_mass_of_the_largest_loss_is_rounded_down(reach, added):
    rng = np.random.default_rng(2)
    for shift, rate in zip(
        rng.uniform(0.01, 4.0, 200), rng.uniform(0.001, 0.999, 200), strict=True
    ):
        law = laplace_ratio_law(shift, reach)
        found = SampledRatioLaw(law, rate, added).max_loss_mass
        with mpmath.workdps(30):
            m, q, b = mpmath.mpf(shift), mpmath.mpf(rate), mpmath.mpf(reach)
            whole = 2 * (1 - mpmath.exp(-b))  # that of the noise, whose density is e^-|x| / whole
            if not added:  # l is the shift where x is between it and the reach
                truth = max(mpmath.exp(-m) - mpmath.exp(-b), 0) / whole
                truth *= 1 - q + q * mpmath.exp(m)
            elif reach == math.inf:  # l is minus the shift below 0
                truth = mpmath.mpf(1) / 2
            elif m < b:  # only Q has what is below shift - reach
                truth = (mpmath.exp(m - b) - mpmath.exp(-b)) / whole
            else:
                truth = (2 - mpmath.exp(-b) - mpmath.exp(b - m)) / whole
            assert truth * (1 - 3e-14) <= found <= truth


@both_ways
@pytest.mark.parametrize(
    "reach", [math.inf, 3.0, 0.4]
)  # atoms at both ends; one at -inf too; alone
def test_filons_rule_has_every_atom_and_the_density_between(reach, added):
    law, a = laplace_ratio_law(0.5, reach), 3.0
    power = -a if added else a + 1
    for rate in (0.3, 1.0):
        # where only Q has an outcome and it is not sampled away, the loss is infinite
        atoms = [(rate * np.expm1(y), mass) for y, mass in law.atoms if rate < 1 or y > -math.inf]
        x, w, _ = gauss_legendre_panels(np.linspace(law.low, law.high, 41), 16)
        log_r = np.log1p([*(r for r, _ in atoms), *(rate * np.expm1(x))])
        masses = np.array([*(mass for _, mass in atoms), *(w * law.scale * np.exp(-x / 2))])
        tilted = masses * np.exp(power * log_r)
        height = tilted.sum()
        rule = FilonRule(law, rate, power, math.log(height))
        z = a + 1j * np.linspace(0, 900, 36).reshape(6, 6)
        value, error = rule.ratio(z, -1.0 if added else 1.0)
        turns = -log_r if added else log_r
        truth = np.exp(1j * np.multiply.outer(z.imag, turns)) @ tilted / height
        assert np.max(np.abs(value - truth)) < 1e-11
        assert np.max(error) < 1e-10


@both_ways
@pytest.mark.parametrize("shift", [12.0, 20.0, 30.0])
@pytest.mark.parametrize("rate", [0.3, 1e-4])
def test_filons_rule_errs_by_less_than_it_says_where_log_ratios_are_large(shift, rate, added):
    # y hardly differs from ln(1 - q) at the least of them
    law, a = laplace_ratio_law(shift), 1.0
    power = -a if added else a + 1
    x, w, _ = gauss_legendre_panels(np.linspace(law.low, law.high, 4001), 8)
    log_r = np.log1p(rate * np.expm1(np.append(x, [ratio for ratio, _ in law.atoms])))
    masses = np.append(w * law.scale * np.exp(-x / 2), [mass for _, mass in law.atoms])
    masses = masses * np.exp(power * log_r)
    rule = FilonRule(law, rate, power, math.log(masses.sum()))
    z = a + 1j * np.linspace(0, 600 / np.ptp(log_r), 9).reshape(3, 3)
    value, error = rule.ratio(z, -1.0 if added else 1.0)
    truth = np.exp(1j * np.multiply.outer(z.imag, -log_r if added else log_r)) @ masses
    assert np.all(abs(value - truth / masses.sum()) <= error)
    assert np.max(error) < 3e-12


@both_ways
@pytest.mark.parametrize("reach", [math.inf, 3.0])
@pytest.mark.parametrize(("shift", "rate"), [(1.1e-3, 0.3), (2.3e-4, 0.7), (1.7e-3, 1e-3)])
def test_phases_of_heavy_atoms_err_by_less_than_they_say(shift, rate, reach, added):
    # nearly all mass is in the atoms, whose phases are large
    law, power = laplace_ratio_law(shift, reach), -3.0 if added else 4.0
    z = 3.0 + 1j * np.linspace(0, 1e3 / (shift * rate), 16).reshape(4, 4)
    frequency = -z.imag if added else z.imag
    x, w, _ = gauss_legendre_panels(np.linspace(law.low, law.high, 201), 16)
    log_r = np.log1p(rate * np.expm1(x))
    density = w * law.scale * np.exp(-x / 2 + power * log_r)
    rest = np.exp(1j * np.multiply.outer(frequency, log_r)) @ density
    with mpmath.workdps(40):
        atoms = [
            (mpmath.log(1 + mpmath.mpf(rate) * (mpmath.exp(ratio) - 1)), mpmath.mpf(mass))
            for ratio, mass in law.atoms
        ]
        height = mpmath.fsum(mass * mpmath.exp(power * y) for y, mass in atoms) + density.sum()
        truth = [
            (mpmath.fsum(mass * mpmath.exp((power + 1j * u) * y) for y, mass in atoms) + part)
            / height
            for u, part in zip(frequency.ravel().tolist(), rest.ravel().tolist(), strict=True)
        ]
        log_moment = float(mpmath.log(height))
    value, error = FilonRule(law, rate, power, log_moment).ratio(z, -1.0 if added else 1.0)
    off = np.abs(value.ravel() - np.array([complex(one) for one in truth]))
    assert np.all(off <= error.ravel())
    assert np.max(error) < 1e-9


@both_ways
def test_far_up_a_contour_the_ratio_is_its_integral(added):
    law, rate, a = laplace_ratio_law(0.5), 0.01, 30.0
    power = -a if added else a + 1
    height = moment(0.5, math.inf, rate, power)
    rule = FilonRule(law, rate, power, float(mpmath.log(height)))
    z = a + 1j * np.linspace(0, 2e5, 900).reshape(30, 30)
    value, error = rule.ratio(z, -1.0 if added else 1.0)
    assert rule.missed < 1e-15
    assert np.max(error) < 1e-11
    # the same by many equal pieces of the density, each of a few radians
    x, w, _ = gauss_legendre_panels(np.linspace(-0.5, 0.5, 201), 16)
    ratios = np.append(x, [-0.5, 0.5])
    masses = np.append(w * np.exp(-x / 2 - 0.25) / 4, [0.5, math.exp(-0.5) / 2])
    log_r = np.log1p(rate * np.expm1(ratios))
    tilted = masses * np.exp(power * log_r) / float(height)
    turns = -log_r if added else log_r
    truth = np.exp(1j * np.multiply.outer(z.imag, turns)) @ tilted
    assert np.all(np.abs(value - truth) <= error)
    assert np.max(np.abs(value - truth)) < 1e-12


def two_steps(shift, rate, epsilon):
    """Delta of two releases, record present against absent: E_P delta_1(epsilon - L)."""
    m, q = mpmath.mpf(shift), mpmath.mpf(rate)

    def ratio(x):
        return 1 - q + q * mpmath.exp(x)

    def one(e):
        # E_Q (r - e^e)_+, its integrals in closed form
        k = mpmath.exp(e)
        start = mpmath.log((k - 1 + q) / q) if k > 1 - q else -mpmath.inf
        total = max(0, ratio(m) - k) * mpmath.exp(-m) / 2 + max(0, ratio(-m) - k) / 2
        x = max(-m, start)
        if x < m:
            total += (
                mpmath.exp(-m / 2)
                / 4
                * (
                    (1 - q - k) * 2 * (mpmath.exp(-x / 2) - mpmath.exp(-m / 2))
                    + q * 2 * (mpmath.exp(m / 2) - mpmath.exp(x / 2))
                )
            )
        return total

    def after(x):
        return ratio(x) * one(epsilon - mpmath.log(ratio(x)))

    middle = mpmath.exp(epsilon) / ratio(m)
    marks = [-m, m]
    if ratio(-m) < middle < ratio(m):  # beyond it one(.) is a straight line
        marks.insert(1, mpmath.log((middle - 1 + q) / q))
    inner = mpmath.quad(lambda x: mpmath.exp(-(x + m) / 2) / 4 * after(x), marks)
    return after(m) * mpmath.exp(-m) / 2 + after(-m) / 2 + inner


@pytest.mark.parametrize(
    ("shift", "rate", "delta"),
    [(0.5, 0.01, 1e-6), pytest.param(1.5, 0.2, 1e-4, marks=pytest.mark.slow)],
)
def test_two_releases_are_certified_to_an_integral(shift, rate, delta):
    found = Tight().certify_one_way(2 * PoissonSampled(LaplaceLoss(shift), rate), delta)
    with mpmath.workdps(25):
        assert two_steps(shift, rate, found.lower) >= delta
        assert two_steps(shift, rate, found.upper) <= delta
    assert found.width <= 1e-5 * found.upper


def test_a_thousand_releases_are_narrow():
    for plan in (
        1000 * PoissonSampled(LaplaceLoss(0.5), 0.01),
        1000 * PoissonSampled(TruncatedLaplace(scale=2.0, reach=30.0), 0.01),
        100 * TruncatedLaplace(scale=2.0, reach=30.0).loss,
    ):
        found = Tight(width=1e-8).certify(plan, 1e-6)
        assert found.width <= 1e-8 * found.upper


def test_what_only_one_side_can_give_keeps_its_mass():
    loss = TruncatedLaplaceLoss(1.0, 4.0)
    law = loss.ratio_law
    length = law.high - law.low
    density = law.scale * 2 * (math.exp(-law.low / 2) - math.exp(-law.high / 2))
    assert length == 2.0
    assert sum(mass for _, mass in law.atoms) + density == pytest.approx(1.0, abs=1e-15)
    kept = float(np.exp(loss.cumulant(0.0)).real)
    assert kept == pytest.approx(1 - loss.infinity, abs=1e-14)
    assert laplace_ratio_law(3.0, 1.5) is None
