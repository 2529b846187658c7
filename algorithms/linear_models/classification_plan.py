"""What classification chooses by shape and budget: shares, rounds, and the clipping norm."""

from __future__ import annotations

import math

from algorithms.linear_models.mapped_plan import Shares, Sizes, signal_of

# chosen once, on training parts (docs/classification.md says how)
SHARES = Shares(moments=0.05, products=0.15, constant=0.5)
CLIPS = (0.4, 2.0)  # least and largest clip over the root of the mean squared length of mapped rows
PRODUCT_NOISE = 0.02  # norm of noise on products over their mean eigenvalue; see `shortened_at`
STEP = 1.9  # step over half the longest step that is surely stable
TRAVEL = 280.0  # least total of steps over the curvature
ROUNDS_PER_SIGNAL = 3.6  # rounds over the root of the signal
FEWEST_ROUNDS, MOST_ROUNDS = 5, 200


def default_rounds(sizes: Sizes, mu: float) -> int:
    """Return more rounds for a larger signal."""
    rounds = min(ROUNDS_PER_SIGNAL * math.sqrt(signal_of(sizes, mu)), MOST_ROUNDS)
    return int(max(rounds, FEWEST_ROUNDS))


def longer_steps(sizes: Sizes, mu: float, curvature: float) -> float:
    """Return by what steps are longer where the signal affords few rounds.

    Most gradients are clipped there, and their mean has less curvature than the loss: steps of a
    loss of larger ``curvature``, which are shorter by that, are longer in proportion.
    """
    return max(1.0, TRAVEL * curvature / (STEP * default_rounds(sizes, mu)))


def default_clip(sizes: Sizes, mu: float) -> float:
    """Return a larger norm for a larger signal: less noise is paid with more bias."""
    low, high = CLIPS
    return min(max(low * math.cbrt(signal_of(sizes, mu) / 100), low), high)


def shortened_at(sizes: Sizes, mu: float) -> float:
    """Return where centred rows are shortened for their products, over the root mean square.

    The larger the signal, the longer: noise on products stays a small part of a mean eigenvalue.
    """
    # In units of the mean squared length, noise of s^2 sqrt 2 / (n mu sqrt share) on a coordinate
    # has a norm of sqrt(2 p) times that, and the mean of p eigenvalues is 1 / p.
    of_one = 2 * sizes.features**1.5 / (sizes.records * mu * math.sqrt(SHARES.products))
    return max(SHARES.shortened, math.sqrt(PRODUCT_NOISE / of_one))
