"""Writes the record of a deployment for the public registry of OpenDP.

A machine knows some fields: the privacy parameters, the unit, how losses add up, the mechanisms.
The others are words of people, in a file ``registry.toml``.  Nothing is guessed: a field that the
stated tier requires and the file lacks is refused, and so is a field that the machine computes.

Reference: github.com/opendp/deployments-registry-data, schemas/deployments-schema.yaml, commit
3e9c812; Dwork, Kohli & Mulligan (2019), who proposed such a registry.
"""

from __future__ import annotations

import datetime
import json
import math
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from accountant.book.export import registry_rows
from accountant.book.history import Line
from accountant.book.status import Status
from accountant.domains import IntegerRange, OneOf
from accountant.errors import ParameterError
from accountant.files import read_text
from accountant.formatting import escape_control
from accountant.training import words
from accountant.training.statement import TrainingStatement
from dp_attest.public_names import nearest_name

TIER = IntegerRange(1, 3)  # how complete a record is: each tier asks for the fields up to it
TEXT, LIST = "a text", "a list of texts"
FILE_NAME = re.compile(r"[a-z0-9_]+\.ya?ml", re.ASCII)


class Field(NamedTuple):
    """A field of the schema: the tier that asks for it (None: optional), and what it may be."""

    tier: int | None
    kind: str | tuple[str, ...] = TEXT


# The schema, section by section.
FIELDS: dict[str, dict[str, Field]] = {
    "basic": {
        "name": Field(1),
        "data_curators": Field(1, LIST),
        "description": Field(1),
        "intended_use": Field(1),
        "data_product_type": Field(1, (
            "Summary statistics", "Machine learning model", "Dataset", "Synthetic data",
            "Interactive API", "SQL queries",
        )),
        "data_product_region": Field(1),
        "publication_date": Field(1, "a date"),
        "data_product_sector": Field(None, (
            "Technology", "Healthcare", "Education", "Government", "Energy", "Finance",
        )),
    },
    "dp_variant": {
        "variant_name": Field(2),
        "data_domain": Field(3),
        "unprotected_quantities": Field(3),
    },
    "privacy_loss": {
        "privacy_unit": Field(2),
        "privacy_unit_details": Field(3),
        "privacy_parameters": Field(2),
        "privacy_parameters_details": Field(3),
    },
    "deployment_model": {
        "model_name": Field(2, ("Local", "Central", "Shuffle", "Federated", "Varies")),
        "model_name_details": Field(None),
        "actors": Field(3),
        "release_type": Field(2, ("One release", "Many releases")),
        "release_type_details": Field(None),
        "data_source_type": Field(2, ("Static", "Dynamic")),
        "data_source_type_details": Field(None),
        "access_type": Field(2, ("Interactive", "Non-interactive")),
        "access_type_details": Field(None),
    },
    "accounting": {
        "post_processing": Field(3),
        "composition": Field(3),
    },
    "implementation": {
        "preprocessing_and_hyperparameter_tuning": Field(3),
        "mechanisms": Field(3),
        "justification": Field(3),
    },
    "administrative": {
        "sources": Field(None),
        "notes": Field(None),
        "registry_authors": Field(1, LIST),
    },
}  # fmt: skip
Known = dict[str, dict[str, Any]]  # fields that the machine knows, by section


def record_of_book(status: Status, lines: Iterable[Line], relation: str | None, stated: str) -> str:
    """Return the record of a data set of a book as YAML; ``stated`` is the text of registry.toml.

    The guarantee is the budget of the data set, whatever part of it was spent.
    """
    rows = registry_rows(status, lines, relation)
    facts = rows[0]
    parameters = {"epsilon": facts["epsilon"]}
    if facts["delta"]:
        parameters["delta"] = facts["delta"]
    trusted = (
        f"{facts['seeded releases']} releases drew from a seed, "
        f"{facts['undeclared releases']} from undeclared mechanisms, "
        f"{facts['releases by trusted workers']} on trusted workers."
    )
    mechanisms = [
        f"- {row['releases']} x {row['parameters']}, paid for {row['paid for']}"
        if row["releases"]
        else "- nothing was released yet"
        for row in rows
    ]
    computed: Known = {
        "dp_variant": {"variant_name": "Approximate DP" if facts["delta"] else "Pure DP"},
        "privacy_loss": {
            "privacy_unit": facts["unit of privacy"],
            "privacy_parameters": parameters,
            "privacy_parameters_details": (
                f"The budget, kept by dp-attest. Spent by {facts['last release'][:10]}: "
                f"{facts['spent']}."
            ),
        },
        "accounting": {"composition": f"{facts['composition']}; {facts['accountant']}"},
        "implementation": {
            "mechanisms": "\n".join([*mechanisms, "", f"Drawn by dp-attest. {trusted}"])
        },
    }
    if relation is not None or status.relation is not None:
        computed["privacy_loss"]["privacy_unit_details"] = (
            f"Neighbours ({facts['neighbour relation']}) differ by {facts['neighbours differ by']}."
        )
    return record(computed, stated)


def record_of_training(statement: TrainingStatement, stated: str) -> str:
    """Return the record of a training run as YAML; ``stated`` is the text of registry.toml."""
    if not math.isfinite(statement.epsilon):
        raise ParameterError("statement", statement.epsilon, "of a run whose epsilon has a bound")
    cost = statement.row()
    unit_words = words.neighbours_words(cost.unit, cost.relation)
    computed: Known = {
        "dp_variant": {"variant_name": "Approximate DP"},
        "privacy_loss": {
            "privacy_unit": f"one {cost.unit}",
            "privacy_unit_details": f"Neighbours ({statement.relation}) differ by {unit_words}.",
            "privacy_parameters": {"epsilon": statement.epsilon, "delta": statement.delta},
            "privacy_parameters_details": words.interval_words(statement),
        },
        "accounting": {"composition": "certified numerical composition of all steps (dp-attest)"},
        "implementation": {
            "mechanisms": f"DP-SGD with Gaussian noise. {words.run_words(statement)}"
        },
    }
    return record(computed, stated)


def record(computed: Known, stated: str) -> str:
    """Return the record as YAML, or raise `ParameterError` with all fields that are missing."""
    try:
        table = tomllib.loads(stated)
    except tomllib.TOMLDecodeError as error:
        raise ParameterError("registry", "a file", f"TOML ({error})") from None
    tier = TIER.check("tier", table.pop("tier", None))
    deployment: dict[str, dict[str, Any]] = {}
    missing = []
    for section, fields in FIELDS.items():
        words_of_section = table.pop(section, {})
        if not isinstance(words_of_section, dict):
            raise ParameterError(section, words_of_section, "a table of registry.toml")
        values = {**computed.get(section, {})}
        for name, field in fields.items():
            field_path = f"{section}.{name}"
            # What is not known may be stated: how neighbours differ, for example.
            if name in words_of_section and name in values:
                raise ParameterError(field_path, words_of_section[name], "left out: it is computed")
            if name in words_of_section:
                values[name] = checked(field_path, words_of_section.pop(name), field.kind)
            if name not in values and field.tier is not None and field.tier <= tier:
                missing.append(field_path)
        if words_of_section:
            unknown = next(iter(words_of_section))
            raise ParameterError(
                f"{section}.{unknown}", words_of_section[unknown], near(unknown, fields)
            )
        if values:
            deployment[section] = {name: values[name] for name in fields if name in values}
    if table:
        unknown = next(iter(table))
        raise ParameterError(unknown, table[unknown], near(unknown, FIELDS))
    if missing:
        allowed = f"a file that says what a machine cannot know: {', '.join(missing)}"
        raise ParameterError("registry", f"tier {tier}", allowed)
    basic = deployment["basic"]
    slug_parts = (basic["name"], "-".join(basic["data_curators"]), basic["publication_date"][:4])
    slug = "_".join(re.sub(r"\W+", "_", part.lower()) for part in slug_parts).replace("_", "-")
    # The registry's own check compares the slug as it stands, so that it has no quotes.
    content = {"status": "Draft", "tier": tier, "deployment": deployment}
    return f"url_slug: {slug}\n{''.join(yaml_lines(content, ''))}"


def checked(place: str, value: Any, kind: str | tuple[str, ...]) -> Any:
    """Return a stated value as the schema takes it."""
    if isinstance(kind, tuple):
        return OneOf(kind).check(place, value)
    if kind == LIST:
        is_list = isinstance(value, list) and value and all(isinstance(x, str) for x in value)
        if not is_list or not all(map(str.strip, value)):
            raise ParameterError(place, value, LIST)
        return value
    if kind == "a date":
        try:
            return datetime.date.fromisoformat(str(value)).isoformat()
        except ValueError:
            raise ParameterError(place, value, "a date, YYYY-MM-DD") from None
    if not isinstance(value, str) or not value.strip():
        raise ParameterError(place, value, TEXT)
    return value


def near(name: str, names: Iterable[str]) -> str:
    """Return in words which name may have been meant."""
    names = list(names)
    meant = nearest_name(name, names)
    return f"named as the registry does: {meant or ', '.join(names)}"


def quoted(value: Any) -> str:
    """Return a value as JSON, whose escapes YAML reads but for surrogate pairs."""
    return escape_control(json.dumps(value, allow_nan=False, ensure_ascii=False))


def yaml_lines(table: dict[str, Any], indent: str) -> Iterator[str]:
    """Yield the lines of a table as YAML; every text is quoted, as JSON quotes it.

    YAML 1.1 takes 1e-06 for a text, and 1.0e-06 for a number.
    """
    for name, value in table.items():
        if isinstance(value, dict):
            yield f"{indent}{name}:\n"
            yield from yaml_lines(value, f"{indent}  ")
        elif isinstance(value, list):
            yield f"{indent}{name}:\n"
            yield from (f"{indent}  - {quoted(item)}\n" for item in value)
        else:
            text = quoted(value)
            is_power = isinstance(value, float) and "e" in text and "." not in text
            yield f"{indent}{name}: {text.replace('e', '.0e') if is_power else text}\n"


def read_stated(name: str, out: str) -> str:
    """Return the text of registry.toml; refuse an output whose name the registry does not take."""
    if out != "-" and not FILE_NAME.fullmatch(Path(out).name):
        allowed = "a name of a-z, 0-9 and _ that ends in .yaml, as the registry asks"
        raise ParameterError("--out", out, allowed)
    try:
        return read_text(Path(name))
    except (OSError, UnicodeDecodeError):
        raise ParameterError("--registry", name, "a file that can be read, TOML") from None
