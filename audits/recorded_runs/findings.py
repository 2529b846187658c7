"""Checks that compare a recorded run with its replay on the neighbour.

A run lists its events on a tape: draws of noise, steps that compute with it, comparisons and calls
of mechanisms.  The replay gets the recorded outputs.  Each check compares the events of both, as
pairs, and returns findings: a sentence about what depends on the data without enough noise, and the
line of code where it happens.  Each finding comes with the number of the event that it is about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.special import erfc

from accountant.losses.loss import Loss
from audits.recorded_runs.comparisons import ROUND_OFF, same_value, where_they_differ
from audits.recorded_runs.draws.declared_calls import NORMS, Primitive, sensitivity_of
from audits.recorded_runs.event_pairs import EventPair
from audits.recorded_runs.events import Call, Draw, Question
from audits.recorded_runs.noise_shifts import Conflict, Laws
from audits.recorded_runs.tape import DrawSite, NoiseBlock, Tape
from audits.recorded_runs.views import View

LOST_NOISE, RANDOMNESS, NOT_FOLLOWED = "lost noise", "randomness", "not followed"
# Probabilities that noise of scale 1 is farther than t from 0.
TAILS = {"laplace": lambda t: np.exp(-t), "gaussian": lambda t: erfc(t / np.sqrt(2))}
NO_NOISE = {"uniform", "unknown"}  # laws of numbers that are rarely noise for a value
UNDECIDED = {LOST_NOISE, RANDOMNESS, NOT_FOLLOWED}  # kinds that say what cannot be judged


@final
@dataclass(frozen=True, slots=True)
class RecordedFinding:
    """One finding of a recorded run.

    Parameters
    ----------
    kind : str
        ``"control flow"``, ``"sensitivity"``, ``"input"``, ``"result"``, ``"no noise"``,
        ``"reused noise"`` or ``"cost"``; or what cannot be judged: ``"randomness"``,
        ``"lost noise"`` or ``"not followed"``.
    site : str
        The place in the code, ``file:line``; "" if it is the whole run.
    sentence : str
        What was found; no value of the data is in it.

    Examples
    --------
    >>> from audits import RecordedFinding
    >>> print(RecordedFinding("input", "code.py:12", "`scale` of laplace depends on the data"))
    code.py:12: input: `scale` of laplace depends on the data
    """

    kind: str
    site: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.site + ': ' if self.site else ''}{self.kind}: {self.sentence}"


def not_followed(site: str, reason: str) -> RecordedFinding:
    """Return what is said where the runs part in a way that may be private."""
    sentence = (
        f"{reason}: noise that code takes up once for each record or key is not followed; "
        "compare data of as many records, or name the function in `primitives`"
    )
    return RecordedFinding(NOT_FOLLOWED, site, sentence)


def unequal_inputs(pairs: list[EventPair]) -> Iterator[tuple[int, RecordedFinding]]:
    """Yield the inputs of draws and calls that must be equal in both runs and are not."""
    for index, pair in enumerate(pairs):
        for name in _unequal_names(pair):
            sentence = f"{name} of {pair.recorded.name} depends on the data"
            yield index, RecordedFinding("input", pair.recorded.site, sentence)


def unequal_bounds(first_tape: Tape, second_tape: Tape) -> Iterator[tuple[int, RecordedFinding]]:
    """Yield the places where the bounds that values are clipped to differ between the runs."""
    for site, bounds in first_tape.bounds.items():
        others = second_tape.bounds.get(site, [])
        if len(others) == len(bounds) and not all(
            len(recorded) == len(replayed) and all(map(same_value, recorded, replayed))
            for recorded, replayed in zip(bounds, others, strict=True)
        ):
            yield (
                len(first_tape.events),
                RecordedFinding("input", site, "a bound of clip depends on the data"),
            )


def on_other_data(
    first_tape: Tape, distant_tape: Tape, pairs: list[EventPair]
) -> Iterator[tuple[int, RecordedFinding]]:
    """Yield arguments, bounds and factors that must be equal on all data of this size, but differ.

    ``distant_tape`` is that of a run on other data, which need not be neighbours.
    """
    for index, finding in unequal_inputs(pairs):
        if isinstance(pairs[index].recorded, Draw | Call):
            yield index, finding
    yield from unequal_bounds(first_tape, distant_tape)
    yield from unequal_factors(pairs)


def may_be_smooth(
    pair: EventPair, tape: Tape, claim: Loss | None, are_neighbours: bool = True
) -> bool:
    """Return whether noise whose scale depends on the data may still keep the claim.

    So it is with smooth sensitivity: under a delta the scales of neighbours may differ a little,
    and noise of heavy tails, of which the losses are not known here, may keep a pure claim.  On
    data that are no neighbours the scales may differ by any factor.
    """
    moved = pair.moved
    if moved is None or not moved.same_noise or set(_unequal_names(pair)) - {"scale"}:
        return False
    laws = tape.laws_of(moved.view)
    if "unknown" in laws or claim is None or claim.epsilon_at(0.0) < np.inf:
        return "unknown" in laws
    if not are_neighbours or not laws <= set(TAILS):
        return True
    scales = [
        np.broadcast_to(np.ravel(np.abs(event.equal.get("scale", 1.0)))[:, None], factors.shape)
        * np.abs(factors)
        for event, factors in (
            (pair.recorded, moved.view.factors), (pair.replayed, moved.other_factors)
        )
    ]  # fmt: skip
    with np.errstate(all="ignore"):
        narrow, wide = np.minimum(*scales), np.maximum(*scales)
        ratio, move = np.max(wide / narrow), np.max(np.abs(moved.gap)[:, None] / narrow)
    if not np.isfinite([ratio, move]).all():
        return False
    # The event that the number is farther from its value than t, in units of the narrower scale.
    farther = np.linspace(0.0, 60.0, 1201)
    for law in laws:
        wider_tail = TAILS[law](farther / ratio)
        narrower_tail = TAILS[law](np.maximum(farther - move, 0.0))
        for epsilon in (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0):
            least_delta = np.max(wider_tail - np.exp(epsilon) * narrower_tail)
            if least_delta > claim.delta_at(epsilon) * (1 + ROUND_OFF):
                return False
    return True


def same_inputs(pair: EventPair) -> bool:
    """Return whether all inputs that must be equal are equal."""
    return next(_unequal_names(pair), None) is None


def _unequal_names(pair: EventPair) -> Iterator[str]:
    """Yield the names of the inputs that must be equal in both runs and are not."""
    for name, value in pair.recorded.equal.items():
        if not same_value(_comparable(value), _comparable(pair.replayed.equal.get(name))):
            yield name


def _comparable(value: Any) -> Any:
    """Return a number as a float, so that 1 and 1.0 are the same; other values as they are."""
    is_number = isinstance(value, (int, float, np.generic))
    return (
        np.asarray(value, float) if is_number and not isinstance(value, np.bool_ | bool) else value
    )


def unequal_factors(pairs: list[EventPair]) -> Iterator[tuple[int, RecordedFinding]]:
    """Yield the places where noise is multiplied by numbers that depend on the data."""
    for index, pair in enumerate(pairs):
        recorded, moved = pair.recorded, pair.moved
        # A coin that is only compared may be multiplied by a private sum, as in code that inverts a
        # distribution function: its levels are compared by their probabilities.
        if moved is None or pair.is_only_compared:
            continue
        if not moved.same_noise:
            if not pair.is_released:
                continue  # what is made of it is looked at
            sentence = "which noise is in which number depends on the data"
            yield index, RecordedFinding("input", recorded.site, sentence)
        elif not moved.same_factors:
            sentence = (
                f"the number that noise is multiplied by in {recorded.name} depends on the data"
            )
            yield index, RecordedFinding("input", recorded.site, sentence)


def bare_values(pairs: list[EventPair]) -> Iterator[tuple[int, RecordedFinding]]:
    """Yield numbers among noisy ones that moved and have no noise."""
    for index, pair in enumerate(pairs):
        recorded, moved = pair.recorded, pair.moved
        if moved is None or recorded.noisy is None:
            continue
        bare = ~moved.has_noise.any(axis=1) & (moved.gap != 0)
        if bare.any() and (pair.is_released or recorded.noisy.steps == 0):
            sentence = f"{int(bare.sum())} of {bare.size} numbers moved and have no noise"
            yield index, RecordedFinding("no noise", recorded.site, sentence)


def reused(
    conflicts: list[Conflict], pairs: list[EventPair]
) -> Iterator[tuple[int, RecordedFinding]]:
    """Yield the places of noise that is in two numbers which moved differently."""
    index_of = {id(pair.recorded): index for index, pair in enumerate(pairs)}
    for event, reason in conflicts:
        if reason == "reused noise":
            sentence = "the same noise is in two numbers that moved differently: both show the data"
            yield index_of[id(event)], RecordedFinding("reused noise", event.site, sentence)


def too_far(
    pairs: list[EventPair], blocks: list[NoiseBlock], declared: Mapping[str, Primitive]
) -> Iterator[tuple[int, RecordedFinding]]:
    """Yield values that moved by more than the declared sensitivity of their call or draw."""
    for index, pair in enumerate(pairs):
        recorded = pair.recorded
        if not isinstance(recorded, Call) or recorded.sensitivity is None:
            continue
        distance = pair.call_distance
        if distance is not None and not distance <= recorded.sensitivity * (1 + ROUND_OFF):
            yield index, _farther(recorded.name, recorded.site, distance, recorded.sensitivity)
    if not declared:
        return
    # Of a released number the first noise is looked at, in whose units its move is: a declared draw
    # is that of one noise added to a value.
    laws = Laws(blocks)
    for index, pair in enumerate(pairs):
        moved = pair.moved
        if moved is None or not pair.is_released:
            continue
        with np.errstate(all="ignore"):
            gaps = np.abs(moved.gap / moved.view.factors[:, 0])
        names = {laws.block(int(k)).name for k in moved.view.noises[:, 0] if k >= 0}
        for name in names & set(declared):
            limit = sensitivity_of(declared[name], {})
            norm_order = NORMS[declared[name].norm]
            distance = (
                float(np.linalg.norm(gaps[moved.gap != 0], norm_order)) if moved.gap.any() else 0.0
            )
            if limit is not None and not distance <= limit * (1 + ROUND_OFF):
                yield index, _farther(name, pair.recorded.site, distance, limit)


def _farther(name: str, site: str, moved: float, limit: float) -> RecordedFinding:
    # The sentence has the ratio and not the distance, which would be a value of the data.
    ratio = moved / limit if limit else np.inf
    ratio_text = f"{ratio:.3g} times" if np.isfinite(ratio) else "infinitely farther than"
    sentence = f"the value of {name} moved {ratio_text} its declared sensitivity {limit:.4g}"
    return RecordedFinding("sensitivity", site, sentence)


def unequal_result(one: Any, other: Any) -> RecordedFinding | None:
    """Return the first difference of two results for which every drawn number was equal."""
    difference_path = where_they_differ(one, other)
    if not difference_path:
        return None
    raised = [exception_of(result) or "a result" for result in (one, other)]
    if raised[0] != raised[1]:
        sentence = f"the first run ends with {raised[0]}, the second with {raised[1]}"
        return RecordedFinding("control flow", "", sentence)
    sentence = f"{difference_path} differs although every drawn number was the same"
    return RecordedFinding("result", "", sentence)


def exception_of(result: Any) -> str:
    """Return the type of the exception that a run ended with; "" if it gave a result."""
    ended = isinstance(result, dict) and set(result) == {"exception", "message"}
    return str(result["exception"]) if ended else ""


def blamed_draws(
    pairs: list[EventPair], first_tape: Tape, second_tape: Tape, conflicts: list[Conflict]
) -> frozenset[DrawSite]:
    """Call sites of the draws in the first event that differs, or at which the runs part.

    Later findings may be consequences of the first one; the next runs show whether they are.
    """
    conflicting = {id(conflict.event) for conflict in conflicts}
    for pair in pairs:
        moved = pair.moved
        if moved is None:
            continue
        has_same_factors = moved.same_factors or pair.is_only_compared
        is_equal = same_inputs(pair) and moved.same_noise and has_same_factors
        if not is_equal or id(pair.recorded) in conflicting:
            return first_tape.origins_of(moved.view)
    views: list[View] = []
    if second_tape.parted is not None:
        if len(second_tape.events) < len(first_tape.events):
            missing_event = first_tape.events[len(second_tape.events)]
            if isinstance(missing_event, Question):
                views += missing_event.sides or ()
            elif missing_event.noisy is not None and not isinstance(missing_event, Draw):
                views.append(missing_event.noisy.view)  # a new draw is not the cause
        views += second_tape.asked_views
    return frozenset().union(*map(first_tape.origins_of, views))


def draws_without_law(pairs: list[EventPair], first_tape: Tape) -> frozenset[DrawSite]:
    """Call sites of uniform draws that were compared with private numbers, and of unknown noise."""
    sites: set[DrawSite] = set()
    for block in first_tape.blocks:
        if block.law == "unknown":
            sites |= block.origins
    for view in _moved_questions(pairs, first_tape, NO_NOISE):
        sites |= first_tape.origins_of(view)
    return frozenset(sites)


def is_threshold(pairs: list[EventPair], first_tape: Tape) -> bool:
    """Whether a uniform number was compared with a private one and is also released: no coin."""
    compared = {
        noise
        for view in _moved_questions(pairs, first_tape, {"uniform"})
        for noise in view.noises.ravel().tolist()
        if noise >= 0
    }
    outputs = [pair.recorded.noisy for pair in pairs]
    released = [noisy.view.noises for noisy in outputs if noisy is not None and noisy.used]
    return any(not compared.isdisjoint(noises.ravel().tolist()) for noises in released)


def _moved_questions(pairs: list[EventPair], first_tape: Tape, laws: set[str]) -> Iterator[View]:
    """The sides that have noise of these laws, of comparisons in which a side's value moved."""
    for pair in pairs:
        if all(np.array_equal(a.value, b.value, equal_nan=True) for a, b in pair.sides):
            continue
        for side, _ in pair.sides:
            if first_tape.laws_of(side) & laws:
                yield side
