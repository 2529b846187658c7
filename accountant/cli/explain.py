"""``python -m accountant explain``: what a plan's guarantee means for a person in the data."""

from __future__ import annotations

import sys

from accountant.cli.options import Delta, Json, PlanName, write_json


def explain(plan: PlanName, delta: Delta = None, json: Json = None) -> None:
    """Say in plain sentences what the plan promises a person in the data.

    The numbers are those of the whole plan's exact cost at the delta of the file's budget, or of
    --delta: how much a suspicion can grow, how likely that limit fails, how often an attacker is
    right at best, and who must be trusted. JSON has the attack rates between their two bounds.

    Example: python -m accountant explain plan.toml --delta 1e-6

    Exit status: 0 answered, 2 bad usage or a bad plan file, 130 interrupted.
    """
    from accountant.accountants.attack_rates import attack_rates
    from accountant.accountants.tight import Tight
    from accountant.cli.exit_status import parse_number
    from accountant.domains import DELTA
    from accountant.errors import ParameterError
    from accountant.files import check_writable
    from accountant.formats.plan_toml import read_file, read_plan
    from accountant.planning.interpretation import explanation

    check_writable({"--json": None if json == "-" else json})
    whole, own = read_plan(plan), read_file(plan).budget
    if delta is None and own is None:
        raise ParameterError("--delta", None, "given, or a [budget] in the file")
    at = own.delta if delta is None else DELTA.check("--delta", parse_number(delta))  # type: ignore[union-attr]  # just seen
    cost = Tight().epsilon(whole, at)
    if cost == float("inf"):
        raise ParameterError("--delta", at, "one at which the plan has an epsilon")
    words = explanation(cost, at, whole.relation, plan=whole)
    print(words, file=sys.stderr if json == "-" else sys.stdout)
    if json is not None:
        relation = None if whole.relation is None else str(whole.relation)
        rates = attack_rates(whole).to_list()
        facts = {
            "epsilon": cost, "delta": at, "relation": relation, "explanation": words,
            "attack_rates": rates,
        }  # fmt: skip
        write_json(json, facts)
