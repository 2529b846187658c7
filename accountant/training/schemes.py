"""Which plans bound the cost of a run under a loader, for one record.

References: those of the nodes; `docs/proofs/training.md` for microbatches, samples of fixed size,
and passes that are cut short.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import final

from accountant.amplification.group_privacy import Grouped
from accountant.amplification.poisson_sampling import PoissonSampled
from accountant.amplification.random_allocation import RandomAllocation
from accountant.amplification.sampling_without_replacement import SampledWithoutReplacement
from accountant.amplification.single_pass import OnePass, ShuffledEpoch, shuffled_pair
from accountant.amplification.truncated_sampling import TruncatedPoisson
from accountant.losses.gaussian import GaussianLoss
from accountant.numerics.rounding import round_up_ratio
from accountant.plans.adjacency import Adjacency
from accountant.plans.plan import Plan
from accountant.training.run import TrainingRun

ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE


@final
@dataclass(frozen=True, slots=True)
class Scheme:
    """What bounds a run: each of ``above`` does, and the run costs what ``below`` costs at least.

    Without ``below`` no lower end is known.  ``note`` says by which argument the bound holds, where
    it is not attained.  ``stated`` is the plan to write down, if it is not the first of ``above``.
    """

    above: tuple[Plan, ...]
    below: Plan | None = None
    note: str = ""
    stated: Plan | None = None

    @property
    def plan(self) -> Plan:
        """What the run releases, as a plan whose bound is one of ``above``."""
        return self.above[0] if self.stated is None else self.stated


def gaussian(noise: float, clips: float) -> GaussianLoss:
    """Return what a sum pays that one record or user moves by so many clipping norms."""
    return GaussianLoss(round_up_ratio(clips, noise))


def record_scheme(
    run: TrainingRun, noise: float, loader: str, relation: Adjacency, *, microbatching: bool
) -> Scheme:
    """Return the plans that bound what one record costs under a loader."""
    return SCHEMES[loader](run, noise, relation, microbatching)


def _poisson(run: TrainingRun, z: float, relation: Adjacency, micro: bool) -> Scheme:
    def plan(clips: float) -> Plan:
        return run.draws * PoissonSampled(gaussian(z, clips), run.sampling_rate, relation)

    return _as_without_microbatches(plan, micro)


def _truncated_poisson(run: TrainingRun, z: float, relation: Adjacency, micro: bool) -> Scheme:
    sizes = run.sampling_rate, run.examples, run.largest_batch

    def plan(clips: float) -> Plan:
        return run.draws * TruncatedPoisson(gaussian(z, clips), *sizes, relation)

    return _as_without_microbatches(plan, micro)


def _as_without_microbatches(plan: Callable[[float], Plan], micro: bool) -> Scheme:
    """Return a scheme whose sensitivity microbatches double, and whose least cost they keep."""
    # others that contribute nothing and a long gradient of the record: microbatches change nothing
    return Scheme((plan(2),), plan(1), "bound") if micro else Scheme((plan(1),), plan(1))


def _fixed_size(run: TrainingRun, z: float, relation: Adjacency, micro: bool) -> Scheme:
    # the record takes the place of another, alone or in its microbatch
    moved = gaussian(z, 2)
    if relation is ADD_REMOVE:
        attained = run.draws * PoissonSampled(moved, run.batch / run.examples)
        return Scheme((attained,), attained)
    node = run.draws * SampledWithoutReplacement(moved, run.batch, run.examples)
    return Scheme((node,), node)


def _random_allocation(run: TrainingRun, z: float, relation: Adjacency, micro: bool) -> Scheme:
    def plan(clips: float, epochs: int) -> Plan:
        return RandomAllocation(gaussian(z, clips), run.batches, epochs=epochs)

    begun, whole = math.ceil(run.passes), math.floor(run.passes)
    least = plan(1, whole) if whole else None
    node = plan(2 if micro else 1, begun)
    if relation is ADD_REMOVE:
        return Scheme((node,), least, "bound" if micro or begun > whole else "")
    fixed = begun * OnePass(gaussian(z, 2), run.batches)
    return Scheme((Grouped(node, 2), fixed), least, "group")


def _shuffled(run: TrainingRun, z: float, relation: Adjacency, micro: bool) -> Scheme:
    clips = 2 if micro or relation is REPLACE_ONE else 1
    begun, whole = math.ceil(run.passes), math.floor(run.passes)
    node = ShuffledEpoch(gaussian(z, clips), run.batches, relation)
    bound = begun * OnePass(gaussian(z, clips), run.batches)
    least = _least_shuffled(run, z, relation, micro, whole)
    return Scheme((bound,), least, "order", begun * node)


def _least_shuffled(
    run: TrainingRun, z: float, relation: Adjacency, micro: bool, passes: int
) -> Plan | None:
    """Return what whole passes cost at least, by a pair of data sets that differ in a record."""
    if not passes:
        return None
    if run.batches == 1 and not run.dropped:
        return _fixed_order(run, z, relation, micro).plan if passes == run.passes else None
    both = micro or relation is REPLACE_ONE
    mu = (2 if both else 1) / z
    if run.dropped:  # a pass uses the record with this chance
        pair = shuffled_pair(mu, 0.0, run.batches)
        return passes * PoissonSampled(pair, 1 - run.dropped / run.examples)
    if micro and relation is ADD_REMOVE and run.last_batch:
        mu, both = 1 / z, False  # the last microbatch may hold the record alone
    # the others contribute the opposite of the record, or what it is replaced by
    return passes * shuffled_pair(mu, 0.0 if both else mu, run.batches)


def _fixed_order(run: TrainingRun, z: float, relation: Adjacency, micro: bool) -> Scheme:
    clips = 2 if micro or relation is REPLACE_ONE else 1
    # the record of the first batch is in every pass that was begun
    plan = math.ceil(run.passes) * OnePass(gaussian(z, clips), run.batches)
    return Scheme((plan,), plan)


SCHEMES: dict[str, Callable[[TrainingRun, float, Adjacency, bool], Scheme]] = {
    "poisson": _poisson,
    "truncated_poisson": _truncated_poisson,
    "fixed_size": _fixed_size,
    "random_allocation": _random_allocation,
    "shuffled": _shuffled,
    "fixed_order": _fixed_order,
}


def certified(
    scheme: Scheme, certify: Callable[[Plan], tuple[float, float]]
) -> tuple[float, float]:
    """Return an interval around what a scheme costs; the upper end is infinite if none answers."""
    ends = list(_answers(scheme.above, certify))
    upper = min((end for _, end in ends), default=math.inf)
    least = list(_answers(() if scheme.below is None else (scheme.below,), certify))
    return min(max((end for end, _ in least), default=0.0), upper), upper


def _answers(
    plans: Iterable[Plan], certify: Callable[[Plan], tuple[float, float]]
) -> Iterable[tuple[float, float]]:
    from accountant.errors import ParameterError, UnsupportedPlan

    for plan in plans:
        try:
            yield certify(plan)
        except (ParameterError, UnsupportedPlan):
            continue
