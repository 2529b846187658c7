"""The words of a test that fails: what was claimed, what was seen, and how to see it again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, final

import pytest

from accountant.errors import ParameterError
from mechanisms.base.mechanism import Mechanism


class ClaimFailed(pytest.fail.Exception, AssertionError):  # type: ignore[misc,name-defined]
    """A claim that a test makes is false: by the accountant, or by what an attacker saw."""


@final
@dataclass(frozen=True, slots=True)
class Trial:
    """How one audit of a session is done, and the command that does it again."""

    runs: int
    confidence: float
    seed: int
    repeat_command: str


def bound_text(epsilon: float, delta: float, trial: Trial) -> str:
    """What an attacker showed, and how often that is wrong."""
    chance = 1 - trial.confidence
    return (
        f"epsilon >= {epsilon:.6g} at delta = {delta:.4g}, wrong with chance {chance:.2g} at most"
    )


def failure_text(headline: str, trial: Trial, **facts: str) -> str:
    """A headline, what was seen, and the command that shows it again."""
    facts |= {"seed": str(trial.seed), "repeat": trial.repeat_command}
    return "\n".join([headline, *(f"  {name:<8}{words}" for name, words in facts.items())])


def display_name(value: Any) -> str:
    """A mechanism as it is, anything else by its name."""
    if isinstance(value, Mechanism):
        return repr(value)
    return str(getattr(value, "__name__", type(value).__name__))


def type_text(value: Any) -> str:
    """What it is, by types alone: data are not shown."""
    if isinstance(value, tuple):
        return f"({', '.join(map(type_text, value))})"
    if isinstance(value, type):
        return f"the class {value.__name__}, not an instance"
    return "None" if value is None else f"{type(value).__name__}"


@contextmanager
def report_parameter_errors() -> Iterator[None]:
    """A refused parameter fails the test in its own words."""
    try:
        yield
    except ParameterError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


def fail_misuse(words: str) -> NoReturn:
    """Fail a test that does not say what is to be audited, or cannot fail."""
    __tracebackhide__ = True
    pytest.fail(words, pytrace=False)
