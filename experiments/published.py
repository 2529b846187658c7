"""The page of published epsilons: what a record states, and what follows from it, from both sides.

The facts are in `published.toml`, each with its source.  Every row is computed as an interval that
contains the true epsilon of its plan, and proved in ball arithmetic; the page shows the digest of
the proof, whose bytes are the same wherever it is written.
"""

from __future__ import annotations

import math
import textwrap
import tomllib
from collections.abc import Callable, Iterator
from importlib import resources
from typing import Any

from accountant.accountants.tight import Tight
from accountant.formatting import format_lower, format_short, format_upper
from accountant.losses.gaussian import GaussianLoss
from accountant.plans.plan import Plan
from accountant.proofs.checked_proof import CheckedProof, proof_of_claim
from accountant.serialisation.plan_json import from_dict
from experiments.charts import Options
from mechanisms.base.marked_table import markdown_table

WIDTH, DIGITS, DIGEST = 100, 6, 12  # characters of a line; digits of an epsilon and of a digest
INTRODUCTION = """\
# Published epsilons, recomputed

This page was made by `python -m experiments published > docs/published.md` from the facts in
`experiments/published.toml`. For each record it says what the record states, what follows from the
numbers in it, and what we do not know. It is about the stated numbers alone: no code was run.

"Recomputed" is an interval that contains the least ε of the plan beside it at the stated δ. Of a
plan "as zCDP" the lower end is what Gaussian noise of this ρ costs, and the upper end holds for
every mechanism of it. `accountant/verifier` checked the proof of each interval; its digest is
SHA-256, and `Tight().certify(plan, delta, proof=FILE)` writes the same bytes. A stated ε below the
interval does not follow from the record; one above it is valid, and larger than it must be.

"""


def published(_: Options) -> Iterator[str]:
    """Yield the lines of docs/published.md."""
    yield from INTRODUCTION.splitlines()
    for number, record in enumerate(records()):
        yield from [""] * (number > 0)
        yield from (f"## {record['name']}", "")
        rows = [
            (
                row["what"],
                format_short(row["delta"]),
                row.get("stated", "-"),
                interval(checked := recomputed(row)),
                verdict_on(row, checked),
                f"{checked.verdict.word}, {checked.verdict.digest[:DIGEST]}",
            )
            for row in record["rows"]
        ]
        heads = ("what", "δ", "stated ε", "recomputed ε", "so the stated one", "proof")
        yield from (*markdown_table(heads, rows).rstrip("\n").splitlines(), "")
        for heading, name in (
            ("The record says", "says"), ("What follows", "follows"),
            ("What we do not know", "unknown"), ("Source", "source"),
        ):  # fmt: skip
            sentence = f"- {heading}: {record[name]}"
            yield from textwrap.wrap(
                sentence, WIDTH, subsequent_indent="  ", break_long_words=False,
                break_on_hyphens=False,
            )  # fmt: skip


def records() -> list[dict[str, Any]]:
    """Return the facts of the published records."""
    text = (resources.files("experiments") / "published.toml").read_text(encoding="utf-8")
    listed: list[dict[str, Any]] = tomllib.loads(text)["record"]
    return listed


def recomputed(row: dict[str, Any]) -> CheckedProof:
    """Return the proof of the interval that contains the epsilon of a row."""
    delta = row["delta"]
    if "gaussian" in row:
        noise = row["gaussian"]
        variance_share = 1 - noise.get("less_variance", 0.0)
        plan: Plan = GaussianLoss(math.sqrt(2 * noise["rho"] / variance_share))
    else:
        plan = from_dict(row["plan"])
    certificate = Tight().certify(plan, delta)
    return proof_of_claim(plan, delta, certificate.lower, certificate.upper)


def interval(checked: CheckedProof) -> str:
    """Return the proved interval in words; one number where both ends look the same."""
    verdict = checked.verdict
    lower, upper = format_lower(verdict.lower, DIGITS), format_upper(verdict.upper, DIGITS)
    return lower if lower == upper else f"{lower} to {upper}"


def verdict_on(row: dict[str, Any], checked: CheckedProof) -> str:
    """Return how a stated epsilon stands to the proved interval.

    A stated number is taken as rounded to its last digit.
    """
    if "stated" not in row:
        return "-"
    stated, verdict = float(row["stated"]), checked.verdict
    half_digit = 10.0 ** -len(row["stated"].partition(".")[2]) / 2
    if stated + half_digit < verdict.lower:
        return "does not follow: below the interval"
    if stated - half_digit > verdict.upper:
        return "is valid, and larger than it must be"
    if stated >= verdict.upper:
        return "is valid"
    return "fits, as a rounded number" if stated + half_digit >= verdict.upper else "is not shown"


FIGURES: dict[str, Callable[..., Any]] = {"published": published}
