"""The front of the audits of one release: choose the audit that fits the claim and the options."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

from accountant.errors import ParameterError
from accountant.randomness import Rng
from audits.attacks.distinguishing import distinguish, noted
from audits.attacks.sensitivity import audit_sensitivity
from audits.attacks.sequential import watch
from audits.claims.claims import ClaimLike, Sensitivity
from audits.claims.findings import Finding
from audits.classifiers.scored_outputs import Score, scored_draw
from audits.runs.release_functions import vectorised
from audits.values.tracebacks import without_values
from mechanisms.base.mechanism import Mechanism


@without_values
def audit(
    release: Mechanism | Callable[..., Any],
    pair: tuple[Any, Any] | None = None,
    claim: ClaimLike | Sensitivity | None = None,
    runs: int = 200_000,
    confidence: float = 0.95,
    delta: float | None = None,
    rng: Rng = None,
    early: bool = False,
    executor: Executor | None = None,
    score: Score | None = None,
) -> Finding:
    """Try to falsify a privacy claim by guessing which value of a pair was released.

    In every run a fair coin chooses one of the two values, and a rule guesses it from the output.
    Under (epsilon, 0)-DP no guess is right with probability above ``e^eps / (1 + e^eps)``, so one
    exact binomial bounds epsilon from below.

    Parameters
    ----------
    release : Mechanism or callable
        A declared mechanism, whose own density is then the score, or a function ``release(value,
        rng, size)`` that returns ``size`` outputs of any kind along the first axis.  A function
        without ``size`` is called once per run, one without ``rng`` draws by itself, a coroutine
        function is run to its end.  Each call receives a copy of the value.  An exception counts as
        an output.  The first runs learn a score of the outputs; the test uses other runs.
    pair : tuple of two values, optional
        Two neighbouring values that differ, of any kinds and lengths.  None takes the mechanism's
        worst pair.
    claim : Loss, Budget, float, (float, float) or Sensitivity, optional
        What is claimed of the release: a loss, a number epsilon, or (epsilon, delta).  None takes
        the mechanism's own loss; for a function it computes the bound alone.  A claim that is a
        whole curve, such as a Gaussian's, is tested at its most revealing point.  `Sensitivity`
        claims how far a function without noise moves.
    runs : int, optional
        Number of draws, at least 10, learning included.
    confidence : float, optional
        Probability in (0, 1) with which the bound holds, and with which a true claim survives.
    delta : float, optional
        The delta in [0, 1) of the bound.  None takes the claim's own delta; where it has none, 0
        for a pure claim and 1e-5 otherwise.
    rng : int, numpy.random.Generator or None, optional
        Seed or generator; a seed is reported in the finding and repeats it.
    early : bool, optional
        Stop at the first proof, as `watch` does.
    executor : concurrent.futures.Executor, optional
        Spreads the runs over threads, processes or a cluster, with the same result bit by bit.
        Other processes receive ``release`` pickled.  Between threads a function must not share
        state that it changes.
    score : array-like or callable, optional
        A score of a function's outputs, of which only the cut is learned: a direction, of one
        weight for each number of an output, or a function of an array of outputs that returns one
        number for each.  None learns a score.

    Returns
    -------
    Finding
        The outcome, a lower bound on epsilon at ``delta``, rounded down, and notes on the release.
        What is not FALSIFIED is INCONCLUSIVE if so few runs could not have falsified the claim, or
        if ``unseen`` names parts of the outputs that cannot be looked into.

    Raises
    ------
    ParameterError
        If an argument is out of its range, or the values of the pair are equal.

    References
    ----------
    Kairouz, Oh & Viswanath (2015); Steinke, Nasr & Jagielski (2023).

    Examples
    --------
    >>> from accountant import PureLoss
    >>> from audits import audit
    >>> def half_the_noise(value, rng, size):
    ...     return value + rng.laplace(scale=0.5, size=size)
    >>> found = audit(half_the_noise, (0.0, 1.0), PureLoss(1.0), runs=5000, rng=0)
    >>> found.outcome.name, round(found.epsilon_lower, 2)
    ('FALSIFIED', 1.89)
    """
    if score is not None:
        if isinstance(release, Mechanism) or isinstance(claim, Sensitivity):
            shown = "a score where the release is a mechanism or the claim a sensitivity"
            raise ParameterError("score", shown, "left out; it is for the outputs of a function")
        release = scored_draw(vectorised(release), score)
    if isinstance(claim, Sensitivity):
        if early:
            raise ParameterError("early", early, "left out where the claim is a sensitivity")
        if isinstance(release, Mechanism):
            raise ParameterError("release", release, "a function without noise")
        if executor is not None:
            raise ParameterError("executor", executor, "left out where the claim is a sensitivity")
        return audit_sensitivity(release, pair, claim, runs, confidence, rng=rng)
    if early:
        return watch(release, pair, claim, runs, confidence, delta, rng, executor)
    finding = distinguish(release, pair, claim, runs, confidence, delta, rng, executor)
    return noted(finding, release, pair)
