"""What an (epsilon, delta) guarantee means for a person in the data, in sentences with numbers.

An attacker who believes something about a person with probability p believes it, after answers of
loss at most epsilon, with probability at most p e^epsilon / (p e^epsilon + 1 - p).

Reference: Kairouz, Oh & Viswanath (2015), Theorem 3.1: (epsilon, delta)-private answers reveal no
more than a release that reveals all with probability delta, and is a randomised response otherwise.
"""

from __future__ import annotations

import math

from accountant.accountants.attack_rates import bayes_risk, true_positive_rate
from accountant.domains import DELTA, EPSILON, POSITIVE_DELTA
from accountant.formatting import format_short, format_upper
from accountant.plans.adjacency import Adjacency, check_relation
from accountant.plans.plan import Plan, as_plan

PRIOR = 0.01  # the attacker's belief before the answers, for which the sentences give numbers
FALSE_ALARMS = 0.01  # the false-positive rate of the attack, for which they give numbers
ROUND_UP = 1 + 8 * 2.0**-53  # covers the rounding of the six operations of a belief
# For each relation of neighbours: what an attacker suspects, and who sees the data unprotected.
SUSPICIONS = {
    Adjacency.ADD_REMOVE: ("your record is in the data", "The holder of the data"),
    Adjacency.ZERO_OUT: ("your record is not blank", "The holder of the data"),
    Adjacency.REPLACE_ONE: ("a guess about your record is right", "The holder of the data"),
    Adjacency.LABEL_REPLACE: ("a guess about your label is right", "The holder of the labels"),
    Adjacency.LOCAL_REPLACE: ("a guess about your record is right", ""),
    Adjacency.MACHINE_REPLACE: (
        "a guess about the data of your machine is right",
        "The operator of the machine",
    ),
}


def worst_case_posterior(prior: float, epsilon: float) -> float:
    """Return the largest belief after the answers if it was ``prior`` before; rounded up.

    This holds at delta 0.
    """
    # The domain of a positive delta, (0, 1), is that of a probability which an attacker may have.
    prior, epsilon = POSITIVE_DELTA.check("prior", prior), EPSILON.check("epsilon", epsilon)
    # p e^eps / (p e^eps + 1 - p) = 1 / (1 + odds)
    root = math.exp(-epsilon / 2)  # of e^-eps, which may be too small for a float
    odds = (1 - prior) * root / prior * root
    return min(1.0, max(prior, ROUND_UP / (1 + odds)))


def explanation(
    epsilon: float, delta: float, relation: str | None = None, *, plan: Plan | None = None
) -> str:
    """Return what (epsilon, delta) means, in sentences for a person whose data are protected.

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float
        In [0, 1).
    relation : str, optional
        The neighbours; without one, those the sensitivities were stated for, as one record.
    plan : Plan, optional
        The plan that has this cost: with it the text has its attack rates too.

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
    >>> "2.68 %" in explanation(1.0, 1e-6, "add-remove")
    True
    >>> from accountant import GaussianLoss
    >>> "at most 9.237 %" in explanation(5.0, 1e-5, plan=GaussianLoss(1.0))
    True
    """
    epsilon, delta = EPSILON.check("epsilon", epsilon), DELTA.check("delta", delta)
    neighbours = check_relation("relation", relation or Adjacency.ADD_REMOVE)
    suspicion, holder = SUSPICIONS[neighbours]
    end = format_upper(min(100 * worst_case_posterior(PRIOR, epsilon), 100.0), 3)
    stated = "" if relation else ", unless the sensitivities were stated for other neighbours"
    limit = (
        f"Suppose an attacker knows everyone else's data and thinks it {100 * PRIOR:g} % likely "
        f"that {suspicion}. After all of these answers that can become at most {end} % "
        f"(epsilon {format_upper(epsilon, 6)}; protected: {neighbours.difference}{stated})."
    )
    trust = (
        f"{holder} sees it unprotected."
        if holder
        else "Your record is randomised before it leaves you, so you need to trust no one."
    )
    trust = f"{_rates_in_words(as_plan(plan), suspicion)} {trust}" if plan is not None else trust
    if not delta:
        return f"{limit} This limit never fails, whatever the attacker computes. {trust}"
    odds = f"1 in {math.floor(1 / delta):,}" if delta > 1e-15 else format_short(delta)
    # A belief may exceed the limit with a chance above delta: with Gaussian noise at delta 1e-6 and
    # epsilon 3/4 one in 39,000 does, by little (Meiser 2018).
    exception = (
        "This limit may fail: the answers reveal no more than a release that reveals all about "
        f"you with a chance of at most {odds} (delta {format_short(delta)}), and otherwise keeps "
        "the limit."
    )
    return f"{limit} {exception} {trust}"


def _rates_in_words(plan: Plan, suspicion: str) -> str:
    """Return how often an attacker is right at best, each number rounded up."""
    power = format_upper(100 * true_positive_rate(plan, FALSE_ALARMS).upper, 4)
    right = format_upper(100 * (1 - bayes_risk(plan, 0.5).lower), 4)
    share = f"{100 * FALSE_ALARMS:g} %"
    return (
        f"Where an attacker may conclude wrongly that {suspicion} in {share} of the cases in "
        f"which that is wrong, it concludes so rightly in at most {power} % of the others. Where "
        f"both are equally likely beforehand, it is right at most {right} % of the time; a guess "
        "is right 50 % of the time."
    )
