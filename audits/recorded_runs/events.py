"""What a tape holds: draws, steps of arithmetic on noise, questions about noise, and calls."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from accountant.losses.loss import Loss

COMPARISON = "a comparison"  # of which the outcome says whether the first side is the greater


class EventKind(enum.Enum):
    """What took place."""

    DRAW = "draws"
    STEP = "computes"
    QUESTION = "compares"
    CALL = "calls"


class View(NamedTuple):
    """An array as value + sum over parts of factor x noise, element by element.

    ``noises`` are numbers of noises (-1 for none), of shape (*shape, parts), like ``factors``.
    """

    noises: NDArray[np.int64]
    factors: NDArray[np.float64]
    value: NDArray[np.float64]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self.value.shape


@final
@dataclass(slots=True)
class Event:
    """One entry of a tape.

    ``equal`` must be equal in both runs; ``pure`` is noise to which nothing was added;
    ``steps``, ``asked`` and ``used`` say what became of the output.
    """

    kind: EventKind
    name: str
    site: str
    shape: tuple[int, ...]
    output: Any
    equal: dict[str, Any] = field(default_factory=dict)
    view: View | None = None
    sides: tuple[View, View] | None = None
    pure: bool = False
    uniform: bool = False  # nothing but uniform noise: if it is compared alone, it is a coin
    steps: int = 0
    asked: int = 0
    used: bool = False
    coins: bool = False  # a draw that is no noise: of samples, orders, batches
    of_records: int | None = None  # coins of so many records
    # losses of this draw between its parameters in the two runs, and how often each is spent
    losses: Callable[[Event, Event], list[tuple[Loss, int]]] | None = None
    given: Any = None  # parameters that may differ between the runs
    sensitivity: float | None = None
    declared: Loss | None = None
    norm: float = 1.0


DrawSite = tuple[tuple[str, int], ...]


@final
@dataclass(frozen=True, slots=True)
class NoiseBlock:
    """The law of noises number ``start`` up to ``stop``: its name, and one scale for each.

    ``origins`` are the places that drew them, or drew what they were made of.
    """

    start: int
    stop: int
    law: str
    scale: NDArray[np.float64]
    site: str
    name: str
    origins: frozenset[DrawSite]
