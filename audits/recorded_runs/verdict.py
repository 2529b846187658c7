"""The verdict that `record` returns: findings, what could not be judged, and the epsilon.

`record` runs a function on data, and replays it on neighbouring data with the recorded draws.
`judged` puts together what the two runs showed: the findings of the checks, and the privacy loss
that the moves of the noise cost (`Spent`), against what the caller states (`Stated`).
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, final

from accountant.errors import ParameterError
from accountant.losses.loss import Loss
from accountant.losses.pure_and_approximate import ApproxLoss, PureLoss
from audits.claims.arguments import claimed_delta
from audits.claims.claims import claim_points
from audits.claims.findings import Outcome
from audits.recorded_runs.costs import declared_cost
from audits.recorded_runs.draws.declared_calls import Primitive
from audits.recorded_runs.event_pairs import EventPair
from audits.recorded_runs.events import Call, Draw
from audits.recorded_runs.findings import UNDECIDED, RecordedFinding, exception_of
from audits.recorded_runs.runs import Run
from audits.recorded_runs.spent import Spent
from audits.recorded_runs.tape import Tape

# Kinds of findings after which the cost is unknown: the losses of draws do not bound it.
UNBOUNDED = {"result", "control flow", "input", *UNDECIDED}
# A cost may be above a claim by this share: moves are sums of floats, and libraries round bounds
# up.
ROUND_OFF = 1e-6
# The delta at which the cost is stated if nothing is claimed and the cost at delta 0 is infinite,
# as that of Gaussian noise is.
DELTA_OF_NO_CLAIM = 1e-5
Claim = Any


@final
class Stated(NamedTuple):
    """What the caller of `record` states of a function.

    ``claim`` is what the function claims to cost, and ``delta`` the one at which cost and claim are
    compared; either may be None.  ``draws`` are declarations of draws, by name.
    """

    claim: Claim
    delta: float | None
    draws: dict[str, Primitive]

    def loss(self, result: Any) -> Loss | None:
        """The claim on this result as a loss; None if nothing is claimed."""
        return _loss_of(self.claim, result)


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
    cost : float or None
        Epsilon at ``delta`` by `Tight` for the moves of this pair; infinite if nothing bounds it,
        None if it is not known: `unchecked` says why.
    declared_cost : float or None
        The same for the declared sensitivities and losses; None unless every draw that moved has
        one.
    claimed : float or None
        Epsilon of the claim at ``delta``.
    delta : float
        The delta of these three.
    draws : int
        How many draws and calls were recorded.

    Examples
    --------
    >>> import numpy as np
    >>> from audits import Recorded, record
    >>> def noisy_sum(data, rng):
    ...     return np.sum(data) + rng.laplace(scale=2.0)
    >>> found = record(noisy_sum, np.ones(5), np.ones(4), claim=1.0)
    >>> isinstance(found, Recorded), found.sound, found.cost, found.claimed
    (True, True, 0.5, 1.0)
    """

    findings: tuple[RecordedFinding, ...]
    unchecked: tuple[str, ...]
    cost: float | None
    declared_cost: float | None
    claimed: float | None
    delta: float
    draws: int

    @property
    def outcome(self) -> Outcome:
        """FALSIFIED if something was found, SURVIVED if not and the cost is known, within a claim.

        INCONCLUSIVE if noise was lost from sight or could not be followed, if results differ on the
        same data, or if the cost is not known, or is above the claim for an observer who sees more,
        or is infinite and nothing is claimed.
        """
        if any(finding.kind not in UNDECIDED for finding in self.findings):
            return Outcome.FALSIFIED
        if self.findings:
            return Outcome.INCONCLUSIVE
        is_too_much = self.cost == math.inf or is_above(self.cost, self.claimed)
        is_undecided = self.cost is None or is_too_much
        return Outcome.INCONCLUSIVE if is_undecided else Outcome.SURVIVED

    @property
    def sound(self) -> bool:
        """True if the outcome is SURVIVED; `unchecked` names what could not be judged."""
        return self.outcome is Outcome.SURVIVED

    def to_json(self) -> str:
        """The same as JSON; infinite numbers are null.  A null cost is infinite if it is known.

        Returns
        -------
        str
            One object.
        """
        rows = asdict(self)
        for name in ("cost", "declared_cost", "claimed"):
            if rows[name] is not None and not math.isfinite(rows[name]):
                rows[name] = None
        facts = {"outcome": self.outcome.name, "cost_is_known": self.cost is not None}
        return json.dumps({"sound": self.sound, **facts, **rows})

    def __str__(self) -> str:
        count = len(self.findings)
        heading = "nothing found" if not count else f"{count} finding{'s' if count > 1 else ''}"
        if self.outcome is Outcome.INCONCLUSIVE:
            heading = f"INCONCLUSIVE: {heading}"
        costs = "the cost of this pair is not known"
        if self.cost is not None:
            costs = f"this pair costs epsilon {self.cost:.4g}"
        claimed = "" if self.claimed is None else f", claimed {self.claimed:.4g}"
        delta_text = f" at delta {self.delta:g}" if self.delta else ""
        draws_text = f"{self.draws} draw" + ("" if self.draws == 1 else "s")
        lines = [
            f"{heading} in {draws_text}; {costs}{delta_text}{claimed}",
            *map(str, self.findings),
            *(f"unchecked: {note}" for note in self.unchecked),
        ]
        return "\n".join(lines)


def is_above(cost: float | None, claimed: float | None) -> bool:
    """Return whether a cost is above a claim by more than rounding; False if one is unknown."""
    return cost is not None and claimed is not None and cost > claimed * (1 + ROUND_OFF)


def _loss_of(claim: Claim, result: Any) -> Loss | None:
    """Return the claim as a loss; a claim that is a function is called with the result.

    A run that ended with an exception has no result, and then no such claim.
    """
    if callable(claim) and not isinstance(claim, Loss):
        claim = None if exception_of(result) else claim(result)
    if claim is None or isinstance(claim, Loss):
        return claim
    if isinstance(claim, (tuple, list)) and len(claim) == 2:
        return ApproxLoss(float(claim[0]), float(claim[1]))
    if isinstance(claim, (int, float)) and not isinstance(claim, bool):
        return PureLoss(float(claim))
    raise ParameterError(
        "claim", claim, "a loss, epsilon, (epsilon, delta), or a function of these"
    )


def _tested_delta(claim: Loss | None, spent: Spent) -> float:
    """The first delta at which the cost is above the claim; where no cost is, the usual delta.

    The usual delta is the claim's own, or else the one that all audits use.  A claim that is a
    whole curve is compared at further points.
    """
    if claim is None:
        return claimed_delta(claim)
    own_delta = max(claim.infinity, claim.reversed.infinity)
    deltas = [own_delta or claimed_delta(claim)]
    # At epsilon 0 the claim allows no cost above it: every rounding would exceed it.
    deltas += [delta for epsilon, delta in claim_points(claim) if epsilon > 0]
    exceeded = (d for d in deltas if is_above(spent.epsilon(d), claim.epsilon_at(d)))
    return next(exceeded, deltas[0])


def without_replay(finding: RecordedFinding, delta: float | None, first_tape: Tape) -> Recorded:
    """Return the verdict where two runs on the same data already differ."""
    unchecked = ("the neighbour: runs on the same data already differ",)
    count = _number_of_draws(first_tape)
    return Recorded((finding,), unchecked, None, None, None, delta or 0.0, count)


def _number_of_draws(tape: Tape) -> int:
    return sum(
        isinstance(event, Draw | Call) and event.name != "generator" for event in tape.events
    )


def judged(
    findings: list[RecordedFinding],
    spent: Spent,
    used_spent: Spent,
    pairs: list[EventPair],
    first_run: Run,
    stated: Stated,
) -> Recorded:
    """Return the verdict on what the checks and the cost say.

    ``used_spent`` is like ``spent``, but numbers that the code dropped unread cost nothing in it.

    ``spent`` has the losses of this pair, with three lists of exceptions.  ``spent.infinite`` are
    places whose loss is infinite: each is a finding.  ``spent.unknown`` are losses that are not
    known, so that the cost is not; ``spent.assumed`` are assumptions.  Both are named as unchecked.

    A cost above the claim is a finding, with two exceptions that are named as unchecked instead:
    coins were drawn, which may stay secret; or it is only above the claim because calls cost all
    that they declare, though their values moved by a part of their sensitivities.
    """
    findings = [*findings]
    loss = stated.loss(first_run.result)
    tested_delta = _tested_delta(loss, spent) if stated.delta is None else stated.delta
    # Where nothing is claimed and no delta is given, the cost is stated at delta 0, unless it is
    # infinite there though every loss is finite at other deltas.
    is_free = loss is None and stated.delta is None
    if is_free and math.isinf(spent.epsilon(0.0)) and not spent.infinite:
        tested_delta = DELTA_OF_NO_CLAIM
    claimed = None if loss is None else loss.epsilon_at(tested_delta)
    cost = spent.epsilon(tested_delta)
    declared = declared_cost(pairs, first_run.tape, stated.draws, tested_delta)
    unchecked = list(dict.fromkeys([*spent.unknown, *spent.assumed]))
    is_drop_charged = is_above(spent.epsilon(tested_delta), claimed) and not is_above(
        used_spent.epsilon(tested_delta), claimed
    )
    for site, reason in spent.infinite:
        if is_drop_charged:
            continue
        if reason not in ("reused noise", "no noise"):  # these are findings already
            findings.append(RecordedFinding("cost", site, f"the loss is infinite: {reason}"))
    # An infinite loss was found above, and needs no second finding.
    exceeds_claim = is_above(cost, claimed) and not spent.infinite
    drawn = [pair.recorded for pair in pairs if isinstance(pair.recorded, Draw)]
    coins = sorted({draw.site for draw in drawn if draw.coins})
    if is_drop_charged:
        unchecked.append(
            f"the cost is {cost:.4g} if noisy numbers that the code drops unread count as released"
        )
    elif exceeds_claim and coins and not math.isinf(cost):
        unchecked.append(
            f"the cost is {cost:.4g} for an observer who sees the coins drawn at "
            f"{', '.join(coins[:3])}; if they stay secret it may be less"
        )
    # ``scaled`` charges calls by the part of their sensitivity that their values moved by.
    elif exceeds_claim and not is_above(spent.epsilon(tested_delta, scaled=True), claimed):
        unchecked.append(
            f"the calls cost {cost:.4g} as declared; values moved by parts of their sensitivities"
        )
    elif exceeds_claim:
        reason = f"the moves of this pair cost epsilon {cost:.4g}, claimed {claimed:.4g}"
        findings.append(RecordedFinding("cost", "", reason))
    elif is_above(declared, claimed):
        unchecked.append(f"the declared sensitivities and losses cost {declared:.4g} in all")
    if loss is None and cost == math.inf and not spent.infinite:
        unchecked.append(f"the cost at a delta above {tested_delta:g}, where it may be finite")
    exception = exception_of(first_run.result)
    if exception:
        unchecked.append(f"what follows the {exception} that ended the run")
    ordered = tuple(dict.fromkeys(findings))
    # One infinite loss makes the whole cost infinite, whatever the unknown losses are.
    is_cost_known = (
        (not spent.unknown or bool(spent.infinite))
        and not exception
        and not UNBOUNDED & {finding.kind for finding in ordered}
    )
    return Recorded(
        ordered,
        tuple(unchecked),
        cost if is_cost_known else None,
        declared,
        claimed,
        tested_delta,
        _number_of_draws(first_run.tape),
    )
