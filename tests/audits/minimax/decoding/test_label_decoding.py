"""How many labels can be decoded, by enumeration."""

import math

import numpy as np
import pytest

from audits.minimax import SignedBasis, most_right
from audits.minimax.decoding.decoding_rates import most_right_of_labels


def test_labels_by_enumeration():
    """Every deterministic map of randomised responses: the best decoder is within the bound."""
    from itertools import product

    p, n = 2, 2
    for epsilon, delta, d in ((0.5, 0.0, 1.0), (1.0, 0.1, 0.7), (3.0, 0.0, 0.5), (1.0, 0.3, 1.0)):
        family = SignedBasis(p, d)
        keep = 1 / (1 + math.exp(-epsilon))
        # reports: 0, 1 randomised; 2, 3 revealed
        channel = np.array([
            [(1 - delta) * keep, (1 - delta) * (1 - keep), delta, 0.0],
            [(1 - delta) * (1 - keep), (1 - delta) * keep, 0.0, delta],
        ])  # fmt: skip
        best = 0.0
        for xs in product(product((-1, 1), repeat=p), repeat=n):
            table = np.ones((family.points, 4**n)) / 2 ** (p * n)
            for v in range(family.points):
                j, sign = (v, 1) if v < p else (v - p, -1)
                law = np.ones(1)
                for x in xs:
                    plus = (1 + d * sign * x[j]) / 2
                    law = np.outer(law, plus * channel[0] + (1 - plus) * channel[1]).ravel()
                table[v] *= law
            best += table.max(axis=0).sum() / family.points
        bound = most_right_of_labels(family, n, epsilon, delta)
        assert 1 / family.points < best <= bound
        assert bound < 1.9 * best


def test_labels_are_easier_than_records_and_grow_with_everything():
    family = SignedBasis(64, 1.0)
    assert most_right_of_labels(family, 30, 1.0) > most_right(family, 30, 1.0, "sequential")
    by_epsilon = [most_right_of_labels(family, 30, e) for e in (0.0, 0.5, 1.0, 2.0)]
    assert by_epsilon == sorted(by_epsilon)
    assert by_epsilon[0] == pytest.approx(1 / 128)
    assert most_right_of_labels(family, 30, 1.0, 0.1) > most_right_of_labels(family, 30, 1.0)
