"""The laws of mechanisms that report one of finitely many outcomes, or of regions of one density.

``keep`` is the chance of the truth, or of the region around it; the worst pair is two values whose
regions differ most.  One function for each kind.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import pairwise
from math import comb
from typing import Any

from flint import arb, fmpq, fmpz

from .claimed_laws import WORDS, Ends, Law, Parameters, exchanged_law, exp, is_near


def randomized_response(n: Parameters) -> Law:
    """One of k labels: two of them are exchanged, and the others are alike."""
    return response_of(n, n.k)


def binary_label(n: Parameters) -> Law:
    """One of two labels."""
    return response_of(n, 2)


def response_of(n: Parameters, labels: int) -> Law:
    """Return the law of the true label with chance ``keep``, each other one as likely."""
    lie = (1 - n.keep) / (labels - 1)
    return exchanged_law(1, n.keep, lie, lie)


def hemisphere(n: Parameters) -> Law:
    """A direction in the half sphere around the truth; densities are over the uniform one."""
    return exchanged_law(fmpq(1, 2), 2 * n.keep, 2 * (1 - n.keep))


def hadamard_response(n: Parameters) -> Law:
    """An outcome in one half of 2^b, 2^b > k: of two halves a quarter is in each alone."""
    m = fmpq(1 << n.k.bit_length(), 4)
    inside, outside = n.keep / (2 * m), (1 - n.keep) / (2 * m)
    return exchanged_law(m, inside, outside, inside, outside)


def cube_corner(n: Parameters) -> Law:
    """A corner of a cube on the side of the truth; corners half way are on both sides."""
    d, lie = n.dimension, 1 - n.keep
    halves = comb(d, d // 2) * (1 - d % 2)
    m, total = (2**d - halves) // 2, (2**d - halves) // 2 + halves * lie
    return exchanged_law(m, n.keep / total, lie / total, lie / total)


def subset_selection(n: Parameters) -> Law:
    """A subset of the labels of a given size, with the true one in it with chance ``keep``."""
    k, size = n.k, n.size
    inside, outside = n.keep / comb(k - 1, size - 1), (1 - n.keep) / comb(k - 1, size)
    return exchanged_law(comb(k - 2, size - 1), inside, outside, inside, outside)


def piecewise_uniform(n: Parameters) -> Law:
    """A number in a piece around the truth: two pieces do not meet, the rest is alike."""
    inside, outside = n.keep / (n.piece * n.unit), (1 - n.keep) / (n.rest * n.unit)
    return exchanged_law(n.piece * n.unit, inside, outside, outside)


def unary_encoding(n: Parameters) -> Law:
    """Bits of all labels, flipped: two labels have different bits, the others show c ones."""
    p, q = arb(n.p), arb(n.q)
    both_bits = (
        (p * (1 - q), (1 - p) * q),
        ((1 - p) * q, p * (1 - q)),
        (p * q, p * q),
        ((1 - p) * (1 - q), (1 - p) * (1 - q)),
    )
    others = [q**c * (1 - q) ** (n.k - 2 - c) for c in range(n.k - 1)]
    pairs = [(factor * a, factor * b) for factor in others for a, b in both_bits]
    return exchanged_law(1, p * (1 - q), (1 - p) * q, pairs=pairs)


def local_hashing(n: Parameters) -> Law:
    """A bucket of a random hash: two labels have uniform different residues of a prime."""
    prime = next(p for p in range(n.k, 2 * n.k + 2) if fmpz(p).is_prime())
    (size, extra), count = divmod(prime, n.buckets), prime * (prime - 1)
    in_one_bucket = extra * (size + 1) * size + (n.buckets - extra) * size * (size - 1)
    inside, outside = n.keep / count, (1 - n.keep) / ((n.buckets - 1) * count)
    return exchanged_law(count - in_one_bucket, inside, outside, inside, outside)


def priv_unit(n: Parameters) -> Law:
    """A direction in a cap around the truth, or anywhere; the worst pair is opposite.

    Masses of the caps of exact directions err by ``error`` (docs/proofs/vectors.md, 5).
    """
    below_cap = arb(n.height**2).beta_lower(fmpq(1, 2), fmpq(n.dimension - 1, 2), True)
    mass = (1 - below_cap) / 2
    share = n.cap_share if n.error else (n.keep - mass) / (1 - mass)
    cap, far = (1 - share) * (mass + arb(0, float(n.error))), 1 - share
    inside = far + share / mass
    return exchanged_law(1, share + cap, cap, pairs=[(inside, far), (far, inside), (far, far)])


def partition_selection(n: Parameters) -> Law:
    """A key that k people have is kept by w_k of 2^63 words: neighbours have k and k + 1."""
    shares = [(arb(a) / WORDS, arb(b) / WORDS) for a, b in pairwise(n.words)]
    shares += [(1 - b, 1 - a) for a, b in shares]
    densities = [*shares, *((b, a) for a, b in shares)]

    def delta(epsilon: Any) -> Ends:
        value = reduce(arb.max, [b - exp(epsilon) * a for a, b in shares])
        return value, value

    def has_density(_output: Any, *logs: float) -> bool:
        return any(all(map(is_near, logs, pair)) for pair in densities)

    return Law(delta, has_density)


REPORTS: dict[str, Callable[[Parameters], Law]] = {
    "RandomizedResponse": randomized_response,
    "BinaryLabel": binary_label,
    "HemisphereL2": hemisphere,
    "HadamardResponse": hadamard_response,
    "CubeLinf": cube_corner,
    "SubsetSelection": subset_selection,
    "PiecewiseUniform": piecewise_uniform,
    "UnaryEncoding": unary_encoding,
    "LocalHashing": local_hashing,
    "PrivUnit": priv_unit,
    "PartitionSelection": partition_selection,
}
