"""The scorecard of the zoo as a JSON file, from which an interrupted scoring can continue."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

from accountant.errors import ParameterError
from audits.claims.findings import Outcome
from audits.results.result_file import MALFORMED, SCHEMA, Request, load_document, request_of
from audits.zoo.scorecard import SpecimenScore


def to_json(request: Request, scores: list[SpecimenScore]) -> str:
    """The scores and their request as text; infinite and NaN numbers become null."""

    def encoded(value: Any) -> Any:
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        return value.name.lower() if isinstance(value, Outcome) else value

    contents = {
        "schema": SCHEMA,
        "seed": request.seed,
        "runs": request.samples,
        "confidence": request.confidence,
        "repeats": request.options["repeats"],
        "request": {**dataclasses.asdict(request), "names": list(request.names)},
        "command": request.repeat_command,
        "scores": [
            {name: encoded(value) for name, value in dataclasses.asdict(score).items()}
            for score in scores
        ],
    }
    return json.dumps(contents, indent=2, allow_nan=False) + "\n"


def read_scores(path: str, argument: str) -> tuple[Request, list[SpecimenScore]]:
    """The request and the scores in a file, or `ParameterError`."""
    contents = load_document(path, argument)
    try:
        request, scores = request_of(contents), []
        for score in contents["scores"]:
            sides = {name: Outcome[score[name].upper()] for name in ("outcome", "expected")}
            claim = math.nan if score["claim"] is None else score["claim"]
            scores.append(SpecimenScore(**{**score, **sides, "claim": claim}))
    except MALFORMED:
        allowed = "scores of schema 1 with their request, written by zoo --json"
        raise ParameterError(argument, path, allowed) from None
    return request, scores
