"""Questions on followed numbers: recorded code learns which of two sides is greater, or an extreme.

A followed number remembers, in its `View`, which noise is in it.  An audit records a run on a tape,
and replays it on neighbouring data.  The answer to a question is plain, and goes to the tape with
the views of both sides: on the neighbour the noise must move so that the answer stays.  A question
reveals less than the numbers that it compares, so these do not count as released, with two
exceptions in `compared`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from audits.recorded_runs.events import COMPARISON, Question
from audits.recorded_runs.noisy_numbers import (
    is_noise_alone,
    is_unused,
    noisy_among,
    noisy_of,
    plain,
    use,
    view_of,
)
from audits.recorded_runs.tape import Tape
from audits.recorded_runs.views import broadcast, select

# For each comparison, the sign of (first - second) for which it is true.
COMPARISON_SIGNS = {"greater": 1.0, "greater_equal": 1.0, "less": -1.0, "less_equal": -1.0}
ROUND_OFF = 1e-9  # absolute: by how much sums of probabilities may be wrong by rounding


def compared(tape: Tape, ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Any:
    """The answer to a comparison, which is recorded; NotImplemented if no operand is followed.

    A random threshold counts as released.  So does a noisy value, but not noise alone, that is
    compared with a plain number which differs between the runs, and is therefore private.
    """
    for operand, other in (inputs, inputs[::-1]):
        if _is_random_threshold(tape, operand, other):
            use(operand)
    if not any(map(is_unused, inputs)):
        return NotImplemented
    outcome = ufunc(*map(plain, inputs))
    greater, smaller = (broadcast(view_of(x), np.shape(outcome)) for x in inputs)
    if COMPARISON_SIGNS[ufunc.__name__] < 0:
        greater, smaller = smaller, greater
    earlier_question = tape.expected()  # the recorded event at this place, in the second run
    answer = tape.ask(COMPARISON, outcome, np.shape(outcome), (greater, smaller))
    followed = noisy_among(inputs)
    for noisy in followed:
        noisy.questions += 1
    # Has a side without noise another value than in the first run?
    earlier_sides = earlier_question.sides if isinstance(earlier_question, Question) else None
    has_plain_side_moved = any(
        (side.noises < 0).all() and not np.array_equal(earlier.value, side.value, equal_nan=True)
        for earlier, side in zip(earlier_sides or (), (greater, smaller), strict=False)
    )
    if has_plain_side_moved and not all(noisy.pure for noisy in followed):
        # This run goes on with its own outcome.
        tape.withdraw_question()
        for operand in inputs:
            use(operand)
        return outcome
    return answer


def _is_random_threshold(tape: Tape, operand: Any, other: Any) -> bool:
    """Whether uniform noise is compared with more plain numbers than it has elements.

    It is then a random threshold, and no coin for each number.  It is none if the plain numbers are
    cumulative probabilities, which rise to 1, as in a draw by inversion.
    """
    if not is_noise_alone(operand) or noisy_of(other) is not None:
        return False
    view = view_of(operand)
    plain_numbers = np.asarray(other, dtype=float)
    is_one_for_each = (
        plain_numbers.size <= view.value.size and plain_numbers.ndim <= view.value.ndim
    )
    if is_one_for_each or tape.laws_of(view) != {"uniform"}:
        return False
    if view.noises.shape[-1] != 1 or not plain_numbers.size:
        return True
    with np.errstate(all="ignore"):
        # The level of the uniform number U at which value + factor U is the plain number.
        uniform_levels = np.atleast_1d((plain_numbers - view.value) / view.factors[..., 0])
    rises = np.all(np.diff(uniform_levels) >= -ROUND_OFF)
    return not (rises and np.all(np.abs(uniform_levels[..., -1] - 1) < ROUND_OFF))


def place_of_extreme(tape: Tape, operand: Any, smallest: bool = False) -> Any:
    """Record that code learned where the largest or smallest number is, and return this place.

    It is the answer to one comparison of this number with each of all numbers.
    """
    flat = np.ravel(operand.as_plain())
    place_in_this_run = np.argmin(flat) if smallest else np.argmax(flat)
    view = view_of(operand)
    all_numbers = select(view, np.arange(flat.size))
    extreme = select(view, np.full(flat.size, int(place_in_this_run)))
    sides = (all_numbers, extreme) if smallest else (extreme, all_numbers)
    place = tape.ask("argmin" if smallest else "argmax", place_in_this_run, (flat.size,), sides)
    operand.noisy_number.questions += 1
    return place
