"""Packings: checked distances, counts against enumeration, and how far an impossible one got."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import kstest

from accountant.errors import ParameterError
from audits.minimax import SparsePacking, disjoint_packing, greedy_packing, random_packing
from audits.minimax.families.packings import least_distance, log_points, log_points_printed


def _hamming(rows):
    pairs = itertools.combinations(rows.tolist(), 2)
    return min(sum(x != y for x, y in zip(a, b, strict=True)) for a, b in pairs)


BUILT = [
    greedy_packing(12, 3, 40, 3),
    random_packing(200, 6, 50, 8, np.random.default_rng(2)),
    disjoint_packing(20, 4, 10),
]


@pytest.mark.parametrize(
    ("rows", "distance", "s"), list(zip(BUILT, (3, 8, 4), (3, 6, 4), strict=True))
)
def test_rows_keep_their_distance(rows, distance, s):
    assert _hamming(rows) >= distance
    assert least_distance(rows) == _hamming(rows)
    assert (np.count_nonzero(rows, axis=1) == s).all()
    assert set(np.unique(rows)) <= {-1, 0, 1}


def test_an_impossible_packing_says_how_far_it_got():
    with pytest.raises(ParameterError, match="at most 2, the number found at distance 4"):
        greedy_packing(4, 4, 3, 4)
    with pytest.raises(ParameterError, match="in 500 random draws"):
        random_packing(6, 2, 60, 4, np.random.default_rng(0), tries=500)
    with pytest.raises(ParameterError, match="at most 4, as there are 2 blocks of 3"):
        disjoint_packing(7, 3, 5)
    with pytest.raises(ParameterError, match="distance"):
        greedy_packing(10, 2, 3, 5)


@pytest.mark.parametrize(("p", "s"), [(5, 2), (6, 3), (5, 4)])
def test_the_count_is_gilberts(p, s):
    vectors = []
    for places in itertools.combinations(range(p), s):
        for signs in itertools.product((1, -1), repeat=s):
            row = np.zeros(p)
            row[list(places)] = signs
            vectors.append(row)
    every = np.array(vectors)
    squared = ((every - every[0]) ** 2).sum(axis=1)
    for q in range(1, 4 * s + 1):
        near = int((squared < q).sum())
        count = log_points(p, s, q)
        assert count <= math.log(len(every) / near)
        assert count == pytest.approx(math.log(len(every) / near), abs=1e-8)
        # and a largest packing, taken greedily, has as many
        kept = []
        for row in every:
            if all(((row - other) ** 2).sum() >= q for other in kept):
                kept.append(row)
        assert math.log(len(kept)) >= count


@pytest.mark.parametrize(("p", "s"), [(1, 1), (2, 2), (5, 2)])
def test_no_two_vectors_are_farther_apart_than_a_vector_and_its_negative(p, s):
    assert log_points(p, s, 4 * s + 1) == 0.0


@pytest.mark.parametrize(("p", "s"), [(10, 3), (1000, 5), (100, 60), (400, 100)])
def test_the_printed_count_is_within_the_true_one(p, s):
    assert 3 * s < 2 * p
    # squared distance is at least the number of places
    assert log_points_printed(p, s) <= log_points(p, s, math.ceil(s / 2))


def test_the_packing_as_a_construction():
    family = SparsePacking(BUILT[1], 0.9, 0.25)
    assert family.points == 50
    assert family.s == 6
    assert family.distance == least_distance(BUILT[1])
    points = np.array([family.parameter(i) for i in range(50)])
    assert np.linalg.norm(points, axis=1) == pytest.approx(np.full(50, 0.9))
    apart = min(np.linalg.norm(a - b) for a, b in itertools.combinations(points, 2))
    assert family.separation <= apart
    assert family.separation == pytest.approx(apart)
    assert [family.decode(point) for point in points] == list(range(50))
    x, y = family.sample(7, 20_000, np.random.default_rng(3))
    noise = y - x @ points[7]
    assert np.abs(noise).max() <= 0.25
    # false alarms: 1e-6
    assert kstest(noise, "uniform", args=(-0.25, 0.5)).pvalue > 1e-6
    assert x.dtype == np.int8
    assert set(np.unique(x)) == {-1, 1}
    for wrong in (-1, 50):
        with pytest.raises(ParameterError, match="which must be"):
            family.parameter(wrong)
    vectors = SparsePacking(BUILT[1].astype(float), 0.9).vectors
    assert vectors.dtype == np.int8
    assert not vectors.flags.writeable
    assert np.array_equal(vectors, BUILT[1])


def test_pairs_are_not_far_apart_in_the_mean():
    # over all ordered pairs ||v - w||^2 is 2 s at most, 2 s less the mean's square
    for rows in BUILT:
        wide = rows.astype(float)
        mean = ((wide[:, None] - wide) ** 2).sum(axis=2).mean()
        assert mean <= 2 * np.count_nonzero(rows[0])


@pytest.mark.parametrize(
    "rows", [np.zeros((3, 4)), np.array([[1, 0], [1, 1]]), np.array([[2, 0], [0, 2]]), np.ones(3)]
)
def test_what_is_no_packing_is_refused(rows):
    with pytest.raises(ParameterError, match="vectors"):
        SparsePacking(rows, 1.0)


def test_shifted_uniforms():
    # TV of U[u - C, u + C] and the same at 0 is min(1, |u| / (2C)): a grid's overlap
    grid, c = np.linspace(-6, 6, 1_200_001), 1.3
    for u in (0.1, 1.0, 3.0):
        densities = [np.where(np.abs(grid - at) <= c, 1 / (2 * c), 0.0) for at in (0.0, u)]
        apart = np.abs(densities[0] - densities[1]).sum() * (grid[1] - grid[0]) / 2
        assert apart == pytest.approx(min(1, u / (2 * c)), abs=1e-4)
