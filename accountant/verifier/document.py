"""The file of a proof: canonical JSON, read with limits."""

import json
import math
from dataclasses import dataclass

MAX_BYTES, MAX_NESTING = 2**20, 120
MAX_BITS = 8192


class ProofError(ValueError):
    """The file is no proof: one line says what is wrong."""


class NoProof(Exception):
    """A step of the proof that failed, in a sentence."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """PROVED (both ends), PROVED UPPER, or NOT PROVED with the step that failed."""

    word: str
    reason: str
    lower: float
    upper: float
    delta: float
    plan: dict
    digest: str


def parse(document):
    """Return the content; the bytes must be those that the content alone determines."""
    if not isinstance(document, bytes) or len(document) > MAX_BYTES:
        raise ProofError(f"a proof is at most {MAX_BYTES} bytes")
    if document.count(b"[") + document.count(b"{") > 2**18:
        raise ProofError("too many tables and lists")
    try:
        found = json.loads(document.decode("ascii"), parse_constant=_refused)
        canonical = json.dumps(found, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise ProofError(f"no JSON of numbers: {str(error)[:120]}") from None
    if (canonical + "\n").encode("ascii") != document:
        raise ProofError("not in canonical form: sorted keys, no blanks, one end of line")
    return Fields(found, "the proof")


def _refused(word):
    raise ValueError(f"{word} is no number")


class Fields:
    """A table of which every field must be asked for, with what it may hold."""

    def __init__(self, value, name):
        if not isinstance(value, dict):
            raise ProofError(f"{name} must be a table")
        self.left, self.name = dict(value), name

    def take(self, key, *default):
        """Return a field, or the default."""
        if key not in self.left and not default:
            raise ProofError(f"{self.name} has no field {key!r}")
        return self.left.pop(key, *default)

    def real(self, key, low=-math.inf, high=math.inf):
        """Return a dyadic number, written as a hexadecimal float, strictly between two ends."""
        return real(self.take(key), low, high, f"{key} of {self.name}")

    def whole(self, key, low, high):
        """Return a whole number in [low, high]."""
        return whole(self.take(key), low, high, f"{key} of {self.name}")

    def done(self):
        """Refuse fields that were not asked for."""
        if self.left:
            raise ProofError(f"unknown field {min(self.left)[:40]!r} of {self.name}")


def real(text, low, high, name):
    """Return a number from its only hexadecimal form."""
    try:
        value = float.fromhex(text) if isinstance(text, str) and len(text) < 40 else math.nan
    except (ValueError, OverflowError):
        value = math.nan
    if not low < value < high or value.hex() != text:
        raise ProofError(f"{name} must be a hexadecimal float between {low} and {high}")
    return value


def whole(value, low, high, name):
    """Return a whole number between two ends."""
    if type(value) is not int or not low <= value <= high:
        raise ProofError(f"{name} must be a whole number from {low} to {high}")
    return value
