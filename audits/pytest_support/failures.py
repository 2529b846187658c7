"""The text of a failed privacy test in pytest: the claim, what was seen, and how to repeat it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, final

import pytest

from accountant.errors import ParameterError
from audits.pytest_support.progress import RunProgress, Screen
from audits.runs.release_functions import ON_RUNS
from mechanisms.base.mechanism import Mechanism


class ClaimFailed(pytest.fail.Exception, AssertionError):  # type: ignore[misc,name-defined]
    """The failure of a test whose privacy claim the accountant or an attack has shown false."""


@final
@dataclass(frozen=True, slots=True)
class Trial:
    """The settings of one audit in a pytest session, and the command that repeats it."""

    runs: int  # of a release, unless the test says how many
    confidence: float  # of the bound: a true claim fails with probability at most 1 - confidence
    seed: int
    repeat_command: str
    strict: bool = False  # whether an audit that would not see half the noise fails
    screen: Screen | None = None  # where it is said how long a slow audit takes

    @contextmanager
    def progress(self, runs: int, advice: Callable[[float], str]) -> Iterator[None]:
        """Show on the screen how ``runs`` runs go on, if they are slow, as `RunProgress` does."""
        if self.screen is None:
            yield
            return
        run_progress = RunProgress(self.screen, runs, advice)
        token = ON_RUNS.set(run_progress)
        try:
            yield
        finally:
            ON_RUNS.reset(token)
            run_progress.end()


def bound_text(epsilon: float, delta: float, trial: Trial) -> str:
    """The lower bound on epsilon from an attack, and the probability that it is wrong."""
    chance = 1 - trial.confidence
    return (
        f"epsilon >= {epsilon:.6g} at delta = {delta:.4g}, wrong with chance {chance:.2g} at most"
    )


def failure_text(headline: str, trial: Trial, **facts: str) -> str:
    """A headline, then a line for each fact, for the seed, and for the command that repeats it."""
    facts |= {"seed": str(trial.seed), "repeat": trial.repeat_command}
    return "\n".join([headline, *(f"  {name:<8}{fact}" for name, fact in facts.items())])


def display_name(value: Any) -> str:
    """The ``repr`` of a mechanism, else the name of the function or class."""
    if isinstance(value, Mechanism):
        return repr(value)
    return str(getattr(value, "__name__", type(value).__name__))


def type_text(value: Any) -> str:
    """The type of a value, or the types of a tuple's parts; never the data."""
    if isinstance(value, tuple):
        return f"({', '.join(map(type_text, value))})"
    if isinstance(value, type):
        return f"the class {value.__name__}, not an instance"
    return "None" if value is None else f"{type(value).__name__}"


@contextmanager
def report_parameter_errors() -> Iterator[None]:
    """Turn a `ParameterError` into a failed test with its message and no traceback."""
    try:
        yield
    except ParameterError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


def fail_misuse(reason: str) -> NoReturn:
    """Fail a test that does not say what to audit, or that cannot fail."""
    __tracebackhide__ = True
    pytest.fail(reason, pytrace=False)
