"""Replay: run an algorithm again on other data with the recorded answers, and compare the results.

All private data passed the gate, so with the same answers and the same coins the result must be
the same to the last bit, for any data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np

from accountant.domains import IntegerRange
from accountant.errors import OffPlan, ParameterError
from accountant.ledger.private_data import first_array
from accountant.numerics import Array
from accountant.plans.plan import Plan
from accountant.randomness import Rng, generator
from audits.algorithm_runs.recording import OffTranscript, RecordingLedger, ReplayGate


class Algorithm(Protocol):
    """An object with a plan made from shapes, and a run through a gate."""

    def plan(self, shape: Any) -> Plan:
        """What a run on data of this shape will release."""
        ...

    def run(self, ledger: Any) -> Any:
        """Run through the gate; return a number, an array, or a nest of them."""
        ...


@final
@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of a replay.

    Parameters
    ----------
    leak_free : bool
        With the same answers the result on the neighbour was equal bit by bit.
    on_plan : bool
        Mechanisms, users and their number did not depend on the data.
    deterministic : bool
        With the same answers the result on the same data was equal bit by bit.
    loss : float
        Privacy loss of this run, in nats; NaN if the replay stopped early.
    witness : str
        What was seen, in words.

    Examples
    --------
    >>> from audits import Replayed, replay
    >>> import numpy as np
    >>> from mechanisms import Laplace
    >>> class NoisySum:
    ...     def plan(self, shape):
    ...         return Laplace(scale=1.0)
    ...
    ...     def run(self, ledger):
    ...         return float(ledger.release(ledger.plan, np.sum))
    >>> found = replay(NoisySum(), np.zeros(5), np.eye(5)[0], rng=0)
    >>> found.sound, abs(found.loss) <= 1
    (True, True)
    """

    leak_free: bool
    on_plan: bool
    deterministic: bool
    loss: float
    witness: str

    @property
    def sound(self) -> bool:
        """True if no leak, no dependence on data and no randomness outside the gate was found."""
        return self.leak_free and self.on_plan and self.deterministic


def replay(
    algorithm: Algorithm, data: Any, neighbour: Any, public: Any = None, rng: Rng = None
) -> Replayed:
    """Run an algorithm on ``data``, then replay it on ``neighbour`` and again on ``data``.

    A replay hands out the recorded answers.  All private data pass the gate, so the result must not
    change in a single bit.

    Parameters
    ----------
    algorithm : Algorithm
        With ``plan(shape)`` and ``run(ledger)``.
    data : array or tuple of arrays
        The private data, a row per record.
    neighbour : array or tuple of arrays
        Data that differ in one record.
    public : array or tuple of arrays, optional
        Public data, the same in all runs.
    rng : int, numpy.random.Generator or None, optional
        Seed or generator.

    Returns
    -------
    Replayed
        Which of the checks failed, and the exact privacy loss of the run.

    Examples
    --------
    >>> import numpy as np
    >>> from audits import replay
    >>> from mechanisms import Laplace
    >>> class NoisySum:
    ...     def plan(self, shape):
    ...         return Laplace(scale=1.0)
    ...
    ...     def run(self, ledger):
    ...         return float(ledger.release(ledger.plan, np.sum))
    >>> found = replay(NoisySum(), np.zeros(5), np.eye(5)[0], rng=0)
    >>> found.leak_free, found.on_plan, found.deterministic
    (True, True, True)
    """
    try:
        recorder, result = _record(algorithm, data, public, generator(rng))
    except OffPlan as error:
        return Replayed(False, False, True, np.nan, f"the plan does not allow the run: {error}")
    again = _replay_run(algorithm, recorder, data, result)
    other = _replay_run(algorithm, recorder, neighbour, result)
    deterministic = again.witness == ""
    leak_free = other.same_result
    on_plan = other.on_plan and again.on_plan
    witness = other.witness or "bit-identical with the same answers, mechanisms and users"
    if not deterministic:
        witness = f"even on the same data {again.witness}"
    return Replayed(leak_free, on_plan, deterministic, other.loss, witness)


def privacy_losses(
    algorithm: Algorithm,
    data: Any,
    neighbour: Any,
    runs: int,
    public: Any = None,
    rng: Rng = None,
) -> Array:
    """Draw exact samples of an algorithm's privacy loss between two data sets.

    Parameters
    ----------
    algorithm : Algorithm
        With ``plan(shape)`` and ``run(ledger)``.
    data : array or tuple of arrays
        The private data, a row per record.
    neighbour : array or tuple of arrays
        Data that differ in one record.
    runs : int
        Number of samples, at least 1.
    public : array or tuple of arrays, optional
        Public data, the same in all runs.
    rng : int, numpy.random.Generator or None, optional
        Seed or generator.

    Returns
    -------
    array
        Privacy losses in nats, shape (runs,); not rounded.

    Raises
    ------
    OffTranscript
        If the algorithm's releases depend on the data.

    Examples
    --------
    >>> import numpy as np
    >>> from audits import privacy_losses
    >>> from mechanisms import Laplace
    >>> class NoisySum:
    ...     def plan(self, shape):
    ...         return Laplace(scale=1.0)
    ...
    ...     def run(self, ledger):
    ...         return float(ledger.release(ledger.plan, np.sum))
    >>> losses = privacy_losses(NoisySum(), np.zeros(5), np.eye(5)[0], runs=100, rng=0)
    >>> losses.shape, round(float(losses.max()), 6)
    ((100,), 1.0)
    """
    return np.array(list(sampled_losses(algorithm, data, neighbour, runs, public, rng)))


def sampled_losses(
    algorithm: Algorithm,
    data: Any,
    neighbour: Any,
    runs: int,
    public: Any = None,
    rng: Rng = None,
) -> Iterator[float]:
    """Yield what `privacy_losses` returns, one run at a time."""
    for one in generator(rng).spawn(IntegerRange(1).check("runs", runs)):
        recorder, _ = _record(algorithm, data, public, one)
        gate = ReplayGate(recorder, neighbour)
        algorithm.run(gate)
        gate.finish()
        yield gate.loss


@final
@dataclass(frozen=True, slots=True)
class _ReplayRun:
    same_result: bool
    on_plan: bool
    loss: float
    witness: str


def _record(
    algorithm: Algorithm, data: Any, public: Any, rng: np.random.Generator
) -> tuple[RecordingLedger, Any]:
    recorder = RecordingLedger(data, declared_plan(algorithm, data, public), rng=rng, public=public)
    return recorder, algorithm.run(recorder)


def declared_plan(algorithm: Algorithm, data: Any, public: Any) -> Plan:
    """The plan that the algorithm declares for data of this shape."""
    return algorithm.plan(first_array(data if public is None else public).shape)


def _replay_run(
    algorithm: Algorithm, recorder: RecordingLedger, data: Any, result: Any
) -> _ReplayRun:
    gate = ReplayGate(recorder, data)
    try:
        replayed = algorithm.run(gate)
        gate.finish()
    except (OffTranscript, OffPlan) as error:
        return _ReplayRun(False, False, np.nan, str(error))
    except Exception as error:  # it used what is not behind the gate
        words = f"the run failed without its noise: {type(error).__name__}: {error}"
        return _ReplayRun(False, True, np.nan, words)
    gap = difference(result, replayed)
    words = f"the result changed although every answer was the same: {gap}" if gap else ""
    return _ReplayRun(not gap, True, gate.loss, words)


def difference(one: Any, other: Any) -> str:
    """Where two results (numbers, arrays, or nests of them) differ in any bit; "" if nowhere."""
    if type(one) is not type(other):
        return f"{type(one).__name__} against {type(other).__name__}"
    if isinstance(one, dict):
        if one.keys() != other.keys():
            return f"keys {sorted(map(str, one))} against {sorted(map(str, other))}"
        return next(filter(None, (difference(one[key], other[key]) for key in one)), "")
    if isinstance(one, (tuple, list)):
        if len(one) != len(other):
            return f"{len(one)} items against {len(other)}"
        return next(filter(None, map(difference, one, other)), "")
    if one is None or isinstance(one, (str, bytes, bool)):
        return "" if one == other else f"{one!r} against {other!r}"
    return _array_difference(np.asarray(one), np.asarray(other))


def _array_difference(a: Any, b: Any) -> str:
    if a.dtype == object:
        raise ParameterError("result", a.dtype, "a number, an array, or a nest of them")
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype}{a.shape} against {b.dtype}{b.shape}"
    if a.tobytes() == b.tobytes():
        return ""
    with np.errstate(invalid="ignore"):
        return f"by {np.max(np.abs(a.astype(complex) - b.astype(complex))):.3g} at most"
