"""``dp-attest audit scores``: one training run, audited by the scores of its canaries."""

from __future__ import annotations

from typing import Annotated

import typer

from accountant.cli.vocabulary import option
from audits.cli.options import FILES, Options, takes


@takes("confidence", "seed", *FILES, "baseline", "strict")
def scores(
    inside: Annotated[
        str,
        typer.Argument(metavar="INSIDE.npy", help="Scores of the canaries that were in the data."),
    ],
    outside: Annotated[
        str,
        typer.Argument(metavar="OUTSIDE.npy", help="Scores of the canaries that were left out."),
    ],
    epsilon: Annotated[
        str | None, option("epsilon", "The epsilon that is claimed, with --delta.")
    ] = None,
    delta: Annotated[
        str | None, option("delta", "The delta of the claim and of the bound.")
    ] = None,
    mu: Annotated[
        str | None, typer.Option(metavar="M", help="The claim is the curve of GaussianLoss(mu).")
    ] = None,
    plan: Annotated[
        str | None, option("plan", "The claim is the curve of the plan in PLAN.")
    ] = None,
    split: Annotated[
        str,
        typer.Option(
            metavar="HOW", help="coins, or fixed: a fixed number inside, drawn at random."
        ),
    ] = "coins",
    *,
    options: Options,
) -> None:
    """Audit one training run from the scores of its canaries, inside and outside of its data.

    Before training, a fair coin decides for each of many canaries whether it goes into the data
    (audits.Canaries flips them and hands them to any trainer). After training, each canary gets a
    score from what was released, such as minus its loss, or the product of the sum of noisy
    gradients with its own; greater says "in the data". The most extreme scores are guessed, and
    the others abstain. How many to guess is decided without a look at who was in.

    The bound on epsilon holds for any training, also if one noise is in all scores. --mu and --plan
    test a claim by its whole curve, which proves more than its epsilon at one delta. Without a
    claim the bound alone is printed. --split fixed is for trainers that drew exactly so many
    canaries: their coins are not independent, and the claim is then one of replaced records.

    Examples: dp-attest audit scores inside.npy outside.npy --epsilon 8 --delta 1e-5;
    dp-attest audit scores inside.npy outside.npy --mu 1 --delta 1e-5 --out run.html

    Exit status: 0 survived, 1 falsified, 2 bad usage or input, 3 inconclusive under --strict,
    130 interrupted.
    """
    from accountant.cli.exit_status import parse_number
    from audits.claims.arguments import CONFIDENCE
    from audits.cli.perform import check_resume, parse_seed, run_and_report
    from audits.results.result_file import Request
    from audits.runner.scores import ScoresRequest, count_scores, scores_cases

    level = CONFIDENCE.check("--confidence", parse_number(options.confidence))
    seed = parse_seed(options)
    extra_options = {"epsilon": epsilon, "delta": delta, "mu": mu, "plan": plan, "split": split}
    check_resume(options)
    unsized_request = Request("scores", (inside, outside), 0, level, seed, False, extra_options)
    todo = scores_cases(ScoresRequest.from_request(unsized_request))
    count = count_scores(unsized_request.names)
    request = Request("scores", (inside, outside), count, level, seed, False, extra_options)
    run_and_report("scores", todo, request, 1, options)
