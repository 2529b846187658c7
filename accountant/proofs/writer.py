"""Proofs of certificates, as files: the plan, the interval, and a method for each bound.

A proof is checked by `accountant.verifier`, which trusts nothing here: a parameter that is badly
chosen makes a proof fail, never a wrong one pass.
"""

from __future__ import annotations

import json
import math
from typing import Any

from accountant.errors import UnsupportedPlan
from accountant.plans.plan import Plan
from accountant.proofs.claimed_losses import claims_of, kind_of, proof_plan
from accountant.proofs.no_road import MOST_BYTES, NoRoad, without_proof
from accountant.proofs.search import Search
from accountant.verifier import NoProof, ProofError
from accountant.verifier.choices import alternatives

PROOFS = "the writer of proofs"


def write_proof(plan: Plan, delta: float, lower: float, upper: float) -> bytes:
    """Return the proof that the epsilon of a plan at ``delta`` is in [lower, upper].

    Parameters
    ----------
    plan : Plan
        A plan, a loss or a mechanism.
    delta : float
        In [0, 1).
    lower : float
        The lower end of a certificate.
    upper : float
        Its upper end.

    Returns
    -------
    bytes
        Canonical JSON, for `accountant.verifier.verify`, which says what it proves.

    Raises
    ------
    UnsupportedPlan
        Where there is no method for a proof, with the reason.

    References
    ----------
    ``docs/proofs/contour.md`` for the theorems, which `accountant.verifier` restates.

    Examples
    --------
    >>> from accountant import GaussianLoss, Tight
    >>> from accountant.proofs.writer import write_proof
    >>> found = Tight().certify(GaussianLoss(0.5), delta=1e-6)
    >>> proof = write_proof(GaussianLoss(0.5), 1e-6, found.lower, found.upper)
    >>> from accountant.verifier import verify
    >>> verify(proof).word
    'PROVED'
    """
    if not math.isfinite(upper):
        raise UnsupportedPlan(plan, PROOFS, "an infinite epsilon needs no proof")
    decimal = delta == 0
    fields = proof_plan(plan, decimal=decimal)
    document = {"proof": 1, "plan": fields, "delta": float(delta).hex()}
    try:
        plans = alternatives(fields, decimal=decimal)
        search = Search(plans, float(delta), float(lower), float(upper))
        document |= search.entries()
    except (NoProof, NoRoad, ProofError) as error:
        why = f"{error}{_whose(fields, str(error), decimal=decimal)}"
        raise UnsupportedPlan(plan, PROOFS, without_proof(why)) from None
    try:
        text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except ValueError:
        why = "a number of the plan is infinite, and a file holds none"
        raise UnsupportedPlan(plan, PROOFS, without_proof(why)) from None
    if len(text) >= MOST_BYTES:
        why = f"its file would have {len(text):,} bytes, and {MOST_BYTES:,} are allowed"
        raise UnsupportedPlan(plan, PROOFS, without_proof(why))
    return (text + "\n").encode("ascii")


def _whose(fields: dict[str, Any], why: str, *, decimal: bool) -> str:
    """Return in words which mechanism claims the loss that has no proof; "" where none does."""
    for claim in claims_of(fields):
        try:
            alternatives(claim["loss"], decimal=decimal)
        except (NoProof, ProofError) as error:
            if str(error) == why:
                return f" (the loss of {kind_of(claim)})"
    return ""
