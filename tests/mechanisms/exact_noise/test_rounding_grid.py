"""Releases on a grid: points, floats, and sums beyond 64 bits."""

import math
from fractions import Fraction

import numpy as np
import pytest

from accountant import PrivateValueError
from mechanisms import Exponential, Gaussian, Laplace, NoisyMax, Staircase, TruncatedLaplace
from mechanisms.exact_noise import rounding_grid as grid
from mechanisms.exact_noise.integer_noise import IntegerNoise
from mechanisms.exact_noise.integer_staircase import IntegerStaircase


@pytest.mark.parametrize("cls", [Laplace, Gaussian])
def test_exact_scalars_cross_the_border_of_64_bits(cls):
    made = cls(1.0, 1.0, "exact")
    for value in (2.0**22 - 1, 2.0**22, -(2.0**22), 1e300):
        assert abs(made.release(value, 0) - value) < 50
        assert made.release([value], 0).shape == (1,)


@pytest.mark.parametrize("cls", [Laplace, Gaussian])
@pytest.mark.parametrize("scale", [1e-300, 1e-5, 1.0, 3.7, 1e300])
def test_exact_releases_are_points_of_the_grid_or_nearest_floats(cls, scale):
    made = cls(scale, scale, "exact")
    rng = np.random.default_rng(8)
    values = np.concatenate([rng.normal(size=50) * scale * 2.0 ** rng.integers(-60, 30, 50), [0.0]])
    step = grid.grid_step(scale)
    released = made.release(values, 1)
    assert np.isfinite(released).all()
    with np.errstate(under="ignore"):
        steps = np.ldexp(released, -round(math.log2(step)))
    assert (steps == np.rint(steps)).all()
    # the same noise whatever the value: what is released depends on the rounded value alone
    assert (made.release(grid.round_to_grid(values, scale), 1) == released).all()


def test_huge_values_neither_overflow_nor_lose_the_noise_of_the_sum():
    made = Laplace(1.0, 1.0, "exact")
    largest = np.finfo(float).max
    assert made.release([largest, -largest], 1).tolist() == [largest, -largest]
    # at 2^70 neighbouring floats are 2^18 apart: an exact sum, rounded once
    assert set(made.release(np.full(100, 2.0**70), 1).tolist()) == {2.0**70}
    # 2^22 scales away from 0, floats are finer than the noise, and 64 bits are too few for it
    far = made.release(np.full(1000, 2.0**23), 1)
    assert len(set(far.tolist())) == 1000
    assert abs(np.mean(far - 2.0**23)) < 0.5


@pytest.mark.parametrize("scale", [1e-3, 1.0, 700.0])
@pytest.mark.parametrize("cls", [Laplace, Gaussian, TruncatedLaplace, NoisyMax, Exponential])
def test_exact_noise_is_around_the_grid_point_and_other_noise_around_the_value(cls, scale):
    more = (1e-6,) if cls is TruncatedLaplace else ()
    exact = cls(scale, scale, *more, arithmetic="exact")
    values = np.random.default_rng(3).normal(size=50) * 40.0 * scale
    step = Fraction(grid.grid_step(scale))
    for value, centre in zip(values, exact.noise_centre(values), strict=True):
        assert abs(Fraction(centre) - Fraction(value)) <= step / 2
        assert (Fraction(centre) / step).denominator == 1
    assert np.any(exact.noise_centre(values) != values)
    if cls in (Laplace, Gaussian):
        idealised = cls(scale, scale, arithmetic="idealised")
        assert np.array_equal(idealised.noise_centre(values), values)


@pytest.mark.parametrize("dimension", [None, 1, 4])
@pytest.mark.parametrize("cls", [Laplace, Gaussian])
def test_neighbours_are_a_sensitivity_apart(cls, dimension):
    made, rng = cls(2.0, sensitivity=3.0, dimension=dimension), np.random.default_rng(5)
    example = made.values.example(rng)
    assert np.size(example) <= (dimension or 2)
    moved = [np.abs(made.values.neighbour(example, rng) - example).sum() for _ in range(40)]
    assert max(moved) == pytest.approx(3.0)
    if dimension == 4:
        with pytest.raises(PrivateValueError):
            made.values.check(np.zeros(dimension + 1))


@pytest.mark.parametrize("cls", [Laplace, Gaussian])
def test_rounding_is_paid_for(cls):
    rng = np.random.default_rng(9)
    made = cls(1.0, 0.25, "exact", 3)
    step, order = grid.grid_step(1.0), 1 if cls is Laplace else 2
    worst = 0.0
    for _ in range(2000):
        x = rng.normal(size=3) + rng.choice([0.0, 0.5 * step], 3)
        move = rng.normal(size=3)
        move *= 0.25 / np.linalg.norm(move, order)
        moved = grid.round_to_grid(x + move, 1.0) - grid.round_to_grid(x, 1.0)
        worst = max(worst, np.linalg.norm(moved, order))
    loss = made.loss
    paid = loss.shift if cls is Laplace else loss.mu
    assert worst > 0.25
    # the cost is that of the sensitivity alone: the noise is wider by what rounding moves
    assert worst / made.drawn_scale <= paid == 0.25
    assert cls(1.0, 0.25, "exact").release([1.0, 2.0], 1).shape == (2,)
    with pytest.raises(ValueError, match="at most 3 coordinates"):
        made.release(np.zeros(4), 1)


@pytest.mark.parametrize("scale", [1e-300, 0.5, 1.0, 1.999, 3.7, 1e300])
def test_a_scale_is_2_to_the_40_to_41_steps(scale):
    assert 2.0**40 <= scale / grid.grid_step(scale) < 2.0**41


@pytest.mark.parametrize("scale", [1e-300, 0.7, 3.0, 1e300])
def test_a_number_gets_the_sum_that_an_array_gets(scale):
    rng = np.random.default_rng(10)
    steps = [*rng.normal(size=50) * 2.0 ** rng.integers(30, 70, 50), 2.5 * 2.0**-40, 2.0**22]
    for seed, value in enumerate(float(x) * min(scale, 1e280) for x in steps):
        alone = grid.add_grid_noise(
            np.float64(value), scale, scale, 1, np.random.default_rng(seed), ()
        )
        among = grid.add_grid_noise(
            np.array([value]), scale, scale, 1, np.random.default_rng(seed), (1,)
        )
        assert alone == among[0]
        assert type(alone) is np.float64


@pytest.mark.parametrize(("cls", "most"), [(Laplace, 1024), (Gaussian, 1024**2)])
def test_an_array_of_any_shape_gets_noise_for_its_size(cls, most):
    made = cls(1.0, 1024 * grid.grid_step(1.0))
    assert made.dimension is None
    for size in (1, 7, most - 1):
        declared = cls(1.0, made.sensitivity, dimension=size)
        assert made.drawn_scale_of(size) == declared.drawn_scale > 1.0
    assert made.release(np.zeros((3, 7)), 0).shape == (3, 7)
    # the noise of a matrix is as wide as its size asks
    wide = grid.add_grid_noise(
        np.zeros(21), 1.0, made.drawn_scale_of(21), made.power, np.random.default_rng(0), (21,)
    )
    assert made.release(np.zeros((3, 7)), 0).ravel().tolist() == wide.tolist()
    with pytest.raises(PrivateValueError, match="dimension=n"):
        made.drawn_scale_of(most + 1)
    assert cls(1.0, made.sensitivity, dimension=2 * most).loss != made.loss


@pytest.mark.parametrize(("cls", "power"), [(Laplace, 1), (Gaussian, 2)])
@pytest.mark.parametrize("most", [1, 2, 3, 20])
def test_an_array_is_refused_where_rounding_moves_it_by_more_than_the_sensitivity(cls, power, most):
    sensitivity = (most + 0.5) ** (1 / power) * grid.grid_step(1.0)
    made = cls(1.0, sensitivity)
    for size in range(1, most + 1):
        share = size ** (1 / power) * grid.grid_step(1.0) / sensitivity
        assert made.drawn_scale_of(size) == pytest.approx(1 + share, rel=1e-8)
    for size in (most + 1, most + 2):
        with pytest.raises(PrivateValueError, match="dimension=n"):
            made.drawn_scale_of(size)
        assert cls(1.0, sensitivity, dimension=size).drawn_scale == 1.0
    # one number is never refused: its loss states what rounding moves
    assert cls(1.0, grid.grid_step(1.0) / 2).drawn_scale_of(1) == 1.0


@pytest.mark.parametrize(
    ("made", "law"),
    [(Staircase(1.0), IntegerStaircase), (TruncatedLaplace(1.0, 11.0), IntegerNoise)],
)
def test_equal_sums_are_equal_floats_on_both_sides_of_64_bits(made, law, monkeypatch):
    # of two values one is added in 64 bits and the other in fractions
    step = grid.grid_step(1.0)
    for border in (2**61, 2**62):
        totals = np.arange(border - 5000, border + 5000)
        nearest = [float(Fraction(2 * total + 1, 2**41)) for total in totals.tolist()]
        for steps in (border - 2**40, border):

            def known(self, size, rng, noise=totals - steps):
                return noise[:size]

            monkeypatch.setattr(law, "draw", known)
            released = made.release(np.full(totals.size, steps * step), 0)
            assert (released == nearest).all()
            assert made.release(steps * step, 0) == nearest[0]
