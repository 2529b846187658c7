"""A requested release as a table of plain values, as files store it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, final

from accountant.domains import POSITIVE
from accountant.errors import ParameterError
from accountant.planning.error_measures import Deviation, Maximum, Measure, Selection
from accountant.planning.requests import Wanted
from accountant.plans.plan import Plan
from accountant.serialisation.plan_json import (
    KeyPath,
    PlanFileError,
    from_dict,
    to_dict,
    to_plain_value,
)
from accountant.serialisation.registry import constructor_fields, plan_kind

NOISE_CHOICES = ("weight", "target")
FITTED = "fitted"  # the scale that `fit` found from a weight or a target
ERROR_FORMS = '"deviation", { maximum = DIMENSION } or { selection = CANDIDATES }'


@final
@dataclass(frozen=True, slots=True)
class Template:
    """A plan in a file with one open noise scale: a function of that scale."""

    text: str

    def __call__(self, scale: float) -> Plan:
        """Return the plan with ``scale`` in place of every open noise scale."""
        return from_dict(_with_open_scales(json.loads(self.text), scale))


def from_table(table: Any, path: KeyPath) -> Wanted:
    """Return the release of a table, or raise `PlanFileError`."""
    if not isinstance(table, dict):
        raise PlanFileError(path, table, "a table with a 'kind'")
    inner = dict(table)
    kind = plan_kind(str(inner.get("kind")))
    kind_fields = constructor_fields(kind) if kind else {}
    release_fields = {
        key: inner.pop(key) for key in ("name", "error", *NOISE_CHOICES, FITTED) if key in inner
    }
    if "count" in inner and "count" not in kind_fields:
        release_fields["count"] = inner.pop("count")
    shares = [key for key in NOISE_CHOICES if key in release_fields]
    fitted = release_fields.pop(FITTED, None)
    if fitted is not None and not shares:
        why = "absent: it stands beside a weight or a target; noise set by hand is a scale"
        raise PlanFileError((*path, FITTED), fitted, why)
    try:
        if "error" in release_fields:
            release_fields["error"] = _measure(release_fields["error"])
        if not shares:
            return Wanted(from_dict(inner, path), **release_fields)
        release_fields.setdefault("error", Deviation())
        release = _release_without_noise(inner, path, release_fields)
        release.error_at(release.unit)  # raises for a measure that the mechanism does not declare
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
    inner: dict[str, Any], path: KeyPath, release_fields: dict[str, Any]
) -> Wanted:
    """Return a release whose noise is still open."""
    # `from_dict` raises where the kind is unknown
    kind = plan_kind(str(inner.get("kind"))) or type(from_dict(inner, path))
    if _with_open_scales(inner, 1.0) == inner:
        shares = " and ".join(key for key in NOISE_CHOICES if key in release_fields)
        raise PlanFileError(path, shares, "absent where the noise is given, or no noise to find")
    from_dict(_with_open_scales(inner, 1.0), path)  # raises any other error with its path
    if hasattr(kind, "knob") and not any(
        isinstance(value, (dict, list)) for value in inner.values()
    ):
        plain_fields = {key: value for key, value in inner.items() if key != "kind"}
        return Wanted(kind, **release_fields, **plain_fields)
    return Wanted(Template(json.dumps(inner, sort_keys=True)), **release_fields)


def to_table(release: Wanted) -> dict[str, Any]:
    """Return the release as a table; a function is refused."""
    table: dict[str, Any] = {"name": release.name} if release.name else {}
    if isinstance(release.family, Plan):
        table |= to_dict(release.family)
    elif isinstance(release.family, Template):
        table |= json.loads(release.family.text)
    elif isinstance(release.family, type):
        table |= {"kind": release.family.__name__}
        table |= {key: to_plain_value(value) for key, value in release.fields}
    else:
        raise ParameterError(
            "plan", release.family, "made of numbers and names: a file holds no function"
        )
    if release.scale is not None:
        table[release.knob] = release.scale
    if release.count != 1:
        table["count"] = release.count
    if release.error is not None:
        table["error"] = _measure_as_value(release.error)
    return table | {
        key: value for key in NOISE_CHOICES if (value := getattr(release, key)) is not None
    }


def _measure(value: Any) -> Measure:
    if value == "deviation":
        return Deviation()
    if isinstance(value, dict) and len(value) == 1:
        [(name, size)] = value.items()
        if name in {"maximum", "selection"}:
            try:
                return Maximum(size) if name == "maximum" else Selection(size)
            except ParameterError as error:
                raise ParameterError("error", size, error.allowed) from None
    raise ParameterError("error", value, ERROR_FORMS)


def _measure_as_value(measure: object) -> Any:
    if isinstance(measure, Maximum):
        return {"maximum": measure.dimension}
    if isinstance(measure, Selection):
        return {"selection": measure.candidates}
    if isinstance(measure, Deviation):
        return "deviation"
    raise ParameterError("error", measure, "a measure: a file holds no function")


def _with_open_scales(value: Any, scale: float) -> Any:
    """Return the same values, with ``scale`` in every mechanism that lacks its parameter."""
    if isinstance(value, list):
        return [_with_open_scales(element, scale) for element in value]
    if not isinstance(value, dict):
        return value
    filled = {key: _with_open_scales(element, scale) for key, element in value.items()}
    kind = plan_kind(str(filled.get("kind")))
    open_ = kind is not None and hasattr(kind, "knob") and "scale" in constructor_fields(kind)
    return {"scale": scale, **filled} if open_ else filled
