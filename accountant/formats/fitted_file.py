"""Writes the noise that was found into a plan file: comments, weights and targets stay.

A line with a weight or a target gets ``fitted``, the scale that was found for it.  A reader of
the plan takes that scale; `fit` finds it anew from the weight or target.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from accountant.accountants.budget import Budget
from accountant.files import read_text
from accountant.formats.plan_file import PlanFile
from accountant.formats.plan_toml import file_from_toml, suffix_of
from accountant.formats.request_tables import FITTED, NOISE_CHOICES
from accountant.formats.toml_positions import key_offsets
from accountant.formats.toml_writer import document_to_toml, file_to_json, file_to_toml
from accountant.planning.allocation_table import Allocation
from accountant.serialisation.plan_json import SCHEMA, parse_document

NUMBER = re.compile(r"[^=]*=\s*([^\s,}\]#]+)")  # a key, and the number after it as a group
Edit = tuple[int, int, str]  # start, end, and the text that replaces what lies between


def with_noise(source: Path, kind: str, file: PlanFile, allocation: Allocation) -> str:
    """Return the text of a plan file of a kind, .toml or .json, with the noise that was found."""
    fitted = file.with_noise_of(allocation)
    # fitted as if there were more records, so the lines differ from those of the file
    if allocation.releases != file.releases:
        return file_to_json(fitted) if kind == ".json" else file_to_toml(fitted)
    text = read_text(source)
    source_kind = suffix_of(source, text)
    if source_kind == kind == ".toml":
        written = _edited(text, file, allocation)
        if file_from_toml(written) == fitted:
            return written
    document = tomllib.loads(text) if source_kind == ".toml" else parse_document(text)
    budget, scales = allocation.budget, _scales(file, allocation)
    if "release" in document:
        tables = [
            {**table, FITTED: scales[i]} if i in scales else table
            for i, table in enumerate(document["release"])
        ]
    else:  # a plan in JSON, which has its noise
        tables = file.to_dict()["release"]
    fitted_document = {
        "budget": {"epsilon": budget.epsilon, "delta": budget.delta},
        "release": tables,
    }
    if kind == ".json":
        return json.dumps({"schema": SCHEMA, **fitted_document}, allow_nan=False, indent=2) + "\n"
    return document_to_toml(fitted_document)


def _scales(file: PlanFile, allocation: Allocation) -> dict[int, float]:
    """Return the scales that were found, by the line of the file."""
    return {
        i: scale
        for i, (release, scale) in enumerate(zip(file.releases, allocation.scales, strict=True))
        if scale is not None and (release.weight is not None or release.target is not None)
    }


def _edited(text: str, file: PlanFile, allocation: Allocation) -> str:
    """Return the text of a TOML file with new numbers, which are set from its end on."""
    offsets, edits = key_offsets(text), []
    for i, scale in _scales(file, allocation).items():
        if ("release", i, FITTED) in offsets:
            edits.append(_number_edit(text, offsets["release", i, FITTED], scale))
        else:
            [choice] = [
                candidate for candidate in NOISE_CHOICES if ("release", i, candidate) in offsets
            ]
            edits.append(_new_key_edit(text, offsets["release", i, choice], FITTED, scale))
    edits += _budget_edits(text, offsets, allocation.budget)
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text


def _budget_edits(text: str, offsets: dict[Any, int], budget: Budget) -> list[Edit]:
    """Return the edits that give the text the budget; a table that is missing goes to its end."""
    if ("budget", "epsilon") not in offsets:
        budget_table = f"\n[budget]\nepsilon = {budget.epsilon!r}\ndelta = {budget.delta!r}\n"
        return [(len(text), len(text), budget_table)]
    edits = []
    for name, value in (("epsilon", budget.epsilon), ("delta", budget.delta)):
        if ("budget", name) in offsets:
            start, end, replacement = _number_edit(text, offsets["budget", name], value)
            if float(text[start:end].replace("_", "")) != value:
                edits.append((start, end, replacement))
        elif value:
            edits.append(_new_key_edit(text, offsets["budget", "epsilon"], name, value))
    return edits


def _number_edit(text: str, at: int, value: float) -> Edit:
    """Return the edit that gives the key at an offset another number."""
    match = NUMBER.match(text, at)
    if match is None:
        return at, at, ""
    return match.start(1), match.end(1), repr(value)


def _new_key_edit(text: str, at: int, name: str, value: float) -> Edit:
    """Return the edit that puts a new key below the one at an offset, or before it in a row."""
    start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
    if text[start:at].strip():  # an inline table
        return at, at, f"{name} = {value!r}, "
    end = len(text) if end < 0 else end
    return end, end, f"\n{text[start:at]}{name} = {value!r}"
