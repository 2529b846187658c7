"""Laws of algorithms: what replay, privacy losses and small enumerations say of them.

A `Run` is an algorithm on two neighbouring data sets; every law says where it fails, "" where it
holds.  The tests of the algorithms' own rooms ask the same of the honest ones in many settings.
"""

import dataclasses
import itertools
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import softmax
from sklearn.base import clone

from accountant import Budget, Loss, Parallel, PrivateValueError
from accountant.ledger.interfaces import drawing_mechanism
from algorithms.label_privacy.gradient_span import GradientSpan
from algorithms.label_privacy.label_randomizers import randomizer_of
from algorithms.label_privacy.report_decoders import SupportSetDecoder
from algorithms.voting.peeling import VOTE_SENSITIVITY, VoteCounter
from algorithms.voting.vote_collection import pack_vote
from audits import privacy_losses, replay
from audits.algorithm_runs.loss_profile import audit_algorithm
from audits.algorithm_runs.recording import RecordingLedger
from mechanisms import HemisphereL2, LazyExponential

CONFIDENCE = 1 - 1e-6


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
    """An algorithm, its data, a neighbour of them, and what it claims to cost."""

    algorithm: Any
    data: Any
    neighbour: Any
    public: Any = None
    claim: Loss | float = 1.0
    runs: int = 60


def losses_violation(run: Run, tolerance=1e-9) -> str:
    """A privacy loss beyond a pure claim."""
    losses = privacy_losses(
        run.algorithm, run.data, run.neighbour, run.runs, public=run.public, rng=1
    )
    greatest = np.abs(losses).max()
    return "" if greatest <= run.claim + tolerance else f"a loss of {greatest}, claimed {run.claim}"


def leak_violation(run: Run) -> str:
    """A result that depends on the data past the gate."""
    for seed in (2, 3):  # a leak of what is not always selected shows in some runs only
        found = replay(run.algorithm, run.data, run.neighbour, public=run.public, rng=seed)
        if not found.leak_free:
            return "the result changed"
    return ""


def plan_violation(run: Run) -> str:
    """Choices that depend on the data."""
    found = replay(run.algorithm, run.data, run.neighbour, public=run.public, rng=1)
    return "" if found.on_plan else "other releases were asked for"


def search_violation(run: Run) -> str:
    """A search that does not replay: every gate hands out what it did on other data."""
    found = replay(clone(run.algorithm), run.data, run.neighbour, rng=1)
    return "" if found.data_independent else found.witness


def audit_violation(run: Run) -> str:
    """What refutes the claim when the whole algorithm is audited."""
    found = audit_algorithm(
        run.algorithm, run.data, run.neighbour, run.claim, 60, np.random.default_rng(2),
        public=run.public,
    )  # fmt: skip
    return found.refutation(CONFIDENCE)


def budget_violation(run: Run) -> str:
    """A plan beyond its budget."""
    plan = run.algorithm.plan(run.public.shape)
    return "" if Budget(run.claim).admits(plan) else "the plan costs more than the budget"


def sensitivity_violation(run: Run, tolerance=1e-9) -> str:
    """A record that moves a value by more than is declared, or none that nearly does.

    The value is the first one of a run; of a sampled release, on a sample that holds all records.
    """
    moved, declared = [], 0.0
    for data in (run.data, run.neighbour):
        ledger = RecordingLedger(data, run.algorithm.plan(data[0].shape), 0, None)
        ledger._sample = lambda sampler: np.arange(60)
        run.algorithm.run(ledger)
        moved.append(ledger.values[0])
        declared = drawing_mechanism(ledger.transcript[0].mechanism).sensitivity
    found = float(np.linalg.norm(moved[0] - moved[1]))
    if found > declared * (1 + tolerance):
        return f"a record moves the value by {found}, declared is {declared}"
    return "" if found >= 0.99 * declared else f"{declared} is declared, {found} is seen"


def blocks_violation(ledger) -> str:
    """Blocks of users whose noise is the same."""
    data = (np.ones((60, 2)), np.ones(60))
    plan = Parallel([HemisphereL2(2, 1.0, 0.7)] * 6)
    blocks = [slice(at, at + 10, 1) for at in range(0, 60, 10)]
    gate = ledger(data, plan, rng=3)
    reports = gate.release_blocks(plan.parts[0], lambda rows: rows[0] / 2, blocks)
    distinct = len({np.abs(block[0, 0]) for block in reports})
    return "" if distinct == 6 else f"{distinct} kinds of noise in 6 blocks"


def votes_violation(collector) -> str:
    """A machine that moves a score by more than one vote may, by voting again."""

    def stability(second):
        opened = collector(3)
        for machine in range(3):
            opened.receive(machine, pack_vote([1, 0]))
        for _ in range(second):
            opened.receive(0, pack_vote([1, 1]))
        return VoteCounter().stability(opened.read_votes()[0])

    moved = np.abs(stability(0) - stability(5)).max()
    return "" if moved <= VOTE_SENSITIVITY else f"one machine moves a score by {moved}"


def snapshot_after(query, rounds):
    """The scores of sparse data after so many rounds."""
    x = sparse.random(40, 20, 0.1, "csr", rng=np.random.default_rng(0))
    rng = np.random.default_rng(1)
    for _ in range(rounds):
        query((x, np.ones(40)))
        query.move(int(rng.integers(20)), 3.0 * rng.choice([-1.0, 1.0]))
    return query((x, np.ones(40)))


def selection_violation(query, tolerance=0.05) -> str:
    """A total variation between draws of a vertex and the law of its scores."""
    look = snapshot_after(query, 12)
    draws = LazyExponential(0.1).release(look, 1, 5000)
    law = softmax(look.scores() / 0.1)
    gap = np.abs(np.bincount(draws, minlength=40) / 5000 - law).sum() / 2
    return "" if gap < tolerance else f"total variation of {gap}"


def score_bound_violation(query) -> str:
    """A score above the bound that was stated for it; noticed before anything is released."""
    look = snapshot_after(query, 5)
    try:
        LazyExponential(1e-3).release(look, 0, 200)
    except PrivateValueError as error:
        return str(error)
    return ""


def coefficient_violation(decoder, tolerance=1e-12) -> str:
    """A bias of the coefficients of a label, over all reports of unary encoding."""
    reports = np.array(list(itertools.product((0, 1), repeat=4)))
    masses = np.exp(decoder.mechanism.log_density(reports, np.full(16, 2), each=True))
    bias = np.abs(masses @ decoder.coefficients(reports) - np.eye(4)[2]).max()
    return "" if bias < tolerance else f"a bias of {bias}"


def rotated_violation(decoder, tolerance=0.08) -> str:
    """A bias of the coefficients of a gradient, over 200,000 reports of it."""
    span = GradientSpan.regular_simplex(4)
    reports = decoder.mechanism.release(span.label_corners(np.full(200_000, 1)), 1)
    found = decoder.coefficients(reports)
    # Hoeffding: each coefficient is at most 6 in size, so .06 has a chance below 1e-6 (x 4)
    if not np.abs(found).max() < 6:
        return f"a coefficient of {np.abs(found).max()}"
    bias = np.abs(found.mean(axis=0) - np.eye(4)[1]).max()
    return "" if bias < tolerance else f"a bias of {bias}"


def second_moment_violation(stated, tolerance=1e-12) -> str:
    """A second moment below that of four orthogonal gradients under unary encoding."""
    decoder = SupportSetDecoder(randomizer_of("unary", 4, 1.0))
    exact = decoder.second_moments(np.eye(4)).max()
    return "" if exact <= stated() * (1 + tolerance) else f"{stated()}, found {exact}"
