"""The options that several commands share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, final

import typer

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME]...", help="Parts of subject names; all if none."),
]
Samples = Annotated[
    str, typer.Option(metavar="N", help="Runs of each guess test, learning included.")
]
Confidence = Annotated[str, typer.Option(metavar="C", help="Confidence of the bounds shown.")]
Seed = Annotated[str | None, typer.Option(metavar="S", help="Repeats a report exactly.")]
Jobs = Annotated[str | None, typer.Option(metavar="J", help="Threads; no row depends on them.")]
Dask = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Run on a Dask cluster; the same rows.")
]
Json = Annotated[str | None, typer.Option(metavar="FILE|-", help="Write JSON; - is stdout.")]
Html = Annotated[str | None, typer.Option(metavar="FILE", help="Write one self-contained page.")]
Junit = Annotated[str | None, typer.Option(metavar="FILE", help="Write JUnit XML, a case a row.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on from FILE.part of --json FILE, after Ctrl-C.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit 3 where runs are too few to decide.")]
SAMPLES, CONFIDENCE = "200000", "0.95"


@final
@dataclass(frozen=True, slots=True)
class Options:
    """The words of the options, not yet checked."""

    samples: str = SAMPLES
    confidence: str = CONFIDENCE
    seed: str | None = None
    jobs: str | None = None
    dask: str | None = None
    json: str | None = None
    html: str | None = None
    junit: str | None = None
    resume: bool = False
    strict: bool = False
