"""Audit of accuracy: a claim of privacy is refuted if an algorithm is too accurate for it.

A lower bound on the error of private algorithms comes with a hard family of distributions, one for
each of finitely many points.  In each run a point is drawn uniformly, then the data of n users from
its distribution; the algorithm's estimate is decoded to a point, which is the guess.

If the claim is true, the guess is right with probability at most s_max, whatever the algorithm.
With R right guesses in T independent runs the p-value is ``P(Bin(T, s_max) >= R)``, and the claim
is FALSIFIED where it is at most 1 - confidence.  No loss and no class of algorithms is assumed, and
no risk is estimated.

In the local model FALSIFIED refutes the claim together with its interaction model: every user
reports once, and delta is 0 if whole records are private.

References: Wang & Xu (2021); proofs: docs/proofs/decoding_records.md for private records,
docs/proofs/audits_by_coins.md for private labels.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal, final

from accountant.domains import DELTA, IntegerRange
from accountant.randomness import Rng
from audits.adapters.reduced_noise import NOISE_FACTOR, describe_factor, largest_falsified_factor
from audits.claims.arguments import CONFIDENCE, seed_and_generator
from audits.claims.findings import Outcome
from audits.minimax.information.theorem_domains import Interaction
from audits.utility.decoding import DecodableFamily, decoding_task


@final
@dataclass(frozen=True, slots=True)
class Decoded:
    """The result of an accuracy audit.

    Parameters
    ----------
    outcome : Outcome
        FALSIFIED if the claim is contradicted at ``confidence``.
    epsilon_lower : float
        Lower bound on the algorithm's epsilon at ``delta``, rounded down; it holds if the
        interaction model does.
    epsilon : float
        The claimed epsilon.
    delta : float
        The claimed delta.
    runs : int
        Number of runs.
    confidence : float
        Probability in (0, 1) with which the lower bound holds, at least.
    witness : str
        What was decoded, in words.
    seconds : float
        Duration of the audit.
    seed : int or None
        The seed that repeats the audit.
    right : int
        Number of runs whose point was decoded correctly.
    most_right : float
        s_max, the largest probability with which an algorithm with the claimed privacy decodes the
        point correctly, rounded up.
    p_value : float
        ``P(Bin(runs, most_right) >= right)``.
    noise : float
        The noise factor of the runs: additive noise was multiplied by it, the epsilon of a
        randomised response divided by it.  1 is the algorithm as it is, 0 is without noise.
    noise_factor : float, optional
        The largest noise factor below 1 at which a search falsified the claim; None if there was
        none, even at 0, or if no search ran.

    Examples
    --------
    >>> from audits import Decoded, audit_accuracy
    >>> from audits.minimax import SignedBasis
    >>> def least_squares(x, y, rng):
    ...     return x.T @ y / len(y)
    >>> found = audit_accuracy(least_squares, n=200, p=16, epsilon=0.1, runs=5, rng=0)
    >>> found.right, found.runs, round(found.most_right, 3)
    (5, 5, 0.072)
    """

    outcome: Outcome
    epsilon_lower: float
    epsilon: float
    delta: float
    runs: int
    confidence: float
    witness: str
    seconds: float
    seed: int | None
    right: int
    most_right: float
    p_value: float
    noise: float
    noise_factor: float | None = None


def audit_accuracy(
    algorithm: Any,
    n: int,
    p: int | None = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    *,
    family: DecodableFamily | None = None,
    private: Literal["records", "labels"] | None = None,
    interaction: Interaction = "sequential",
    separation: float = 1.0,
    runs: int = 20,
    confidence: float = 0.99,
    noise: float = 1.0,
    search: int = 0,
    rng: Rng = None,
) -> Decoded:
    """Run an algorithm on a lower bound's hard family, and test whether it is too accurate.

    A point of the family is drawn uniformly, then the data of n users; the estimate is decoded to a
    point.  Under the claim that point is right with at most a known probability, for any algorithm.

    Parameters
    ----------
    algorithm : object
        With ``plan`` and ``run``, or ``fit`` and then ``coef_``, or a function ``(x, y, rng)`` that
        returns the coefficients.
    n : int
        Number of users.
    p : int, optional
        Number of features, all signs; left out if a family is given.
    epsilon : float, optional
        The claimed epsilon, 0 to 300; None takes what the plan costs.
    delta : float, optional
        The claimed delta; 0 for local algorithms with private records.
    family : object, optional
        A hard family with ``most_right``, such as `SignMeans`, `PairedShares`, `SignCopies` or
        `FewVotes`, in place of the sparse regression with ``p`` features.
    private : {"records", "labels"}, optional
        "labels" takes the features as public; None asks the algorithm.
    interaction : {"none", "sequential"}, optional
        Whether users report at once, or one after another.
    separation : float, optional
        Size of the one coefficient that is not 0, in (0, 1]: the correlation of the label with its
        feature, up to the sign.  At 1 they are equal up to the sign.
    runs : int, optional
        Number of independent runs.
    confidence : float, optional
        Probability in (0, 1) with which a true claim survives, at least.
    noise : float, optional
        Noise factor in [0, 1], by which the algorithm's additive noise is multiplied, and the
        epsilon of its randomised responses divided; 1 audits it as it is.
    search : int, optional
        Number of tries, 0 to 60, in a search of the largest noise factor below 1 at which the claim
        is falsified.
    rng : int, numpy.random.Generator or None, optional
        Seed or generator.

    Returns
    -------
    Decoded
        The outcome, and a lower bound on epsilon, rounded down.

    Raises
    ------
    ParameterError
        If an argument is out of its range, or a local algorithm asks all users together or a user
        twice: the bound does not hold for those.

    References
    ----------
    Wang & Xu (2021), Theorems 1 and 2, for the families; ``docs/proofs/decoding_records.md``.

    Examples
    --------
    >>> from audits import audit_accuracy
    >>> def least_squares(x, y, rng):
    ...     return x.T @ y / len(y)
    >>> found = audit_accuracy(least_squares, n=200, p=16, epsilon=0.1, runs=5, rng=0)
    >>> found.outcome.name, found.right, round(found.epsilon_lower, 2)
    ('FALSIFIED', 5, 0.48)
    """
    start = time.perf_counter()
    seed, source = seed_and_generator(rng)
    n, runs = IntegerRange(1).check("n", n), IntegerRange(1).check("runs", runs)
    confidence = CONFIDENCE.check("confidence", confidence)
    tries = IntegerRange(0, 60).check("search", search)
    delta, noise = DELTA.check("delta", delta), NOISE_FACTOR.check("noise", noise)
    task = decoding_task(algorithm, n, p, delta, family, private, interaction, separation)
    claimed = task.claimed_epsilon(epsilon)
    most_right = task.bound(claimed)
    audit_stream, search_stream = source.spawn(2)
    right, p_value = task.decode_runs(runs, noise, most_right, audit_stream)
    limits = f"at most {most_right:.4g}, so as many with probability at most {p_value:.2g}"
    witness = (
        f"{task.adapter.name} (noise times {noise:g}) on {task.description}: decoded {right} of "
        f"{runs}; a ({claimed:.6g}, {delta:g})-private algorithm ({task.model}) decodes each with "
        f"probability {limits}"
    )
    noise_factor = None
    if tries:
        noise_factor = largest_falsified_factor(
            lambda factor: (
                task.decode_runs(runs, factor, most_right, search_stream.spawn(1)[0])[1]
                <= 1 - confidence
            ),
            tries,
        )
        witness += f"; {describe_factor(noise_factor)}"
    return Decoded(
        outcome=Outcome.FALSIFIED if p_value <= 1 - confidence else Outcome.SURVIVED,
        epsilon_lower=task.epsilon_lower(right, runs, 1 - confidence),
        epsilon=claimed,
        delta=delta,
        runs=runs,
        confidence=confidence,
        witness=witness,
        seconds=time.perf_counter() - start,
        seed=seed,
        right=right,
        most_right=most_right,
        p_value=p_value,
        noise=noise,
        noise_factor=noise_factor,
    )
