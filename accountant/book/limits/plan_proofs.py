"""Proofs of plans: a data set may refuse every plan whose cost is not proved.

With ``verified=True``, of a book or of one data set, a plan is charged only with a proof that its
epsilon, at the delta of the budget, is within the budget; releases outside of plans are refused.
The proof is checked before anything is spent.  Its digest, delta and upper end of epsilon are then
written to the log as a public fact.
"""

from __future__ import annotations

import re
from typing import Any

from accountant.accountants.budget import Budget
from accountant.errors import ParameterError
from accountant.formatting import format_upper
from accountant.plans.plan import Plan
from accountant.proofs.checked_proof import CheckedProof, Proof, checked_proof, shown_delta

# a SHA-256 digest of a proof, as an entry of the log names it
DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


def proof_for(
    plan: Plan, budget: Budget, proof: Proof | CheckedProof | None, verified: bool
) -> CheckedProof | None:
    """Return the proof of a plan, checked and within the budget; None if none was given.

    Where ``verified`` is true a missing proof is refused.
    """
    if proof is None:
        if verified:
            refuse_unproved(budget)
        return None
    checked = checked_proof(plan, budget.delta, proof)
    refuse_above(checked, budget)
    return checked


def refuse_unproved(budget: Budget) -> None:
    """Refuse a plan without a proof."""
    at = shown_delta(budget.delta)
    allowed = (
        f"a proof of the plan at delta {at}, as this data set takes no other plans "
        f"(verified=True): Tight().certify(plan, {at}, proof=FILE) writes it"
    )
    raise ParameterError("proof", None, allowed)


def refuse_unplanned() -> None:
    """Refuse releases without a plan, which have no proof."""
    allowed = (
        "given, with its proof=: this data set takes no releases outside of proved plans "
        "(verified=True)"
    )
    raise ParameterError("plan", None, allowed)


def refuse_above(proof: CheckedProof, budget: Budget) -> None:
    """Refuse a proof for another delta than the budget's, or of an epsilon above the budget's."""
    if proof.delta != budget.delta or proof.epsilon > budget.epsilon:
        at = f"{format_upper(proof.epsilon, 9)} at delta {shown_delta(proof.delta)}"
        allowed = (
            f"of at most epsilon {budget.epsilon:.9g} at delta {shown_delta(budget.delta)}, the "
            "budget: fewer releases or more noise fit"
        )
        raise ParameterError("proof", f"a proof of epsilon {at}", allowed)


def is_stated(facts: dict[str, Any], budget: Budget) -> bool:
    """Return whether a plan's entry in the log states a proof of a cost within the budget.

    ``facts`` are the facts of the entry.  The proof itself is not checked again: its digest has the
    form of one, its delta is the budget's, and its upper end of epsilon is at most the budget's and
    the entry's ``certified`` epsilon, if it has one.
    """
    proof = facts.get("proof")
    return (
        isinstance(proof, dict)
        and DIGEST.fullmatch(str(proof.get("sha256"))) is not None
        and proof["delta"] == budget.delta
        and 0 <= proof["upper"] <= budget.epsilon
        and proof["upper"] <= facts.get("certified", float("inf"))
    )
