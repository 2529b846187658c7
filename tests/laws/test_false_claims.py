"""Law: the checker proves no claim that a plan costs less, or more, than it does.

The table has every kind of node, alone and in groups, for each relation that it may be stated for,
and plans whose parts do not fit together.  What they cost is computed by formulas that share no
code with the checker: `event_costs`.  The writer looks for proofs of other numbers, as one who
wants to deceive; it reads the plan as the checker does, and the checker judges what it finds.
"""

import json
import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.special import iv

pytest.importorskip("flint", reason="python-flint is not installed")

from accountant.proofs import contour_parameters, lattice_parameters, writer
from accountant.proofs.no_method import NoMethod
from accountant.proofs.writer import Search
from accountant.verifier import NoProof, ProofError, verify
from accountant.verifier.balls import Budget
from accountant.verifier.choices import alternatives
from tests.accountant.verifier.written_proofs import coarse_lattice
from tests.laws import event_costs as events
from tests.laws.event_costs import hits, just, laplaces, normals

DELTA = 1e-3
SHARE = 0.99  # of what it costs: the claim that it costs less
EXCESS = 1.01  # the claim that it costs more
FINITE = 30.0  # a claim of what costs infinitely much


class Case(NamedTuple):
    """A node, what it costs, and how the writer may look for a proof."""

    node: dict[str, Any]
    cost: Any  # at least, of the number of records
    delta: float = DELTA
    relations: tuple[str | None, ...] = (None, "add-remove", "zero-out", "replace-one")
    sizes: tuple[int, ...] = (1, 2, 4)
    lattice: bool = False
    most: Any = None  # what one record costs at most, where that is not its cost above
    proved: bool = True  # the checker proves what is true of one record


def normal(mu, relation=None):
    """A node of Gaussian noise, for neighbours of a sort."""
    node = {"kind": "GaussianLoss", "mu": mu}
    return node if relation is None else stated(node, relation)


def stated(node, relation):
    return {"kind": "Stated", "part": node, "relation": relation}


def moved(mu):
    """A group whose centre moves so far with each record."""
    return lambda n: normals({mu * n: 1.0})


def laplace(m):
    return lambda n: laplaces({m * n: 1.0})


def skellam_of_9(k):
    """The logarithm of the mass of Skellam noise of variance 9, up to a constant."""
    return np.log(iv(np.abs(k), 9.0))


def sampled_integers():
    """A sample of rate 0.2 of discrete Gaussian noise of scale 0.5, moved by 2."""
    q = np.exp(-2.0 * np.arange(-12, 13) ** 2)
    p = np.exp(-2.0 * (np.arange(-12, 13) - 2) ** 2)
    return events.outcomes((0.8 * q + 0.2 * p) / q.sum(), q / q.sum())


OWN = (None,)
REPLACED = ("replace-one",)
ADDED = ("add-remove", "zero-out")
ALONE = (1,)
LOSSES = {
    "GaussianLoss": Case(normal(0.5), moved(0.5)),
    "Gaussian": Case({"kind": "Gaussian", "scale": 2.0}, moved(0.5)),
    "LaplaceLoss": Case({"kind": "LaplaceLoss", "shift": 0.3}, laplace(0.3), 0.0),
    "LaplaceLoss on a lattice": Case(
        {"kind": "LaplaceLoss", "shift": 0.3}, laplace(0.3), 0.01, OWN, (1, 2), lattice=True
    ),
    "Laplace": Case({"kind": "Laplace", "scale": 4.0}, laplace(0.25), 0.0),
    # of a grid of 2^-40 scales a sensitivity below one step may move the value by a step
    "Laplace on a coarse grid": Case(
        {"kind": "Laplace", "scale": 1.0, "sensitivity": 2.0**-45},
        lambda n: just(2.0**-40), 0.0, OWN, proved=False,
    ),
    "Gaussian on a coarse grid": Case(
        {"kind": "Gaussian", "scale": 1.0, "sensitivity": 2.0**-20, "dimension": 2**53},
        lambda n: normals({2.0**-13.5: 1.0}), 1e-6, OWN, proved=False,
    ),
    "PureLoss": Case({"kind": "PureLoss", "epsilon": 0.3}, laplace(0.3), 0.0),
    "PureLoss, counted": Case(
        {"kind": "PureLoss", "epsilon": 0.3, "count": 2},
        lambda n: events.response(0.3, count=2) if n == 1 else laplaces({0.3 * n: 1.0}),
    ),
    "BoundedRangeLoss": Case(
        {"kind": "BoundedRangeLoss", "epsilon": 0.8}, lambda n: events.logit_range(0.8 * n)
    ),
    "BoundedRangeLoss on a lattice": Case(
        {"kind": "BoundedRangeLoss", "epsilon": 0.8}, lambda n: events.logit_range(0.8 * n),
        0.01, OWN, (1, 2), lattice=True,
    ),
    "ZCDPLoss": Case(
        {"kind": "ZCDPLoss", "rho": 0.1}, moved(math.sqrt(0.2)), 1e-9,
        most=events.zcdp_at_most(0.1),
    ),
    # of a small rho: a pure loss of xi satisfies it
    "ZCDPLoss of a xi": Case(
        {"kind": "ZCDPLoss", "rho": 1e-6, "xi": 0.3}, laplace(0.3), most=just(0.32)
    ),
    "ApproxLoss": Case(
        {"kind": "ApproxLoss", "epsilon": 0.5, "delta": 1e-4},
        lambda n: events.response(0.5, 1e-4, n),
    ),
    "DiscreteLaplaceLoss": Case(
        {"kind": "DiscreteLaplaceLoss", "scale": 3.0, "shift": 2},
        lambda n: events.integers(lambda k: -abs(k) / 3.0, 2 * n), 0.0,
    ),
    "DiscreteLaplace": Case(
        {"kind": "DiscreteLaplace", "scale": 3.0, "sensitivity": 2},
        lambda n: events.integers(lambda k: -abs(k) / 3.0, 2 * n),
    ),
    "DiscreteGaussianLoss": Case(
        {"kind": "DiscreteGaussianLoss", "scale": 3.0, "shift": 2},
        lambda n: events.integers(lambda k: -(k**2) / 18.0, 2 * n),
    ),
    "DiscreteGaussian": Case(
        {"kind": "DiscreteGaussian", "scale": 3.0, "sensitivity": 2},
        lambda n: events.integers(lambda k: -(k**2) / 18.0, 2 * n),
    ),
    "SummedNoiseLoss": Case(
        {"kind": "SummedNoiseLoss", "shift": 2,
         "noise": {"kind": "SkellamNoise", "scale": 1.0, "terms": 9}},
        lambda n: events.integers(skellam_of_9, 2 * n), sizes=ALONE,
    ),
    "Skellam": Case(
        {"kind": "Skellam", "scale": 3.0, "sensitivity": 2.0},
        lambda n: events.integers(skellam_of_9, 2 * n), sizes=ALONE,
    ),
    "SumOfClients": Case(
        {"kind": "SumOfClients", "clients": 12, "dropout": 3,
         "mechanism": {"kind": "Skellam", "scale": 1.0, "sensitivity": 2.0}},
        lambda n: events.integers(skellam_of_9, 2 * n), sizes=ALONE,
    ),
    "RandomizedResponse": Case(  # each record has its own
        {"kind": "RandomizedResponse", "k": 3, "keep": 0.6},
        lambda n: events.outcomes([0.6, 0.2, 0.2], [0.2, 0.6, 0.2], n), 0.0, OWN,
    ),
    "PairLoss": Case(  # of each record there is a report
        {"kind": "PairLoss", "p": [0.5, 0.25, 0.25], "q": [0.25, 0.5, 0.25]},
        lambda n: events.outcomes([0.5, 0.25, 0.25], [0.25, 0.5, 0.25], n),
    ),
    "PairLoss, dearer in reverse": Case(
        {"kind": "PairLoss", "p": [0.9, 0.1], "q": [0.6, 0.4]},
        lambda n: events.outcomes([0.6, 0.4], [0.9, 0.1], n), relations=OWN, sizes=ALONE,
    ),
    # what reveals the record with some chance costs infinitely much
    "ApproxLoss at delta 0": Case(
        {"kind": "ApproxLoss", "epsilon": 0.5, "delta": 1e-4},
        lambda n: events.response(0.5, 1e-4, n), 0.0, OWN, ALONE, proved=False,
    ),
    "MixtureOfGaussians": Case(
        {"kind": "MixtureOfGaussians", "weights": [0.5, 0.5], "shifts": [1.0, 2.0], "scale": 2.0},
        lambda n: normals({0.5 * (n + j): w for j, w in hits(1, n, 0.5).items()}), 0.01,
        relations=OWN, sizes=(1, 2),
    ),
}  # fmt: skip
SAMPLES = {
    "PoissonSampled": Case(
        {"kind": "PoissonSampled", "part": normal(1.0), "rate": 0.2},
        lambda n: normals(hits(1.0, n, 0.2)), 0.01, ADDED, (1, 3),
    ),
    "PoissonSampled, replaced": Case(
        {"kind": "PoissonSampled", "part": normal(1.0), "rate": 0.2},
        lambda n: normals(hits(1.0, n, 0.2), hits(-1.0, n, 0.2)), 0.01, REPLACED, (1, 2),
    ),
    # a sample without the record is far from each that has it
    "PoissonSampled of a replaced": Case(
        {"kind": "PoissonSampled", "part": normal(1.0, "replace-one"), "rate": 0.2,
         "relation": "replace-one"},
        lambda n: normals({-99.0: 0.8, 1.0 * n: 0.2}, {-99.0: 0.8, 0.0: 0.2}), 0.01, OWN, ALONE,
        proved=False,
    ),
    "PoissonSampled of a replaced, by default": Case(
        {"kind": "PoissonSampled", "part": normal(1.0, "replace-one"), "rate": 0.2},
        lambda n: normals({0.0: 0.8, 20.0: 0.2}), 0.01, OWN, ALONE, proved=False,
    ),
    "PoissonSampled of a label": Case(  # a record in the sample is seen by its answer
        {"kind": "PoissonSampled", "rate": 0.2,
         "part": {"kind": "RandomizedResponse", "k": 3, "keep": 0.6}},
        lambda n: events.outcomes([0.8, 0.2], [1.0, 0.0]), 0.01, OWN, ALONE, proved=False,
    ),
    "PoissonSampled at rate 1": Case(
        {"kind": "PoissonSampled", "part": normal(0.5), "rate": 1.0}, moved(0.5), 0.01, ADDED,
        (1, 3),
    ),
    "PoissonSampled of DiscreteGaussianLoss": Case(
        {"kind": "PoissonSampled", "rate": 0.2,
         "part": {"kind": "DiscreteGaussianLoss", "scale": 0.5, "shift": 2}},
        lambda n: sampled_integers(), 0.01, ("add-remove",), ALONE,
    ),
    "PoissonSampled of PureLoss, replaced": Case(
        {"kind": "PoissonSampled", "part": {"kind": "PureLoss", "epsilon": 1.0}, "rate": 0.2},
        lambda n: laplaces(hits(1.0, n, 0.2), hits(-1.0, n, 0.2)), 0.0, REPLACED, proved=False,
    ),
    "PoissonSampled of Laplace": Case(
        {"kind": "PoissonSampled", "part": {"kind": "LaplaceLoss", "shift": 1.0}, "rate": 0.2},
        lambda n: laplaces(hits(1.0, n, 0.2)), 0.0, ("add-remove",),
    ),
    "PoissonSampled of Laplace on a lattice": Case(
        {"kind": "PoissonSampled", "part": {"kind": "LaplaceLoss", "shift": 1.0}, "rate": 0.2},
        lambda n: laplaces(hits(1.0, n, 0.2)), 0.01, ("add-remove",), (1, 2), lattice=True,
    ),
    "PoissonSampled of PureLoss": Case(
        {"kind": "PoissonSampled", "part": {"kind": "PureLoss", "epsilon": 1.0}, "rate": 0.2},
        lambda n: laplaces(hits(1.0, n, 0.2)), 0.0, ("add-remove",),
    ),
    "SampledWithoutReplacement": Case(
        {"kind": "SampledWithoutReplacement", "part": normal(1.0), "sample": 1, "population": 5},
        lambda n: normals({1.0: 0.2 * n, 0.0: 1 - 0.2 * n}), 0.01, REPLACED, (1, 2), lattice=True,
    ),
    "SampledWithoutReplacement of an added": Case(
        {"kind": "SampledWithoutReplacement", "part": normal(1.0, "add-remove"), "sample": 1,
         "population": 5},
        lambda n: normals({1.0: 0.2, 0.0: 0.8}, {-1.0: 0.2, 0.0: 0.8}), 0.01, OWN, ALONE,
        lattice=True, proved=False,
    ),
    "TruncatedPoisson": Case(
        {"kind": "TruncatedPoisson", "part": normal(1.0), "rate": 0.99, "records": 2, "batch": 1},
        lambda n: events.truncated(n, 0.99, 2, 1, replaced=False), 0.01, ("add-remove",), (1, 2),
        lattice=True, most=normals({2.0: 1.0}),
    ),
    "TruncatedPoisson, replaced": Case(
        {"kind": "TruncatedPoisson", "part": normal(1.0), "rate": 0.2, "records": 5, "batch": 4},
        lambda n: events.truncated(n, 0.2, 5, 4, replaced=True), 0.01, REPLACED, (1, 2),
        lattice=True, most=normals({2.0: 1.0}),
    ),
    "ShuffledEpoch": Case(
        {"kind": "ShuffledEpoch", "part": normal(1.0), "batches": 3},
        lambda n: events.greatest_of(
            events.greatest_batch(1.0, 3), normals({n / math.sqrt(3): 1.0})
        ),
        relations=REPLACED, lattice=True, most=normals({1.0: 1.0}),
    ),
    "ShuffledEpoch, blanked": Case(
        {"kind": "ShuffledEpoch", "part": normal(1.0), "batches": 3},
        lambda n: events.greatest_of(
            events.greatest_batch(1.0, 3, 1.0), normals({n / math.sqrt(3): 1.0})
        ),
        relations=("zero-out",), lattice=True, most=normals({1.0: 1.0}),
    ),
    "ShuffledEpoch of PairLoss": Case(  # what the others give shows the batch
        {"kind": "ShuffledEpoch", "batches": 3,
         "part": {"kind": "PairLoss", "p": [0.9, 0.1], "q": [0.6, 0.4]}},
        lambda n: events.outcomes([0.6, 0.4], [0.9, 0.1]), relations=REPLACED, sizes=ALONE,
    ),
    "ShuffledEpoch of a replaced": Case(
        {"kind": "ShuffledEpoch", "part": normal(1.0, "replace-one"), "batches": 3},
        lambda n: normals({20.0: 1.0}), 0.01, (None, "zero-out"), ALONE, lattice=True,
        proved=False,
    ),
    "RandomAllocation": Case(
        {"kind": "RandomAllocation", "part": normal(0.5), "steps": 12},
        lambda n: (
            events.one_of_many(0.5, 12) if n == 1 else normals({0.5 * n / math.sqrt(12): 1.0})
        ),
        0.01, ADDED, (1, 8),
    ),
    "RandomAllocation of 3 picks": Case(
        {"kind": "RandomAllocation", "part": normal(0.5), "steps": 4, "picks": 3},
        lambda n: normals({0.75 * n: 1.0}), 0.01, OWN, ALONE, lattice=True,
        most=normals({0.5 * math.sqrt(3): 1.0}),
    ),
    "RandomAllocation, all picked": Case(
        {"kind": "RandomAllocation", "part": normal(0.5), "steps": 3, "picks": 3, "epochs": 2},
        lambda n: normals({0.5 * math.sqrt(6) * n: 1.0}), 0.01, OWN,
    ),
}  # fmt: skip
HOLDERS = {
    "Sequential": Case(
        {"kind": "Sequential", "parts": [normal(1.0), normal(0.75)]}, moved(1.25)
    ),
    # the neighbours of one part cost twice as much in the other
    "Sequential of two relations": Case(
        {"kind": "Sequential", "parts": [normal(1.0, "replace-one"), normal(1.0, "add-remove")]},
        moved(math.sqrt(5)), relations=OWN, sizes=ALONE, proved=False,
    ),
    "Sequential of a pass and a replaced": Case(
        {"kind": "Sequential", "parts": [
            {"kind": "OnePass", "part": normal(1.0, "add-remove"), "batches": 3},
            normal(1.0, "replace-one")]},
        moved(math.sqrt(5)), relations=OWN, sizes=ALONE, proved=False,
    ),
    "Parallel": Case(
        {"kind": "Parallel", "parts": [normal(0.25), normal(1.0)]}, moved(1.0)
    ),
    # a record that moves is in both parts
    "Parallel with moves": Case(
        {"kind": "Parallel", "by": "value", "parts": [normal(0.5)] * 2,
         "moves": [normal(1.0)] * 2},
        moved(math.sqrt(2)), relations=OWN, sizes=ALONE, proved=False,
    ),
    "Parallel of replaced values": Case(
        {"kind": "Parallel", "by": "value", "parts": [normal(1.0)] * 2},
        moved(math.sqrt(2)), relations=REPLACED, sizes=ALONE, proved=False,
    ),
    # an answer decides which part is chosen next; the other noise keeps its sums far apart
    "Parallel, repeated": Case(
        {"kind": "Repeat", "count": 2, "part": {"kind": "Parallel", "parts": [
            {"kind": "ApproxLoss", "epsilon": 0.5, "delta": 0.01}, normal(0.2)]}},
        lambda n: events.response(0.5, 0.01, 2 * n), 0.022, lattice=True,
        most=just(1.05),
    ),
    "Parallel, dearer in reverse": Case(
        {"kind": "Repeat", "count": 2, "part": {"kind": "Parallel", "parts": [
            {"kind": "PairLoss", "p": [0.9, 0.1], "q": [0.6, 0.4]},
            {"kind": "PureLoss", "epsilon": 0.1}]}},
        lambda n: events.outcomes([0.6, 0.4], [0.9, 0.1], 2), 0.01, OWN, ALONE, lattice=True,
    ),
    "Parallel at delta 0": Case(
        {"kind": "Repeat", "count": 2, "part": {"kind": "Parallel", "parts": [
            {"kind": "PairLoss", "p": [0.5, 0.5], "q": [0.4, 0.6]},
            {"kind": "PairLoss", "p": [0.9, 0.1], "q": [0.6, 0.4]}]}},
        lambda n: just(2 * math.log(4)), 0.0, OWN, ALONE,
    ),
    "Parallel of PureLoss at delta 0": Case(
        {"kind": "Repeat", "count": 2, "part": {"kind": "Parallel", "parts": [
            {"kind": "PureLoss", "epsilon": 0.1}, {"kind": "LaplaceLoss", "shift": 0.5}]}},
        lambda n: just(1.0), 0.0, OWN, ALONE,
    ),
    "Repeat": Case(
        {"kind": "Repeat", "part": normal(0.25), "count": 16}, moved(1.0)
    ),
    "Grouped": Case({"kind": "Grouped", "part": normal(0.5), "size": 2}, moved(1.0)),
    "OnePass": Case({"kind": "OnePass", "part": normal(1.0), "batches": 3}, moved(1.0)),
    "Claimed": Case(
        {"kind": "Claimed", "loss": {"kind": "ZCDPLoss", "rho": 0.1},
         "mechanism": {"kind": "Claims"}},
        moved(math.sqrt(0.2)), 1e-9, most=events.zcdp_at_most(0.1),
    ),
}  # fmt: skip
CASES = LOSSES | SAMPLES | HOLDERS


def plans(case: Case):
    """A case in groups and for neighbours of each sort, and how many records they differ by."""
    for relation in case.relations:
        node = dict(case.node)
        if relation is not None:
            own = node["kind"] in {one.node["kind"] for one in SAMPLES.values()}
            node = node | {"relation": relation} if own else stated(node, relation)
        for size in case.sizes:
            yield node if size == 1 else {"kind": "Grouped", "part": node, "size": size}, size


def verdict(node, delta, ends, *, lattice):
    """What the checker says of the best proof that the writer finds; None where it finds none."""
    with pytest.MonkeyPatch.context() as patch:
        # one try of each road, up to the first that leads nowhere: the others show no more
        patch.setattr(contour_parameters, "SHARES", ())
        patch.setattr(contour_parameters, "LAST_SHARE", 1e-3)
        patch.setattr(writer, "lattice_entry", coarse_lattice)
        patch.setattr(lattice_parameters, "FEW_NODES", 200)
        if not lattice:
            patch.setattr(Search, "_above", _first_that_holds)
        Budget.remaining = 0.0  # as before the first proof of a process
        try:
            options = alternatives(node, decimal=delta == 0)
            entries = Search(options, delta, *ends).entries()
        except (NoProof, NoMethod, ProofError):
            return None
    whole = {"proof": 1, "plan": node, "delta": float(delta).hex(), **entries}
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"))
    return verify(f"{text}\n".encode())


def _first_that_holds(search, direction):
    for entry in search._precise(direction, lower=False):
        if search._holds(entry, lower=False):
            return writer.Shown(entry, search._upper)
    raise NoMethod("no road holds")


def violation(names=tuple(CASES)) -> str:
    """A plan of which the checker proves that it costs less than it is known to cost."""
    for name in names:
        case = CASES[name]
        for node, size in plans(case):
            least = case.cost(size)(case.delta)
            claim = min(SHARE * least, FINITE)
            found = verdict(node, case.delta, (0.0, claim), lattice=case.lattice)
            if found is not None and found.word != "NOT PROVED" and not found.upper >= least:
                return f"{found.word} that {node} costs {found.upper}, and it costs {least}"
    return ""


def excess_violation(names=tuple(CASES)) -> str:
    """A plan of which the checker proves that it costs more than it does, or nothing at all."""
    for name in names:
        case = CASES[name]
        node, size = next(iter(plans(case)))
        most = min((case.most or case.cost(size))(case.delta), FINITE)
        ends = EXCESS * most, 1.5 * most + 1.0
        found = verdict(node, case.delta, ends, lattice=case.lattice)
        is_proved = found is not None and found.word != "NOT PROVED"
        if is_proved != case.proved:
            return f"{node} has {'a' if is_proved else 'no'} proof"
        if found is not None and found.word == "PROVED" and not found.lower <= most:
            return f"PROVED that {node} costs {found.lower}, and it costs {most} at most"
    return ""


@pytest.mark.parametrize("name", CASES)
def test_no_claim_below_a_known_cost_is_proved(name):
    assert violation([name]) == ""


@pytest.mark.parametrize("name", CASES)
def test_enough_is_proved_and_no_claim_above_a_known_cost(name):
    """The table says something: of the same plans the writer proves what is true."""
    assert excess_violation([name]) == ""
