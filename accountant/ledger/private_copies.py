"""A gate's own copies of mechanisms and plans, which no query can change.

A gate charges a mechanism, draws from it, and records it.  An algorithm or a query that still holds
the mechanism could change its parameters in between, so the gate works on a copy.  The copy is
rebuilt from the class and the fields that the class declared; equal mechanisms share one copy.
A *leaf* of a plan is a single release: a mechanism or a loss.
"""

from __future__ import annotations

import copy
from typing import Any

from accountant.errors import ParameterError
from accountant.ledger.interfaces import class_name, drawing_mechanism
from accountant.losses.loss import Loss
from accountant.plans.declared_releases import (
    DECLARED_RELEASES,
    MOST_REMEMBERED,
    is_declared,
    is_plan_field,
    undeclared_part,
)
from accountant.plans.parallel import Parallel, Stated
from accountant.plans.plan import Plan, Release, Repeat, Sequential

# The classes of plans that combine others, with the names of their fields.
NODES: dict[type[Any], tuple[str, ...]] = {
    Sequential: ("parts",),
    Repeat: ("part", "count"),
    Parallel: ("parts", "by", "moves"),
    Stated: ("part", "relation"),
}
RELEASABLE = "a mechanism: it has a loss and can release"
DECLARED = (
    "a mechanism of a declared class, with no function of an author inside; what is not declared "
    "needs a gate made with undeclared=True, and every report shows it"
)


class PrivateCopies:
    """The copies that a gate charges, records and draws from.

    With ``undeclared`` mechanisms of classes that were not declared are admitted too.  They cannot
    be copied and are used as they are.
    """

    def __init__(self, undeclared: bool) -> None:
        self.undeclared = undeclared
        self._copies: dict[Any, Any] = {}  # copies of declared mechanisms, by themselves
        self._last_copy: Any = None  # often the next mechanism is the same

    def of(self, mechanism: Any) -> Any:
        """Return the copy to draw from of a mechanism, or raise `ParameterError`."""
        # The class is looked at first, because the == of an undeclared class could say anything,
        # and so could that of its metaclass: a class is known by its identity.
        if id(type(mechanism)) in DECLARED_RELEASES:
            last_copy = self._last_copy  # read once, because other threads write it
            if mechanism == last_copy:
                return last_copy
            own_copy = self._known_copy(mechanism)
            if own_copy is not None:
                self._last_copy = own_copy
                return own_copy
        if not _can_release(mechanism):
            raise ParameterError("mechanism", type(mechanism), RELEASABLE)
        self._refuse_undeclared(mechanism)
        return self._remembered(mechanism) if is_declared(mechanism) else mechanism

    def of_spent(self, plan: Any) -> Any:
        """Return the copy to charge of a plan, loss or mechanism; its outputs are drawn elsewhere.

        Unlike for `of` it need not be able to release.
        """
        last_copy = self._last_copy
        if id(type(plan)) in DECLARED_RELEASES and plan == last_copy:
            return last_copy
        if not isinstance(plan, Plan):
            raise ParameterError("mechanism", type(plan), "a plan, a loss or a mechanism")
        if _can_release(plan):
            return self.of(plan)
        # A loss itself is charged, at once, and nothing is drawn from it: it needs no copy.
        if isinstance(plan, Loss):
            return plan
        self._refuse_undeclared(plan)
        return self.of_plan(plan)

    def undeclared_class(self, mechanism: Any) -> str:
        """Return the name of the class in an admitted mechanism that is not declared, or ""."""
        return name_of_undeclared(mechanism) if self.undeclared else ""

    def _refuse_undeclared(self, plan: Any) -> None:
        part = None if self.undeclared else undeclared_part(plan)
        if part is not None:
            raise ParameterError("mechanism", type(part), DECLARED)

    def of_plan(self, plan: Plan) -> Plan:
        """Return a copy of a plan; its leaves are the copies that `of` returns."""
        rebuilt: Plan = _rebuilt(plan, self._of_leaf, {})
        return rebuilt

    def _of_leaf(self, leaf: Any) -> Any:
        """Return the copy of a leaf of a plan; None if it is not a declared mechanism."""
        own_copy = self._known_copy(leaf)
        if own_copy is None and is_declared(leaf) and _can_release(leaf):
            own_copy = self._remembered(leaf)
        return own_copy

    def _known_copy(self, mechanism: Any) -> Any:
        """Return the copy of an equal mechanism; None if it is new, or cannot be looked up."""
        try:
            return self._copies.get(mechanism)
        except TypeError:  # a function inside has no hash
            return None

    def _remembered(self, mechanism: Any) -> Any:
        """Return the copy of a declared mechanism, made now if it is new."""
        own_copy = self._copies.get(mechanism)
        if own_copy is None:
            if len(self._copies) >= MOST_REMEMBERED:
                self._copies.clear()
            own_copy = shown(mechanism)
            self._copies[own_copy] = own_copy
        return own_copy


def shown(plan: Any) -> Any:
    """Return a new copy of a plan or mechanism; changes of either do not change the other."""
    return _rebuilt(plan, None, {})


def name_of_undeclared(plan: Any) -> str:
    """Return the name of the class in a plan that can release and is not declared, or ""."""
    part = undeclared_part(plan)
    return "" if part is None else class_name(part)


def _can_release(mechanism: Any) -> bool:
    # An isinstance check against the protocol would take as long as a draw.
    return isinstance(mechanism, Release) and hasattr(drawing_mechanism(mechanism), "release")


def _rebuilt(plan: Any, of_leaf: Any, rebuilt_by_id: dict[int, Any]) -> Any:
    """Return a copy of a plan; an object that the plan holds many times is copied once.

    ``of_leaf`` returns the copy to use for a declared mechanism, or None to make a new one;
    ``rebuilt_by_id`` has the copies that were made so far.  Plans that combine others, and declared
    mechanisms without one, are made anew by their constructors; other losses are copied; what is
    left, such as a mechanism of an undeclared class, stays as it is.
    """
    rebuilt = rebuilt_by_id.get(id(plan))
    if rebuilt is None:
        kind = type(plan)
        if id(kind) in DECLARED_RELEASES and of_leaf is not None:
            rebuilt = of_leaf(plan)
        if rebuilt is None and (kind in NODES or is_declared(plan)):
            names = NODES.get(kind) or DECLARED_RELEASES[id(kind)].fields
            rebuilt = kind(
                **{n: _rebuilt_field(getattr(plan, n), of_leaf, rebuilt_by_id) for n in names}
            )
        if rebuilt is None:
            rebuilt = copy.copy(plan) if isinstance(plan, Loss) else plan
        rebuilt_by_id[id(plan)] = rebuilt
    return rebuilt


def _rebuilt_field(value: Any, of_leaf: Any, rebuilt_by_id: dict[int, Any]) -> Any:
    if isinstance(value, tuple):
        return tuple(_rebuilt_field(element, of_leaf, rebuilt_by_id) for element in value)
    if is_plan_field(value):  # such as a strategy matrix
        return copy.copy(value)
    return _rebuilt(value, of_leaf, rebuilt_by_id) if isinstance(value, Plan) else value
