"""Programs that leak and survive an audit: what guesses cannot learn, or do not look at.

Each docstring says what leaks, the comment why it is missed.  `docs/audits.md` lists them.  Their
claim is 1-DP, and their true epsilon infinite.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from audits.zoo.specimen import Specimen, program

Generator = np.random.Generator
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def hash_beside_its_salt(value: int, rng: Generator) -> tuple[bytes, bytes]:
    """A salted hash of the exact value, and the salt."""
    # A guess would have to compute the hash.
    salt = rng.bytes(8)
    return salt, hashlib.sha256(salt + str(value).encode()).digest()


def sum_of_three_bytes(value: int, rng: Generator) -> bytes:
    """Three random bytes whose exclusive or is the value."""
    # A guess adds up what single bytes and their bits tell, and each of these tells nothing.
    first, second = rng.integers(256, size=2).tolist()
    return bytes([first, second, first ^ second ^ value])


def digit_in_a_long_text(digit: int, rng: Generator) -> str:
    """A token of 301 random letters, the middle one of which is the value."""
    # Letters are looked at up to the 64th from either end.
    letters = [LETTERS[index] for index in rng.integers(10, size=301)]
    letters[150] = LETTERS[digit]
    return "".join(letters)


def view_of_a_larger_array(value: float, rng: Generator) -> Any:
    """A view of the noisy part of an array whose other part is exact."""
    # The memory behind a view is not in what is saved or sent of it.
    return np.array([rng.laplace(), rng.laplace(), value])[:2]


def window_on_a_buffer(value: int, rng: Generator) -> memoryview:
    """A view of random bytes in a buffer that has the exact ones too."""
    # The same.
    return memoryview(rng.bytes(4) + bytes([value]))[:4]


def specimens() -> list[Specimen]:
    """Programs that survive, with the two values that they tell apart."""
    return [
        program(hash_beside_its_salt, (204, 205)),
        program(sum_of_three_bytes, (5, 6)),
        program(digit_in_a_long_text, (3, 4)),
        program(view_of_a_larger_array, (0.0, 1.0)),
        program(window_on_a_buffer, (4, 5)),
    ]
