"""The row of a report, the case that makes it, and the settings of a run."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import final

import numpy as np

from audits.claims.findings import Outcome, as_expected

FAMILY_ERROR = 1e-6  # chance that any honest row of a whole run is called falsified
OWN_KINDS = frozenset({"target", "scores", "record"})  # of one's own code: nothing is expected


def no_progress(subject: str) -> None:
    """Ignore the progress of a subject."""
    del subject


@final
@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a run; ``tick`` is called now and then while work goes on.

    ``jobs`` is the number of threads of one row, which does not affect it; ``repeats`` is the
    zoo's.
    """

    samples: int
    confidence: float
    seed: int
    curves: bool = False
    tick: Callable[[str], None] = field(default=no_progress)
    jobs: int = 1
    repeats: int = 1

    @contextlib.contextmanager
    def workers(self) -> Iterator[Executor | None]:
        """Threads for the runs of one audit; None if there is only one."""
        if self.jobs == 1:
            yield None
            return
        with ThreadPoolExecutor(self.jobs) as pool:
            yield pool


@final
@dataclass(frozen=True, slots=True)
class ProfileCurve:
    """Deltas at some epsilons: claimed, by the density, and of samples with their band.

    ``claimed`` and ``exact`` are empty if unknown.
    """

    epsilon: tuple[float, ...]
    claimed: tuple[float, ...]
    exact: tuple[float, ...]
    mean: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]


@final
@dataclass(frozen=True, slots=True)
class ReportRow:
    """One line of the report.

    ``verdict_lower`` is the bound at the confidence of the verdict, ``guesses`` the (right, made,
    runs) of a guess test, ``facts`` are (name, value) pairs, ``unseen`` parts of outputs that were
    not looked into, ``notes`` sentences on the subject.
    """

    subject: str
    kind: str
    claim: tuple[float, float]
    exact_epsilon: float | None
    epsilon_lower: float | None
    confidence: float
    runs: int
    outcome: Outcome
    expected: Outcome
    witness: str
    evidence: str
    seconds: float
    verdict_lower: float | None = None
    guesses: tuple[int, int, int] | None = None
    facts: tuple[tuple[str, str], ...] = ()
    curve: ProfileCurve | None = None
    unseen: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def as_expected(self) -> bool:
        """True if an honest subject was not falsified, or a broken one was caught."""
        if self.own:
            return self.outcome is not Outcome.FALSIFIED
        return as_expected(self.outcome, self.expected)

    @property
    def own(self) -> bool:
        """True if the subject is the reader's: a violation is never what was expected."""
        return self.kind in OWN_KINDS

    @property
    def decisive(self) -> bool:
        """True if the audit could have falsified the claim, and saw all of the outputs."""
        return self.outcome is not Outcome.INCONCLUSIVE

    @property
    def why_inconclusive(self) -> str:
        """Why an inconclusive row is one."""
        return (
            f"not looked into: {', '.join(self.unseen)}"
            if self.unseen
            else "too few runs to decide"
        )


@final
@dataclass(frozen=True, slots=True)
class AuditCase:
    """A subject that is still to be audited, with its expected outcome."""

    subject: str
    kind: str
    about: str
    expected: Outcome
    check: Callable[[Settings, np.random.Generator], ReportRow]

    def run(self, settings: Settings) -> ReportRow:
        """Audit the subject; its seed depends on its name, not on the other subjects."""
        seed = np.random.SeedSequence([settings.seed, zlib.crc32(self.subject.encode())])
        return self.check(settings, np.random.default_rng(seed))
