"""Wrong exact samplers of selections: patches, each caught by the law that tries its words."""

import dataclasses

import numpy as np

from mechanisms import lazy_exponential
from mechanisms.exact_noise import exact_selection, lazy_laplace
from mechanisms.exact_noise.exact_selection import WeightTable, flipped_heads, gaps_to_best


def unsure_words_accept(patch):
    """Takes every word that floats cannot decide."""
    patch.setattr(exact_selection, "below_exponential", lambda *given: True)


def floats_decide_words(patch):
    """Compares the middle of a word's range in floats."""
    patch.setattr(
        exact_selection, "compare_to_height",
        lambda position, height: (position + 0.5 < height, np.zeros(position.shape, dtype=bool)),
    )  # fmt: skip


def lengths_too_short(patch):
    """Proposes one word less for the first candidate."""
    right = WeightTable.of.__func__

    def of(cls, *given):
        table = right(cls, *given)
        ends = table.ends - np.uint64(1) * (np.arange(table.ends.shape[1]) == 0)
        return dataclasses.replace(table, ends=ends.astype(np.uint64))

    patch.setattr(WeightTable, "of", classmethod(of))


def levels_without_sizes(patch):
    """Draws a level by its bound alone."""
    right = WeightTable.of.__func__
    patch.setattr(
        WeightTable, "of", classmethod(lambda cls, scores, scale, counts: right(cls, scores, scale))
    )


def coins_of_sixteen_digits(patch):
    """Calls tails where the first digits tie."""
    patch.setattr(
        exact_selection, "exponential_coins", lambda words, *given: np.zeros(words.size, dtype=bool)
    )


def digits_drawn_anew(patch):
    """Where the first digits tie, tosses a fresh coin of the whole probability."""
    right = exact_selection.exponential_coins
    patch.setattr(
        exact_selection, "exponential_coins",
        lambda words, *given: right(words << np.uint64(16), *given),
    )  # fmt: skip


def first_heads_win(patch):
    """Takes the first candidate with heads, in the order of the scores."""

    def draw(scores, scale, size, rng):
        gaps = gaps_to_best(scores, scale)
        low, high = exact_selection.digit_bounds(gaps)
        return flipped_heads(scores, scale, gaps, low, high, slice(0, size), rng).argmax(axis=1)

    patch.setattr(exact_selection, "draw_by_flips", draw)


def proposals_are_taken(patch):
    """Takes the candidate of a level without its coin."""
    patch.setattr(
        lazy_exponential, "exponential_coins", lambda words, *given: np.ones(words.size, dtype=bool)
    )


def every_float_is_trusted(patch):
    """Takes noise of few digits for the noise."""
    right = lazy_laplace.noise_of
    patch.setattr(
        lazy_laplace, "noise_of", lambda words: (right(words)[0], np.zeros(words.shape, dtype=bool))
    )


def every_draw_is_positive(patch):
    """Forgets the sign where decimals decide."""
    right = lazy_laplace.LazyLaplace.from_word.__func__
    patch.setattr(
        lazy_laplace.LazyLaplace, "from_word", classmethod(lambda cls, word: right(cls, word & ~1))
    )


def settled_by_lower_bounds(patch):
    """Takes the largest of the digits drawn so far."""
    patch.setattr(
        lazy_laplace, "greatest",
        lambda terms, rng: max(range(len(terms)), key=lambda i: terms[i].bounds()[0]),
    )  # fmt: skip


MUTANTS = {
    "weights": [unsure_words_accept, floats_decide_words, lengths_too_short, levels_without_sizes],
    "flips": [coins_of_sixteen_digits, digits_drawn_anew, first_heads_win],
    "levels": [levels_without_sizes, proposals_are_taken],
    "comparisons": [every_float_is_trusted, every_draw_is_positive, settled_by_lower_bounds],
}
