"""Which plans bound the cost of a run of DP-SGD for a user with several records.

A loader is the way in which a run makes batches.  For Poisson samples and samples of fixed size, a
step is a mixture of Gaussians over the number of the user's records in its batch; for random
allocation and for passes over the data, the bound is that of a group of records, or of the largest
move.

Lengths are in clipping norms, or *clips*.  A *blank* is a record that contributes nothing and keeps
its place, as in zero-out neighbours.  With microbatches (``micro``) means of several gradients are
clipped, so that a record moves the sum by up to two clips.

References: Ganesh (2024), "Tight group-level DP guarantees for DP-SGD with sampling via mixture of
Gaussians mechanisms", Theorem 3.1; `docs/proofs/training.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from accountant.amplification.group_privacy import Grouped
from accountant.amplification.single_pass import OnePass
from accountant.amplification.truncated_sampling import binomial_tail
from accountant.losses.loss import Loss
from accountant.losses.mixture_of_gaussians import MixtureOfGaussians, MixturePairLoss
from accountant.losses.mixture_pair import MixturePair
from accountant.losses.normal_mixture import side
from accountant.losses.public_choice import PublicChoice
from accountant.losses.pure_and_approximate import ApproxLoss
from accountant.numerics.rounding import ULP
from accountant.plans.adjacency import Adjacency
from accountant.plans.parallel import Stated
from accountant.plans.plan import Plan
from accountant.training.loaders import PASSES
from accountant.training.passes import blanked_squares, root_up
from accountant.training.run import TrainingRun
from accountant.training.schemes import (
    ADD_REMOVE,
    REPLACE_ONE,
    ZERO_OUT,
    Scheme,
    gaussian,
    grouped_exchange,
    grouped_removal,
    ordered_removal,
    record_scheme,
    removal_bound,
    removal_in_any_order,
    unbounded,
)

# Up to this many records of a user, full and other truncated batches are distinguished; for more,
# which would take long, all batches are taken to be full, and the bound is larger.
FEW_RECORDS = 8
# Above this many records of a user, mixtures are composed by their Rényi curves alone: this is
# quick, and the bound is larger.
MANY_RECORDS = 200
# Counts of records that are rarer than the likeliest one by this factor are left out: it is far
# below any delta over the number of steps.
NEGLIGIBLE = 1e-34
MOST_COUNTS = 500  # counts in a mixture; with more of them it would take long: there is no bound


class RecordCounts(NamedTuple):
    """The numbers of the user's records that a batch may hold, each with its probability."""

    chances: tuple[tuple[int, float], ...]  # (number of records, probability)
    rare: float  # at least the probability of all numbers that are left out


def user_scheme(
    run: TrainingRun, noise: float, loader: str, relation: Adjacency, *, microbatching: bool
) -> Scheme:
    """Return the plans that bound what a user of ``examples_per_user`` records costs.

    The other arguments are those of `record_scheme`.
    """
    of_record = record_scheme(run, noise, loader, relation, microbatching=microbatching)
    if run.examples_per_user == 1 or run.examples_per_user is None:
        return of_record
    if loader in PASSES and relation is ADD_REMOVE:
        size = run.examples_per_user
        if why := removal_bound(run, size, microbatching=microbatching):
            return unbounded(why)
        above: tuple[Plan, ...] = (ordered_removal(run, noise, size),)
        if loader == "shuffled":
            above = (removal_in_any_order(run, noise, size),)
            if run.batches > 1:  # else all records are in the one batch
                above = grouped_removal(run, noise, size), *above
    else:
        above = _plans_above(run, noise, loader, relation, microbatching)
    is_attained = not (microbatching or is_long(run, loader)) and (
        loader in {"poisson", "fixed_order"} or (loader, relation) == ("fixed_size", ADD_REMOVE)
    )
    # Some user may have a single record, so a lower bound on a record's cost is one on a user's.
    below = above if is_attained and above else of_record.below
    note = NOTES[loader] or ("" if is_attained else "bound")
    return Scheme(above=above, below=below, note=note)


def is_long(run: TrainingRun, loader: str) -> bool:
    """Return whether only Rényi curves are composed, as mixtures of that many shifts take long."""
    return _size(run) > MANY_RECORDS and loader in {"poisson", "truncated_poisson", "fixed_size"}


def _plans_above(
    run: TrainingRun, noise: float, loader: str, relation: Adjacency, micro: bool
) -> tuple[Plan, ...]:
    """Return the plans of which each costs a user at least as much as the run; none if unknown."""
    size, clips = _size(run), 2 if micro else 1
    replaced_clips = 2 if relation is REPLACE_ONE else clips
    if loader == "random_allocation":
        of_record = record_scheme(run, noise, loader, ADD_REMOVE, microbatching=micro)
        group_size = 2 * size if relation is REPLACE_ONE else size
        # All records of a user may be allocated to the same step.
        worst_step = Stated(gaussian(noise, size * replaced_clips), relation)
        together = math.ceil(run.passes) * OnePass(worst_step, run.batches)
        return Grouped(of_record.above[0], group_size), together
    if loader in PASSES:
        worst_order = gaussian(noise, root_up(blanked_squares(run, size)) * replaced_clips)
        in_any_order = math.ceil(run.passes) * OnePass(Stated(worst_order, relation), run.batches)
        return (in_any_order, *([grouped_exchange(run, noise, size)] * (loader == "shuffled")))
    if loader == "fixed_size":
        counts = hypergeometric_counts(size, run.batch, run.examples)
    else:
        counts = binomial_counts(size, run.sampling_rate)
    if counts is None:
        return ()
    if loader == "fixed_size":
        # Each record, or blank, takes the place of another record.
        step = _step_loss(counts, noise, relation, clips=2, blank_clips=clips)
    elif loader == "truncated_poisson":
        step = _truncated_step(run, counts, clips, noise, relation)
    else:
        step = _step_loss(counts, noise, relation, clips=clips, blank_clips=0)
    # A step whose count of records was left out reveals everything.
    return (run.draws * (step + ApproxLoss(0.0, counts.rare) if counts.rare else step),)


def _truncated_step(
    run: TrainingRun, counts: RecordCounts, clips: int, noise: float, relation: Adjacency
) -> Loss:
    """Return the loss of a step with a truncated Poisson sample.

    The output may as well say whether the records of the others could fill the batch:
    `PublicChoice` is a loss whose case, of those listed, everybody sees.
    """
    size = _size(run)
    others = run.examples - size
    # Records are cut from a batch only if at least this many of other users are sampled.
    fewest_others = run.largest_batch - size + 1
    # Two cases take long for many records.  The worse one, a full batch, covers both.
    if size > FEW_RECORDS or fewest_others < 1:
        full_chance = 1.0
    elif fewest_others > others:
        full_chance = 0.0
    else:
        full_chance = binomial_tail(others, run.sampling_rate, fewest_others)
    cases = ((1 - full_chance, clips), (full_chance, 2 * clips))
    # In a full batch a record, or a blank, also takes the place of another record.
    possible_cases = [
        (
            chance,
            _step_loss(counts, noise, relation, clips=moved_clips, blank_clips=moved_clips - clips),
        )
        for chance, moved_clips in cases
        if chance > 0
    ]
    chances, losses = zip(*possible_cases, strict=True)
    return PublicChoice(losses, chances)


def _step_loss(
    counts: RecordCounts, noise: float, relation: Adjacency, *, clips: int, blank_clips: int
) -> Loss:
    """Return the loss of a step that a record moves by ``clips``, and a blank by ``blank_clips``.

    ``counts`` are those of the user's records in the batch of the step.  On one side of the pair
    the sum is moved by the user's records; on the other by nothing, by blanks, or by the records of
    another user.
    """
    record_counts, weights = zip(*counts.chances, strict=True)
    shifts = tuple(clips * j for j in record_counts)
    if relation is ADD_REMOVE or (relation is ZERO_OUT and not blank_clips):
        return MixtureOfGaussians(noise, shifts, weights)
    other_clips = clips if relation is REPLACE_ONE else blank_clips
    right_side, left_side = (
        side([gaussian(noise, moved * j).mu if j else 0.0 for j in record_counts], weights)
        for moved in (clips, other_clips)
    )
    return MixturePairLoss(MixturePair(right_side, left_side))


# For each loader the note of a user's scheme; "" where it depends on whether the bound is attained.
NOTES = {
    "poisson": "",
    "truncated_poisson": "bound",
    "fixed_size": "",
    "random_allocation": "group",
    "shuffled": "bound",
    "fixed_order": "",
}


def _size(run: TrainingRun) -> int:
    """Return the largest number of records of a user."""
    return run.examples_per_user or 1


def binomial_counts(size: int, rate: float) -> RecordCounts | None:
    """Return the counts of Bin(size, rate): each of ``size`` records is drawn by its own coin."""
    if rate >= 1:
        return RecordCounts(((size, 1.0),), 0.0)
    odds = rate / (1 - rate)
    return _chances_from_ratio(0, size, lambda j: (size - j) / (j + 1) * odds)


def hypergeometric_counts(size: int, batch: int, examples: int) -> RecordCounts | None:
    """Return the hypergeometric counts of ``size`` records among ``batch`` of ``examples``."""
    others = examples - size
    return _chances_from_ratio(
        max(0, batch - others),
        min(size, batch),
        lambda j: (size - j) * (batch - j) / ((j + 1) * (others - batch + j + 1)),
    )


def _chances_from_ratio(
    smallest: int, largest: int, ratio: Callable[[int], float]
) -> RecordCounts | None:
    """Return the probabilities of the counts ``smallest`` to ``largest``, rounded to more records.

    ``ratio(j)`` is the probability of j + 1 over that of j, and falls with j.  Counts of negligible
    probability are left out; a bound on the probability of the large ones among them is returned
    with the others.  None stands for too many counts.
    """
    low, high = smallest, largest
    while low < high:  # The likeliest count is the first whose successor is not likelier.
        middle = (low + high) // 2
        low, high = (middle + 1, high) if ratio(middle) > 1 else (low, middle)
    likeliest, chance = low, {low: 1.0}
    for direction in (1, -1):
        j = likeliest
        while smallest <= j + direction <= largest and chance[j] > NEGLIGIBLE:
            step = ratio(j) if direction > 0 else 1 / ratio(j - 1)
            j += direction
            chance[j] = chance[j - direction] * step
            if len(chance) > MOST_COUNTS:
                return None
    # ``chance`` is relative to the likeliest count until it is divided by ``total``.
    counts, rare = sorted(chance), 0.0
    total = math.fsum(chance.values())
    if counts[-1] < largest:
        # Ratios fall, so all later counts together are less than a geometric series: they have at
        # most chance / (1 - ratio).  The factor 2 covers round-off.  At most `MOST_COUNTS` counts
        # fall to `NEGLIGIBLE`, so the last ratio is below 0.86, and 1e-6 only avoids a division
        # by 0.
        last_count = counts[-1]
        rare = 2 * chance[last_count] / max(1 - ratio(last_count), 1e-6) / total
    # Each probability is exact to a few units in the last place for each step from the likeliest.
    # All but the first are raised by this error, and the first gets what remains.
    raised = [chance[j] / total * (1 + 8 * len(counts) * ULP) for j in counts[1:]]
    first_chance = max(1 - math.fsum(raised), 0.0)
    normaliser = math.fsum([first_chance, *raised])
    chances = [chance_up / normaliser for chance_up in (first_chance, *raised)]
    return RecordCounts(tuple(zip(counts, chances, strict=True)), rare)
