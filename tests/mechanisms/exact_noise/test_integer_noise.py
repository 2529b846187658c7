"""Exact integer noise: its law, its fall-back, its tail, and what is built on a grid of it."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.stats import chi2, kstwo

from mechanisms import DiscreteGaussian, DiscreteLaplace
from mechanisms.exact_noise import integer_noise as noise
from mechanisms.exact_noise.integer_noise import IntegerNoise, accept_exactly, proposal_table

FALSE_ALARM = 1e-9
SMALL = [(0.2, 1), (1.0, 1), (7.3, 1), (40.0, 1), (0.3, 2), (1.0, 2), (9.0, 2), (130.0, 2)]


def suspicious(draws, law: IntegerNoise) -> bool:
    """Whether Pearson's statistic over cells of at least 20 expected draws is beyond belief."""
    reach = int(50 * law.width) + 2
    k = np.arange(-reach, reach + 1)
    with np.errstate(under="ignore"):
        expected = np.exp(-law.energy(k))
    expected *= draws.size / expected.sum()
    seen = np.bincount(draws + reach, minlength=k.size)
    rare = expected < 20
    expected = np.append(expected[~rare], expected[rare].sum() + 1e-9)
    seen = np.append(seen[~rare], seen[rare].sum())
    few = expected[-1] < 20  # what is rarer still must not be seen often
    statistic = ((seen - expected) ** 2 / expected)[: -1 if few else None].sum()
    return chi2.sf(statistic, expected.size - 1 - few) < FALSE_ALARM or (few and seen[-1] > 90)


@pytest.mark.parametrize(("width", "power"), SMALL)
def test_a_million_draws_follow_the_law(width, power):
    law = IntegerNoise(width, power)
    assert not suspicious(law.draw(1_000_000, np.random.default_rng(1)), law)
    other = IntegerNoise(1.02 * width, power)  # two percent off are seen
    if width >= 1:
        assert suspicious(other.draw(1_000_000, np.random.default_rng(1)), law)


@pytest.mark.slow
@pytest.mark.parametrize(("width", "power"), SMALL)
def test_ten_million_draws_follow_the_law(width, power):
    law = IntegerNoise(width, power)
    assert not suspicious(law.draw(10_000_000, np.random.default_rng(2)), law)


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("width", [300.0, 1e5, 1.7 * 2.0**40, 2.0**50])
def test_wide_noise_follows_the_continuous_law(width, power):
    x = np.sort(IntegerNoise(width, power).draw(1_000_000, np.random.default_rng(3)) / width)
    if power == 1:
        cdf = np.where(x < 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2)
    else:
        from scipy.special import ndtr

        cdf = ndtr(x)
    gap = np.abs(cdf - np.arange(x.size) / x.size).max()
    assert gap < kstwo.isf(FALSE_ALARM, x.size) + 1 / width
    # the low bits are fair: they carry nothing of the size
    if width > 1e9:
        low = IntegerNoise(width, power).draw(100_000, np.random.default_rng(4)) & 1
        assert abs(low.mean() - 0.5) < math.sqrt(math.log(2 / FALSE_ALARM) / 200_000)


@pytest.mark.parametrize(("width", "power"), [*SMALL, (1e4, 1), (1e4, 2), (1.7 * 2.0**40, 2)])
def test_decimals_decide_every_draw_as_floats_do(width, power, monkeypatch):
    law = IntegerNoise(width, power)
    fast = law.draw(3000, np.random.default_rng(5))
    monkeypatch.setattr(noise, "HEIGHT_ERROR", 1e9)  # no float is trusted
    assert (law.draw(3000, np.random.default_rng(5)) == fast).all()


@pytest.mark.slow
@pytest.mark.parametrize(("width", "power"), [(1.0, 1), (9.0, 2)])
def test_the_fall_back_alone_gives_the_law(width, power, monkeypatch):
    law = IntegerNoise(width, power)
    monkeypatch.setattr(noise, "HEIGHT_ERROR", 1e9)
    assert not suspicious(law.draw(300_000, np.random.default_rng(6)), law)


@pytest.mark.parametrize(("width", "power"), [(1.0, 1), (3.0, 1), (2.0, 2)])
def test_the_tail_has_the_law_of_the_tail(width, power, monkeypatch):
    # a table that ends early sends a visible share of the draws to the tail
    law = IntegerNoise(width, power)
    monkeypatch.setattr(noise, "TAIL_ENERGY", 2.0)
    proposal_table.cache_clear()
    assert proposal_table(law).count < 8
    blocks_end = proposal_table(law).count
    # a tail that begins one place later is seen in so many draws
    draws = law.draw(3_000 if width == 3.0 else 6_000, np.random.default_rng(7))
    proposal_table.cache_clear()
    assert not suspicious(draws, law)
    assert (np.abs(draws) >= blocks_end).sum() > 80


class Words:
    """A generator whose words are given, then zeros."""

    def __init__(self, *words):
        self.words = list(words)

    def integers(self, low, high, size, dtype):
        return np.array([self.words.pop(0) if self.words else 0 for _ in range(size)], dtype=dtype)


def test_a_comparison_asks_for_bits_until_it_is_settled():
    law = IntegerNoise(1.0, 1)
    top = 2.0**63
    with localcontext(prec=60):
        height = Decimal(2) ** 63 * Decimal(-1).exp()
    whole, part = int(height), height % 1
    assert 0.05 < part < 0.95  # so that the fraction decides
    assert accept_exactly(whole - 1, law, 1, top, Words())
    assert not accept_exactly(whole + 1, law, 1, top, Words())
    assert accept_exactly(whole, law, 1, top, Words(0))
    assert not accept_exactly(whole, law, 1, top, Words(2**64 - 1))


def test_the_table_lies_above_the_law_and_fills_the_words():
    for width, power in [*SMALL, (1e5, 2), (2.0**50, 1), (1e-300, 2)]:
        law = IntegerNoise(width, power)
        table = proposal_table(law)
        lengths = (table.ends - table.starts).astype(object)
        with np.errstate(over="ignore"):
            firsts = np.exp(-law.energy(np.arange(table.count) * 2.0**table.shift))
        assert all(n >= table.height_at_zero * f for n, f in zip(lengths, firsts, strict=False))
        assert 0.999 * 2**63 < int(table.ends[-1]) < 2**63


@pytest.mark.parametrize("made", [DiscreteLaplace(3.0), DiscreteGaussian(3.0)], ids=repr)
def test_sums_beyond_64_bits_stay_at_the_end(made):
    top, bottom = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    high = made.release(np.full(1000, top), 1)
    low = made.release(np.full(1000, bottom), 1)
    assert high.dtype == np.int64
    assert high.max() == top
    assert low.min() == bottom
    assert high.min() > top - 1000
    assert low.max() < bottom + 1000


@pytest.mark.parametrize("bad", [1.0, [1.5], True, "1", None, np.uint64(2**63)], ids=repr)
def test_what_is_no_integer_is_refused(bad):
    with pytest.raises(ValueError, match="value must be whole numbers"):
        DiscreteLaplace(1.0).release(bad, 1)


@pytest.mark.parametrize("error", [2.0**-42, 0.3])  # the wider one sends many to the exact decision
@pytest.mark.parametrize(
    "law",
    [
        (0.3, 1), (1.0, 2), (700.0, 1), (1.3 * 2.0**40, 2), (0.3, 1, 5), (3.0, 1, 4, True),
        (700.0, 1, None, True), (1.3 * 2.0**40, 1, 2**41, True),
    ],
)  # fmt: skip
def test_a_single_proposal_is_the_one_that_an_array_of_one_gets(law, error, monkeypatch):
    monkeypatch.setattr(noise, "HEIGHT_ERROR", error)
    made = IntegerNoise(*law)
    for seed in range(1000):
        one, many = np.random.default_rng(seed), np.random.default_rng(seed)
        alone = made._proposal(one)
        assert made._accepted_proposals(1, many).tolist() == ([] if alone is None else [alone])
        assert one.bit_generator.state == many.bit_generator.state
