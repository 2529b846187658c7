"""Unbiased reports of vectors and numbers: constants, moments, densities, and their exactness.

Statistical tests have false alarm 1e-9 (Hoeffding, union over coordinates) and fixed seeds.
"""

import math

import mpmath
import numpy as np
import pytest

from accountant import ParameterError, PrivateValueError, Tight, calibrate
from mechanisms import BinaryLabel, CubeLinf, HemisphereL2, PiecewiseUniform, PrivUnit
from mechanisms.families.mean_oracle import gamma_ratio

FALSE_ALARM = 1e-9
KEEP = math.e / (1 + math.e)  # ln-odds 1
ORACLES = [
    HemisphereL2(1, 2.0, KEEP),
    HemisphereL2(7, 2.0, KEEP),
    CubeLinf(3, 2.0, KEEP),
    CubeLinf(6, 2.0, KEEP),
    PrivUnit(2, 0.3, 0.7, 2.0),
    PrivUnit(7, 0.3, 0.7, 2.0),
    BinaryLabel(2.0, KEEP),
    PiecewiseUniform(2.0, KEEP),
]
every_oracle = pytest.mark.parametrize("oracle", ORACLES, ids=repr)


def vectors(oracle, rng, count):
    """Values of an oracle, half of them at full length."""
    return np.stack([np.asarray(oracle.values.example(rng)) for _ in range(count)])


def norm(rows):
    return np.sqrt(np.square(rows).sum(axis=1))[:, None]


# constants


@pytest.mark.parametrize(
    ("dimension", "epsilon", "length"),
    [(1, 1, 2.163953), (2, 1, 3.399130), (10, 0.5, 15.783328), (100, 2, 16.415368)],
)
def test_length_of_the_hemisphere(dimension, epsilon, length):
    keep = 1 / (1 + math.exp(-epsilon))
    assert HemisphereL2(dimension, 1.0, keep).length == pytest.approx(length, abs=1e-6)
    made = calibrate(HemisphereL2, dimension=dimension, radius=1.0, epsilon=epsilon)
    assert made.keep == pytest.approx(keep, rel=1e-6)


@pytest.mark.parametrize("x", [0.5, 1.0, 1.5, 99.5, 100.0, 100.5, 12345.5, 5e8])
def test_gamma_ratio(x):
    exact = mpmath.gammaprod([mpmath.mpf(x) + 0.5], [x])
    assert gamma_ratio(x) == pytest.approx(float(exact), rel=1e-15)


# unbiased


def test_the_label_is_unbiased_by_enumeration():
    oracle = BinaryLabel(2.0, KEEP)
    ends = oracle.support.make_rows()
    for value in np.linspace(-2, 2, 9):
        law = np.exp(oracle.log_density(ends, value))
        assert law @ ends == pytest.approx(value, abs=1e-14)
        assert float(oracle.variance(value)) == pytest.approx(law @ (ends - value) ** 2)


@every_oracle
@pytest.mark.parametrize("seed", range(3))
def test_decode_is_unbiased(oracle, seed):
    rng, n = np.random.default_rng(seed), 400_000
    values = vectors(oracle, rng, 4)
    reports = oracle.release(np.repeat(values, n // 4, axis=0), rng)
    gap = np.abs(oracle.decode(reports) - values.mean(axis=0))
    # Hoeffding: every coordinate of a report lies in an interval of this width
    half = getattr(oracle, "end", None) or np.abs(reports).max() * 1.1
    if isinstance(oracle, (HemisphereL2, PrivUnit)):
        half = oracle.length
    allowed = 2 * half * math.sqrt(math.log(2 * gap.size / FALSE_ALARM) / (2 * n))
    assert gap.max() <= allowed


@every_oracle
def test_moments_are_those_of_the_sampler(oracle):
    rng, n = np.random.default_rng(5), 200_000
    for value in vectors(oracle, rng, 4):
        reports = oracle.release(value, rng, n)
        lengths = np.square(reports).reshape(n, -1).sum(axis=1)
        spread = np.square(reports - value).reshape(n, -1).sum(axis=1)
        for seen, claimed in (
            (lengths, oracle.second_moment(value)),
            (spread, oracle.variance(value)),
        ):
            width = seen.max() - seen.min() + 1e-9 * seen.max()
            allowed = width * math.sqrt(math.log(2 / FALSE_ALARM) / (2 * n))
            assert abs(seen.mean() - float(claimed)) <= allowed
    batch = vectors(oracle, rng, 5)
    assert oracle.variance(batch).shape == (5,)
    one_by_one = [float(oracle.second_moment(value)) for value in batch]
    assert oracle.second_moment(batch) == pytest.approx(one_by_one)


@pytest.mark.parametrize("reports", [[], np.empty((0, 7)), np.zeros(7), np.zeros((2, 2, 7))])
def test_what_is_no_batch_of_reports_is_not_decoded(reports):
    with pytest.raises(ParameterError, match="reports must be"):
        ORACLES[1].decode(reports)


# privacy


@pytest.mark.parametrize("dimension", range(1, 9))
@pytest.mark.parametrize("make", ["hemisphere", "cap"])
def test_density_ratios_on_the_sphere(make, dimension):
    if make == "hemisphere":
        oracle = HemisphereL2(dimension, 2.0, KEEP)
    else:
        oracle = PrivUnit.optimised(max(dimension, 2), 1.0, 2.0)
    epsilon, rng = Tight().epsilon(oracle, 0.0), np.random.default_rng(7)
    size = oracle.dimension
    values = vectors(oracle, rng, 60)
    # full length, opposite, zero, tiny, nearly equal
    values[:4] = np.eye(size)[0] * np.array([2.0, -2.0, 0.0, 1e-310])[:, None]
    values[4] = values[0] * (1 - 1e-15)
    outputs = rng.normal(size=(2000, size))
    outputs[:60] = np.where(norm(values) > 1e-9, values, np.ones(size))
    outputs[100:160] = rng.permutation(values) + 1e-9 * rng.normal(size=(60, size))
    outputs *= oracle.length / norm(outputs)
    logs = np.stack([oracle.log_density(outputs, value) for value in values])
    worst = (logs.max(axis=0) - logs.min(axis=0)).max()
    assert worst <= epsilon + 1e-12
    assert worst >= epsilon - 1e-9
    assert epsilon == pytest.approx(1.0, abs=2e-6)


@pytest.mark.parametrize("dimension", [1, 2, 3, 100])
def test_the_hemisphere_only_chooses_between_a_report_and_its_opposite(dimension):
    oracle = HemisphereL2(dimension, 1.0, KEEP)
    rng = np.random.default_rng(10)
    values = vectors(oracle, rng, 500)
    values[::7] /= norm(values[::7])
    first = oracle.release(values, np.random.default_rng(3))
    for other in (-values, vectors(oracle, rng, 500), np.zeros_like(values)):
        second = oracle.release(other, np.random.default_rng(3))
        same = (first == second).all(axis=1)
        opposite = (first == -second).all(axis=1)
        assert (same ^ opposite).all()
    # full length, and the opposite value: the same bits turn every report over
    mirrored = oracle.release(-values[::7], np.random.default_rng(3))
    assert (mirrored == -oracle.release(values[::7], np.random.default_rng(3))).all()


# values


def test_one_dimension_is_the_label():
    vector, label = HemisphereL2(1, 2.0, KEEP), BinaryLabel(2.0, KEEP)
    cube = CubeLinf(1, 2.0, KEEP)
    assert vector.loss == label.loss
    assert cube.loss.pure == pytest.approx(label.loss.pure, rel=1e-13)
    assert vector.length == pytest.approx(label.length, rel=1e-15)
    assert cube.length == pytest.approx(label.length, rel=1e-15)
    for value in (-2.0, -0.3, 0.0, 1.0):
        # a density relative to half of the sphere each
        for one in (vector.log_density([vector.length], [value]) - math.log(2),
                    cube.log_density([cube.end], [value])):  # fmt: skip
            assert float(one) == pytest.approx(float(label.log_density(label.length, value)))


BALLS = [oracle for oracle in ORACLES if oracle.values.axes == 1]


@pytest.mark.parametrize("oracle", BALLS, ids=repr)
def test_longer_vectors_are_refused_by_index_or_clipped(oracle):
    values = vectors(oracle, np.random.default_rng(2), 5)
    values[3] = 123.456
    with pytest.raises(PrivateValueError) as caught:
        oracle.release(values, 0)
    assert caught.value.index == (3,)
    assert "123" not in str(caught.value)
    fields = {name: getattr(oracle, name) for name in oracle.__slots__}
    clipping = type(oracle)(**{**fields, "longer": "clip"})
    inside = values.copy()
    inside[3] *= 2.0 / (123.456 * (1 if isinstance(oracle, CubeLinf) else oracle.dimension**0.5))
    assert np.array_equal(np.sign(clipping.release(values, 1)), np.sign(oracle.release(inside, 1)))


@pytest.mark.parametrize("make", [BinaryLabel, PiecewiseUniform])
def test_larger_numbers_are_refused_by_index_or_clipped(make):
    with pytest.raises(PrivateValueError) as caught:
        make(2.0, KEEP).release([0.0, 123.456], 0)
    assert caught.value.index == (1,)
    assert "123" not in str(caught.value)
    clipped = make(2.0, KEEP, "clip").release([0.0, 123.456], 0)
    assert np.array_equal(clipped, make(2.0, KEEP).release([0.0, 2.0], 0))


@every_oracle
def test_an_empty_batch_and_no_draws(oracle):
    example = np.asarray(oracle.values.example(np.random.default_rng(1)))
    empty = np.empty((0, *example.shape))
    assert oracle.release(empty, 1).shape == empty.shape
    assert oracle.release(example, 1, 0).shape == empty.shape
    assert np.shape(oracle.release(example, 1)) == example.shape
    assert oracle.log_density(empty, empty, each=True).shape == (0,)


@pytest.mark.parametrize("radius", [1e300, 1e-300])
@every_oracle
def test_extreme_radii_neither_overflow_nor_vanish(oracle, radius):
    fields = {name: getattr(oracle, name) for name in oracle.__slots__}
    fields["bound" if isinstance(oracle, BinaryLabel) else "radius"] = radius
    extreme = type(oracle)(**fields)
    rng = np.random.default_rng(4)
    values = vectors(oracle, rng, 50) / 2.0 * radius * (1 - 1e-15)
    reports = extreme.release(values, 1)
    assert np.isfinite(reports).all()
    # the same bits make the same reports in other units
    usual = oracle.release(vectors(oracle, np.random.default_rng(4), 50), 1)
    assert reports / radius == pytest.approx(usual / 2.0, rel=1e-9)
    assert np.isfinite(extreme.log_density(reports, values))


@every_oracle
def test_tiny_values_are_nearly_nothing(oracle):
    shape = np.shape(oracle.values.example(np.random.default_rng(1)))
    tiny = np.full((2000, *shape), 5e-324)
    reports = oracle.release(tiny, 3)
    assert np.isfinite(reports).all()
    assert np.isfinite(oracle.log_density(reports, tiny))
    if not isinstance(oracle, PiecewiseUniform):
        signs = np.sign(reports).reshape(2000, -1).mean(axis=0)
        assert np.abs(signs).max() <= math.sqrt(2 * math.log(2 * 8 / FALSE_ALARM) / 2000)


@pytest.mark.parametrize("oracle", BALLS, ids=repr)
def test_draws_of_the_zero_vector_are_independent(oracle):
    zero, n = np.zeros(oracle.dimension), 100_000
    reports = oracle.release(zero, 3, n) / oracle.length
    allowed = math.sqrt(2 * math.log(2 * zero.size**2 / FALSE_ALARM) / n)
    assert np.abs(reports.mean(axis=0)).max() <= allowed
    # uncorrelated, and every coordinate has its share of the length
    assert np.abs(reports.T @ reports / n - np.eye(zero.size) / zero.size).max() <= allowed


@every_oracle
def test_outputs_that_cannot_be_have_no_density(oracle):
    value = np.asarray(oracle.values.example(np.random.default_rng(1)))
    far = np.full(value.shape, 1e3)
    for output in (far, np.zeros_like(value)):
        if not (isinstance(oracle, PiecewiseUniform) and not output.any()):
            assert oracle.log_density(output, value) == -np.inf
