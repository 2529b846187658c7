"""Files of wanted statistics: TOML with one ``[[statistic]]`` a line, for `least_epsilon`.

delta = 1e-6            # at which epsilon is to be least, optional

[[statistic]]
name = "visits each week"
kind = "count"          # or "sum", "selection"
error = 20.0            # not exceeded with the probability
probability = 0.95
count = 52

A JSON file has the same keys, beside ``"schema": 1``.
"""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from typing import Any, final

from accountant.domains import DELTA
from accountant.errors import ParameterError
from accountant.formats.plan_toml import read_document
from accountant.planning.least_epsilon import Statistic
from accountant.serialisation.plan_json import PlanFileError

FIELDS = tuple(field.name for field in dataclasses.fields(Statistic))
REQUIRED = ("kind", "error")


@final
@dataclass(frozen=True, slots=True)
class StatisticsFile:
    """The statistics of a file, in its order, and the delta that it states, if any."""

    statistics: tuple[Statistic, ...]
    delta: float | None = None

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> StatisticsFile:
        """Return the file that such tables describe, or raise `PlanFileError`."""
        for key, value in document.items():
            if key not in {"delta", "statistic"}:
                why = f"absent: unknown key {key!r}; the file has [[statistic]] and delta"
                raise PlanFileError((key,), value, why)
        tables = document.get("statistic")
        if not isinstance(tables, list) or not tables:
            why = "a list; there are no [[statistic]] tables, each with a kind and an error"
            raise PlanFileError(("statistic",), tables, why)
        statistics = tuple(statistic_from_table(table, i) for i, table in enumerate(tables))
        if "delta" not in document:
            return cls(statistics)
        try:
            return cls(statistics, DELTA.check("delta", document["delta"]))
        except ParameterError as error:
            raise PlanFileError(("delta",), error.value, error.allowed) from None


def read_statistics(name: str | os.PathLike[str]) -> StatisticsFile:
    """Return what a file of statistics says, or raise `ParameterError` with line and column."""
    return read_document(
        os.fspath(name),
        lambda document, _suffix: StatisticsFile.from_dict(document),
        argument="statistics",
    )


def statistic_from_table(table: Any, place: int) -> Statistic:
    """Return the statistic of the table at a place of the file, or raise `PlanFileError`."""
    path = ("statistic", place)
    if not isinstance(table, dict):
        raise PlanFileError(path, table, "a table with a kind and an error")
    for key, value in table.items():
        if key not in FIELDS:
            raise PlanFileError((*path, key), value, f"absent: a statistic has {', '.join(FIELDS)}")
    for key in REQUIRED:
        if key not in table:
            raise PlanFileError(path, table, f"a table with a {key}")
    if not isinstance(table.get("name", ""), str):
        raise PlanFileError((*path, "name"), table["name"], "a text")
    try:
        return Statistic(**table)
    except ParameterError as error:
        wrong = (*path, error.argument) if error.argument in table else path
        raise PlanFileError(wrong, error.value, error.allowed) from None
