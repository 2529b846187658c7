"""A requested release (`Wanted`) as a table of plain values, as plan files store it.

A table has the ``kind`` of a mechanism or plan, its fields, and optionally ``name`` and ``count``:

    {"kind": "Laplace", "scale": 2.0, "count": 4}                   the noise is given
    {"kind": "Laplace", "error": "deviation", "target": 9.0}        an error not to be exceeded
    {"kind": "Laplace", "weight": 1.0, "fitted": 2.5}               a weight, and what it led to

With a ``target``, or with a ``weight`` of the error in the sum that is minimised over all
releases, the mechanism's noise scale is left out: it is open until `fit` finds it and writes it
down as ``fitted``.  `from_table` reads a table, `to_table` writes one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, final

from accountant.domains import POSITIVE
from accountant.errors import ParameterError
from accountant.planning.error_measures import (
    Deviation,
    Maximum,
    Measure,
    Quantile,
    Selection,
)
from accountant.planning.requests import Wanted
from accountant.plans.plan import Plan, Repeat
from accountant.serialisation.plan_json import (
    KeyPath,
    PlanFileError,
    from_dict,
    to_dict,
    to_plain_value,
)
from accountant.serialisation.registry import constructor_fields, plan_kind

NOISE_CHOICES = ("weight", "target")  # keys from which the noise is found, instead of a scale
FITTED = "fitted"  # key of the noise scale that `fit` found from a weight or a target
ERROR_FORMS = (
    '"deviation", { quantile = PROBABILITY }, { maximum = DIMENSION }, { selection = CANDIDATES } '
    "or { selection = CANDIDATES, probability = P }"
)


@final
@dataclass(frozen=True, slots=True)
class Template:
    """A plan in which mechanisms lack their noise scale: a function from one scale to a plan.

    ``text`` is the plan's table as JSON, so that equal templates compare as equal.
    """

    text: str

    def __call__(self, scale: float) -> Plan:
        """Return the plan with ``scale`` in place of every open noise scale."""
        return from_dict(_with_open_scales(json.loads(self.text), scale))


def from_table(table: Any, path: KeyPath) -> Wanted:
    """Return the release of a table, or raise `PlanFileError`.

    ``path`` leads to the table in its document; error messages show it.  With ``fitted`` the
    release is a plan with that noise scale; the weight or target is then only checked.
    """
    if not isinstance(table, dict):
        raise PlanFileError(path, table, "a table with a 'kind'")
    mechanism_fields = dict(table)
    kind = plan_kind(str(mechanism_fields.get("kind")))
    kind_fields = constructor_fields(kind) if kind else {}
    release_fields = {
        key: mechanism_fields.pop(key)
        for key in ("name", "error", *NOISE_CHOICES, FITTED)
        if key in mechanism_fields
    }
    if "count" in mechanism_fields and "count" not in kind_fields:
        release_fields["count"] = mechanism_fields.pop("count")
    given_choices = [key for key in NOISE_CHOICES if key in release_fields]
    fitted = release_fields.pop(FITTED, None)
    if fitted is not None and not given_choices:
        reason = "absent: it stands beside a weight or a target; noise set by hand is a scale"
        raise PlanFileError((*path, FITTED), fitted, reason)
    try:
        if "error" in release_fields:
            release_fields["error"] = _measure(release_fields["error"])
        if not given_choices:
            return Wanted(from_dict(mechanism_fields, path), **release_fields)
        release_fields.setdefault("error", Deviation())
        release = _release_without_noise(mechanism_fields, path, release_fields)
        # This raises if the mechanism does not declare the error that the measure asks for.
        release.error_at(release.unit)
        if fitted is not None:
            plan = release.plan(POSITIVE.check(FITTED, fitted))
            release = Wanted(plan, release.error, count=release.count, name=release.name)
    except PlanFileError:
        raise
    except ParameterError as error:
        error_path = (*path, error.argument) if error.argument in table else path
        raise PlanFileError(error_path, error.value, error.allowed) from None
    return release


def _release_without_noise(
    mechanism_fields: dict[str, Any], path: KeyPath, release_fields: dict[str, Any]
) -> Wanted:
    """Return the release of a weight or target, whose noise is still open.

    A mechanism with plain fields is stored as its class, any other plan as a `Template`.
    """
    # If the kind is unknown, `from_dict` raises the error that says so.
    kind = plan_kind(str(mechanism_fields.get("kind"))) or type(from_dict(mechanism_fields, path))
    if _with_open_scales(mechanism_fields, 1.0) == mechanism_fields:
        given_choices = " and ".join(key for key in NOISE_CHOICES if key in release_fields)
        raise PlanFileError(
            path, given_choices, "absent where the noise is given, or no noise to find"
        )
    # Any other error of the table is raised here, with its path.
    from_dict(_with_open_scales(mechanism_fields, 1.0), path)
    if hasattr(kind, "knob") and not any(
        isinstance(value, (dict, list)) for value in mechanism_fields.values()
    ):
        plain_fields = {key: value for key, value in mechanism_fields.items() if key != "kind"}
        return Wanted(kind, **release_fields, **plain_fields)
    return Wanted(Template(json.dumps(mechanism_fields, sort_keys=True)), **release_fields)


def to_table(release: Wanted) -> dict[str, Any]:
    """Return the release as a table; a family or an error that is a function is refused."""
    table: dict[str, Any]
    if isinstance(release.family, Plan):
        table = to_dict(release.family)
    elif isinstance(release.family, Template):
        table = json.loads(release.family.text)
    elif isinstance(release.family, type):
        table = {"kind": release.family.__name__}
        table |= {key: to_plain_value(value) for key, value in release.fields}
    else:
        raise ParameterError(
            "plan", release.family, "made of numbers and names: a file holds no function"
        )
    if release.scale is not None:
        table[release.knob] = release.scale
    if release.count != 1:
        if "count" in table:  # that of a `Repeat`, which stays the part's own
            table = {"kind": Repeat.__name__, "part": table}
        table["count"] = release.count
    if release.name:
        table = {"name": release.name, **table}
    if release.error is not None:
        table["error"] = _measure_as_value(release.error)
    return table | {
        key: value for key in NOISE_CHOICES if (value := getattr(release, key)) is not None
    }


def _measure(value: Any) -> Measure:
    """Return the error measure of a table's ``error``; `ERROR_FORMS` shows what may stand there."""
    try:
        match value:
            case "deviation":
                return Deviation()
            case {"quantile": probability, **rest} if not rest:
                return Quantile(probability)
            case {"maximum": dimension, **rest} if not rest:
                return Maximum(dimension)
            case {"selection": candidates, "probability": probability, **rest} if not rest:
                return Selection(candidates, probability)
            case {"selection": candidates, **rest} if not rest:
                return Selection(candidates)
    except ParameterError as error:
        raise ParameterError("error", error.value, error.allowed) from None
    raise ParameterError("error", value, ERROR_FORMS)


def _measure_as_value(measure: object) -> Any:
    if isinstance(measure, Maximum):
        return {"maximum": measure.dimension}
    if isinstance(measure, Selection):
        probability = {} if measure.probability is None else {"probability": measure.probability}
        return {"selection": measure.candidates, **probability}
    if isinstance(measure, Quantile):
        return {"quantile": measure.probability}
    if isinstance(measure, Deviation):
        return "deviation"
    raise ParameterError("error", measure, "a measure: a file holds no function")


def _with_open_scales(value: Any, scale: float) -> Any:
    """Return the same values, with ``scale`` in every mechanism of a table that lacks a scale.

    Mechanisms with a parameter that can be calibrated have an attribute ``knob``.
    """
    if isinstance(value, list):
        return [_with_open_scales(element, scale) for element in value]
    if not isinstance(value, dict):
        return value
    filled = {key: _with_open_scales(element, scale) for key, element in value.items()}
    kind = plan_kind(str(filled.get("kind")))
    lacks_scale = kind is not None and hasattr(kind, "knob") and "scale" in constructor_fields(kind)
    return {"scale": scale, **filled} if lacks_scale else filled
