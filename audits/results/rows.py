"""One line of a report, the subject it is about, and what was chosen for all of them."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import final

import numpy as np

from audits.claims.findings import Outcome

FAMILY_ERROR = 1e-6  # chance that any honest row of a whole run is called falsified


def no_progress(subject: str) -> None:
    """Tell nobody that a step of the subject is done."""
    del subject


@final
@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line chose; ``tick`` is called now and then while work goes on.

    ``jobs`` are the threads of one row, which does not depend on them; ``repeats`` are the zoo's.
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
        """Threads for the runs of one audit; none where one does it all."""
        if self.jobs == 1:
            yield None
            return
        with ThreadPoolExecutor(self.jobs) as pool:
            yield pool


@final
@dataclass(frozen=True, slots=True)
class ProfileCurve:
    """Deltas at some epsilons: as claimed, as the density says, and of samples with their band.

    ``claimed`` and ``exact`` are empty where they are not known.
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
    """One line of the report; ``decisive`` says the test could have falsified the claim.

    ``verdict_lower`` is the bound at the confidence of the verdict, ``guesses`` the (right, made,
    runs) of a guess test, ``facts`` a story in (what, value) pairs.
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
    decisive: bool
    verdict_lower: float | None = None
    guesses: tuple[int, int, int] | None = None
    facts: tuple[tuple[str, str], ...] = ()
    curve: ProfileCurve | None = None

    @property
    def as_expected(self) -> bool:
        """Whether the honest survived and the broken was caught."""
        return self.outcome is self.expected


@final
@dataclass(frozen=True, slots=True)
class AuditCase:
    """A subject with what is known of it beforehand."""

    subject: str
    kind: str
    about: str
    expected: Outcome
    check: Callable[[Settings, np.random.Generator], ReportRow]

    def run(self, settings: Settings) -> ReportRow:
        """Check the subject; its seed depends on its name, not on what else is run."""
        own = np.random.SeedSequence([settings.seed, zlib.crc32(self.subject.encode())])
        return self.check(settings, np.random.default_rng(own))
