"""``dp-attest audit power``: how many runs detect that a claim is false."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from accountant.cli.vocabulary import option
from audits.cli.options import Options, takes

if TYPE_CHECKING:
    from audits.known_densities.sample_size import RunsNeeded

POWERS = (0.5, 0.95)  # probabilities of detecting the violation, for which runs are computed


@takes("confidence", "json")
def power(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A mechanism, or part of its name.")
    ] = None,
    epsilon: Annotated[str, option("epsilon", "The epsilon that is claimed.", old="claim")] = "1",
    truth: Annotated[str, typer.Option(metavar="E", help="The true epsilon.")] = "1.25",
    delta: Annotated[str, option("delta", "The delta of the claim and of the truth.")] = "0",
    *,
    options: Options,
) -> None:
    """Compute how many runs detect a violation: with the best possible test, and the guess test.

    The limit is that of the best test of the pair, by Neyman and Pearson. Without a name, releases
    of a few shapes with the true epsilon are shown; with a name, the mechanism's worst pair against
    the claim. Runs are counted over both values.

    Examples: dp-attest audit power --epsilon 1 --truth 1.25;
    dp-attest audit power --epsilon 1 --truth 1.1 --delta 1e-5;
    dp-attest audit power "Laplace(scale=1.0" --epsilon 0.8

    Exit status: 0 answered, 2 bad usage, 130 interrupted.
    """
    from accountant.cli.exit_status import parse_number
    from accountant.domains import DELTA, Interval
    from accountant.errors import ParameterError
    from audits.claims.arguments import CONFIDENCE
    from audits.known_densities.outcome_models import example_pairs, worst_outcome_pair
    from audits.known_densities.sample_size import runs_needed

    claimed = Interval(0.0, 50.0).check("--epsilon", parse_number(epsilon))
    true_epsilon = Interval(0.0, 50.0, "(]").check("--truth", parse_number(truth))
    checked_delta = DELTA.check("--delta", parse_number(delta))
    checked_confidence = CONFIDENCE.check("--confidence", parse_number(options.confidence))
    if name is None:
        if not true_epsilon > claimed:
            raise ParameterError("--truth", true_epsilon, f"above the claim, {claimed:g}")
        pairs = example_pairs(true_epsilon, checked_delta)
    else:
        from audits.runner.execution import select_cases
        from mechanisms import registry

        instances = {
            repr(mechanism): mechanism for kind in registry() for mechanism in kind.instances()
        }
        every = [case for case in select_cases([]) if case.subject in instances]
        mechanisms = [instances[case.subject] for case in select_cases([name], every)]
        pairs = [worst_outcome_pair(mechanism, claimed) for mechanism in mechanisms]
    needed = [
        [
            runs_needed(pair, claimed, checked_delta, 1 - checked_confidence, share)
            for share in POWERS
        ]
        for pair in pairs
    ]
    claim_shown = f"claim {claimed:g}" + (f", truth {true_epsilon:g}" if name is None else "")
    level = f"delta {checked_delta:g}, confidence {checked_confidence:g}"
    title = f"{claim_shown}, {level}: runs in all"
    _show_runs_needed(title, needed, options)


def _show_runs_needed(title: str, needed: list[list[RunsNeeded]], options: Options) -> None:
    """Print the table and write the JSON; ``needed`` has an entry for each pair and each power."""
    import dataclasses
    import json

    from accountant.files import write_text
    from audits.report.terminal import borderless_table, literal_text

    table = borderless_table(title)
    table.add_column("release", overflow="fold")
    for share in POWERS:
        table.add_column(f"limit, {share:.0%}", justify="right")
        table.add_column(f"guess test, {share:.0%}", justify="right")
    for entries in needed:
        counts = [
            _rounded_up_runs(runs) for entry in entries for runs in (entry.limit, entry.guess)
        ]
        cells = ["never" if count is None else f"{count:,}" for count in counts]
        table.add_row(literal_text(entries[0].name), *cells)
    screen = options.console()
    screen.print(table)
    screen.print(
        f"{POWERS[0]:.0%}, {POWERS[1]:.0%}: the probability of detecting the violation.",
        style="dim",
    )
    rows = [
        {
            **dataclasses.asdict(entry),
            "limit": _rounded_up_runs(entry.limit),
            "guess": _rounded_up_runs(entry.guess),
        }
        for entries in needed
        for entry in entries
    ]
    text = json.dumps({"schema": 1, "title": title, "needed": rows}, indent=2) + "\n"
    write_text(options.json, text)


def _rounded_up_runs(runs: float) -> int | None:
    """A number of runs to three digits, rounded up; None if it is infinite."""
    if not math.isfinite(runs):
        return None
    step: int = 10 ** max(0, math.floor(math.log10(max(runs, 1.0))) - 2)
    return step * math.ceil(runs / step)
