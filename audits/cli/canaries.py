"""``dp-attest audit canaries``: what canaries would show of a training, before it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from accountant.cli.vocabulary import option
from audits.cli.options import Options, takes

INCONCLUSIVE = 3  # exit status under --strict if half the noise would not be seen


@takes("confidence", "json", "strict")
def canaries(
    count: Annotated[str, typer.Argument(metavar="CANARIES", help="Number of canaries.")],
    rate: Annotated[str, option("rate")],
    steps: Annotated[str, option("steps")],
    noise: Annotated[str, option("noise")],
    delta: Annotated[str, option("delta", "The delta of the claim and of the bounds.")] = "1e-5",
    plan: Annotated[
        str | None,
        option("plan", "The claim is the plan in PLAN; else what these numbers declare."),
    ] = None,
    batch: Annotated[
        str,
        option("batch", "Records a step whose gradients the auditor does not know."),
    ] = "0",
    parameters: Annotated[
        str | None, typer.Option(metavar="P", help="Number of parameters, with --batch.")
    ] = None,
    *,
    options: Options,
) -> None:
    """Say before a training by DP-SGD what an audit by gradient canaries could show of it.

    Half the noise should be falsified: it is tried in 200 simulated trainings. Where it is seen in
    fewer than 95 %, numbers of canaries and of steps that would see it are searched for. audits.
    opacus_canaries puts canaries into a training by Opacus, audits.GradientCanaries into any other
    one. Both know what the records of a step add up to; where that is not known, their gradients
    hide the canaries, and --batch says how many they are.

    Examples: dp-attest audit canaries 700 --rate 0.05 --steps 100 --noise 1.1;
    dp-attest audit canaries 2000 --rate 0.004 --steps 5000 --noise 0.8 --delta 1e-6

    Exit status: 0 answered, 2 bad usage, 3 half the noise would not be seen under --strict,
    130 interrupted.
    """
    import json

    from accountant.cli.exit_status import parse_number
    from accountant.cli.progress import waiting
    from accountant.files import write_text
    from accountant.formats.plan_toml import read_plan
    from audits.one_run.canary_power import canary_power
    from audits.report.terminal import borderless_table, literal_text

    claim = None if plan is None else read_plan(plan)
    with waiting("simulating trainings"):
        power = canary_power(
            parse_number(count),
            rate=parse_number(rate),
            steps=parse_number(steps),
            noise_multiplier=parse_number(noise),
            claim=claim,
            delta=parse_number(delta),
            confidence=parse_number(options.confidence),
            batch=parse_number(batch),
            parameters=None if parameters is None else parse_number(parameters),
        )
    table = borderless_table("what canaries of gradients would show")
    table.add_column("fact")
    table.add_column("value", overflow="fold")
    for fact, value in power.rows:
        table.add_row(fact, literal_text(value))
    options.console().print(table)
    document = {
        "schema": 1,
        "canaries": power.canaries,
        "steps": power.steps,
        "claim": repr(power.claim),
        "epsilon": power.epsilon,
        "delta": power.delta,
        "confidence": power.confidence,
        "chance": power.chance,
        "epsilon_lower": power.epsilon_lower,
        "provable": power.provable,
        "needed_canaries": power.needed_canaries,
        "needed_steps": power.needed_steps,
        "needed_batch": power.needed_batch,
    }
    write_text(options.json, json.dumps(document, indent=2) + "\n")
    raise typer.Exit(INCONCLUSIVE if options.strict and not power.enough else 0)
