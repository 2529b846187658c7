"""Broken algorithms: data past the gate, releases off the plan, a wrong sensitivity.

The zoo is a collection of specimens with known flaws, on which the audits themselves are tested.
An honest algorithm here has a plan of what it will release and gets at the data only by
``ledger.release``, the gate.  Each class breaks that rule in one way, and claims an epsilon of 1.
The first line of its docstring is the flaw that reports show.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant.losses.pure_and_approximate import PureLoss
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Plan, Repeat
from audits.zoo.specimen import Specimen
from mechanisms.laplace import Laplace
from mechanisms.randomized_response import RandomizedResponse

UNIT_LAPLACE = Laplace(scale=1.0, sensitivity=1.0)  # its epsilon is 1
# Two pairs of neighbouring data sets of 20 users, in which the last user differs: numbers in
# [0, 1], and answers 0 or 1.
RECORDS = np.linspace(0.0, 1.0, 20)
NEIGHBOUR_RECORDS = np.append(RECORDS[:-1], 0.0)  # the last record, 1, became 0
ANSWERS = np.arange(20) % 2
NEIGHBOUR_ANSWERS = np.append(ANSWERS[:-1], 1 - ANSWERS[-1])


class _NoisySum:
    """An honest sum of records in [0, 1] under Laplace noise; the specimens below break it."""

    def plan(self, shape: tuple[int, ...]) -> Plan:
        """One Laplace release."""
        del shape
        return Repeat(UNIT_LAPLACE, 1)

    def run(self, ledger: Any) -> float:
        """The noisy sum."""
        return float(ledger.release(UNIT_LAPLACE, np.sum))


class Peek(_NoisySum):
    """Adds a billionth of the data to the answer, past the gate."""

    def run(self, ledger: Any) -> float:
        """The noisy sum plus a billionth of the exact one."""
        return super().run(ledger) + 1e-9 * float(ledger._data.sum())  # the flaw  # noqa: SLF001


class AsLongAsItTakes(_NoisySum):
    """Releases once more while the data are above a threshold."""

    def plan(self, shape: tuple[int, ...]) -> Plan:
        """Up to eight releases, each with an epsilon of 1/8."""
        del shape
        return Repeat(Laplace(scale=8.0, sensitivity=1.0), 8)

    def run(self, ledger: Any) -> float:
        """As many noisy sums as there are records above 0.7."""
        mechanism, counts = ledger.plan.part, []

        def query(data: NDArray[Any]) -> float:
            counts.append(int(np.count_nonzero(data > 0.7)))
            return float(data.sum())

        total = float(ledger.release(mechanism, query))
        for _ in range(counts[0] - 1):
            total += float(ledger.release(mechanism, query))
        return total / counts[0]


class HalfTheSensitivity(_NoisySum):
    """Sums records that reach from 0 to 2 and declares a sensitivity of 1."""

    def run(self, ledger: Any) -> float:
        """The noisy sum of doubled records."""
        return float(ledger.release(UNIT_LAPLACE, lambda data: 2 * data.sum()))


class NoiseThief(_NoisySum):
    """Copies the noise generator before the release and takes the noise off again."""

    def run(self, ledger: Any) -> float:
        """The sum, without noise."""
        thief = copy.deepcopy(getattr(ledger, "_noise", None))
        noisy = super().run(ledger)
        return noisy - (float(thief.laplace()) if thief else 0.0)


class Gossip:
    """In the local model, lets every user's value depend on the others' answers."""

    def plan(self, shape: tuple[int, ...]) -> Plan:
        """One randomised response of every user: ``keep`` is e / (1 + e), so epsilon is 1."""
        del shape
        return Parallel([RandomizedResponse(k=2, keep=0.7310585)])

    def run(self, ledger: Any) -> float:
        """Share of ones among answers that all users flip when most are ones."""
        mechanism = ledger.plan.parts[0]

        def query(answers: NDArray[Any]) -> NDArray[Any]:
            return answers if answers.mean() < 0.5 else 1 - answers

        return float(np.mean(ledger.release_each(mechanism, query)))


def specimens() -> list[Specimen]:
    """Broken algorithms, each on two neighbouring data sets."""
    # In each row: the class, which audit must catch it, its data sets, and its true epsilon, None
    # where it is infinite or not an epsilon.
    records, answers = (RECORDS, NEIGHBOUR_RECORDS), (ANSWERS, NEIGHBOUR_ANSWERS)
    rows: list[tuple[type[Any], str, tuple[Any, Any], float | None]] = [
        (Peek, "replay", records, None),
        (AsLongAsItTakes, "replay", records, None),
        (HalfTheSensitivity, "privacy losses", records, 2.0),
        (NoiseThief, "replay", records, None),
        (Gossip, "replay", answers, None),
    ]
    broken = []
    for cls, audit_kind, pair, true_epsilon in rows:
        flaw = str(cls.__doc__).splitlines()[0]
        name = "".join("_" + c.lower() if c.isupper() else c for c in cls.__name__).lstrip("_")
        broken.append(Specimen(name, flaw, audit_kind, PureLoss(1.0), cls(), pair, true_epsilon))
    return broken
