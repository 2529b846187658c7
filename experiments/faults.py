"""The faults and errata of the pages docs/faults.md and docs/errata.md for programs, as JSON.

Each fault of a library has the command that shows it again, and each erratum that is measured the
command that measures it.  The pages remain the only source.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from experiments.charts import Options

DOCS = Path(__file__).parents[1] / "docs"
SCHEMA = 1  # the version of the format
# The figures that measure the errata of a paper, by the page with its details.
MEASURED_BY = {
    "sparse-regression": "sparse-regression-claims",
    "sign-votes": "sign-votes-claims",
    "label-privacy": "private-labels-claims",
    "frank-wolfe": "frank-wolfe-claims",
}
ITEM = re.compile(r"^- (\w+):(.*(?:\n  .*)*)", re.MULTILINE)
LINK = re.compile(r"\[([^\]]*)\]\(([^)]*)\)")
ROW = re.compile(r'^\| <a id="\w+"></a>(\w+) \| (.*) \| (.*) \|$', re.MULTILINE)
EPSILON, DELTA = re.compile(r"ε (?:is at least )?([\d.e-]+)"), re.compile(r"δ ([\d.e-]+)")
CODES = re.compile(r"E(\d+)(?: to E(\d+))?")


def faults(_: Options) -> Iterator[str]:
    """Yield the lines of docs/faults.json."""
    document = {
        "schema": SCHEMA,
        "made by": "python -m experiments faults > docs/faults.json",
        "faults": list(library_faults((DOCS / "faults.md").read_text(encoding="utf-8"))),
        "errata": list(paper_errata((DOCS / "errata.md").read_text(encoding="utf-8"))),
    }
    yield from json.dumps(document, indent=2, ensure_ascii=False).splitlines()


def library_faults(page: str) -> Iterator[dict[str, Any]]:
    """Yield the faults of the page: one for each of its sections."""
    for section in page.split("\n## ")[1:]:
        title, _, body = section.partition("\n")
        library, version, name = re.split(r": | ", title, maxsplit=2)
        items = {name: " ".join(text.split()) for name, text in ITEM.findall(body)}
        claimed, bound = items.get("claimed", ""), items.get("bound", "")
        yield {
            "library": library,
            "version": version,
            "name": name,
            "claimed_epsilon": number(EPSILON, claimed),
            "claimed_delta": number(DELTA, claimed),
            "epsilon_at_least": number(EPSILON, bound),
            "found": items["found"],
            "reported": LINK.sub(r"\1", items["reported"]),
            "links": [address for _, address in LINK.findall(items["reported"])],
            "command": items["command"].strip("`"),
        }


def paper_errata(page: str) -> Iterator[dict[str, Any]]:
    """Yield the errata of the page: one for each row of its tables."""
    from experiments.catalogue import FIGURES as ALL_FIGURES

    for section in page.split("\n## ")[1:]:
        paper, _, body = section.partition("\n")
        details = LINK.findall(body)[0][1]
        figure = MEASURED_BY[details.partition(".")[0]]
        measured = set()
        for first, last in CODES.findall(ALL_FIGURES[figure].title):
            measured |= {*range(int(first), int(last or first) + 1)}
        for code, printed, holds in ROW.findall(body):
            is_measured = int(code[1:].rstrip("abcdefgh")) in measured
            yield {
                "code": code,
                "paper": paper.replace("*", ""),
                "printed": printed,
                "holds": holds,
                "details": f"docs/{details}",
                "command": f"python -m experiments {figure}" if is_measured else None,
            }


def number(pattern: re.Pattern[str], text: str) -> float | None:
    """Return the number that a pattern finds in a text; None where it finds none."""
    match = pattern.search(text)
    return None if match is None else float(match[1])


FIGURES: dict[str, Callable[..., Any]] = {"faults": faults}
