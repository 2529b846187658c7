"""The entries of a tape: draws, steps, questions and calls.

A recorded run writes one `Event` for everything that its replay on the neighbouring data must get
in the same way.  Noise is *followed* where the recorder knows which draws are in a number, with
which factors (`NoisyNumber`).  A `Draw` makes random numbers, a `Step` computes with followed
noise, a `Question` learns which of two followed numbers is greater, and a `Call` calls a noise
mechanism that declares its loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

from accountant.losses.loss import Loss
from audits.recorded_runs.noisy_numbers import NoisyNumber
from audits.recorded_runs.views import View

# The name of a question that an operator such as ``>`` asks.  Its output says whether the first
# side is greater.  Other questions ask for the place of an extreme.
COMPARISON = "a comparison"
SEEDS = {"default_rng", "generator"}  # names of calls that take a seed, and cost nothing
Losses = list[tuple[Loss, int]]  # losses with their counts


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """What every entry of a tape says."""

    verb: ClassVar[str]  # the word for this kind of event in a message

    name: str  # what was done, such as "laplace"
    site: str  # the line of code that asked for it
    shape: tuple[int, ...]  # of the output
    output: Any  # what the code got
    equal: dict[str, Any] = field(default_factory=dict)  # facts that must be equal in both runs
    noisy: NoisyNumber | None = None  # what is known of the output if it is followed


@final
@dataclass(frozen=True, slots=True, eq=False)
class PrivateParameter:
    """A parameter of a draw that may be private, and what it then costs.

    ``losses`` gives the losses between the law with the ``value`` of the first run and that with
    the value of the second.
    """

    value: Any
    losses: Callable[[Any, Any], Losses]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Draw(Event):
    """Random numbers: noise that is followed, or plain numbers."""

    verb = "draws"

    coins: bool = False  # whether they are no noise, but choose samples, orders or batches
    of_records: int | None = None  # the number of records, if they are drawn for each
    parameter: PrivateParameter | None = None


@final
@dataclass(frozen=True, slots=True, eq=False)
class Step(Event):
    """A computation with followed noise, whose result is followed."""

    verb = "computes"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Question(Event):
    """A comparison of two sides, whose answer the code gets as a plain value.

    ``sides`` are the views of both.  They are None where the sides count as released, so that the
    answer costs nothing more.
    """

    verb = "compares"

    sides: tuple[View, View] | None = None


@final
@dataclass(frozen=True, slots=True, eq=False)
class Call(Event):
    """A call of a noise mechanism, whose inside is not recorded."""

    verb = "calls"

    private_value: Any = None  # what the mechanism got, if it is a number or an array
    sensitivity: float | None = None  # the declared limit of how far neighbours move the value
    norm: float = 1.0  # this distance is in the L1 norm, L2 norm, ...
    declared: Loss | None = None  # the loss of one call
