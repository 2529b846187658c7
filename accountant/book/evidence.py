"""Evidence against claims of privacy: one e-process for the life of each claim.

A *claim* says of a program that it is private: a loss, such as ``PureLoss(1.0)``.  An audit of a
version of the program states an *e-value*: a number, at least 0, whose mean is at most 1 if the
claim holds, whatever came before.  Who bets against the claim multiplies a stake by each e-value.
If the claim holds, the *wealth* of one who began with 1 ever reaches 1 / alpha with probability at
most alpha, however many versions there are, and whatever decides on the next audit (Ville 1939).
So the *alarm*, at 1 / alpha, has one error rate for all the life of the claim; it stays, whatever
comes later.

Honest versions lose what is bet.  So that a version which is broken later is found all the same,
the share 1 / (n (n + 1)) of the first wealth is bet from the n-th audit on, and 1 / (n + 1) is kept
for later ones.  An audit may place several *bets* of different stakes, with an e-value each.  Each
bet goes on by itself, and the wealth is the mean over bets: a life finds the best stake once.

An entry states the logarithm of the wealth in each bet, without what is kept, and the entry that
brought the alarm, 0 for none.  E-values and wealth are rounded down.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from accountant.accountants.budget import Budget
from accountant.book.chain.entries import (
    CLAIM,
    CLAIMS_KEY,
    EVIDENCE,
    LogEntry,
    checked_name,
    claim_key,
    evidence_key,
    evidence_of_runs_key,
)
from accountant.book.limits.plan_proofs import DIGEST
from accountant.book.log import Log
from accountant.domains import DELTA, EPSILON, REAL, IntegerRange, Interval
from accountant.errors import LedgerCorrupt, ParameterError
from accountant.formatting import format_lower, format_short
from accountant.losses.loss import Loss
from accountant.losses.pure_and_approximate import ApproxLoss, PureLoss
from accountant.numerics.rounding import MAX_EXPONENT, ULP
from accountant.plans.adjacency import Adjacency, check_relation
from accountant.serialisation.plan_json import PlanFileError, from_dict, to_dict
from accountant.table_display import Table, TableDisplay

ALPHA = Interval(1e-300, 1.0, "[)")
USUAL_ALPHA = 0.05
BETS = IntegerRange(1, 64)  # numbers of bets that a claim can have
# Relative difference that a delta of a claim may have when it is computed anew.
DELTA_ROUND_OFF = 1e-9


class EvidenceLine(NamedTuple):
    """The evidence of one audit: what was found, and the wealth after it.

    ``points`` are the (epsilon, delta) that the audit tested, which follow from the claim, ``runs``
    is the digest of the generator that drew its runs, and ``seen`` what it saw, in words.
    ``e_value`` is the mean of its e-values, and ``wealth`` that of the claim after it.
    """

    seq: int
    time: str
    author: str
    version: str
    points: tuple[tuple[float, float], ...]
    runs: str
    seen: str
    e_value: float
    wealth: float
    log_wealth: float


@final
@dataclass(frozen=True, slots=True)
class Evidence(TableDisplay):
    """The evidence on a claim, from its opening on.

    Parameters
    ----------
    name : str
        Name of the claim.
    claim : Loss
        What is claimed.
    alpha : float
        Probability, at most, of an alarm in all the life of a claim that holds.
    relation : Adjacency or None
        How neighbours differ; None where the audited pairs say it.
    opened : str
        When the claim was opened.
    author : str
        Who opened it.
    lines : tuple of EvidenceLine
        The evidence of each audit, the oldest first.
    alarm : EvidenceLine or None
        The evidence that brought the wealth to 1 / alpha.

    Examples
    --------
    >>> import tempfile
    >>> from accountant import Book, Budget
    >>> folder = tempfile.TemporaryDirectory()
    >>> book = Book.create(f"sqlite:///{folder.name}/budgets.db")
    >>> evidence = book.claim("visits", Budget(1.0), alpha=0.01)
    >>> evidence.wealth, evidence.is_alarmed
    (1.0, False)
    >>> book.close(); folder.cleanup()
    """

    name: str
    claim: Loss
    alpha: float
    relation: Adjacency | None
    opened: str
    author: str
    lines: tuple[EvidenceLine, ...] = ()
    alarm: EvidenceLine | None = None

    @property
    def wealth(self) -> float:
        """Return the wealth after all evidence, rounded down; it may fall again after an alarm."""
        return self.lines[-1].wealth if self.lines else 1.0

    @property
    def is_alarmed(self) -> bool:
        """Return whether the evidence has ever refuted the claim."""
        return self.alarm is not None

    def __str__(self) -> str:
        neighbours = "" if self.relation is None else f", neighbours: {self.relation.difference}"
        versions = len({line.version for line in self.lines})
        end = f"alarm at {format_short(1 / self.alpha)} (alpha {format_short(self.alpha)})"
        if self.alarm is not None:
            end = (
                f"ALARM since entry {self.alarm.seq}, version {self.alarm.version}, at wealth "
                f"{format_lower(self.alarm.wealth)} (alpha {format_short(self.alpha)}): the claim "
                "is false; a claim of another name is for the mended program"
            )
        return (
            f"{self.name}: {self.claim!r}{neighbours}; wealth {format_lower(self.wealth)} (audits: "
            f"{len(self.lines)}, versions: {versions}); {end}"
        )

    def _table(self) -> Table:
        columns = ("entry", "time", "author", "version", "e-value", "wealth", "seen")
        rows = [
            (line.seq, line.time, line.author, line.version, line.e_value, line.wealth, line.seen)
            for line in self.lines
        ]
        return Table(columns, rows, str(self), lower=("e-value", "wealth"))


# --- wealth


def grown(log_wealth: Sequence[float], log_e_values: Sequence[float], nth: int) -> list[float]:
    """Return the log-wealth in each bet after the e-values of the ``nth`` audit, rounded down.

    One e-value is for all bets, and before the first several e-values all bets have the same
    wealth.  Before the first audit there is none.
    """
    count, share = max(len(log_wealth), len(log_e_values)), -math.log(nth * (nth + 1))
    wealth_after = []
    for before, added in zip(
        _spread(log_wealth or [-math.inf], count), _spread(log_e_values, count), strict=True
    ):
        top, other = max(before, share), min(before, share)
        log_stake = top + math.log1p(math.exp(other - top))
        wealth_after.append(log_stake + added - 8 * ULP * (1 + abs(log_stake) + abs(added)))
    return wealth_after


def _spread(numbers: Sequence[float], count: int) -> Sequence[float]:
    return list(numbers) * count if len(numbers) == 1 else numbers


def log_mean(log_wealth: Sequence[float], kept: float = 0.0) -> float:
    """Return the logarithm of the mean over bets and what is ``kept`` beside them, rounded down."""
    top = max([*log_wealth, -math.inf if kept == 0 else math.log(kept)])
    share = math.fsum(math.exp(number - top) for number in log_wealth) / max(len(log_wealth), 1)
    share += 0.0 if kept == 0 else kept * math.exp(-top)
    return top + math.log(share) - 8 * ULP * (1 + abs(top))


def log_total(log_wealth: Sequence[float], nth: int) -> float:
    """Return the logarithm of the wealth after the ``nth`` audit, rounded down."""
    return log_mean(log_wealth, 1 / (nth + 1))


def proof(alpha: float) -> float:
    """Return the log-wealth at which a claim is refuted, rounded up."""
    return -math.log(alpha) * (1 + 4 * ULP)


def _shown(log_value: float) -> float:
    """Return a factor from its logarithm, rounded down; one above 1e304 is shown as that."""
    return math.exp(min(log_value, MAX_EXPONENT)) * (1 - 4 * ULP)


# --- writing


def open_claim(
    log: Log, name: str, claim: object, alpha: float | None, relation: str | None
) -> None:
    """Open a claim, unless it is there; a claim that is there has the same terms."""
    checked_name("name", name)
    if isinstance(claim, Budget):
        claim = ApproxLoss(claim.epsilon, claim.delta) if claim.delta else PureLoss(claim.epsilon)
    if claim is not None and not isinstance(claim, Loss):
        raise ParameterError("claim", claim, "a Budget, or a loss such as PureLoss(1.0)")
    facts: dict[str, Any] = {
        "claim": name,
        "loss": None if claim is None else to_dict(claim),
        "alpha": ALPHA.check("alpha", USUAL_ALPHA if alpha is None else alpha),
        "relation": None if relation is None else str(check_relation("relation", relation)),
        "nth": 0,
        "wealth": [],
        "alarm": 0,
    }
    with log.reading():
        opening = log.entry_with_key(claim_key(name))
    if opening is None and claim is not None:
        with log.writing():
            opening = log.entry_with_key(claim_key(name))
            if opening is None:
                before = log.entry_with_key(CLAIMS_KEY)
                facts["before"] = 0 if before is None else before.seq
                opening = log.append(CLAIM, facts, key=claim_key(name))
    if opening is None:
        raise ParameterError("name", name, "a claim of this book; Book.claim opens one")
    for argument, requested, stated in (
        ("claim", claim, loss_of(opening)),
        ("alpha", alpha, opening.facts["alpha"]),
        ("relation", None if relation is None else facts["relation"], opening.facts["relation"]),
    ):
        if requested is not None and requested != stated:
            allowed = f"{stated!r}, as the claim {name!r} was opened: evidence on another claim is "
            allowed += "a process of its own, so open one of another name"
            raise ParameterError(argument, requested, allowed)


def add_evidence(
    log: Log,
    name: str,
    log_e_values: Sequence[float],
    points: Sequence[tuple[float, float]],
    runs: str,
    version: str,
    seen: str,
) -> None:
    """Append the evidence of one audit; its runs count once."""
    checked_name("version", version)
    if not isinstance(runs, str) or not DIGEST.fullmatch(runs):
        raise ParameterError("runs", runs, "a SHA-256 digest, in hexadecimal")
    BETS.check("log_e_values", len(log_e_values))
    bets = [REAL.check("log_e_values", number) for number in log_e_values]
    tested = [
        [EPSILON.check("points", epsilon), DELTA.check("points", delta)]
        for epsilon, delta in points
    ]
    if not tested:
        raise ParameterError("points", points, "at least one (epsilon, delta) that was tested")
    with log.writing():
        opening, last_entry = claim_entries(log, name)
        refuse_stronger(loss_of(opening), tested, name)
        same_runs = log.entry_with_key(evidence_of_runs_key(name, runs))
        if same_runs is not None:
            allowed = (
                f"of runs that do not count yet: entry {same_runs.seq} has these, and the same "
            )
            allowed += "luck is no evidence twice; audit with another seed, or without one"
            raise ParameterError("runs", f"those of the generator {runs[:12]}", allowed)
        bet_count = len(last_entry.facts["wealth"])
        if len(bets) > 1 and bet_count not in {0, 1, len(bets)}:
            allowed = f"{bet_count} numbers, as the claim has, or one"
            raise ParameterError("log_e_values", f"{len(bets)} numbers", allowed)
        nth = last_entry.facts["nth"] + 1
        wealth = grown(last_entry.facts["wealth"], bets, nth)
        is_proof = log_total(wealth, nth) >= proof(opening.facts["alpha"])
        facts = {
            "claim": name,
            "bets": bets,
            "points": tested,
            "runs": runs,
            "version": version,
            "seen": seen[:1000],  # the words of a witness, which may show a long output
            "before": last_entry.seq,
            "nth": nth,
            "wealth": wealth,
            "alarm": last_entry.facts["alarm"] or (log.head.seq + 1 if is_proof else 0),
        }
        log.append(EVIDENCE, facts, key=evidence_of_runs_key(name, runs))


def refuse_stronger(claim: Loss, points: Sequence[Sequence[float]], name: str) -> None:
    """Raise `ParameterError` unless each tested (epsilon, delta) follows from the claim."""
    for epsilon, delta in points:
        least_delta = claim.delta_at(epsilon)
        if delta < least_delta * (1 - DELTA_ROUND_OFF):
            allowed = f"what the claim {name!r}, {claim!r}, implies (delta {least_delta:g} at this "
            allowed += f"epsilon): audit with claim={claim!r}"
            raise ParameterError("points", f"epsilon {epsilon:g}, delta {delta:g}", allowed)


# --- reading


def claim_entries(log: Log, name: str) -> tuple[LogEntry, LogEntry]:
    """Return the entry that opened a claim, and the last one on it; inside a transaction."""
    opening = log.entry_with_key(claim_key(checked_name("claim", name)))
    last_entry = None if opening is None else log.entry_with_key(evidence_key(name))
    if opening is None or last_entry is None:
        raise ParameterError("claim", name, "a claim of this book; Book.claim opens one")
    return opening, last_entry


def loss_of(opening: LogEntry) -> Loss:
    """Return what is claimed, of the entry that opened the claim."""
    loss = from_dict(opening.facts["loss"])
    if not isinstance(loss, Loss):
        raise ParameterError("loss", loss, "a loss, as a claim states it")
    return loss


def read_evidence(log: Log, name: str) -> Evidence:
    """Return a claim with all evidence on it; call it inside a transaction."""
    opening, last_entry = claim_entries(log, name)
    lines = []
    try:
        for entry in _back(log, last_entry, EVIDENCE):
            facts = entry.facts
            log_wealth = log_total(facts["wealth"], facts["nth"])
            lines.append(
                EvidenceLine(
                    seq=entry.seq,
                    time=facts["time"],
                    author=facts["author"],
                    version=facts["version"],
                    points=tuple((epsilon, delta) for epsilon, delta in facts["points"]),
                    runs=facts["runs"],
                    seen=facts["seen"],
                    e_value=_shown(log_mean(facts["bets"])),
                    wealth=_shown(log_wealth),
                    log_wealth=log_wealth,
                )
            )
        relation, alarm_seq = opening.facts["relation"], last_entry.facts["alarm"]
        return Evidence(
            name=name,
            claim=loss_of(opening),
            alpha=opening.facts["alpha"],
            relation=None if relation is None else Adjacency(relation),
            opened=opening.facts["time"],
            author=opening.facts["author"],
            lines=tuple(reversed(lines)),
            alarm=next((line for line in lines if line.seq == alarm_seq), None),
        )
    except PlanFileError:  # its kind may be declared elsewhere
        raise
    except (KeyError, TypeError, ValueError, ArithmeticError):
        why = "an entry does not say what it must"
        raise LedgerCorrupt(log.name, why, last_entry.seq) from None


def claim_names(log: Log) -> list[str]:
    """Return the names of all claims, in the order of their opening; inside a transaction."""
    last_opening = log.entry_with_key(CLAIMS_KEY)
    if last_opening is None:
        return []
    return [entry.facts["claim"] for entry in _back(log, last_opening, CLAIM)][::-1]


def _back(log: Log, last_entry: LogEntry, kind: str) -> Iterator[LogEntry]:
    """Yield entries of a kind from the last one back, each of which names the one before it."""
    entry = last_entry
    while entry.kind == kind:
        yield entry
        before = min(entry.facts["before"], entry.seq - 1)  # a damaged entry leads in no circle
        if not before:
            return
        entry = log.entry(before)
