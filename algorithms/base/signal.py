"""Whether the noise of a plan exceeds any signal, which is known before the data.

Let b bound the length of every record's clipped gradient.  Then a mean of gradients has a length of
at most b, whatever the data are.  Each of T rounds adds noise of deviation s to each of d
coordinates, so the mean noise of all rounds has a length of about ``s sqrt(d / T)``.

The signal counts as hidden where this is more than half of b.  That was measured on simulated data
with 5 or 40 features, one of which alone decides all targets: then no estimator predicted much
better than a constant, while some did where the noise was a quarter of b
(`tests/laws/test_exact_fits.py`).  If a record of n is replaced, the mean moves by at most 2 b / n,
and rounds that have mu together have s = 2 b sqrt(T) / (n mu): the signal is hidden where
n mu / sqrt(d) < 4.

For selections the largest possible score of a candidate is compared with about the largest noise:
that of m Laplace or Gumbel draws of scale s is about s ln(m).
"""

from __future__ import annotations

import math
import warnings
from typing import Any

from algorithms.base.non_private import level_of_caller

# A signal is hidden if its bound is below this factor times the length of the noise; see above.
LEAST_SIGNAL = 2.0


class NoSignalWarning(UserWarning):
    """A warning that noise exceeds any signal at the shape of the data."""


def gradients_hidden(mechanism: Any, rounds: int, longest: float) -> bool:
    """Return whether noise hides means of gradients that are at most ``longest``, in all rounds.

    ``mechanism`` is the Gaussian one of a round.  Without rounds no gradient is seen.
    """
    if not rounds:
        return True
    noise = float(mechanism.scale) * math.sqrt(mechanism.dimension / rounds)
    return longest < LEAST_SIGNAL * noise


def selections_hidden(mechanism: Any, candidates: int, largest: float) -> bool:
    """Return whether about the largest noise on all candidates exceeds the ``largest`` score."""
    return largest < float(mechanism.scale) * math.log(candidates)


def warn_no_signal(estimator: Any) -> None:
    """Warn that a plan can release no more than noise."""
    name = type(estimator).__name__
    message = (
        f"{name}: noise exceeds any signal at this shape, so that a fit predicts no better than "
        "a constant; take more records, fewer features or a larger epsilon, or a PrivateMean"
    )
    warnings.warn(message, NoSignalWarning, stacklevel=level_of_caller())
