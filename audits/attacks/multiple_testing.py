"""Many tests of one release at one error rate: pairs, claims and events, by Holm's method.

If m true claims were each tested at the error rate alpha, one would often be falsified by chance.
Holm's method keeps the probability of any such mistake at alpha, however the tests depend on each
other.  Every guess test looks in both directions of its pair at once, so a direction needs no test
of its own.

Reference: Holm (1979).
"""

from __future__ import annotations

import bisect
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accountant.errors import ParameterError
from accountant.randomness import Rng
from audits.attacks.front import distinguish, noted
from audits.attacks.half_noise import judged
from audits.claims.arguments import CONFIDENCE, RUNS, checked_pair, seed_and_generator
from audits.claims.claims import ClaimLike, checked_claims
from audits.claims.findings import Finding, Outcome
from audits.runs.release_functions import vectorised
from audits.values.descriptions import describe_pair
from audits.values.tracebacks import without_values
from mechanisms.base.mechanism import Mechanism

MIN_MEMBER_RUNS = 100  # least number of runs of each test of a family
Event = Callable[[NDArray[Any]], Any]


@final
@dataclass(frozen=True, slots=True)
class Member:
    """One test of a family: its name, and a finding whose bound holds jointly with the others'."""

    name: str
    finding: Finding


@final
@dataclass(frozen=True, slots=True)
class Family:
    """The results of several tests of one release at one error rate.

    With probability ``confidence`` no true claim is among the ``falsified`` members, and no
    member's ``epsilon_lower`` exceeds the true epsilon of its pair.

    Parameters
    ----------
    members : tuple of Member
        Every test, by name, with its `Finding`.
    falsified : tuple of Member
        The members whose claims are false.
    confidence : float
        Probability in (0, 1) with which all verdicts and bounds hold together.
    runs : int
        Number of draws of all members.
    seconds : float
        Duration of the audit.
    seed : int or None
        The seed that repeats the audit; None if the caller passed a generator.

    Examples
    --------
    >>> from accountant import PureLoss
    >>> from audits import Family, audit_family
    >>> def release(value, rng, size):
    ...     return value + rng.laplace(scale=0.5, size=size)
    >>> family = audit_family(release, [(0.0, 1.0), (0.0, 0.1)], PureLoss(1.0), runs=3000, rng=0)
    >>> family.outcome.name, len(family.members), len(family.falsified)
    ('FALSIFIED', 2, 1)
    """

    members: tuple[Member, ...]
    falsified: tuple[Member, ...]
    confidence: float
    runs: int
    seconds: float
    seed: int | None

    @property
    def outcome(self) -> Outcome:
        """FALSIFIED if at least one member is, else INCONCLUSIVE if one is, else SURVIVED."""
        if self.falsified:
            return Outcome.FALSIFIED
        outcomes = {member.finding.outcome for member in self.members}
        return Outcome.INCONCLUSIVE if Outcome.INCONCLUSIVE in outcomes else Outcome.SURVIVED

    @property
    def worst(self) -> Member:
        """The member with the largest lower bound."""
        return max(self.members, key=lambda member: member.finding.epsilon_lower)

    @property
    def epsilon_lower(self) -> float:
        """The largest lower bound of all members, rounded down."""
        return self.worst.finding.epsilon_lower

    @property
    def witness(self) -> str:
        """The witness of the first falsified member, else of the one with the largest bound."""
        shown = self.falsified[0] if self.falsified else self.worst
        return f"{shown.name}: {shown.finding.witness}"


@without_values
def audit_family(
    release: Mechanism | Callable[..., Any],
    pairs: Sequence[tuple[Any, Any]],
    claims: ClaimLike | Sequence[ClaimLike] | None = None,
    events: Mapping[str, Event] | None = None,
    runs: int = 200_000,
    confidence: float = 0.95,
    rng: Rng = None,
    executor: Executor | None = None,
) -> Family:
    """Test every claim on every pair, by the whole output and by each event, at one error rate.

    Parameters
    ----------
    release : Mechanism or callable
        As for `audit`.
    pairs : sequence of tuples
        Pairs of neighbouring values, at least one.
    claims : Loss, Budget, float, (float, float) or a sequence of them, optional
        Claims to test on each pair, as `audit` takes them; a tuple of two numbers is one claim.
        None takes the mechanism's own loss.
    events : mapping of str to callable, optional
        Named functions of outputs along the first axis, each of which returns one number or truth
        value per output.
    runs : int, optional
        Number of draws that all tests share equally; at least 100 per test.
    confidence : float, optional
        Probability in (0, 1) with which all verdicts and bounds hold together.
    rng : int, numpy.random.Generator or None, optional
        Seed or generator.
    executor : concurrent.futures.Executor, optional
        Spreads the runs, as for `audit`.

    Returns
    -------
    Family
        One member per test; lower bounds are rounded down.

    Raises
    ------
    ParameterError
        If no pair or claim is given, runs are too few, or an event does not return one value per
        output.

    References
    ----------
    Holm (1979).

    Examples
    --------
    >>> from accountant import PureLoss
    >>> from audits import audit_family
    >>> def worse_when_high(value, rng, size):
    ...     return value + rng.laplace(scale=0.5 if value > 2 else 1.0, size=size)
    >>> pairs = [(0.0, 1.0), (3.0, 4.0)]
    >>> family = audit_family(worse_when_high, pairs, PureLoss(1.0), runs=3000, rng=0)
    >>> [member.name for member in family.falsified]
    ['3 against 4, PureLoss(epsilon=1.0)']
    """
    start = time.perf_counter()
    runs, confidence = RUNS.check("runs", runs), CONFIDENCE.check("confidence", confidence)
    checked_pairs = [checked_pair(pair) for pair in pairs]
    checked_losses = checked_claims(claims)
    if not checked_pairs or not checked_losses:
        shown = f"{len(checked_pairs)} pairs and {len(checked_losses)} claims"
        raise ParameterError("pairs, claims", shown, "at least one pair and one claim")
    # What is observed of the release, by the name of the event; "" is the whole output.
    readings: dict[str, Any] = {"": release}
    for name, event in (events or {}).items():
        readings[name] = _event_release(release, event, name)
    tests = list(itertools.product(checked_pairs, checked_losses, readings.items()))
    share = runs // len(tests)
    if share < MIN_MEMBER_RUNS:
        raise ParameterError(
            "runs", runs, f"at least {MIN_MEMBER_RUNS * len(tests):,} for {len(tests)} tests"
        )
    seed, source = seed_and_generator(rng)
    error = 1 - confidence
    confidence_per_test = 1 - error / len(tests)
    members = []
    for (pair, claim, (event, reading)), test_rng in zip(
        tests, source.spawn(len(tests)), strict=True
    ):
        finding = distinguish(
            reading, pair, claim, share, confidence_per_test, rng=test_rng, executor=executor
        )
        name = describe_pair(*pair) if claim is None else f"{describe_pair(*pair)}, {claim!r}"
        members.append(
            Member(
                f"{name}, by {event}" if event else name,
                noted(finding, release, pair, events=f"only {event} was looked at" * bool(event)),
            )
        )
    mechanism = release if isinstance(release, Mechanism) else None
    rejected = _holm_rejections([member.finding for member in members], error)
    for position, member in enumerate(members):
        # Each test had an equal part of the error.  Holm's method may reject more claims than these
        # tests do, and decides alone.
        outcome = member.finding.outcome
        if position in rejected:
            outcome = Outcome.FALSIFIED
        elif outcome is Outcome.FALSIFIED:
            outcome = Outcome.SURVIVED
        finding = replace(member.finding, outcome=outcome)
        if position % len(readings) == 0:  # an event may show less than the whole output does
            finding = judged(finding, mechanism, confidence_per_test)
        members[position] = replace(member, finding=finding)
    return Family(
        members=tuple(members),
        falsified=tuple(members[position] for position in sorted(rejected)),
        confidence=confidence,
        runs=share * len(tests),
        seconds=time.perf_counter() - start,
        seed=seed,
    )


def _holm_rejections(findings: Sequence[Finding], error: float) -> set[int]:
    """The positions of the claims that Holm's method rejects at this error rate.

    Holm compares the p-values of m claims with ``error / k``, for k from 1 to m.  So the least
    ``error / k`` at which a claim is falsified stands for its p-value; 1 if it is at none.  A claim
    that is falsified at k is so at every smaller k, so the largest k is found by bisection: the
    index of the first k at which the claim is not falsified is the number of the others.
    """
    from statsmodels.stats.multitest import multipletests

    p_values = []
    for finding in findings:
        largest_k = bisect.bisect_left(
            range(1, len(findings) + 1),
            True,
            key=lambda k: not finding.refutes(1 - error / k),
        )
        p_values.append(error / largest_k if largest_k else 1.0)
    return {int(at) for at in np.flatnonzero(multipletests(p_values, error, method="holm")[0])}


def _event_release(release: Mechanism | Callable[..., Any], event: Event, name: str) -> Any:
    """The release as seen by an attacker who observes only the event."""
    if not callable(event):
        raise ParameterError(f"events[{name!r}]", event, "a function of outputs")
    draw = release.release if isinstance(release, Mechanism) else vectorised(release)

    def read(value: Any, rng: np.random.Generator, size: int) -> NDArray[Any]:
        values = np.asarray(event(draw(value, rng, size)))
        if values.shape[:1] != (size,):
            allowed = f"a value for each of {size} outputs"
            raise ParameterError(f"events[{name!r}]", f"shape {values.shape}", allowed)
        return values

    return read
