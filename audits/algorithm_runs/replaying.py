"""Replay: run an algorithm again on other data with the recorded answers, and compare the results.

An algorithm may use private data only through a gate: it asks for the releases that its plan lists,
and gets their noisy answers.  With the same answers and the same coins the result must then be the
same to the last bit, for any data behind the gate.  A difference shows that the algorithm uses
data, or random numbers, from elsewhere.  `replay` makes these checks for one run, and
`privacy_losses` draws samples of the privacy loss ln(p / q), where p and q are the densities of a
run's answers on the two data sets.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import math
import warnings
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np

from accountant.accountants.basic import Basic
from accountant.accountants.zcdp import ZCDP
from accountant.composition.plan_totals import infinity_mass
from accountant.domains import IntegerRange
from accountant.errors import OffPlan, UnsupportedPlan
from accountant.ledger.private_data import checked_data
from accountant.numerics import Array
from accountant.plans.plan import Plan, directions
from accountant.randomness import Rng, generator
from audits.algorithm_runs.differences import difference
from audits.algorithm_runs.fits import is_fitted_through_gates, published, run_through
from audits.algorithm_runs.recording import RecordingLedger
from audits.algorithm_runs.replay_gate import OffTranscript, ReplayGates, changed_rows
from audits.values.tracebacks import without_values

# An honest run's loss exceeds `largest_loss_of` with at most this probability.  A larger one would
# give more false alarms, a smaller one would let larger losses pass.
CHANCE = 1e-9
# The rounding error, absolute in nats and relative, that is granted to the loss of a run, which is
# a sum of differences of log-densities.
ROUND_OFF = 1e-6


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
        The mechanisms that were asked for, their users and the number of releases did not depend on
        the data.
    deterministic : bool
        With the same answers the result on the same data was equal bit by bit.
    loss : float
        Privacy loss of this run, in nats; NaN if it is not known.  Of a secret Poisson sample it
        is the loss to an observer who knows which of the other records are in it.
    witness : str
        What was seen, in words.
    largest_loss : float
        A run of the plan loses more with probability 1e-9 at most; infinite if it may lose any.
    unchecked : tuple of str
        Which parts of `sound` could not be checked, and why.

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
    largest_loss: float = math.inf
    unchecked: tuple[str, ...] = ()

    @property
    def data_independent(self) -> bool:
        """True if no leak, no dependence on data and no randomness outside the gate was found."""
        return self.leak_free and self.on_plan and self.deterministic

    @property
    def within_claim(self) -> bool:
        """True unless this run lost more than its plan allows."""
        # This is also true where the loss is NaN, that is not known; `unchecked` then says so.
        return not self.loss > self.largest_loss * (1 + ROUND_OFF) + ROUND_OFF

    @property
    def sound(self) -> bool:
        """True if the run is independent of the data and lost no more than its plan allows.

        It says no more than its parts: `unchecked` names those that could not be checked.
        """
        return self.data_independent and self.within_claim


@without_values
def replay(
    algorithm: Algorithm,
    data: Any,
    neighbour: Any,
    public: Any = None,
    rng: Rng = None,
    undeclared: bool = False,
) -> Replayed:
    """Run an algorithm on ``data``, then replay it on ``neighbour`` and again on ``data``.

    A replay hands out the recorded answers.  All private data pass the gate, so the result must not
    change in a single bit.  An estimator of `algorithms` is driven by its ``fit``: everything that
    it publishes is compared, its attributes, its summary and its warnings, and no more rows may
    change behind its gate than did in the data.

    Parameters
    ----------
    algorithm : Algorithm
        With ``plan(shape)`` and ``run(ledger)``, or an estimator whose ``fit`` takes a ledger.
    data : array or tuple of arrays
        The private data, a row per record; of an estimator what ``fit`` takes, such as ``(X, y)``
        or ``(X, y, sample_weight)``.
    neighbour : array or tuple of arrays
        Data that differ in one record.
    public : array or tuple of arrays, optional
        Public data, the same in all runs.
    rng : int, numpy.random.Generator or None, optional
        Seed or generator.
    undeclared : bool
        As in `Ledger`; the loss of such a release is not checked.

    Returns
    -------
    Replayed
        Which of the checks failed or could not be made, and the exact privacy loss of the run.

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
    >>> verdict = replay(NoisySum(), np.zeros(5), np.eye(5)[0], rng=0)
    >>> verdict.leak_free, verdict.on_plan, verdict.deterministic
    (True, True, True)
    """
    data, neighbour = data_of_runs(algorithm, data, neighbour)
    source = generator(rng)
    runs = RunsOfAlgorithm(algorithm, public, undeclared, seed_of(source))
    try:
        recorders, result = runs.record_published(data, source)
    except OffPlan as error:
        return Replayed(False, False, True, np.nan, f"the plan does not allow the run: {error}")
    except Exception as error:
        if runs.fails_too(neighbour, error):
            raise
        # its message may hold a record
        message = f"the fit failed on the recorded data alone: {type(error).__name__}"
        return Replayed(False, True, True, np.nan, message)
    repeated_run = runs.replay(recorders, data, result)
    most_moved_rows = moved_rows_allowed(algorithm, data, neighbour)
    neighbour_run = runs.replay(recorders, neighbour, result, most_moved_rows)
    deterministic = repeated_run.witness == ""
    leak_free = neighbour_run.same_result
    on_plan = neighbour_run.on_plan and repeated_run.on_plan
    witness = neighbour_run.witness or "bit-identical with the same answers, mechanisms and users"
    if not deterministic:
        witness = f"even on the same data {repeated_run.witness}"
    # The mechanisms whose loss is only their author's word.
    trusted = sorted(
        {entry.undeclared for recorder in recorders for entry in recorder.transcript} - {""}
    )
    loss = math.nan if trusted else neighbour_run.loss
    try:  # the loss of a search over several gates is not the sum of their losses
        largest = largest_loss_of(recorders[0].plan) if len(recorders) == 1 else math.inf
    except UnsupportedPlan:
        largest = math.inf
    verdict = Replayed(
        leak_free,
        on_plan,
        deterministic,
        loss,
        witness,
        largest,
        _unchecked_parts(loss, largest, trusted),
    )
    if verdict.within_claim:
        return verdict
    message = f"one run lost {loss:.4g}, its plan allows {largest:.4g}"
    return dataclasses.replace(verdict, witness=message if verdict.data_independent else witness)


def largest_loss_of(plan: Plan) -> float:
    """Return a loss, in nats, that a run of the plan exceeds with probability at most 1e-9.

    It is the smaller of the pure epsilon of the plan and a bound by its zCDP parameter rho.  All
    orders a > 1 have ``E e^((a - 1) loss) <= e^((a - 1) a rho)``, so by Markov's inequality at the
    order ``a = 1 + t / (2 rho)``

        P(loss >= rho + t) <= e^(-t^2 / (4 rho)),

    which is CHANCE / 2 at ``t = 2 sqrt(rho ln(2 / CHANCE))``.  This bound is used where the loss is
    infinite with probability at most CHANCE / 2, which is the rest of CHANCE.
    """
    pure, tail = Basic().epsilon(plan, 0.0), math.inf
    directed_plans = directions(plan)
    if max(map(infinity_mass, directed_plans)) <= CHANCE / 2:
        rho = max(map(ZCDP().rho, directed_plans))
        tail = rho + 2 * math.sqrt(rho * math.log(2 / CHANCE))
    return min(pure, tail)


def _unchecked_parts(loss: float, largest: float, trusted: list[str]) -> tuple[str, ...]:
    """Why the loss was not compared with its limit ``largest``, in words; empty if it was."""
    if trusted:
        return (f"the privacy loss: not declared are {', '.join(trusted)}",)
    if math.isnan(loss):
        return (
            "the privacy loss: the replay stopped early, or samples were secret and not Poisson "
            "samples of data with and without one record",
        )
    return ("the privacy loss: the plan allows any",) if largest == math.inf else ()


@without_values
def privacy_losses(
    algorithm: Algorithm,
    data: Any,
    neighbour: Any,
    runs: int,
    public: Any = None,
    rng: Rng = None,
    undeclared: bool = False,
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
    undeclared : bool
        As in `Ledger`; the densities of such releases are their author's word.

    Returns
    -------
    array
        Privacy losses in nats, shape (runs,); not rounded.  Of secret Poisson samples as in
        `Replayed`; NaN of others.

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
    data, neighbour = data_of_runs(algorithm, data, neighbour)
    losses = []
    for run_rng in generator(rng).spawn(IntegerRange(1).check("runs", runs)):
        seed = seed_of(run_rng)
        recorders, _ = RunsOfAlgorithm(algorithm, public, undeclared, seed).record(data, run_rng)
        gates = ReplayGates(recorders)
        run_through(algorithm, neighbour, public, gates.open, seed)
        losses.append(gates.finished_loss())
    return np.array(losses)


def data_of_runs(algorithm: Algorithm, data: Any, neighbour: Any) -> tuple[Any, Any]:
    """Return both data sets; they are checked here, once for all runs, where no ``fit`` does so."""
    if is_fitted_through_gates(algorithm):
        return data, neighbour
    # Checked data are immutable, and gates take immutable data as they are.
    return checked_data("data", data), checked_data("neighbour", neighbour)


def moved_rows_allowed(algorithm: Algorithm, data: Any, neighbour: Any) -> float:
    """Return the largest number of rows in which the data behind a gate may differ.

    For an estimator that is driven by its ``fit`` it is the number of rows in which ``data`` and
    ``neighbour`` differ.  It is infinite for other algorithms, and where rows cannot be compared.
    """
    parts = [part if isinstance(part, tuple) else (part,) for part in (data, neighbour)]
    plain = all(isinstance(part, np.ndarray) for arrays in parts for part in arrays)
    if not (plain and is_fitted_through_gates(algorithm)):
        return math.inf
    changed = changed_rows(data, neighbour)
    return math.inf if changed is None else changed.size


def seed_of(source: np.random.Generator) -> int:
    """Return a seed for what an estimator itself draws.

    It comes from a spawned generator, so the numbers that ``source`` draws stay the same.
    """
    return int(source.spawn(1)[0].integers(1 << 31))


@final
@dataclass(frozen=True, slots=True)
class ReplayedRun:
    """What one replay showed."""

    same_result: bool  # bit by bit that of the recorded run
    on_plan: bool  # the releases that were asked for are those of the recorded run
    loss: float  # of the recorded answers, in nats; NaN if it is not known
    witness: str  # what differed, in words; "" if nothing did


@final
@dataclass(frozen=True, slots=True)
class RunsOfAlgorithm:
    """Runs of one algorithm, or fits of an estimator, behind the gates of an audit.

    All of them get the same ``public`` data, and the same ``seed`` for what an estimator itself
    draws.  ``undeclared`` is as in `Ledger`.
    """

    algorithm: Algorithm
    public: Any
    undeclared: bool
    seed: int

    def record(self, data: Any, rng: np.random.Generator) -> tuple[list[RecordingLedger], Any]:
        """Run or fit once; return the ledgers that recorded it, and the result."""
        recorders: list[RecordingLedger] = []

        def open_gate(data: Any, plan: Plan, public: Any) -> RecordingLedger:
            recorders.append(RecordingLedger(data, plan, rng, public, self.undeclared))
            return recorders[-1]

        return recorders, run_through(self.algorithm, data, self.public, open_gate, self.seed)

    def record_published(
        self, data: Any, rng: np.random.Generator
    ) -> tuple[list[RecordingLedger], Any]:
        """Run or fit once; return its ledgers, and what is compared of the result."""
        with warnings.catch_warnings(record=True) as caught_warnings:
            warnings.simplefilter("always")
            recorders, result = self.record(data, rng)
            result = self._comparable(result, caught_warnings)
        # The user sees the warnings of this run, and not the same ones of every replay.
        for warning in caught_warnings:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
        return recorders, result

    def fails_too(self, data: Any, error: Exception) -> bool:
        """Return whether a fit fails on these data with the same error, which then says nothing.

        It is True, without a run, for an algorithm that has no ``fit`` through gates.
        """
        if not is_fitted_through_gates(self.algorithm):
            return True
        try:
            self.record(data, np.random.default_rng(self.seed))
        except Exception as other:  # a fit may raise any exception
            return type(other) is type(error) and str(other) == str(error)
        return False

    def replay(
        self,
        recorders: list[RecordingLedger],
        data: Any,
        result: Any,
        most_moved_rows: float = math.inf,
    ) -> ReplayedRun:
        """Run or fit on the data with the recorded answers, and compare with the ``result``.

        The data behind the gates may differ from the recorded ones in at most ``most_moved_rows``
        rows.
        """
        gates = ReplayGates(recorders, most_moved_rows)
        with warnings.catch_warnings(record=True) as caught_warnings:
            warnings.simplefilter("always")
            try:
                replayed = run_through(self.algorithm, data, self.public, gates.open, self.seed)
                loss = gates.finished_loss()
            except (OffTranscript, OffPlan) as error:
                return ReplayedRun(False, False, np.nan, str(error))
            except Exception as error:  # the run may use data that are not behind the gate
                # The message of the error may hold a record, so only its class is shown.
                witness = f"the run failed without its noise: {type(error).__name__}"
                return ReplayedRun(False, True, np.nan, witness)
            replayed = self._comparable(replayed, caught_warnings)
        gap = self._published_difference(result, replayed)
        witness = f"the result changed although every answer was the same: {gap}" if gap else ""
        return ReplayedRun(not gap, True, loss, witness)

    def _comparable(self, result: Any, caught_warnings: list[warnings.WarningMessage]) -> Any:
        """Return what is compared: all that a fit published with its warnings, or a run's result.

        The result is copied since the next run may write into the same arrays.
        """
        if is_fitted_through_gates(self.algorithm):
            texts = [
                [warning.category.__name__, str(warning.message)] for warning in caught_warnings
            ]
            return {"warnings": texts} | published(result)
        with contextlib.suppress(TypeError):  # The comparison refuses what cannot be copied.
            return copy.deepcopy(result)
        return result

    def _published_difference(self, recorded: Any, replayed: Any) -> str:
        """Return where two results differ, with the attribute of a fit; "" if nowhere."""
        if not is_fitted_through_gates(self.algorithm):
            return difference(recorded, replayed)
        if alone := sorted(recorded.keys() ^ replayed.keys()):
            return f"{alone[0]} is there on one of them alone"
        differences = (
            (name, difference(value, replayed[name])) for name, value in recorded.items()
        )
        return next((f"{name}, {gap}" for name, gap in differences if gap), "")
