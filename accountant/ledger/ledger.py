"""The ledger: the gate in memory between private data and the algorithm that asks about them.

For each release of its plan it charges the budget, evaluates the query on the data, lets the
mechanism add noise, and records the answer in a transcript.  The checks and the charge are those of
`Gate`; this file has the noise, the transcript, and answers for blocks of users by an executor.
"""

from __future__ import annotations

import math
import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from typing import Any

import numpy as np

from accountant.domains import OneOf
from accountant.errors import (
    IdealisedNoiseWarning,
    ParameterError,
    SensitivityWarning,
)
from accountant.ledger.block_answers import (
    Answer,
    HeldBlocks,
    Noise,
    UserBlock,
    answers_of_held_blocks,
    digest,
    refuse_impossible_outputs,
)
from accountant.ledger.gate import Gate
from accountant.ledger.immutable_arrays import fresh_view, immutable_output
from accountant.ledger.interfaces import (
    Entry,
    PrivacyMeter,
    Query,
    Releasable,
    Shape,
    ShapedQuery,
    drawing_mechanism,
)
from accountant.ledger.ordered_map import map_in_order
from accountant.ledger.private_copies import shown
from accountant.ledger.private_data import Users, count_users, first_array, take_rows
from accountant.ledger.worker_chunks import WorkerChunks
from accountant.plans.declared_releases import idealised_part
from accountant.plans.plan import Plan, Sampler
from accountant.randomness import RenewedKey, Rng, fresh_key, generator
from accountant.table_display import Table, TableDisplay
from dp_attest.calls import callers_level, shows_call

SURE = 50.0  # scales of noise that no answer is away from its value
SUMS = (np.sum, np.nansum, sum, math.fsum)
NAMES_OF_SUMS = {"np", "numpy", "math", "sum", "nansum", "fsum", "float"}
TRANSCRIPT = OneOf(("full", "digest"))  # whether the transcript keeps answers or their digests


class Ledger(TableDisplay, Gate):
    """Data that can only be asked through a fixed plan, one release at a time, in memory.

    Noise comes from a cipher that gets a fresh key of the operating system for each release.

    Parameters
    ----------
    data : array, tuple of arrays or data frame
        One row a user.
    plan : Plan or None
        What may be released, in order.
    rng : int or numpy.random.Generator, optional
        A seed, with which audits and tests can repeat a run; it marks every entry of the
        transcript.  By default noise comes from the operating system.
    public : Any
        Public data that the algorithm may read directly.
    transcript : {"full", "digest"}
        "digest" keeps SHA-256 digests in place of the answers.
    undeclared : bool
        Whether mechanisms of classes that were not declared are released too.  Their noise and loss
        are then not checked but taken on their author's word, and the transcript names them.

    Examples
    --------
    >>> import numpy as np
    >>> from accountant import Ledger
    >>> from mechanisms import Laplace
    >>> count = Laplace(2.0)
    >>> ledger = Ledger(np.arange(50.0), 2 * count, rng=0)
    >>> answer = ledger.release(count, lambda data: float((data > 20).sum()))
    >>> len(ledger.transcript), ledger.next == count
    (1, True)
    """

    @shows_call("Ledger(data, plan)")
    def __init__(
        self,
        data: Any,
        plan: Plan | None,
        rng: Rng = None,
        public: Any = None,
        transcript: str = "full",
        undeclared: bool = False,
        _meter: PrivacyMeter | None = None,
    ) -> None:
        self._noise, coin_words = split_streams(rng)
        self._seeded = rng is not None
        self._noise_key = None if self._seeded else RenewedKey(self._noise)
        self._arithmetic_known: Any = None  # the last mechanism whose arithmetic was checked
        self._warned = False
        super().__init__(data, plan, public, coin_words, _meter, undeclared)
        self._digest = TRANSCRIPT.check("transcript", transcript) == "digest"
        self._entries: list[Entry] = []

    def __reduce__(self) -> Any:
        raise TypeError("a ledger cannot be copied or pickled: two copies would spend it twice")

    def __repr__(self) -> str:
        return f"Ledger(shape={self.shape}, released={len(self._entries)}, next={self.next!r})"

    def _table(self) -> Table:
        rows = [
            (i, repr(entry.mechanism), self._users if entry.who is None else count_users(entry.who))
            for i, entry in enumerate(self.transcript, 1)
        ]
        return Table(("step", "released", "users asked"), rows, repr(self))

    @property
    def transcript(self) -> tuple[Entry, ...]:
        """Return all releases so far, in order, as copies of the entries: see `Entry`."""
        shown_mechanisms: dict[int, Any] = {}  # entries often share a mechanism
        for entry in self._entries:
            if id(entry.mechanism) not in shown_mechanisms:
                shown_mechanisms[id(entry.mechanism)] = shown(entry.mechanism)
        return tuple(
            entry._replace(
                mechanism=shown_mechanisms[id(entry.mechanism)],
                who=fresh_view(entry.who),
                output=fresh_view(entry.output),
            )
            for entry in self._entries
        )

    def _admitted(
        self, mechanism: Releasable, query: Query, shape: Shape | None
    ) -> tuple[Any, ShapedQuery]:
        copy, shaped = super()._admitted(mechanism, query, shape)
        if copy is not self._arithmetic_known:
            self._check_arithmetic(copy)
            self._arithmetic_known = copy
        if not self._seeded:
            warn_of_raw_sum(mechanism, query, first_array(self._data))
        return copy, shaped

    def _check_arithmetic(self, plan: Any) -> None:
        """Warn once where a mechanism draws its noise with floats.

        A ledger with a seed does not warn, as its releases are for audits and tests.
        """
        part = None if self._seeded or self._warned else idealised_part(plan)
        if part is not None:
            self._warned = True
            message = f"{shown(part)!r} draws its noise with floats, whose last digits can reveal "
            message += 'the data: arithmetic="exact" is safe to publish'
            warnings.warn(message, IdealisedNoiseWarning, stacklevel=callers_level())

    def _charge(self, mechanism: Releasable, who: Users | None) -> None:
        # A book records words of the noise with the charge, so the key is renewed before.
        if self._noise_key is not None:
            self._noise_key.renew()
        super()._charge(mechanism, who)

    def _answer(self, mechanism: Releasable, query: ShapedQuery, who: Users | None) -> Any:
        output = None
        try:
            value = self._query_value(mechanism, query, who)
            output = immutable_output(self._draw(mechanism, value))
        finally:
            self._record(mechanism, who, output)
        return fresh_view(output)

    def _answer_blocks(
        self,
        mechanism: Releasable,
        query: ShapedQuery,
        charged: Iterable[Users],
        executor: Executor | None,
    ) -> Iterator[Any]:
        # Blocks are charged ahead of their answers.  ``unanswered`` holds the users of those that
        # wait, in order.  An executor gets a copy of the mechanism, as its workers may change it.
        sent_mechanism = mechanism if executor is None else shown(mechanism)
        unanswered: deque[Users] = deque()

        def noting_charged() -> Iterator[Users]:
            for who in charged:
                unanswered.append(who)
                yield who

        try:
            for answer in self._block_answers(sent_mechanism, query, noting_charged(), executor):
                who, output = unanswered[0], answer.outputs
                if answer.digest:
                    self._append(mechanism, unanswered.popleft(), answer.digest)
                    yield answer
                    continue
                if executor is not None:
                    refuse_impossible_outputs(mechanism, output, count_users(who))
                output = immutable_output(output)
                self._record(mechanism, unanswered.popleft(), output)
                yield fresh_view(output)
        finally:
            # These blocks were charged, so the transcript has them, without an answer.
            for who in unanswered:
                self._record(mechanism, who, None)

    def _block_answers(
        self,
        mechanism: Releasable,
        query: ShapedQuery,
        charged: Iterable[Users],
        executor: Executor | None,
    ) -> Iterator[Answer]:
        """Yield the answers of blocks of charged users, in order."""
        runs_once = executor is None  # an executor may run a block again after a worker died
        if isinstance(self._data, WorkerChunks):
            reduce = self._reduce if self._digest else None
            task_template = HeldBlocks(mechanism, query, self._data.reader, [], reduce)
            held_blocks = ((who, self._block_noise(runs_once)) for who in charged)
            return answers_of_held_blocks(self._data, task_template, held_blocks, executor)
        blocks = (
            UserBlock(
                mechanism,
                query,
                take_rows(self._data, who),
                count_users(who),
                self._block_noise(runs_once),
            )
            for who in charged
        )
        return map(Answer, map_in_order(UserBlock.answer, blocks, executor))

    def _block_noise(self, runs_once: bool) -> Noise:
        """Return the source of the noise of one block: a seed, fresh entropy, or a cipher's key.

        Fresh entropy is only for blocks that run once, as a second run would draw other noise.
        """
        if self._seeded:
            return Noise(self._block_seed(), None)
        return Noise(None, None if runs_once else fresh_key())

    def _block_seed(self) -> list[int] | None:
        """Return eight 32-bit seed words for one block; None in a ledger without a seed."""
        return self._noise.integers(1 << 32, size=8).tolist() if self._seeded else None

    def _record(self, mechanism: Releasable, who: Users | None, output: Any) -> None:
        recorded = digest(output) if self._digest and output is not None else output
        self._append(mechanism, who, recorded)
        if not self._seeded:
            warn_of_scale(mechanism, output, self._users)

    def _append(self, mechanism: Releasable, who: Users | None, recorded: Any) -> None:
        undeclared = self._copies.undeclared_class(mechanism)
        self._entries.append(
            Entry(mechanism, who, recorded, self._seeded, undeclared, self._executor)
        )

    def _draw(self, mechanism: Releasable, value: Any) -> Any:
        return drawing_mechanism(mechanism).release(value, self._noise)

    def _sample(self, sampler: Sampler) -> Users:
        return sampler.select(self._users, self._noise)


def warn_of_raw_sum(mechanism: Any, query: Query, rows: Any) -> None:
    """Warn where a plain sum of numbers is released with the sensitivity that is the default, 1.

    One record may move such a sum by as much as its value.  Whether to warn is decided by the
    mechanism, the code of the query and the type of the data, which are public.  No value of the
    data decides it, and neither does the answer: the warning reveals nothing of a record.
    """
    is_whole = mechanism.__class__.__name__.startswith("Discrete")  # counts of whole numbers
    if getattr(mechanism, "sensitivity", None) != 1.0 or is_whole or not is_plain_sum(query):
        return
    if getattr(getattr(rows, "dtype", None), "kind", "") in "iuf":
        name = type(mechanism).__name__
        message = (
            f"a sum of numbers is released with sensitivity 1, the default of {name}: it holds "
            "only if each record is in [0, 1]. For values up to 100, say, state "
            f"{name}(scale=..., sensitivity=100.0) and clip in the query, as in "
            "lambda x: np.clip(x, 0, 100).sum()"
        )
        warnings.warn(message, SensitivityWarning, stacklevel=callers_level())


def warn_of_scale(mechanism: Any, output: Any, rows: int) -> None:
    """Warn where an answer is above what so many rows of its sensitivity add up to.

    A count or a sum is at most ``sensitivity * rows``.  The answer is what was released, with its
    noise; the declaration and the number of rows are public.  So the warning reveals nothing that
    is not known.  An answer beyond by less than `SURE` scales of noise is not warned of, nor
    is the number of a candidate, which a selection answers with.
    """
    if getattr(mechanism, "statistic", None) not in {"count", "sum"}:
        return
    sensitivity: Any = getattr(mechanism, "sensitivity", None)
    scale: Any = getattr(mechanism, "scale", None)
    numbers = (sensitivity, scale, output)
    if all(isinstance(number, float | int | np.number) for number in numbers):
        largest_sum = float(sensitivity) * rows
        if abs(float(output)) > largest_sum + SURE * float(scale):
            message = (
                f"an answer is far above what its sensitivity allows: {rows:,} rows that move it "
                f"by at most {sensitivity:g} add up to {largest_sum:g}. A count or a sum needs the "
                "sensitivity of its largest record, to which the query clips all records"
            )
            warnings.warn(message, SensitivityWarning, stacklevel=callers_level())


def is_plain_sum(query: Query) -> bool:
    """Return whether a query adds up its data as they are: np.sum, or lambda x: x.sum()."""
    code = getattr(query, "__code__", None)
    if code is None or any(query is function for function in SUMS):
        return any(query is function for function in SUMS)
    has_other_parts = code.co_freevars or code.co_argcount != 1 or any(code.co_consts)
    return not has_other_parts and "sum" in code.co_names and {*code.co_names} <= NAMES_OF_SUMS


def split_streams(rng: Rng) -> tuple[np.random.Generator, list[int]]:
    """Return a generator of noise, and seed words for the public coins.

    The noise cannot be computed from the seed words of the coins.
    """
    if rng is None:
        return generator(None), seed_words(np.random.SeedSequence())
    seeds = generator(rng).bit_generator.seed_seq
    if not isinstance(seeds, np.random.SeedSequence):
        raise ParameterError("rng", rng, "a Generator that was made from a SeedSequence")
    # A spawned sequence carries its parent's entropy, from which the noise could be made again:
    # the coins get only words hashed from it.
    noise, coin_seeds = seeds.spawn(2)
    return np.random.default_rng(noise), seed_words(coin_seeds)


def seed_words(seeds: np.random.SeedSequence) -> list[int]:
    """Return four 32-bit words of a seed sequence."""
    return [int(word) for word in seeds.generate_state(4)]
