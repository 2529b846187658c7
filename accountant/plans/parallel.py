"""Plans on disjoint groups of users, and plans whose neighbours were stated (`Stated`).

A plan lists what is released; its relation says how two neighbouring data sets differ (add-remove,
replace-one, ...).  Accountants ask a plan for its losses: (item, count) pairs, an item being the
loss of one release or a `Parallel`.

Reference: McSherry (2009), Theorem 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import final

from accountant.domains import OneOf
from accountant.errors import ParameterError
from accountant.plans.adjacency import Adjacency, check_relation, common_relation
from accountant.plans.plan import Item, Plan, Sequential, as_plan, checked_parts, distinct_objects

GROUPING = OneOf(("index", "value"))


@dataclass(frozen=True, slots=True, repr=False)
class Parallel(Item):
    """Plans on disjoint groups of users: a user is in one group and pays for its part alone.

    A user has one record.  Where its value decides the group, a replaced record can move to another
    group.  It is then removed from the data of the first group and added to those of the second,
    and pays for both.

    Parameters
    ----------
    parts : iterable of Plan
        One plan a group.
    by : {"index", "value"}
        "index": it is public who is in which group.  "value": the record decides.
    moves : iterable of Plan
        For replace-one neighbours ``by="value"``: for each part, in order, the same release stated
        for add-remove neighbours; the parts themselves are stated for replace-one neighbours.  A
        record that stays in group i costs ``parts[i]``; one that moves from i to j costs both
        ``moves[i]`` and ``moves[j]`` reversed.  Without moves the parts of a plan by value must be
        stated for add-remove neighbours.

    References
    ----------
    McSherry (2009), Theorem 4.

    Examples
    --------
    >>> from accountant import Parallel, PureLoss, Tight
    >>> Tight().epsilon(Parallel([PureLoss(0.1), PureLoss(0.3)]), delta=0.0)
    0.3
    """

    parts: tuple[Plan, ...]
    by: str
    moves: tuple[Plan, ...]

    def __init__(
        self, parts: Iterable[Plan], by: str = "index", moves: Iterable[Plan] = ()
    ) -> None:
        object.__setattr__(self, "parts", checked_parts(parts))
        object.__setattr__(self, "by", GROUPING.check("by", by))
        object.__setattr__(self, "moves", checked_parts(moves))
        of_parts = common_relation(distinct_objects(self.parts))
        of_moves = common_relation(distinct_objects(self.moves))
        if self.moves:
            wrong = self.by != "value" or len(self.moves) != len(self.parts)
            if wrong or of_moves not in (None, Adjacency.ADD_REMOVE):
                allowed = "one plan stated for add-remove neighbours for each part, by value"
                raise ParameterError("moves", moves, allowed)
            # A record that is replaced and stays can move a part twice as far as its presence does.
            if of_parts not in (None, Adjacency.REPLACE_ONE):
                allowed = f"stated for replace-one neighbours where moves are given, not {of_parts}"
                raise ParameterError("parts", self.parts, allowed)
        elif self.by == "value" and of_parts is Adjacency.REPLACE_ONE:
            allowed = (
                f"given for {of_parts} parts: a record's new value can move it to another part"
            )
            raise ParameterError("moves", self.moves, allowed)
        elif self.by == "value" and of_parts not in (None, Adjacency.ADD_REMOVE):
            allowed = f"stated for add-remove neighbours where a value decides, not {of_parts}"
            raise ParameterError("parts", self.parts, allowed)

    def __repr__(self) -> str:
        runs = [(part, len(list(same))) for part, same in groupby(self.parts)]
        parts = " + ".join(f"[{part!r}]" + (f" * {n}" if n > 1 else "") for part, n in runs)
        shown = [parts or "[]"]
        if self.by != "index":
            shown.append(f"by={self.by!r}")
        if self.moves:
            shown.append(f"moves={list(self.moves)!r}")
        return f"Parallel({', '.join(shown)})"

    @property
    def relation(self) -> Adjacency | None:
        """The relation of its parts; with ``moves``, replace-one; else by value, add-remove."""
        if self.moves:
            return Adjacency.REPLACE_ONE
        # Not None, even where no part states a relation: the plan could then be stated for
        # replace-one, and without moves the cost of a record that changes its group is not known.
        if self.by == "value" and self.parts:
            return Adjacency.ADD_REMOVE
        return common_relation(distinct_objects(self.parts))

    @property
    def distinct(self) -> tuple[Plan, ...]:
        """The plans of which a user pays for one: the parts, and what moves between groups cost."""
        crossed = [
            Sequential([leaving, joining.reversed])
            for i, leaving in enumerate(self.moves)
            for j, joining in enumerate(self.moves)
            if i != j
        ]
        plans: dict[Plan, None] = {}
        for part in dict.fromkeys([*distinct_objects(self.parts), *crossed]):
            match list(part.losses()):
                # A part that is one parallel plan and nothing else adds its own alternatives.
                case [(Parallel() as inner, 1)]:
                    plans |= dict.fromkeys(inner.distinct)
                case _:
                    plans[part] = None
        return tuple(plans)

    def losses(self) -> Iterator[tuple[Item, int]]:
        """Yield this plan once: accountants take the maximum over what a user may pay for."""
        if self.parts:
            yield self, 1

    def leaves(self) -> Iterator[Plan]:
        """Yield this plan, if any part is not empty: the ledger opens one part for each group."""
        if any(next(part.leaves(), None) is not None for part in self.distinct):
            yield self

    @property
    def reversed(self) -> Parallel:
        """The same plan with every part reversed; equal parts are reversed once."""
        # Thousands of parts are often the same few objects: looking up objects by id is much faster
        # than comparing plans.
        objects = distinct_objects([*self.parts, *self.moves])
        equal = {part: part.reversed for part in dict.fromkeys(objects)}
        backwards = {id(part): equal[part] for part in objects}
        moves = (backwards[id(move)] for move in self.moves)
        return Parallel((backwards[id(part)] for part in self.parts), self.by, moves)


@final
@dataclass(frozen=True, slots=True)
class Stated(Plan):
    """A plan whose sensitivities were stated for the neighbours of ``relation``.

    Plans stated for different neighbours do not mix in one total.

    Parameters
    ----------
    part : Plan
        The plan; not stated for other neighbours already.  Exception: a plan stated for
        local-replace neighbours, where each user randomises an own value, may be stated for
        label-replace where that value is the label.
    relation : str
        A value of `accountant.plans.adjacency.Adjacency`, such as "add-remove" or "replace-one".

    Examples
    --------
    >>> from accountant import PureLoss, Stated
    >>> Stated(PureLoss(1.0), "replace-one").relation == "replace-one"
    True
    """

    part: Plan
    relation: Adjacency

    def __init__(self, part: Plan, relation: str) -> None:
        object.__setattr__(self, "part", part)
        object.__setattr__(self, "relation", check_relation("relation", relation))
        compatible = {None, self.relation}
        if self.relation is Adjacency.LABEL_REPLACE:  # a changed label is a changed own value
            compatible.add(Adjacency.LOCAL_REPLACE)
        if as_plan(self.part).relation not in compatible:
            raise ParameterError("part", self.part, f"stated for {self.relation!r} neighbours")

    def losses(self) -> Iterator[tuple[Item, int]]:
        """Yield the losses of the part."""
        return self.part.losses()

    def losses_in_order(self) -> Iterator[tuple[Item, int]]:
        """Yield the losses of the part in order."""
        return self.part.losses_in_order()

    def leaves(self) -> Iterator[Plan]:
        """Yield the leaves of the part."""
        return self.part.leaves()

    @property
    def reversed(self) -> Stated:
        """The part reversed, for the same neighbours."""
        return Stated(self.part.reversed, self.relation)
