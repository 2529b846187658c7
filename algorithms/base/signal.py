"""Whether the noise of a plan exceeds any signal, which is known before the data.

A mean of gradients no longer than a bound is itself no longer than the bound, whatever the data.
Noise of deviation s on each of d coordinates in T rounds has a mean of length about ``s sqrt(d /
T)``.  Where that is more than half the bound, not even one feature that decides all targets was
found among 5 or 40: that is n mu / sqrt d < 4 for neighbours that replace one record.  With a
quarter of it some estimators find it (`tests/laws/test_exact_fits.py` measures both).

For selections the largest possible score of a candidate is compared with about the largest noise on
all candidates.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

# A signal is hidden if its bound is below this factor times the length of the noise.
LEAST_SIGNAL = 2.0


class NoSignalWarning(UserWarning):
    """A warning that noise exceeds any signal at the shape of the data."""


def gradients_hidden(mechanism: Any, rounds: int, longest: float) -> bool:
    """Return whether noise hides means of gradients that are at most ``longest``, in all rounds.

    ``mechanism`` is the Gaussian one of a round.
    """
    noise = float(mechanism.scale) * math.sqrt(mechanism.dimension / rounds)
    return longest < LEAST_SIGNAL * noise


def selections_hidden(mechanism: Any, candidates: int, largest: float) -> bool:
    """Return whether about the largest noise on all candidates exceeds the ``largest`` score."""
    return largest < float(mechanism.scale) * math.log(candidates)


def warn_no_signal(estimator: Any) -> None:
    """Warn that a plan can release no more than noise."""
    name = type(estimator).__name__
    message = (
        f"{name}: noise exceeds any signal at this shape, so that a fit predicts worse than a "
        "constant; take more records, fewer features or a larger epsilon, or release a PrivateMean"
    )
    warnings.warn(message, NoSignalWarning, stacklevel=4)
