"""The auditor's score on the zoo: runs to detection, bound over truth, false alarms, seconds.

The zoo has specimens, broken or honest releases and algorithms whose true privacy is known.  A
broken one is audited with more and more runs until its claim is falsified.  Then each specimen is
audited once for the verdict, and some times more to count false alarms.  The scorecard has a JSON
file, from which an interrupted scoring can continue.
"""

from __future__ import annotations

import dataclasses
import json
import math
import time
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.errors import ParameterError
from accountant.randomness import Rng
from audits.algorithm_runs.loss_profile import audit_algorithm
from audits.attacks.floating_point import audit_bits
from audits.attacks.front import audit
from audits.attacks.output_structure import audit_atoms
from audits.attacks.sensitivity import probe_sensitivity
from audits.attacks.timing import audit_timing
from audits.claims.arguments import claimed_delta, seed_and_generator
from audits.claims.findings import Finding, Outcome, as_expected
from audits.results.result_file import MALFORMED, SCHEMA, Request, load_document, request_of
from audits.results.rows import FAMILY_ERROR, ReportRow, Settings
from audits.zoo.specimen import Specimen

# the numbers of runs with which a broken specimen is audited until it is detected
DETECTION_RUNS = (
    500,
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
)
GUESS_AUDITS: dict[str, Callable[..., Finding]] = {
    "guess test": audit,
    "bits": audit_bits,
    "atoms": audit_atoms,
}
# The verdicts on up to 300 specimens all hold together with probability 1 - FAMILY_ERROR, as each
# gets an equal part of this error.
MAX_SPECIMENS = 300
VERDICT_CONFIDENCE = 1 - FAMILY_ERROR / MAX_SPECIMENS
LOSSES_PER_SPECIMEN = 100  # sampled privacy losses of an algorithm


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of the audit that a specimen names."""

    outcome: Outcome
    epsilon_lower: float | None  # the lower bound on epsilon; None where the audit has none
    runs: int  # runs, or what the kind of audit counts in their place
    witness: str  # what was seen, in words
    seconds: float


@final
@dataclass(frozen=True, slots=True)
class SpecimenScore:
    """One row of the scorecard.

    ``detected_at`` is the fewest runs, of `DETECTION_RUNS` up to the budget, at which the claim was
    falsified; None if it never was.  All ``outcome``s hold jointly at ``1 - FAMILY_ERROR``.
    ``share`` is the bound at the budget over the true epsilon; ``alarms`` are the ``repeats`` at
    the budget in which a bound exceeded the true epsilon, or an honest claim was falsified.
    """

    name: str
    kind: str  # "honest" or "broken"
    caught_by: str  # the kind of audit
    expected: Outcome
    claim: float  # the claimed epsilon at the claimed delta
    true_epsilon: float | None  # None where it is infinite or not known
    outcome: Outcome
    detected_at: int | None
    epsilon_lower: float | None
    share: float | None
    alarms: int
    repeats: int
    seconds: float
    witness: str  # what was seen, in words

    @property
    def subject(self) -> str:
        """The specimen's name."""
        return self.name

    @property
    def as_expected(self) -> bool:
        """True if an honest specimen survived, or a broken one was caught."""
        return as_expected(self.outcome, self.expected)

    def row(self, request: Request) -> ReportRow:
        """The verdict as a row of a report; its bound is at the request's confidence alone."""
        return ReportRow(
            subject=self.name,
            kind="specimen",
            claim=(self.claim, math.nan),
            exact_epsilon=self.true_epsilon,
            epsilon_lower=self.epsilon_lower,
            confidence=request.confidence,
            runs=request.samples,
            outcome=self.outcome,
            expected=self.expected,
            witness=self.witness,
            evidence=f"{self.kind}, {self.caught_by}: {self.witness}",
            seconds=self.seconds,
        )


@final
@dataclass(frozen=True, slots=True)
class ScoringCase:
    """A specimen that is still to be scored."""

    specimen: Specimen
    kind: str = "specimen"

    @property
    def subject(self) -> str:
        """The specimen's name."""
        return self.specimen.name

    def run(self, settings: Settings) -> SpecimenScore:
        """Score the specimen; its seeds depend on its name, not on the other specimens."""
        start, specimen = time.perf_counter(), self.specimen
        runs, true = settings.samples, specimen.true_epsilon
        if specimen.most_runs is not None:
            runs = min(runs, specimen.most_runs)
        source = np.random.default_rng([settings.seed, zlib.crc32(specimen.name.encode())])
        detected = None
        if not specimen.honest:
            for size in (*(n for n in DETECTION_RUNS if n < runs), runs):
                verdict = audit_specimen(specimen, size, settings.confidence, source)
                if verdict.outcome is Outcome.FALSIFIED:
                    detected = verdict.runs
                    break
        family_verdict = audit_specimen(specimen, runs, VERDICT_CONFIDENCE, source)
        verdicts = [
            audit_specimen(specimen, runs, settings.confidence, source)
            for _ in range(settings.repeats)
        ]
        lowers = [v.epsilon_lower for v in verdicts if v.epsilon_lower is not None]
        if specimen.honest:
            alarms = sum(verdict.outcome is Outcome.FALSIFIED for verdict in verdicts)
        else:
            alarms = sum(true is not None and bound > true for bound in lowers)
        lower = float(np.median(lowers)) if lowers else None
        return SpecimenScore(
            name=specimen.name,
            kind="honest" if specimen.honest else "broken",
            caught_by=specimen.caught_by,
            expected=specimen.expected,
            claim=specimen.claim.epsilon_at(claimed_delta(specimen.claim)),
            true_epsilon=true,
            outcome=family_verdict.outcome,
            detected_at=detected,
            epsilon_lower=lower,
            share=lower / true if lower is not None and true else None,
            alarms=alarms,
            repeats=settings.repeats,
            seconds=time.perf_counter() - start,
            witness=verdicts[-1].witness,
        )


def cases() -> list[ScoringCase]:
    """The whole zoo, to be scored."""
    from audits.zoo.catalogue import SPECIMENS

    return [ScoringCase(specimen) for specimen in SPECIMENS]


def audit_specimen(specimen: Specimen, runs: int, confidence: float, rng: Rng = None) -> Verdict:
    """Audit one specimen by the kind of audit that it names."""
    start, source = time.perf_counter(), seed_and_generator(rng)[1]
    audit_kind, implementation = specimen.caught_by, specimen.implementation
    pair, claim = specimen.pair, specimen.claim
    lower: float | None = None
    if audit_kind in GUESS_AUDITS:
        guess_audit = GUESS_AUDITS[audit_kind]
        finding = guess_audit(implementation, pair, claim, runs, confidence, rng=source)
        outcome, lower, runs_used, witness = (
            finding.outcome,
            finding.epsilon_lower,
            finding.runs,
            finding.witness,
        )
    elif audit_kind == "timing":
        # A timed pair takes longer than a run, so there are fewer of them; 100 to 500.
        pairs = min(max(runs // 40, 100), 500)
        timed = audit_timing(
            implementation, pair, pairs, batch=1, confidence=confidence, rng=source
        )
        outcome, runs_used, witness = timed.outcome, 2 * pairs, timed.witness
    elif audit_kind == "sensitivity":
        probe = probe_sensitivity(
            implementation.query,
            implementation.space,
            implementation.relation,
            implementation.declared,
            budget=min(runs, 5000),
            rng=source,
            hostile=implementation.hostile,
        )
        outcome, runs_used, witness = probe.outcome, probe.evaluations, probe.witness
    else:  # an algorithm, whose replay and privacy losses are one audit
        algorithm_audit = audit_algorithm(implementation, *pair, claim, LOSSES_PER_SPECIMEN, source)
        why = algorithm_audit.refutation(confidence)
        outcome = Outcome.FALSIFIED if why else Outcome.SURVIVED
        lower = algorithm_audit.epsilon_lower(claimed_delta(claim), confidence)
        runs_used, witness = max(int(algorithm_audit.losses.size), 1), why or "replayed bit by bit"
    return Verdict(outcome, lower, runs_used, witness, time.perf_counter() - start)


def score_zoo(
    specimens: Iterable[Specimen] | None = None,
    runs: int = 100_000,
    confidence: float = 0.95,
    rng: int = 0,
    repeats: int = 1,
    tick: Callable[[str], None] = lambda name: None,
) -> list[SpecimenScore]:
    """Audit specimens whose truth is known, and score the auditor.

    Parameters
    ----------
    specimens : iterable of Specimen, optional
        The specimens; None takes the whole zoo.
    runs : int, optional
        Number of draws of each audit.
    confidence : float, optional
        Probability in (0, 1) with which each bound holds.
    rng : int, optional
        Seed.  A specimen's own seed depends on its name, not on the other specimens.
    repeats : int, optional
        Number of audits that count false alarms.
    tick : callable, optional
        Called with the specimen's name after each one.

    Returns
    -------
    list of SpecimenScore
        One row per specimen.

    Raises
    ------
    ParameterError
        If an argument of an audit is out of its range.

    Examples
    --------
    >>> from audits import score_zoo
    >>> from audits.zoo.catalogue import SPECIMENS
    >>> rows = score_zoo(SPECIMENS[:1], runs=1000)
    >>> rows[0].name, rows[0].outcome.name, rows[0].alarms
    ('half_the_noise', 'FALSIFIED', 0)
    """
    settings = Settings(runs, confidence, rng, repeats=repeats)
    rows = []
    for case in cases() if specimens is None else map(ScoringCase, specimens):
        rows.append(case.run(settings))
        tick(case.subject)
    return rows


def totals(rows: Iterable[SpecimenScore]) -> dict[str, Any]:
    """The totals of the scorecard: specimens, as expected, false alarms, seconds."""
    rows = list(rows)
    return {
        "specimens": len(rows),
        "honest": sum(row.kind == "honest" for row in rows),
        "as_expected": sum(row.as_expected for row in rows),
        "alarms": sum(row.alarms for row in rows),
        "seconds": sum(row.seconds for row in rows),
    }


def to_json(request: Request, scores: list[SpecimenScore]) -> str:
    """The scores and their request as text; infinite and NaN numbers become null."""

    def encoded(value: Any) -> Any:
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        return value.name.lower() if isinstance(value, Outcome) else value

    contents = {
        "schema": SCHEMA,
        "seed": request.seed,
        "runs": request.samples,
        "confidence": request.confidence,
        "repeats": request.options["repeats"],
        "request": {**dataclasses.asdict(request), "names": list(request.names)},
        "command": request.repeat_command,
        "scores": [
            {name: encoded(value) for name, value in dataclasses.asdict(score).items()}
            for score in scores
        ],
    }
    return json.dumps(contents, indent=2, allow_nan=False) + "\n"


def read_scores(path: str, argument: str) -> tuple[Request, list[SpecimenScore]]:
    """The request and the scores in a file, or `ParameterError`."""
    contents = load_document(path, argument)
    try:
        request, scores = request_of(contents), []
        for score in contents["scores"]:
            outcomes = {name: Outcome[score[name].upper()] for name in ("outcome", "expected")}
            # A claim is never None: null stands for a NaN or infinite one.
            claim = math.nan if score["claim"] is None else score["claim"]
            scores.append(SpecimenScore(**{**score, **outcomes, "claim": claim}))
    except MALFORMED:
        allowed = "scores of schema 1 with their request, written by zoo --json"
        raise ParameterError(argument, path, allowed) from None
    return request, scores
