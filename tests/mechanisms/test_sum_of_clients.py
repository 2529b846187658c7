"""Shares of clients: exact Poisson numbers, Skellam noise, drop-out, vectors in whole numbers."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2, poisson

from accountant import (
    DiscreteGaussianSum,
    GaussianLoss,
    ParameterError,
    PrivateValueError,
    SkellamNoise,
    SummedNoiseLoss,
    Tight,
    calibrate,
)
from accountant.losses import summed_noise
from accountant.verifier.summed_noise import gaussian_above
from mechanisms import (
    ClientVectors,
    DiscreteGaussian,
    Gaussian,
    Skellam,
    SumOfClients,
    calibrate_sum,
)
from mechanisms.exact_noise.poisson_numbers import (
    LARGEST_MEAN,
    PoissonNumbers,
    distribution_bounds,
    least_above,
    poisson_table,
)


class Words:
    """A source of random words that are given."""

    def __init__(self, *words):
        self.words = list(words)

    def integers(self, low, high, size=None, dtype=None):
        del low, high, size, dtype
        return self.words.pop(0)


@pytest.mark.parametrize("mean", [Fraction(1, 3), Fraction(7, 2), Fraction(2500)])
def test_poisson_numbers_have_their_law(mean):
    draws = PoissonNumbers(mean).draw(20_000, np.random.default_rng(3))
    edges = poisson.ppf(np.linspace(0, 1, 9)[1:-1], float(mean))
    cells = np.unique(edges)
    counts = np.bincount(np.searchsorted(cells, draws), minlength=cells.size + 1)
    expected = np.diff([0.0, *poisson.cdf(cells, float(mean)), 1.0]) * draws.size
    # It fails by chance at most once in a million runs.
    assert (np.square(counts - expected) / expected).sum() < chi2.isf(1e-6, cells.size)


def test_a_word_that_does_not_decide_is_followed_by_others():
    mean = Fraction(7, 2)
    table = poisson_table(mean)
    assert table[-1] == 2**64 - 1
    word, (low, high) = int(table[3]), map(Fraction, distribution_bounds(mean, 4, 80)[3])
    digits = math.floor(low * 2**128) & (2**64 - 1)  # the next 64 binary digits of F(3)
    assert math.floor(high * 2**128) & (2**64 - 1) == digits
    assert least_above(word, mean, 3, Words(digits - 1)) == 3
    assert least_above(word, mean, 3, Words(digits + 1)) == 4
    assert least_above(word, mean, 3, Words(digits, 0)) == 3
    assert least_above(2**64 - 1, mean, table.size - 1, Words(2**64 - 1, 0)) > table.size


def test_a_large_mean_is_cut_into_equal_parts():
    part, parts = PoissonNumbers(Fraction(5000))._parts
    assert (part * parts, parts) == (5000, 8)
    assert part <= LARGEST_MEAN < 2 * part


def test_dropout_is_a_number_or_a_share_rounded_up():
    total = SumOfClients(Skellam(1.0), 100, dropout=0.29)
    assert (total.dropout, total.survivors) == (29, 71)
    assert SumOfClients(Skellam(1.0), 15, 0.1).dropout == 2
    assert total == SumOfClients(Skellam(1.0), 100, 29)
    for wrong in (True, -1, 100, 1.0, 0.999, math.nan, "1"):
        with pytest.raises(ParameterError, match=f"below 100 clients, or a share.* got {wrong!r}"):
            SumOfClients(Skellam(1.0), 100, wrong)
    with pytest.raises(ParameterError, match="a DiscreteGaussian or a Skellam"):
        SumOfClients(Gaussian(1.0), 100)


def test_noise_is_calibrated_by_a_sum_that_is_made():
    total = calibrate(SumOfClients(DiscreteGaussian(1.0), 50, 10), epsilon=0.7, delta=1e-6)
    assert total.survivors == 40
    assert 0.7 * (1 - 1e-6) <= Tight().epsilon(total, 1e-6) <= 0.7
    with pytest.raises(ParameterError, match=r"calibrate\(SumOfClients\(share, clients\).* scales"):
        calibrate(SumOfClients, epsilon=0.7, delta=1e-6, clients=50)


@pytest.mark.parametrize("share", [DiscreteGaussian(1.5), Skellam(1.5)], ids=repr)
def test_draws_of_a_sum_have_its_masses(share):
    total = SumOfClients(share, clients=6, dropout=2)
    draws = total.release(7, rng=5, size=20_000) - 7
    k = np.arange(-4, 5)
    masses = np.exp(total.noise.log_mass(k))
    counts = (draws[:, None] == k).sum(axis=0)
    # Each is a binomial number; 5.5 deviations are exceeded about 4e-8 of the time.
    expected = masses * draws.size
    assert (np.abs(counts - expected) < 5.5 * np.sqrt(expected * (1 - masses))).all()


@pytest.mark.parametrize("noise", [SkellamNoise(100.0), SkellamNoise(0.05), SkellamNoise(2.0, 9)])
def test_masses_of_skellam_noise_are_bessel_functions(noise):
    k = np.array([0, 1, 3, 40, 1200 if noise.variance > 100 else 50])
    with mpmath.workdps(60):
        exact = [mpmath.log(mpmath.besseli(int(x), noise.variance)) - noise.variance for x in k]
    assert noise.log_mass(k).tolist() == pytest.approx([float(x) for x in exact], rel=1e-12)


@pytest.mark.parametrize(("scale", "terms"), [(3.0, 1), (400.0, 1), (1e4, 10**9)])
@pytest.mark.parametrize("k", [0, 10**5, 2**40, 10**15])
def test_masses_of_skellam_noise_far_out_are_integrals_through_the_saddle(scale, terms, k):
    variance = terms * mpmath.mpf(scale) ** 2
    with mpmath.workdps(40):
        # I_k(V) is the mean of exp(V cosh z - k z) over z = s + i t, |t| <= pi, for each real s.
        saddle, width = mpmath.asinh(k / variance), 1 / mpmath.hypot(k, variance) ** 0.5
        top = variance * mpmath.cosh(saddle)
        steps = range(-40, 41) if width < 0.1 else range(-20, 20)
        step = width / 4 if width < 0.1 else mpmath.pi / 20
        values = [mpmath.exp(variance * mpmath.cosh(mpmath.mpc(saddle, step * i)) - top
                             - 1j * k * step * i) for i in steps]  # fmt: skip
        integral = mpmath.re(mpmath.fsum(values)) * step / (2 * mpmath.pi)
        exact = float(top - k * saddle - variance + mpmath.log(integral))
    assert SkellamNoise(scale, terms).log_mass(-k) == pytest.approx(exact, rel=1e-12, abs=1e-11)


@pytest.mark.parametrize(("scale", "terms"), [(1.0, 3000), (0.3, 10**4), (1.9, 300)])
def test_masses_of_sums_much_wider_than_shares_are_those_of_the_characteristic_function(
    scale, terms
):
    noise, j = DiscreteGaussianSum(scale, terms), np.arange(-20, 21)
    k = np.array([0, 3, math.ceil(2 * math.sqrt(noise.variance))])
    u = np.arange(4096) / 4096
    share = np.exp(-((j / scale) ** 2) / 2)
    waves = np.cos(2 * np.pi * np.multiply.outer(u, j)) * share / share.sum()
    exact = np.mean(waves.sum(axis=1) ** terms * np.cos(2 * np.pi * np.outer(k, u)), axis=1)
    assert np.exp(noise.log_mass(k)).tolist() == pytest.approx(exact.tolist(), rel=1e-9)


@pytest.mark.parametrize("k", [7, 10**4, 2**40 + 1])
def test_masses_of_a_sum_of_two_shares_far_out(k):
    # The squares of j and k - j add up to half the sum of the squares of k and of 2 j - k.
    scale = 0.7
    with mpmath.workdps(40):
        width = 4 * mpmath.mpf(scale) ** 2
        normalizer = mpmath.nsum(lambda x: mpmath.exp(-2 * x * x / width), [-40, 40])
        sides = [mpmath.exp(-(mpmath.mpf(x) ** 2) / width) for x in range(-40 - k % 2, 42, 2)]
        exact = mpmath.log(sum(sides)) - mpmath.mpf(k) ** 2 / width - 2 * mpmath.log(normalizer)
    log_density = SumOfClients(DiscreteGaussian(scale), 2).log_density(k, 0)
    assert log_density == pytest.approx(float(exact), rel=1e-12)


def test_no_mass_of_a_sum_is_said_to_be_0():
    with pytest.raises(PrivateValueError, match="output must be so near"):
        DiscreteGaussianSum(0.5, 3000).log_mass(1000)


@pytest.mark.parametrize(("scale", "terms"), [(0.5, 667429), (0.55, 10**6), (0.3, 50), (2.0, 7)])
def test_curvature_is_that_of_the_characteristic_function_and_no_less(scale, terms):
    points = 2 * math.ceil(20 * scale * math.sqrt(terms) + 20)
    last = math.ceil(min(points / 2, 2 * points / scale / math.sqrt(terms)))
    with mpmath.workdps(40):
        share = [mpmath.exp(-((j / mpmath.mpf(scale)) ** 2) / 2) for j in range(20)]
        total = 2 * sum(share) - 1
        mass = fall = mpmath.mpf(0)
        for i in range(last + 1):
            sines = [mpmath.sin(mpmath.pi * j * i / points) ** 2 for j in range(20)]
            term = (1 - 4 * mpmath.fdot(share, sines) / total) ** terms
            term /= 2 if i in (0, points / 2) else 1
            mass, fall = mass + term, fall + 2 * sines[1] * term
        exact = -2 * mpmath.log(1 - fall / mass)
    excess = float(DiscreteGaussianSum(scale, terms).curvature / exact - 1)
    assert 0 <= excess < 1e-12


@pytest.mark.parametrize(("scale", "terms", "shift"), [(0.05, 100, 2), (0.1, 10**6, 1)])
def test_shares_that_hardly_ever_add_noise_have_logarithms_of_masses(scale, terms, shift):
    loss = SummedNoiseLoss(DiscreteGaussianSum(scale, terms), shift)
    # All but some 1e-80 of the mass of a share lies on -1, 0 and 1.
    with mpmath.workdps(40):
        one = mpmath.exp(-1 / (2 * mpmath.mpf(scale) ** 2))
        sides = {k: sum(mpmath.binomial(terms, j) * mpmath.binomial(terms - j, j + k)
                        * one ** (2 * j + k) for j in range(12)) for k in range(4)}  # fmt: skip
        expected = float(mpmath.log(sides[0] / sides[shift]))
    losses, masses = loss.loss_pmf
    assert expected <= losses[np.argmax(masses)] <= expected + loss.rounding < expected + 2e-7


def test_quantiles_are_the_least_whole_numbers_or_chernoffs():
    total = SumOfClients(Skellam(0.5), clients=40)
    draws = np.abs(np.arange(-60, 61))
    masses = np.exp(total.noise.log_mass(draws))
    for probability in (0.3, 0.9, 1 - 1e-9):
        quantile = total.error_quantile(probability)
        assert masses[draws <= quantile].sum() >= probability > masses[draws < quantile].sum()
    wide = SumOfClients(Skellam(1000.0), clients=10**4)
    assert 1.6e5 < wide.error_quantile(0.9) < 2.5e5


def test_noise_that_cannot_be_listed_has_a_gaussian_above():
    wide = SumOfClients(DiscreteGaussian(10.0, 3.5), 100)
    assert wide.loss == GaussianLoss(wide.noise.gdp_per_step * 3 * (1 + 2**-50))
    for wrong in (SkellamNoise(100.0), Skellam(1.0)):
        with pytest.raises(ParameterError, match="noise must be"):
            SummedNoiseLoss(wrong, 1)
    with pytest.raises(ParameterError, match=r"scale must be at least 2"):
        DiscreteGaussianSum(1.5, 10**8).log_mass(10**5)
    assert summed_noise.loss_of_summed_noise(SkellamNoise(2.0), 0.5, 3).mu > 0


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("sensitivity", [9.4e7, 9.5e7, 1e8, 1e9, 1e12])
def test_distances_whose_squares_are_no_floats_cost_what_the_checker_says(sensitivity, dimension):
    total = SumOfClients(DiscreteGaussian(sensitivity, sensitivity, dimension), 10)
    square = gaussian_above(
        "discrete gaussian", Fraction(sensitivity), 10, Fraction(sensitivity) ** 2
    )
    assert math.sqrt(square) <= total.loss.mu <= math.sqrt(square) * (1 + 1e-11)


def test_a_number_in_many_bits_is_calibrated_to_the_noise_that_it_needs():
    wanted = {"dimension": 1, "clip": 1.0, "bits": 40, "clients": 10, "delta": 1e-6}
    vectors, total = calibrate_sum(DiscreteGaussian, **wanted, epsilon=1.0)
    assert vectors.sensitivity > 1e9
    continuous = GaussianLoss(vectors.sensitivity / (total.scale * math.sqrt(10)))
    assert 0.999 < continuous.epsilon_at(1e-6) <= 1.0
    with pytest.raises(ParameterError, match="share must be DiscreteGaussian or Skellam"):
        calibrate_sum(Gaussian, **wanted, epsilon=1.0)


# --- vectors


def test_what_is_encoded_is_decoded_but_for_rounding():
    vectors = ClientVectors(700, clip=2.0, step=0.001, bits=20, rotation=3)
    x = np.random.default_rng(0).normal(size=700) / 20
    numbers = vectors.encode(x, rng=1)
    assert numbers.shape == (1024,)
    assert int(np.square(numbers).sum()) <= vectors.squared_norm
    assert np.abs(vectors.decode(numbers) - x).max() < 0.005
    long = vectors.decode(vectors.encode(1e300 * x, rng=1))
    assert np.abs(long / np.linalg.norm(long) - x / np.linalg.norm(x)).max() < 0.005
    assert vectors.encode(np.zeros(700), rng=1).tolist() == [0] * 1024


def test_sums_are_taken_modulo_a_power_of_two():
    vectors = ClientVectors(4, clip=1.0, step=0.1, bits=4)
    assert vectors.wrapped([7, 8, -8, -9, 100]).tolist() == [7, -8, -8, 7, 4]


def test_vectors_refuse_nonsense():
    for name, wrong in {"dimension": 0, "clip": -1.0, "step": math.nan, "bits": 63, "excess": 1.0,
                        "rotation": -1}.items():  # fmt: skip
        fields = {"dimension": 3, "clip": 1.0, "step": 0.1, "bits": 8} | {name: wrong}
        with pytest.raises(ParameterError, match=name):
            ClientVectors(**fields)
    with pytest.raises(ParameterError, match=r"step must be at least clip / 2\^50"):
        ClientVectors(3, clip=1.0, step=1e-17, bits=8)
    for wrong in (np.zeros(4), np.full(3, np.nan), np.zeros((2, 3))):
        with pytest.raises(PrivateValueError):
            ClientVectors(3, clip=1.0, step=0.1, bits=8).encode(wrong)


@pytest.mark.parametrize("share", [DiscreteGaussian, Skellam])
def test_a_sum_that_is_calibrated_costs_epsilon_and_seldom_wraps_around(share):
    wanted = {"dimension": 40, "clip": 1.0, "clients": 50, "dropout": 5, "epsilon": 2.0}
    vectors, total = calibrate_sum(share, **wanted, bits=14, delta=1e-5, rounds=3, wrap=1e-4)
    assert (vectors.coordinates, total.survivors) == (64, 45)
    assert 1.9 < Tight().epsilon(3 * total, 1e-5) <= 2.0
    assert 0.99e-4 < vectors.wrap_probability(total) <= 1e-4
    assert vectors.deviation(total) > vectors.step * math.sqrt(50) * total.scale
    finer, _ = calibrate_sum(share, **wanted, bits=16, delta=1e-5, rounds=3, wrap=1e-4)
    assert finer.step < vectors.step / 3
    with pytest.raises(ParameterError, match="bits must be more for 50 clients"):
        calibrate_sum(share, **wanted, bits=6, delta=1e-5)
