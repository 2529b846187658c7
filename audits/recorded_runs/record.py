"""Record a function on data, and replay it on the neighbour with every drawn number frozen."""

from __future__ import annotations

import copy
import inspect
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np

from accountant.errors import ParameterError
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.laplace import LaplaceLoss
from accountant.losses.loss import Loss
from accountant.losses.pure_and_approximate import ApproxLoss, PureLoss
from audits.claims.arguments import claimed_delta
from audits.recorded_runs.comparisons import plain_result, same_value, where_they_differ
from audits.recorded_runs.costs import Spent, spent_between
from audits.recorded_runs.declared_calls import Primitive, primitive_of
from audits.recorded_runs.draw_tables import NOISE
from audits.recorded_runs.events import Event, EventKind
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
from audits.recorded_runs.numpy_draws import RecordingGenerator
from audits.recorded_runs.patches import patched
from audits.recorded_runs.shared_parts import pairs_of_events
from audits.recorded_runs.tape import Parted, Tape, running

ROUND_OFF = 1e-9  # relative: of moves of float sums
GENERATORS = ("rng", "generator", "random_state")  # arguments that get a recording generator
Claim = Any


@final
@dataclass(frozen=True, slots=True)
class Recorded:
    """What a recorded run and its replays showed.

    Parameters
    ----------
    findings : tuple of RecordedFinding
        What must not be in private code, in the order of the code.
    unchecked : tuple of str
        What could not be judged, and why.
    cost : float
        Epsilon at ``delta`` by `Tight` for the moves of this pair; infinite if nothing bounds it.
    declared_cost : float or None
        The same for the declared sensitivities and losses; None unless every draw that moved has
        one.
    claimed : float or None
        Epsilon of the claim at ``delta``.
    delta : float
        The delta of these three.
    draws : int
        How many draws and calls were recorded.
    """

    findings: tuple[RecordedFinding, ...]
    unchecked: tuple[str, ...]
    cost: float
    declared_cost: float | None
    claimed: float | None
    delta: float
    draws: int

    @property
    def sound(self) -> bool:
        """True if nothing was found; `unchecked` names what could not be judged."""
        return not self.findings

    def to_json(self) -> str:
        """The same as JSON; infinite numbers are null."""
        rows = asdict(self)
        for name in ("cost", "declared_cost", "claimed"):
            if rows[name] is not None and not math.isfinite(rows[name]):
                rows[name] = None
        return json.dumps({"sound": self.sound, **rows})

    def __str__(self) -> str:
        count = len(self.findings)
        first = "nothing found" if not count else f"{count} finding{'s' if count > 1 else ''}"
        claimed = "" if self.claimed is None else f", claimed {self.claimed:.4g}"
        at = f" at delta {self.delta:g}" if self.delta else ""
        lines = [
            f"{first} in {self.draws} draws; this pair costs epsilon {self.cost:.4g}{at}{claimed}",
            *map(str, self.findings),
            *(f"unchecked: {words}" for words in self.unchecked),
        ]
        return "\n".join(lines)


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
    >>> found.sound, found.findings[0].kind, round(found.cost, 9)
    (False, 'input', 1.0)
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
        return _without_replay(unsteady, claim, delta, first)
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
    return _judged(findings, spent, pairs, claim, delta, result, first, draws)


def _declarations(primitives: Any) -> tuple[dict[Any, Primitive], dict[str, Primitive]]:
    """Functions and draws by name, with what is declared of them."""
    pairs = primitives.items() if isinstance(primitives, Mapping) else [(p, None) for p in primitives]
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
        if name in parameters and list(parameters)[0] != name:
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


def _loss_of(claim: Claim, result: Any) -> Loss | None:
    if callable(claim) and not isinstance(claim, Loss):
        claim = claim(result)
    if claim is None or isinstance(claim, Loss):
        return claim
    if isinstance(claim, (tuple, list)) and len(claim) == 2:
        return ApproxLoss(float(claim[0]), float(claim[1]))
    if isinstance(claim, (int, float)) and not isinstance(claim, bool):
        return PureLoss(float(claim))
    raise ParameterError("claim", claim, "a loss, epsilon, (epsilon, delta), or a function of these")


def _without_replay(
    finding: RecordedFinding, claim: Claim, delta: float | None, first: Tape
) -> Recorded:
    words = ("the neighbour: runs on the same data already differ",)
    del claim
    return Recorded((finding,), words, math.inf, None, None, delta or 0.0, _count(first))


def _count(tape: Tape) -> int:
    return sum(event.kind in (EventKind.DRAW, EventKind.CALL) for event in tape.events)


def _judged(
    findings: list[RecordedFinding], spent: Spent, pairs: list[tuple[Event, Event]], claim: Claim,
    delta: float | None, result: Any, first: Tape, draws: dict[str, Primitive],
) -> Recorded:  # fmt: skip
    loss = _loss_of(claim, result)
    at = claimed_delta(loss) if delta is None else delta
    claimed = None if loss is None else loss.epsilon_at(at)
    cost, unchecked = spent.epsilon(at), list(dict.fromkeys(spent.unknown))
    declared = _declared_cost(pairs, first, draws, at)
    coins = sorted({one.site for one, _ in pairs if one.coins})
    for event, words in spent.infinite:
        if words not in ("reused noise", "no noise"):
            findings.append(RecordedFinding("cost", event.site, f"the loss is infinite: {words}"))
    over = claimed is not None and cost > claimed * (1 + ROUND_OFF) and not spent.infinite
    if over and coins and not math.isinf(cost):
        unchecked.append(
            f"the cost is {cost:.4g} for an observer who sees the coins drawn at "
            f"{', '.join(coins[:3])}; if they stay secret it may be less"
        )
    elif over and spent.epsilon(at, scaled=True) <= claimed * (1 + ROUND_OFF):  # type: ignore[operator]
        unchecked.append(
            f"the calls cost {cost:.4g} as declared; values moved by parts of their sensitivities"
        )
    elif over:
        words = f"the moves of this pair cost epsilon {cost:.4g}, claimed {claimed:.4g}"
        findings.append(RecordedFinding("cost", "", words))
    elif declared is not None and claimed is not None and declared > claimed * (1 + ROUND_OFF):
        if coins:
            unchecked.append(f"what is declared costs {declared:.4g} without secret samples")
    if isinstance(result, dict) and "exception" in result:
        unchecked.append(f"what follows the {result['exception']} that ended the run")
    ordered = tuple(dict.fromkeys(findings))
    return Recorded(ordered, tuple(unchecked), cost, declared, claimed, at, _count(first))


def _declared_cost(
    pairs: list[tuple[Event, Event]], first: Tape, draws: dict[str, Primitive], delta: float
) -> float | None:
    """Epsilon of the declared sensitivities and losses; None if a draw has none."""
    spent = Spent()
    for one, _ in pairs:
        if one.losses is not None or (one.kind is EventKind.CALL and one.name != "default_rng"
                                      and one.declared is None):  # fmt: skip
            return None
        if one.declared is not None:
            spent.losses[one.declared] += 1
    for block in first.blocks:
        known = draws.get(block.name)
        if block.law not in ("laplace", "gaussian") or known is None:
            return None
        limit = known.declared_sensitivity({})
        if limit is None or not block.scale.size or block.scale.min() <= 0:
            return None
        kind = LaplaceLoss if block.law == "laplace" else GaussianLoss
        spent.losses[kind(limit / float(block.scale.min()))] += 1
    return spent.epsilon(delta)
