"""The options that several commands share, each declared once, and the commands that take them."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, final, get_type_hints

import typer

from accountant.cli.options import Force, Json
from accountant.cli.vocabulary import option

if TYPE_CHECKING:
    from rich.console import Console

    from audits.formats.report_format import ReportFormat

# The options of the files of a report, those of commands that audit and report, and those that
# limit a user's own code.
FILES = ("json", "out", "junit", "sarif", "markdown")
REPORTS = ("names", "runs", "confidence", "seed", "jobs", "dask", *FILES, "baseline", "resume",
           "strict")  # fmt: skip
LIMITS = ("max_seconds", "max_memory", "max_processes")
Text = str | None  # the type of an option without a default
AllowImport = Annotated[bool, option("allow-import")]


@final
@dataclass(frozen=True, slots=True)
class Options:
    """The words of the options, not yet checked; a command takes those that `takes` names."""

    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Mechanisms, or parts of subjects; all if none."),
    ] = None
    runs: Annotated[
        str, option("runs", "Runs of each guess test, learning included.", old="samples")
    ] = "200000"
    confidence: Annotated[str, option("confidence")] = "0.95"
    seed: Annotated[Text, option("seed")] = None
    repeats: Annotated[
        str, typer.Option(metavar="R", help="Audits of each specimen that count false alarms.")
    ] = "1"
    jobs: Annotated[Text, option("jobs")] = None
    dask: Annotated[Text, option("dask")] = None
    json: Json = None
    out: Annotated[
        Text, option("out", "Write one self-contained page to FILE.", old="html", value="FILE")
    ] = None
    junit: Annotated[Text, option("junit")] = None
    sarif: Annotated[Text, option("sarif")] = None
    markdown: Annotated[Text, option("markdown")] = None
    force: Force = False
    baseline: Annotated[Text, option("baseline")] = None
    resume: Annotated[bool, option("resume")] = False
    strict: Annotated[bool, option("strict")] = False
    max_seconds: Annotated[str, option("max-seconds")] = "600"
    max_memory: Annotated[str, option("max-memory")] = "4"
    max_processes: Annotated[str, option("max-processes")] = "32"

    @property
    def files(self) -> dict[ReportFormat, str | None]:
        """The files of the report, by their formats."""
        from audits.formats.report_format import ReportFormat

        return {
            report_format: getattr(self, report_format.option.removeprefix("--"))
            for report_format in ReportFormat
        }

    def console(self) -> Console:
        """Where a command prints: on stderr if its JSON goes to stdout."""
        from rich.console import Console

        return Console(stderr=self.json == "-")


Command = Callable[..., None]


def takes(*names: str, **defaults: str) -> Callable[[Command], Command]:
    """A command that takes these options where it has the parameter ``options``.

    One that writes files takes ``force`` too.  ``defaults`` are of this command alone.
    """
    names = (*names, "force") if {*names} & {*FILES} else names
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
