"""Record a function on data, and replay it on the neighbour with every drawn number frozen."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from audits.recorded_runs.comparisons import plain_result, same_value, where_they_differ
from audits.recorded_runs.costs import spent_between
from audits.recorded_runs.draws.declared_calls import Primitive, primitive_of
from audits.recorded_runs.draws.draw_tables import NOISE
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
from audits.recorded_runs.draws.numpy_draws import RecordingGenerator
from audits.recorded_runs.patches import patched
from audits.recorded_runs.shared_parts import pairs_of_events
from audits.recorded_runs.tape import Parted, Tape, running
from audits.recorded_runs.verdict import Claim, Recorded, judged, without_replay

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
    data, neighbour = _larger_first(data, neighbour)
    with patched(named, function, seed):
        first, result = _run(function, data, neighbour, seed, None)
        again, repeated = _run(function, data, neighbour, seed, first)
        second, other = _run(function, neighbour, data, seed, first)
    pairs = list(pairs_of_events(first, second))
    laws = Laws(first.blocks)
    unsteady = _unsteady(again, result, repeated)
    if unsteady is not None:
        return without_replay(unsteady, claim, delta, first)
    spent, conflicts = spent_between(pairs, laws)
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
    return judged(findings, spent, pairs, claim, delta, result, first, draws)


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


def _larger_first(data: Any, neighbour: Any) -> tuple[Any, Any]:
    """Coins are drawn for the larger data; both runs are alike in all else."""
    sizes = _records(data), _records(neighbour)
    if None not in sizes and sizes[0] < sizes[1]:  # type: ignore[operator]
        return neighbour, data
    return data, neighbour


def _records(data: Any) -> int | None:
    if isinstance(data, tuple) and data and all(hasattr(part, "__len__") for part in data):
        return len(data[0])
    return len(data) if hasattr(data, "__len__") else None


def _missing(data: Any, neighbour: Any) -> int | None:
    """Which record of the larger data the other lacks; None if they have equally many."""
    large, small = (data, neighbour) if (_records(data) or 0) > (_records(neighbour) or 0) else (
        neighbour, data
    )  # fmt: skip
    counts = _records(large), _records(small)
    if None in counts or counts[0] != counts[1] + 1:  # type: ignore[operator]
        return None
    parts = large if isinstance(large, tuple) else (large,)
    others = small if isinstance(small, tuple) else (small,)
    rows = [_rows(part) for part in parts], [_rows(part) for part in others]
    for k in range(counts[1]):  # type: ignore[arg-type]
        if any(not same_value(a[k], b[k]) for a, b in zip(*rows, strict=True)):
            return k
    return counts[1]


def _rows(part: Any) -> Any:
    values = getattr(part, "to_numpy", None)
    return values() if callable(values) else part


def _run(
    function: Callable[..., Any], data: Any, neighbour: Any, seed: int, recorded: Tape | None
) -> tuple[Tape, Any]:
    """One run on a copy of the data; the result is plain, an exception is one too."""
    sizes = _records(data), _records(neighbour)
    lacks = None not in sizes and sizes[0] < sizes[1]  # type: ignore[operator]
    tape = Tape(seed, sizes[0], _missing(data, neighbour), recorded, lacks)
    arguments = copy.deepcopy(data)
    options = _generator_for(function, seed)
    with running(tape):
        try:
            result = plain_result(function(arguments, **options))
        except Parted:
            result = None
        except Exception as error:  # an exception is an outcome like any other
            result = {"exception": type(error).__name__, "message": str(error)}
    if tape.parted is not None:
        result = None
    return tape, result


def _generator_for(function: Callable[..., Any], seed: int) -> dict[str, Any]:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}
    for name in GENERATORS:
        if name in parameters and next(iter(parameters)) != name:
            return {name: RecordingGenerator(np.random.PCG64(seed))}
    return {}


def _unsteady(again: Tape, result: Any, repeated: Any) -> RecordedFinding | None:
    """A finding if the same data do not give the same run with the same drawn numbers."""
    remedy = "a generator is not recorded, or the code depends on time or on the order of a set"
    if again.parted is not None:
        words = f"even on the same data {again.parted.words}: {remedy}"
        return RecordedFinding("randomness", again.parted.site, words)
    place = where_they_differ(result, repeated)
    if not place:
        return None
    return RecordedFinding("randomness", "", f"even on the same data {place} differs: {remedy}")
