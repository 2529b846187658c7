"""What a guarantee means, in two sentences for a person in the data."""

from __future__ import annotations

import math

from accountant.page.words import above, small
from accountant.relations import ADD_REMOVE, RELATIONS


def factor(epsilon: float) -> str:
    """By how much a conclusion's chance can grow."""
    return "more than 1e+300" if epsilon > 691 else above(math.exp(epsilon), 3)


def guess(epsilon: float, delta: float) -> str:
    """How often the best guess is right that starts at even odds, in percent, rounded up."""
    # (e^eps + delta) / (1 + e^eps): Kairouz, Oh & Viswanath (2015), Theorem 2.1
    share = 1 - (1 - delta) / (1 + math.exp(min(epsilon, 700.0)))
    return f"{min(math.ceil(1000 * share) / 10, 100.0):.1f}"


def meaning(epsilon: float, delta: float, relation: str | None) -> tuple[str, str]:
    """The two sentences."""
    if math.isinf(epsilon):
        first = f"At delta {small(delta)} this promises nothing: epsilon is infinite."
        return (
            first,
            "Whoever sees every answer may become certain that your record is in the data.",
        )
    change = RELATIONS[relation or ADD_REMOVE]
    told = "" if relation else ", or whatever change the sensitivities were stated for"
    chance = f", plus a chance of {small(delta)}" if delta else ""
    first = (
        f"Whatever anybody concludes from all of these answers together is at most "
        f"{factor(epsilon)} times as likely as it would be without your record{chance} "
        f"(neighbours differ by {change}{told})."
    )
    second = (
        "Someone who knows everybody else's data, cannot tell whether yours is among it, and then "
        f"sees every answer, guesses right at most {guess(epsilon, delta)} % of the time, where "
        "tossing a coin is right 50 % of the time."
    )
    return first, second
