"""The laws of mechanisms of local privacy, by which each user reports a randomised value.

The verifier compares what a mechanism claims to cost with its law, delta of the worst pair at an
epsilon and densities of outputs, which is computed here in balls (`arb`) that contain the true
numbers.

One function for each kind of mechanism returns the law of its worst pair, two values whose reports
differ most; the selection of keys that enough people have is here too.  ``n`` has the parameters of
the mechanism by name; ``n.keep`` is the probability of the truth, or of the region around it.
Outcomes are counted, or measured where they have a density.

Nearly all are one pattern, `exchanged_law(m, p, q, *alike)`: outcomes of number or measure m have
the density p at the first value and q at the second, as many have q and p, and all others have one
of the densities ``alike`` at both values.
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
    """One of k labels: the reports of the two values are exchanged, the others equally likely."""
    return response_of(n, n.k)


def binary_label(n: Parameters) -> Law:
    """One of two labels, by randomised response."""
    return response_of(n, 2)


def response_of(n: Parameters, labels: int) -> Law:
    """Return the law of randomised response: the true label with chance ``keep``.

    Each of the other labels has the chance (1 - keep) / (labels - 1).
    """
    lie = (1 - n.keep) / (labels - 1)
    return exchanged_law(1, n.keep, lie, lie)


def hemisphere(n: Parameters) -> Law:
    """A direction, in the half sphere around the value with chance ``keep``, else in the other.

    The worst pair is two opposite values.  Densities are relative to the uniform law, of which each
    half sphere has 1/2.
    """
    return exchanged_law(fmpq(1, 2), 2 * n.keep, 2 * (1 - n.keep))


def hadamard_response(n: Parameters) -> Law:
    """One of 2^b columns of a Hadamard matrix, 2^b > k: of the label's half with chance ``keep``.

    The halves of two labels have a half of their columns in common.  So m = 2^b / 4 columns are in
    the half of the first label alone, and as many in that of the second alone.
    """
    m = fmpq(1 << n.k.bit_length(), 4)
    inside, outside = n.keep / (2 * m), (1 - n.keep) / (2 * m)
    return exchanged_law(m, inside, outside, inside, outside)


def cube_corner(n: Parameters) -> Law:
    """A corner of the d-dimensional cube; one nearer to the value than to its opposite is likely.

    Its probability is to that of any other as ``keep`` to 1 - keep.  The worst pair is two
    opposite corners.  For even d some corners are half way between them (``halves`` of the 2^d),
    with the smaller probability at both values; m corners are nearer to each.
    """
    d, lie = n.dimension, 1 - n.keep
    halves = comb(d, d // 2) * (1 - d % 2)
    m, total = (2**d - halves) // 2, (2**d - halves) // 2 + halves * lie
    return exchanged_law(m, n.keep / total, lie / total, lie / total)


def subset_selection(n: Parameters) -> Law:
    """A subset of ``size`` of the k labels, with the true one in it with chance ``keep``.

    Of two labels comb(k - 2, size - 1) subsets have the first alone, and as many the second alone.
    """
    k, size = n.k, n.size
    inside, outside = n.keep / comb(k - 1, size - 1), (1 - n.keep) / comb(k - 1, size)
    return exchanged_law(comb(k - 2, size - 1), inside, outside, inside, outside)


def piecewise_uniform(n: Parameters) -> Law:
    """A number, uniform on a piece around the value with chance ``keep``, else uniform on the rest.

    The piece and the rest have the lengths ``piece`` and ``rest``, in units of ``unit``.  The worst
    pair is two values whose pieces do not meet.
    """
    inside, outside = n.keep / (n.piece * n.unit), (1 - n.keep) / (n.rest * n.unit)
    return exchanged_law(n.piece * n.unit, inside, outside, outside)


def unary_encoding(n: Parameters) -> Law:
    """A bit for each of k labels: 1 with chance p at the true label, with chance q at all others.

    For two labels the laws differ in their own two bits alone, ``both_bits``.  The k - 2 other bits
    have the same probability at both labels, q^c (1 - q)^(k - 2 - c) where c of them are ones.
    """
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
    """A random hash function and a bucket: that of the label with chance ``keep``, else another.

    A hash maps labels to residues of a prime, and these to buckets.  Each of the prime (prime - 1)
    functions gives two labels another pair of different residues.  Those for which both residues
    are in one bucket do not tell the labels apart.  Of the buckets, ``extra`` have size + 1
    residues, and the others have ``size``.
    """
    prime = next(p for p in range(n.k, 2 * n.k + 2) if fmpz(p).is_prime())
    (size, extra), count = divmod(prime, n.buckets), prime * (prime - 1)
    in_one_bucket = extra * (size + 1) * size + (n.buckets - extra) * size * (size - 1)
    inside, outside = n.keep / count, (1 - n.keep) / ((n.buckets - 1) * count)
    return exchanged_law(count - in_one_bucket, inside, outside, inside, outside)


def priv_unit(n: Parameters) -> Law:
    """A direction, uniform on a cap around the value with chance ``share``, else on the sphere.

    The cap of a unit vector v has the directions u with <u, v> >= h, the ``height``; ``mass`` is
    its share of the sphere.  So a report is in the cap with chance keep = share + (1 - share) mass.
    The worst pair is two opposite values.  The masses of caps of exact directions err by at most
    ``error`` (docs/proofs/vectors.md, 5).
    """
    below_cap = arb(n.height**2).beta_lower(fmpq(1, 2), fmpq(n.dimension - 1, 2), True)
    mass = (1 - below_cap) / 2
    share = n.cap_share if n.error else (n.keep - mass) / (1 - mass)
    cap, far = (1 - share) * (mass + arb(0, float(n.error))), 1 - share
    inside = far + share / mass
    return exchanged_law(1, share + cap, cap, pairs=[(inside, far), (far, inside), (far, far)])


def partition_selection(n: Parameters) -> Law:
    """A key that k people have is kept with probability w_k / 2^63, and w_k is ``words[k]``.

    On two neighbours k and k + 1 people have a key.  ``shares`` has for each k the pair of the
    probabilities to keep it, and the pair of those to drop it.
    """
    shares = [(arb(a) / WORDS, arb(b) / WORDS) for a, b in pairwise(n.words)]
    shares += [(1 - b, 1 - a) for a, b in shares]
    densities = [*shares, *((b, a) for a, b in shares)]

    def delta(epsilon: Any) -> Ends:
        value = reduce(arb.max, [p - exp(epsilon) * q for p, q in densities], arb(0))
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
