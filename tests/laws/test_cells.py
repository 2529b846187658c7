"""Law: samplers of cells follow the exact masses, and choose by exact comparisons.

Masses are fractions, or decimals of sixty digits where they are exponentials.  The gap between
draws and masses stays within Hoeffding's bound, false alarm 1e-9.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from mechanisms import piecewise_uniform
from mechanisms.exact_noise import integer_directions
from mechanisms.exact_noise.exponential_coins import exponential_bounds
from mechanisms.exact_noise.integer_directions import Tilt, directions, in_cap, integer_axes
from mechanisms.exact_noise.integer_noise import IntegerNoise, proposal_table
from mechanisms.exact_noise.integer_staircase import IntegerStaircase
from mechanisms.piecewise_uniform import PiecewiseUniform, piece_cells, relative_step
from tests.laws.common import FALSE_ALARM_RATE

DRAWS = 300_000


@dataclass(frozen=True, eq=False)
class Cells:
    """A sampler of integers, and the weight of each."""

    draw: Callable
    weights: dict[int, Fraction]


def violation(cells: Cells) -> str:
    """Where draws lie off the masses; "" where they do not."""
    draws, total = cells.draw(DRAWS, np.random.default_rng(3)), sum(cells.weights.values())
    found, counts = np.unique(draws, return_counts=True)
    seen = dict(zip(found.tolist(), counts.tolist(), strict=True))
    if not set(seen) <= set(cells.weights):
        return f"{min(set(seen) - set(cells.weights))} is impossible"
    allowed = math.sqrt(math.log(2 * len(cells.weights) / FALSE_ALARM_RATE) / (2 * DRAWS))
    for k, weight in cells.weights.items():
        gap = abs(seen.get(k, 0) / DRAWS - float(weight / total))
        if not gap <= allowed:
            return f"gap {gap:.5f} at {k}, allowed {allowed:.5f}"
    return ""


def power_of_e(exponent: Fraction) -> Fraction:
    """A fraction within 1e-60 of ``e^exponent``."""
    with localcontext(prec=70):
        return Fraction((Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp())


def truncated(width: float, reach: int) -> Cells:
    """Truncated Laplace noise, in cells."""
    law = IntegerNoise(width, 1, reach=reach, cells=True)
    sizes = {j: power_of_e(-j / Fraction(width)) for j in range(reach + 1)}
    return Cells(law.draw, sizes | {-1 - j: weight for j, weight in sizes.items()})


def staircase(stair: int, upper: int, width: float) -> Cells:
    """Staircase noise; what lies beyond the last cell has a mass below 1e-20."""
    law, fall = IntegerStaircase(stair, upper, width), 1 / Fraction(width)
    ends = math.ceil(46 * width + 2) * stair
    sizes = {j: power_of_e(-fall * ((j - upper) // stair + 1)) for j in range(ends)}
    return Cells(law.draw, sizes | {-1 - j: weight for j, weight in sizes.items()})


TRUNCATED = [(1.0, 3), (3.7, 0), (3.7, 20), (40.0, 7), (0.3, 40), (1000.0, 90)]
STAIRCASES = [(5, 2, 1.0), (5, 4, 0.2), (2, 1, 3.3), (7, 1, 0.5)]


@pytest.mark.parametrize("given", TRUNCATED, ids=str)
def test_truncated_noise_has_its_masses(given):
    assert violation(truncated(*given)) == ""


@pytest.mark.parametrize("given", STAIRCASES, ids=str)
def test_stairs_have_their_masses(given):
    assert violation(staircase(*given)) == ""


CUT = [given for given in TRUNCATED if given[1] < 49 * given[0]]  # the others have a tail


@pytest.mark.parametrize("given", [*CUT, (1.7 * 2.0**40, 2**41), (2.0**41, 2**31)], ids=str)
def test_the_integer_weights_lie_above_the_masses_and_cover_the_cells(given):
    # a proposal is accepted with probability mass / weight: that is exact where it is at most 1
    law = IntegerNoise(given[0], 1, reach=given[1], cells=True)
    table = proposal_table(law)
    lengths = [int(end) - int(start) for start, end in zip(table.starts, table.ends, strict=True)]
    for block, length in enumerate(lengths[:-1]):
        _, high = exponential_bounds(law.exact_energy(block << table.shift), 60)
        assert length >= Fraction(table.height_at_zero) * high
    assert lengths[-1] == 0
    assert table.count << table.shift > given[1] >= (table.count - 1) << table.shift
    assert 0.999 * 2**63 < int(table.ends[-1]) < 2**63


@pytest.mark.parametrize("given", [*STAIRCASES, (2**40 + 1, 2**39, 1.0), (2**40, 1000, 0.01)])
def test_the_first_level_has_its_share(given):
    law = IntegerStaircase(*given)
    share, b = law.first_level(60)[0], exponential_bounds(1 / Fraction(law.width), 60)[0]
    first, second = share / law.upper, (1 - share) * (1 - b) / law.stair
    assert abs(second / first - b) < Fraction(1, 10**50) * b
    for k in range(-3 * 5, 3 * 5):
        assert law.level(k) == law.level(-1 - k)


def cells_of_pieces(made: PiecewiseUniform, start: int, centres: int) -> dict[int, Fraction]:
    """The mass of every cell of the outputs."""
    piece, keep = piece_cells(made.keep), Fraction(made.keep)
    inside = range(start, start + piece)
    return {
        cell: keep / piece if cell in inside else (1 - keep) / (2 * centres)
        for cell in range(2 * centres + piece)
    }


def piece_violation(pieces: Callable[[float], int]) -> str:
    """Where a piece of so many cells costs more than is claimed, or a report is biased."""
    for keep in (0.5 + 1e-9, 0.55, 0.6224593312018546, 0.9, 1 - 1e-9):
        piece, share = pieces(keep), Fraction(keep)
        ratio = share / piece / ((1 - share) / (2 * piecewise_uniform.CENTRES))
        if ratio > (share / (1 - share)) ** 2:
            return f"a ratio beyond the claim at keep={keep}"
    return ""


def test_a_piece_costs_what_is_claimed():
    assert piece_violation(piece_cells) == ""


@pytest.mark.parametrize("keep", [0.55, 0.75, 0.97])
def test_pieces_have_their_masses_and_the_number_as_mean(keep, monkeypatch):
    centres = 8  # few enough to list
    monkeypatch.setattr(piecewise_uniform, "CENTRES", centres)
    for cached in (piece_cells, relative_step):
        cached.cache_clear()
    made = PiecewiseUniform(2.0, keep)
    piece, step = piece_cells(keep), relative_step(keep)
    for start in range(0, 2 * centres + 1, 4):
        value = 2.0 * (start - centres) / centres
        masses = cells_of_pieces(made, start, centres)
        assert sum(masses.values()) == 1
        mean = sum(
            mass * (cell + Fraction(1, 2) - centres - Fraction(piece, 2))
            for cell, mass in masses.items()
        )
        assert float(mean) * step == pytest.approx((start - centres) / centres, abs=1e-14)

        def draw(size, rng, value=value):
            reports = made.release(value, rng, size)
            return np.rint(reports / 2.0 / step + centres + piece / 2 - 0.5).astype(int)

        assert violation(Cells(draw, masses)) == ""
    for cached in (piece_cells, relative_step):
        cached.cache_clear()


def cap_violation(inside: Callable) -> str:
    """Where vectors on the edge of a cap, or next to it, are put on the wrong side."""
    rng = np.random.default_rng(4)
    edges = np.array([[3.0, 4.0], [3.0, 4.0], [-3.0, 4.0], [0.0, 1.0]]) * 2.0**40
    axes = np.array([[1.0, 0.0]] * 4) * 2.0**44
    anywhere = np.rint(2.0**44 * rng.normal(size=(2, 50, 5)))
    rows = [(edges, axes), (anywhere[0], anywhere[1])]
    for height in (0.6, math.nextafter(0.6, 1.0), math.nextafter(0.6, 0.0), 1e-300):
        for vectors, along in rows:
            expected = []
            for u, t in zip(vectors.astype(int).tolist(), along.astype(int).tolist(), strict=True):
                dot = sum(map(int.__mul__, u, t))
                squares = sum(x * x for x in u) * sum(x * x for x in t)
                expected.append(dot >= 0 and dot * dot >= Fraction(height) ** 2 * squares)
            if inside(vectors, along, height).tolist() != expected:
                return f"a vector on the wrong side of the edge at {height!r}"
    return ""


def test_integers_decide_who_is_in_a_cap():
    assert cap_violation(in_cap) == ""


COARSE = IntegerNoise(64.0, 2)
TILTED_AXIS, TILTED_HEIGHT = np.array([[3.0, 1.0]]), 0.5
EVERYWHERE = np.stack(np.meshgrid(*[np.arange(-500.0, 501.0)] * 2), axis=-1).reshape(-1, 2)


def coarse_cap() -> np.ndarray:
    """Every integer vector that is not shorter than one width and within the cap, by integers."""
    squares, along = np.square(EVERYWHERE).sum(axis=1), EVERYWHERE @ TILTED_AXIS[0]
    inside = (squares >= 64**2) & (along >= 0) & (4 * along**2 >= squares * 10)
    return EVERYWHERE[inside]


def coarse_cell(vectors):
    """The ring of a vector, and its side of the axis."""
    rings = np.square(vectors).sum(axis=1) // 64**2
    across = vectors @ [-1.0, 3.0] > 0
    return (2 * np.minimum(rings, 14) + across).astype(int)


def tilt_violation(patched: tuple) -> str:
    """Where vectors of a cap are off their law, perhaps with a function of a name replaced."""
    vectors = coarse_cap()
    weights = np.exp(-np.square(vectors).sum(axis=1) / (2 * 64**2))
    cells = np.bincount(coarse_cell(vectors), weights)

    def draw(size, rng):
        with pytest.MonkeyPatch.context() as patch:
            if patched:
                patch.setattr(integer_directions, *patched)
            axes, capped = np.repeat(TILTED_AXIS, size, axis=0), np.ones(size, dtype=bool)
            drawn = directions(axes, capped, TILTED_HEIGHT, rng, law=COARSE)
        impossible = ~in_cap(drawn, axes, TILTED_HEIGHT) | (np.square(drawn).sum(axis=1) < 64**2)
        return np.where(impossible, -1, coarse_cell(drawn))

    return violation(Cells(draw, {k: Fraction(x) for k, x in enumerate(cells.tolist())}))


def test_vectors_of_a_cap_have_their_law():
    assert tilt_violation(()) == ""


def test_no_vector_of_the_cap_is_out_of_the_proposals_reach():
    tilt = Tilt.towards(TILTED_AXIS, TILTED_HEIGHT, COARSE)
    shift, vectors = tilt.shifts[0], coarse_cap()
    assert shift.any()
    assert tilt.least[0] > 0
    assert (vectors @ shift >= tilt.least[0]).all()
    assert ((vectors - shift) @ TILTED_AXIS[0] > 0).all()
    # the bound is near the least product, and a shift beyond the cap's edge would leave some out
    assert (vectors @ shift).min() < 1.3 * tilt.least[0]
    assert not ((vectors - 1.3 * shift) @ TILTED_AXIS[0] > 0).all()


@pytest.mark.parametrize("p", [2, 3, 100, 1000])
@pytest.mark.parametrize("height", [1e-300, 2.0**-45, 0.01, 0.3, 0.9])
def test_the_vectors_of_the_edge_are_in_reach(p, height):
    rng, least = np.random.default_rng(p), p - math.isqrt(p // 2)
    axes = integer_axes(rng.normal(size=(20, p)) * 10.0 ** rng.integers(-9, 1, (20, p)))
    tilt = Tilt.towards(axes, height, integer_directions.LAW)
    assert tilt.shifts.any() == (height > 1e-3)
    for axis, shift, bound in zip(axes, tilt.shifts, tilt.least, strict=True):
        aside = rng.normal(size=p)
        aside -= (aside @ axis) / (axis @ axis) * axis
        unit = height * axis / np.sqrt(axis @ axis)
        unit += math.sqrt(1 - height**2) * aside / np.sqrt(aside @ aside)
        # just beyond the edge and the least length, by more than floats are wrong by
        found = np.rint(unit * math.sqrt(least) * 2.0**44)
        found += np.rint(axis / np.abs(axis).max() * 2.0**12 * math.sqrt(p))
        u, t, m = ([int(x) for x in row] for row in (found, axis, shift))
        dot = sum(map(int.__mul__, u, t))
        if dot >= 0 and dot**2 >= Fraction(height) ** 2 * sum(x * x for x in u) * sum(
            x * x for x in t
        ) and sum(x * x for x in u) >= least * 2**88:  # fmt: skip
            assert sum(map(int.__mul__, u, m)) >= int(bound)
            assert dot - sum(map(int.__mul__, m, t)) > 0
