"""Who neighbours are: the change that must not show, and the unit it protects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from accountant.errors import ParameterError

ADD_REMOVE = "add-remove"
REPLACE_ONE = "replace-one"
# what two neighbouring data sets differ by
RELATIONS = {
    ADD_REMOVE: "one record more or less",
    REPLACE_ONE: "one record exchanged for another",
    "label-replace": "one record's label, its features being public",
    "local-replace": "one user's own record, randomised by that user",
    "machine-replace": "all data of one machine",
}


class HasRelation(Protocol):
    """Whatever was stated for some neighbours."""

    @property
    def relation(self) -> str | None:
        """A key of `RELATIONS`, or None."""
        ...


def common_relation(parts: Iterable[HasRelation]) -> str | None:
    """The one relation the parts were stated for; None where none says so."""
    found = {part.relation for part in parts} - {None}
    if len(found) > 1:
        allowed = "stated for the same neighbours: relations do not mix in one total"
        raise ParameterError("parts", sorted(map(str, found)), allowed)
    return found.pop() if found else None
