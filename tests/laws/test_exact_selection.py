"""Laws: what the exact samplers of selections do for every random word has exactly their masses.

All words of a coarse table are tried, with the fraction behind each by bisection; masses are known
as fractions to 2^-60.  Comparisons of noise are tried for every pair of coarse draws, and each
decision must hold at all corners of what was not drawn.
"""

import functools
import itertools
import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from mechanisms import LazyExponential
from mechanisms.exact_noise import exact_selection, lazy_laplace
from mechanisms.exact_noise.exponential_coins import exponential_bounds
from mechanisms.families.bounded_scores import ListedScores

GOOD_TO = Fraction(1, 2**60)
COARSE_WORDS = 60.0  # words of a table, all of which are tried
LEVEL_WORDS = 16.0  # of a table of levels: with each word all places of a level are tried
COARSE_DIGITS, COARSE_FEWEST = 4, 4  # of a draw of noise, all of which are tried
SCORES = [(0.0,), (0.0, 0.0), (0.0, -1.0, 2.5), (3.0, -60.0, 2.75, 0.5), (-700.0, 0.0)]
SCALES = (1.0, 1.5 * (1 + 2.0**-40))


class Words:
    """A generator whose words and bounded integers are given, then zeros."""

    def __init__(self, *words, chosen=0):
        self.words, self.chosen = list(words), chosen

    def integers(self, low, high=None, size=None, dtype=None):
        if dtype is not np.uint64:  # one integer below each bound
            return np.full(np.shape(high), self.chosen)
        return np.array([self.words.pop(0) if self.words else 0 for _ in range(size)], dtype=dtype)


def share_of_words(accepts):
    """The share of 64-bit words that a falling question accepts, by bisection."""
    if accepts(0) == accepts(2**64 - 1):
        return Fraction(int(accepts(0)))
    low, high = 0, 2**64
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if accepts(middle) else (low, middle)
    return Fraction(low, 2**64)


def exact_mass(gap):
    """``exp(-gap)``, good to 30 digits."""
    low, high = exponential_bounds(gap, 60)
    return (low + high) / 2


def weights_violation() -> str:
    """Where a table of weights proposes and accepts with other masses than the exact ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_selection, "WORDS_USED", COARSE_WORDS)
        for scores, scale in itertools.product(SCORES, SCALES):
            for counts in (None, np.arange(1, len(scores) + 1)):
                rows = np.array([scores, scores[::-1]])
                both = None if counts is None else np.array([counts, counts[::-1]])
                table = exact_selection.WeightTable.of(rows, scale, both)
                found = [table_masses(table, row) for row in (0, 1)]
                for row, masses in enumerate(found):
                    for r, mass in enumerate(masses):
                        gap = exact_selection.exact_gap(max(scores), float(rows[row, r]), scale)
                        number = 1 if both is None else int(both[row, r])
                        expected = Fraction(float(table.tops[row])) * number * exact_mass(gap)
                        if abs(mass - expected) > GOOD_TO * COARSE_WORDS:
                            return f"mass {float(mass)} of {r} in {scores}, not {float(expected)}"
    return ""


def table_masses(table, row):
    """The number of words that each candidate accepts, fractions of words included."""
    masses = [Fraction(0)] * table.scores.shape[1]
    for word in range(int(table.ends[row, -1]) + 3):

        def ask(fraction, word=word):
            at, accepted = table.accept(
                np.array([word], dtype=np.uint64), np.array([row]), Words(fraction)
            )
            return int(at[0]), bool(accepted[0])

        at = ask(0)[0]
        masses[at] += share_of_words(lambda fraction, ask=ask: ask(fraction)[1])
    return masses


def flips_violation() -> str:
    """Where coins fall with other masses, or those with heads are not equally likely to win."""
    for gap, scale in itertools.product((0.0, 2.0**-45, 0.5, 1.0, 3.25, 12.0, 50.0), SCALES):
        scores = np.array([[0.0, -gap]])
        found, expected = coin_mass(scores, scale), exact_mass(Fraction(gap) / Fraction(scale))
        if abs(found - expected) > GOOD_TO:
            return f"heads with mass {float(found)} at a gap of {gap}, not {float(expected)}"
    scores, scale = np.array([[0.0, -1.0, -2.0, 0.0]]), 1.0
    for second, third in itertools.product((0, 0xFFFF), repeat=2):  # the best ones always win heads
        shown = [0] + [r for r, digits in ((1, second), (2, third)) if digits == 0] + [3]
        digits = np.array([0, second, third, 0], dtype=np.uint16).view(np.uint64)
        winners = [
            int(exact_selection.draw_by_flips(scores, scale, 1, Words(*digits, chosen=chosen))[0])
            for chosen in range(len(shown))
        ]
        if winners != shown:
            return f"{winners} win where {shown} show heads"
    return ""


def coin_mass(scores, scale):
    """The mass of heads of the second of two candidates: all digits, then what is behind them."""
    gaps = exact_selection.gaps_to_best(scores, scale)
    low, high = exact_selection.digit_bounds(gaps)

    def ask(digits, finer=0, fraction=0):
        first = np.array([0, digits, 0, 0], dtype=np.uint16).view(np.uint64)
        source = Words(*first, finer, fraction)
        # the best one is asked for finer digits only if it shows the highest
        heads = exact_selection.flipped_heads(scores, scale, gaps, low, high, slice(0, 1), source)
        return bool(heads[0, 1])

    # digits are asked in order: below the unsure ones all are heads, above them all are tails
    sure = max(int(low[0, 1]) - 2, 0)
    end = min(int(high[0, 1]) + 3, 2**16)
    if not (
        all(map(ask, {0, max(sure - 1, 0)} if sure else ())) and not (end < 2**16 and ask(end))
    ):
        return Fraction(-1)
    mass = Fraction(sure)
    for digits in range(sure, end):
        whole = share_of_words(lambda finer, d=digits: ask(d, finer, 2**64 - 1))
        last = int(whole * 2**64) >> 16  # 48 of the finer digits are used
        rest = Fraction(0)
        if last < 2**48:
            rest = share_of_words(lambda word, d=digits, f=last << 16: ask(d, f, word))
        mass += Fraction(last, 2**48) + rest / 2**48
    return mass / 2**16


def levels_violation() -> str:
    """Where proposals by levels accept a candidate with other masses than the exact ones."""
    scores, made = np.array([0.0, 0.75, 1.0, 2.5, 2.5]), LazyExponential(1.5)
    listed = ListedScores(scores)
    bounds, counts = listed.levels()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_selection, "WORDS_USED", LEVEL_WORDS)
        masses = [Fraction(0)] * scores.size
        for word in range(int(LEVEL_WORDS) + 2 * bounds.size):
            for place in range(int(counts.max())):
                found, mass = proposal(made, listed, counts, word, place)
                masses[found] += mass
    best = made.noise_centre(listed).scores().max()
    rounded = made.noise_centre(listed).scores()
    exact = [
        exact_mass(exact_selection.exact_gap(best, float(one), made.drawn_scale)) for one in rounded
    ]
    for r, mass in enumerate(masses):
        ratio = mass * exact[-1] - masses[-1] * exact[r]
        if abs(ratio) > GOOD_TO * LEVEL_WORDS:
            return (
                f"masses {list(map(float, masses))}, not in proportion to {list(map(float, exact))}"
            )
    return ""


def proposal(made, listed, counts, word, place):
    """(candidate, mass) of a word and a place in its level; mass 0 if the level has it not."""

    def ask(coin, fraction=0):
        # the words of the level, of its fraction where that is asked, and of the coin
        script = SimpleNamespace(place=place, asked=[])
        source = LevelWords(word << 1, coin, fraction, script)
        candidates, taken = made._exact_proposals(listed, source)(1)
        return int(candidates[0]), bool(taken[0]), script

    candidate, _, script = ask(0)
    if place >= script.most:
        return candidate, Fraction(0)
    level = share_of_words(lambda fraction: ask(0, fraction)[1])
    coin = share_of_words(lambda one: ask(one)[1]) if level else Fraction(0)
    return candidate, level * coin / script.most


class LevelWords:
    """A generator that gives the word of a level, a place, a coin, and all fractions the same."""

    def __init__(self, word, coin, fraction, script):
        self.given, self.fraction, self.script = [word, coin], fraction, script
        self.next_is_coin = False

    def integers(self, low, high=None, size=None, dtype=None):
        if dtype is not np.uint64:
            self.script.most, self.next_is_coin = int(high[0]), True
            return np.minimum(self.script.place, high - 1)
        if len(self.given) == 2 or self.next_is_coin:
            self.next_is_coin = False
            return np.array([self.given.pop(0)], dtype=dtype)
        return np.array([self.fraction], dtype=dtype)


class Undrawn(Exception):
    """A comparison asked for further digits."""


def comparisons_violation() -> str:
    """Where a decision about coarse noise does not hold for all that the noise may be."""
    size = 2 ** (COARSE_DIGITS + 1)
    pairs = np.array(list(itertools.product(range(size), repeat=2)), dtype=np.uint64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lazy_laplace, "DIGITS", COARSE_DIGITS)
        patch.setattr(lazy_laplace, "LEAST_DIGITS", COARSE_FEWEST)
        patch.setattr(lazy_laplace, "DRAW_ERROR", 1.001 / COARSE_FEWEST)
        patch.setattr(lazy_laplace.LazyLaplace, "refine", no_digits)
        patch.setattr(lazy_laplace, "log_bounds", functools.cache(lazy_laplace.log_bounds))
        for gap, scale in ((0.0, 1.0), (0.5, 0.75), (4.0, 1.0)):
            for name, decide, share in (
                ("noisy max", max_of_pair, second_wins), ("first above", first_of_pair, is_above),
            ):  # fmt: skip
                least, unsure = 0, 0
                for words in pairs:
                    found = decide(words, gap, scale)
                    unsure += found is None
                    least += found == 1
                    if found is not None and not holds(name, words, gap / scale, found):
                        return f"{name}: {words} at a gap of {gap} decide for {found}"
                exact = share(gap / scale)
                if not least / size**2 <= exact <= (least + unsure) / size**2:
                    return f"{name}: {least} and {unsure} unsure at a gap of {gap}, not {exact}"
    return ""


def no_digits(self, rng):
    raise Undrawn


def max_of_pair(words, gap, scale):
    """Who wins of a candidate and one ``gap`` below it; None if that takes further digits."""
    try:
        source = Words(*map(int, words))
        return int(lazy_laplace.draw_noisy_max(np.array([[0.0, -gap]]), scale, 1, source)[0])
    except Undrawn:
        return None


def first_of_pair(words, gap, scale):
    """1 if an answer ``gap`` below the threshold 1 is above it, else 0; None if it is open."""
    try:
        source = Words(*map(int, words))
        answers = np.array([[1.0 - gap]])
        return 1 - int(lazy_laplace.draw_first_above(answers, scale, 1, source, threshold=1.0)[0])
    except Undrawn:
        return None


def holds(name, words, gap, found):
    """Whether a decision holds at all corners of the noise, in floats that are far from ties."""
    ends = []
    for word in map(int, words):
        digits, sign = word >> 1, 1 - 2 * (word & 1)
        shares = ((digits + end) / 2**COARSE_DIGITS for end in (0, 1))
        ends.append([sign * (math.inf if share == 0 else -math.log(share)) for share in shares])
    for one, two in itertools.product(*ends):
        # by how much candidate 1 wins over 0, or the answer over the threshold
        lead = two - one - gap if name == "noisy max" else 2 * two - one - gap
        if math.isnan(lead) or (lead < -1e-12 if found else lead > 1e-12):
            return False
    return True


def second_wins(gap):
    """P(L2 - L1 > gap) of two standard Laplace draws."""
    return (1 + gap / 2) * math.exp(-gap) / 2


def is_above(gap):
    """P(2 L2 - L1 > gap): partial fractions of the two characteristic functions."""
    return (4 * math.exp(-gap / 2) - math.exp(-gap)) / 6


VIOLATIONS = {
    "weights": weights_violation,
    "flips": flips_violation,
    "levels": levels_violation,
    "comparisons": comparisons_violation,
}


@pytest.mark.parametrize("name", VIOLATIONS)
def test_what_words_decide_has_exactly_the_masses(name):
    assert VIOLATIONS[name]() == ""
