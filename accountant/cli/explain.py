"""``dp-attest account explain``: what a plan's guarantee means for a person in the data."""

from __future__ import annotations

from accountant.cli.options import (
    Delta,
    Force,
    Json,
    PlanName,
    ProofFile,
    delta_of,
    print_report,
    proof_of_plan,
    write_json,
)


def explain(
    plan: PlanName,
    delta: Delta = None,
    proof: ProofFile = None,
    json: Json = None,
    force: Force = False,
) -> None:
    """Say in plain sentences what the plan promises a person in the data.

    The numbers are those of the whole plan's exact cost at the delta of the file's budget, or of
    --delta: how much a suspicion can grow, how likely that limit fails, how often an attacker is
    right at best, and who must be trusted. JSON has the attack rates between their two bounds.

    With --proof the cost is the one that the file proves: it is checked in ball arithmetic first,
    and must be of this plan and this delta.

    Examples: dp-attest account explain plan.toml --delta 1e-6;
    dp-attest account explain plan.toml --proof cost.proof.json

    Exit status: 0 answered, 2 bad usage, a bad plan file or a proof that does not prove its cost,
    130 interrupted.
    """
    from accountant.accountants.attack_rates import attack_rates
    from accountant.accountants.tight import Tight
    from accountant.errors import ParameterError
    from accountant.formats.plan_toml import read_file, read_plan
    from accountant.planning.interpretation import explanation

    whole_plan, at = read_plan(plan), delta_of(read_file(plan), delta)
    proved = proof_of_plan(whole_plan, at, proof)
    cost = Tight().epsilon(whole_plan, at) if proved is None else proved.epsilon
    if cost == float("inf"):
        raise ParameterError("--delta", at, "one at which the plan has an epsilon")
    sentences = explanation(cost, at, whole_plan.relation, plan=whole_plan)
    print_report(sentences if proved is None else f"{sentences}\n{proved.words}", json)
    if json is not None:
        relation = None if whole_plan.relation is None else str(whole_plan.relation)
        facts = {
            "epsilon": cost,
            "delta": at,
            "relation": relation,
            "explanation": sentences,
            "attack_rates": attack_rates(whole_plan).to_list(),
        }
        write_json(json, facts if proved is None else {**facts, "proof": proved.facts()})
