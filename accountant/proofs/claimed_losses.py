"""Plans as proofs hold them: a mechanism that the checker does not know stands with its loss.

A plan is written as nested tables: a dict has the name of a class as ``kind``, and its fields.  A
mechanism of which the checker has no definition is written as a claim,
``{"kind": "Claimed", "mechanism": ..., "loss": ...}``, and the proof is about that loss.  The
checker reads only the kind of the mechanism, so it cannot tell whether the mechanism has this loss.
Users who have its code compare the claim with it (`refuse_other_claims`).
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from accountant.errors import ParameterError
from accountant.losses.loss import Loss
from accountant.plans.plan import Plan
from accountant.serialisation.plan_json import constructor_value, from_dict, to_dict
from accountant.serialisation.registry import OWN_PLAN_KINDS, constructor_fields
from accountant.verifier.choices import alternatives
from accountant.verifier.document import NoProof, ProofError
from accountant.verifier.plan_parts import CLAIMED, claims_of, kind_of, plain_key, shown


def proof_plan(plan: Plan, *, decimal: bool) -> dict[str, Any]:
    """Return a plan as its proof holds it: as nested tables, with claims in them.

    ``decimal`` says how the checker reads a number of the plan: as the decimal fraction that is
    printed, or as the float itself (`accountant.verifier.plan`).
    """
    return _ProofTables(decimal).of_plan(plan, to_dict(plan))


class _ProofTables:
    """The tables of a plan, and of all plans inside it, as the proof holds them.

    The *plain* table of a plan is what `to_dict` writes: it has no claims.
    """

    def __init__(self, decimal: bool) -> None:
        self._decimal = decimal
        # Plans may share a part, whose table is made once.  The key is the part's id, and the part
        # is kept too, so that no other object gets that id.
        self._made: dict[int, tuple[Plan, dict[str, Any]]] = {}

    def of_plan(self, plan: Plan, plain: dict[str, Any]) -> dict[str, Any]:
        """Return the table of a plan in the proof."""
        if id(plan) not in self._made:
            self._made[id(plan)] = plan, self._with_claims(plan, plain)
        return self._made[id(plan)][1]

    def claim(self, mechanism: Any, plain: dict[str, Any]) -> dict[str, Any]:
        """Return the claim that stands for a mechanism."""
        stated = {} if mechanism.relation is None else {"relation": str(mechanism.relation)}
        loss = self.of_plan(mechanism.loss, to_dict(mechanism.loss))
        return {"kind": CLAIMED, "mechanism": plain, "loss": loss, **stated}

    def _with_claims(self, plan: Plan, plain: dict[str, Any]) -> dict[str, Any]:
        if is_mechanism(plan):
            with suppress(NoProof, ProofError):  # these say that the checker has no definition
                alternatives(plain, decimal=self._decimal)
                return plain
            with suppress(ParameterError):  # its loss cannot be written to a file
                return self.claim(plan, plain)
            # The checker has no proof for this table: it names the kind that it does not know.
            return plain
        # A node that combines plans: its fields may hold plans.  `constructor_value` finds the
        # object of which the field's entry in the table is the plain form.
        objects = {
            key: constructor_value(plan, parameter)
            for key, parameter in constructor_fields(type(plan)).items()
            if key in plain
        }
        return {key: self._of_value(objects.get(key), entry) for key, entry in plain.items()}

    def _of_value(self, value: Any, plain: Any) -> Any:
        """Return ``plain``, the entry of a field's value, with claims in each plan of the value."""
        if isinstance(value, Plan):
            return self.of_plan(value, plain)
        if isinstance(value, tuple):  # no other collection in a field holds plans
            return [self._of_value(*pair) for pair in zip(value, plain, strict=True)]
        return plain


def is_mechanism(plan: Plan) -> bool:
    """Return whether another package declared a plan, and it claims one loss."""
    return type(plan) not in OWN_PLAN_KINDS and isinstance(getattr(plan, "loss", None), Loss)


def refuse_other_claims(plan: Any, *, decimal: bool) -> None:
    """Raise `ParameterError` where the plan of a proof claims another loss than a mechanism has.

    Each mechanism is made from its table, and claims its loss anew.
    """
    tables = _ProofTables(decimal)
    for claim in claims_of(plan):
        try:
            mechanism = from_dict(claim.get("mechanism"))
            plain = to_dict(mechanism)
            # What is no mechanism, such as a loss, has no claim, and its plain table differs.
            own_claim = tables.claim(mechanism, plain) if is_mechanism(mechanism) else plain
        except ParameterError as error:
            allowed = f"of mechanisms that are known here ({error})"
            raise ParameterError("proof", f"a claim of {kind_of(claim)}", allowed) from None
        if plain_key(own_claim) != plain_key(claim):
            allowed = f"of what mechanisms claim, here {shown(own_claim)}"
            raise ParameterError("proof", f"a proof of {shown(claim)}", allowed)
