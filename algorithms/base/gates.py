"""What opens the gates of a fit that is paid for elsewhere."""

from __future__ import annotations

from typing import Any, Final

from accountant.ledger.ledger import Ledger
from accountant.plans.plan import Plan
from accountant.randomness import Rng


class Gates:
    """In place of the ``ledger`` of a fit: opens its gates, and charges nothing.

    A search pays for all its fits; an audit opens gates that record what a fit asks.
    """

    def open(
        self, data: Any, plan: Plan, *, rng: Rng = None, public: Any = None, transcript: str
    ) -> Any:
        """Return a gate on the data, as `Ledger` is one."""
        return Ledger(data, plan, rng=rng, public=public, transcript=transcript)


PAID: Final = Gates()
