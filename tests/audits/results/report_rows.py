"""Rows and results as a report gets them."""

from audits.claims.findings import Outcome
from audits.results.result_file import Request, Result
from audits.results.rows import ProfileCurve, ReportRow

CURVE = ProfileCurve(
    (0.0, 0.5, 1.0),
    (0.6, 0.3, 0.0),
    (0.6, 0.3, 0.0),
    (0.6, 0.3, 0.0),
    (0.5, 0.2, 0.0),
    (0.7, 0.4, 0.1),
)


def row(subject="x", wrong=False, **more):
    given = {
        "kind": "mechanism", "claim": (1.0, 0.0), "exact_epsilon": 1.0, "epsilon_lower": 0.9,
        "confidence": 0.95, "runs": 100, "outcome": Outcome.FALSIFIED if wrong else
        Outcome.SURVIVED, "expected": Outcome.SURVIVED, "witness": f"saw {subject}",
        "evidence": subject, "seconds": 0.25, "verdict_lower": 0.8,
        "guesses": (7, 9, 80), "curve": CURVE, **more,
    }  # fmt: skip
    return ReportRow(subject, **given)


def result(*rows, names=(), absent=None):
    request = Request("run", tuple(names), 100, 0.95, 7)
    return Result(request, list(rows), {"python": "3"}, absent or {})
