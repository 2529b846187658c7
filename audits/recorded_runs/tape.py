"""The tape of a run: it records draws, steps on noise, questions and calls, and replays them.

An audit runs a function on two neighbouring data sets with the same random numbers, and compares
what the two runs release.  A tape is the list of events of one run.  The second run, on the
neighbouring data, has a tape of its own; that tape gets the first one as ``recorded`` and hands out
its outputs, event by event.  If the code asks for another event, the runs have parted.

Noise is followed through the code as a `View`, an array ``value + sum of factor x noise``, in which
each number that was drawn as noise has a number of its own, counted from 0.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from audits.recorded_runs.call_sites import call_site, draw_site
from audits.recorded_runs.events import Call, Draw, Event, Question, Step
from audits.recorded_runs.noisy_numbers import NoisyNumber
from audits.recorded_runs.views import View
from audits.values.copies import own_copy

# A place in the code that draws: function and instruction of the two innermost calls.
DrawSite = tuple[tuple[str, int], ...]
# A function of the site, the name and the fresh output of a draw that returns the output to hand
# out in its place; None if the run cannot go on.
Redraw = Callable[[str, str, Any], Any]


@final
@dataclass(frozen=True, slots=True)
class NoiseBlock:
    """The noises of one draw, with numbers from ``start`` to before ``stop``."""

    start: int
    stop: int
    law: str  # as in `draw_tables`, such as "laplace"
    scale: NDArray[np.float64]  # of each noise
    site: str  # the line of code of the draw, or of the function that made them of other noises
    name: str  # of this draw or function
    origins: frozenset[DrawSite]  # places that drew them, or the noises of which they were made

    def is_in(self, noises: NDArray[np.int64]) -> bool:
        """Whether one of these noises is of this block."""
        return bool(np.any((noises >= self.start) & (noises < self.stop)))


@final
@dataclass(frozen=True, slots=True)
class HiddenDraws:
    """Draws whose noise the code got as plain numbers, so that it may be in any later number.

    ``start`` is the number of the event whose numbers went out of sight first, ``events`` are the
    numbers of draws that were handed out plain, ``noises`` those of noise that left the followed
    code, and ``sites`` the lines that drew.
    """

    start: int
    events: frozenset[int]
    noises: NDArray[np.int64]
    sites: tuple[str, ...]

    def is_in(self, view: View) -> bool:
        """Whether one of these noises is in a view."""
        return bool(np.isin(view.noises, self.noises).any())


class Parted(BaseException):
    """The replayed run asked for another event than the recorded one.

    It is a `BaseException`, so that no `except Exception` of the audited code catches it.  Runs
    that draw other noise or call other mechanisms behave differently.  Of steps and comparisons
    this is not sure: code may take up a noisy number once for each record.  A run that only ends
    before the recorded one asked for no other event: ``is_end`` says so.
    """

    def __init__(self, site: str, reason: str, is_sure: bool = True, is_end: bool = False) -> None:
        self.site, self.reason, self.is_sure, self.is_end = site, reason, is_sure, is_end
        super().__init__(reason)


class Tape:
    """The events of one run; with ``recorded`` they must follow that tape, and get its outputs.

    With ``redraw`` the outputs of draws are replaced as they are recorded, in a run that repeats
    only some of another run's draws.  With ``varied`` these draws are drawn again while all others
    are replayed, and the seeds that the code gives to generators are passed over.

    Code under audit never calls these methods: the classes and functions that stand in for numpy's
    and others' call them, and hand the outputs to the code.
    """

    def __init__(
        self,
        seed: int,
        records: int | None,
        changed: int | None,
        recorded: Tape | None = None,
        public: frozenset[DrawSite] = frozenset(),
        redraw: Redraw | None = None,
        varied: HiddenDraws | None = None,
    ) -> None:
        self.events: list[Event] = []
        self.blocks: list[NoiseBlock] = []
        self.noises = 0  # how many noises have a number
        self._drawn: dict[tuple[str, bytes], Any] = {}  # their numbers by law and output of a draw
        self.recorded = recorded
        self.records = records  # number of records of this run's data
        self.changed = changed  # which record one of the two data sets lacks
        self.public = public  # places of public draws, which are no noise and equal in both runs
        self.redraw = redraw
        self.varied = varied
        self.passes_over_seeds = varied is not None
        # lines of code that computed with whole numbers that floats do not tell apart
        self.beyond_floats: list[str] = []
        # lines of code that drew or computed in another thread, where nothing is recorded
        self.elsewhere: list[str] = []
        # Views of the last event that was asked for.  If the run then leaves the recorded one, they
        # tell which noise may be a public threshold.
        self.asked_views: tuple[View, ...] = ()
        self.bounds: dict[str, list[Any]] = {}  # bounds of clipping, by place in the code
        self.entropy = np.random.SeedSequence(seed)
        self.parted: Parted | None = None  # why this run left the recorded one, if it did

    def draw(self, name: str, make: Callable[[], Any], **facts: Any) -> Draw:
        """Record the random numbers that ``make`` draws; ``facts`` are further fields of `Draw`."""
        self.asked_views = ()
        is_varied = self.varied is not None and len(self.events) in self.varied.events
        event = Draw(name, *self._outcome(Draw, name, make, None, is_varied), **facts)
        self.events.append(event)
        return event

    def complete(self, draw: Draw, **facts: Any) -> None:
        """Add fields to this draw, which must be the last event; they follow from its output."""
        self.events[-1] = replace(draw, **facts)

    def draws(self) -> list[Draw]:
        """All draws of the run, in their order."""
        return [event for event in self.events if isinstance(event, Draw)]

    def step(
        self,
        name: str,
        make: Callable[[], Any],
        view: View,
        pure: bool,
        equal: dict[str, Any] | None = None,
    ) -> NoisyNumber:
        """Record a step with a result of this view; ``make`` computes its plain value.

        ``pure`` says that the result is noise alone; in the second run it is what it was in the
        first.  ``equal`` has facts by name that must be equal in both runs; `findings` compares
        them.
        """
        self.asked_views = (view,)
        earlier_event = self.expected()
        site, shape, output = self._outcome(Step, name, make, view.shape, self._is_varied(view))
        if earlier_event is not None and earlier_event.noisy is not None:
            # Whether it is uniform noise is asked of the first run's event alone.
            noisy = NoisyNumber(output, site, view, earlier_event.noisy.pure)
        else:
            is_uniform = pure and self.laws_of(view) == {"uniform"}
            noisy = NoisyNumber(output, site, view, pure, is_uniform)
        self.events.append(Step(name, site, shape, output, equal or {}, noisy))
        return noisy

    def ask(self, name: str, outcome: Any, shape: tuple[int, ...], sides: tuple[View, View]) -> Any:
        """Record that code learned which side is greater, and return the recorded outcome."""
        self.asked_views = sides
        is_varied = any(map(self._is_varied, sides))
        site, shape, output = self._outcome(Question, name, lambda: outcome, shape, is_varied)
        self.events.append(Question(name, site, shape, output, sides=sides))
        # A copy, as code may change the array of answers that it gets.  The outputs of draws are
        # copied by those that hand them out.
        return output.copy() if isinstance(output, np.ndarray) else output

    def _is_varied(self, view: View) -> bool:
        return self.varied is not None and self.varied.is_in(view)

    def withdraw_step(self, name: str, operands: list[NoisyNumber]) -> None:
        """Take back the last step if the same line takes it up again, as ``total += row`` does.

        A loop over the records then is one step, however many there are.
        """
        step = self.events[-1] if self.events else None
        if not isinstance(step, Step) or step.name != name or step.site != call_site():
            return
        noisy = step.noisy
        if noisy is None or noisy.used or noisy.steps or noisy.questions or noisy.pure:
            return
        if any(operand is noisy for operand in operands):
            self.events.pop()

    def withdraw_question(self) -> None:
        """Let the answer to the last question count as computed from released numbers.

        The caller does so where it releases the numbers that were compared.  The question then has
        no sides, so that nothing is charged for it, and the answer is not checked.
        """
        question = self.events[-1]
        self.events[-1] = Question(question.name, question.site, question.shape, question.output)

    def call(self, name: str, make: Callable[[], Any], **facts: Any) -> Any:
        """Record the result of a mechanism, and return a copy, which the code may change.

        ``facts`` are further fields of `Call`.
        """
        self.asked_views = ()
        site, shape, output = self._outcome(Call, name, make, ())
        self.events.append(Call(name, site, shape, output, **facts))
        return unrecorded(own_copy, output)

    def _outcome(
        self,
        kind: type[Event],
        name: str,
        make: Callable[[], Any],
        shape: tuple[int, ...] | None = None,
        is_varied: bool = False,
    ) -> tuple[str, tuple[int, ...], Any]:
        """The site, shape and output of an event: what ``make`` returns, or what was recorded."""
        site = call_site()
        if self.recorded is not None:
            earlier_event = self._earlier_event(kind, name, site, shape)
            output = make() if is_varied else earlier_event.output
            return site, earlier_event.shape, output
        output = make()
        if self.redraw is not None and kind is Draw:
            output = self.redraw(site, name, output)
            if output is None:
                self.leave(site, f"{name} is not drawn as in the first run")
        return site, np.shape(output) if shape is None else shape, output

    def _earlier_event(
        self, kind: type[Event], name: str, site: str, shape: tuple[int, ...] | None
    ) -> Event:
        """The recorded event at this place, which must be the one that the code asks for."""
        earlier_event = self.expected()
        reveals = (Draw, Call)
        is_sure = issubclass(kind, reveals) and isinstance(earlier_event, (*reveals, type(None)))
        if earlier_event is None:
            self.leave(
                site, f"the second run {kind.verb} {name} here, the first had ended", is_sure
            )
        if (earlier_event.verb, earlier_event.name) != (kind.verb, name):
            sentence = f"the second run {kind.verb} {name} here, the first {earlier_event.verb}"
            self.leave(site, f"{sentence} {earlier_event.name} at {earlier_event.site}", is_sure)
        if earlier_event.site != site:
            sentence = f"{name} is asked for from another place than in the first run"
            self.leave(site, f"{sentence} ({earlier_event.site})", is_sure)
        if shape is not None and earlier_event.shape != shape:
            sentence = f"{name} has shape {earlier_event.shape} in the first run"
            self.leave(site, f"{sentence}, {shape} in the second", is_sure)
        return earlier_event

    def expected(self) -> Event | None:
        """The recorded event at this place; None if there is none."""
        position = len(self.events)
        recorded_events = self.recorded.events if self.recorded is not None else []
        return recorded_events[position] if position < len(recorded_events) else None

    def leave(self, site: str, reason: str, is_sure: bool = True) -> NoReturn:
        """Stop this run: it has parted from the recorded one."""
        self.parted = Parted(site, reason, is_sure)
        raise self.parted

    def blocks_of(self, view: View) -> list[NoiseBlock]:
        """The blocks of the noises that are in a view."""
        return [block for block in self.blocks if block.is_in(view.noises)]

    def laws_of(self, view: View) -> set[str]:
        """The names of the laws of the noises in a view."""
        return {block.law for block in self.blocks_of(view)}

    def origins_of(self, view: View) -> frozenset[DrawSite]:
        """The places that drew the noises of a view."""
        return frozenset().union(*(block.origins for block in self.blocks_of(view)))

    def noises_of(self, law: str, output: Any, scale: Any, name: str) -> Any:
        """The numbers of the noises of a draw with this output.

        Two generators with one seed draw the same noise.
        """
        drawn = np.asarray(output)
        key = (law, drawn.tobytes())
        noises = self._drawn.get(key)
        if noises is None or not drawn.size or drawn.dtype.kind != "f":
            noises = self._drawn[key] = self.number_noises(law, scale, name, drawn.shape)
        return noises

    def number_noises(
        self,
        law: str,
        scale: Any,
        name: str,
        shape: tuple[int, ...],
        origins: frozenset[DrawSite] | None = None,
    ) -> Any:
        """Give numbers to new noises of this law, one for each element of the shape.

        They are returned as the ``noises`` of a `View`, whose last axis has the noises of one
        element.
        """
        if origins is None:
            origins = frozenset({draw_site()})
        size = int(np.prod(shape))
        scales = np.broadcast_to(np.asarray(scale, dtype=float), shape).ravel()
        start, self.noises = self.noises, self.noises + size
        self.blocks.append(NoiseBlock(start, self.noises, law, scales, call_site(), name, origins))
        return np.arange(start, self.noises, dtype=np.int64).reshape((*shape, 1))

    def new_seed(self) -> np.random.SeedSequence:
        """A new seed from the entropy of this run."""
        return self.entropy.spawn(1)[0]


_state = threading.local()
_tapes_under_way: list[Tape] = []  # the tapes of the runs that are under way


def current_tape() -> Tape | None:
    """The tape of this thread; None outside of a run, and within a recorded call."""
    return getattr(_state, "tape", None)


def tape_of_draw() -> Tape | None:
    """The tape for a draw of this thread.

    A thread that the audited code started has none.  Then the tape of the run notes the line.
    """
    if not hasattr(_state, "tape") and _tapes_under_way:
        _tapes_under_way[-1].elsewhere.append(call_site())
    return current_tape()


def seed_in_place_of(seed: Any) -> Any:
    """The seed that code gives to a generator; in a run with varied draws another one.

    A thread that the audited code started gets that of the run.
    """
    tape = current_tape()
    if not hasattr(_state, "tape") and _tapes_under_way:
        tape = _tapes_under_way[-1]
        tape.elsewhere.append(call_site())
    return tape.new_seed() if tape is not None and tape.passes_over_seeds else seed


@contextmanager
def running(tape: Tape | None) -> Iterator[None]:
    """Let draws of this thread go to the tape; None stops recording for a while."""
    is_inner = hasattr(_state, "tape")
    outer_tape = current_tape()
    _state.tape = tape
    if tape is not None:
        _tapes_under_way.append(tape)
    try:
        yield
    finally:
        if tape is not None:
            _tapes_under_way.remove(tape)
        if is_inner:
            _state.tape = outer_tape
        else:
            del _state.tape


def unrecorded(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a function, of which nothing goes to the tape."""
    with running(None):
        return function(*arguments, **options)


def within_a_run(recording: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    """A function that records within a run, and is the original one in other threads."""

    def call(*arguments: Any, **options: Any) -> Any:
        return (original if tape_of_draw() is None else recording)(*arguments, **options)

    return call


def noting_a_process(start: Callable[..., Any]) -> Callable[..., Any]:
    """A function that starts a process, and notes the line: what it draws is not recorded."""

    def call(*arguments: Any, **options: Any) -> Any:
        if _tapes_under_way:
            _tapes_under_way[-1].elsewhere.append(call_site())
        return start(*arguments, **options)

    return call


def new_seed_bits(count: int) -> int:
    """Random bits for a seed, from the entropy of the run."""
    tape: Any = current_tape()  # the caller has checked that a tape is active
    bits: bytes = tape.new_seed().generate_state(-(-count // 32)).tobytes()
    return int.from_bytes(bits, "little") % (1 << count)
