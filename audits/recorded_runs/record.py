"""Record a function on data, and replay it on the neighbour with every drawn number frozen."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, final

import numpy as np

from audits.recorded_runs.comparisons import plain_result, where_they_differ
from audits.recorded_runs.costs import spent_between
from audits.recorded_runs.draws.declared_calls import Primitive, primitive_of
from audits.recorded_runs.draws.draw_tables import NOISE
from audits.recorded_runs.draws.numpy_draws import RecordingGenerator
from audits.recorded_runs.events import DrawSite
from audits.recorded_runs.findings import (
    RecordedFinding,
    bare_values,
    control_flow,
    lost_noise,
    reused,
    too_far,
    unequal_inputs,
    unequal_result,
)
from audits.recorded_runs.noise_shifts import Laws
from audits.recorded_runs.patches import patched
from audits.recorded_runs.public_draws import blamed_draws, draws_without_law, is_threshold
from audits.recorded_runs.records import larger_first, missing_record, number_of_records
from audits.recorded_runs.shared_parts import pairs_of_events
from audits.recorded_runs.tape import Parted, Tape, running
from audits.recorded_runs.verdict import Claim, Recorded, judged, without_replay

MOST_TRIES = 10  # of what may be no noise
GENERATORS = ("rng", "generator", "random_state")  # arguments that get a recording generator


def record(
    function: Callable[..., Any],
    data: Any,
    neighbour: Any,
    primitives: Mapping[Any, Any] | Iterable[Any] = (),
    claim: Claim = None,
    delta: float | None = None,
    seed: int = 0,
) -> Recorded:
    """Run any function on data, then on a neighbour with every drawn number as it was.

    While it runs, the generators of numpy, `random` and `secrets`, the mechanisms of diffprivlib
    and OpenDP, and ``primitives`` record what they draw.  Noise is followed through arithmetic to
    the value it is added to, and the noisy number is handed to the second run as it was.

    Parameters
    ----------
    function : callable
        Takes the data, and by name a generator if it has an argument ``rng``, ``generator`` or
        ``random_state``.
    data : object
        The private data.
    neighbour : object
        Data that differ in one record, or have one more or one less.
    primitives : mapping or iterable, optional
        Functions that add noise, as callables or ``"package.module:function"``, or names of draws
        (``"laplace"``); in a mapping with a `Primitive`, a loss, or a sensitivity.
    claim : Loss, float, pair of floats, or function of the result, optional
        What the function claims: a loss, epsilon, (epsilon, delta), or how to read it from the
        result.
    delta : float, optional
        The delta of the comparison; by default the claim's own, else 1e-5 unless it is pure.
    seed : int
        Seed of every generator that the function does not seed itself.

    Returns
    -------
    Recorded
        Findings, and upper bounds of epsilon for what this pair moved.

    Raises
    ------
    ParameterError
        If ``primitives`` or the claim cannot be understood.
    RuntimeError
        If a recorded run is under way in this process.

    References
    ----------
    Cebere, Erb, Desfontaines, Bellet & Fitzsimons (2026), Privacy in theory, bugs in practice.

    Examples
    --------
    >>> import numpy as np
    >>> from audits import record
    >>> def noisy_mean(data):
    ...     return (np.clip(data, 0, 1).sum() + np.random.laplace(scale=1.0)) / len(data)
    >>> found = record(noisy_mean, np.ones(5), np.ones(4), claim=1.0)
    >>> found.sound, found.findings[0].kind
    (False, 'input')
    """
    named, draws = _declarations(primitives)
    data, neighbour = larger_first(data, neighbour)
    public: frozenset[DrawSite] = frozenset()
    tried: list[_Tried] = []
    while len(tried) < MOST_TRIES:
        runs = _Runs(function, data, neighbour, seed, public)
        with patched(named, function, seed):
            first, result = runs.run()
            if not tried:
                unsteady = _unsteady(*runs.run(first), result)
                if unsteady is not None:
                    return without_replay(unsteady, claim, delta, first)
            second, other = runs.run(first, of_neighbour=True)
        tried.append(_judged(first, result, second, other, claim, delta, draws))
        if tried[-1].suspects <= public:
            break
        public |= tried[-1].suspects
    return _best(tried)


@final
class _Tried(NamedTuple):
    """The verdict if some draws are no noise, and which others may be none."""

    verdict: Recorded
    suspects: frozenset[DrawSite]
    hides: bool  # a threshold was taken for a coin: the verdict does not count


def _judged(
    first: Tape, result: Any, second: Tape, other: Any, claim: Claim, delta: float | None,
    draws: dict[str, Primitive],
) -> _Tried:  # fmt: skip
    pairs = list(pairs_of_events(first, second))
    spent, conflicts = spent_between(pairs, Laws(first.blocks))
    findings = [
        *unequal_inputs(pairs), *bare_values(pairs), *reused(conflicts),
        *too_far(pairs, first.blocks, draws),
    ]  # fmt: skip
    if second.parted is None and len(second.events) < len(first.events):
        left = first.events[len(second.events)]
        words = f"the second run ends before it {left.kind.value} {left.name} here"
        second.parted = Parted(left.site, words)
    if second.parted is not None:
        findings.append(control_flow(second.parted))
    else:
        lost = lost_noise(pairs, first.blocks)
        different = unequal_result(result, other, lost)
        findings += [] if different is None else [different]
    verdict = judged(findings, spent, pairs, claim, delta, result, first, draws)
    hides = spent.no_coins or is_threshold(pairs, first)
    suspects: frozenset[DrawSite] = frozenset()
    if verdict.findings:
        suspects = blamed_draws(pairs, first, second, conflicts)
    if verdict.findings or verdict.unchecked or hides:
        suspects = (suspects - first.public) or draws_without_law(pairs, first)
    return _Tried(verdict, suspects, hides)


def _best(tried: list[_Tried]) -> Recorded:
    """The verdict that explains the runs; the first one if none does."""
    counted = [one.verdict for one in tried if not one.hides] or [tried[-1].verdict]
    sound = [verdict for verdict in counted if verdict.sound]
    if sound:
        return min(sound, key=lambda verdict: len(verdict.unchecked))
    # noise that was taken for public shows as another result: no such verdict is better
    kinds = {finding.kind for finding in counted[0].findings} - {"result", "no noise"}
    alike = [v for v in counted if {finding.kind for finding in v.findings} <= kinds]
    return min([counted[0], *alike], key=lambda verdict: len(verdict.findings))


def _declarations(primitives: Any) -> tuple[dict[Any, Primitive], dict[str, Primitive]]:
    """Functions and draws by name, with what is declared of them."""
    pairs = (
        primitives.items() if isinstance(primitives, Mapping) else [(p, None) for p in primitives]
    )
    functions, draws = {}, {}
    for key, declared in pairs:
        short = str(key).removeprefix("numpy.random.") if isinstance(key, str) else ""
        if short in NOISE:
            draws[short] = primitive_of(declared)
        else:
            functions[key] = primitive_of(declared)
    return functions, draws


@final
class _Runs(NamedTuple):
    """What is run, on which data, and which draws are public."""

    function: Callable[..., Any]
    data: Any
    neighbour: Any
    seed: int
    public: frozenset[DrawSite]

    def run(self, recorded: Tape | None = None, of_neighbour: bool = False) -> tuple[Tape, Any]:
        """One run on a copy of the data; the result is plain, an exception is one too."""
        data = self.neighbour if of_neighbour else self.data
        sizes = number_of_records(self.data), number_of_records(self.neighbour)
        lacks = of_neighbour and sizes[0] != sizes[1]
        missing = missing_record(self.data, self.neighbour)
        tape = Tape(self.seed, sizes[of_neighbour], missing, recorded, lacks, self.public)
        arguments = copy.deepcopy(data)
        options = _generator_for(self.function, self.seed)
        result: Any = None
        with running(tape):
            try:
                result = plain_result(self.function(arguments, **options))
            except Parted:
                pass
            except Exception as error:  # an exception is an outcome like any other
                result = {"exception": type(error).__name__, "message": str(error)}
        return tape, None if tape.parted is not None else result


def _generator_for(function: Callable[..., Any], seed: int) -> dict[str, Any]:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}
    for name in GENERATORS:
        if name in parameters and next(iter(parameters)) != name:
            return {name: RecordingGenerator(np.random.PCG64(seed))}
    return {}


def _unsteady(again: Tape, repeated: Any, result: Any) -> RecordedFinding | None:
    """A finding if the same data do not give the same run with the same drawn numbers."""
    remedy = "a generator is not recorded, or the code depends on time or on the order of a set"
    if again.parted is not None:
        words = f"even on the same data {again.parted.words}: {remedy}"
        return RecordedFinding("randomness", again.parted.site, words)
    place = where_they_differ(result, repeated)
    if not place:
        return None
    return RecordedFinding("randomness", "", f"even on the same data {place} differs: {remedy}")
