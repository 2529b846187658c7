"""The position of a gate in the plan that it follows.

A plan is a tree whose leaves are single releases.  The gate may release the next leaf only.  In a
`Parallel` node each user belongs to one part, and every part has a position of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, tee
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant.errors import OffPlan
from accountant.ledger.interfaces import Releasable, charged_plan
from accountant.ledger.private_data import Users, count_users
from accountant.losses.loss import Loss
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Plan


class PlanCursor:
    """The next leaf of a plan that may be released, and the parts to which users belong.

    A release takes constant time, however long the plan is.  `charge` checks all conditions before
    it moves on.
    """

    def __init__(self, plan: Plan, users: int, group_size: int | None = None) -> None:
        self._leaves: Iterator[Plan] = plan.leaves()
        self._next: Plan | None = next(self._leaves, None)
        self._users = users
        self._part_cursors: list[PlanCursor] = []
        self._parts: list[Plan] = []
        self._part_of_user: NDArray[np.int32] | None = None
        # how many of the users follow this plan: all, or those of one part
        self._group_size = users if group_size is None else group_size
        self._unassigned_users = self._group_size

    @property
    def next(self) -> Plan | None:
        """Return the leaf that may be released next; a parallel stays until all parts are done."""
        return self._next

    def check(self, plan: Plan) -> None:
        """Refuse leaves that are not the next ones, in their order."""
        self._leaves, ahead = tee(self._leaves)
        coming = chain([self._next], ahead)
        for leaf in plan.leaves():
            refuse_other(leaf, next(coming, None))

    def charge(self, mechanism: Releasable, who: Users | None) -> None:
        """Move on by one release of ``mechanism``, or raise `OffPlan` and stay."""
        if who is not None and count_users(who) == 0:  # no user answers, so no user pays
            return
        if isinstance(self._next, Parallel):
            self._charge_part(self._next, mechanism, who)
            return
        refuse_other(mechanism, self._next)
        self._next = next(self._leaves, None)

    def _charge_part(self, node: Parallel, mechanism: Releasable, who: Users | None) -> None:
        """Move on in the part to which the users ``who`` belong, or open the next part for them.

        Users who have no part yet are those of the next part from then on.
        """
        if who is None:
            raise OffPlan(mechanism, node, "parts are released by release_each, which names users")
        if self._part_of_user is None:
            self._part_of_user = np.full(self._users, -1, dtype=np.int32)  # -1: no part yet
            # A part without releases has no users to wait for.
            self._parts = [part for part in node.parts if next(part.leaves(), None) is not None]
            self._unassigned_users = self._group_size
        owners = self._part_of_user[who]
        part = int(owners[0])
        if not np.all(owners == part):
            raise OffPlan(mechanism, node, "these users belong to different parts")
        if part >= 0:
            self._part_cursors[part].charge(mechanism, who)
        else:
            if len(self._part_cursors) == len(self._parts):
                raise OffPlan(mechanism, node, "all parts have their users already")
            fresh = PlanCursor(self._parts[len(self._part_cursors)], self._users, owners.size)
            fresh.charge(mechanism, who)
            self._part_of_user[who] = len(self._part_cursors)
            self._unassigned_users -= owners.size
            self._part_cursors.append(fresh)
        # If all users have a part, the parts that were not opened stay without users.
        opened = len(self._part_cursors) == len(self._parts) or self._unassigned_users == 0
        if opened and all(cursor.next is None for cursor in self._part_cursors):
            self._next, self._part_cursors, self._part_of_user = next(self._leaves, None), [], None


def refuse_other(mechanism: Any, leaf: Plan | None) -> None:
    """Raise `OffPlan` unless a leaf of a plan allows a mechanism."""
    # A leaf that is a declared mechanism must be released as itself; a leaf that is only a loss may
    # be released by any mechanism that has this loss.
    released: object = mechanism
    if isinstance(leaf, Loss) and not isinstance(mechanism, Loss):
        released = charged_plan(mechanism)
    if released is not leaf and (leaf is None or released != leaf):
        raise OffPlan(mechanism, leaf)
