"""The audit of one training run from the scores of its canaries.

Canaries are records that an auditor puts into the training data, or leaves out, by a fair coin
each.  A score says from what the run released how likely each canary is in.  Rules guess the coins
of the most extreme scores (`guess_rules`); the number of right guesses bounds epsilon from below,
and refutes a claim that makes such a number unlikely (`hypotheses.Evidence`).  Where the number of
canaries inside is fixed, the coin is which of two matched canaries is inside.

References: Steinke, Nasr & Jagielski (2023); Mahloujifar, Melis & Chaudhuri (2024);
docs/proofs/one_run.md for the bounds.
"""

from __future__ import annotations

import functools
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.domains import DELTA, OneOf
from accountant.errors import ParameterError
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.loss import Loss
from accountant.losses.pure_and_approximate import ApproxLoss, PureLoss
from accountant.numerics import Array
from accountant.numerics.search import furthest_that
from accountant.plans.plan import Plan
from accountant.randomness import Rng
from audits.claims.arguments import CONFIDENCE, claimed_delta, seed_and_generator
from audits.claims.claims import ClaimLike, checked_claim
from audits.claims.findings import Outcome
from audits.one_run.findings import OneRunFinding
from audits.one_run.guess_rules import GuessRule, RankedCoins, ranked_coins, ranked_pairs
from audits.one_run.hypotheses import LEAST_EPSILON, Evidence
from audits.statistics.single_run import MOST_EPSILON, tail_of_right_guesses

LEAST_COINS = 10  # the least number of canaries, or of pairs of them, in an audit
# Numbers in and out are refused if fair coins are at least as uneven with less probability: then
# the canaries were not put in by coins of their own.
UNLIKELY = 1e-9
SPLITS = OneOf(("coins", "fixed"))


def audit_scores(
    inside: ArrayLike | str | Path,
    outside: ArrayLike | str | Path,
    claim: Plan | ClaimLike | None = None,
    delta: float | None = None,
    confidence: float = 0.95,
    *,
    split: str = "coins",
    rng: Rng = None,
) -> OneRunFinding:
    """Audit one training run from the scores of canaries inside and outside of its data.

    Each canary was put into the data by a fair coin of its own, and got a score from what the run
    released, such as minus its loss: a greater score says "inside".  The best scores are guessed.
    The bounds hold for any training and any scores that do not depend on the coins otherwise.

    Parameters
    ----------
    inside : array or path
        Scores of the canaries that were in the data, finite; or a .npy file of them.
    outside : array or path
        Scores of those that were not.
    claim : Plan, Budget, float or (float, float), optional
        What is claimed of a canary that is added or removed: a loss, a plan, epsilon, or (epsilon,
        delta).  Pure and approximate claims are tested at their delta, others by their whole curve.
    delta : float, optional
        The delta in [0, 1) of the bound; by default the claim's, and 1e-5 if it has none.
    confidence : float, optional
        Probability in (0, 1) with which the bound holds and a true claim survives.
    split : {"coins", "fixed"}, optional
        "fixed" if the number inside was fixed, and which ones drawn at random.  Then the coin is
        which of two canaries is inside, and a claim is one of replaced records.
    rng : int, Generator or None, optional
        Puts equal scores in random order, and matches canaries of a fixed split.  The error rate
        counts on these draws, so a seed is only for repeating an audit (`seed` of the finding).

    Returns
    -------
    OneRunFinding
        The verdict and a lower bound on epsilon, rounded down.

    Raises
    ------
    ParameterError
        If scores are no finite numbers or fewer than 10, or if fair coins would not have put so
        many canaries inside.

    References
    ----------
    Steinke, Nasr & Jagielski (2023) and Mahloujifar, Melis & Chaudhuri (2024), with smaller terms
    for delta and for the choice of guesses.

    Examples
    --------
    >>> import numpy as np
    >>> from accountant import ApproxLoss, GaussianLoss
    >>> from audits import audit_scores
    >>> rng = np.random.default_rng(0)
    >>> inside, outside = rng.normal(2, 1, 5010), rng.normal(0, 1, 4990)
    >>> finding = audit_scores(inside, outside, ApproxLoss(3.0, 1e-6))
    >>> finding.outcome.name, finding.right, finding.guesses
    ('FALSIFIED', 1021, 1024)
    >>> audit_scores(inside, outside, GaussianLoss(2.0)).outcome.name
    'SURVIVED'
    """
    start = time.perf_counter()
    scores = checked_scores("inside", inside), checked_scores("outside", outside)
    claimed = checked_plan(claim)
    level = CONFIDENCE.check("confidence", confidence)
    tested_delta = _tested_delta(claimed, delta)
    paired = SPLITS.check("split", split) == "fixed"
    seed, source = seed_and_generator(rng)
    _check_sizes(scores[0].size, scores[1].size, paired=paired)
    if paired:
        ranked = ranked_pairs(*scores, source)
    else:
        mixed = source.permutation(scores[0].size + scores[1].size)
        ranked = ranked_coins(np.concatenate(scores)[mixed], mixed < scores[0].size)
    finding = _audited(Evidence(ranked, 1 - level, one_way=not paired), claimed, tested_delta, seed)
    return replace(finding, seconds=time.perf_counter() - start)


def audit_in_order(
    scores: Array, is_in: NDArray[np.bool_], claim: Any, delta: Any, confidence: Any
) -> OneRunFinding:
    """Audit the scores of coins, ``is_in`` saying how each fell; equal scores keep their order.

    Nothing is drawn at random.  The order must not depend on the coins.
    """
    start = time.perf_counter()
    claimed, level = checked_plan(claim), CONFIDENCE.check("confidence", confidence)
    tested_delta = _tested_delta(claimed, delta)
    evidence = Evidence(ranked_coins(scores, is_in), 1 - level, one_way=True)
    finding = _audited(evidence, claimed, tested_delta, None)
    return replace(finding, seconds=time.perf_counter() - start)


def checked_scores(argument: str, scores: Any) -> Array:
    """Scores as finite floats along one axis, also from a .npy file."""
    if isinstance(scores, (str, Path)):
        scores = load_numbers(argument, scores)
    try:
        raw = np.asarray(scores)
    except ValueError:  # ragged
        raw = np.empty(0, dtype=object)
    if raw.dtype.kind not in "iuf" or raw.ndim != 1 or raw.size == 0:
        shown = f"an array of {raw.dtype}, shape {raw.shape}"
        raise ParameterError(argument, shown, "real numbers along one axis: one score a canary")
    checked: Array = raw.astype(float)
    if not np.isfinite(checked).all():
        wrong = int(np.count_nonzero(~np.isfinite(checked)))
        raise ParameterError(
            argument,
            f"{wrong} scores that are NaN or infinite",
            "finite: put a number in their place that does not depend on the coins",
        )
    return checked


def load_numbers(argument: str, path: str | Path) -> Any:
    """The array in a .npy file; one of Python objects is refused: reading it might run code."""
    try:
        return np.load(path, allow_pickle=False)
    except OSError as error:
        why = error.strerror or "not a .npy file"
        raise ParameterError(argument, str(path), f"a .npy file to read ({why})") from None
    except (ValueError, EOFError, SyntaxError, MemoryError):
        raise ParameterError(argument, str(path), "a .npy file of numbers") from None


def checked_plan(claim: Any) -> Plan | None:
    """The claim as a plan or a loss; None stays None."""
    return claim if isinstance(claim, Plan) else checked_claim(claim)


def _tested_delta(claim: Plan | None, delta: float | None) -> float:
    """The delta of the bound: the caller's own, else the claim's; 1e-5 for a plan."""
    if delta is not None:
        return DELTA.check("delta", delta)
    return claimed_delta(claim) if claim is None or isinstance(claim, Loss) else 1e-5


def _check_sizes(inside: int, outside: int, *, paired: bool) -> None:
    """Refuse too few canaries, and numbers in and out that are unlikely under fair coins."""
    from scipy.special import bdtr

    coins = min(inside, outside) if paired else inside + outside
    if coins < LEAST_COINS:
        counted = "pairs of one inside and one outside" if paired else "canaries"
        raise ParameterError(
            "inside, outside", (inside, outside), f"scores of at least {LEAST_COINS} {counted}"
        )
    if not paired and 2 * float(bdtr(min(inside, outside), coins, 0.5)) < UNLIKELY:
        raise ParameterError(
            "inside, outside",
            (inside, outside),
            "numbers that fair coins give: "
            "each canary is inside by a coin of its own; split='fixed' is for fixed numbers",
        )


def _audited(
    evidence: Evidence, claim: Plan | None, delta: float, seed: int | None
) -> OneRunFinding:
    """The finding: the verdict, the lower bound, and the rule with the strongest evidence.

    A claim that is not refuted survives if right guesses of all coins would refute it; else the
    audit is inconclusive.
    """
    lower = evidence.epsilon_lower(delta)
    mu = evidence.mu_lower() if isinstance(claim, GaussianLoss) else None
    is_refuted = claim is not None and _refutes(evidence, claim, delta, lower, mu)
    # the evidence of as many coins if every guess was right, and its epsilon
    counts = np.arange(evidence.coins.coins + 1)
    all_right = RankedCoins(counts, counts, evidence.coins.coins // 2)
    perfect = Evidence(all_right, evidence.alpha, evidence.one_way)
    provable = perfect.epsilon_lower(delta)
    rule = _most_revealing(evidence, delta, lower)
    right = evidence.coins.right(rule)
    is_refutable = is_refuted or claim is None or _refutes(perfect, claim, delta, provable, None)
    unrefuted_outcome = Outcome.SURVIVED if is_refutable else Outcome.INCONCLUSIVE
    return OneRunFinding(
        outcome=Outcome.FALSIFIED if is_refuted else unrefuted_outcome,
        epsilon_lower=lower,
        delta=delta,
        coins=evidence.coins.coins,
        confidence=1 - evidence.alpha,
        witness=_witness(evidence, rule, right, provable),
        seconds=0.0,
        seed=seed,
        claim=claim,
        right=right,
        guesses=rule.guesses,
        provable=provable,
        mu_lower=mu,
    )


def _refutes(evidence: Evidence, claim: Plan, delta: float, lower: float, mu: float | None) -> bool:
    """Whether the evidence refutes the claim.

    A Gaussian claim is compared with the lower bound on mu, if it is given, and a claim of one
    epsilon at this delta with that on epsilon; all others are tested by their whole curve.
    """
    if isinstance(claim, GaussianLoss) and mu is not None:
        return mu > claim.mu
    if isinstance(claim, (PureLoss, ApproxLoss)) and claim.infinity == delta:
        return lower > claim.epsilon_at(delta)
    return evidence.refutes(claim)


@functools.lru_cache(maxsize=16)
def _most_revealing(evidence: Evidence, delta: float, lower: float) -> GuessRule:
    """The rule that bounds epsilon best when it is taken alone, at its share of the error."""
    rules = evidence.rules_at(max(lower, LEAST_EPSILON), delta)
    right, guesses, leaks, errors = np.array(
        [
            (
                evidence.coins.right(rule),
                rule.guesses,
                evidence.leaks(np.array(delta), both=rule.both),
                evidence.alpha * rule.share,
            )
            for rule in rules
        ]
    ).T
    bounds = furthest_that(
        lambda e: tail_of_right_guesses(right, guesses, e, leaks) <= errors,
        np.zeros(len(rules)),
        np.full(len(rules), MOST_EPSILON),
    )
    return rules[int(np.argmax(bounds))]


def _witness(evidence: Evidence, rule: GuessRule, right: int, provable: float) -> str:
    """Words that say what the scores show, and what this number of coins could have proved."""
    extremes = "most extreme" if rule.both else "highest"
    score_kind = "scores" if evidence.one_way else "differences of scores"
    allowed = "any epsilon" if math.isinf(provable) else f"epsilon {provable:.3g}"
    return (
        f"of the {rule.guesses:,} {extremes} {score_kind} {right:,} say rightly which canaries are "
        f"in the data; {evidence.coins.coins:,} coins could have proved {allowed} had all been "
        "right"
    )
