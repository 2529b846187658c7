"""Law: of mixtures of shifts, the one with the larger inner products costs more.

That is Kahane's inequality (`docs/proofs/kahane.md`).  Deltas are sums over a grid: of shifts in
the plane, and of two steps of one number each, of which the second depends on the first.
"""

import numpy as np
import pytest

STEP = 0.06
AXIS = np.arange(-9, 9 + STEP, STEP)
ERROR = 1e-6  # of the sums; a law that did not hold would be off by far more
EPSILONS = (-0.7, 0.0, 0.5, 1.5, 3.0)


def density(x, shift):
    return np.exp(-((x - shift) ** 2) / 2) / np.sqrt(2 * np.pi)


def deltas(p, q):
    """Both directions of the profile, at all epsilons, of two densities on the grid."""
    cell = STEP**p.ndim
    pairs = [(a, b) for a in (p, q) for b in (p, q) if a is not b]
    return np.array(
        [[np.maximum(a - np.exp(e) * b, 0).sum() * cell for e in EPSILONS] for a, b in pairs]
    )


def deltas_of_shifts(chances, shifts):
    """Of mixtures of N(shift, I) in the plane against N(0, I)."""
    x, y = AXIS[:, None], AXIS[None, :]
    p = sum(
        chance * density(x, a) * density(y, b)
        for chance, (a, b) in zip(chances, shifts, strict=True)
    )
    return deltas(p, density(x, 0.0) * density(y, 0.0))


@pytest.mark.parametrize("seed", range(6))
def test_larger_inner_products_cost_more(seed):
    rng = np.random.default_rng(seed)
    chances = rng.dirichlet(np.ones(4))
    first = rng.uniform(-1.5, 1.5, 4)
    added = rng.uniform(0, 1.0, 4)  # its products with itself are at least 0
    smaller = deltas_of_shifts(chances, np.column_stack([first, np.zeros(4)]))
    larger = deltas_of_shifts(chances, np.column_stack([first, added]))
    assert np.all(smaller <= larger + ERROR)


def test_shifts_that_move_apart_cost_less():
    apart, alike = (deltas_of_shifts((0.5, 0.5), [(1.0, 0.0), (s, 0.0)]) for s in (-1.0, 1.0))
    assert np.all(apart <= alike + ERROR)
    assert apart[0][2] < 0.5 * alike[0][2]


@pytest.mark.parametrize("seed", range(6))
def test_steps_that_depend_on_earlier_ones_cost_no_more(seed):
    # three indices; at each past the shifts have inner products of at most those of the bound
    rng = np.random.default_rng(seed)
    chances = rng.dirichlet(np.ones(3))
    bound = rng.uniform(0.2, 1.5, (2, 3))
    x, y = AXIS[:, None], AXIS[None, :]
    # the second shift of an index is any function of the first output, of at most that size
    sizes = [np.sign(np.sin(rng.uniform(1, 3) * x + rng.uniform(0, 6))) for _ in range(3)]
    firsts = rng.uniform(-1, 1, 3)
    p = sum(
        chance * density(x, turn * bound[0, i]) * density(y, size * bound[1, i])
        for i, (chance, turn, size) in enumerate(zip(chances, firsts, sizes, strict=True))
    )
    adaptive = deltas(p, density(x, 0.0) * density(y, 0.0))
    assert np.all(adaptive <= deltas_of_shifts(chances, bound.T) + ERROR)
