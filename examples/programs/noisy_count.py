"""A count with two-sided geometric noise, epsilon 1, to be audited as a program.

dp-attest audit target --command "python noisy_count.py" --epsilon 1 --pair 3 4
"""

import math
import random

from serve import serve


def noisy_count(count: int, rng: random.Random) -> int:
    """The count, plus the difference of two geometric numbers."""
    first, second = (math.floor(-math.log(1 - rng.random())) for _ in range(2))
    return count + first - second


if __name__ == "__main__":
    serve(noisy_count)
