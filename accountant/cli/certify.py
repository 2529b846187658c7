"""``dp-attest account certify``: the interval of a plan's epsilon, and a proof of it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

from accountant.cli.exit_status import CommandFailed
from accountant.cli.options import (
    Delta,
    Force,
    Json,
    PlanName,
    Runs,
    delta_of,
    print_report,
    repeated,
    write_json,
)
from accountant.cli.vocabulary import option

if TYPE_CHECKING:
    from accountant.composition.certificate import Certificate
    from accountant.proofs.checked_proof import CheckedProof

NO_PROOF = 1  # exit status if no proof could be written for the plan


def certify(
    plan: PlanName,
    delta: Delta = None,
    out: Annotated[
        str | None,
        option(
            "out",
            "Write the proof to FILE, for example cost.proof.json.",
            old="proof",
            value="FILE",
        ),
    ] = None,
    runs: Runs = None,
    force: Force = False,
    json: Json = None,
) -> None:
    """Say between which two numbers the epsilon of a plan lies, and write a proof of both.

    The proof is a small JSON file. It holds the plan, delta, both ends, and the numbers that a
    checker needs to compute both ends again, in ball arithmetic: no number of it has to be
    trusted. Give it to those who rely on epsilon; they check it without the code that made it.
    With --out the ends shown are those that it proves, for some plans up to about 1e-5 of
    epsilon wider.

    Example:

    \b
      dp-attest account certify plan.toml --delta 1e-6 --out cost.proof.json
      dp-attest account verify cost.proof.json --plan plan.toml

    Delta is that of the file's budget, or of --delta. With --runs N the plan is taken N times, for
    a book of which `ledger open --runs N` reserves N runs.

    Exit status: 0 answered, and written where --out was given; 1 there is no proof for such a
    plan, 2 bad usage or a bad plan file, 130 interrupted.
    """  # fmt: skip  # \b keeps typer from filling the lines
    from dataclasses import replace
    from pathlib import Path

    from accountant.accountants.tight import Tight
    from accountant.cli.progress import waiting
    from accountant.errors import UnsupportedPlan
    from accountant.files import write_atomically
    from accountant.formats.plan_toml import read_file, read_plan
    from accountant.proofs.checked_proof import proof_of_claim, refuse_without_flint

    if out is not None:
        refuse_without_flint()
    whole_plan, at = repeated(read_plan(plan), runs), delta_of(read_file(plan), delta)
    with waiting("computing"):
        certificate = Tight().certify(whole_plan, at)
    checked = None
    try:
        if out is not None:
            with waiting("writing and checking the proof"):
                checked = proof_of_claim(whole_plan, at, certificate.lower, certificate.upper)
            write_atomically(Path(out), checked.document)
            certificate = replace(
                certificate, lower=checked.verdict.lower, upper=checked.verdict.upper
            )
    except UnsupportedPlan as error:
        raise CommandFailed(f"no proof was written: {error.instead}", NO_PROOF) from None
    report, facts = _report(certificate, at, out, checked)
    print_report(report, json)
    write_json(json, facts)


def _report(
    certificate: Certificate, delta: float, out: str | None, checked: CheckedProof | None
) -> tuple[str, dict[str, Any]]:
    """Return what to print of the certificate and the written proof, and the same for JSON."""
    from accountant.proofs.checked_proof import shown_delta

    report = f"at delta {shown_delta(delta)} {certificate}"
    facts = {
        "delta": delta,
        "lower": certificate.lower,
        "upper": certificate.upper,
        "engine": certificate.engine,
        "terms": certificate.nodes,
    }
    if checked is None:
        return report, facts
    verdict, size = checked.verdict, len(checked.document)
    report += f"\nwrote {out}: {size:,} bytes, SHA-256 {verdict.digest}, {verdict.word}"
    report += f": {verdict.reason}" * bool(verdict.reason)
    report += f"\n{checked.claims}" * bool(checked.claims)
    report += f"\ncheck it: dp-attest account verify {shlex.quote(str(out))}"
    return report, {**facts, "proof": {"file": out, "bytes": size, **checked.facts()}}
