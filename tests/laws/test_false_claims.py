"""Law: the checker proves no claim below what a plan is known to cost at least.

The table has every kind of node, alone and in groups, for each relation that it may be stated for.
What it costs at least is the gain of one event, by a formula beside it.  The writer looks for a
proof of less, as one who wants to deceive; the checker judges whatever it finds.
"""

import json
import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

pytest.importorskip("flint", reason="python-flint is not installed")

from accountant import ParameterError, UnsupportedPlan
from accountant.proofs import contour_parameters, writer
from accountant.proofs.no_method import NoMethod
from accountant.proofs.writer import Search, write_proof
from accountant.serialisation.plan_json import from_dict
from accountant.verifier import verify
from accountant.verifier.balls import Budget
from tests.accountant.verifier.written_proofs import coarse_lattice

DELTA = 1e-3
SHARE = 0.97  # of what it costs at least: the claim
POINTS = np.linspace(-12.0, 30.0, 8401)

# --- what events cost at least


def _cost(p: Any, q: Any, delta: float) -> float:
    """The greatest epsilon at which an event of masses p and q says more than delta."""
    p, q = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
    some = (q > 1e-300) & (p > delta)
    return float(np.max(np.log((p[some] - delta) / q[some]), initial=0.0))


def _normals(ahead: dict[float, float], behind: dict[float, float] | None = None):
    """Mixtures of normal laws by their shifts: outputs above a point."""

    def above(some):
        return sum(w * ndtr(m - POINTS) for m, w in some.items())

    return lambda delta: _cost(above(ahead), above(behind or {0.0: 1.0}), delta)


def _laplace(m: float, rate: float = 1.0):
    """Laplace noise at m, in a sample, against that at 0."""

    def above(x):
        return np.where(x > 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2)

    x = np.append(POINTS, m)
    return lambda delta: _cost((1 - rate) * above(x) + rate * above(x - m), above(x), delta)


def _outcomes(p, q):
    """Finitely many outcomes, the most telling first."""
    with np.errstate(divide="ignore"):
        order = np.argsort(-np.asarray(p) / np.asarray(q))
    return lambda delta: _cost(
        np.cumsum(np.asarray(p)[order]), np.cumsum(np.asarray(q)[order]), delta
    )


def _response(epsilon, rate=1.0):
    """Randomised response, in a sample."""
    p = np.array([math.exp(epsilon), 1.0]) / (1 + math.exp(epsilon))
    return _outcomes((1 - rate) * p[::-1] + rate * p, p[::-1])


def _integers(log_weight, shift):
    """Integer noise, moved by a whole number."""
    k = np.arange(-60, 61)
    weight = np.exp(log_weight(k))
    return _outcomes(np.exp(log_weight(k - shift)) / weight.sum(), weight / weight.sum())


def _hits(mu, size, rate):
    """The shifts of a group of which each is in a sample."""
    return {mu * j: float(binom.pmf(j, size, rate)) for j in range(size + 1)}


def _truncated(mu, rate, records, batch):
    """The record in a sample of which at most a batch stays; others contribute nothing."""
    others = np.arange(records)
    stays = binom.pmf(others, records - 1, rate) * np.minimum(1.0, batch / (others + 1))
    kept = rate * float(stays.sum())
    return _normals({mu: kept, 0.0: 1 - kept})


def _greatest(mu, batches):
    """The greatest of several sums, one of which has the record."""

    def above(first):
        return 1 - ndtr(POINTS - first) * ndtr(POINTS) ** (batches - 1)

    return lambda delta: _cost(above(mu), above(0.0), delta)


def _one_of_many(mu, steps):
    """A record in one of several steps: outputs whose sum is above a point."""
    return _normals({mu / math.sqrt(steps): 1.0})


# --- the plans


class Case(NamedTuple):
    """A node, what a group of it costs at least, and how the writer may look for a proof."""

    node: dict[str, Any]
    cost: Any  # of the number of records
    delta: float = DELTA
    relations: tuple[str | None, ...] = (None, "add-remove", "zero-out", "replace-one")
    sizes: tuple[int, ...] = (1, 2, 4)
    lattice: bool = False


def _alone(cost):
    """A group costs at least what one of it does."""
    return lambda _: cost


NORMAL = {"kind": "GaussianLoss", "mu": 1.0}
OWN = (None,)
BOTH = ("add-remove", "replace-one")
CASES = {
    "GaussianLoss": Case({"kind": "GaussianLoss", "mu": 0.5}, lambda n: _normals({0.5 * n: 1.0})),
    "Gaussian": Case({"kind": "Gaussian", "scale": 2.0}, lambda n: _normals({0.5 * n: 1.0})),
    "LaplaceLoss": Case({"kind": "LaplaceLoss", "shift": 0.3}, lambda n: _laplace(0.3 * n), 0.0),
    "Laplace": Case({"kind": "Laplace", "scale": 4.0}, lambda n: _laplace(0.25 * n), 0.0),
    "PureLoss": Case({"kind": "PureLoss", "epsilon": 0.3}, lambda n: _laplace(0.3 * n), 0.0),
    "BoundedRangeLoss": Case(
        {"kind": "BoundedRangeLoss", "epsilon": 0.8}, lambda n: _response(0.4 * n)
    ),
    "ZCDPLoss": Case(
        {"kind": "ZCDPLoss", "rho": 0.1}, lambda n: _normals({math.sqrt(0.2) * n: 1.0})
    ),
    "PoissonSampled": Case(
        {"kind": "PoissonSampled", "part": NORMAL, "rate": 0.2},
        lambda n: _normals(_hits(1.0, n, 0.2)), relations=("add-remove", "zero-out"),
        sizes=(1, 3),
    ),
    "PoissonSampled, replaced": Case(
        {"kind": "PoissonSampled", "part": NORMAL, "rate": 0.2},
        _alone(_normals({0.0: 0.8, 1.0: 0.2}, {0.0: 0.8, -1.0: 0.2})), relations=("replace-one",),
        sizes=(1, 2),
    ),
    "PoissonSampled of Laplace": Case(
        {"kind": "PoissonSampled", "part": {"kind": "LaplaceLoss", "shift": 1.0}, "rate": 0.2},
        _alone(_laplace(1.0, 0.2)), 0.0, ("add-remove",),
    ),
    "PoissonSampled of PureLoss": Case(
        {"kind": "PoissonSampled", "part": {"kind": "PureLoss", "epsilon": 1.0}, "rate": 0.2},
        _alone(_response(1.0, 0.2)), 0.0, ("add-remove",),
    ),
    "ApproxLoss": Case(
        {"kind": "ApproxLoss", "epsilon": 0.5, "delta": 1e-4},
        _alone(_response(0.5)),
    ),
    "DiscreteLaplaceLoss": Case(
        {"kind": "DiscreteLaplaceLoss", "scale": 3.0, "shift": 2},
        _alone(_integers(lambda k: -np.abs(k) / 3.0, 2)), 0.0,
    ),
    "DiscreteLaplace": Case(
        {"kind": "DiscreteLaplace", "scale": 3.0, "sensitivity": 2},
        _alone(_integers(lambda k: -np.abs(k) / 3.0, 2)),
    ),
    "DiscreteGaussianLoss": Case(
        {"kind": "DiscreteGaussianLoss", "scale": 3.0, "shift": 2},
        _alone(_integers(lambda k: -(k**2) / 18.0, 2)),
    ),
    "DiscreteGaussian": Case(
        {"kind": "DiscreteGaussian", "scale": 3.0, "sensitivity": 2},
        _alone(_integers(lambda k: -(k**2) / 18.0, 2)),
    ),
    "RandomizedResponse": Case(
        {"kind": "RandomizedResponse", "k": 3, "keep": 0.6},
        _alone(_outcomes([0.6, 0.2, 0.2], [0.2, 0.6, 0.2])), 0.0, OWN,
    ),
    "PairLoss": Case(
        {"kind": "PairLoss", "p": [0.5, 0.25, 0.25], "q": [0.25, 0.5, 0.25]},
        _alone(_outcomes([0.5, 0.25, 0.25], [0.25, 0.5, 0.25])),
    ),
    "MixtureOfGaussians": Case(
        {"kind": "MixtureOfGaussians", "weights": [0.5, 0.5], "shifts": [1.0, 2.0], "scale": 2.0},
        _alone(_normals({0.5: 0.5, 1.0: 0.5})), relations=OWN, sizes=(1, 2),
    ),
    "SampledWithoutReplacement": Case(
        {"kind": "SampledWithoutReplacement", "part": NORMAL, "sample": 1, "population": 5},
        _alone(_normals({1.0: 0.2, 0.0: 0.8})), relations=("replace-one",), sizes=(1, 2),
        lattice=True,
    ),
    "TruncatedPoisson": Case(
        {"kind": "TruncatedPoisson", "part": NORMAL, "rate": 0.3, "records": 8, "batch": 2},
        _alone(_truncated(1.0, 0.3, 8, 2)), relations=BOTH, lattice=True,
    ),
    "ShuffledEpoch": Case(
        {"kind": "ShuffledEpoch", "part": NORMAL, "batches": 3},
        _alone(_greatest(1.0, 3)), relations=("replace-one",), lattice=True,
    ),
    "RandomAllocation": Case(
        {"kind": "RandomAllocation", "part": {"kind": "GaussianLoss", "mu": 0.5}, "steps": 20},
        _alone(_one_of_many(0.5, 20)), relations=("add-remove", "zero-out"), sizes=(1, 2),
    ),
    # what holds others
    "Sequential": Case(
        {"kind": "Sequential", "parts": [NORMAL, {"kind": "GaussianLoss", "mu": 0.75}]},
        lambda n: _normals({1.25 * n: 1.0}),
    ),
    "Parallel": Case(
        {"kind": "Parallel", "parts": [{"kind": "GaussianLoss", "mu": 0.25}, NORMAL]},
        _alone(_normals({1.0: 1.0})),
    ),
    "Repeat": Case(
        {"kind": "Repeat", "part": {"kind": "GaussianLoss", "mu": 0.25}, "count": 16},
        lambda n: _normals({1.0 * n: 1.0}),
    ),
    "Grouped": Case(
        {"kind": "Grouped", "part": {"kind": "GaussianLoss", "mu": 0.5}, "size": 2},
        _alone(_normals({1.0: 1.0})),
    ),
    "OnePass": Case(
        {"kind": "OnePass", "part": NORMAL, "batches": 3}, lambda n: _normals({1.0 * n: 1.0})
    ),
    "Claimed": Case(
        {
            "kind": "Claimed",
            "loss": {"kind": "ZCDPLoss", "rho": 0.1},
            "mechanism": {"kind": "Claims"},
        },
        lambda n: _normals({math.sqrt(0.2) * n: 1.0}),
    ),
}  # fmt: skip


def plans(case: Case):
    """A case in groups and for neighbours of each sort, and how many records they differ by."""
    for relation in case.relations:
        node = dict(case.node)
        if relation is not None:
            own = node["kind"] in ("PoissonSampled", "TruncatedPoisson", "ShuffledEpoch",
                                   "SampledWithoutReplacement", "RandomAllocation")  # fmt: skip
            node = node | {"relation": relation} if own else (
                {"kind": "Stated", "part": node, "relation": relation})  # fmt: skip
        for size in case.sizes:
            yield node if size == 1 else {"kind": "Grouped", "part": node, "size": size}, size


def _without_claims(value):
    """A plan as the writer takes it: in place of a claim, the loss that is claimed."""
    if isinstance(value, list):
        return [_without_claims(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value.get("kind") == "Claimed":
        return _without_claims(value["loss"])
    return {key: _without_claims(one) for key, one in value.items()}


def verdict(node, delta, upper, *, lattice):
    """What the checker says of the best proof that the writer finds; None where it finds none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Budget, "remaining", 0.0)  # as before the first proof of a process
        # one try of each road, up to the first that leads nowhere: the others show no more
        patch.setattr(contour_parameters, "SHARES", ())
        patch.setattr(contour_parameters, "LAST_SHARE", 1e-3)
        patch.setattr(writer, "lattice_entry", coarse_lattice)
        if not lattice:
            patch.setattr(Search, "_above", _first_that_holds)
        try:
            written = json.loads(write_proof(from_dict(_without_claims(node)), delta, 0.0, upper))
        except (ParameterError, UnsupportedPlan):
            return None
    text = json.dumps(written | {"plan": node}, sort_keys=True, separators=(",", ":"))
    return verify(f"{text}\n".encode())


def _first_that_holds(search, direction):
    for entry in search._precise(direction, lower=False):
        if search._holds(entry, lower=False):
            return writer.Shown(entry, search._upper)
    raise NoMethod("no road holds")


def violation(names=tuple(CASES)) -> str:
    """A plan of which less is proved than it is known to cost."""
    for name in names:
        case = CASES[name]
        for node, size in plans(case):
            least = case.cost(size)(case.delta)
            found = verdict(node, case.delta, SHARE * least, lattice=case.lattice)
            if found is not None and found.word != "NOT PROVED" and not found.upper >= least:
                return f"{found.word} that {node} costs {found.upper}, and it costs {least}"
    return ""


@pytest.mark.parametrize("name", CASES)
def test_no_claim_below_a_known_cost_is_proved(name):
    assert violation([name]) == ""


@pytest.mark.parametrize("name", CASES)
def test_enough_is_proved(name):
    """The table says something: of the same plans the writer proves what is true."""
    case = CASES[name]
    node, size = next(iter(plans(case)))
    enough = 1.5 * case.cost(size)(case.delta) + 1.0
    found = verdict(node, case.delta, enough, lattice=case.lattice)
    assert found is not None
    assert found.word.startswith("PROVED")
