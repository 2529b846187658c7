"""Declared mechanisms of vectors are audited with vectors."""

import pytest

from audits import audit, exact
from mechanisms import DiscreteGaussian, Gaussian, Laplace, TruncatedLaplace

VECTORS = [
    Laplace(1.0, 1.0, "exact", 2), Gaussian(3.0, 1.0, "exact", 2), DiscreteGaussian(3.0, 1.0, 2),
    TruncatedLaplace(1.0, 11.0, dimension=2),
]  # fmt: skip


@pytest.mark.parametrize("made", VECTORS, ids=repr)
def test_mechanisms_of_vectors_are_audited_with_vectors(made):
    assert audit(made, runs=20_000, rng=1).outcome.name == "SURVIVED"
    if not isinstance(made, DiscreteGaussian):
        assert exact(made, 0.5) <= made.loss.delta_at(0.5) + 1e-10
