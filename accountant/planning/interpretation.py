"""What a guarantee means for a person in the data, in two sentences with numbers.

Reference: Kairouz, Oh & Viswanath (2015), Theorem 2.1: answers that are (epsilon, delta)-private
tell no more than a coin that tells everything with chance delta, and randomised response else.
"""

from __future__ import annotations

import math

from accountant.domains import DELTA, EPSILON, POSITIVE_DELTA
from accountant.formatting import format_short, format_upper
from accountant.plans.adjacency import Adjacency, check_relation

PRIOR = 0.01
# who is protected, what a reader suspects, and who must be trusted, by what neighbours differ by
SUSPICIONS = {
    Adjacency.ADD_REMOVE: ("your being in the data", "whoever holds the data"),
    Adjacency.REPLACE_ONE: ("some guess about your record", "whoever holds the data"),
    Adjacency.LABEL_REPLACE: ("some guess about your label", "whoever holds the labels"),
    Adjacency.LOCAL_REPLACE: ("some guess about your record", ""),
    Adjacency.MACHINE_REPLACE: (
        "some guess about the data of your machine",
        "whoever runs the machine",
    ),
}


def worst_case_posterior(prior: float, epsilon: float) -> float:
    """The most that somebody's belief of ``prior`` can become, short of delta; rounded up."""
    prior, epsilon = POSITIVE_DELTA.check("prior", prior), EPSILON.check("epsilon", epsilon)
    # p e^eps / (p e^eps + 1 - p)
    odds = (1 - prior) / prior * math.exp(-min(epsilon, 700.0))
    return min(1.0, (1 + 8 * 2.0**-53) / (1 + odds))


def explanation(epsilon: float, delta: float, relation: str | None = None) -> str:
    """Return what (epsilon, delta) means, in sentences for a person whose data are protected.

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float
        In [0, 1).
    relation : str, optional
        The neighbours; without one, those the sensitivities were stated for, as one record.

    Returns
    -------
    str
        The largest belief that an attacker can reach, rounded up, and who must be trusted.

    References
    ----------
    Kairouz, Oh & Viswanath (2015), Theorem 3.1, for the part that delta plays.

    Examples
    --------
    >>> from accountant import explanation
    >>> "2.7 %" in explanation(1.0, 1e-6, "add-remove")
    True
    """
    epsilon, delta = EPSILON.check("epsilon", epsilon), DELTA.check("delta", delta)
    known = check_relation("relation", relation or Adjacency.ADD_REMOVE)
    suspicion, holder = SUSPICIONS[known]
    end = format_upper(min(100 * worst_case_posterior(PRIOR, epsilon), 100.0), 3)
    first = (
        f"Somebody who knows everybody else's data and gives 1 chance in 100 to {suspicion} gives "
        f"it at most {end} chances in 100 after seeing all of these answers"
        f"{', but for one exception ' if delta else ' '}"
        f"(epsilon {format_upper(epsilon, 6)}, neighbours differ by {known.difference}"
        f"{'' if relation else ', or what the sensitivities were stated for'})."
    )
    trust = (
        f"{holder} sees it as it is and is trusted with it"
        if holder
        else "it is randomised before it leaves you, so that nobody need be trusted"
    )
    if not delta:
        return f"{first} That holds without exception, whatever they compute; {trust}."
    odds = f"1 in {math.floor(1 / delta):,}" if delta > 1e-15 else format_short(delta)
    # not that a belief exceeds the limit with chance delta at most: of Gaussian noise at delta
    # 1e-6 and epsilon 3/4 one in 39,000 does, by little (Meiser 2018)
    exception = (
        "The exception is that they may tell as much as something would that keeps to this limit "
        f"and yet, with a chance of at most {odds} (delta {format_short(delta)}), tells all of you"
    )
    return f"{first} {exception}; {trust}."
