"""Law: the sampler follows the density.

A million draws; the gap of distribution functions (Dvoretzky-Kiefer-Wolfowitz-Massart) or of
probabilities (Hoeffding) stays within its bound, false alarm 1e-9.  Sees 3 % too little noise.
"""

import numpy as np
import pytest

from mechanisms import Mechanism
from tests.laws.common import FALSE_ALARM, every_mechanism, example_value

DRAWS = 1_000_000


def violation(mechanism: Mechanism) -> str:
    """Where the law fails; "" where it holds."""
    rng = np.random.default_rng(5)
    for _ in range(3):
        value = example_value(mechanism, rng)
        gap, allowed = gap_to_density(mechanism, value, mechanism.release(value, rng, DRAWS))
        if gap > allowed:
            return f"gap {gap:.5f} at {value}, allowed {allowed:.5f}"
    return ""


def gap_to_density(mechanism: Mechanism, value, draws) -> tuple[float, float]:
    """(greatest gap, allowed gap) between draws and the declared density."""
    cells = mechanism.support.cells(value, value)
    if cells is not None:
        expected = cells.measure * np.exp(mechanism.log_density(cells.outputs, value))
        if cells.parts is not None:
            expected = np.bincount(cells.parts, weights=expected)
        seen = np.bincount(cells.locate(draws), minlength=expected.size) / len(draws)
        gap = np.abs(seen - expected).max()
        return gap, np.sqrt(np.log(2 * expected.size / FALSE_ALARM) / (2 * len(draws)))
    draws = np.sort(draws)
    width = draws[-1] - draws[0]
    ends = mechanism.support.ends
    low, high = ends or (draws[0] - width, draws[-1] + width)
    grid = np.linspace(low, high, 200_001)[1:-1]
    density = np.exp(mechanism.log_density(grid, value))
    cdf = np.append(0.0, np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(grid)))
    cdf += np.exp(mechanism.log_density(low, value)) if ends else 0.0
    gap = np.abs(cdf - np.searchsorted(draws, grid, side="right") / draws.size).max()
    # jumps of the density cost the rule as much as one step of the grid
    rule = 2 * density.max() * (grid[1] - grid[0])
    return gap, np.sqrt(np.log(2 / FALSE_ALARM) / (2 * draws.size)) + rule


@every_mechanism
def test_sampler_follows_the_density(mechanism):
    assert violation(mechanism) == ""


@pytest.mark.slow
@every_mechanism
def test_sampler_follows_the_density_to_one_percent(mechanism, monkeypatch):
    monkeypatch.setattr("tests.laws.test_sampler.DRAWS", 10_000_000)
    assert violation(mechanism) == ""


@every_mechanism
def test_a_batch_follows_the_density_too(mechanism):
    rng = np.random.default_rng(6)
    value = example_value(mechanism, rng)
    batch = np.stack([np.asarray(value)] * 200_000)
    gap, allowed = gap_to_density(mechanism, value, mechanism.release(batch, rng))
    assert gap <= allowed


@every_mechanism
def test_each_sums_what_the_density_says_of_every_row(mechanism):
    rng = np.random.default_rng(7)
    value = example_value(mechanism, rng)
    batch = np.stack([np.asarray(value)] * 50)
    output = mechanism.release(batch, rng)
    rows = mechanism.log_density(output, batch, each=True)
    assert rows.shape == (50,)
    assert np.isclose(mechanism.log_density(output, batch), rows.sum())
    singles = [float(mechanism.log_density(one, value)) for one in output]
    assert np.allclose(rows, singles)
