"""``python -m accountant verify --mechanisms``: what mechanisms claim, proved with balls."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

WIDTH = 100


def verdicts() -> Iterator[dict[str, Any]]:
    """Yield for each declared mechanism what was proved of it, as plain values."""
    from accountant.proofs.checked_proof import NOT_PROVED
    from accountant.proofs.mechanism_claims import claim_of, declared_mechanisms
    from accountant.verifier.mechanisms import check

    for mechanism in declared_mechanisms():
        printed = repr(mechanism).partition("(")
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


def shown_lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the table: mechanism, parameters, epsilons and verdict, or why there is no formula."""
    proved = [row for row in rows if row["epsilons"]]
    width = max((len(row["mechanism"]) for row in rows), default=0)
    for row in proved:
        grid = row["epsilons"]
        much = f"{len(grid)} epsilons from {grid[0]:.3g} to {grid[-1]:.3g}"
        much += f", {row['densities']} outputs"
        much += f", {row['integers']:,} integers" if row["integers"] else ""
        yield f"{row['verdict']:<12}  {row['mechanism']:<{width}}  {much}"
        yield from _wrapped(row["parameters"], 14 + width + 2)
        if row["reason"]:
            yield from _wrapped(row["reason"], 14 + width + 2)
    others = [
        (row["verdict"], row["mechanism"], row["reason"]) for row in rows if not row["epsilons"]
    ]
    for word, name, reason in dict.fromkeys(others):
        yield f"{word:<12}  {name:<{width}}  {reason}"


def _wrapped(text: str, indent: int) -> list[str]:
    space = " " * indent
    return textwrap.wrap(text, WIDTH, initial_indent=space, subsequent_indent=space)
