"""The smallest violation that the runs of a report would have seen.

A report without a violation says little unless its runs could have seen one.  So it says from which
true epsilon on a guess test with as many runs would have refuted the claim, if the release had less
noise of its own kind; and a figure shows how many runs each true epsilon takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from accountant.formatting import format_short
from accountant.losses.loss import Loss
from accountant.losses.pure_and_approximate import ApproxLoss, PureLoss
from accountant.reports.svg_figures import Figure
from audits.attacks.half_noise import (
    FACTORS,
    least_factor_seen,
    least_test_runs,
    limit_of_any_test,
)
from audits.known_densities.outcome_models import noise_kind, true_epsilon
from audits.known_densities.sample_size import POWER
from audits.report.figure import power_figure
from audits.report.words import format_percent
from audits.results.result_file import Result
from audits.results.rows import FAMILY_ERROR, ReportRow
from mechanisms import Mechanism, registry

# Largest claimed epsilon that the sentence and figure are about; beyond, they are about epsilon 1.
# Noise of a larger epsilon is as good as none.
MAX_CLAIM = 15.0


@final
@dataclass(frozen=True, slots=True)
class Power:
    """What ``runs`` detect against a claim at ``delta``, if a release has less noise than claimed.

    ``mechanism`` has the kind of noise; None stands for a function, of which it is assumed by the
    claim.  ``tested`` is how many of the runs test, the others learn; ``alpha`` the error of one
    verdict.
    """

    mechanism: Mechanism | None
    claim: Loss
    delta: float
    runs: int
    tested: int
    alpha: float

    @property
    def truths(self) -> tuple[float, ...]:
        """True epsilons that are tried."""
        return tuple(map(self._truth, FACTORS))

    @property
    def least(self) -> float | None:
        """The smallest true epsilon that is detected, None if none is."""
        factor = least_factor_seen(
            self.mechanism, self.claim, self.delta, self.alpha, self.tested, self._point_alone
        )
        return None if factor is None else self._truth(factor)

    @property
    def sentence(self) -> str:
        """What the runs would have seen, for noise of this kind."""
        claim = f"epsilon {self.claim.epsilon_at(self.delta):.4g}"
        claim += f" at delta {format_short(self.delta)}" if self.delta else ""
        runs, noise = f"{self.runs:,} runs", noise_kind(self.mechanism, self.claim)
        if self.least is None:
            return (
                f"No violation of {claim} up to {self.truths[-1]:g} by {noise} would "
                f"have been seen in {runs}."
            )
        return (
            f"Violations of {claim} from {self.least:g} on by {noise} would have been seen "
            f"with {format_percent(POWER)} probability in {runs}."
        )

    def figure(self) -> Figure:
        """Runs that each violation takes, and the runs that there were."""
        # A guess test needs runs to learn from too, in proportion to those that test.
        runs_per_tested_run = self.runs / max(self.tested, 1)
        settings = self.mechanism, self.claim, self.delta, self.alpha
        epsilon = self.claim.epsilon_at(self.delta)
        guess, limit = [], []
        for factor, truth in zip(FACTORS, self.truths, strict=True):
            needed = least_test_runs(*settings, factor, self._point_alone)
            guess.append((truth, needed * runs_per_tested_run))
            limit.append((truth, min(limit_of_any_test(*settings, factor), needed)))
        return power_figure(guess, limit, self.runs, f"{epsilon:.4g}")

    @property
    def _point_alone(self) -> bool | None:
        # The own loss of a mechanism is tested by its bound, and with a delta at epsilon 0 too.
        return False if self.mechanism is not None and self.delta > 0 else None

    def _truth(self, factor: float) -> float:
        return float(f"{true_epsilon(self.mechanism, self.claim, self.delta, factor):.4g}")


def power_of(result: Result) -> Power | None:
    """What the runs of a report could have seen; None if it has no guess tests."""
    from audits.runner.cases import verdict_confidence

    rows, runs = [row for row in result.rows if row.guesses_outputs], result.request.samples
    if not rows:
        return None
    mechanism, claim, delta = _subject_of(rows)
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
    return Power(mechanism, claim, delta, runs, tested, alpha)


def _subject_of(rows: list[ReportRow]) -> tuple[Mechanism | None, Loss, float]:
    """The mechanism, the claim and the delta that a report is about.

    They are those of the user's own function, or of a single row.  Of many subjects no kind of
    noise is that of all: then it is about Laplace noise and epsilon 1.
    """
    claims = {row.claim for row in rows if row.own or len(rows) == 1}
    epsilon, delta = next(iter(claims)) if len(claims) == 1 else (1.0, 0.0)
    if not (0 < epsilon <= MAX_CLAIM and delta < 1):
        epsilon, delta = 1.0, 0.0
    elif len(rows) == 1 and rows[0].kind == "mechanism":
        for cls in registry():
            for instance in cls.instances():
                if repr(instance) == rows[0].subject:
                    return instance, instance.loss, delta
    return None, ApproxLoss(epsilon, delta) if delta > 0 else PureLoss(epsilon), delta
