# fmt: off
"""The file of a proof: canonical JSON, read with limits."""

import json
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any


class ProofError(ValueError):
    """The file is no proof: one line says what is wrong."""

class NoProof(Exception):
    """A step of the proof that failed, in a sentence."""

@dataclass(frozen=True, slots=True)
class Verdict:
    """PROVED (both ends), PROVED UPPER, or NOT PROVED and the step that failed."""

    word: str
    reason: str
    lower: float
    upper: float
    delta: float
    plan: dict[str, Any]
    digest: str

def need(holds: Any, reason: str, error: type[Exception] = NoProof) -> None:
    """Go on only where something holds."""
    if not holds:
        raise error(reason)

def parse(document: bytes) -> "Fields":
    """Return the content of a file, which must have the only bytes that say the same."""
    need(isinstance(document, bytes) and len(document) <= 2**20, "more than 1 MiB", ProofError)
    try:
        found = json.loads(document.decode("ascii"))
        text = json.dumps(found, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise ProofError(f"no JSON of finite numbers: {str(error)[:99]}") from None
    need(f"{text}\n".encode() == document, "not canonical: sorted keys, no blanks", ProofError)
    return Fields(found, "the proof")

class Fields:
    """A table of which each field is asked for, with what it may hold."""

    def __init__(self, value: Any, name: str) -> None:
        need(isinstance(value, dict), f"{name} must be a table", ProofError)
        self.left, self.name = dict(value), name

    def take(self, key: str, *default: Any) -> Any:
        """Return a field, or its default."""
        need(default or key in self.left, f"{self.name} has no field {key!r}", ProofError)
        return self.left.pop(key, *default)

    def real(self, key: str, low: float, high: float) -> float:
        """Return a number between two ends, from the only hexadecimal form of a float."""
        text, value = self.take(key), float("nan")
        with suppress(ValueError, OverflowError, TypeError):
            value = float.fromhex(text)
        return float(self._within(key, value.hex() == text, value, low, high))

    def whole(self, key: str, low: int, high: int, *default: int) -> int:
        """Return a whole number between two ends."""
        value = self.take(key, *default)
        return int(self._within(key, type(value) is int, value, low, high))

    def number(self, key: str, low: Any = 2.0**-999, high: Any = 2**999, *default: int) -> Fraction:
        """Return a number of the plan, exactly."""
        value = self.take(key, *default)
        return Fraction(self._within(key, type(value) in (int, Fraction), value, low, high))

    def _within(self, key: str, fits: bool, value: Any, low: Any, high: Any) -> Any:
        text = f"{key} of {self.name} must be a number in [{float(low):g}, {float(high):g}]"
        need(fits and low <= value <= high, text, ProofError)
        return value

    def done(self) -> None:
        """Refuse fields that were not asked for."""
        need(not self.left, f"unknown {[*self.left, ''][0][:40]!r} in {self.name}", ProofError)
