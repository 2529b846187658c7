"""Frequency oracles: golden values, exact coins, and what the laws do not say of them.

Constants of Chua et al. (label LDP) and of Wang, Blocki, Li & Jha (2017) as in the formulas
beside them; statistical tests have a false alarm of 1e-9 besides their fixed seeds.
"""

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from scipy.stats import chi2

from accountant import ParameterError, PrivateValueError, calibrate
from mechanisms import (
    EXACT,
    HadamardResponse,
    LocalHashing,
    RandomizedResponse,
    SubsetSelection,
    UnaryEncoding,
)
from mechanisms.exact_noise.exact_bernoulli import bernoulli, bernoulli_words
from mechanisms.families.frequency_oracle import FrequencyOracle
from mechanisms.hadamard_response import has_odd_parity
from mechanisms.local_hashing import least_prime_from
from tests.laws.common import FALSE_ALARM_RATE, INSTANCES

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


def fit(oracle: FrequencyOracle, label: int, reports: np.ndarray) -> float:
    """Pearson's test of reports of one label."""
    outputs = oracle.support.cells(label, label).outputs
    law = np.exp(oracle.log_density(outputs, label)) * len(reports)
    if outputs.ndim == 2:  # rows as the digits of a number
        digits = (1 + int(outputs.max())) ** np.arange(outputs.shape[1])
        outputs, reports = outputs @ digits, reports @ digits
    order = outputs.argsort()
    seen = np.bincount(outputs[order].searchsorted(reports), minlength=law.size)
    return float(chi2.sf(np.sum((seen - law[order]) ** 2 / law[order]), law.size - 1))


SECOND_MOMENTS = [(10, 1.0, 38.826944), (100, 0.5, 1569.079236)]


@pytest.mark.parametrize(("k", "epsilon", "second"), SECOND_MOMENTS)
def test_the_second_moment_of_unary_encoding(k, epsilon, second):
    # V = 2 + 4 k e^eps / (e^eps - 1)^2, and one coefficient of the k has mean 1, all others 0
    own, others = UnaryEncoding.optimised(k, epsilon).coefficient_variances
    assert own + (k - 1) * others + 1 == pytest.approx(second, rel=1e-8)
    e = math.exp(epsilon)
    assert own == pytest.approx(1 / math.tanh(epsilon / 2) ** 2, rel=1e-12)
    assert others == pytest.approx(4 * e / (e - 1) ** 2, rel=1e-12)


def test_subset_selection_of_three_among_ten():
    made = SubsetSelection.optimised(10, 1.0)
    assert made.size == 3
    assert made.own_label_probability == pytest.approx(0.538102, abs=5e-7)
    assert made.other_label_probability == pytest.approx(0.273544, abs=5e-7)


def test_the_coefficients_of_randomised_response():
    # (e + k - 2) / (e - 1) where told, -1 / (e - 1) elsewhere
    made = RandomizedResponse(10, math.e / (math.e + 9))
    found = made.coefficients(3)
    assert found[3] == pytest.approx((math.e + 8) / (math.e - 1))
    assert np.delete(found, 3) == pytest.approx(np.full(9, -1 / (math.e - 1)))
    assert made.coefficients([[3, 1], [0, 2]]).shape == (2, 2, 10)


def test_variances_of_hashing_are_those_of_wang_et_al_for_many_labels():
    # 4 e^eps / (e^eps - 1)^2 for hashes that collide once in `buckets`, at e^eps + 1 of them
    made = LocalHashing(100_003, 4, 3 / 6)
    assert made.coefficient_variances[1] == pytest.approx(3.0, rel=1e-3)


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


class Script:
    """A generator whose random words are written beforehand."""

    def __init__(self, *words):
        self.words = list(words)

    def integers(self, low, high, shape, dtype):
        assert (low, high, dtype) == (0, 2**64, np.uint64)
        return np.asarray(self.words.pop(0), dtype=np.uint64).reshape(shape)


ALL, PATTERN = 2**64 - 1, 0x0123456789ABCDEF


def test_coins_decide_a_tie_by_the_digits_that_are_left():
    # .100000001 and a uniform that has the same eight digits: below it if its ninth is 0
    made = bernoulli_words(0.5 + 2.0**-9, 1, Script([ALL] * 8, [PATTERN]))
    assert made.tolist() == [ALL ^ PATTERN]
    # .5 itself is not below .5
    assert bernoulli_words(0.5, 1, Script([ALL])).tolist() == [0]
    # only the words that are tied go on
    words = [[ALL, 0]] + [[ALL, ALL]] * 7
    made = bernoulli_words(0.5 + 2.0**-9, 2, Script(words, [PATTERN]))
    assert made.tolist() == [ALL ^ PATTERN, ALL]


def test_bits_decide_a_tie_by_what_is_left():
    # sixteen digits of p = (32768 + .5) / 65536, and those of .5 for the two that tie
    first, second = (
        np.array(digits, dtype=np.uint16).view(np.uint64)
        for digits in ([32767, 32768, 32768, 32769], [32767, 32768, 0, 0])
    )
    made = bernoulli(0.5 + 2.0**-17, (2, 2), Script(first, second))
    assert made.tolist() == [[True, True], [False, False]]


@pytest.mark.parametrize("eighths", range(9))
def test_coins_of_all_words_are_exactly_as_many(eighths):
    # all three digits of a uniform, each eight times: one is below p for each eighth
    lanes = np.arange(64) % 8
    digits = [(lanes >> place) & 1 for place in (2, 1, 0)]
    p = np.array([(eighths >> place) & 1 for place in (2, 1, 0)])
    same = [
        sum(1 << i for i in range(64) if digit[i] == that)
        for digit, that in zip(digits, p, strict=True)
    ]
    if 0 < eighths < 8:
        count = 3 - (eighths & -eighths).bit_length() + 1
        made = bernoulli_words(eighths / 8, 1, Script(same[:count]))
    else:  # never, and always: ties go on until there is none
        made = bernoulli_words(eighths / 8, 1, np.random.default_rng(1))
    assert int(made[0]).bit_count() == 8 * eighths


@pytest.mark.parametrize("p", [1e-300, 1e-5, 0.1, 1 / 3, 0.5, 0.731, 1 - 2.0**-53])
def test_coins_fall_as_often_as_they_should(p):
    count = 1_000_001
    bits = bernoulli(p, (count,), np.random.default_rng(2))
    assert bits.shape == (count,)
    rate = math.log(2 / FALSE_ALARM_RATE)
    bound = math.sqrt(2 * count * p * (1 - p) * rate) + 2 * rate / 3
    assert abs(int(bits.sum()) - count * p) <= bound


def test_neighbouring_coins_are_independent():
    bits = bernoulli(0.3, (1_000_000,), np.random.default_rng(3)).astype(float) - 0.3
    for lag in (1, 2, 8, 63, 64, 65):
        products = bits[lag:] * bits[:-lag]
        assert abs(products.mean()) <= 0.49 * math.sqrt(math.log(2 / FALSE_ALARM_RATE) / 1e6 * 2)


@pytest.mark.parametrize("k", [2, 7, 8, 9, 13, 64, 100])
def test_packed_bits_are_the_bits(k):
    oracle, labels = UnaryEncoding(k, 0.5, 0.2), np.arange(1000) % k
    packed, reports = oracle.packed(labels, 3), oracle.release(labels, 3)
    assert packed.shape == (1000, -(-k // 8))
    assert np.array_equal(packed, np.packbits(reports, axis=-1))
    assert np.array_equal(oracle.decode_packed(packed), oracle.decode(reports))
    assert oracle.packed(1, 3).shape == packed.shape[1:]
    assert oracle.packed([], 3).shape == (0, packed.shape[1])


def test_packed_bits_follow_the_density():
    oracle = UnaryEncoding(5, 0.6, 0.3)
    reports = np.unpackbits(oracle.packed(np.full(1_000_000, 4), 5), axis=-1, count=5)
    assert fit(oracle, 4, reports) > FALSE_ALARM_RATE


def test_packed_reports_that_are_none():
    oracle = UnaryEncoding(9, 0.6, 0.3)
    packed = oracle.packed([1, 2], 0)
    for bad in (packed[0], packed[:0], packed.astype(int), packed[:, :1]):
        with pytest.raises(ParameterError, match="packed must be"):
            oracle.decode_packed(bad)


def test_packed_bits_never_have_a_byte_each():
    oracle, labels = UnaryEncoding(100, 0.5, 0.2), np.zeros(1_000_000, dtype=np.intp)
    tracemalloc.start()
    packed = oracle.packed(labels, 1)
    oracle.decode_packed(packed)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < packed.nbytes + 20_000_000  # a hundred million bits


def test_decoding_does_not_hold_a_number_for_every_user_and_label():
    for oracle in (LocalHashing(100, 4, 0.5), SubsetSelection(100, 20, 0.5)):
        reports = oracle.release(np.zeros(200_000, dtype=np.intp), 1)
        tracemalloc.start()
        oracle.decode(reports)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 12_000_000


def test_rows_of_sylvester():
    matrix = np.ones((1, 1))
    for _ in range(4):
        matrix = np.kron([[1, 1], [1, -1]], matrix)
    rows, columns = np.indices(matrix.shape)
    assert np.array_equal(has_odd_parity(rows & columns), matrix < 0)


def test_primes():
    assert [least_prime_from(n) for n in (2, 3, 4, 14, 24, 90, 100_000)] == [
        2,
        3,
        5,
        17,
        29,
        97,
        100_003,
    ]
    assert least_prime_from(2**31 - 1) == 2**31 - 1


def test_hashes_do_not_overflow():
    oracle = LocalHashing(2**31 - 1, 7, 0.9)
    most = 2**31 - 2
    report = np.array([most, most, (most * most + most) % (2**31 - 1) % 7])
    assert oracle.supports(report, np.array(most))
    assert oracle.is_report(oracle.release([most] * 100, 1)).all()
