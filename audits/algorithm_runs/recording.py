"""Two gates for audits: one records the releases of a run, the other replays them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from typing import Any, NoReturn

import numpy as np

from accountant.ledger.gate import Gate
from accountant.ledger.interfaces import Query, Releasable, drawing_mechanism
from accountant.ledger.ledger import Ledger
from accountant.ledger.private_data import Users
from accountant.plans.plan import Sampler


class OffTranscript(RuntimeError):
    """A replayed run asked for other releases than the recorded one: they depend on the data.

    Examples
    --------
    >>> import numpy as np
    >>> from accountant import Repeat
    >>> from audits import OffTranscript, privacy_losses
    >>> from mechanisms import Laplace
    >>> class AsksAgainIfLarge:
    ...     def plan(self, shape):
    ...         return Repeat(Laplace(scale=1.0), 2)
    ...
    ...     def run(self, ledger):
    ...         sums = []
    ...         ledger.release(ledger.plan.part, lambda data: sums.append(data.sum()) or sums[0])
    ...         return ledger.release(ledger.plan.part, np.sum) if sums[0] > 0.5 else 0.0
    >>> try:
    ...     losses = privacy_losses(AsksAgainIfLarge(), np.zeros(5), np.eye(5)[0], runs=1, rng=0)
    ... except OffTranscript as error:
    ...     print(error)
    the run asked for more than the 1 recorded releases
    """


class RecordingLedger(Ledger):
    """A ledger that also keeps the private values it released; for audits only."""

    def __init__(
        self, data: Any, plan: Any, rng: Any, public: Any, undeclared: bool = False
    ) -> None:
        super().__init__(data, plan, rng=rng, public=public, undeclared=undeclared)
        self.values: list[Any] = []
        self.samples: list[Users] = []
        self.takes_undeclared = undeclared

    def _answer(self, mechanism: Releasable, query: Query, who: Users | None) -> Any:
        try:
            return super()._answer(mechanism, query, who)
        finally:
            # a release whose query failed has an entry and no value
            self.values += [None] * (len(self._entries) - len(self.values))

    def _answer_blocks(
        self,
        mechanism: Releasable,
        query: Query,
        charged: Iterable[Users],
        executor: Executor | None,
    ) -> Iterator[Any]:
        # in this thread, where values are kept, with each block's own noise
        del executor
        stream = self._noise
        try:
            for who in charged:
                self._noise = np.random.default_rng(self._block_seed())
                yield self._answer(mechanism, query, who)
                self._noise = stream
        finally:
            self._noise = stream

    def _draw(self, mechanism: Releasable, value: Any) -> Any:
        # a copy: a query may hand out its own working memory
        self.values.append(np.array(value))
        return super()._draw(mechanism, value)

    def _sample(self, sampler: Sampler) -> Users:
        self.samples.append(super()._sample(sampler))
        return self.samples[-1]


class ReplayGate(Gate):
    """A gate with the recorded answers, coins and samples, other data, and no noise.

    ``loss`` sums log density(output | recorded value) - log density(output | value here).  It is
    NaN if samples were secret: their density would be a mixture over all of them.
    """

    def __init__(self, recorder: RecordingLedger, data: Any) -> None:
        super().__init__(
            data, recorder.plan, recorder.public, recorder.coin_words,
            undeclared=recorder.takes_undeclared,
        )  # fmt: skip
        self._entries = list(zip(recorder.transcript, recorder.values, strict=True))
        self._samples = iter(recorder.samples)
        self._validation_noise = np.random.default_rng(
            0
        )  # validates values; its draws are thrown away
        self._position = 0
        self._violation = ""
        self.loss = 0.0

    def finish(self) -> None:
        """Raise `OffTranscript` unless all went as recorded, even if the algorithm hid an error."""
        if self._violation:
            raise OffTranscript(self._violation)
        if self._position < len(self._entries):
            total = len(self._entries)
            self._raise_off_transcript(
                f"the run stopped after {self._position} of {total} recorded releases"
            )

    def _answer(self, mechanism: Releasable, query: Query, who: Users | None) -> Any:
        if self._position == len(self._entries):
            self._raise_off_transcript(
                f"the run asked for more than the {self._position} recorded releases"
            )
        entry, recorded = self._entries[self._position]
        if mechanism != entry.mechanism:
            self._raise_off_transcript(f"asked for {mechanism!r}, recorded was {entry.mechanism!r}")
        if not same_users(who, entry.who):
            self._raise_off_transcript(
                f"release {self._position} asked other users than the recorded one"
            )
        self._position += 1
        value = self._value_as_recorded(mechanism, query, who, entry.output)
        if value.shape != recorded.shape:
            self._raise_off_transcript(
                f"a value of shape {value.shape}, recorded was {recorded.shape}"
            )
        if who is None:
            self._add_loss(mechanism, entry.output, recorded, value)
        elif value.size:
            self._add_local_loss(mechanism, entry.output, recorded, value)
        return entry.output

    def _raise_off_transcript(self, words: str) -> NoReturn:
        self._violation = self._violation or words
        raise OffTranscript(words)

    def _value_as_recorded(
        self, mechanism: Releasable, query: Query, who: Users | None, output: Any
    ) -> Any:
        """The query's value here; it must exist exactly if the recorded run had one."""
        try:
            value = np.array(self._query_value(mechanism, query, who))
            drawing_mechanism(mechanism).release(value, self._validation_noise)
        except Exception as error:
            if output is None:
                raise  # it failed in the recorded run too: the algorithm sees the same
            self._raise_off_transcript(
                f"the release failed on other data alone: {type(error).__name__}"
            )
        if output is None:
            self._raise_off_transcript("the release failed on the recorded data alone")
        return value

    def _add_local_loss(self, mechanism: Any, output: Any, recorded: Any, value: Any) -> None:
        """In the local model at most one user's value may differ; the others' terms cancel."""
        changed = (value != recorded).reshape(len(value), -1).any(axis=1)
        count = np.count_nonzero(changed)
        if count > 1:
            self._raise_off_transcript(
                f"the values of {count} users changed with one user's record"
            )
        if count:
            self._add_loss(mechanism, output[changed], recorded[changed], value[changed])

    def _sample(self, sampler: Sampler) -> Users:
        del sampler
        return next(self._samples)

    def _add_loss(self, mechanism: Any, output: Any, recorded: Any, value: Any) -> None:
        if mechanism.sampler is not None:
            self.loss = math.nan
            return
        here, there = mechanism.log_density(output, value), mechanism.log_density(output, recorded)
        with np.errstate(invalid="ignore"):
            loss = float(np.sum(there - here))
        # an answer that is impossible either way is no evidence for the claim
        self.loss += math.inf if math.isnan(loss) else loss


def same_users(one: Users | None, other: Users | None) -> bool:
    """Whether two requests name the same users; None is a release of all at once."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return (
            isinstance(one, np.ndarray)
            and isinstance(other, np.ndarray)
            and np.array_equal(one, other)
        )
    return one == other
