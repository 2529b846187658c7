"""The formats of a report's files, and the one place that writes them.

A format is an option of every command that prints findings, ``--sarif FILE`` for one.
"""

from __future__ import annotations

import enum
import importlib
from collections.abc import Mapping

from accountant.files import write_text
from audits.results.result_file import Result

STDOUT = "-"  # as the file of --json


class ReportFormat(enum.Enum):
    """A format: the module that writes it as text, and its function, which takes a `Result`."""

    JSON = ("audits.results.result_file", "to_json")
    HTML = ("audits.formats.html", "to_html")
    JUNIT = ("audits.formats.junit", "to_junit")
    SARIF = ("audits.formats.sarif", "to_sarif")
    MARKDOWN = ("audits.formats.markdown", "to_markdown")

    @property
    def option(self) -> str:
        """The option of the command line that names the file."""
        return "--out" if self is ReportFormat.HTML else f"--{self.name.lower()}"

    def text(self, result: Result) -> str:
        """The result in this format."""
        module, function = self.value
        text: str = getattr(importlib.import_module(module), function)(result)
        return text


def write_files(
    result: Result, files: Mapping[ReportFormat, str | None], own_json: str | None = None
) -> None:
    """Write the result to the files that are named, each in its format; JSON last.

    ``own_json`` is what a command writes as JSON that has a document of its own.
    """
    for report_format, name in sorted(files.items(), key=lambda file: file[0] is ReportFormat.JSON):
        if name is None:
            continue
        is_own = report_format is ReportFormat.JSON and own_json is not None
        write_text(name, str(own_json) if is_own else report_format.text(result))
