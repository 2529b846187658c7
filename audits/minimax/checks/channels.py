"""Small private channels as matrices, and their exact information: checks of minimax proofs.

A channel is an epsilon-LDP randomiser of a point of the cube {-1, 1}^p: one row per input, one
column per report.  With p small, mutual information and the best decoding are sums, so a check can
compare them with the bounds that a theorem states.  The shape of each matrix is in parentheses.

The hard laws are those of `SignedBasis`: signs x and a label y of size a, whose law is uniform but
for a factor 1 + lean * (sign of v) * (y x_j / a) at the point v = +-e_j.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import reduce

import numpy as np

from accountant.domains import IntegerRange
from accountant.numerics import Array
from audits.minimax.families.signed_basis import SignedBasis


def cube(p: int) -> Array:
    """All of ``{-1, 1}^p``, (2^p, p)."""
    bits = (np.arange(2 ** IntegerRange(1, 12).check("p", p))[:, None] >> np.arange(p)) & 1
    signs: Array = np.where(bits, 1.0, -1.0)
    return signs


def point_distributions(family: SignedBasis) -> Array:
    """The distribution of ``w = y x / a`` under every point, (2p, 2^p).

    w is sufficient: given w, (x, y) has one distribution under every point.
    """
    w = cube(family.p)
    signs = np.concatenate([w.T, -w.T])
    chances: Array = (1 + family.lean * signs) / len(w)
    return chances


def coordinate_response(p: int, at: int, epsilon: float) -> Array:
    """The sign of one coordinate of w by randomised response: (2^p, 2)."""
    is_positive = cube(p)[:, at] > 0
    keep = 1 / (1 + math.exp(-epsilon))
    positive_chance = np.where(is_positive, keep, 1 - keep)
    return np.stack([positive_chance, 1 - positive_chance], axis=1)


def translation_channel(members: Array, epsilon: float) -> Array:
    """Report z is likelier by ``e^eps`` if ``w z`` is among the members: (2^p, 2^p).

    ``members`` marks points of the cube.  Every set of them is an eps-LDP channel: each row has the
    same weights in another order, and so the same sum.
    """
    number = np.arange(len(members))
    # w z has a 1 bit where w and z agree
    agreeing = (len(members) - 1) ^ number[:, None] ^ number
    weights = np.where(members[agreeing], math.exp(epsilon), 1.0)
    channel: Array = weights / weights.sum(axis=1, keepdims=True)
    return channel


def channels(p: int, epsilon: float, rng: np.random.Generator) -> Iterator[tuple[str, Array]]:
    """Named epsilon-LDP channels on the cube: one sign, half-spaces, random sets, random noise."""
    yield "sign of a coordinate", coordinate_response(p, 0, epsilon)
    sums = cube(p).sum(axis=1)
    for threshold in range(-p + 2, p + 1, 2):
        yield f"half-space from {threshold}", translation_channel(sums >= threshold, epsilon)
    for _ in range(3):
        share = rng.uniform(0.1, 0.9)
        yield "random set", translation_channel(rng.random(2**p) < share, epsilon)
    # weights in [1, e^(eps / 2)] differ by a factor e^(eps / 2) at most, and so do the sums of rows
    weights = np.exp(epsilon / 2 * rng.random((2**p, 5)))
    yield "random weights", weights / weights.sum(axis=1, keepdims=True)


def joint_distribution(tables: list[Array]) -> Array:
    """The joint distribution of independent reports, (points, outcomes) each: (points, product)."""
    return reduce(
        lambda joint, table: (joint[:, :, None] * table[:, None]).reshape(len(joint), -1), tables
    )


def mutual_information(law: Array) -> float:
    """``I(V; Z)`` of a uniform V, from (points, outcomes)."""
    return float(kl_divergences(law, law.mean(axis=0)).mean())


def kl_divergences(first: Array, second: Array) -> Array:
    """``KL(first || second)`` along the last axis."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(first > 0, first * np.log(first / second), 0.0)
    total: Array = terms.sum(axis=-1)
    return total


def best_decoding_rate(law: Array) -> float:
    """The probability that a decoder is right that names the likeliest of equally likely points."""
    return float(law.max(axis=0).sum() / len(law))
