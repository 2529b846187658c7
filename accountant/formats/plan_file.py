"""The content of a plan file: [[release]] tables and an optional [budget] table.

The noise of a release is open while only a weight or a target for its error is given;
`dp-attest account fit` finds a scale for it.  Files are read and written elsewhere
(`accountant/formats/plan_toml.py`); this module converts between their tables and objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from accountant.accountants.budget import Budget
from accountant.errors import ParameterError
from accountant.formats.request_tables import FITTED, from_table, to_table
from accountant.planning.allocation_table import Allocation, sequential_plan
from accountant.planning.requests import Wanted
from accountant.plans.plan import Plan, Repeat
from accountant.serialisation.plan_json import KeyPath, PlanFileError, from_dict


@final
@dataclass(frozen=True, slots=True)
class PlanFile:
    """The releases of a file, in the file's order, and the budget that they may cost together."""

    releases: tuple[Wanted, ...]
    budget: Budget | None = None

    @property
    def plan(self) -> Plan:
        """Return the plan of the releases one after another, or raise where noise is open."""
        for i, release in enumerate(self.releases):
            if release.weight is not None or release.target is not None:
                why = "given its noise (`dp-attest account fit` finds it from weight or target)"
                raise PlanFileError(("release", i), release.label, why)
        return sequential_plan(self.releases, tuple(release.scale for release in self.releases))

    def with_noise_of(self, allocation: Allocation) -> PlanFile:
        """Return the releases and the budget of an allocation, with the noise that it found."""
        pairs = zip(allocation.releases, allocation.scales, strict=True)
        releases = (
            Wanted(release.plan(scale), release.error, count=release.count, name=release.name)
            for release, scale in pairs
        )
        return PlanFile(tuple(releases), allocation.budget)

    def to_dict(self) -> dict[str, Any]:
        """Return the tables as dicts and lists of numbers and strings."""
        budget = (
            {}
            if self.budget is None
            else {"budget": {"epsilon": self.budget.epsilon, "delta": self.budget.delta}}
        )
        return {**budget, "release": [to_table(release) for release in self.releases]}

    @classmethod
    def of(cls, plan: Plan) -> PlanFile:
        """Return a file with one release, the plan; a repeated plan becomes one with a count."""
        part = plan.part if isinstance(plan, Repeat) else plan
        return cls((Wanted(part, count=plan.count if isinstance(plan, Repeat) else 1),))

    @classmethod
    def from_dict(cls, document: dict[str, Any], again: bool = False) -> PlanFile:
        """Return the file that such tables describe, or raise `PlanFileError`.

        With ``again`` noise that `fit` found from weights and targets is taken as open, so that it
        is found anew.
        """
        for key, value in document.items():
            if key not in {"budget", "release"}:
                why = f"absent: unknown key {key!r}; a plan file has [[release]] and [budget]"
                raise PlanFileError((key,), value, why)
        tables = document.get("release")
        if not isinstance(tables, list) or not tables:
            why = "a list; there are no [[release]] tables, each with a kind, such as 'Laplace'"
            raise PlanFileError(("release",), tables, why)
        budget = _budget(document["budget"]) if "budget" in document else None
        releases = tuple(from_table(table, ("release", i)) for i, table in enumerate(tables))
        if again:
            open_ = [{**table, FITTED: None} for table in tables]
            releases = tuple(from_table(table, ("release", i)) for i, table in enumerate(open_))
        earlier_names: set[str] = set()
        for i, release in enumerate(releases):
            if release.name and release.name in earlier_names:
                raise PlanFileError(("release", i, "name"), release.name, "a name of its own")
            earlier_names.add(release.name)
        return cls(releases, budget)


def plan_file_of_document(document: dict[str, Any], again: bool = False) -> PlanFile:
    """Return the file from the content of a JSON document: {plan}, or {budget, release}."""
    if set(document) == {"plan"}:
        return PlanFile.of(from_dict(document["plan"], ("plan",)))
    return PlanFile.from_dict(document, again)


def _budget(table: Any) -> Budget:
    """Return the budget of the table [budget], or raise `PlanFileError` at the wrong key."""
    path: KeyPath = ("budget",)
    if not isinstance(table, dict):
        raise PlanFileError(path, table, "a table with an epsilon")
    for key in table:
        if key not in {"epsilon", "delta"}:
            raise PlanFileError((*path, key), table[key], "absent: a budget has epsilon, delta")
    if "epsilon" not in table:
        raise PlanFileError(path, "budget", "given with epsilon")
    try:
        return Budget(**table)
    except ParameterError as error:
        raise PlanFileError((*path, error.argument), error.value, error.allowed) from None
