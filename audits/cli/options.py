"""The options that several commands share, each declared once, and the commands that take them."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, final, get_type_hints

import typer

from accountant.cli.options import Json

if TYPE_CHECKING:
    from rich.console import Console

    from audits.formats.report_format import ReportFormat

# The options of the files of a report, those of commands that audit and report, and those that
# limit a user's own code.
FILES = ("json", "html", "junit", "sarif", "markdown")
REPORTS = ("names", "samples", "confidence", "seed", "jobs", "dask", *FILES, "baseline", "resume",
           "strict")  # fmt: skip
LIMITS = ("max_seconds", "max_memory", "max_processes")
Text = str | None  # the type of an option without a default
AllowImport = Annotated[
    bool, typer.Option("--allow-import", help="Yes, import that module and run its code.")
]


@final
@dataclass(frozen=True, slots=True)
class Options:
    """The words of the options, not yet checked; a command takes those that `takes` names."""

    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Mechanisms, or parts of subjects; all if none."),
    ] = None
    samples: Annotated[
        str, typer.Option(metavar="N", help="Runs of each guess test, learning included.")
    ] = "200000"
    confidence: Annotated[
        str, typer.Option(metavar="C", help="Confidence of the bounds shown.")
    ] = "0.95"
    seed: Annotated[
        Text, typer.Option(metavar="S", help="Seed, which repeats a report exactly.")
    ] = None
    repeats: Annotated[
        str, typer.Option(metavar="R", help="Audits of each specimen that count false alarms.")
    ] = "1"
    jobs: Annotated[Text, typer.Option(metavar="J", help="Threads; the rows do not change.")] = None
    dask: Annotated[
        Text, typer.Option(metavar="ADDRESS", help="Run on a Dask cluster; the same rows.")
    ] = None
    json: Json = None
    html: Annotated[Text, typer.Option(metavar="FILE", help="Write one self-contained page.")] = (
        None
    )
    junit: Annotated[
        Text, typer.Option(metavar="FILE", help="Write JUnit XML, one case per row.")
    ] = None
    sarif: Annotated[
        Text, typer.Option(metavar="FILE", help="Write SARIF, for code scanning: file and line.")
    ] = None
    markdown: Annotated[
        Text, typer.Option(metavar="FILE", help="Write Markdown, for the summary of a CI job.")
    ] = None
    baseline: Annotated[
        Text,
        typer.Option(
            metavar="FILE",
            help="An earlier --json FILE: unchanged rows are kept, and only others fail.",
        ),
    ] = None
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the rows kept at Ctrl-C; needs --json.")
    ] = False
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 3 where runs are too few to see half the noise.")
    ] = False
    max_seconds: Annotated[
        str, typer.Option(metavar="S", help="Wall time of the code, in seconds, for each row.")
    ] = "600"
    max_memory: Annotated[
        str, typer.Option(metavar="GIB", help="Memory of the code: all its processes together.")
    ] = "4"
    max_processes: Annotated[
        str, typer.Option(metavar="P", help="Processes that the code may start.")
    ] = "32"

    @property
    def files(self) -> dict[ReportFormat, str | None]:
        """The files of the report, by their formats."""
        from audits.formats.report_format import ReportFormat

        return {
            report_format: getattr(self, report_format.name.lower())
            for report_format in ReportFormat
        }

    def console(self) -> Console:
        """Where a command prints: on stderr if its JSON goes to stdout."""
        from rich.console import Console

        return Console(stderr=self.json == "-")


Command = Callable[..., None]


def takes(*names: str, **defaults: str) -> Callable[[Command], Command]:
    """A command that takes these options where it has the parameter ``options``.

    ``defaults`` are of this command alone.
    """
    hints = get_type_hints(Options, include_extras=True)
    usual = {option.name: option.default for option in dataclasses.fields(Options)} | defaults
    shared = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=usual[name], annotation=hints[name]
        )
        for name in names
    ]

    def with_options(command: Command) -> Command:
        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            keyword_parameter = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            parameters += shared if parameter.name == "options" else [keyword_parameter]

        @functools.wraps(command)
        def run(**arguments: Any) -> None:
            options = Options(**{name: arguments.pop(name) for name in names})
            command(options=options, **arguments)

        # typer reads the signature and the annotations.
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return with_options
