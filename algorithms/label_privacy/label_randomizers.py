"""The four randomisers of a label, and the choice of the best for unbiased gradient estimates.

k-ary randomised response, subset selection, unary encoding, and Duchi's vector: the labels are the
corners of a regular simplex, and the vector is drawn mostly from the half of a sphere that lies on
the label's side.  Each costs epsilon; they differ in the second moment of the gradient that is
estimated from a report.

References: "Convex Optimization with Local Label Differential Privacy", Appendices A and B.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from accountant.domains import POSITIVE, IntegerRange, OneOf
from accountant.errors import ParameterError
from accountant.numerics.rounding import LARGEST_BELOW_ONE
from accountant.planning.calibration import calibrate
from algorithms.base.renamed_parameters import renamed_arguments
from algorithms.label_privacy.report_decoders import decoder_of
from mechanisms.base.mechanism import Mechanism
from mechanisms.families.frequency_oracle import calibrated_safely
from mechanisms.hemisphere import HemisphereL2
from mechanisms.randomized_response import RandomizedResponse
from mechanisms.subset_selection import SubsetSelection
from mechanisms.unary_encoding import UnaryEncoding

CLASSES = IntegerRange(2)
# The first of equally good randomisers is taken: it has the shortest report.
RANDOMIZER_NAMES = ("response", "subset", "unary", "duchi")
RANDOMIZER = OneOf(("auto", *RANDOMIZER_NAMES))


def randomizer_of(name: object, k: int, epsilon: float) -> Mechanism:
    """Return the randomiser of this name; "auto" is the best for unknown gradients."""
    k, epsilon = CLASSES.check("k", k), POSITIVE.check("epsilon", epsilon)
    chosen = RANDOMIZER.check("randomizer", name)
    if chosen == "auto":
        chosen = best_randomizer(k, epsilon)
    if chosen == "unary":
        return UnaryEncoding.optimised(k, epsilon)
    if chosen == "subset":
        return SubsetSelection.optimised(k, epsilon)
    if chosen == "response":
        # The label is kept with the probability that solves keep / ((1 - keep) / (k - 1)) = e^eps.
        keep = min(1 / (1 + (k - 1) * math.exp(-epsilon)), LARGEST_BELOW_ONE)
        return calibrated_safely(lambda p: RandomizedResponse(k, p), keep, 1 / k, epsilon)
    return calibrate(HemisphereL2, dimension=k - 1, radius=1.0, longer="clip", epsilon=epsilon)


def second_moments(k: int, epsilon: float, gradients: Any = None) -> dict[str, float]:
    """Return V of each of the four randomisers, in squares of the longest gradient's length.

    With ``gradients`` of all labels, (k, size) or a stack of such, V is exactly their second
    moment at the worst true label, averaged over the stack.
    """
    decoders = {name: decoder_of(randomizer_of(name, k, epsilon), k) for name in RANDOMIZER_NAMES}
    if gradients is None:
        return {name: decoder.second_moment for name, decoder in decoders.items()}
    allowed = f"finite numbers, one row for each of {k} labels"
    try:
        stack = np.asarray(gradients, dtype=float)
    except (TypeError, ValueError):
        raise ParameterError("gradients", type(gradients), allowed) from None
    stack = stack[None] if stack.ndim == 2 else stack
    is_complete = stack.ndim == 3 and stack.shape[1] == k and stack.size > 0
    if not (is_complete and np.isfinite(stack).all()):
        raise ParameterError("gradients", f"shape {stack.shape}", allowed)
    # V does not depend on the unit of the gradients: in this one no square overflows.
    stack = stack / (np.abs(stack).max() or 1.0)
    grams = stack @ stack.swapaxes(1, 2)
    longest = float(np.einsum("nkk->nk", grams).max()) or 1.0
    return {
        name: float(np.mean([decoder.second_moments(gram / longest).max() for gram in grams]))
        for name, decoder in decoders.items()
    }


@renamed_arguments(classes="k")
def best_randomizer(k: int, epsilon: float, gradients: Any = None) -> str:
    """Return the name of the randomiser with the smallest second moment V of gradient estimates.

    Parameters
    ----------
    k : int
        Number of labels, at least 2.
    epsilon : float
        Pure epsilon of each label, positive, in nats.
    gradients : array_like or None
        Gradients of all labels, of shape (k, size), or a stack of such; None takes the worst
        case over all gradients.

    Returns
    -------
    str
        "response", "subset", "unary" or "duchi"; the shortest report among equals.

    References
    ----------
    "Convex Optimization with Local Label Differential Privacy", Appendices A and B.

    Examples
    --------
    >>> from algorithms import best_randomizer
    >>> best_randomizer(k=10, epsilon=1.0)
    'subset'
    >>> best_randomizer(k=2, epsilon=1.0)
    'response'
    """
    moments = second_moments(k, epsilon, gradients)
    smallest = min(moments.values())
    return next(name for name, moment in moments.items() if moment <= smallest * (1 + 1e-9))
