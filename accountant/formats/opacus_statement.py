"""The statement of a training run by Opacus, under the loader that it really had."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from accountant.errors import ParameterError
from accountant.formats.loader_differences import SAME, differences, refuse_differences
from accountant.formats.loader_facts import WORDS, LoaderFacts
from accountant.formats.opacus_history import facts_beside
from accountant.formats.opacus_steps import OpacusSteps, opacus_steps
from accountant.training.dp_sgd import dp_sgd
from accountant.training.statement import TrainingStatement

# The ways of drawing records whose cost a statement can say; then what a refused history should be.
STATED = ("poisson", "fixed_size", "shuffled", "fixed_order")
NO_STEPS = "of at least one step: read it after training"
ADDED = (
    "of one Poisson sample a step: those of several were added before each; the cost of that is "
    "from_opacus(history, loader)"
)
SCHEDULE = "of one noise and one rate; the plan of a schedule is from_opacus(history, loader)"


def statement_of_opacus(
    history: Any,
    loader: Any = None,
    delta: float | None = None,
    *,
    epochs: int | None = None,
    batch: int | None = None,
    relation: str = "add-remove",
    examples_per_user: int | None = None,
    on_row: Callable[[], None] = lambda: None,
) -> TrainingStatement:
    """State what a run by Opacus costs under the loader that it had, and under others.

    The epsilon that is stated first is that of the loader, not of the Poisson samples that Opacus
    counts: a loader that shuffles gets the row of shuffled passes.

    Parameters
    ----------
    history : object
        A history in any form that `from_opacus` reads, of one noise and one rate.
    loader : torch.utils.data.DataLoader, optional
        The loader that was trained on; may be left out where the history is an `opacus_record` with
        one.
    delta : float, optional
        In (0, 1); by default that of `dp_sgd`.
    epochs : int, optional
        Passes over the loader, to check the number of steps.
    batch : int, optional
        The batch that was meant, to check the loader's.
    relation : str
        "add-remove", "zero-out" or "replace-one".
    examples_per_user : int, optional
        The most records that one user contributes.
    on_row : callable, optional
        Called after each row of the table.

    Returns
    -------
    TrainingStatement
        With `epsilon`, an upper bound, and a table of all loaders.

    Raises
    ------
    ParameterError
        If the history is not one, differs from the loader, or no epsilon is known for its draws.

    Examples
    --------
    >>> from accountant import statement_of_opacus
    >>> shuffled = dict(order="shuffled", sampler="RandomSampler", records=100, batches=2,
    ...                 batch=50, rate=None, drop_last=False, dataset=100)
    >>> stated = statement_of_opacus([(4.0, 0.5, 2)], shuffled, delta=1e-5)
    >>> stated.run.loader, round(stated.epsilon, 3), round(stated.row("poisson").upper, 3)
    ('shuffled', 2.258, 0.743)
    >>> round(stated.row(relation="zero-out").upper, 3)
    0.926
    """
    steps, facts = opacus_steps(history), facts_beside(history, loader)
    if facts is None:
        raise ParameterError(
            "loader", None, "the one that was trained on, given here or to opacus_record"
        )
    if facts.order not in STATED:
        allowed = f"one with an epsilon that is known, not of {WORDS[facts.order]}"
        raise ParameterError("loader", str(facts), allowed)
    run_steps = _only_steps(steps, facts)
    problems = differences(steps, facts, epochs, batch, any_order=True)
    added = 1
    if facts.rate is None:
        added, batch_problems = _added_batches(run_steps, facts)
        problems += batch_problems
    refuse_differences(steps, facts, problems)
    return dp_sgd(
        examples=facts.records,
        batch=max(1, min(facts.records, round(facts.drawn) * added)),
        noise=run_steps.noise,
        delta=delta,
        loader=facts.order,
        steps=run_steps.steps,
        relation=relation,
        rate=facts.rate,
        drop_last=facts.drop_last,
        examples_per_user=examples_per_user,
        on_row=on_row,
    )


def _only_steps(steps: list[OpacusSteps], facts: LoaderFacts) -> OpacusSteps:
    """Return all steps of a history as one entry, in Opacus' own form."""
    kinds = {(entry.noise, entry.rate, entry.added) for entry in steps if entry.steps}
    noise, rate, added = next(iter(kinds), (0.0, 0.0, 1))
    shown = [(entry.noise, entry.rate, entry.steps) for entry in steps]
    if not kinds:
        raise ParameterError("history", shown, NO_STEPS)
    if len(kinds) > 1:
        raise ParameterError("history", shown, SCHEDULE)
    if added > 1 and facts.rate is not None:
        raise ParameterError("history", [(*shown[0], added)], ADDED)
    return OpacusSteps(noise, added * rate, sum(entry.steps for entry in steps))


def _added_batches(steps: OpacusSteps, facts: LoaderFacts) -> tuple[int, list[str]]:
    """Return how many batches were added for a step, and what is wrong with that, in words.

    Opacus writes their number over the batches of an epoch as the rate.
    """
    added = max(1, round(steps.rate * facts.batches))
    if not math.isclose(steps.rate * facts.batches, added, rel_tol=SAME):
        return added, [
            f"the history's rate is {steps.rate:.6g} and that of one of {facts.batches:,} batches "
            f"{1 / facts.batches:.6g}: pass the loader and the history of one run"
        ]
    if facts.batches % added and added > 1:
        return added, [
            f"{added:,} batches were added for a step, which do not divide the {facts.batches:,} "
            "of an epoch: a record can be in one step twice; train on batches that do"
        ]
    return added, []
