"""The history of an Opacus accountant, checked: which noise at which rate, for how many steps.

It is accepted in five forms: a PrivacyEngine, its accountant, a mapping that holds the history
(the accountant's state_dict(), or an `opacus_record`), a checkpoint that
PrivacyEngine.save_checkpoint wrote, or the history itself, a list of tuples.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, final

from accountant.domains import POSITIVE, IntegerRange, Interval
from accountant.errors import ParameterError
from accountant.formats.added_samples import ADDED, added_samples
from accountant.plans.plan import Plan, Repeat

RATE = Interval(0.0, 1.0)
COUNT = IntegerRange(0)
ENTRY = "(noise_multiplier, sample_rate, steps)"
CHECKPOINT = "privacy_accountant_state_dict"  # the key that PrivacyEngine.save_checkpoint uses


@final
@dataclass(frozen=True, slots=True)
class OpacusSteps:
    """Equal steps of a history."""

    noise: float  # the noise multiplier: deviation of the noise over the clipping norm
    rate: float  # the chance with which each record is in a batch
    steps: int
    # Poisson samples whose gradients were added up before the noise: 1 in what Opacus writes, more
    # only in what this package's own accountant for Opacus writes
    added: int = 1

    def plan(self, rate: float | None = None) -> Plan:
        """Return the plan of the steps, at another rate where one is given."""
        q = self.rate if rate is None else rate
        return Repeat(added_samples(self.noise, q, self.added), self.steps)


def opacus_steps(history: Any, noise: Interval = POSITIVE) -> list[OpacusSteps]:
    """Return the checked entries of a history in any of the five forms.

    ``noise`` is the interval in which each noise multiplier must be.
    """
    source = getattr(history, "accountant", history)  # of a PrivacyEngine
    # a checkpoint is a mapping that holds the state of the accountant, which is one itself
    if isinstance(source, Mapping):
        source = source.get(CHECKPOINT, source)
    if isinstance(source, Mapping):
        entries = source.get("history")
    else:
        entries = getattr(source, "history", source)
    if isinstance(entries, (str, bytes)) or not isinstance(entries, Iterable):
        raise ParameterError("history", entries, f"a list of {ENTRY}")
    history_steps = []
    for entry in entries:
        if not isinstance(entry, (tuple, list)) or len(entry) not in {3, 4}:
            raise ParameterError("history", entry, f"a list of {ENTRY}")
        multiplier = noise.check("noise_multiplier", entry[0])
        rate, steps = RATE.check("sample_rate", entry[1]), COUNT.check("steps", entry[2])
        added = [ADDED.check("added", number) for number in entry[3:]]
        history_steps.append(OpacusSteps(multiplier, rate, steps, *added))
    return history_steps
