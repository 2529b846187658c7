"""The entries of a tape: draws, steps, questions and calls.

A recorded run writes one `Event` for everything that its replay on the neighbouring data must get
in the same way.  A `Draw` makes random numbers, a `Step` computes with followed noise, a `Question`
learns which of two followed sides is greater, and a `Call` is one of a noise mechanism that
declares its loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

from accountant.losses.loss import Loss
from audits.recorded_runs.noisy_numbers import NoisyNumber
from audits.recorded_runs.views import View

# name of the question that a comparison asks, whose output says whether the first side is greater
COMPARISON = "a comparison"
Losses = list[tuple[Loss, int]]  # losses with their counts


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """What every entry of a tape says.

    ``name`` says what was done, ``site`` the line of code that asked for it, and ``output`` what
    the code got, of this ``shape``.  ``equal`` has the facts that must be equal in both runs, and
    ``noisy`` is what is known of the output if it is followed.
    """

    verb: ClassVar[str]  # the word for this kind of event in a message

    name: str
    site: str
    shape: tuple[int, ...]
    output: Any
    equal: dict[str, Any] = field(default_factory=dict)
    noisy: NoisyNumber | None = None


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
    """Random numbers: followed noise, or plain ones.

    ``coins`` says that they are no noise, but choose samples, orders or batches; ``of_records`` is
    the number of records, if they are drawn for each.
    """

    verb = "draws"

    coins: bool = False
    of_records: int | None = None
    parameter: PrivateParameter | None = None


@final
@dataclass(frozen=True, slots=True, eq=False)
class Step(Event):
    """A computation with followed noise, whose result is followed."""

    verb = "computes"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Question(Event):
    """A comparison of two sides, whose answer is handed out as a plain one.

    ``sides`` are the views of both; None if the answer counts as computed from released numbers.
    """

    verb = "compares"

    sides: tuple[View, View] | None = None


@final
@dataclass(frozen=True, slots=True, eq=False)
class Call(Event):
    """A call of a noise mechanism, whose inside is not recorded.

    ``given`` is its private value, and ``sensitivity`` the declared limit of how far this moves
    between neighbours, in the norm of order ``norm``.  ``declared`` is the declared loss.
    """

    verb = "calls"

    given: Any = None
    sensitivity: float | None = None
    norm: float = 1.0
    declared: Loss | None = None
