"""A gate without a plan: answers may choose what comes next, until the budget is spent."""

from __future__ import annotations

import math
from typing import Any, final

from accountant.accountants.budget import Budget
from accountant.domains import DELTA
from accountant.errors import ParameterError
from accountant.ledger.composition_notions import notion_of, unlimited_notion
from accountant.ledger.interfaces import Releasable
from accountant.ledger.ledger import Ledger
from accountant.ledger.private_data import Users
from accountant.ledger.totals import CompositionNotion
from accountant.losses.loss import Loss
from accountant.losses.zcdp import ZCDPLoss
from accountant.plans.declared_releases import DECLARED_RELEASES
from accountant.randomness import Rng

ODOMETER_FILTERS = 81  # of an odometer: rho from 2^-20 to 2^20 by factors of sqrt 2


class FilterMeter:
    """A meter that adds the costs of all requests."""

    next = None

    def __init__(self, notion: CompositionNotion[Any]) -> None:
        self.notion, self.total = notion, notion.zero

    def charge(self, mechanism: Releasable, who: Users | None) -> None:
        """Charge all users, also where only some of them are asked."""
        self.total = self.notion.charge(self.total, mechanism.loss)


@final
class Filter(Ledger):
    """Data that can be asked anything, in any order, until a budget is spent; in memory.

    Each notion has a theorem that allows the next release to depend on earlier answers; profiles
    and grids have none and are refused.

    Parameters
    ----------
    data : array or tuple of arrays
        One row a user.
    budget : Budget
        What may be spent in all.
    notion : {"pure", "zcdp", "rdp", "gdp"}, optional
        What is added up: by default "pure" where the budget's delta is 0, else "zcdp".
    rng : int or numpy.random.Generator, optional
        Repeats a run, for audits and tests.
    public : Any
        What is public beside the data.
    transcript : {"full", "digest"}
        As in `Ledger`.
    order : float, optional
        The Rényi order of "rdp", above 1, fixed here.
    undeclared : bool
        As in `Ledger`.

    References
    ----------
    Rogers, Roth, Ullman & Vadhan (2016); Feldman & Zrnic (2021); Whitehouse, Ramdas, Rogers & Wu
    (2023).

    Examples
    --------
    >>> import numpy as np
    >>> from accountant import Budget, Filter
    >>> from mechanisms import Laplace
    >>> gate = Filter(np.arange(10.0), Budget(1.0), rng=0)
    >>> answer = gate.release(Laplace(10.0, arithmetic="exact"), np.sum)
    >>> gate.spent <= 0.1000001
    True
    """

    def __init__(
        self,
        data: Any,
        budget: Budget,
        notion: str | None = None,
        rng: Rng = None,
        public: Any = None,
        transcript: str = "full",
        order: float | None = None,
        undeclared: bool = False,
    ) -> None:
        if not isinstance(budget, Budget):
            raise ParameterError("budget", budget, "a Budget")
        self._filter_meter = FilterMeter(notion_of(notion, budget, order))
        super().__init__(data, None, rng, public, transcript, undeclared, self._filter_meter)
        self.budget = budget

    def spend(self, mechanism: Releasable) -> None:
        """Charge a release that was made elsewhere on the same data.

        Parameters
        ----------
        mechanism : Mechanism, loss or plan
            What was released.

        Raises
        ------
        BudgetExceeded
            If it does not fit; nothing is spent.
        """
        # a loss is the caller's word already, for a release that this gate does not make
        stated = type(mechanism) not in DECLARED_RELEASES and isinstance(mechanism, Loss)
        copy = mechanism if stated else self._copies.of(mechanism)
        with self._lock:
            self._filter_meter.charge(copy, None)

    @property
    def spent(self) -> float:
        """Return the running total: epsilon, rho, the divergence at its order, or mu squared."""
        return float(self._filter_meter.total.spent)

    def __repr__(self) -> str:
        unit = self._filter_meter.notion.unit
        return f"Filter(shape={self.shape}, budget={self.budget!r}, spent {unit}={self.spent:.6g})"


@final
class Odometer(Ledger):
    """Data that can be asked anything, without a limit; `epsilon` holds at any stop.

    A running total of rho is no guarantee at a stop that depends on the answers: with ``delta``
    it is read off 81 filters of fixed size, each of which was given its share of ``delta``.

    Parameters
    ----------
    data : array or tuple of arrays
        One row a user.
    delta : float
        In [0, 1).
    rng : int or numpy.random.Generator, optional
        Repeats a run, for audits and tests.
    public : Any
        What is public beside the data.
    undeclared : bool
        As in `Ledger`.

    References
    ----------
    Rogers, Roth, Ullman & Vadhan (2016).

    Examples
    --------
    >>> import numpy as np
    >>> from accountant import Odometer
    >>> from mechanisms import Laplace
    >>> odometer = Odometer(np.arange(10.0), rng=0)
    >>> answer = odometer.release(Laplace(4.0), np.sum)
    >>> odometer.epsilon
    0.25
    """

    def __init__(
        self,
        data: Any,
        delta: float = 0.0,
        rng: Rng = None,
        public: Any = None,
        undeclared: bool = False,
    ) -> None:
        self._delta = DELTA.check("delta", delta)
        self._filter_meter = FilterMeter(unlimited_notion(self._delta))
        super().__init__(data, None, rng, public, "full", undeclared, self._filter_meter)

    @property
    def epsilon(self) -> float:
        """Return the epsilon of all releases so far at ``delta``, valid at any stop."""
        total = float(self._filter_meter.total.spent)
        if not self._delta or total == 0:
            return total
        size = next(
            (r for k in range(ODOMETER_FILTERS) if (r := 2.0 ** (k / 2 - 20)) >= total), math.inf
        )
        return (
            ZCDPLoss(size).epsilon_at(self._delta / ODOMETER_FILTERS)
            if size < math.inf
            else math.inf
        )
