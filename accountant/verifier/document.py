"""The file of a proof: its canonical bytes, and tables of which each field is asked for.

Nothing of the file is believed.  A field is read once, by a call that says what it may hold.  A
field that no call reads is refused, and so are bytes that are not the only form of what they say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

# The texts that `float.hex` writes for 0 and for floats whose binary exponent has up to three
# digits.
HEXADECIMAL = re.compile(r"-?0x(0\.0|1\.[0-9a-f]{13})p[+-](0|[1-9]\d{0,2})")


class ProofError(ValueError):
    """The file is no proof: one line says what is wrong."""


class NoProof(Exception):
    """A step of the proof that failed, in a sentence."""


class Verdict(NamedTuple):
    """What was proved: ``word`` is PROVED (both ends), PROVED UPPER, or NOT PROVED, and why."""

    word: str
    reason: str
    lower: float
    upper: float
    delta: float
    plan: dict[str, Any]
    digest: str


class Receipt(NamedTuple):
    """A receipt whose bytes are those that its author signed.

    ``verdict`` is that on its proof, None where it has none of this plan.  ``predicate`` is what
    the author wrote.  ``answers`` counts the answers in the entries of the book.  ``problems`` are
    sentences on what is not as it should be: the proof does not prove its upper end, or less was
    promised than is proved, an audit falsified a claim, or two parts are about different plans.
    """

    author: str
    fingerprint: str
    subjects: dict[str, str]
    predicate: dict[str, Any]
    verdict: Verdict | None
    answers: int
    problems: tuple[str, ...]

    @property
    def plan(self) -> dict[str, Any]:
        """The plan of the proof, which says what is claimed; without a proof the author's."""
        plan: dict[str, Any] = self.predicate["plan"]
        return plan if self.verdict is None else self.verdict.plan


def need(holds: Any, reason: str, error: type[Exception] = NoProof) -> None:
    """Raise the error with its reason unless a condition holds."""
    if not holds:
        raise error(reason)


def is_list(value: Any) -> bool:
    """Return whether a value of a file is a list."""
    return isinstance(value, list)


def parse(document: bytes, name: str = "the proof", mebibytes: int = 1) -> Fields:
    """Return the content of a file, which must have the only bytes that say the same."""
    is_short = isinstance(document, bytes) and len(document) <= mebibytes * 2**20
    need(is_short, f"more than {mebibytes} MiB", ProofError)
    try:
        content = json.loads(document.decode("ascii"))
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise ProofError(f"no JSON of finite numbers: {str(error)[:99]}") from None
    need(f"{text}\n".encode() == document, "not canonical: sorted keys, no blanks", ProofError)
    return Fields(content, name)


class Fields:
    """A table of which each field is asked for once, with what it may hold."""

    def __init__(self, value: Any, name: str) -> None:
        need(isinstance(value, dict), f"{name} must be a table", ProofError)
        self.remaining, self.name = dict(value), name

    def take(self, key: str, *default: Any, fits: Callable[[Any], Any] | None = None) -> Any:
        """Return a field, or its default where there is none, if ``fits`` says that it fits."""
        need(default or key in self.remaining, f"{self.name} has no field {key!r}", ProofError)
        value = self.remaining.pop(key, *default)
        need(not fits or fits(value), f"{key} of {self.name} is wrong or out of range", ProofError)
        return value

    def real(self, key: str, low: float, high: float) -> float:
        """Return a float of the proof in [low, high], in the only hexadecimal form it has."""
        text = self.take(key, fits=lambda x: isinstance(x, str) and HEXADECIMAL.fullmatch(x))
        value = float.fromhex(text)
        is_canonical = value.hex() == text != "-0x0.0p+0"
        need(is_canonical, f"{key} of {self.name} has another canonical form", ProofError)
        need(low <= value <= high, f"{key} of {self.name} is not in [{low}, {high}]", ProofError)
        return value

    def whole(self, key: str, low: int, high: int, *default: int) -> int:
        """Return a whole number in [low, high]."""
        return int(self.take(key, *default, fits=lambda x: type(x) is int and low <= x <= high))

    def number(
        self, key: str, low: Any = 2.0**-999, high: Any = 2**999, *default: Fraction
    ) -> Fraction:
        """Return an exact number of the plan in [low, high]."""
        fraction: Fraction = self.take(
            key, *default, fits=lambda x: type(x) is Fraction and low <= x <= high
        )
        return fraction

    def done(self) -> None:
        """Refuse fields that were not asked for."""
        unknown = [*self.remaining, ""][0][:40]
        need(not self.remaining, f"unknown {unknown!r} in {self.name}", ProofError)
