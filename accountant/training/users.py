"""Which plans bound the cost of a run for a user with several records.

References: Ganesh (2024), "Tight group-level DP guarantees for DP-SGD with sampling via mixture of
Gaussians mechanisms", Theorem 3.1; `docs/proofs/training.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from accountant.amplification.group_privacy import Grouped
from accountant.amplification.single_pass import OnePass
from accountant.amplification.truncated_sampling import binomial_tail
from accountant.losses.loss import Loss
from accountant.losses.mixture_of_gaussians import MixtureOfGaussians, MixturePairLoss
from accountant.losses.mixture_pair import MixturePair
from accountant.losses.normal_mixture import side
from accountant.losses.public_choice import PublicChoice
from accountant.losses.pure_and_approximate import ApproxLoss
from accountant.plans.adjacency import Adjacency
from accountant.plans.parallel import Stated
from accountant.plans.plan import Plan
from accountant.training.hits import Hits, binomial_hits, hypergeometric_hits
from accountant.training.loaders import PASSES
from accountant.training.passes import kept_squares, root_up
from accountant.training.run import TrainingRun
from accountant.training.schemes import (
    ADD_REMOVE,
    REPLACE_ONE,
    ZERO_OUT,
    Scheme,
    gaussian,
    ordered_removal,
    record_scheme,
    removal_bound,
    shuffled_removal,
    unbounded,
)

FEW_RECORDS, MANY_RECORDS = 8, 200


def user_scheme(
    run: TrainingRun, noise: float, loader: str, relation: Adjacency, *, microbatching: bool
) -> Scheme:
    """Return the plans that bound what a user of ``examples_per_user`` records costs."""
    of_record = record_scheme(run, noise, loader, relation, microbatching=microbatching)
    if run.examples_per_user == 1 or run.examples_per_user is None:
        return of_record
    if loader in PASSES and relation is ADD_REMOVE:
        size = run.examples_per_user
        if why := removal_bound(run, size, microbatching=microbatching):
            return unbounded(why)
        removal = shuffled_removal if loader == "shuffled" else ordered_removal
        above: tuple[Plan, ...] = (removal(run, noise, size),)
    else:
        above = USER_PLANS[loader](run, noise, relation, microbatching)
    exact = not (microbatching or is_long(run, loader)) and (
        loader in {"poisson", "fixed_order"} or (loader, relation) == ("fixed_size", ADD_REMOVE)
    )
    # a user with one record is a user
    below = above if exact and above else of_record.below
    return Scheme(above, below, NOTES[loader] or ("" if exact else "bound"))


def is_long(run: TrainingRun, loader: str) -> bool:
    """Return whether mixtures have so many shifts that only their Rényi curves are composed."""
    return _size(run) > MANY_RECORDS and loader in {"poisson", "truncated_poisson", "fixed_size"}


def _poisson(run: TrainingRun, z: float, relation: Adjacency, micro: bool) -> tuple[Plan, ...]:
    hits = binomial_hits(_size(run), run.sampling_rate)
    clips = 2 if micro else 1
    if hits is None:
        return ()
    return (_drawn(run, _hit_loss(hits, clips, z, relation), hits),)


def _drawn(run: TrainingRun, step: Loss, hits: Hits) -> Plan:
    """Return the steps; a step whose number of hits was neglected reveals everything."""
    _, rare = hits
    return run.draws * (step + ApproxLoss(0.0, rare)) if rare else run.draws * step


def _truncated_poisson(
    run: TrainingRun, z: float, relation: Adjacency, micro: bool
) -> tuple[Plan, ...]:
    size, rate, batch = _size(run), run.sampling_rate, run.largest_batch
    hits = binomial_hits(size, rate)
    if hits is None:
        return ()
    others, clips = run.examples - size, 2 if micro else 1
    # nothing is cut unless more than batch - size others are sampled
    fewest_others = batch - size + 1
    # two cases take long for many records; the worse one, a full batch, covers both
    if size > FEW_RECORDS or fewest_others < 1:
        full = 1.0
    elif fewest_others > others:
        full = 0.0
    else:
        full = binomial_tail(others, rate, fewest_others)
    cases = ((1 - full, clips), (full, 2 * clips))
    # in a full batch a blank also takes the place of another record
    possible_cases = [
        (chance, _hit_loss(hits, moved, z, relation, moved - clips))
        for chance, moved in cases
        if chance > 0
    ]
    chances, losses = zip(*possible_cases, strict=True)
    return (_drawn(run, PublicChoice(losses, chances), hits),)


def _fixed_size(run: TrainingRun, z: float, relation: Adjacency, micro: bool) -> tuple[Plan, ...]:
    hits, blank = hypergeometric_hits(_size(run), run.batch, run.examples), 2 if micro else 1
    return () if hits is None else (_drawn(run, _hit_loss(hits, 2, z, relation, blank), hits),)


def _hit_loss(hits: Hits, clips: int, z: float, relation: Adjacency, blank: int = 0) -> Loss:
    """Return the loss of a step that each hit moves by ``clips``, and each blank by ``blank``."""
    numbers, _ = hits
    shifts, weights = tuple(clips * j for j, _ in numbers), tuple(weight for _, weight in numbers)
    if relation is ADD_REMOVE or (relation is ZERO_OUT and not blank):
        return MixtureOfGaussians(z, shifts, weights)
    clips_back = clips if relation is REPLACE_ONE else blank
    right_side, left_side = (
        side([gaussian(z, c * j).mu if j else 0.0 for j, _ in numbers], weights)
        for c in (clips, clips_back)
    )
    return MixturePairLoss(MixturePair(right_side, left_side))


def _allocated(run: TrainingRun, z: float, relation: Adjacency, micro: bool) -> tuple[Plan, ...]:
    of_record = record_scheme(run, z, "random_allocation", ADD_REMOVE, microbatching=micro)
    size = _size(run) * (2 if relation is REPLACE_ONE else 1)
    # all records of a user may draw the same step
    clips = _size(run) * (2 if micro or relation is REPLACE_ONE else 1)
    together = math.ceil(run.passes) * OnePass(gaussian(z, clips), run.batches)
    return (Grouped(of_record.above[0], size), together)


def _worst_order(run: TrainingRun, z: float, relation: Adjacency, micro: bool) -> tuple[Plan, ...]:
    clips = root_up(kept_squares(run, _size(run)))
    clips *= 2 if micro or relation is REPLACE_ONE else 1
    moved = Stated(gaussian(z, clips), relation)
    return (math.ceil(run.passes) * OnePass(moved, run.batches),)


USER_PLANS: dict[str, Callable[[TrainingRun, float, Adjacency, bool], tuple[Plan, ...]]] = {
    "poisson": _poisson,
    "truncated_poisson": _truncated_poisson,
    "fixed_size": _fixed_size,
    "random_allocation": _allocated,
    "shuffled": _worst_order,
    "fixed_order": _worst_order,
}
NOTES = {
    "poisson": "",
    "truncated_poisson": "bound",
    "fixed_size": "",
    "random_allocation": "group",
    "shuffled": "order",
    "fixed_order": "",
}


def _size(run: TrainingRun) -> int:
    return run.examples_per_user or 1
