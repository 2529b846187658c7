"""Adjacency: how two neighbouring data sets differ, and so the unit that privacy protects."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any, Final, Protocol, TypeVar, overload

from accountant.domains import OneOf
from accountant.errors import ParameterError


class Adjacency(enum.StrEnum):
    """How two neighbouring data sets differ; equal to its string, the form used in files."""

    ADD_REMOVE = "add-remove"
    ZERO_OUT = "zero-out"
    REPLACE_ONE = "replace-one"
    LABEL_REPLACE = "label-replace"
    LOCAL_REPLACE = "local-replace"
    MACHINE_REPLACE = "machine-replace"

    @property
    def difference(self) -> str:
        """The difference between two neighbours, in words."""
        return _DIFFERENCES[self]

    def __repr__(self) -> str:
        # A plan's repr names its relation, and books and reports keep that text.
        return repr(self.value)


_DIFFERENCES = {
    Adjacency.ADD_REMOVE: "one record more or less",
    Adjacency.ZERO_OUT: "one record blanked, its place kept",
    Adjacency.REPLACE_ONE: "one record exchanged for another",
    Adjacency.LABEL_REPLACE: "one record's label, its features being public",
    Adjacency.LOCAL_REPLACE: "one user's own record, randomised by that user",
    Adjacency.MACHINE_REPLACE: "all data of one machine",
}
# How two data sets that one curator holds can differ by a record.
RECORD_RELATIONS = (Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE)
# The same where records have places in batches: a blank record adds nothing to any sum, and the
# others keep their batches; a removed record can move others to other batches.
SAMPLING_RELATIONS = (Adjacency.ADD_REMOVE, Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE)
# Of two such neighbours one has the contribution of the record, and the other nothing instead.
PRESENCE_RELATIONS = (Adjacency.ADD_REMOVE, Adjacency.ZERO_OUT)
REPLACE: Final = "replace"  # the default of the estimators' `relation`
ALIASES = {REPLACE: Adjacency.REPLACE_ONE, "add/remove": Adjacency.ADD_REMOVE}
_Relation = TypeVar("_Relation", bound=enum.StrEnum)


@overload
def check_relation(argument: str, value: object) -> Adjacency: ...
@overload
def check_relation(argument: str, value: object, allowed: Iterable[_Relation]) -> _Relation: ...
def check_relation(argument: str, value: object, allowed: Iterable[Any] = Adjacency) -> Any:
    """Return the one of ``allowed`` that ``value`` is or names, or raise `ParameterError`."""
    choices = {str(relation): relation for relation in allowed}
    named = ALIASES.get(value, value) if isinstance(value, str) else value
    if not isinstance(named, str) or named not in choices:
        raise ParameterError(argument, value, str(OneOf(tuple(choices))))
    return choices[named]


class HasRelation(Protocol):
    """A value that may have been stated for some neighbours."""

    @property
    def relation(self) -> Adjacency | None:
        """The neighbours, or None."""
        ...


def common_relation(parts: Iterable[HasRelation]) -> Adjacency | None:
    """Return the one relation the parts were stated for; None where no part states one."""
    relations = {part.relation for part in parts} - {None}
    if len(relations) > 1:
        allowed = "stated for the same neighbours: relations do not mix in one total"
        raise ParameterError("parts", sorted(map(str, relations)), allowed)
    return relations.pop() if relations else None


def joint_relation(stated: str | None, released: HasRelation) -> str | None:
    """Return the neighbours of all releases so far, and of ``released``; refuse different ones."""
    relations = {stated, released.relation} - {None}
    if len(relations) > 1:
        allowed = "stated for the neighbours of earlier releases: relations do not mix"
        raise ParameterError("mechanism", " and ".join(sorted(map(str, relations))), allowed)
    return relations.pop() if relations else None
