"""``dp-attest account verify``: check a proof of a plan's epsilon in ball arithmetic."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from accountant.cli.options import Force, Json, Runs, print_report, repeated, write_json
from accountant.cli.vocabulary import option

if TYPE_CHECKING:
    from accountant.verifier import Verdict

UNPROVED = 1  # exit status if a claim was not proved
MOST_PARTS = 12  # parts of a plan that are printed at most
WIDTH = 100  # characters in a line of the table of mechanisms


def verify(
    proof: Annotated[
        str | None,
        typer.Argument(metavar="PROOF", help="The proof to check, which `certify --out` wrote."),
    ] = None,
    plan: Annotated[
        str | None,
        option("plan", "Refuse the proof unless it is of the plan in PLAN, .toml or .json."),
    ] = None,
    runs: Runs = None,
    mechanisms: Annotated[
        bool,
        typer.Option(
            "--mechanisms", help="Prove what each mechanism claims of its own loss; give no PROOF."
        ),
    ] = False,
    json: Json = None,
    force: Force = False,
) -> None:
    """Check a proof of a plan's epsilon: prove both of its ends again, in ball arithmetic.

    The checker is code of its own, in accountant/verifier, on python-flint. It
    reads nothing but numbers from the file, and computes from the plan's definition what they
    claim. It says one of

    \b
      PROVED        epsilon is at least the lower and at most the upper end
      PROVED UPPER  epsilon is at most the upper end: the privacy claim holds
      NOT PROVED    and which step failed; the claim may be true or false

    Read the plan that it prints, or give --plan: a proof says nothing of another plan. Of a
    mechanism that the checker does not know, a proof takes the loss that the mechanism claims; it
    says so, and --mechanisms says which of these claims are proved.

    With --mechanisms the checker proves for each mechanism, at some epsilons, that delta of its
    density is what it claims, and that the integers of its exact draws add up.

    Examples: dp-attest account verify cost.proof.json;
    dp-attest account verify cost.proof.json --plan plan.toml --json -;
    dp-attest account verify --mechanisms

    Exit status: 0 PROVED or PROVED UPPER; 1 NOT PROVED (one mechanism is enough); 2 the file is no
    proof, or of another plan than --plan, or of what a mechanism does not claim, or bad usage; 130
    interrupted.
    """  # fmt: skip  # \b keeps typer from filling the lines
    import time

    from accountant.cli.progress import waiting
    from accountant.errors import ParameterError
    from accountant.formatting import escape_control
    from accountant.proofs.checked_proof import NOT_PROVED, read_proof, verdict_on
    from accountant.proofs.claimed_losses import refuse_other_claims

    if mechanisms:
        _verify_mechanisms(proof or plan or runs, json)
        return
    if proof is None:
        raise ParameterError("PROOF", None, "a file that `certify --out` wrote; or --mechanisms")
    if plan is None and runs is not None:
        raise ParameterError("--runs", runs, "given with --plan")
    document, start = read_proof(proof), time.perf_counter()
    with waiting("checking"):
        verdict = verdict_on(document)
    seconds = time.perf_counter() - start
    if plan is None:
        refuse_other_claims(verdict.plan, decimal=verdict.delta == 0)
    else:
        _refuse_other_plan(verdict, plan, runs)
    digest_line = f"{len(document):,} bytes, SHA-256 {verdict.digest}, checked in {seconds:.1f} s"
    lines = map(escape_control, [*_verdict_lines(verdict, plan), digest_line])
    print_report("\n".join(lines), json)
    facts = {
        "verdict": verdict.word,
        "reason": verdict.reason,
        "delta": verdict.delta,
        "lower": verdict.lower,
        "upper": verdict.upper,
        "plan": verdict.plan,
        "sha256": verdict.digest,
        "bytes": len(document),
        "seconds": seconds,
    }
    write_json(json, facts)
    if verdict.word == NOT_PROVED:
        raise typer.Exit(UNPROVED)


def _verify_mechanisms(other_argument: str | None, json: str | None) -> None:
    """Prove what all mechanisms claim, and show it."""
    from accountant.cli.progress import waiting
    from accountant.errors import ParameterError
    from accountant.proofs.checked_proof import NOT_PROVED, refuse_without_flint

    if other_argument is not None:
        raise ParameterError(
            "--mechanisms", other_argument, "given without PROOF, --plan and --runs"
        )
    refuse_without_flint()
    with waiting("proving"):
        rows = list(_mechanism_verdicts())
    print_report("\n".join(_table_lines(rows)), json)
    write_json(json, {"mechanisms": rows})
    if any(row["verdict"] == NOT_PROVED for row in rows):
        raise typer.Exit(UNPROVED)


def _refuse_other_plan(verdict: Verdict, plan: str, runs: str | None) -> None:
    """Raise `ParameterError` unless a proof is of the plan of a file."""
    from accountant.errors import ParameterError
    from accountant.formats.plan_toml import read_plan
    from accountant.proofs.claimed_losses import proof_plan
    from accountant.verifier.plan_parts import same_plan, shown_parts

    whole_plan = repeated(read_plan(plan), runs)
    if not same_plan(verdict.plan, proof_plan(whole_plan, decimal=verdict.delta == 0)):
        shown = " + ".join(shown_parts(verdict.plan)[:MOST_PARTS]) or "nothing"
        raise ParameterError("--plan", plan, f"the plan of the proof, {shown}")


def _verdict_lines(verdict: Verdict, plan_name: str | None) -> Iterator[str]:
    """Yield the verdict, what the plan of the proof releases, and whose claims the proof takes."""
    from accountant.proofs.checked_proof import NOT_PROVED, claimed_words
    from accountant.verifier.plan_parts import shown_parts, words_of_claims

    if verdict.word == NOT_PROVED:
        yield f"{verdict.word}: {verdict.reason}"
        yield f"so it is open whether {claimed_words(verdict)}"
    else:
        yield f"{verdict.word}: {claimed_words(verdict)}"
    if plan_name is not None:
        yield f"this plan is that of {plan_name}"
    else:
        parts = shown_parts(verdict.plan)
        yield from (f"this plan releases {part}" for part in parts[:MOST_PARTS] or ["nothing"])
        if len(parts) > MOST_PARTS:
            yield f"and {len(parts) - MOST_PARTS:,} other parts, which --json shows"
    if claims := words_of_claims(verdict.plan):
        yield claims


def _mechanism_verdicts() -> Iterator[dict[str, Any]]:
    """Yield for each declared mechanism what balls proved of its claim, as plain values."""
    from accountant.proofs.checked_proof import NOT_PROVED
    from accountant.proofs.mechanism_claims import claim_of, declared_mechanisms
    from accountant.verifier.mechanisms import check

    for mechanism in declared_mechanisms():
        printed = repr(mechanism).partition("(")  # the class, "(", and the parameters with ")"
        row = {"mechanism": printed[0], "parameters": printed[2].removesuffix(")")}
        if mechanism.why_no_formula:
            yield row | {
                "epsilons": [],
                "verdict": "no formula",
                "reason": mechanism.why_no_formula,
            }
            continue
        try:
            claim = claim_of(mechanism)
        except (TypeError, ValueError) as error:  # a mechanism of another package
            reason = f"its claim is not in numbers: {error}"
            yield row | {"epsilons": [], "verdict": NOT_PROVED, "reason": reason}
            continue
        word, reason = check(claim)
        grid = [epsilon for epsilon, _ in claim["profile"]]
        integers = sum(len(table.get("ends", ())) for table in claim["tables"])
        integers += len(claim["parameters"].get("words", ()))
        yield row | {
            "epsilons": grid,
            "densities": len(claim["densities"]),
            "integers": integers,
            "verdict": word,
            "reason": reason,
        }


def _table_lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the table: mechanism, parameters, epsilons and verdict, or why there is no formula."""
    proved = [row for row in rows if row["epsilons"]]
    width = max((len(row["mechanism"]) for row in rows), default=0)
    for row in proved:
        grid = row["epsilons"]
        counts = f"{len(grid)} epsilons from {grid[0]:.3g} to {grid[-1]:.3g}"
        counts += f", {row['densities']} outputs"
        counts += f", {row['integers']:,} integers" if row["integers"] else ""
        yield f"{row['verdict']:<12}  {row['mechanism']:<{width}}  {counts}"
        space = " " * (14 + width + 2)
        for text in filter(None, (row["parameters"], row["reason"])):
            yield from textwrap.wrap(text, WIDTH, initial_indent=space, subsequent_indent=space)
    others = [
        (row["verdict"], row["mechanism"], row["reason"]) for row in rows if not row["epsilons"]
    ]
    for word, name, reason in dict.fromkeys(others):
        yield f"{word:<12}  {name:<{width}}  {reason}"
