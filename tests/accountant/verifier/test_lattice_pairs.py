"""Parts of outcomes on the points of a lattice: delta above, or below, at every epsilon."""

import math

import numpy as np
import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

from flint import arb, ctx

from accountant.verifier import lattice_pairs
from accountant.verifier.cells import Cell
from accountant.verifier.document import NoProof
from accountant.verifier.lattice_pairs import on_points

ROUND_OFF = 1e-12
POINTS = np.linspace(-5, 5, 201)


@pytest.fixture(autouse=True)
def precision():
    with ctx.workprec(128):
        yield


def delta(masses, epsilons=POINTS):
    """Sum (p - e^eps q)_+ over outcomes."""
    p, q = np.array(masses).T
    return np.maximum(p - np.exp(epsilons)[:, None] * q, 0).sum(axis=1)


def delta_on_points(pair, h, epsilons=POINTS):
    """Delta of a pair on the lattice."""
    losses = (pair.first + np.arange(len(pair.masses))) * h - float(pair.moved)
    gain = np.maximum(-np.expm1(epsilons[:, None] - losses), 0)
    return float(pair.infinite) + gain @ np.array(list(map(float, pair.masses)))


def random_masses(seed):
    """Outcomes by growing loss, some close together and some far apart."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 25))
    loss = np.sort(rng.choice([0.1, 1.0, 3.0]) * rng.normal(size=size) + rng.normal())
    p = rng.dirichlet(np.ones(size)) * rng.uniform(0.2, 1.0)
    return list(zip(p, p * np.exp(-loss), strict=True))


def atoms(masses):
    """A part for each outcome of one loss."""
    losses = [math.log(p / q) if q else None for p, q in masses]
    balls = [None if loss is None else (arb(p) / arb(q)).log()
             for loss, (p, q) in zip(losses, masses, strict=True)]  # fmt: skip
    return [Cell(arb(p), arb(q), loss, loss) for loss, (p, q) in zip(balls, masses, strict=True)]


@pytest.mark.parametrize("h", [0.0625, 0.25, 1.0])
@pytest.mark.parametrize("moved", [0.0, -0.3, 0.15625])
def test_single_losses_move_to_points_on_either_side(h, moved):
    for seed in range(12):
        masses = random_masses(seed)
        truth, far = delta(masses), {1: -h, -1: h}
        for above, sign in ((True, 1), (False, -1)):
            pair = on_points(atoms(masses), arb(moved), arb(h), above=above)
            found = delta_on_points(pair, h)
            assert (sign * (found - truth) >= -ROUND_OFF).all(), (seed, above)
            # no loss moves farther than one step
            assert (sign * (found - delta(masses, POINTS + far[sign])) <= ROUND_OFF).all()
            assert float(pair.infinite) == 0
            assert float(pair.moved) == moved
            assert sum(map(float, pair.masses)) == pytest.approx(sum(p for p, _ in masses))
            assert min(map(float, pair.masses)) >= -ROUND_OFF


@pytest.mark.parametrize("h", [0.125, 0.5])
def test_parts_of_several_losses_keep_their_masses(h):
    for seed in range(12):
        masses = random_masses(seed)
        rng = np.random.default_rng(seed)
        parts, joined = [], []
        place = 0
        while place < len(masses):
            some = masses[place : place + int(rng.integers(1, 5))]
            losses = [math.log(p / q) for p, q in some]
            p, q = np.sum(some, axis=0)
            parts.append(Cell(arb(p), arb(q), arb(min(losses) - 1e-9), arb(max(losses) + 1e-9)))
            joined.append((p, q))
            place += len(some)
        above, below = (on_points(parts, arb(0), arb(h), above=above) for above in (True, False))
        assert (delta_on_points(above, h) >= delta(masses) - ROUND_OFF).all()
        assert (delta_on_points(below, h) <= delta(joined) + ROUND_OFF).all()
        p, q = np.array(joined).sum(axis=0)
        losses = (above.first + np.arange(len(above.masses))) * h
        assert sum(map(float, above.masses)) == pytest.approx(p)
        if all(cell.low + 2e-8 < cell.high for cell in parts):  # each part is split
            assert np.array(list(map(float, above.masses))) @ np.exp(-losses) == pytest.approx(q)


@pytest.mark.parametrize("moved", [0.0, 0.3])
def test_losses_without_ends_move_up_and_those_of_q_alone_are_left_out(moved):
    p, q = [0.25, 0.125, 0.5, 0.125], [0.125, 0.125, 0.25, 0.0]
    lows = [None, arb(-0.25), arb(0.5), None]
    highs = [arb(0.75), arb(0.25), None, None]
    parts = [Cell(arb(a), arb(b), *ends) for a, b, *ends in zip(p, q, lows, highs, strict=True)]
    above = on_points(parts, arb(moved), arb(0.5), above=True)
    assert float(above.infinite) == 0.625
    # the first part may have any loss up to 0.75: all of its mass is at the point above
    assert (delta_on_points(above, 0.5) >= delta([(0.25, 0.25 * math.exp(-0.75)), (0.125, 0.125),
                                                  (0.625, 0.0)]) - ROUND_OFF).all()  # fmt: skip
    below = on_points(parts, arb(moved), arb(0.5), above=False)
    assert float(below.infinite) == 0.125
    listed = [(a, b) for a, b in zip(p, q, strict=True)]
    assert (delta_on_points(below, 0.5) <= delta(listed) + ROUND_OFF).all()
    only_q = on_points([Cell(arb(0), arb(0.5), None, None)], arb(0), arb(0.5), above=False)
    assert (delta_on_points(only_q, 0.5) == 0).all()


def test_a_loss_on_a_point_stays_there_above():
    for point in (-2, 0, 3):
        loss = arb(point) / 2
        part = Cell(arb(0.5), arb(0.5) * (-loss).exp(), loss, loss)
        found = on_points([part], arb(0), arb(0.5), above=True)
        truth = delta([(0.5, 0.5 * math.exp(-point / 2))])
        assert delta_on_points(found, 0.5) == pytest.approx(truth, abs=ROUND_OFF)


def test_a_part_of_unknown_mass_proves_nothing_below():
    unsure = Cell(arb(0.5, 0.6), arb(0.5), arb(-1), arb(1))
    sure = Cell(arb(0.25), arb(0.25), arb(0), arb(0))
    found = on_points([unsure, sure], arb(0), arb(0.5), above=False)
    assert sum(map(float, found.masses)) == 0.25
    unsure = Cell(arb(0.5), arb(0.0, 1e-9), None, None)
    assert float(on_points([unsure, sure], arb(0), arb(0.5), above=False).infinite) == 0


def test_a_lattice_pair_has_few_points(monkeypatch):
    parts = atoms([(0.25, 0.25 * math.exp(1.99)), (0.5, 0.5 * math.exp(-2.01))])
    monkeypatch.setattr(lattice_pairs, "MOST_POINTS", 10)
    for above in (True, False):
        found = on_points(parts, arb(0), arb(0.5), above=above)
        assert len(found.masses) <= 10
    monkeypatch.setattr(lattice_pairs, "MOST_POINTS", len(found.masses) - 1)
    with pytest.raises(NoProof, match="too fine"):
        on_points(parts, arb(0), arb(0.5), above=False)
    assert on_points([], arb(0), arb(0.5), above=True).masses == [0]
