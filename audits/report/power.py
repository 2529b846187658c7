"""The smallest violation that the runs of a report would have seen.

A report without a violation says little unless its runs could have seen one.  So it says of Laplace
noise, whose true epsilon is larger than claimed, from which true epsilon on a guess test with as
many runs would have refuted the claim, and a figure shows how many runs each true epsilon takes.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from accountant.formatting import format_short
from accountant.reports.svg_figures import Figure
from audits.known_densities.sample_size import POWER
from audits.report.figure import power_figure
from audits.report.words import format_percent
from audits.results.result_file import Result
from audits.results.rows import FAMILY_ERROR

if TYPE_CHECKING:
    from audits.known_densities.sample_size import RunsNeeded

# True epsilons that are tried, as multiples of the claimed epsilon.
TRUE_EPSILONS = (1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0)
# Largest claimed epsilon that the sentence and figure are about; beyond, they are about epsilon 1.
# Laplace noise of a larger epsilon is as good as none.
MAX_CLAIM = 15.0


@final
@dataclass(frozen=True, slots=True)
class Power:
    """The smallest of `TRUE_EPSILONS` that ``runs`` detect against a claim, None if none is.

    ``tested`` is how many of the runs test, the others learn; ``alpha`` the error of one verdict.
    """

    claim: float  # the claimed epsilon, at delta
    delta: float
    runs: int
    tested: int
    alpha: float
    least: float | None  # the smallest true epsilon that is detected

    @property
    def truths(self) -> tuple[float, ...]:
        """True epsilons that are tried."""
        return _truths(self.claim)

    @property
    def sentence(self) -> str:
        """What the runs would have seen, for Laplace noise."""
        claim = f"epsilon {self.claim:g}"
        claim += f" at delta {format_short(self.delta)}" if self.delta else ""
        runs = f"{self.runs:,} runs"
        if self.least is None:
            return (
                f"No violation of {claim} up to {self.truths[-1]:g} by Laplace noise would "
                f"have been seen in {runs}."
            )
        return (
            f"Violations of {claim} from {self.least:g} on by Laplace noise would have been seen "
            f"with {format_percent(POWER)} probability in {runs}."
        )

    def figure(self) -> Figure:
        """Runs that each violation takes, and the runs that there were."""
        needed = _runs_needed(self.claim, self.delta, self.alpha)
        # A guess test needs runs to learn from too, in proportion to those that test.
        runs_per_tested_run = self.runs / max(self.tested, 1)
        guess = [
            (truth, numbers.guess * runs_per_tested_run)
            for truth, numbers in zip(self.truths, needed, strict=True)
        ]
        limit = [(truth, numbers.limit) for truth, numbers in zip(self.truths, needed, strict=True)]
        return power_figure(guess, limit, self.runs, f"{self.claim:g}")


def power_of(result: Result) -> Power | None:
    """What the runs of a report could have seen; None if it has no guess tests."""
    from audits.known_densities.outcome_models import laplace
    from audits.known_densities.sample_size import guess_test_sees
    from audits.runner.cases import verdict_confidence

    rows, runs = [row for row in result.rows if row.kind != "scores"], result.request.samples
    if not rows:
        return None
    # It is about the claim of the user's own function; of many subjects, about epsilon 1.
    claims = {row.claim for row in rows if row.own}
    claim, delta = next(iter(claims)) if len(claims) == 1 else (1.0, 0.0)
    if not (0 < claim <= MAX_CLAIM and delta < 1):
        claim, delta = 1.0, 0.0
    # The rows of a user's function share the error of the family.  A row of this project's subjects
    # has the error of one row of a whole report, even if the report shows few of them.
    alpha = FAMILY_ERROR / len(rows)
    if not all(row.own for row in rows):
        alpha = min(alpha, 1 - verdict_confidence())
    # The smallest share of the runs that tested in any row: the others were learned from.
    tested_shares = []
    for row in rows:
        if row.guesses and row.runs:
            _, _, tested_runs = row.guesses
            tested_shares.append(tested_runs / row.runs)
    tested = max(1, int(runs * min([*tested_shares, 1.0])))
    smallest_truth = next(
        (
            truth
            for truth in _truths(claim)
            if guess_test_sees(laplace(truth), tested, claim, delta, alpha, POWER)
        ),
        None,
    )
    return Power(claim, delta, runs, tested, alpha, smallest_truth)


@functools.cache
def _runs_needed(claim: float, delta: float, alpha: float) -> list[RunsNeeded]:
    """The runs of every true epsilon of a figure."""
    from audits.known_densities.outcome_models import laplace
    from audits.known_densities.sample_size import runs_needed

    return [runs_needed(laplace(x), claim, delta, alpha, POWER) for x in _truths(claim)]


def _truths(claim: float) -> tuple[float, ...]:
    return tuple(float(f"{claim * factor:.4g}") for factor in TRUE_EPSILONS)
