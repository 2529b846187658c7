"""The row of a report, the case that makes it, and the settings of a run.

An `AuditCase` is a subject, such as a mechanism, that is to be audited under `Settings`; the result
is a `ReportRow`, which reports of every format show.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, final

import numpy as np

from audits.claims.findings import NotTested, Outcome, as_expected, too_few_runs
from audits.results.project_code import Place, place_of, place_of_name

FAMILY_ERROR = 1e-6  # probability that at least one honest row of a whole run is called falsified
# Kinds of the user's own subjects, which have no expected outcome.
OWN_KINDS = frozenset({"target", "scores", "record"})


def no_progress(subject: str) -> None:
    """Ignore the progress of a subject."""
    del subject


@final
@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a run; ``tick`` is called now and then while work goes on.

    ``samples`` is the number of runs of each audit, ``confidence`` that of the bounds shown, and
    ``curves`` asks for privacy profiles.  ``jobs`` is the number of threads that share the runs of
    one row, which does not change the row; ``repeats`` is how often each specimen of the zoo is
    audited.
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
    """Deltas at some epsilons, as claimed, computed and estimated.

    ``claimed`` are those of the claim and ``exact`` those of the density, both empty if unknown;
    ``mean`` is estimated from samples, with a confidence band from ``lower`` to ``upper``.
    """

    epsilon: tuple[float, ...]
    claimed: tuple[float, ...]
    exact: tuple[float, ...]
    mean: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]


class Compared(NamedTuple):
    """How a row stands to an earlier report, its baseline.

    ``state`` is "unchanged" if the row was kept from it, "updated" if it was computed again, and
    "new" if it was not there.  ``date`` is when a kept row was computed, ``reason`` why another one
    was not kept.
    """

    state: str
    date: str = ""
    reason: str = ""


@final
@dataclass(frozen=True, slots=True)
class ReportRow:
    """One line of the report.

    ``claim`` is the claimed (epsilon, delta), ``exact_epsilon`` the true epsilon at this delta if
    known, ``epsilon_lower`` the audit's lower bound at ``confidence``, and ``verdict_lower`` the
    bound at the confidence of the verdict.  ``outcome`` is the verdict and ``expected`` the one
    that a correct audit gives.  ``guesses`` are the (right, made, runs) of a guess test,
    ``facts`` (name, value) pairs, ``unseen`` parts of outputs that were not looked into, and
    ``notes`` sentences on the subject.  ``noise``, ``needed_runs`` and ``not_tested`` are those of
    `Finding`.  ``places`` is where the audited code is, or where it was found to be wrong;
    ``compared`` is how the row stands to a baseline, None without one.
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
    witness: str  # what was seen, in words, for files
    evidence: str  # the same in fewer words, for tables
    seconds: float
    verdict_lower: float | None = None
    guesses: tuple[int, int, int] | None = None
    facts: tuple[tuple[str, str], ...] = ()
    curve: ProfileCurve | None = None
    unseen: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    noise: str = ""
    needed_runs: int | None = None
    not_tested: tuple[NotTested, ...] = ()
    places: tuple[Place, ...] = ()
    compared: Compared | None = None

    @property
    def kept(self) -> bool:
        """True if nothing of it has changed since an earlier report, from which it is."""
        return self.compared is not None and self.compared.state == "unchanged"

    @property
    def fails(self) -> bool:
        """True if it is not as expected, and that was not known from a baseline."""
        return not self.as_expected and not self.kept

    @property
    def as_expected(self) -> bool:
        """True if an honest subject was not falsified, or a broken one was caught."""
        if self.own:
            return self.outcome is not Outcome.FALSIFIED
        return as_expected(self.outcome, self.expected)

    @property
    def own(self) -> bool:
        """True if the subject is the user's own; a violation of its claim is never expected."""
        return self.kind in OWN_KINDS

    @property
    def guesses_outputs(self) -> bool:
        """True if the row may be of a guess test, whose power depends on its runs."""
        return self.kind not in ("scores", "record")

    @property
    def decisive(self) -> bool:
        """True if the audit would have seen half the noise, and saw all of the outputs."""
        return self.outcome is not Outcome.INCONCLUSIVE

    @property
    def why_inconclusive(self) -> str:
        """Why the row is inconclusive, if it is."""
        if self.unseen:
            return f"not looked into: {', '.join(self.unseen)}"
        return too_few_runs(self.noise, self.needed_runs)


@final
@dataclass(frozen=True, slots=True)
class AuditCase:
    """A subject that is still to be audited, with its expected outcome.

    ``definition`` is the class or the function that is audited, or its name, as
    ``package.module:function``.
    """

    subject: str
    kind: str  # the kind of subject, such as "paper", by which reports group rows
    about: str  # what the subject is, in words
    expected: Outcome
    check: Callable[[Settings, np.random.Generator], ReportRow]
    definition: Any = None

    def run(self, settings: Settings) -> ReportRow:
        """Audit the subject; its seed depends on its name, not on the other subjects."""
        seed = np.random.SeedSequence([settings.seed, zlib.crc32(self.subject.encode())])
        row = self.check(settings, np.random.default_rng(seed))
        definition = self.check if self.definition is None else self.definition
        is_name = isinstance(definition, str)
        code_place = place_of_name(str(definition)) if is_name else place_of(definition)
        return replace(row, places=() if code_place is None else (code_place,))
