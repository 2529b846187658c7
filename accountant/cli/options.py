"""Options that several commands share, and how they combine."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from accountant.cli.exit_status import parse_number
from accountant.cli.vocabulary import VOCABULARY, option

if TYPE_CHECKING:
    from accountant.accountants.budget import Budget
    from accountant.formats.plan_file import PlanFile
    from accountant.planning.allocation_table import Allocation
    from accountant.plans.plan import Plan
    from accountant.proofs.checked_proof import CheckedProof

PlanName = Annotated[str, typer.Argument(metavar="PLAN", help=VOCABULARY["plan"].means)]
Epsilon = Annotated[
    str | None,
    option("epsilon", "Use the epsilon E, instead of that of the budget in the plan file."),
]
Delta = Annotated[
    str | None,
    option("delta", "Use the delta D, instead of that of the budget in the plan file."),
]
Json = Annotated[str | None, option("json")]
Force = Annotated[bool, option("force")]
Runs = Annotated[
    str | None, option("runs", "Take the plan N times in a row, as one plan (by default once).")
]
ProofFile = Annotated[str | None, option("proof")]
EXCEEDED = 1  # exit status if the budget does not suffice


def allocation_facts(table: Allocation) -> dict[str, Any]:
    """Return what the table of an allocation says, as plain values."""
    budget = {"epsilon": table.budget.epsilon, "delta": table.budget.delta}
    return {"budget": budget, "epsilon": table.epsilon, "releases": table.to_records()}


def print_report(report: object, json: str | None) -> None:
    """Print what a command answers: on stderr where its JSON goes to stdout."""
    print(report, file=sys.stderr if json == "-" else sys.stdout)


def write_json(name: str | None, facts: dict[str, Any]) -> None:
    """Write the facts as JSON to the file of ``--json``, if it is given; infinity as null."""
    import json

    from accountant.files import write_text

    if name is None:
        return
    document = {"schema": 1, **facts}
    write_text(name, json.dumps(_finite(document), indent=2, allow_nan=False) + "\n")


def _finite(value: Any) -> Any:
    """Return plain values without infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(element) for key, element in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(element) for element in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def budget_of(file: PlanFile, epsilon: str | None, delta: str | None) -> Budget:
    """Return the budget of the options, else of the file; delta is 0 if neither gives one."""
    from accountant.accountants.budget import Budget
    from accountant.errors import ParameterError

    budget_epsilon = epsilon_of(file.budget, epsilon)
    if budget_epsilon is None:
        raise ParameterError("--epsilon", None, "given, or a [budget] in the file")
    return Budget(budget_epsilon, delta_or_none(file.budget, delta) or 0.0)


def epsilon_of(budget: Budget | None, epsilon: str | None) -> float | None:
    """Return the epsilon of the option, else of the file's budget; None if neither gives one."""
    from accountant.domains import POSITIVE

    if epsilon is not None:
        return POSITIVE.check("--epsilon", parse_number(epsilon))
    return None if budget is None else budget.epsilon


def delta_or_none(budget: Budget | None, delta: str | None) -> float | None:
    """Return the delta of the option, else of the file's budget; None if neither gives one."""
    from accountant.domains import DELTA, warn_of_large_delta

    at = None if budget is None else budget.delta
    if delta is not None:
        at = DELTA.check("--delta", parse_number(delta))
    warn_of_large_delta(at or 0.0)
    return at


def delta_of(file: PlanFile, delta: str | None) -> float:
    """Return the delta of the option, else of the file's budget."""
    from accountant.errors import ParameterError

    at = delta_or_none(file.budget, delta)
    if at is None:
        raise ParameterError("--delta", None, "given, or a [budget] in the file")
    return at


def repeated(plan: Plan, runs: str | None) -> Plan:
    """Return the plan as often as the option says."""
    from accountant.domains import RECORDS
    from accountant.plans.plan import Repeat

    count = 1 if runs is None else RECORDS.check("--runs", parse_number(runs))
    return plan if count == 1 else Repeat(plan, count)


def proof_of_plan(plan: Plan, delta: float, proof: str | None) -> CheckedProof | None:
    """Return the proof of the option, checked, or refuse it."""
    from accountant.cli.progress import waiting
    from accountant.proofs.checked_proof import checked_proof

    if proof is None:
        return None
    with waiting("checking the proof"):
        return checked_proof(plan, delta, proof)
