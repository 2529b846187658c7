"""Recorded draws whose parameters may be private, such as `choice` and `binomial`, with losses.

A recorded run draws on the data; the replay on the neighbour gets the same output again.  If a
`PrivateParameter` of the draw differs between the two runs, the draw reveals the data.  Its privacy
loss is then that between the two laws, one with the parameter of each run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from accountant.losses.bounded_range import BoundedRangeLoss
from accountant.losses.finite_pair import PairLoss
from accountant.numerics import Array
from accountant.numerics.rounding import round_up
from audits.recorded_runs.draws.record_coins import (
    are_records,
    coins_of_records,
    is_one_per_record,
    order_of_records,
    places_of_records,
)
from audits.recorded_runs.events import Losses, PrivateParameter
from audits.recorded_runs.noisy_numbers import use
from audits.recorded_runs.tape import Tape

# The method of a generator that draws, which takes its other arguments by position.
Sample = Callable[..., Any]
ROUND_OFF = 1e-12  # relative: probabilities that differ by less are those of one law
# The loss of an output that only one of the two runs can have.
INFINITE = PairLoss((1.0, 0.0), (0.0, 1.0))


def pair_losses(first: Any, second: Any, number: int = 1) -> Losses:
    """The loss between two laws on one finite set, ``number`` times; no loss if they are equal.

    The laws are probabilities, or weights in proportion to them.
    """
    p, q = (np.asarray(law, dtype=float).ravel() for law in (first, second))
    # Laws on sets of different sizes have no loss here: the comparison of arguments reports them.
    if p.shape != q.shape or np.allclose(p, q, rtol=ROUND_OFF, atol=0.0):
        return []
    return [(PairLoss(tuple(p / p.sum()), tuple(q / q.sum())), number)]


def _losses_without_replacement(number: int, first: Any, second: Any) -> Losses:
    """The losses of ``number`` draws from one law, each among the candidates that are left.

    The laws of the candidates that are left have other sums.  So all their log-ratios move by one
    number, and their range is at most that of all candidates.
    """
    losses = pair_losses(first, second, number)
    if number <= 1 or not losses:
        return losses
    loss = PairLoss(*(np.ravel(law) / np.sum(law) for law in (first, second)))
    if loss.infinity or loss.reversed.infinity:
        return [(INFINITE, 1)]
    return [(BoundedRangeLoss(round_up(loss.max_loss + loss.reversed.max_loss)), number)]


def _losses_of_counts(n: Any, first: Array, second: Array) -> Losses:
    """The losses of counts of ``n`` draws of a category, by the laws in the rows of two arrays.

    The draws behind a count reveal at least as much as the count does.
    """
    if first.shape != second.shape:  # the comparison of arguments reports them
        return []
    draws = np.broadcast_to(n, first.shape[:-1]).ravel()
    categories = first.shape[-1]
    pairs_of_laws = np.concatenate([first, second], axis=-1).reshape(-1, 2 * categories)
    different_pairs, index = np.unique(pairs_of_laws, axis=0, return_inverse=True)
    numbers = np.bincount(index.ravel(), draws, len(different_pairs))
    return [
        loss
        for pair, number in zip(different_pairs, numbers, strict=True)
        for loss in pair_losses(pair[:categories], pair[categories:], int(number))
    ]


def _count_facts(n: Any, laws: Array, size: Any) -> dict[str, Any]:
    """The facts of a draw of counts: what must be equal, and the laws, a row for each count."""
    shape = np.broadcast_shapes(np.shape(n), laws.shape[:-1], () if size is None else size)
    rows = np.broadcast_to(laws, (*shape, laws.shape[-1]))
    return {
        "equal": {"n": n, "size": size, "the number of probabilities": rows.shape},
        "parameter": PrivateParameter(rows, functools.partial(_losses_of_counts, n)),
    }


def choice(
    tape: Tape,
    sample: Sample,
    a: Any,
    size: Any = None,
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
    shuffle: bool = True,
) -> Any:
    """Draw positions, and return the elements at these positions of this run's candidates.

    The arguments are those of `numpy.random.Generator.choice`; the probabilities ``p`` may be
    private.
    """
    del shuffle  # the recorded places are handed out in their recorded order
    a = use(a)
    candidates = None if np.ndim(a) == 0 else a
    count = int(a) if candidates is None else np.shape(np.asarray(a, dtype=object))[axis or 0]
    if p is None:
        make = lambda: sample(count, size, replace)  # noqa: E731
        places = places_drawn(tape, "choice", make, count, size, replace)
    else:
        p = np.asarray(use(p), dtype=float)
        number = 1 if size is None else int(np.prod(size))
        if replace:
            losses: Any = functools.partial(pair_losses, number=number)
        else:
            losses = functools.partial(_losses_without_replacement, number)
        places = tape.draw(
            "choice",
            lambda: sample(count, size, replace, p),
            equal={"the number of candidates": count, "size": size},
            parameter=PrivateParameter(p, losses),
        ).output
    if candidates is None:
        return np.copy(places) if np.ndim(places) else places
    if isinstance(a, np.ndarray):
        return np.take(a, places, axis)
    chosen = np.asarray(a)
    return np.take(chosen, places, axis)


def places_drawn(
    tape: Tape, name: str, make: Callable[[], Any], count: int, size: Any, replace: bool
) -> Any:
    """Draw positions in the list of candidates, all equally likely."""
    expected = tape.expected()
    if are_records(tape, count) and (
        expected is None or "the number of candidates" not in expected.equal
    ):
        return places_of_records(tape, name, make, count, size, distinct=not replace)
    candidates = {"the number of candidates": count}
    if is_one_per_record(tape, size) and replace:
        return coins_of_records(tape, name, make, size, candidates)
    equal = {**candidates, "size": size}
    return tape.draw(name, make, equal=equal, coins=True).output


def binomial(tape: Tape, sample: Sample, n: Any, p: Any, size: Any = None) -> Any:
    """Draw numbers of heads; the probability may be private."""
    n, p = use(n), use(p)
    if is_one_per_record(tape, size):
        coins = {"n": n, "p": p}
        return coins_of_records(tape, "binomial", lambda: sample(n, p, size), size, coins)
    heads = np.asarray(p, dtype=float)
    facts = _count_facts(n, np.stack([heads, 1 - heads], axis=-1), size)
    counts = tape.draw("binomial", lambda: sample(n, p, size), **facts).output
    return np.copy(counts) if np.ndim(counts) else counts


def multinomial(tape: Tape, sample: Sample, n: Any, pvals: Any, size: Any = None) -> Any:
    """Draw counts; the probabilities may be private."""
    n, pvals = use(n), np.asarray(use(pvals), dtype=float)
    # numpy gives the last category what the others leave, whatever its own probability says.
    others = pvals[..., :-1]
    last = np.maximum(1 - others.sum(axis=-1, keepdims=True), 0.0)
    facts = _count_facts(n, np.concatenate([others, last], axis=-1), size)
    return np.copy(tape.draw("multinomial", lambda: sample(n, pvals, size), **facts).output)


def permuted_places(tape: Tape, sample: Sample, count: int, name: str) -> Any:
    """Draw a random order of ``count`` elements."""
    if are_records(tape, count):
        return order_of_records(tape, name, lambda: sample(count), count)
    equal = {"the number of elements": count}
    return np.copy(tape.draw(name, lambda: sample(count), equal=equal, coins=True).output)


PARAMETRIC = {
    "choice": choice,
    "binomial": binomial,
    "multinomial": multinomial,
}
