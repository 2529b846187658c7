"""The entry `record`: run a function on data, and replay it on a neighbour with frozen draws.

The first run writes every drawn number and every noisy number onto a tape; the second run, on data
that differ in one record, gets the same ones.  What differs between the runs although it may not is
a finding.  What the noise hides has a privacy loss, and the losses add up to the cost of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from audits.recorded_runs.comparisons import where_they_differ
from audits.recorded_runs.draws.declared_calls import Primitive, primitive_of
from audits.recorded_runs.draws.draw_tables import NOISE
from audits.recorded_runs.explanations import Explanation, best, explanation_of
from audits.recorded_runs.findings import RecordedFinding
from audits.recorded_runs.patches import patched
from audits.recorded_runs.records import larger_first
from audits.recorded_runs.redrawn_coins import answered_by_coins
from audits.recorded_runs.runs import Run, Runs
from audits.recorded_runs.tape import DrawSite
from audits.recorded_runs.verdict import Claim, Recorded, Stated, without_replay
from audits.values.tracebacks import without_values

# Largest number of replays.  After each one, draws that the verdict suspects to be public are taken
# as public in the next.
MOST_TRIES = 10


@without_values
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
        The delta of the comparison; by default the claim's own, else 0 if the claim is pure, or if
        nothing is claimed and the cost is finite there, else 1e-5.
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
    >>> verdict = record(noisy_mean, np.ones(5), np.ones(4), claim=1.0)
    >>> verdict.sound, verdict.findings[0].kind
    (False, 'input')
    """
    named, draws = _declarations(primitives)
    stated = Stated(claim, delta, draws)
    data, neighbour = larger_first(data, neighbour)
    public: frozenset[DrawSite] = frozenset()
    tried: list[Explanation] = []
    with patched(named, function, seed) as go_back:
        while len(tried) < MOST_TRIES:
            go_back()
            runs = Runs(function, data, neighbour, seed, public)
            first_run = runs.run()
            if not tried:
                unsteady = _unsteady(first_run, runs.run(first_run.tape))
                if unsteady is not None:
                    return without_replay(unsteady, delta, first_run.tape)
            explanation = explanation_of(runs, first_run, stated)
            tried.append(explanation)
            if not explanation.suspects:
                break
            public |= explanation.suspects
        verdict = best(tried)
        # A verdict without findings is tested with other coins only if it is that of the last runs.
        if not verdict.findings and verdict is not tried[-1].verdict:
            return verdict
        go_back()
        public_draws = frozenset() if verdict.findings else runs.public
        return answered_by_coins(verdict, runs._replace(public=public_draws))


def _declarations(primitives: Any) -> tuple[dict[Any, Primitive], dict[str, Primitive]]:
    """Return functions and draws by name, with what is declared of them."""
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


def _unsteady(first_run: Run, repeated_run: Run) -> RecordedFinding | None:
    """Return a finding if the same data and drawn numbers do not give the same run, else None."""
    remedy = "a generator is not recorded, or the code depends on time or on the order of a set"
    parted = repeated_run.tape.parted
    if parted is not None:
        sentence = f"even on the same data {parted.reason}: {remedy}"
        return RecordedFinding("randomness", parted.site, sentence)
    difference_path = where_they_differ(first_run.result, repeated_run.result)
    if not difference_path:
        return None
    return RecordedFinding(
        "randomness", "", f"even on the same data {difference_path} differs: {remedy}"
    )
