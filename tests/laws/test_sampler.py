"""Law: the sampler follows the density, and draws from the generator that it is given.

Half a million draws, none of them impossible; the gap of distribution functions
(Dvoretzky-Kiefer-Wolfowitz-Massart) or of probabilities (Hoeffding) stays within its bound,
false alarm 1e-9.  Sees 4 % too little noise, and 3 % in a million draws.
"""

import numpy as np
import pytest

from mechanisms import Mechanism
from mechanisms.pure_from_approximate import RotatedSamples
from tests.laws.common import FALSE_ALARM_RATE, every_mechanism, example_value

DRAWS = 500_000


def violation(mechanism: Mechanism, draws_of_each: int = DRAWS) -> str:
    """Where the law fails; "" where it holds."""
    rng = np.random.default_rng(5)
    for _ in range(3):
        value = example_value(mechanism, rng)
        before = rng.bit_generator.state
        draws = mechanism.release(value, rng, draws_of_each)
        if rng.bit_generator.state == before:
            return "nothing is drawn from the generator"
        other = mechanism.values.neighbour(value, rng)
        gap, allowed = gap_to_density(mechanism, value, draws, other)
        if not gap <= allowed:
            return f"gap {gap:.5f} at {value}, allowed {allowed:.5f}"
    return ""


def batch_violation(mechanism: Mechanism) -> str:
    """The same of a batch of equal values, whose outputs must be independent."""
    rng = np.random.default_rng(6)
    value = example_value(mechanism, rng)
    draws = mechanism.release(np.stack([np.asarray(value)] * 200_000), rng)
    gap, allowed = gap_to_density(mechanism, value, draws, value)
    if not gap <= allowed:
        return f"gap {gap:.5f} at {value}, allowed {allowed:.5f}"
    apart, allowed = correlation(draws)
    return "" if apart <= allowed else f"correlation {apart:.5f}, allowed {allowed:.5f}"


def correlation(draws) -> tuple[float, float]:
    """(greatest correlation, allowed correlation) of draws at any distance from each other."""
    rows = np.nan_to_num(draws.reshape(len(draws), -1))
    number = rows @ np.sqrt(np.arange(2, 2 + rows.shape[1]))
    # signs about their mean; all distances at once by the Fourier transform
    sign = np.where(number > number.mean(), 1.0, -1.0)
    power = np.abs(np.fft.rfft(sign - sign.mean(), 2 * len(sign))) ** 2
    apart = np.abs(np.fft.irfft(power)[1 : len(sign)]).max() / len(sign)
    # Azuma's inequality at every distance; the error of the mean adds its square, a hundredth
    rate = np.log(2 * len(sign) / FALSE_ALARM_RATE) / len(sign)
    return apart, 1.01 * (1 + abs(sign.mean())) * np.sqrt(2 * rate)


def gap_to_density(mechanism: Mechanism, value, draws, other) -> tuple[float, float]:
    """(greatest gap, allowed gap) between draws and the declared density.

    By the cells of a pair, which on a sphere also tell how draws lie about the other value.
    """
    # of rows only as many as make a million numbers
    some = draws[: max(1, len(draws) // np.size(draws[0]))]
    if not np.all(mechanism.log_density(some, value) > -np.inf):
        return np.inf, 0.0
    if isinstance(mechanism.support, RotatedSamples):  # the cells are given the public samples
        inner, public = mechanism.inner, mechanism.reference_value
        gap, allowed = gap_to_density(inner, public, draws[..., 0], public)
        if not gap <= allowed:
            return gap, allowed
    cells = mechanism.support.cells(value, other)
    if cells is not None:
        expected = cells.measure * np.exp(mechanism.log_density(cells.outputs, value))
        if cells.parts is not None:
            expected = np.bincount(cells.parts, weights=expected)
        seen = np.bincount(cells.locate(draws), minlength=expected.size) / len(draws)
        gap = np.abs(seen - expected).max()
        return gap, np.sqrt(np.log(2 * expected.size / FALSE_ALARM_RATE) / (2 * len(draws)))
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
    return gap, np.sqrt(np.log(2 / FALSE_ALARM_RATE) / (2 * draws.size)) + rule


@every_mechanism
def test_sampler_follows_the_density(mechanism):
    assert violation(mechanism) == ""


@pytest.mark.slow
@every_mechanism
def test_sampler_follows_the_density_to_one_percent(mechanism):
    assert violation(mechanism, 10_000_000) == ""


@every_mechanism
def test_a_batch_follows_the_density_too(mechanism):
    assert batch_violation(mechanism) == ""


def each_violation(mechanism: Mechanism) -> str:
    """Where densities of rows are not those of the rows one by one."""
    rng = np.random.default_rng(7)
    value = example_value(mechanism, rng)
    batch = np.stack([np.asarray(value)] * 50)
    output = mechanism.release(batch, rng)
    rows = mechanism.log_density(output, batch, each=True)
    if rows.shape != (50,):
        return f"50 rows have densities of shape {rows.shape}"
    if not np.isclose(mechanism.log_density(output, batch), rows.sum()):
        return "the density of a batch is not the product of its rows'"
    singles = [float(mechanism.log_density(one, value)) for one in output]
    return "" if np.allclose(rows, singles) else "a row has another density than alone"


@every_mechanism
def test_each_sums_what_the_density_says_of_every_row(mechanism):
    assert each_violation(mechanism) == ""
