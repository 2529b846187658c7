"""The audit of a program in any language: `audit`, of a release that another process makes."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any

from accountant.randomness import Rng
from audits.attacks.front import audit
from audits.claims.claims import ClaimLike
from audits.claims.findings import Finding
from audits.classifiers.scored_outputs import Score
from audits.runs.command import Command
from audits.values.tracebacks import without_values


@without_values
def audit_command(
    command: str | Sequence[str],
    pair: tuple[Any, Any],
    claim: ClaimLike | None = None,
    runs: int = 200_000,
    confidence: float = 0.95,
    delta: float | None = None,
    rng: Rng = None,
    early: bool = False,
    executor: Executor | None = None,
    score: Score | None = None,
    *,
    once: bool = False,
    timeout: float = 60.0,
) -> Finding:
    """Try to falsify a privacy claim of a program in any language, as `audit` does of a function.

    The program reads requests on standard input and writes answers on standard output, a line of
    JSON each: `docs/programs.md`.  It learns of the pair no more than the value of each request.
    For other audits, and in tests, `Command` is a release wherever a function is one.

    Parameters
    ----------
    command : str or sequence of str
        The program and its arguments, such as ``["node", "release.mjs"]``.
    pair : tuple of two values
        Two neighbouring values that JSON holds, arrays of numbers, or tables.
    claim : Loss, Budget, float or (float, float), optional
        What is claimed, as for `audit`; None computes the bound alone.
    runs : int, optional
        Number of draws, at least 10, learning included.
    confidence : float, optional
        Probability in (0, 1) with which the bound holds, and with which a true claim survives.
    delta : float, optional
        The delta in [0, 1) of the bound; None as for `audit`.
    rng : int, numpy.random.Generator or None, optional
        Seed or generator; each request has a seed that is drawn from it.
    early : bool, optional
        Stop at the first proof, as `watch` does.
    executor : concurrent.futures.Executor, optional
        Spreads the runs over threads, each with a process of the program.
    score : array-like or callable, optional
        A score of the outputs, as for `audit`.
    once : bool, optional
        Start the program anew for each run, with its input closed after the request.
    timeout : float, optional
        Seconds in which the program must answer a request, its start included.

    Returns
    -------
    Finding
        What `audit` found.

    Raises
    ------
    ParameterError
        As for `audit`; or if the program cannot be started, ends, answers late, or writes an
        answer that is none.

    Examples
    --------
    >>> import sys
    >>> from audits import audit_command
    >>> program = '''
    ... import json, random, sys
    ... for line in sys.stdin:
    ...     value, runs, seed = json.loads(line).values()
    ...     random.seed(seed)
    ...     outputs = [value + random.gauss(0, 0.5) for run in range(runs)]
    ...     print(json.dumps({"outputs": outputs}))
    ... '''
    >>> command = [sys.executable, "-c", program]
    >>> finding = audit_command(command, (0.0, 1.0), (1.0, 1e-5), runs=4000, rng=0)
    >>> finding.outcome.name
    'FALSIFIED'
    """
    with Command(command, once=once, timeout=timeout) as release:
        return audit(release, pair, claim, runs, confidence, delta, rng, early, executor, score)
