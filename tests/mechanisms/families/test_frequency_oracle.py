"""Frequency oracles: golden values, exact coins, and what the laws do not say of them.

Constants of Chua et al. (label LDP) and of Wang, Blocki, Li & Jha (2017) as in the formulas
beside them; statistical tests have a false alarm of 1e-9 besides their fixed seeds.
"""

import itertools
import math
import tracemalloc

import numpy as np
import pytest

from accountant import ParameterError, PrivateValueError, calibrate
from mechanisms import (
    EXACT,
    HadamardResponse,
    LocalHashing,
    RandomizedResponse,
    SubsetSelection,
    UnaryEncoding,
)
from mechanisms.families.frequency_oracle import FrequencyOracle
from tests.laws.common import FALSE_ALARM_RATE, INSTANCES
from tests.mechanisms.families.fits import fit

ORACLES = [one for one in INSTANCES if isinstance(one, FrequencyOracle)]
MORE = [
    RandomizedResponse(2, 0.75), RandomizedResponse(3, 0.4), UnaryEncoding(9, 0.7, 0.2),
    UnaryEncoding(8, 0.5, 0.25), SubsetSelection(2, 1, 0.7), SubsetSelection(7, 6, 0.9),
    HadamardResponse(2, 0.6), HadamardResponse(7, 0.9), HadamardResponse(8, 0.7),
    LocalHashing(2, 2, 0.7), LocalHashing(6, 2, 0.8), LocalHashing(4, 9, 0.4),
]  # fmt: skip
every_oracle = pytest.mark.parametrize("oracle", ORACLES + MORE, ids=repr)
OPTIMISED = (UnaryEncoding.symmetric, UnaryEncoding.optimised, SubsetSelection.optimised,
             LocalHashing.optimised)  # fmt: skip
EPSILONS = (1e-3, 0.1, 0.5, 1.0, math.log(3), 2.0, 5.0, 12.0, 40.0)


def probabilities(oracle: FrequencyOracle) -> tuple[np.ndarray, np.ndarray]:
    """All reports, and the probability of each from each label."""
    outputs = oracle.support.cells(0, 1).outputs
    return outputs, np.exp([oracle.log_density(outputs, label) for label in range(oracle.k)])


def frequency_bound(oracle: FrequencyOracle, frequencies: np.ndarray, users: int) -> np.ndarray:
    """Bernstein's bound on the error of every estimate."""
    rate = math.log(2 * oracle.k / FALSE_ALARM_RATE)
    reach = 1 / (oracle.own_label_probability - oracle.other_label_probability) / users
    return np.sqrt(2 * oracle.variance(frequencies, users) * rate) + 2 * reach * rate / 3


def misfit(oracle: FrequencyOracle, users: int) -> float:
    """Chance of a fit to the density as bad as that of many reports of one label."""
    label = oracle.k - 1
    return fit(oracle, label, oracle.release(label, 7, users))


def test_subset_selection_of_three_among_ten():
    made = SubsetSelection.optimised(10, 1.0)
    assert made.size == 3
    assert made.own_label_probability == pytest.approx(0.538102, abs=5e-7)
    assert made.other_label_probability == pytest.approx(0.273544, abs=5e-7)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("k", [2, 3, 4, 6, 10, 16])
def test_subset_selection_is_made_with_the_best_size(k, epsilon):
    uniform = np.full(k, 1 / k)
    variances = [
        SubsetSelection(k, size, size / (size + (k - size) * math.exp(-epsilon)))
        .variance(uniform, 1)
        .sum()
        for size in range(1, k)
    ]
    made = SubsetSelection.optimised(k, epsilon)
    assert made.variance(uniform, 1).sum() == pytest.approx(min(variances), rel=1e-9)


def test_the_coefficients_of_randomised_response():
    # (e + k - 2) / (e - 1) where reported, -1 / (e - 1) elsewhere
    made = RandomizedResponse(10, math.e / (math.e + 9))
    found = made.coefficients(3)
    assert found[3] == pytest.approx((math.e + 8) / (math.e - 1))
    assert np.delete(found, 3) == pytest.approx(np.full(9, -1 / (math.e - 1)))
    assert made.coefficients([[3, 1], [0, 2]]).shape == (2, 2, 10)


@every_oracle
def test_the_worst_of_all_pairs_costs_what_is_claimed(oracle):
    _, law = probabilities(oracle)
    assert law.sum(axis=1) == pytest.approx(np.ones(oracle.k))
    pairs = itertools.permutations(law, 2)
    greatest = max(float(np.max(np.log(one / another))) for one, another in pairs)
    assert oracle.loss.pure == pytest.approx(greatest, abs=1e-13)
    assert oracle.loss.infinity == 0
    assert oracle.arithmetic is EXACT
    assert oracle.relation == "local-replace"


@every_oracle
def test_what_is_supported_by_enumeration(oracle):
    outputs, law = probabilities(oracle)
    supported = oracle.supported_labels(outputs)
    assert law @ supported == pytest.approx(
        np.where(np.eye(oracle.k), oracle.own_label_probability, oracle.other_label_probability),
        abs=1e-14,
    )
    alone = [law[0] @ (supported[:, a] & ~supported[:, 1 - a]) for a in (0, 1)]
    assert oracle.exclusive_support == pytest.approx(alone, abs=1e-14)
    assert np.array_equal(oracle.support_counts(outputs), supported.sum(axis=0))
    assert oracle.is_report(outputs).all()
    assert np.array_equal(oracle.decode(outputs), oracle.decode(outputs.astype(np.uint64)))


@every_oracle
def test_reports_fit_the_density(oracle):
    assert misfit(oracle, 1_000_000) > FALSE_ALARM_RATE


@pytest.mark.slow
@every_oracle
def test_ten_times_as_many_reports_fit_the_density(oracle):
    assert misfit(oracle, 10_000_000) > FALSE_ALARM_RATE


@pytest.mark.parametrize("make", OPTIMISED, ids=lambda make: make.__qualname__)
@pytest.mark.parametrize("k", [2, 3, 10, 1000])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_constructors_meet_epsilon_from_the_private_side(make, k, epsilon):
    spent = make(k, epsilon).loss.pure
    # 1 - keep has 53 bits, so that nothing beyond epsilon 36 can be had by a probability near 1
    assert min(epsilon, 36.0) * (1 - 1e-6) <= spent <= epsilon


@pytest.mark.parametrize("make", OPTIMISED, ids=lambda make: make.__qualname__)
@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf, "1", None])
def test_an_epsilon_that_is_none_is_refused(make, bad):
    with pytest.raises(ParameterError, match="epsilon must be"):
        make(10, bad)


@pytest.mark.parametrize(
    ("cls", "fixed"),
    [
        (RandomizedResponse, {}),
        (UnaryEncoding, {"p": 0.5}),
        (SubsetSelection, {"size": 3}),
        (HadamardResponse, {}),
        (LocalHashing, {"buckets": 4}),
    ],
)
def test_calibration_finds_the_knob(cls, fixed):
    made = calibrate(cls, k=10, **fixed, epsilon=1.0)
    assert 1 - 2e-6 <= made.loss.pure <= 1


@pytest.mark.parametrize("oracle", ORACLES, ids=repr)
@pytest.mark.parametrize("users", [1000, 100_000])
def test_frequencies_are_decoded(oracle, users):
    rng = np.random.default_rng(users)
    larger = calibrate(type(oracle), **{**fixed_fields(oracle), "k": 37}, epsilon=1.0)
    labels = np.minimum(rng.geometric(0.1, users) - 1, 36)
    frequencies = np.bincount(labels, minlength=37) / users
    error = larger.decode(larger.release(labels, rng)) - frequencies
    assert np.all(np.abs(error) <= frequency_bound(larger, frequencies, users))


def fixed_fields(oracle):
    name, _ = type(oracle).knob(**{n: getattr(oracle, n) for n in ("k", "p", "size", "buckets")
                                   if hasattr(oracle, n)})  # fmt: skip
    return {n: getattr(oracle, n) for n in oracle.__slots__ if n != name}


@pytest.mark.parametrize("k", [2, 127, 128, 255, 256, 257, 32_767, 32_768, 65_535, 65_536, 70_000])
def test_widths_of_integers(k):
    # the last label and the first, where a step around the circle overflows or not
    labels = np.tile([0, k - 1], 500)
    for oracle in (RandomizedResponse(k, 0.5 + 0.5 / k), HadamardResponse(k, 0.7),
                   LocalHashing(k, 3, 0.6), SubsetSelection(k, 1, 0.9)):  # fmt: skip
        reports = oracle.release(labels, 3)
        assert oracle.is_report(reports).all()
        kept = oracle.supports(reports, labels).sum()
        assert abs(kept - 1000 * oracle.own_label_probability) <= math.sqrt(
            500 * math.log(2 / FALSE_ALARM_RATE)
        )


@pytest.mark.parametrize("oracle", ORACLES, ids=repr)
def test_shapes(oracle):
    one = np.shape(oracle.release(1, 0))
    assert one == oracle.report_layout[0] == np.shape(oracle.release(1))
    assert np.shape(oracle.release(1, 0, 7)) == (7, *one)
    assert np.shape(oracle.release([0, 1, 0], 0)) == (3, *one)
    assert np.shape(oracle.release([0, 1, 0], 0, 7)) == (7, 3, *one)
    for none in (oracle.release([], 0), oracle.release(1, 0, 0)):
        assert none.shape == (0, *one)
        assert none.dtype == np.asarray(oracle.release(1, 0)).dtype
        with pytest.raises(ParameterError, match="reports must be"):
            oracle.decode(none)


@pytest.mark.parametrize("oracle", ORACLES, ids=repr)
def test_a_label_beyond_is_refused_with_its_index(oracle):
    for bad in (-1, oracle.k):
        with pytest.raises(PrivateValueError, match=rf"from 0 to {oracle.k - 1}.*2"):
            oracle.release([0, 1, bad, 1], 0)


@pytest.mark.parametrize("oracle", ORACLES, ids=repr)
def test_reports_that_are_none(oracle):
    honest = oracle.release([0, 1], 0).astype(np.int64)
    for bad in (honest - 100, honest + 10_000, honest + 0.5):
        assert np.all(oracle.log_density(bad, [0, 1], each=True) == -np.inf)
        with pytest.raises(ParameterError, match="reports must be"):
            oracle.decode(bad)
    for bad in (honest[0], honest[..., None], honest.astype(float), "reports"):
        with pytest.raises(ParameterError, match="reports must be"):
            oracle.decode(bad)


def test_decoding_does_not_hold_a_number_for_every_user_and_label():
    for oracle in (LocalHashing(100, 4, 0.5), SubsetSelection(100, 20, 0.5)):
        reports = oracle.release(np.zeros(200_000, dtype=np.intp), 1)
        tracemalloc.start()
        oracle.decode(reports)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 12_000_000
