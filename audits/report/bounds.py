"""Lower bounds as a person reads them in a terminal, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console

from audits.minimax.checks.enumeration import Check
from audits.minimax.performance.answers import Answer, setting_in_words, size_in_words
from audits.minimax.performance.gap import Distance
from audits.report.terminal import plain_table, safe
from audits.report.words import number

ALGORITHM_HEAD = ("algorithm", "risk", "s.e.", "over the bound", "theorem", "no noise")
CHECK_HEAD = ("inequality", "closest case", "exact", "bound", "tight")
ALL_HEAD = ("problem", "bound", "published", "algorithm", "over the bound")
NO_CONSTRUCTION = "drawn anew for every data set"


def show(answers: Sequence[Answer], checks: Sequence[Check], console: Console) -> None:
    """Print one problem in full, or a table of several; then the checks."""
    if len(answers) == 1:
        _one(answers[0], console)
    else:
        table = plain_table("Lower bounds, and the algorithms of this project on their families")
        for name in ALL_HEAD:
            words = name in {"problem", "algorithm"}
            table.add_column(name, justify="left" if words else "right", no_wrap=name == "problem")
        for one in answers:
            for cells in summary(one):
                table.add_row(*map(safe, cells))
        console.print(table)
        console.print("bounds PROBLEM shows setting, construction and theorem.", style="dim")
    table = plain_table("Every inequality against channels that can be enumerated")
    for name in CHECK_HEAD:
        table.add_column(name, overflow="fold")
    for check in closest(checks):
        table.add_row(*map(safe, check_cells(check)))
    console.print()
    console.print(table)
    console.print(f"{sum(one.holds for one in checks)} of {len(checks)} checks hold")


def _one(answer: Answer, console: Console) -> None:
    table = plain_table(answer.problem, head=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for what, value in facts(answer):
        table.add_row(safe(what), safe(value))
    console.print(table)
    if answer.distances:
        table = plain_table("Algorithms of this project on the hard family")
        for place, name in enumerate(ALGORITHM_HEAD):
            table.add_column(name, justify="right" if place else "left")
        for one in answer.distances:
            table.add_row(*map(safe, algorithm_cells(one)))
        console.print()
        console.print(table)


def facts(answer: Answer) -> Iterable[tuple[str, str]]:
    """What there is to say of a bound, line by line."""
    bound = answer.bound
    yield "setting", setting_in_words(answer.setting)
    yield "bound", f"{number(bound.value)}: {bound.statement}"
    yield "published", number(bound.published)
    yield "construction", construction(answer)
    yield "chosen", bound.optimised_over
    yield "valid for", bound.valid_for
    if answer.users is not None:
        yield "users", f"fewer than {answer.users:,} cannot reach {answer.error:g}"


def construction(answer: Answer) -> str:
    """The hard family in words."""
    family = answer.bound.construction
    if family is None:
        return NO_CONSTRUCTION
    shown = repr(family)
    kind = shown if len(shown) < 120 else type(family).__name__
    return f"{kind}: {size_in_words(family.points)} points, {family.separation:.4g} apart"


def summary(answer: Answer) -> Iterable[list[str]]:
    """One line for each algorithm of a problem, or one without; see `ALL_HEAD`."""
    start = [answer.problem, number(answer.bound.value), number(answer.bound.published)]
    if not answer.distances:
        yield [*start, "-", "-"]
    for one in answer.distances:
        yield [*start, one.algorithm, number(one.ratio, ".3g")]


def algorithm_cells(one: Distance) -> list[str]:
    """See `ALGORITHM_HEAD`."""
    risk, error = one.risk
    ratio = number(one.ratio, ".3g")
    return [one.algorithm, number(risk), number(error, ".2g"), ratio, number(one.promise),
            number(one.free[0])]  # fmt: skip


def check_cells(check: Check) -> list[str]:
    """See `CHECK_HEAD`."""
    tight = f"{check.tightness:.3f}" if check.holds else "VIOLATED"
    return [check.claim, check.case, number(check.exact), number(check.bound), tight]


def closest(checks: Sequence[Check]) -> list[Check]:
    """Of every claim the check nearest to its bound, and all that fail."""
    best: dict[str, Check] = {}
    for one in checks:
        if one.claim not in best or one.tightness > best[one.claim].tightness:
            best[one.claim] = one
    return [one for one in checks if not one.holds or best[one.claim] is one]


def as_document(answers: Sequence[Answer], checks: Sequence[Check], seed: int) -> dict[str, Any]:
    """The same for programs."""
    return {
        "schema": 1,
        "seed": seed,
        "bounds": [_bound(one) for one in answers],
        "checks": [
            {"claim": one.claim, "case": one.case, "exact": one.exact, "bound": one.bound,
             "holds": one.holds} for one in checks
        ],
    }  # fmt: skip


def _bound(answer: Answer) -> dict[str, Any]:
    bound, family = answer.bound, answer.bound.construction
    kind = None
    if family is not None:
        # a number of points may have more digits than programs read
        kind = {"kind": type(family).__name__, "points": size_in_words(family.points),
                "separation": float(family.separation)}  # fmt: skip
    return {
        "problem": answer.problem, "setting": answer.setting, "value": bound.value,
        "published": bound.published, "statement": bound.statement, "valid_for": bound.valid_for,
        "optimised_over": bound.optimised_over, "construction": kind, "error": answer.error,
        "users": answer.users, "algorithms": [_algorithm(one) for one in answer.distances],
    }  # fmt: skip


def _algorithm(one: Distance) -> dict[str, Any]:
    risk, error = one.risk
    free, free_error = one.free
    found = {
        "name": one.algorithm, "runs": len(one.losses), "risk": risk, "standard_error": error,
        "free": free, "free_standard_error": free_error, "promise": one.promise,
        "ratio": one.ratio,
    }  # fmt: skip
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in found.items()
    }
