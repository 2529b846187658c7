"""The gate of a replay: it gives the recorded answers again, on other data.

A gate stands between an algorithm and private data: the algorithm asks for releases, and the gate
answers.  A `ReplayGate` holds other data than the recorded run, such as those of a neighbour.  If
the algorithm asks for anything else than in the recorded run, its requests depend on the data:
`OffTranscript`.  The gate also adds up the privacy loss of the recorded answers between the two
data sets.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from accountant.amplification.poisson_sampling import PoissonSampled
from accountant.ledger.chunks import Chunks
from accountant.ledger.interfaces import Releasable, ShapedQuery, drawing_mechanism
from accountant.ledger.private_data import Users, take_rows
from accountant.plans.plan import Plan, Sampler
from audits.algorithm_runs.recording import (
    GateWithRefusals,
    RecordingLedger,
    Refusal,
    same_users,
)

# Relative difference up to which two sums of the same rows, in other orders, count as equal.
ROUND_OFF = 1e-9


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


class ReplayGate(GateWithRefusals):
    """A gate with the recorded answers, coins and samples, other data, and no noise.

    ``loss`` is the privacy loss of the recorded answers, in nats: the sum over all releases of

        log density(output | recorded value) - log density(output | value on these data).

    For a release from a secret Poisson sample it is the loss to an observer who knows which of the
    other records, those that the two data sets have in common, are in the sample.
    """

    def __init__(self, recorder: RecordingLedger, data: Any, public: Any = None) -> None:
        super().__init__(
            data,
            recorder.plan,
            recorder.public if public is None else public,
            recorder.coin_words,
            undeclared=recorder.takes_undeclared,
        )
        # the recorded releases in order, each with its value on the recorded data
        self._entries = list(zip(recorder.transcript, recorder.values, strict=True))
        self._samples = iter(recorder.samples)
        self._sampled = np.empty(0, dtype=np.intp)  # the secret sample of the current release
        self._both_data = recorder.records, self._data  # those of the recorded run come first
        self._changed_users: set[int] = set()  # users whose value changed in some release
        self._refusals = recorder.refusals
        self._refused = 0  # how many of the recorded refusals have come again
        # Values are checked by a release of each with this generator, whose outputs are discarded.
        self._validation_noise = np.random.default_rng(0)
        self._position = 0  # how many of the recorded releases have come again
        self._violation = ""  # the first difference to the recorded run, in words
        self.transcript = recorder.transcript
        self.loss = 0.0

    @property
    def moved_rows(self) -> int:
        """The number of rows that differ from the recorded ones; 0 if they cannot be compared."""
        return 0 if self._changed_rows is None else self._changed_rows.size

    def finish(self) -> None:
        """Raise `OffTranscript` unless all went as recorded, also if the algorithm hid an error."""
        if self._violation:
            raise OffTranscript(self._violation)
        if self._position < len(self._entries):
            total = len(self._entries)
            self._raise_off_transcript(
                f"the run stopped after {self._position} of {total} recorded releases"
            )
        if self._refused < len(self._refusals):
            self._raise_off_transcript("a request was refused on the recorded data alone")

    def _keep_refusal(self, error: str, mechanism: Any, who: Users | None) -> None:
        refusal = Refusal(self._position, error, mechanism, who)
        if self._refused == len(self._refusals) or not same_refusal(
            refusal, self._refusals[self._refused]
        ):
            self._raise_off_transcript(
                f"a request was refused on other data alone, after {self._position} releases"
            )
        self._refused += 1

    def _answer(self, mechanism: Releasable, query: ShapedQuery, who: Users | None) -> Any:
        """The recorded answer, if it was to the same request; add its privacy loss."""
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
        if mechanism.sampler is not None:
            self._add_sampled_loss(mechanism, query, entry.output, recorded, value)
        elif who is None:
            self._add_loss(mechanism, entry.output, recorded, value)
        elif value.size:
            self._add_local_loss(mechanism, entry.output, recorded, value, who)
        return entry.output

    def _raise_off_transcript(self, reason: str) -> NoReturn:
        self._violation = self._violation or reason
        raise OffTranscript(reason)

    def _value_as_recorded(
        self, mechanism: Releasable, query: ShapedQuery, who: Users | None, output: Any
    ) -> Any:
        """The query's value on these data; it must fail exactly if the recorded query failed."""
        try:
            value = np.array(self._query_value(mechanism, query, who))
            drawing_mechanism(mechanism).release(value, self._validation_noise)
        except Exception as error:
            if output is None:
                raise  # It failed in the recorded run too, so the algorithm sees the same error.
            self._raise_off_transcript(
                f"the release failed on other data alone: {type(error).__name__}"
            )
        if output is None:
            self._raise_off_transcript("the release failed on the recorded data alone")
        return value

    def _add_local_loss(
        self, mechanism: Any, output: Any, recorded: Any, value: Any, who: Users
    ) -> None:
        """Add the loss of a release in the local model, where each user randomises an own value.

        At most one user's value may differ from the recorded one; the terms of all others cancel.
        """
        changed = (value != recorded).reshape(len(value), -1).any(axis=1)
        if not changed.any():
            return
        # The users are counted over all releases, since a query may keep data for the next one.
        self._changed_users.update(np.arange(self._users)[who][changed].tolist())
        if len(self._changed_users) > 1:
            self._raise_off_transcript(
                f"the values of {len(self._changed_users)} users changed with one user's record"
            )
        self._add_loss(mechanism, output[changed], recorded[changed], value[changed])

    def _add_sampled_loss(
        self, mechanism: Any, query: ShapedQuery, output: Any, recorded: Any, value: Any
    ) -> None:
        """Add the loss of a release from a secret Poisson sample with the given rate.

        On each of the two data sets the density of the output is

            rate density(output | sample with the record) + (1 - rate) density(output | without it),

        for the one record in which the data sets differ, with all others as they were sampled.  The
        loss is NaN where this is not known.
        """
        changed = self._changed_rows
        if changed is None or changed.size > 1 or not isinstance(mechanism, PoissonSampled):
            self.loss = math.nan
        # Without a changed record the densities are equal: the loss stays as it is.
        if changed is None or changed.size != 1 or math.isnan(self.loss):
            return
        # The other sample has the record if the drawn one has not, and the other way round.
        other_sample = np.setxor1d(self._sampled, changed)
        try:
            other_recorded, other_value = (
                np.array(query.query(take_rows(data, other_sample))) for data in self._both_data
            )
        except Exception:  # The query may fail on this sample.
            self.loss = math.nan
            return
        if not other_recorded.shape == other_value.shape == value.shape:
            self._raise_off_transcript("the shape of a value depends on the secret sample")
        # For each data set, the recorded one first: the values of the drawn and the other sample.
        value_pairs = [(recorded, other_recorded), (value, other_value)]
        # The sampler's loss is for a record that is added or removed, not replaced: on one of the
        # two data sets the record must not change the value.
        if not any(_adds_nothing(*pair) for pair in value_pairs):
            self.loss = math.nan
            return
        drawn_has_record = changed[0] in self._sampled
        recorded_log_density, log_density = (
            _log_mixture(
                mechanism,
                output,
                inside=drawn if drawn_has_record else other,
                outside=other if drawn_has_record else drawn,
            )
            for drawn, other in value_pairs
        )
        self.loss += recorded_log_density - log_density

    @functools.cached_property
    def _changed_rows(self) -> Any:
        return changed_rows(*self._both_data)

    def _sample(self, sampler: Sampler) -> Users:
        del sampler
        self._sampled = np.asarray(next(self._samples))
        return self._sampled

    def _add_loss(self, mechanism: Any, output: Any, recorded: Any, value: Any) -> None:
        """Add the loss of an output between the ``recorded`` value and that on these data."""
        log_density, recorded_log_density = (
            mechanism.log_density(output, value),
            mechanism.log_density(output, recorded),
        )
        with np.errstate(invalid="ignore"):
            loss = float(np.sum(recorded_log_density - log_density))
        # An output of density 0 under both values gives NaN; its loss counts as infinite.
        self.loss += math.inf if math.isnan(loss) else loss


def _log_mixture(mechanism: PoissonSampled, output: Any, inside: Any, outside: Any) -> float:
    """Return ``ln(rate density(output | inside) + (1 - rate) density(output | outside))``.

    ``inside`` and ``outside`` are the values of the sample with and without the record.
    """
    part, rate = drawing_mechanism(mechanism), mechanism.rate
    log_inside, log_outside = (
        float(np.sum(part.log_density(output, value))) for value in (inside, outside)
    )
    with np.errstate(divide="ignore"):
        return float(np.logaddexp(log_inside + np.log(rate), log_outside + np.log1p(-rate)))


def _adds_nothing(first: Any, second: Any) -> bool:
    """Whether the values with and without a record are equal, up to the rounding of sums."""
    if first.dtype.kind not in "iuf":
        return np.array_equal(first, second)
    return bool(np.all(np.abs(first - second) <= ROUND_OFF * np.max(np.abs(first), initial=0.0)))


def changed_rows(data: Any, neighbour: Any) -> NDArray[np.intp] | None:
    """Return the indices of the rows that differ; None where rows cannot be compared."""
    parts = [part if isinstance(part, tuple) else (part,) for part in (data, neighbour)]
    changed = np.empty(0, dtype=np.intp)
    for part, other_part in zip(*parts, strict=True):
        if (
            isinstance(part, Chunks)
            or isinstance(other_part, Chunks)
            or part.shape != other_part.shape
        ):
            return None
        changed = np.union1d(changed, (part != other_part).nonzero()[0])
    return changed


def same_refusal(one: Refusal, other: Refusal) -> bool:
    """Whether two refusals are of the same request, after as many releases, with the same error."""
    # The users, the last field, may be arrays or slices, so they are compared in another way.
    return one[:3] == other[:3] and same_users(one.who, other.who)


class ReplayGates:
    """The gates of a run that receives the recorded answers, in the order of the recorders."""

    def __init__(self, recorders: list[RecordingLedger], most_moved_rows: float = math.inf) -> None:
        # The data behind a gate may differ from the recorded ones in so many rows.
        self._recorders, self._most_moved_rows = recorders, most_moved_rows
        self._gates: list[ReplayGate] = []

    def open(self, data: Any, plan: Plan, public: Any) -> ReplayGate:
        """Return the next gate; raise `OffTranscript` where it is not the recorded one."""
        position = len(self._gates)
        if position == len(self._recorders):
            raise OffTranscript(f"the run opened more than the {position} recorded gates")
        recorder = self._recorders[position]
        if plan != recorder.plan:
            raise OffTranscript(f"the plan was {plan!r}, recorded was {recorder.plan!r}")
        self._gates.append(ReplayGate(recorder, data, public))
        moved, allowed = self._gates[-1].moved_rows, self._most_moved_rows
        if moved > allowed:
            raise OffTranscript(
                f"{moved} rows behind the gate changed where the data changed in {allowed:g}"
            )
        return self._gates[-1]

    def finished_loss(self) -> float:
        """Return the loss of the only gate; NaN if there are several.

        It raises `OffTranscript` if the run was not as recorded.
        """
        for gate in self._gates:
            gate.finish()
        if len(self._gates) < len(self._recorders):
            raise OffTranscript(
                f"the run opened {len(self._gates)} of {len(self._recorders)} gates"
            )
        return self._gates[0].loss if len(self._gates) == 1 else math.nan
