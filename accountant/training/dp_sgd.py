"""`dp_sgd`: from the facts of a training run to a statement of what it costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from accountant.accountants.budget import Budget
from accountant.accountants.tight import Tight
from accountant.domains import POSITIVE, POSITIVE_DELTA
from accountant.errors import ParameterError
from accountant.planning.calibration import calibrate, calibrate_near
from accountant.planning.capacity import CAPACITY_CAP, remaining_capacity
from accountant.plans.adjacency import SAMPLING_RELATIONS, Adjacency, check_relation
from accountant.plans.plan import Plan
from accountant.training.loaders import SAMPLING
from accountant.training.rows import COARSE
from accountant.training.run import TrainingRun, default_delta
from accountant.training.schemes import FEWER_BATCHES, REGROUPED, UNBOUNDED, record_scheme
from accountant.training.statement import TrainingStatement, statement_of

# For each note of a scheme without a bound: why no noise meets a target epsilon.
NO_NOISE = {
    FEWER_BATCHES: "a record less takes a batch from every pass, which the number of steps tells; "
    "turn drop_last over, or take another batch size",
    REGROUPED: "a record less changes in which microbatches others are",
}


def dp_sgd(
    examples: int,
    batch: int,
    epochs: float | None = None,
    noise: float | None = None,
    delta: float | None = None,
    loader: str = "poisson",
    *,
    steps: int | None = None,
    epsilon: float | None = None,
    relation: str = "add-remove",
    microbatching: bool = False,
    examples_per_user: int | None = None,
    drop_last: bool = False,
    max_batch: int | None = None,
    rate: float | None = None,
    on_row: Callable[[], None] = lambda: None,
) -> TrainingStatement:
    """State what a run of DP-SGD costs, under the loader that it had and under others.

    In each step gradients are clipped to a norm, one a record, and Gaussian noise of ``noise``
    times that norm is added to their sum.

    Parameters
    ----------
    examples : int
        Records of the training set, at least 1.
    batch : int
        Records of a batch; of a loader that draws each record by a coin, the expected number.
    epochs : float, optional
        How often the data were gone through; need not be whole.  Loaders that draw every batch
        anew take ``examples / batch`` steps an epoch.
    noise : float, optional
        The noise multiplier: deviation of the noise over the clipping norm.
    delta : float, optional
        In (0, 1); by default ``examples ** -1.1``, rounded down to one digit.
    loader : str
        "poisson", "truncated_poisson", "fixed_size", "random_allocation", "shuffled" or
        "fixed_order": how batches were made.
    steps : int, optional
        Steps in all, instead of epochs.
    epsilon : float, optional
        A target instead of ``noise``, which is then found; or with it and instead of epochs and
        steps: then the most steps, or whole passes, are found.
    relation : str
        "add-remove", "zero-out" or "replace-one": how neighbours differ in the epsilon that is
        stated first.  Of passes that leave out no records the first costs most: without a record
        the others are cut into other batches; "zero-out" keeps its place, blank.
    microbatching : bool
        Whether the mean of several gradients is clipped, instead of each gradient.
    examples_per_user : int, optional
        The most records that one user contributes, to state what a user pays too.
    drop_last : bool
        Whether a pass leaves out its last batch where that would be short.
    max_batch : int, optional
        What "truncated_poisson" cuts a batch to; by default ``batch``.
    rate : float, optional
        The sampling rate, where it is not ``batch / examples``.
    on_row : callable, optional
        Called after each row of the table.

    Returns
    -------
    TrainingStatement
        With `epsilon`, an upper bound, and a table of all loaders, both ends of each.

    Raises
    ------
    ParameterError
        If an argument is out of its range, or missing.

    References
    ----------
    Ponomareva et al. (2023), "How to DP-fy ML", section 5.3, for what a statement should say.

    Examples
    --------
    >>> from accountant import dp_sgd
    >>> statement = dp_sgd(examples=200, batch=100, epochs=1, noise=2.0, loader="shuffled")
    >>> poisson = statement.row("poisson").upper
    >>> print(f"{statement.epsilon:.3f}; if it were Poisson: {poisson:.3f}")
    2.489; if it were Poisson: 1.004
    >>> print(f"{statement.row(relation='zero-out').upper:.3f} if the record is blanked")
    1.234 if the record is blanked
    """
    run = TrainingRun(
        examples, batch, epochs, steps, loader, drop_last, max_batch, rate, microbatching,
        examples_per_user,
    )  # fmt: skip
    adjacency = check_relation("relation", relation, SAMPLING_RELATIONS)
    has_delta = delta is not None
    at = POSITIVE_DELTA.check("delta", delta) if has_delta else default_delta(run.examples)
    run, noise_multiplier, solved = _with_unknown(run, noise, epsilon, adjacency, at)
    target = None if epsilon is None else float(epsilon)
    statement = statement_of(run, noise_multiplier, at, adjacency, on_row)
    return replace(statement, found=solved, target=target, own_delta=not has_delta)


def _with_unknown(
    run: TrainingRun, noise: object, epsilon: object, relation: Adjacency, delta: float
) -> tuple[TrainingRun, float, str]:
    """Return the run, its noise, and what was calibrated: "noise", "epochs" or nothing, ""."""
    has_length = run.epochs is not None or run.steps is not None
    if noise is None and epsilon is None:
        raise ParameterError("noise", noise, "given, or epsilon as a target")
    noise_multiplier = None if noise is None else POSITIVE.check("noise", noise)
    if epsilon is None:
        if not has_length:
            raise ParameterError("epochs", None, "given, or steps, or epsilon as a target")
        return run, float(noise_multiplier or 0.0), ""
    target = POSITIVE.check("epsilon", epsilon)
    scheme = record_scheme(run, 1.0, run.loader, relation, microbatching=run.microbatching)
    if scheme.note in UNBOUNDED:
        allowed = f"another than {relation} for this loader: {NO_NOISE[scheme.note]}"
        raise ParameterError("relation", str(relation), allowed)
    if noise_multiplier is None and has_length:
        return run, least_noise(run, relation, target, delta), "noise"
    if noise_multiplier is None or has_length:
        allowed = "given beside one of noise and epochs (or steps): the other one is found"
        raise ParameterError("epsilon", epsilon, allowed)
    return longest_run(run, noise_multiplier, relation, target, delta), noise_multiplier, "epochs"


def least_noise(run: TrainingRun, relation: Adjacency, epsilon: float, delta: float) -> float:
    """Return the least noise with which a record's epsilon is within the target."""

    def plans(noise: float) -> tuple[Plan, ...]:
        micro = run.microbatching
        return record_scheme(run, noise, run.loader, relation, microbatching=micro).above

    def least_of(plan_index: int) -> float:
        def plan_of(noise: float) -> Plan:
            return plans(noise)[plan_index]

        # narrow intervals take long, so a coarse answer comes first
        coarse_noise = calibrate(plan_of, epsilon=epsilon, delta=delta, accountant=Tight(COARSE))
        return calibrate_near(plan_of, coarse_noise, epsilon, delta)

    # each plan is a bound by itself, so the one that needs the least noise decides
    return min(least_of(plan_index) for plan_index in range(len(plans(1.0))))


def longest_run(
    run: TrainingRun, noise: float, relation: Adjacency, epsilon: float, delta: float
) -> TrainingRun:
    """Return the run with the most steps, or whole passes, whose epsilon is within the target."""
    draws = run.loader in SAMPLING
    shortest_run = replace(run, steps=1 if draws else None, epochs=None if draws else 1.0)
    scheme = record_scheme(
        shortest_run, noise, run.loader, relation, microbatching=run.microbatching
    )
    budget = Budget(epsilon, delta)
    fitting = [part for part in scheme.above if budget.admits(part)]
    if not fitting:
        what = "one step" if draws else "one pass"
        raise ParameterError("epsilon", epsilon, f"more than {what} costs at this noise")
    length = max(1 + remaining_capacity(part, part, budget) for part in fitting)
    if length > CAPACITY_CAP:
        allowed = f"one that {CAPACITY_CAP:,} steps or passes exceed: give epochs or steps"
        raise ParameterError("epsilon", epsilon, allowed)
    if draws:
        return replace(shortest_run, steps=length)
    return replace(shortest_run, epochs=float(length))
