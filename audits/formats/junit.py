"""The report of an audit as JUnit XML, which test servers read: one test case for each row.

A row is one subject with its claim and the outcome of its audit.  A case fails if that outcome is
not the expected one; what is expected of a broken specimen is that its claim is falsified.
"""

from __future__ import annotations

from xml.etree import ElementTree as Xml

from accountant.formatting import escape_control
from audits.report.words import (
    CLOSING,
    format_bound,
    format_number,
)
from audits.results.result_file import Result
from audits.results.rows import ReportRow


def to_junit(result: Result) -> str:
    """The XML of one test suite, with the seed and the versions of the run as its properties.

    Rows that are not as expected are failures; libraries that are not installed are skipped cases,
    and so are rows that a baseline has known not to be as expected.
    """
    rows = result.rows
    known_rows = [row for row in rows if row.kept and not row.as_expected]
    suite = Xml.Element(
        "testsuite",
        {
            "name": "audits",
            "tests": str(len(rows) + len(result.absent)),
            "failures": str(sum(row.fails for row in rows)),
            "errors": "0",
            "skipped": str(len(result.absent) + len(known_rows)),
            "time": f"{sum(row.seconds for row in rows):.6f}",
        },
    )
    properties = Xml.SubElement(suite, "properties")
    facts = {
        "command": result.request.repeat_command,
        "seed": result.request.seed,
        "note": CLOSING,
        "date": result.date,
        "code": result.code,
        **result.versions,
    }
    for name, value in facts.items():
        Xml.SubElement(
            properties, "property", {"name": escape_control(name), "value": escape_control(value)}
        )
    for row in rows:
        _case(suite, row)
    for library, reason in result.absent.items():
        case = Xml.SubElement(
            suite, "testcase", {"classname": "audits.library", "name": escape_control(library)}
        )
        Xml.SubElement(case, "skipped", {"message": escape_control(reason)})
    root = Xml.Element("testsuites")
    root.append(suite)
    Xml.indent(root)
    body = Xml.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _case(suite: Xml.Element, row: ReportRow) -> None:
    """Add the test case of a row to the suite: claim, bounds and outcome are its output."""
    case = Xml.SubElement(
        suite,
        "testcase",
        {
            "classname": f"audits.{escape_control(row.kind)}",
            "name": escape_control(row.subject),
            "time": f"{row.seconds:.6f}",
            **(
                {"file": escape_control(row.places[0].path), "line": str(row.places[0].line)}
                if row.places
                else {}
            ),
        },
    )
    message = row.outcome.name.lower()
    message += "" if row.own else f", expected {row.expected.name.lower()}"
    lines = [
        f"claim: epsilon {format_number(row.claim[0])}, delta {format_number(row.claim[1])}",
        f"exact: {format_number(row.exact_epsilon)}",
        f"at least: {format_bound(row.verdict_lower)} at the confidence of the verdict, "
        f"{format_bound(row.epsilon_lower)} at {row.confidence:g}, {row.runs:,} runs",
        f"outcome: {message}",
        f"witness: {escape_control(row.witness)}",
        *(f"place: {escape_control(code_place)}" for code_place in row.places),
        *(f"note: {escape_control(note)}" for note in row.notes),
    ]
    if row.not_tested:
        lines.append(f"not tested: {escape_control('; '.join(map(str, row.not_tested)))}")
    if not row.decisive:
        lines.append(f"inconclusive: {escape_control(row.why_inconclusive)}")
    if row.compared is not None and row.kept:
        lines.append(f"kept from the audit of {row.compared.date}, since when nothing changed")
    if row.kept and not row.as_expected:
        Xml.SubElement(case, "skipped", {"message": f"{message}, known from the baseline"})
    elif row.fails:
        failure = Xml.SubElement(case, "failure", {"message": message, "type": row.outcome.name})
        failure.text = "\n".join(lines)
    Xml.SubElement(case, "system-out").text = "\n".join(lines)
