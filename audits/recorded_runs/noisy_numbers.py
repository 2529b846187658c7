"""Followed numbers: what is known of a number with noise, and how recorded code reads it.

While a function is recorded, noise is handed to it as a *followed* number or array, whose attribute
``noisy_number`` is a `NoisyNumber`: which noises are in it, and what the code has done with it.
The functions here take any operand, followed or not.  `use` gives its plain value and counts it as
released, and `plain` gives it for a purpose that reveals nothing.  Both look into tuples and lists;
what is in other containers is used where it becomes a plain number.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

from audits.recorded_runs.views import View, plain_view


@final
@dataclass(slots=True, eq=False)
class NoisyNumber:
    """A number or array with noise, and what the code has done with it so far."""

    output: Any  # its plain value
    site: str  # the line of code that made it
    view: View  # which noises are in it, with which factors, and what number was added to them
    pure: bool  # whether it is noise alone, to which no value was added
    uniform: bool = False  # whether a step made it of uniform noise alone: a coin if only compared
    steps: int = 0  # how many later steps of arithmetic had it as an operand
    questions: int = 0  # how many later comparisons had it as a side
    used: bool = False  # whether it left the followed code, which counts as its release
    shown: bool = False  # whether it is noise alone, and in the result as it was drawn


def noisy_of(operand: Any) -> NoisyNumber | None:
    """What is known of a followed number; None for a plain one."""
    return getattr(operand, "noisy_number", None)


def noisy_among(operands: Iterable[Any]) -> list[NoisyNumber]:
    """What is known of each of those operands that are followed."""
    return [noisy for noisy in map(noisy_of, operands) if noisy is not None]


def plain(operand: Any) -> Any:
    """The plain number, array or nest of these; nothing counts as released by this call."""
    if hasattr(operand, "as_plain"):  # also a tensor or array that is no longer followed
        return operand.as_plain()
    if type(operand) in (tuple, list):
        return type(operand)(map(plain, operand))
    return operand


def use(operand: Any) -> Any:
    """The plain number, array or nest of these; what is followed in it counts as released."""
    noisy = noisy_of(operand)
    if noisy is not None:
        noisy.used = True
    if hasattr(operand, "as_plain"):
        return operand.as_plain()
    if type(operand) in (tuple, list):
        return type(operand)(map(use, operand))
    return operand


def view_of(operand: Any) -> View:
    """The view of an operand; an operand that was used already counts as its plain number."""
    noisy = noisy_of(operand)
    return plain_view(plain(operand)) if noisy is None or noisy.used else noisy.view


def is_unused(operand: Any) -> bool:
    """Whether this is a followed number that does not count as released."""
    noisy = noisy_of(operand)
    return noisy is not None and not noisy.used


def is_noise_alone(*operands: Any) -> bool:
    """Whether all of these are noise to which nothing was added, and do not count as released."""
    return bool(operands) and all(
        noisy is not None and noisy.pure and not noisy.used for noisy in map(noisy_of, operands)
    )
