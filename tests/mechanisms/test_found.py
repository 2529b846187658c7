"""What an adversarial reading of the mechanisms found, each mended: it must stay so."""

import math
import multiprocessing
import os
from fractions import Fraction

import numpy as np
import pytest

from accountant import (
    Basic,
    Budget,
    Filter,
    Ledger,
    OffPlan,
    ParameterError,
    PrivateValueError,
    Tight,
)
from accountant.numerics.rounding import round_up_ratio
from audits import audit, exact
from mechanisms import (
    CubeLinf,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Mapped,
    NoisyMax,
    PureFromApproximate,
    RandomizedResponse,
    Staircase,
    TruncatedLaplace,
)
from mechanisms.truncated_laplace import TruncatedLaplaceLoss


def test_a_vector_does_not_pass_as_one_number_through_public_samples():
    made = PureFromApproximate(Gaussian(2.0), 0.2, 12)
    assert made.value_axes == 0
    with pytest.raises(PrivateValueError, match="a single one, with 0 axes"):
        Ledger(np.ones((10, 50)), made, rng=0).release(made, lambda data: data.sum(0))
    with pytest.raises(ParameterError, match="a mechanism of numbers"):
        PureFromApproximate(Gaussian(2.0, 1.0, "exact", 3), 0.2, 12)
    exact_inner = PureFromApproximate(Laplace(5.0, 1.0, "exact"), 0.2, 12)
    assert exact_inner.arithmetic.name == "IDEALISED"


@pytest.mark.parametrize("cls", [Laplace, Gaussian])
def test_exact_scalars_cross_the_border_of_64_bits(cls):
    made = cls(1.0, 1.0, "exact")
    for value in (2.0**22 - 1, 2.0**22, -(2.0**22), 1e300):
        assert abs(made.release(value, 0) - value) < 50
        assert made.release([value], 0).shape == (1,)


def fork_and_ask(ledger, made, results):
    try:
        results.put(float(ledger.release(made, np.sum)))
    except OffPlan as error:
        results.put(str(error))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_ledger_spends_nothing():
    made = Laplace(1.0)
    ledger, context = Ledger(np.zeros(3), 10 * made), multiprocessing.get_context("fork")
    results = context.Queue()
    children = [
        context.Process(target=fork_and_ask, args=(ledger, made, results)) for _ in range(2)
    ]
    for child in children:
        child.start()
    answers = [results.get(timeout=30) for _ in children]
    for child in children:
        child.join()
    assert all("belongs to the process that forked" in str(answer) for answer in answers)
    assert math.isfinite(ledger.release(made, np.sum))


def truncated(shift, reach, epsilon):
    """delta in 60 digits, over every candidate cut."""
    import mpmath as mp

    with mp.workdps(60):
        shift, reach, epsilon = map(mp.mpf, (shift, reach, epsilon))
        d = 2 * (1 - mp.exp(-reach))

        def below(x):
            if abs(x) >= reach:
                return mp.mpf(int(x > 0))
            tail = mp.exp(-abs(x)) * (1 - mp.exp(abs(x) - reach)) / d
            return tail if x < 0 else 1 - tail

        middle = min(max((shift - epsilon) / 2, shift - reach), reach)
        cuts = [middle, shift - reach, reach]
        return float(max(below(x) - mp.exp(epsilon) * below(x - shift) for x in cuts))


def test_truncated_noise_is_never_claimed_to_cost_less():
    rng = np.random.default_rng(1)
    for _ in range(400):
        shift, reach = 10 ** rng.uniform(-6, 2), 10 ** rng.uniform(-1, 2.3)
        epsilon = shift * rng.uniform(0, 1.1)
        claimed, true = (
            float(TruncatedLaplaceLoss(shift, reach).profile(epsilon)),
            truncated(shift, reach, epsilon),
        )
        assert true * (1 - 1e-13) <= claimed <= true * (1 + 1e-9) + 1e-14
    made = TruncatedLaplace(1.0, 40.0, 30.0)
    for delta in (1e-3, 1e-4):
        assert truncated(30.0, 40.0, Tight().epsilon(made, delta)) <= delta * (1 + 1e-12)


def test_outcomes_that_cannot_be_are_never_called_pure():
    made = TruncatedLaplace(1.0, 746.0, 1.0)
    assert made.loss.pure == math.inf
    assert made.loss.infinity > 0
    assert TruncatedLaplaceLoss(1000.0, 600.0).profile(800.0) == 1.0
    assert TruncatedLaplaceLoss(800.0, 1000.0).infinity == pytest.approx(math.exp(-200) / 2)
    assert TruncatedLaplace(1.0, 11.0).loss.rho == pytest.approx(0.5)


def test_nearly_equal_masses_are_rounded_apart():
    assert Staircase(1e4).loss.pure >= 1e-4
    for scale in (99.7, 1e4, 1e6, 1e12):
        made = DiscreteLaplace(scale)
        assert made.loss.pure >= 1 / scale
        assert Basic().epsilon(made, 0.0) >= 1 / scale
        # tanh(1 / (2 scale)) of a real number is about this
        assert made.loss.delta_at(0.0) >= math.tanh(1 / (2 * scale)) * (1 - 1e-15)
    for dimension in (1, 2, 4):
        keep = 0.5 + 1e-6
        assert CubeLinf(dimension, 1.0, keep).loss.pure >= math.log(keep / (1 - keep))


def test_ratios_are_never_rounded_down():
    rng = np.random.default_rng(2)
    for _ in range(1000):
        x, y = 10 ** rng.uniform(-5, 5, 2)
        ratio = round_up_ratio(x, y)
        assert Fraction(ratio) * Fraction(y) >= Fraction(x)
        assert ratio <= x / y * (1 + 3e-16)
    assert round_up_ratio(1.0, 4.0) == 0.25
    assert Fraction(Gaussian(3.0).loss.mu) >= Fraction(1, 3)


def test_discrete_gaussian_noise_passes_concentrated_filters():
    made = DiscreteGaussian(40.0)
    assert made.loss.rho == pytest.approx(1 / 3200)
    for notion in ("zcdp", "rdp"):
        gate = Filter(np.arange(5), Budget(1.0, 1e-5), notion, rng=0)
        assert isinstance(int(gate.release(made, np.sum)), int)
    # the lists agree with the proofs
    pair = 20 * DiscreteGaussian(3.0)
    assert Tight().epsilon(pair, 1e-6) <= Tight().epsilon(20 * Gaussian(3.0), 1e-6) * 1.01


def test_the_gate_checks_the_very_array_that_is_released():
    class Shapeless:
        shape = ()

        def __array__(self, dtype=None, copy=None):
            return np.zeros(1000, dtype=int)

    made = RandomizedResponse(3, 0.5)
    with pytest.raises(PrivateValueError, match="a single one"):
        Ledger(np.zeros(4), made, rng=0).release(made, lambda data: Shapeless())
    with pytest.raises(PrivateValueError, match="not ragged"):
        Ledger(np.zeros(4), Laplace(1.0), rng=0).release(Laplace(1.0), lambda data: [[1.0], [1, 2]])


VECTORS = [
    Laplace(1.0, 1.0, "exact", 2), Gaussian(3.0, 1.0, "exact", 2), DiscreteGaussian(3.0, 1.0, 2),
    TruncatedLaplace(1.0, 11.0, dimension=2),
]  # fmt: skip


@pytest.mark.parametrize("made", VECTORS, ids=repr)
def test_mechanisms_of_vectors_are_audited_with_vectors(made):
    assert audit(made, runs=20_000, rng=1).outcome.name == "SURVIVED"
    if not isinstance(made, DiscreteGaussian):
        assert exact(made, 0.5) <= made.loss.delta_at(0.5) + 1e-10


def test_odd_scales_are_refused_by_name():
    for cls, field in ((Staircase, 1e-3), (Staircase, 1e10), (DiscreteLaplace, 1e-300)):
        with pytest.raises(ParameterError, match=f"{cls.__name__}.scale must be"):
            cls(field)
    assert NoisyMax(1.0, 1.0, "gumbel", True).log_density(0, [1.0, 0.0]) < 0


def test_functions_may_answer_nan_but_not_fewer():
    made = Mapped(RandomizedResponse(3, 0.6), not_a_number_of_zero)
    assert np.exp(made.log_density(math.nan, 0)) == pytest.approx(0.6)
    assert exact(made, 0.2) > 0
    with pytest.raises(ParameterError, match="as many numbers"):
        Mapped(RandomizedResponse(3, 0.6), np.sum).release([0, 1, 2, 0], 1)


def not_a_number_of_zero(output):
    return np.where(np.asarray(output) == 0, math.nan, 1.0)


def test_a_mask_is_no_way_to_hide_a_value():
    with pytest.raises(PrivateValueError, match="without a mask"):
        Laplace(1.0).release(np.ma.array([1.0, 2.0], mask=[True, False]), 1)
