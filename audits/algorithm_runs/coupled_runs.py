"""Two runs of one algorithm, on two data sets, that receive the same answers.

An audit of an adaptive algorithm needs, for each release, the values on both data sets after the
same earlier answers.  A query may be called only once and may have state, so both values are known
only while both runs are active.  The second run is a thread that works only while the first one
waits for it; so the result does not depend on speed, and no thread outlives the runs.

An algorithm reaches its data through a gate, to which it passes queries and mechanisms; each
request is a release.  At every release the two runs meet (`Rendezvous`): both values go to a
function ``answer``, and both runs receive its output.
"""

from __future__ import annotations

import contextlib
import contextvars
import copy
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, NoReturn, final

import numpy as np

from accountant.ledger.gate import Gate
from accountant.ledger.immutable_arrays import fresh_view, immutable_output
from accountant.ledger.interfaces import Releasable, ShapedQuery, drawing_mechanism
from accountant.ledger.private_data import Users
from accountant.plans.plan import Plan, Sampler
from audits.algorithm_runs.fits import OpenGate, run_through
from audits.algorithm_runs.recording import same_users
from audits.algorithm_runs.replay_gate import OffTranscript


@final
@dataclass(frozen=True, slots=True)
class PendingRelease:
    """A release that one of the runs asked for: its value and an output drawn for it, or an error.

    ``who`` are the users that report, in the local model only.
    """

    mechanism: Any
    who: Users | None
    value: Any = None
    output: Any = None
    error: Exception | None = None


JointAnswer = Callable[[PendingRelease, PendingRelease], Any]


class CoupledGate(Gate):
    """The gate of one run, which answers with the output that both runs share."""

    def __init__(
        self,
        data: Any,
        plan: Plan,
        public: Any,
        coin_words: Sequence[int],
        noise: np.random.Generator,
        samples: list[Users],
        exchange: Callable[[PendingRelease], Any],
    ) -> None:
        super().__init__(data, plan, public, coin_words)
        self.transcript: tuple[
            Any, ...
        ] = ()  # a fit stores the attribute; coupled runs never read it
        self._noise, self._samples, self._exchange = noise, samples, exchange

    def _answer(self, mechanism: Releasable, query: ShapedQuery, who: Users | None) -> Any:
        try:
            # the value is copied, because a query may return its own working memory
            value = np.array(self._query_value(mechanism, query, who))
            drawn = drawing_mechanism(mechanism).release(value, self._noise)
            request = PendingRelease(mechanism, who, value, drawn)
        except Exception as error:  # a query may raise any exception
            request = PendingRelease(mechanism, who, error=error)
        output = self._exchange(request)
        if request.error is not None:  # the algorithm sees the same error on the other data
            raise request.error
        return fresh_view(output)

    def _sample(self, sampler: Sampler) -> Users:
        # the run that comes second takes the sample that the first one drew
        if self._samples:
            return self._samples.pop()
        drawn = sampler.select(self._users, self._noise)
        self._samples.append(drawn)
        return drawn


def run_coupled(
    algorithm: Any,
    datasets: tuple[Any, Any],
    public: Any,
    coin_words: Sequence[int],
    noise: np.random.Generator,
    answer: JointAnswer,
) -> tuple[Any, Any]:
    """Run or fit on both data sets; ``answer`` returns each release's output.

    Raises `OffTranscript` if the runs ask for different releases, and any error of either run.
    """
    samples: list[Users] = []
    meeting = Rendezvous(answer)

    def gates_of(exchange: Callable[[PendingRelease], Any]) -> OpenGate:
        return lambda data, plan, public: CoupledGate(
            data, plan, public, coin_words, noise, samples, exchange
        )

    open_first, open_second = map(gates_of, (meeting.release_of_first, meeting.release_of_second))
    # attributes that a run sets on the algorithm must not be seen by the other
    twin = algorithm
    with contextlib.suppress(TypeError):
        twin = copy.copy(algorithm)
    with meeting.second_run(lambda: run_through(twin, datasets[1], public, open_second)):
        try:
            result = run_through(algorithm, datasets[0], public, open_first)
            return result, meeting.result_of_second()
        except Exception:
            if meeting.failure is not None:  # also if the algorithm caught it, or failed later
                raise meeting.failure from None
            raise


class _RunAbandoned(BaseException):
    """Ends the second run when the first is over."""


class Rendezvous:
    """The point where the two runs wait for each other at every release."""

    def __init__(self, answer: JointAnswer) -> None:
        self._answer = answer
        # What the second run asks for: a `PendingRelease`, or at its end (its error, its result).
        self._requests: SimpleQueue[Any] = SimpleQueue()
        # Each None in it lets the second run go on until its next request.  Outputs are not sent
        # through it: both runs read ``_output``.
        self._answers: SimpleQueue[Any] = SimpleQueue()
        self._abandoned = False  # the first run is over
        self._output: Any = None  # of the last release, for both runs
        self._count = 0  # releases so far
        self.failure: BaseException | None = None  # of either run, or a difference between them

    @contextlib.contextmanager
    def second_run(self, run: Callable[[], Any]) -> Iterator[None]:
        """Run the second run in a thread that starts when the first one asks, and ends with it."""

        def work() -> None:
            self._answers.get()  # until the first run asks, or is over
            try:
                self._requests.put((None, None if self._abandoned else run()))
            except BaseException as error:  # raised again in the first run
                self._requests.put((error, None))

        # the thread gets the caller's context, which holds numpy's error state
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(work,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._abandoned = True
            self._answers.put(None)
            thread.join()

    def release_of_first(self, first_release: PendingRelease) -> Any:
        """Return the output for both runs, once the second run asks for the same release."""
        if self.failure is not None:
            raise self.failure
        second_release = self._resume_second()
        if not isinstance(second_release, PendingRelease):
            self._fail(f"the run stopped after {self._count} releases on other data")
        if second_release.mechanism != first_release.mechanism:
            self._fail(
                f"asked for {second_release.mechanism!r}, recorded was {first_release.mechanism!r}"
            )
        if not same_users(second_release.who, first_release.who):
            self._fail(f"release {self._count} asked other users than the recorded one")
        self._count += 1
        if second_release.error is not None or first_release.error is not None:
            if first_release.error is None:
                reason = (
                    f"the release failed on other data alone: {type(second_release.error).__name__}"
                )
                self._fail(reason)
            if second_release.error is None:
                self._fail("the release failed on the recorded data alone")
            self._output = None
        else:
            if second_release.value.shape != first_release.value.shape:
                shapes = (
                    f"shape {second_release.value.shape}, recorded was {first_release.value.shape}"
                )
                self._fail(f"a value of {shapes}")
            try:
                self._output = immutable_output(self._answer(first_release, second_release))
            except Exception as error:
                self.failure = error
                raise
        return self._output

    def release_of_second(self, second_release: PendingRelease) -> Any:
        """Return the same output, once the first run goes on to its next release."""
        if not self._abandoned:
            self._requests.put(second_release)
            self._answers.get()
        if self._abandoned:
            raise _RunAbandoned
        return self._output

    def result_of_second(self) -> Any:
        """Return the result of the second run, after the first one has returned."""
        if self.failure is not None:
            raise self.failure
        outcome = self._resume_second()
        if isinstance(outcome, PendingRelease):
            self._fail(f"the run asked for more than the {self._count} recorded releases")
        return outcome[1]

    def _resume_second(self) -> Any:
        """Let the second run work until its next release, or its end: then (None, its result)."""
        self._answers.put(None)
        request = self._requests.get()
        if not isinstance(request, PendingRelease) and request[0] is not None:
            self.failure = request[0]
            raise request[0]
        return request

    def _fail(self, reason: str) -> NoReturn:
        self.failure = OffTranscript(reason)
        raise self.failure
