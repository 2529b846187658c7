"""The report as SARIF 2.1.0, which code scanning shows beside the lines of the audited code.

What needs a look is a result: a falsified claim and a known fault that was not found are errors, a
part that was not looked into is a warning, too few runs are a note.  What survived is none, as a
list of results is read as a list of faults.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from accountant.formatting import escape_control
from audits.claims.findings import Outcome
from audits.report.summary import not_tested_sentence, violation
from audits.report.words import error_sentence
from audits.results.project_code import Place
from audits.results.result_file import Result
from audits.results.rows import ReportRow

# The official schema, by which editors know the format.
SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
ROOT = "%SRCROOT%"  # what the paths of files start from, as viewers of SARIF know it
MAX_TEXT = 1000  # characters of a message: a witness may be long
FALSIFIED, MISSED = "falsified-claim", "known-fault-not-found"
UNSEEN, FEW_RUNS = "not-looked-into", "too-few-runs"
# For each rule its level, what it says in short, and what to do.
RULES = {
    FALSIFIED: (
        "error",
        "The code costs more privacy than it claims.",
        "An attacker told two neighbouring inputs apart more often than the claimed epsilon and "
        "delta allow, or a run on the neighbour showed the data without enough noise. Read the "
        "message for what gave the data away. Then add noise, clip what is summed, or claim a "
        "larger epsilon. `dp-attest audit replay` runs the same audit again from its JSON file.",
    ),
    MISSED: (
        "error",
        "A subject that is known to break its claim was not caught.",
        "The audit has lost power, or the fault was mended. Audit with more runs; if the fault is "
        "mended, say so where it is listed.",
    ),
    UNSEEN: (
        "warning",
        "A part of the output was not looked into.",
        "The audit saw no violation, but it cannot read a part of what the function returns, and "
        "does not know whether it reveals the data. Return numbers, texts or plain containers, or "
        "leave that part out.",
    ),
    FEW_RUNS: (
        "note",
        "The runs would not have seen half of the noise.",
        "The audit saw no violation, but a release with half the noise would have passed as well. "
        "Use the number of runs that the message names, with `--runs`.",
    ),
}


def to_sarif(result: Result) -> str:
    """The document as text: one run, whose rules have help, with a result for each that fired."""
    names = list(RULES)
    request = result.request
    results = []
    for row in result.rows:
        epsilon, delta, lower = row.claim[0], row.claim[1], row.verdict_lower
        numbers = {"claimedEpsilon": epsilon, "claimedDelta": delta, "epsilonLower": lower}
        # JSON has no word for other numbers.
        finite = {name: x for name, x in numbers.items() if x is not None and math.isfinite(x)}
        for rule, text, code_place, fingerprint in fired_rules(row):
            sarif_result: dict[str, Any] = {
                "ruleId": rule,
                "ruleIndex": names.index(rule),
                "level": RULES[rule][0],
                "message": {"text": text},
                "partialFingerprints": {"subject/v1": fingerprint},
                "properties": {**finite, "runs": row.runs, "outcome": row.outcome.name.lower()},
            }
            if code_place is not None and code_place.path:  # a builtin has no file
                file = {"uri": quote(code_place.path, errors="replace"), "uriBaseId": ROOT}
                physical = {"artifactLocation": file, "region": {"startLine": code_place.line}}
                sarif_result["locations"] = [{"physicalLocation": physical}]
            if row.compared is not None:
                sarif_result["baselineState"] = row.compared.state
            results.append(sarif_result)
    driver = {
        "name": "dp-attest",
        "version": result.versions.get("dp-attest", "unknown"),
        "rules": [
            {
                "id": name,
                "name": "".join(word.capitalize() for word in name.split("-")),
                "shortDescription": {"text": short},
                "fullDescription": {"text": advice},
                "help": {"text": advice, "markdown": advice},
                "defaultConfiguration": {"level": level},
                "properties": {"tags": ["privacy"]},
            }
            for name, (level, short, advice) in RULES.items()
        ],
    }
    invocation: dict[str, Any] = {
        "executionSuccessful": True,
        "commandLine": escape_control(request.repeat_command),
    }
    if result.date:
        invocation["endTimeUtc"] = result.date.replace(" ", "T").replace("+00:00", "Z")
    # Reports of one commit with other names stand side by side in code scanning.
    category = "/".join(["dp-attest", request.command, *request.names])
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"{escape_control(category)}/"},
        "originalUriBaseIds": {ROOT: {"description": {"text": "the folder of the repository"}}},
        "invocations": [invocation],
        "results": results,
        "properties": {
            "notTested": not_tested_sentence(result.rows),
            "errorProbability": error_sentence(result.rows),
            "audited": len(result.rows),
        },
    }
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def fired_rules(row: ReportRow) -> Iterator[tuple[str, str, Place | None, str]]:
    """The rules that a row fired: each with its message, its place, and what it is known by.

    A row has several places where it was found to be wrong at each; they have a sentence.
    """
    if row.decisive and row.as_expected:
        return
    if row.as_expected:
        rule = UNSEEN if row.unseen else FEW_RUNS
        row_message = f"{row.subject}: {row.why_inconclusive}."
    elif row.outcome is Outcome.FALSIFIED:
        rule, row_message = FALSIFIED, f"{violation(row)}. Seen: {row.witness}."
    else:
        rule, row_message = MISSED, f"{row.subject} was not caught: {row.witness}."
    sentence_places = [each_place for each_place in row.places if each_place.sentence]
    messages: list[tuple[str, Place | None]] = [
        (f"{row.subject}: {each_place.sentence}.", each_place) for each_place in sentence_places
    ]
    for message, where in messages or [(row_message, row.places[0] if row.places else None)]:
        # A link in a text of the audited code must stay text.
        text = escape_control(message).replace("](", "] (")
        text = text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 3] + "..."
        # Lines move, so they are no part of it.
        path = "" if where is None else where.path
        identity = json.dumps(
            [row.kind, row.subject, rule, path, "" if where is None else where.sentence]
        )
        yield rule, text, where, hashlib.sha256(identity.encode()).hexdigest()
