"""Plans as proofs hold them: a mechanism that the checker does not know stands with its loss.

A plan is written as nested tables, dicts with its class as ``kind`` and its fields.  The table of a
mechanism that the checker has no definition of is a claim,
``{"kind": "Claimed", "mechanism": ..., "loss": ...}``, and the proof is about that loss.  The
checker reads nothing of the mechanism: users who have its code compare the claim with it
(`refuse_other_claims`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from accountant.errors import ParameterError
from accountant.losses.loss import Loss
from accountant.plans.plan import Plan
from accountant.proofs.plan_parts import plain_key, shown
from accountant.serialisation.plan_json import constructor_value, from_dict, to_dict
from accountant.serialisation.registry import OWN_PLAN_KINDS, constructor_fields
from accountant.verifier.choices import alternatives
from accountant.verifier.document import NoProof, ProofError

CLAIMED = "Claimed"
WHICH = "`python -m accountant verify --mechanisms` says which claims it proves"


def proof_plan(plan: Plan, *, decimal: bool) -> dict[str, Any]:
    """Return a plan as its proof holds it; ``decimal`` where numbers are those that are printed."""
    return _Tables(decimal).table(plan, to_dict(plan))


class _Tables:
    """The tables of the plans inside one plan, each made once."""

    def __init__(self, decimal: bool) -> None:
        self._decimal = decimal
        self._known: dict[int, tuple[Plan, dict[str, Any]]] = {}  # by identity, kept alive

    def table(self, plan: Plan, table: dict[str, Any]) -> dict[str, Any]:
        """Return the table of a plan with claims in it."""
        if id(plan) not in self._known:
            self._known[id(plan)] = plan, self._made(plan, table)
        return self._known[id(plan)][1]

    def claimed(self, mechanism: Any, table: dict[str, Any]) -> dict[str, Any]:
        """Return the table of a mechanism by its claim."""
        stated = {} if mechanism.relation is None else {"relation": str(mechanism.relation)}
        loss = self.table(mechanism.loss, to_dict(mechanism.loss))
        return {"kind": CLAIMED, "mechanism": table, "loss": loss, **stated}

    def _made(self, plan: Plan, table: dict[str, Any]) -> dict[str, Any]:
        """Return the plan's ``table`` with claims in place of mechanisms that are not known."""
        if is_mechanism(plan):
            try:
                return table if self._is_known(table) else self.claimed(plan, table)
            except ParameterError:  # its loss has no form in files
                return table
        fields = constructor_fields(type(plan))
        inner = {
            key: constructor_value(plan, entry) for key, entry in fields.items() if key in table
        }
        return {key: self._value(inner.get(key), entry) for key, entry in table.items()}

    def _value(self, value: Any, table: Any) -> Any:
        """Return the same for the value of a field, of which ``table`` is the plain form."""
        if isinstance(value, Plan):
            return self.table(value, table)
        if isinstance(value, tuple):
            return [self._value(*pair) for pair in zip(value, table, strict=True)]
        return table

    def _is_known(self, table: dict[str, Any]) -> bool:
        """Return whether the checker has a definition of a mechanism."""
        try:
            alternatives(table, decimal=self._decimal)
        except (NoProof, ProofError):
            return False
        return True


def is_mechanism(plan: Plan) -> bool:
    """Return whether another package declared a plan, and it claims one loss."""
    return type(plan) not in OWN_PLAN_KINDS and isinstance(getattr(plan, "loss", None), Loss)


def claims_of(plan: Any) -> Iterator[dict[str, Any]]:
    """Yield the different claims in the plan of a file, not those inside a claim's mechanism."""
    pending, yielded_keys = [plan], set()
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            inside = [value for key, value in node.items() if key != "mechanism"]
            pending += reversed(inside if node.get("kind") == CLAIMED else [*node.values()])
            if node.get("kind") == CLAIMED and plain_key(node) not in yielded_keys:
                yielded_keys.add(plain_key(node))
                yield node
        elif isinstance(node, list):
            pending += reversed(node)


def words_of_claims(plan: Any) -> str:
    """Return in words whose losses are as claimed; "" where none is."""
    kinds = list(dict.fromkeys(kind_of(claim) for claim in claims_of(plan)))
    if not kinds:
        return ""
    listed = ", ".join(kinds[:-1]) + " and " * (len(kinds) > 1) + kinds[-1]
    subject = "that mechanism claims" if len(kinds) == 1 else "those mechanisms claim"
    return f"the losses of {listed} are as {subject}: {WHICH}"


def kind_of(claim: dict[str, Any]) -> str:
    """Return the name of the mechanism of a claim."""
    mechanism = claim.get("mechanism")
    return str(mechanism.get("kind") if isinstance(mechanism, dict) else mechanism)


def refuse_other_claims(plan: Any, *, decimal: bool) -> None:
    """Raise `ParameterError` where a file lets a mechanism claim another loss than its own."""
    tables = _Tables(decimal)
    for claim in claims_of(plan):
        try:
            mechanism = from_dict(claim.get("mechanism"))
            true = to_dict(mechanism)
            true = tables.claimed(mechanism, true) if is_mechanism(mechanism) else true
        except ParameterError as error:
            allowed = f"of mechanisms that are known here ({error})"
            raise ParameterError("proof", f"a claim of {kind_of(claim)}", allowed) from None
        if plain_key(true) != plain_key(claim):
            allowed = f"of what mechanisms claim, here {shown(true)}"
            raise ParameterError("proof", f"a proof of {shown(claim)}", allowed)
