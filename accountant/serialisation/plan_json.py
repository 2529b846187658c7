"""Plans to and from JSON; the format has a version, and unknown content is refused.

A plan is a mechanism, a loss, or a node that combines plans.  Its *kind* is the name of its class,
and its other fields are the arguments of the class's constructor.
"""

from __future__ import annotations

import inspect
import json
from typing import Any

import numpy as np

from accountant.amplification.tries import TRIES_KINDS, Tries
from accountant.errors import ParameterError
from accountant.plans.declared_releases import is_plan_field
from accountant.plans.plan import Plan, Repeat, as_plan
from accountant.serialisation.registry import (
    constructor_fields,
    plan_field_kinds,
    plan_kind,
    plan_kinds,
)
from dp_attest.public_names import nearest_name

SCHEMA = 1  # the version of the format
# Plans inside each other, at most.  Each takes up to two steps of a path: a field, and an index.
MAX_DEPTH = 50
KeyPath = tuple[str | int, ...]  # the fields and indices that lead to a place in a document


class PlanFileError(ParameterError):
    """An error in a plan file: ``path`` leads to the place, ``why`` says what is allowed."""

    def __init__(self, path: KeyPath, value: object, why: str) -> None:
        self.path, self.why = path, why
        steps = (f"[{step + 1}]" if isinstance(step, int) else f".{step}" for step in path)
        super().__init__("".join(steps).lstrip(".") or "the document", value, why)


def to_json(plan: Plan) -> str:
    """Return a plan as JSON; `from_json` gives an equal plan back.

    Parameters
    ----------
    plan : Plan
        A plan, a loss or a mechanism.

    Returns
    -------
    str
        A document with its schema's number.

    Raises
    ------
    ParameterError
        If a part is no declared kind, such as a function.

    Examples
    --------
    >>> from accountant import PureLoss, from_json, to_json
    >>> from_json(to_json(3 * PureLoss(0.5))) == 3 * PureLoss(0.5)
    True
    """
    document = {"schema": SCHEMA, "plan": to_dict(as_plan(plan), ("plan",))}
    return json.dumps(document, allow_nan=False, indent=2) + "\n"


def from_json(text: str) -> Plan:
    """Return the plan of a JSON document.

    Parameters
    ----------
    text : str
        What `to_json` wrote.

    Returns
    -------
    Plan
        The plan.

    Raises
    ------
    ParameterError
        If the document is wrong: a `PlanFileError`, which names the place and the remedy.

    Examples
    --------
    >>> from accountant import from_json
    >>> from_json('{"schema": 1, "plan": {"kind": "PureLoss", "epsilon": 0.5}}')
    PureLoss(epsilon=0.5)
    """
    document = parse_document(text)
    if set(document) != {"plan"}:
        raise PlanFileError((), sorted(document), "an object with 'schema' and 'plan'")
    return from_dict(document["plan"], ("plan",))


def parse_document(text: str) -> dict[str, Any]:
    """Return the content of a JSON document of this schema, or raise `PlanFileError`."""
    if not isinstance(text, (str, bytes, bytearray)):
        raise PlanFileError((), text, "JSON, as text")
    try:
        document = json.loads(
            text, object_pairs_hook=_refuse_repeated_keys, parse_constant=_refuse_constant
        )
    except RecursionError:
        raise PlanFileError((), "...", f"nested at most {MAX_DEPTH} deep") from None
    except ValueError as error:
        if isinstance(error, PlanFileError):
            raise
        raise PlanFileError((), str(error), "JSON") from None
    if not isinstance(document, dict) or "schema" not in document:
        raise PlanFileError((), type(document).__name__, "an object with 'schema' and 'plan'")
    schema = document.pop("schema")
    if type(schema) is not int or schema != SCHEMA:
        raise PlanFileError(("schema",), schema, f"the number {SCHEMA}")
    return document


def to_dict(plan: Plan, path: KeyPath = ()) -> dict[str, Any]:
    """Return the plan as plain values: its kind, and the fields that differ from their defaults."""
    _check_depth(path)
    name = type(plan).__name__
    if plan_kind(name) is not type(plan):
        raise ParameterError("plan", plan, "made of declared mechanisms, losses and nodes")
    return _fields_of(plan, path)


def _fields_of(plan: Any, path: KeyPath) -> dict[str, Any]:
    """Return the kind of a plan, or of a value inside one, and the fields that are no defaults."""
    name = type(plan).__name__
    result: dict[str, Any] = {"kind": name}
    for key, parameter in constructor_fields(type(plan)).items():
        value = constructor_value(plan, parameter)
        if name == "ZCDPLoss" and key == "rho":  # the property `rho` includes xi
            value = plan.rho_per_order
        if parameter.default is inspect.Parameter.empty or value != parameter.default:
            result[key] = to_plain_value(value, (*path, key))
    return result


def constructor_value(plan: Any, parameter: inspect.Parameter) -> Any:
    """Return what a plan, or a value inside one, was made with."""
    return getattr(plan, parameter.name if hasattr(plan, parameter.name) else f"_{parameter.name}")


def from_dict(value: Any, path: KeyPath = ()) -> Plan:
    """Return the plan of plain values; ``count`` may stand with the fields of any kind."""
    _check_depth(path)
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        raise PlanFileError(path, value, "a table with a 'kind'")
    kind = plan_kind(value["kind"])
    if kind is None:
        kinds = plan_kinds()
        meant = nearest_name(value["kind"], {**kinds, **plan_field_kinds()})
        suggestion = [] if meant is None else [f"{meant} (did you mean this?)"]
        allowed = ", ".join([*suggestion, *sorted(kinds.keys() - {meant})])
        raise PlanFileError((*path, "kind"), value["kind"], f"one of {allowed}")
    fields = {key: field_value for key, field_value in value.items() if key != "kind"}
    count = fields.pop("count", None) if "count" not in constructor_fields(kind) else None
    plan = _constructed(kind, fields, path)
    try:
        return plan if count is None else Repeat(plan, count)
    except ParameterError as error:
        raise PlanFileError((*path, error.argument), error.value, error.allowed) from None


def _constructed(kind: type[Any], fields: dict[str, Any], path: KeyPath) -> Any:
    """Return a plan of this kind, or a value inside one, from its fields."""
    allowed = constructor_fields(kind)
    for key, value in fields.items():
        if key not in allowed:
            names = ", ".join([*allowed, "count"])
            raise PlanFileError((*path, key), value, f"absent: {kind.__name__} has {names}")
    required = [key for key, parameter in allowed.items() if parameter.default is parameter.empty]
    missing = [key for key in required if key not in fields]
    if missing:
        raise PlanFileError(path, kind.__name__, f"given with {', '.join(missing)}")
    arguments = {
        allowed[key].name: _value_from(value, (*path, key)) for key, value in fields.items()
    }
    try:
        return kind(**arguments)
    except ParameterError as error:
        argument = error.argument.rsplit(".", maxsplit=1)[-1]
        error_path = (*path, argument) if argument in allowed else path
        raise PlanFileError(error_path, error.value, error.allowed) from None


def _value_from(value: Any, path: KeyPath) -> Any:
    """Return a field's value from plain values: tables are plans, or values inside plans."""
    if isinstance(value, dict):
        kind = str(value.get("kind"))
        inner = TRIES_KINDS.get(kind) or plan_field_kinds().get(kind)
        if inner is not None:
            fields = {key: element for key, element in value.items() if key != "kind"}
            return _constructed(inner, fields, path)
        return from_dict(value, path)
    if isinstance(value, list):
        return tuple(_value_from(element, (*path, i)) for i, element in enumerate(value))
    return value


def to_plain_value(value: Any, path: KeyPath = ()) -> Any:
    """Return a field's value as a file stores it."""
    if isinstance(value, Plan):
        return to_dict(value, path)
    if isinstance(value, Tries) or is_plan_field(value):
        return _fields_of(value, path)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if callable(value):
        raise ParameterError("plan", value, "made of numbers and names: a file holds no function")
    if not isinstance(value, tuple):
        return value
    return [to_plain_value(element, (*path, i)) for i, element in enumerate(value)]


def _check_depth(path: KeyPath) -> None:
    if len(path) > 2 * MAX_DEPTH:
        why = f"nested at most {MAX_DEPTH} deep: one Sequential of all parts says the same"
        raise PlanFileError(path[:3], "...", why)


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise PlanFileError((), sorted(key for key, _ in pairs), "an object with distinct keys")
    return document


def _refuse_constant(word: str) -> Any:
    raise PlanFileError((), word, "a finite number")
