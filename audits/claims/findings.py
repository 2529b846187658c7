"""What an audit returns: FALSIFIED, SURVIVED or INCONCLUSIVE, with its evidence.

The evidence is a count of right guesses of which of two neighbouring values an output came from
(`GuessCounts`).  A `Finding` adds the lower bound on epsilon that follows from the count.  No
outcome means "private", for an audit cannot prove that.  Findings of many versions of a program add
up in a book of budgets, `Finding.add_to`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np

from accountant.errors import ParameterError
from accountant.formatting import format_lower
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.table_display import FACTS, Table, TableDisplay
from audits.statistics.betting import log_mean_wealth, log_wealth_of_counts
from audits.statistics.binomial_bounds import epsilon_lower, epsilon_lower_every_run
from audits.statistics.combined_tests import combined_epsilon_lower
from audits.statistics.delta_leaks import epsilon_lower_with_leaks

if TYPE_CHECKING:
    from accountant.book.book import Book
    from accountant.book.evidence import Evidence

# The kinds of what an audit did not look at.
LOW_BITS, TIMING, OTHER_PAIRS = "low bits", "timing", "other pairs"
SIDE_EFFECTS, ARGUMENTS = "side effects", "arguments never varied"
UNSEEN_PARTS, OTHER_EVENTS = "unseen parts", "other events"


class NotTested(NamedTuple):
    """What an audit did not look at: a kind, such as "timing", and which or why, in words."""

    kind: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.kind} ({self.sentence})"


class Outcome(enum.Enum):
    """What the evidence says of a claim: FALSIFIED, SURVIVED or INCONCLUSIVE.

    INCONCLUSIVE audits falsified nothing, but would not have seen half the noise either, as their
    runs are too few, or did not see all of the outputs.

    Examples
    --------
    >>> from mechanisms import Laplace
    >>> from audits import Outcome, audit
    >>> finding = audit(Laplace(scale=1.0), runs=2000, rng=0)
    >>> finding.outcome is Outcome.SURVIVED
    True
    """

    FALSIFIED = "the data contradict the claim at this confidence"
    SURVIVED = "the data do not contradict the claim; that is no proof"
    INCONCLUSIVE = "the runs would not have seen half the noise, or the audit did not see all"


@final
@dataclass(frozen=True, slots=True)
class GuessCounts:
    """``correct`` of ``made`` guesses of the value were right, in ``runs`` test runs.

    ``guessed_values`` is how many of the two values the rule ever guesses, ``every_run`` whether it
    guesses in every run, ``expected`` the expected number of guesses and the expected share of
    right ones; all are fixed before the runs.  Several rules, each fixed before its own runs, form
    ``blocks``; the totals are their sums.
    """

    correct: int
    made: int
    runs: int
    guessed_values: int = 2
    every_run: bool = False
    expected: tuple[float, float] | None = None
    blocks: tuple[GuessCounts, ...] = ()

    def epsilon_lower(self, delta: float, confidence: float) -> float:
        """Lower bound on the epsilon of the audited release at ``delta``."""
        alpha = 1 - confidence
        if self.blocks and delta == 0:
            return combined_epsilon_lower([(b.correct, b.made, b.runs) for b in self.blocks], alpha)
        if self.blocks:  # leaks are counted once: the last block has most of the runs
            return self.blocks[-1].epsilon_lower(delta, confidence)
        if self.every_run and delta > 0:
            return epsilon_lower_every_run(self.correct, self.runs, delta, alpha)
        if self.expected is not None and delta > 0:
            # a rule that guesses only one of the values gains only by leaks of that value's runs
            leaking = delta * self.guessed_values / 2
            return epsilon_lower_with_leaks(
                self.correct, self.made, self.runs, leaking, alpha, self.expected
            )
        correct, guesses = np.array(float(self.correct)), np.array(float(self.made))
        return float(epsilon_lower(correct, guesses, self.runs, delta, alpha))

    @property
    def share(self) -> float:
        """Share of the guesses that were right."""
        return self.correct / self.made if self.made else 0.0

    def refutes(self, claim: Loss | None, delta: float, confidence: float) -> bool:
        """Whether the bound at ``confidence`` exceeds what the claim allows at ``delta``."""
        return claim is not None and self.epsilon_lower(delta, confidence) > claim.epsilon_at(delta)

    def log_e_values(self, epsilon: float, delta: float) -> Array:
        """Logarithms of e-values against (epsilon, delta)-DP, one for each of `STAKES`.

        Each block has a rule that was fixed before it, so their e-values are multiplied.
        """
        if self.blocks:
            of_blocks = [block.log_e_values(epsilon, delta) for block in self.blocks]
            result: Array = np.sum(of_blocks, axis=0)
            return result
        leak_rate = delta * self.guessed_values / 2
        return log_wealth_of_counts(self.correct, self.made, self.runs, epsilon, leak_rate)

    @property
    def all_right(self) -> GuessCounts:
        """The strongest evidence that these runs could give: a right guess in each, as expected."""
        return GuessCounts(
            correct=self.runs,
            made=self.runs,
            runs=self.runs,
            guessed_values=2,
            every_run=self.every_run,
            expected=None if self.expected is None else (float(self.runs), 1.0),
            blocks=tuple(block.all_right for block in self.blocks),
        )


def pool(blocks: list[GuessCounts]) -> GuessCounts:
    """The guesses of several rules, each fixed before its own runs."""
    if len(blocks) == 1:
        return blocks[0]
    return GuessCounts(
        correct=sum(block.correct for block in blocks),
        made=sum(block.made for block in blocks),
        runs=sum(block.runs for block in blocks),
        guessed_values=max(block.guessed_values for block in blocks),
        every_run=all(block.every_run for block in blocks),
        blocks=tuple(blocks),
    )


@final
@dataclass(frozen=True, slots=True)
class ClaimPoint:
    """The point of a claim's profile where the verdict is decided, and the guesses there.

    Learning runs chose it as the most revealing; ``delta`` is the claim's at ``epsilon``.  If it
    does not decide alone, the bound decides too, each with half of the error.
    """

    epsilon: float
    delta: float
    guesses: GuessCounts
    decides_alone: bool = True

    def refutes(self, confidence: float) -> bool:
        """Whether the guesses contradict (epsilon, delta)-DP at ``confidence``."""
        return self.guesses.epsilon_lower(self.delta, confidence) > self.epsilon


@final
@dataclass(frozen=True, slots=True)
class Finding(TableDisplay):
    """The result of one audit.

    The verdict is that of ``point`` if there is one: a test of its own at the same confidence.
    Otherwise it is that of the bound.

    Parameters
    ----------
    outcome : Outcome
        FALSIFIED, SURVIVED or INCONCLUSIVE.
    epsilon_lower : float
        Lower bound on the true epsilon at ``delta``, rounded down; it holds with probability
        ``confidence``.
    delta : float
        The delta in [0, 1) of the bound.
    runs : int
        Number of draws, learning included.
    confidence : float
        Probability in (0, 1) with which the bound holds.
    witness : str
        What was seen, in words.
    seconds : float
        Duration of the audit.
    seed : int or None
        The seed that repeats the audit; None if the caller passed a generator.
    claim : Loss or None
        What was claimed.
    guesses : GuessCounts
        How many guesses were made, and how many were right.
    point : ClaimPoint, optional
        The most revealing point of a claim that is a whole curve.
    stopped : int, optional
        The run of an early verdict.
    unseen : tuple of str, optional
        Parts of the outputs that the audit could not look into, such as ``output[1]: Handle``.
        Whether they reveal the value is not known.
    notes : tuple of str, optional
        Sentences on the release: that a seed does not repeat it, that it changes its value.
    noise : str, optional
        The kind of noise by which it was judged whether the runs would have seen half of it: that
        of the declared mechanism; for a function, which may have any, Laplace noise if the claim is
        pure, else Gaussian noise.  "" where nothing was judged so.
    needed_runs : int, optional
        A number of runs that would see half of this noise, with probability 95 %, if these runs
        would not.  None if they would, or if no number of runs is known to.
    not_tested : tuple of (str, str), optional
        What the audit did not look at, as pairs of a kind and a sentence.  The kinds are "low
        bits", "timing", "other pairs", "side effects", "arguments never varied", "unseen parts" and
        "other events".
    stream : str, optional
        SHA-256 of the state of the generator that drew the runs; "" if it has none to read.
    log_wealth : float, optional
        Logarithm of the wealth of bets against the claim, for an audit that may stop early.

    Examples
    --------
    >>> from accountant import PureLoss
    >>> from audits import Finding, audit
    >>> def no_noise(value, rng):
    ...     return value
    >>> found = audit(no_noise, (0, 1), PureLoss(1.0), runs=500, rng=0)
    >>> found.guesses.correct, found.guesses.made, round(found.epsilon_lower, 2)
    (400, 400, 4.89)
    """

    outcome: Outcome
    epsilon_lower: float
    delta: float
    runs: int
    confidence: float
    witness: str
    seconds: float
    seed: int | None
    claim: Loss | None
    guesses: GuessCounts
    point: ClaimPoint | None = None
    stopped: int | None = None
    unseen: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    noise: str = ""
    needed_runs: int | None = None
    not_tested: tuple[NotTested, ...] = ()
    stream: str = ""
    log_wealth: float | None = None

    def __repr__(self) -> str:
        claimed = "" if self.claim is None else f", claimed {self.claim!r}"
        bound_text = f"epsilon >= {format_lower(self.epsilon_lower)} at delta {self.delta:g}"
        untested = f"; not tested: {kinds_of(self.not_tested)}" if self.not_tested else ""
        too_few = f"; {self.why_too_few}" if self.why_too_few else ""
        runs = f"{self.runs:,} runs{too_few}{untested}"
        return f"<Finding: {self.outcome.name}, {bound_text}{claimed}, {runs}>"

    def _table(self) -> Table:
        rows = [
            ("outcome", self.outcome.name),
            ("epsilon, at least", self.epsilon_lower),
            ("at delta", self.delta),
            ("claimed", self.claim),
            ("runs", self.runs),
            ("confidence", self.confidence),
            ("seed", self.seed),
            ("seen", self.witness),
            *(("not looked into", part) for part in self.unseen),
            *([("inconclusive", self.why_too_few)] if self.why_too_few else []),
            *(("note", note) for note in self.notes),
            *([("not tested", kinds_of(self.not_tested))] if self.not_tested else []),
        ]
        return Table(FACTS, rows, lower=("epsilon, at least",))

    @property
    def why_too_few(self) -> str:
        """Why the runs of an INCONCLUSIVE audit decide nothing, and how many would; else ""."""
        is_weak = self.outcome is Outcome.INCONCLUSIVE and bool(self.noise)
        # What was not looked into stays so in any number of runs.
        is_weak = is_weak and (self.needed_runs is not None or not self.unseen)
        return too_few_runs(self.noise, self.needed_runs) if is_weak else ""

    def add_to(self, book: Book, claim: str, version: str) -> Evidence:
        """Add this finding to the evidence on a claim of a book, whatever the outcome.

        All findings on a claim that holds ever bring an alarm with probability at most its alpha.
        Findings that were left out because they found nothing would make it more.

        Parameters
        ----------
        book : Book
            The book, with the claim: ``book.claim("visits", Budget(1.0))`` opens one.
        claim : str
            Name of the claim.
        version : str
            The version of the program that was audited.

        Returns
        -------
        Evidence
            The claim, with all evidence on it.

        Raises
        ------
        ParameterError
            If the same runs count already, or the audit tested more than is claimed.

        References
        ----------
        Ville (1939); Vovk & Wang (2021), for products and means of e-values; Waudby-Smith & Ramdas
        (2024), for betting; Shin, Ramdas & Rinaldo (2023), for bets that start at every time.

        Examples
        --------
        >>> import tempfile
        >>> from accountant import Book, Budget
        >>> from audits import audit
        >>> def half_the_noise(value, rng, size):
        ...     return value + rng.laplace(scale=0.5, size=size)
        >>> folder = tempfile.TemporaryDirectory()
        >>> book = Book.create(f"sqlite:///{folder.name}/budgets.db")
        >>> evidence = book.claim("visits", Budget(1.0), alpha=0.01)
        >>> for minor in range(5):
        ...     found = audit(half_the_noise, (0.0, 1.0), 1.0, runs=100, early=True, rng=minor)
        ...     evidence = found.add_to(book, "visits", version=f"1.{minor}")
        ...     print(found.outcome.name, f"{evidence.wealth:.3g}", evidence.is_alarmed)
        INCONCLUSIVE 0.672 False
        INCONCLUSIVE 8.5 False
        INCONCLUSIVE 20 False
        INCONCLUSIVE 203 True
        FALSIFIED 7.75e+03 True
        >>> book.close(); folder.cleanup()
        """
        points, log_e_values = self.log_e_values(book.evidence(claim).claim)
        seen = f"{self.outcome.name} by {self.runs:,} runs: "
        seen += f"{self.guesses.correct:,} of {self.guesses.made:,} guesses were right"
        return book.add_evidence(
            claim, log_e_values, points, runs=self.stream, version=version, seen=seen
        )

    def log_e_values(self, claim: Loss) -> tuple[list[tuple[float, float]], list[float]]:
        """The points (epsilon, delta) of a claim that were tested, and e-values against it.

        An e-value is a number, at least 0, whose mean is at most 1 if the claim holds.

        Parameters
        ----------
        claim : Loss
            What is claimed; it may be another claim than that of the audit.

        Returns
        -------
        tuple of list of (float, float), and list of float
            The points, and logarithms of the e-values, rounded down: one of bets that were placed
            run by run, else one for each stake on the guesses.

        Raises
        ------
        ParameterError
            If the audit made no guesses, or its generator's state cannot be read.
        """
        if not self.stream or (self.log_wealth is None and not self.guesses.runs):
            allowed = "of an audit by guesses, whose rng is a seed, None or a generator of numpy"
            raise ParameterError("finding", self.witness, allowed)
        if self.log_wealth is not None and self.claim is not None:
            return [(self.claim.epsilon_at(self.delta), self.delta)], [self.log_wealth]
        tests = []
        if self.point is None or not self.point.decides_alone:
            tests.append((claim.epsilon_at(self.delta), self.delta, self.guesses))
        if self.point is not None:
            epsilon = self.point.epsilon
            tests.append((epsilon, claim.delta_at(epsilon), self.point.guesses))
        # Two tests of the same runs: the mean of two e-values is an e-value.
        log_e_values = np.stack(
            [guesses.log_e_values(epsilon, delta) for epsilon, delta, guesses in tests]
        )
        points = [(epsilon, delta) for epsilon, delta, _ in tests]
        return points, log_mean_wealth(log_e_values).tolist()

    def refutes(self, confidence: float) -> bool:
        """Whether the same evidence falsifies the claim at another confidence.

        Parameters
        ----------
        confidence : float
            Probability in (0, 1) with which a true claim survives.

        Returns
        -------
        bool
            True if the claim is falsified at that confidence.
        """
        if self.stopped is not None:  # betting stopped as soon as it had proved this
            return confidence <= self.confidence
        if self.point is not None:
            if self.point.decides_alone:
                return self.point.refutes(confidence)
            # Each of the two tests has half of the error 1 - confidence.
            confidence_of_each = (1 + confidence) / 2
            refuted_by_bound = self.guesses.refutes(self.claim, self.delta, confidence_of_each)
            return refuted_by_bound or self.point.refutes(confidence_of_each)
        return self.guesses.refutes(self.claim, self.delta, confidence)


def kinds_of(not_tested: Iterable[NotTested]) -> str:
    """The kinds in one line, each once."""
    return ", ".join(dict.fromkeys(reason.kind for reason in not_tested))


def too_few_runs(noise: str, needed_runs: int | None) -> str:
    """The reason of an INCONCLUSIVE audit that saw all, and the number of runs that decides."""
    if not noise:
        return "too few runs to decide"
    if needed_runs is None:
        return f"no number of runs is known to see half of {noise}"
    return f"too few runs to see half of {noise}; {needed_runs:,} would"


def as_expected(outcome: Outcome, expected: Outcome) -> bool:
    """True if an honest subject was not falsified, or a broken one was."""
    return (outcome is Outcome.FALSIFIED) == (expected is Outcome.FALSIFIED)


def is_only_weak(finding: Finding) -> bool:
    """Whether an INCONCLUSIVE audit could have falsified the claim, but not half the noise."""
    is_weak = finding.outcome is Outcome.INCONCLUSIVE and bool(finding.noise)
    return is_weak and not finding.unseen and could_refute(finding, finding.confidence)


def could_refute(finding: Finding, confidence: float) -> bool:
    """Whether a right guess in every run would have falsified the claim."""
    point = finding.point
    if point is not None:
        point = replace(point, guesses=point.guesses.all_right)
    best = replace(finding, guesses=finding.guesses.all_right, point=point)
    return best.refutes(confidence)


def outcome_at(finding: Finding, confidence: float) -> Outcome:
    """The outcome of the evidence at a confidence; without a claim no number of runs is too few."""
    if finding.refutes(confidence):
        return Outcome.FALSIFIED
    enough_runs = finding.claim is None or could_refute(finding, confidence)
    return Outcome.SURVIVED if enough_runs and not finding.unseen else Outcome.INCONCLUSIVE
