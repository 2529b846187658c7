"""Which plans bound the cost of a run under a loader, for one record.

A loader is the way in which a run makes batches.  Lengths are in clipping norms, or *clips*: the
noisy sum of a step moves by that many if a record is added, blanked (it keeps its place and
contributes nothing) or replaced.  That is 1 for a record that is added or blanked, and 2 for one
that is replaced.  (`PoissonSampled` and `TruncatedPoisson` are given the 1 for a replaced record
too, as they count the one that leaves and the one that comes.)  With microbatches (``micro``) means
of several gradients are clipped, and any change of a record moves the clipped mean by up to 2.  A
*pass* goes through all records once.  A ``node`` is a plan of one of the classes imported below.

`record_scheme` is the one place that says which neighbours each bound is for; the table of
`docs/training.md` says the same in words.

References: those of the nodes; `docs/proofs/training.md` for microbatches, samples of fixed size,
passes that are cut short, and removed records of passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import final

from accountant.amplification.allocation.greatest_output import greatest_output_pair
from accountant.amplification.group_privacy import Grouped
from accountant.amplification.poisson_sampling import PoissonSampled
from accountant.amplification.random_allocation import RandomAllocation
from accountant.amplification.sampling_without_replacement import SampledWithoutReplacement
from accountant.amplification.single_pass import OnePass, ShuffledEpoch
from accountant.amplification.truncated_sampling import TruncatedPoisson
from accountant.composition.composed_loss import loss_of_item
from accountant.errors import ParameterError, UnsupportedPlan
from accountant.losses.finite_pair import PairLoss
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.mixture_of_gaussians import MixturePairLoss
from accountant.losses.mixture_pair import MixturePair
from accountant.losses.normal_mixture import side
from accountant.numerics.rounding import round_up_ratio
from accountant.plans.adjacency import Adjacency
from accountant.plans.parallel import Stated
from accountant.plans.plan import Plan, Sequential
from accountant.training.passes import (
    ordered_removal_squares,
    removal_takes_a_batch,
    root_up,
    shuffled_removal_squares,
    steps_of_passes,
)
from accountant.training.run import TrainingRun

ADD_REMOVE, ZERO_OUT, REPLACE_ONE = (
    Adjacency.ADD_REMOVE,
    Adjacency.ZERO_OUT,
    Adjacency.REPLACE_ONE,
)
# The notes of schemes in which a removed record has no bound: because a pass has one batch less, or
# because the microbatches of others change.
FEWER_BATCHES, REGROUPED = "batches", "microbatches"
UNBOUNDED = (FEWER_BATCHES, REGROUPED)


@final
@dataclass(frozen=True, slots=True)
class Scheme:
    """Bounds of a run: each plan in ``above`` costs at least as much, each in ``below`` at most.

    Without ``below`` no lower end is known.  ``note`` is "" where the bound is attained; else it
    says how it holds: "group" by group privacy, "bound" by another inequality, or by the lesser of
    two; or it is one of `UNBOUNDED`.  ``stated`` is the plan to write down, if it
    is not the first of ``above``.
    """

    above: tuple[Plan, ...]
    below: tuple[Plan, ...] = ()
    note: str = ""
    stated: Plan | None = None

    @property
    def plan(self) -> Plan:
        """What the run releases, as a plan whose bound is one of ``above``."""
        return self.above[0] if self.stated is None else self.stated


def gaussian(noise: float, clips: float) -> GaussianLoss:
    """Return the loss of a noisy sum that one record or user moves by ``clips`` clipping norms."""
    return GaussianLoss(round_up_ratio(clips, noise))


def note_of(plan: Plan) -> str:
    """Return the note of a plan whose lower end is its own: "bound" where the ends are apart."""
    # Allocations of very little, or very much, noise are bounded, and not integrated.
    losses = (loss_of_item(item) for item, _ in plan.losses())
    return "bound" if any(loss.numerics.is_upper_envelope for loss in losses) else ""


def record_scheme(
    run: TrainingRun, noise: float, loader: str, relation: Adjacency, *, microbatching: bool
) -> Scheme:
    """Return the plans that bound what one record costs under a loader, for these neighbours.

    ``noise`` is the noise multiplier: the deviation of the noise over the clipping norm.
    """
    # In a pass, a batch of one record is its own microbatch: the mean is the record's gradient.
    has_others = microbatching and run.batch > 1
    match loader:
        case "fixed_size":
            return _fixed_size(run, noise, relation, microbatching)
        case "random_allocation":
            return _random_allocation(run, noise, relation, microbatching)
        case "shuffled":
            return _shuffled(run, noise, relation, has_others)
        case "fixed_order":
            return _fixed_order(run, noise, relation, has_others)

    def poisson_steps(clips: float) -> Plan:
        step, rate = gaussian(noise, clips), run.sampling_rate
        if loader == "truncated_poisson":
            sizes = rate, run.examples, run.largest_batch
            return run.draws * TruncatedPoisson(step, *sizes, relation)
        return run.draws * PoissonSampled(step, rate, relation)

    # ``attained`` is the cost without microbatches.  With them a record moves its clipped mean by
    # up to 2 clips.  The lower end stays: if the others contribute nothing and the record's
    # gradient is long enough, the mean of its microbatch is clipped to the same length.
    attained = poisson_steps(clips=1)
    if microbatching:
        return Scheme(above=(poisson_steps(clips=2),), below=(attained,), note="bound")
    return Scheme(above=(attained,), below=(attained,))


# --- the schemes of the other loaders; the arguments are those of `record_scheme`


def _fixed_size(run: TrainingRun, noise: float, relation: Adjacency, micro: bool) -> Scheme:
    # The record takes the place of another, alone or in its microbatch, so the sum moves by 2.
    moved = gaussian(noise, clips=2)
    if relation is ADD_REMOVE:
        attained = run.draws * PoissonSampled(moved, run.sampling_rate)
        return Scheme(above=(attained,), below=(attained,))
    node = run.draws * SampledWithoutReplacement(moved, run.batch, run.examples)
    if relation is ZERO_OUT:
        # A blank is one of the records that may replace the record, so ``node`` is a bound.
        # Another one is a step that compares both with a third record, whose place they take in the
        # batch with chance ``rate``: the sum moves by up to 2 clips for the record, on one side,
        # and by 1 for the blank (2 with microbatches), on the other.
        rate = run.sampling_rate
        right_side, left_side = (
            side(shifts=(0.0, gaussian(noise, clips).mu), weights=(1 - rate, rate))
            for clips in (2, 2 if micro else 1)
        )
        sides = run.draws * MixturePairLoss(MixturePair(right_side, left_side))
        attained = run.draws * PoissonSampled(gaussian(noise, clips=1), rate)
        return Scheme(above=(node, sides), below=(attained,), note="bound")
    return Scheme(above=(node,), below=(node,))


def _random_allocation(run: TrainingRun, noise: float, relation: Adjacency, micro: bool) -> Scheme:
    def plan(clips: float, epochs: int) -> Plan:
        stated = ADD_REMOVE if relation is REPLACE_ONE else relation
        part = gaussian(noise, clips)
        return RandomAllocation(part, run.batches, epochs=epochs, relation=stated)

    # Upper bounds count a pass that was begun as a whole one, lower bounds leave it out.
    begun_passes, whole_passes = math.ceil(run.passes), math.floor(run.passes)
    below = (plan(clips=1, epochs=whole_passes),) if whole_passes else ()
    node = plan(clips=2 if micro else 1, epochs=begun_passes)
    if relation is not REPLACE_ONE:
        is_attained = not micro and begun_passes == whole_passes
        return Scheme(above=(node,), below=below, note=note_of(node) if is_attained else "bound")
    # A replaced record is a group of two: one is removed, the other added.  The other bound is that
    # both use the same step of each pass.
    same_step = begun_passes * OnePass(Stated(gaussian(noise, clips=2), relation), run.batches)
    return Scheme(above=(Grouped(node, 2), same_step), below=below, note="group")


def removal_bound(run: TrainingRun, size: int, *, microbatching: bool) -> str:
    """Return why ``size`` records that are removed from passes have no bound; "" if they have."""
    if removal_takes_a_batch(run, size):
        return FEWER_BATCHES
    return REGROUPED if microbatching else ""


def unbounded(why: str) -> Scheme:
    """Return the scheme of a run without a bound: its plan reveals the record."""
    reveals_all = PairLoss(p=(1.0, 0.0), q=(0.0, 1.0))
    return Scheme(above=(Stated(reveals_all, ADD_REMOVE),), note=why)


def shuffled_removal(run: TrainingRun, noise: float) -> Plan:
    """Return what a record that is removed from shuffled passes costs."""
    # With the record, a pass is one without it in which the record takes a random place, and the
    # record that was there comes last: two clips in a random full batch, and one clip in the last
    # batch, if no batch is left out and the pass gets there.
    passes, begun = divmod(steps_of_passes(run), run.batches)
    if run.dropped:
        whole_pass: Plan = _in_random_batch(run, noise, run.batches)
    else:
        last_batch = Stated(gaussian(noise, clips=1), ADD_REMOVE)
        whole_pass = _in_random_batch(run, noise, run.batches - 1) + last_batch
    return passes * whole_pass + _in_random_batch(run, noise, begun)


def _in_random_batch(run: TrainingRun, noise: float, batches: int) -> Plan:
    """Return what a record costs that takes another one's place in the first batches of a pass."""
    if not batches:
        return Sequential([])
    share = min(round_up_ratio(batches * run.batch, run.examples), 1.0)
    return PoissonSampled(RandomAllocation(gaussian(noise, clips=2), batches), share)


def removal_in_any_order(run: TrainingRun, noise: float, size: int = 1) -> Plan:
    """Return what bounds ``size`` records removed from shuffled passes, also of known orders."""
    moved = gaussian(noise, root_up(shuffled_removal_squares(run, size)))
    return math.ceil(run.passes) * Stated(moved, ADD_REMOVE)


def grouped_removal(run: TrainingRun, noise: float, size: int) -> Plan:
    """Return what bounds ``size`` records removed from shuffled passes one by one."""
    # The last one is removed from the least data, of which a batch is the largest share.
    least_run = replace(run, examples=run.examples - size + 1)
    return Grouped(shuffled_removal(least_run, noise), size)


def grouped_exchange(run: TrainingRun, noise: float, size: int = 1) -> Plan:
    """Return what bounds ``size`` records that others, or blanks, replace in shuffled passes."""
    # The other one is added, in a random place of a full batch, and the record is removed.  Of more
    # batches than these each would be a smaller share of the records.
    full_batches = run.examples // run.batch
    added = RandomAllocation(gaussian(noise, clips=2), full_batches, epochs=math.ceil(run.passes))
    return Grouped(added, 2 * size)


def ordered_removal(run: TrainingRun, noise: float, size: int = 1) -> Plan:
    """Return what ``size`` records removed from passes in a fixed order cost."""
    return Stated(gaussian(noise, root_up(ordered_removal_squares(run, size))), ADD_REMOVE)


def _shuffled(run: TrainingRun, noise: float, relation: Adjacency, micro: bool) -> Scheme:
    if relation is ADD_REMOVE:
        why = removal_bound(run, 1, microbatching=micro)
        if why:
            return unbounded(why)
        attained = shuffled_removal(run, noise)
        above: tuple[Plan, ...] = (attained, removal_in_any_order(run, noise))
        return Scheme(above=above, below=(attained,), note=note_of(attained))
    clips = 2 if micro or relation is REPLACE_ONE else 1
    begun_passes, whole_passes = math.ceil(run.passes), math.floor(run.passes)
    node = ShuffledEpoch(gaussian(noise, clips), run.batches, relation)
    in_any_order = begun_passes * OnePass(Stated(gaussian(noise, clips), relation), run.batches)
    below = _least_shuffled(run, noise, relation, micro, whole_passes)
    above = in_any_order, grouped_exchange(run, noise)
    return Scheme(above=above, below=below, note="bound", stated=begun_passes * node)


def _least_shuffled(
    run: TrainingRun, noise: float, relation: Adjacency, micro: bool, passes: int
) -> tuple[Plan, ...]:
    """Return lower bounds for whole passes, from pairs of data sets that differ in a record."""
    if not passes:
        return ()
    if run.batches == 1 and not run.dropped:
        return _fixed_order(run, noise, relation, micro).below if passes == run.passes else ()
    clips = 2 if micro or relation is REPLACE_ONE else 1
    if micro and relation is ZERO_OUT and run.last_batch and not run.dropped:
        clips = 1  # The last microbatch may hold the record alone.
    # If all others contribute what the record does after the change, or nothing, its batch alone
    # moves.  A pass uses the record with the probability below.
    moved = RandomAllocation(gaussian(noise, clips), run.batches)
    alone = passes * PoissonSampled(moved, 1 - run.dropped / run.examples)
    if clips == 2 or run.dropped:
        return (alone,)
    # If the others contribute the opposite of a record that is blanked, the batch of the blank is
    # one clip above the other batches, and that of the record two.
    return alone, passes * greatest_output_pair(1 / noise, 1 / noise, run.batches)


def _fixed_order(run: TrainingRun, noise: float, relation: Adjacency, micro: bool) -> Scheme:
    if relation is ADD_REMOVE:
        why = removal_bound(run, 1, microbatching=micro)
        if why:
            return unbounded(why)
        plan = ordered_removal(run, noise)
        return Scheme(above=(plan,), below=(plan,))
    clips = 2 if micro or relation is REPLACE_ONE else 1
    # A record of the first batch is used in every pass that was begun.
    plan = math.ceil(run.passes) * OnePass(Stated(gaussian(noise, clips), relation), run.batches)
    return Scheme(above=(plan,), below=(plan,))


def certified(
    scheme: Scheme, certify: Callable[[Plan], tuple[float, float]]
) -> tuple[float, float]:
    """Return an interval around what a scheme costs; the upper end is infinite if none answers.

    ``certify`` returns an interval around the epsilon of a plan.  A plan for which it raises, as it
    cannot bound it, is left out.
    """
    ends = list(_answers(scheme.above, certify))
    upper = min((end for _, end in ends), default=math.inf)
    lower_ends = list(_answers(scheme.below, certify))
    return min(max((end for end, _ in lower_ends), default=0.0), upper), upper


def _answers(
    plans: Iterable[Plan], certify: Callable[[Plan], tuple[float, float]]
) -> Iterable[tuple[float, float]]:
    for plan in plans:
        try:
            yield certify(plan)
        except (ParameterError, UnsupportedPlan):
            continue
