"""The front of the audits of one release: which of three a claim and its options ask for."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

from accountant.errors import ParameterError
from accountant.losses.loss import Loss
from accountant.randomness import Rng
from audits.attacks.distinguishing import distinguish
from audits.attacks.sensitivity import audit_sensitivity
from audits.attacks.sequential import watch
from audits.claims.claims import Sensitivity
from audits.claims.findings import Finding
from mechanisms.base.mechanism import Mechanism


def audit(
    release: Mechanism | Callable[..., Any],
    pair: tuple[Any, Any] | None = None,
    claim: Loss | Sensitivity | None = None,
    runs: int = 200_000,
    confidence: float = 0.95,
    delta: float | None = None,
    rng: Rng = None,
    early: bool = False,
    executor: Executor | None = None,
) -> Finding:
    """Try to falsify a privacy claim by guessing which value of a pair was released.

    ``release`` is a declared mechanism (pair, claim and score follow from it), or a function
    ``release(value, rng, size)`` of any outputs along the first axis; one without ``size`` is
    called in a loop, and an exception is an outcome of its.  A bare function's first runs learn
    a score.  ``delta`` is the claim's own, else 0 for a pure claim, else 1e-5.  Without a claim
    only the bound is of interest; a claim of more than one point, such as a Gaussian's, is
    decided at its most revealing one.  ``early`` stops at the first proof: see `watch`.

    ``executor`` spreads the runs, by default made here, over threads, processes or a cluster: the
    same bits.  To other processes ``release`` and its outputs travel pickled; between threads a
    function must not share what it changes.
    """
    if early:
        return watch(release, pair, claim, runs, confidence, delta, rng, executor)
    if isinstance(claim, Sensitivity):
        if isinstance(release, Mechanism):
            raise ParameterError("release", release, "a function without noise")
        if executor is not None:
            raise ParameterError("executor", executor, "left out where the claim is a sensitivity")
        return audit_sensitivity(release, pair, claim, runs, confidence, rng=rng)
    return distinguish(release, pair, claim, runs, confidence, delta, rng, executor)
