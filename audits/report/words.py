"""Titles, numbers, claims, confidences and curves as every form of an audit's report shows them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from accountant.formatting import format_short
from audits.results.rows import FAMILY_ERROR, ProfileCurve, ReportRow

TITLES = {
    "mechanism": "Declared mechanisms: claimed, exact, attacked",
    "bits": "Floating-point leak test (float samplers must fail, exact ones must pass)",
    "specimen": "Mechanisms and algorithms broken on purpose (each must be caught)",
    "algorithm": "Algorithms: replayed and attacked",
    "paper": "Published claims: printed, provable, attacked",
    "library": "Other libraries: known faults (must be found), sound controls (must survive)",
    "target": "Your function",
    "scores": "One training run, by the scores of its canaries",
    "record": "Your function, recorded, and replayed on a neighbour",
}
CLOSING = "SURVIVED means that the runs saw no violation. It is no proof of privacy."
PROFILE_HEAD = ("epsilon", "empirical delta", "band", "accountant's delta")
# A curve is shown at the epsilons nearest to these shares of its greatest one.
SHOWN_SHARES = (0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0)
# `FAMILY_ERROR` in words: the error probability that all verdicts of a run share.
ERROR_SENTENCE = "The chance that any verdict here is wrong is at most one in a million."


def title_of(kind: str) -> str:
    """The title above the rows of a kind; the kind itself if it has none."""
    return TITLES.get(kind, kind)


def format_percent(confidence: float) -> str:
    """A confidence as a percentage."""
    return f"{100 * confidence:.6g} %"


def format_number(x: float | None, digits: str = ".4g") -> str:
    """A number, or a dash if it is None or NaN."""
    return "-" if x is None or math.isnan(x) else format(x, digits)


def format_bound(x: float | None, decimals: int = 4) -> str:
    """A lower bound, rounded down; a dash if there is none."""
    if x is None or not math.isfinite(x):
        return format_number(x)
    text = f"{x:.{decimals}f}"
    return text if float(text) <= x else f"{x - 10.0**-decimals:.{decimals}f}"


def claim_text(claim: tuple[float, float]) -> str:
    """A claim in one cell: epsilon, and delta if there is one."""
    epsilon, delta = claim
    shown = f", {format_short(float(f'{delta:.4g}'))}" if delta > 0 else ""
    return format_number(epsilon) + shown


def bound_percent(rows: Sequence[ReportRow]) -> str:
    """The confidence of the bounds in a table: that of all verdicts together, or of scores."""
    one_run = bool(rows) and all(row.kind == "scores" for row in rows)
    return format_percent(rows[0].confidence if one_run else 1 - FAMILY_ERROR)


def error_sentence(rows: Sequence[ReportRow]) -> str:
    """How sure the verdicts are: those on scores are as sure as their bounds."""
    if rows and all(row.kind == "record" for row in rows):
        return "A recorded run compares two runs draw by draw: its findings are in the code."
    if not rows or any(row.kind != "scores" for row in rows):
        return ERROR_SENTENCE
    return f"A true claim survives with probability {format_percent(rows[0].confidence)} at least."


def profile_rows(curve: ProfileCurve) -> list[list[str]]:
    """A line for each of `SHOWN_SHARES`: epsilon, empirical delta, its band, accountant's delta."""
    largest_epsilon, lines = curve.epsilon[-1], []
    for share in SHOWN_SHARES:
        index = min(
            range(len(curve.epsilon)), key=lambda i: abs(curve.epsilon[i] - share * largest_epsilon)
        )
        band = f"[{curve.lower[index]:.1e}, {curve.upper[index]:.1e}]"
        lines.append(
            [
                f"{curve.epsilon[index]:.2f}",
                f"{curve.mean[index]:.2e}",
                band,
                f"{curve.claimed[index]:.2e}",
            ]
        )
    return lines
