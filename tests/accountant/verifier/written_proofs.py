"""Small proofs of each road for the tests of the checker, and documents that were changed."""

import functools
import json

from accountant import (
    DiscreteLaplaceLoss,
    GaussianLoss,
    LaplaceLoss,
    PairLoss,
    PoissonSampled,
    PureLoss,
    RandomAllocation,
    SampledWithoutReplacement,
    Tight,
)
from accountant.proofs.lattice_parameters import lattice_entry
from accountant.proofs.writer import write_proof
from mechanisms import Gaussian, Laplace

DELTA = 1e-6
PLANS = {
    "one Gaussian": GaussianLoss(0.5),
    "enumeration": 8 * PureLoss(0.25) + 2 * PairLoss([0.75, 0.25], [0.5, 0.5]),
    "lattice": 5 * LaplaceLoss(0.5),
    "discrete noise": 20 * DiscreteLaplaceLoss(4.0, 1),
    "contour": 64 * Laplace(20.0) + 3 * Gaussian(10.0),
    "sampled Gaussians": 100 * PoissonSampled(Gaussian(2.0), 0.125),
    "sampled Laplaces": 3 * PoissonSampled(LaplaceLoss(0.5), 0.25),
    "without replacement": SampledWithoutReplacement(GaussianLoss(0.5), 1, 8),
    "allocation": RandomAllocation(GaussianLoss(0.5), 20),
}


@functools.cache
def proof_of(road):
    """The proof of the plan of a road."""
    plan = PLANS[road]
    found = Tight().certify(plan, DELTA)
    return write_proof(plan, DELTA, found.lower, found.upper)


def content(road):
    """The content of a proof, to be changed."""
    return json.loads(proof_of(road))


def coarse_lattice(*given):
    """A lattice that is quickly composed, and shows what it must within a few percent."""
    entry = lattice_entry(*given)
    entry |= {"h": (0.02).hex(), "size": 1024}
    for rule in entry["rules"]:
        if "length" in rule:  # of an epoch, whose points are those of its integral
            continue
        span = float.fromhex(rule["step"]) * rule["count"]
        rule |= {"count": 100, "step": (span / 100).hex()}
    return entry


def document(changed):
    """A file in canonical form of what was changed."""
    return (json.dumps(changed, sort_keys=True, separators=(",", ":")) + "\n").encode()
