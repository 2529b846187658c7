"""The tape of a run: it records draws, steps on noise, questions and calls, and replays them.

An audit runs a function on two neighbouring data sets with the same random numbers, and compares
what the two runs release.  A tape is the list of `Event`s of one run.  The second run, on the
neighbouring data, has a tape of its own; that tape gets the first one as ``recorded`` and hands out
its outputs, event by event.  If the code asks for another event, the runs have parted.

Noise is followed through the code as a `View`, an array ``value + sum of factor x noise``, in which
each number that was drawn as noise has a number of its own, counted from 0.
"""

from __future__ import annotations

import enum
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accountant.losses.loss import Loss
from audits.recorded_runs.call_sites import call_site, draw_site
from audits.recorded_runs.views import View

# name of the event of a comparison, whose output says whether the first side is the greater one
COMPARISON = "a comparison"


class EventKind(enum.Enum):
    """The kind of an entry of a tape; its value is the verb of a message.

    A draw makes random numbers, a step computes with followed noise, a question learns which of two
    followed sides is greater, and a call is one of a declared noise mechanism.
    """

    DRAW = "draws"
    STEP = "computes"
    QUESTION = "compares"
    CALL = "calls"


@final
@dataclass(slots=True)
class Event:
    """One entry of a tape.

    ``name`` says what was done, ``site`` the line of code that asked for the event, and
    ``output`` what it got, of this ``shape``.  ``equal`` has the facts that must be equal in both
    runs.  ``view`` says which noises are in the output; ``sides`` are the two views that a question
    compared.  ``pure`` says that the output is made of noise alone.

    ``steps`` counts the later steps on the output and ``asked`` the later questions on it;
    ``used`` says that it left the followed code, which counts as its release.

    ``declared`` is the declared loss of a call, ``sensitivity`` its declared limit, and ``norm``
    the order of the norm in which the limit is meant.
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
    uniform: bool = False  # made of uniform noise alone; a coin if it is only compared
    steps: int = 0
    asked: int = 0
    used: bool = False
    coins: bool = False  # a draw that is no noise, but chooses samples, orders or batches
    of_records: int | None = None  # the number of records, if the coins are drawn for each
    # the losses between the laws with the parameters of the two runs, with their counts
    losses: Callable[[Event, Event], list[tuple[Loss, int]]] | None = None
    given: Any = None  # parameters that may differ between the runs
    sensitivity: float | None = None
    declared: Loss | None = None
    norm: float = 1.0


DrawSite = tuple[tuple[str, int], ...]


@final
@dataclass(frozen=True, slots=True)
class NoiseBlock:
    """The law of the noises with numbers from ``start`` to before ``stop``, and a scale for each.

    ``name`` is the draw that made them, at the line ``site``.  ``origins`` are the places in the
    code that drew them, or drew the noises of which they were made.
    """

    start: int
    stop: int
    law: str
    scale: NDArray[np.float64]
    site: str
    name: str
    origins: frozenset[DrawSite]


class Parted(BaseException):
    """The replayed run asked for another event than the recorded one.

    It is a `BaseException`, so that no `except Exception` of the audited code catches it.
    """

    def __init__(self, site: str, reason: str) -> None:
        self.site, self.reason = site, reason
        super().__init__(reason)


class Redrawn(ABC):
    """A replacement for the outputs of draws, in a run that repeats only some of them."""

    @abstractmethod
    def output(self, site: str, name: str, fresh: Any) -> Any:
        """The output of a draw; None if the run cannot go on."""


class Tape:
    """The events of one run; with ``recorded`` they must follow that tape, and get its outputs.

    Only one event differs in kind: with ``redrawn`` the outputs of draws are replaced as they are
    recorded, in a run that repeats only some of another run's draws.
    """

    def __init__(
        self,
        seed: int,
        records: int | None,
        changed: int | None,
        recorded: Tape | None = None,
        lacks: bool = False,
        public: frozenset[DrawSite] = frozenset(),
        redrawn: Redrawn | None = None,
    ) -> None:
        self.events: list[Event] = []
        self.blocks: list[NoiseBlock] = []
        self.noises = 0
        self.recorded = recorded
        self.records = records  # number of records of this run's data
        self.changed = changed  # which record one of the two data sets lacks
        self.lacks = lacks  # whether this run's data lack that record
        self.public = public  # places of public draws, which are no noise and equal in both runs
        self.redrawn = redrawn
        self.asked: dict[str, Any] = {}  # facts of the last event that the code asked for
        self.bounds: dict[str, list[Any]] = {}  # bounds of clipping, by place in the code
        self.entropy = np.random.SeedSequence(seed)
        self.parted: Parted | None = None

    def event(
        self,
        kind: EventKind,
        name: str,
        make: Callable[[], Any],
        *,
        shape: tuple[int, ...] | None = None,
        **facts: Any,
    ) -> Event:
        """Record what ``make`` returns, or hand out the recorded output at this place."""
        site = call_site()
        self.asked = facts
        recorded = self.recorded
        if recorded is None:
            output = make()
            if self.redrawn is not None and kind is EventKind.DRAW:
                output = self.redrawn.output(site, name, output)
                if output is None:
                    self.leave(site, f"{name} is not drawn as in the first run")
            new_event = Event(
                kind, name, site, np.shape(output) if shape is None else shape, output
            )
        else:
            new_event = self._replayed(recorded, kind, name, site, shape)
        for fact, value in facts.items():
            setattr(new_event, fact, value)
        self.events.append(new_event)
        return new_event

    def _replayed(
        self, recorded: Tape, kind: EventKind, name: str, site: str, shape: tuple[int, ...] | None
    ) -> Event:
        position = len(self.events)
        if position >= len(recorded.events):
            self.leave(site, f"the second run {kind.value} {name} here, the first had ended")
        earlier_event = recorded.events[position]
        if (earlier_event.kind, earlier_event.name) != (kind, name):
            sentence = (
                f"the second run {kind.value} {name} here, the first {earlier_event.kind.value}"
            )
            self.leave(site, f"{sentence} {earlier_event.name} at {earlier_event.site}")
        if earlier_event.site != site:
            sentence = f"{name} is asked for from another place than in the first run"
            self.leave(site, f"{sentence} ({earlier_event.site})")
        if shape is not None and earlier_event.shape != shape:
            sentence = f"{name} has shape {earlier_event.shape} in the first run"
            self.leave(site, f"{sentence}, {shape} in the second")
        return Event(
            kind, name, site, earlier_event.shape, earlier_event.output, pure=earlier_event.pure
        )

    def expected(self) -> Event | None:
        """The recorded event at this place; None if there is none."""
        position = len(self.events)
        recorded_events = self.recorded.events if self.recorded is not None else []
        return recorded_events[position] if position < len(recorded_events) else None

    def leave(self, site: str, reason: str) -> None:
        """Stop this run: it has parted from the recorded one."""
        self.parted = Parted(site, reason)
        raise self.parted

    def origins_of(self, view: View) -> frozenset[DrawSite]:
        """The places that drew the noises of a view."""
        noises = view.noises
        return frozenset().union(
            *(b.origins for b in self.blocks if np.any((noises >= b.start) & (noises < b.stop)))
        )

    def number_noises(
        self,
        law: str,
        scale: Any,
        name: str,
        shape: tuple[int, ...],
        origins: frozenset[DrawSite] | None = None,
    ) -> Any:
        """Give numbers to new noises of this law, and return them in this shape."""
        if origins is None:
            origins = frozenset({draw_site()})
        size = int(np.prod(shape))
        scales = np.broadcast_to(np.asarray(scale, dtype=float), shape).ravel()
        start, self.noises = self.noises, self.noises + size
        self.blocks.append(NoiseBlock(start, self.noises, law, scales, call_site(), name, origins))
        return np.arange(start, self.noises, dtype=np.int64).reshape(shape)


_state = threading.local()


def current_tape() -> Tape | None:
    """The tape of this thread; None outside of a run, and within a recorded call."""
    return getattr(_state, "tape", None)


@contextmanager
def running(tape: Tape | None) -> Iterator[None]:
    """Let draws of this thread go to the tape; None stops recording for a while."""
    outer_tape = current_tape()
    _state.tape = tape
    try:
        yield
    finally:
        _state.tape = outer_tape
