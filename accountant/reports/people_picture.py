"""A hundred people, as a picture of what an attacker can guess about who is in the data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

PEOPLE = 100


@final
@dataclass(frozen=True, slots=True)
class Guesses:
    """The best guesses of an attacker about 100 people, half of whom are in the data.

    ``advantage`` bounds the true-positive rate less the false-positive rate of every attack.  A
    coin is right half of the time, and an attack at most (1 + advantage) / 2 of the time.
    """

    advantage: float

    @property
    def right(self) -> int:
        """Return how many guesses are right at most, rounded up."""
        return min(math.ceil(PEOPLE * (1 + self.advantage) / 2), PEOPLE)

    @property
    def sentence(self) -> str:
        """Return the picture in words."""
        return (
            f"Who of {PEOPLE} people is in the data? An attacker guesses right about at most "
            f"{self.right}; a coin does about {PEOPLE // 2}."
        )

    @property
    def dots(self) -> list[str]:
        """Return the kind of each dot: guessed by a coin, by the answers, or wrongly."""
        coin, gained = PEOPLE // 2, self.right - PEOPLE // 2
        return ["coin"] * coin + ["gained"] * gained + ["wrong"] * (PEOPLE - self.right)
