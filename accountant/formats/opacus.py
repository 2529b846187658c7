"""Plans from an Opacus accountant's history."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from accountant.amplification.poisson_sampling import PoissonSampled
from accountant.domains import POSITIVE, IntegerRange, Interval
from accountant.errors import ParameterError
from accountant.losses.gaussian import GaussianLoss
from accountant.plans.plan import Plan, Repeat, Sequential

RATE = Interval(0.0, 1.0)
COUNT = IntegerRange(0)


def from_opacus(history: Iterable[Any]) -> Plan:
    """Return the plan of an Opacus accountant's history.

    Opacus writes the same history with ``poisson_sampling=False``, whose batches are no Poisson
    samples: then this plan is not what was run.

    Parameters
    ----------
    history : iterable
        Steps (noise_multiplier, sample_rate, steps), or the accountant's ``state_dict()``.

    Returns
    -------
    Plan
        Poisson-sampled Gaussians, for add-remove neighbours.

    Examples
    --------
    >>> from accountant import from_opacus
    >>> from_opacus([(2.0, 0.01, 100)]).parts[0].count
    100
    """
    steps = history.get("history") if isinstance(history, dict) else history
    if isinstance(steps, str) or not isinstance(steps, Iterable):
        raise ParameterError("history", history, "a list of (noise_multiplier, sample_rate, steps)")
    parts: list[Plan] = []
    for step in steps:
        if not isinstance(step, (tuple, list)) or len(step) != 3:
            raise ParameterError("history", step, "(noise_multiplier, sample_rate, steps)")
        noise = POSITIVE.check("noise_multiplier", step[0])
        rate = RATE.check("sample_rate", step[1])
        count = COUNT.check("steps", step[2])
        parts.append(Repeat(PoissonSampled(GaussianLoss(1 / noise), rate), count))
    return Sequential(parts)
