"""A recorded run as a row of a report, so that it can be written in every format."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from audits.claims.findings import OTHER_PAIRS, SIDE_EFFECTS, TIMING, NotTested, Outcome
from audits.recorded_runs.verdict import Recorded
from audits.results.project_code import Place, place_of, shown_path
from audits.results.rows import ReportRow


def recorded_row(
    recorded: Recorded, name: str, function: Callable[..., Any], seconds: float
) -> ReportRow:
    """The row of a run of the function with this name; each finding is a place with a sentence.

    A finding on the whole run is at the definition of the function.
    """
    definition = place_of(function) or Place("", 1)
    places = []
    for finding in recorded.findings:
        path, _, line = finding.site.rpartition(":")
        here = Place(shown_path(Path(path)), int(line)) if path and line.isdigit() else definition
        places.append(here._replace(sentence=f"{finding.kind}: {finding.sentence}"))
    costs = {"cost of this pair": recorded.cost, "declared cost": recorded.declared_cost}
    facts = {
        **{label: f"epsilon {cost:.4g}" for label, cost in costs.items() if cost is not None},
        "at delta": f"{recorded.delta:g}",
        "recorded draws": f"{recorded.draws:,}",
    }
    outcome = recorded.outcome
    heading = str(recorded).splitlines()[0]
    undecided = outcome is Outcome.INCONCLUSIVE
    reasons = (
        recorded.unchecked or tuple(code_place.sentence for code_place in places) or (heading,)
    )
    return ReportRow(
        subject=name,
        kind="record",
        claim=(math.nan if recorded.claimed is None else recorded.claimed, recorded.delta),
        exact_epsilon=None,
        epsilon_lower=None,
        confidence=1.0,  # it has no bound by chance
        runs=1,
        outcome=outcome,
        expected=Outcome.SURVIVED,
        witness="; ".join([heading, *(str(finding) for finding in recorded.findings)]),
        evidence=heading,
        seconds=seconds,
        facts=tuple(facts.items()),
        unseen=reasons if undecided else (),
        notes=() if undecided else tuple(f"unchecked: {note}" for note in recorded.unchecked),
        not_tested=(
            NotTested(TIMING, "audit_timing looks at it"),
            NotTested(OTHER_PAIRS, "one pair of data sets was tried"),
            NotTested(SIDE_EFFECTS, "files, network, globals"),
        ),
        places=tuple(places) or (definition,),
    )
