"""Differences between the batches that a history of Opacus claims and those that a loader draws.

A history is a list of (noise, sampling rate, steps), and claims Poisson samples of these rates.  A
difference is a sentence that says what is wrong and what to do about it.
"""

from __future__ import annotations

import math

from accountant.domains import RECORDS
from accountant.errors import ParameterError
from accountant.formats.loader_facts import WORDS, LoaderFacts
from accountant.formats.opacus_steps import OpacusSteps

SAME = 1e-9  # relative difference of two rates that count as the same
EMPTY = 1e-12  # an empty batch in a run is neglected up to this probability


def refuse_differences(steps: list[OpacusSteps], facts: LoaderFacts, problems: list[str]) -> None:
    """Raise `ParameterError` with all differences between a history and a loader, if any."""
    if problems:
        numbered = "; ".join(f"({i}) {problem}" for i, problem in enumerate(problems, 1))
        why = numbered if len(problems) > 1 else problems[0]
        allowed = f"what the loader draws ({facts}), and differs: {why}"
        raise ParameterError("history", [(s.noise, s.rate, s.steps) for s in steps], allowed)


def differences(
    steps: list[OpacusSteps],
    facts: LoaderFacts,
    epochs: int | None,
    batch: int | None,
    *,
    any_order: bool = False,
) -> list[str]:
    """Return the differences between a history and a loader, in words and with the remedy.

    ``epochs`` and ``batch`` are what the user meant to run, None if not said.  With ``any_order``
    it is no difference that the loader draws no Poisson samples: then its own cost is stated.
    """
    count = sum(entry.steps * entry.added for entry in steps)  # number of batches
    rates = sorted({entry.rate for entry in steps if entry.steps})
    problems = []
    if facts.rate is None:
        problems += [] if any_order else [_no_poisson(facts, rates)]
    else:
        problems += [_other_rate(rate, facts) for rate in rates if not _is_rate_of(rate, facts)]
        problems += _left_out(facts, count)
    if facts.order == "poisson" and facts.records != facts.dataset:
        problems.append(
            f"the sampler draws from {facts.records:,} records and the data set has "
            f"{facts.dataset:,}: make the loader anew for this data set"
        )
    if epochs is not None:
        problems += _other_steps(count, facts, RECORDS.check("epochs", epochs))
    meant = facts.batch if batch is None and facts.order == "poisson" else batch
    if meant is not None:
        problems += _other_batch(facts, RECORDS.check("batch", meant))
    return problems


def _is_rate_of(claimed: float, facts: LoaderFacts) -> bool:
    """Return whether a rate is the sampler's, or 1 over its batches, which Opacus takes.

    It counts int(1 / rate) batches; that is one too few for some rates 1/n in floats, and then the
    history claims 1 / (n - 1): a little too much.
    """
    rate = facts.rate or 0.0
    is_of_batches = facts.batches == int(1 / rate) and math.isclose(
        claimed * facts.batches, 1, rel_tol=SAME
    )
    return math.isclose(claimed, rate, rel_tol=SAME) or (is_of_batches and claimed > rate)


def _no_poisson(facts: LoaderFacts, rates: list[float]) -> str:
    """Return what is wrong with a loader that draws no Poisson samples."""
    claimed = ", ".join(f"{rate:.6g}" for rate in rates)
    message = f"its batches are {WORDS[facts.order]}, and the history counts Poisson samples"
    message += f" of rate {claimed}" * bool(rates)
    drawn = facts.drawn / facts.dataset
    # 1 over the batches of an epoch, which rounds batch / records up or down
    if any(abs(rate - drawn) > max(rate, drawn) / max(facts.batches, 2) for rate in rates):
        message += f", while a batch holds {drawn:.6g} of the {facts.dataset:,} records"
    remedy = "train with poisson_sampling=True and pass the loader that make_private returned"
    if facts.order in {"weighted", "repeated", "unknown"}:
        return f"{message}: no epsilon is known for such draws; {remedy}"
    return f"{message}: {remedy}, or take the cost of this loader from statement_of_opacus"


def _other_rate(claimed: float, facts: LoaderFacts) -> str:
    """Return what is wrong with a claimed rate, and where it may come from."""
    q = facts.rate or 1.0
    message = f"the history's rate is {claimed:.6g} and the loader's {q:.6g}"
    times = round(claimed / q)
    if facts.physical is not None and math.isclose(
        claimed, facts.physical / facts.records, rel_tol=0.01
    ):
        return (
            f"{message}: it is that of parts of a batch; count whole batches, at the loader's rate"
        )
    if times > 1 and math.isclose(claimed, times * q, rel_tol=SAME):
        return (
            f"{message}: gradients of {times} batches were added before a step; a record can be in "
            "several of them, which the history leaves out; split batches by BatchMemoryManager"
        )
    return (
        f"{message}: a step that draws {claimed * facts.records:,.6g} records on average was "
        f"counted and {q * facts.records:,.6g} are drawn; pass the loader and the history of one "
        "run"
    )


def _left_out(facts: LoaderFacts, count: int) -> list[str]:
    """Return what is wrong with a Poisson loader that leaves out a batch."""
    problems = []
    if facts.drop_last:
        problems.append("drop_last leaves out a batch by its size: set drop_last=False")
    if facts.replicas > 1:
        # A process without a record in a step gives no batch, so its later batches come too early.
        # This bounds the probability that it happens: steps times processes times (1 - rate) to the
        # number of records of a process.
        chance = (
            count * facts.replicas * (1 - (facts.rate or 1.0)) ** (facts.records // facts.replicas)
        )
        if chance > EMPTY:
            problems.append(
                f"a process leaves out its empty batches, with probability up to {chance:.1g} in "
                "this run: take larger batches or fewer processes"
            )
    return problems


def _other_steps(count: int, facts: LoaderFacts, epochs: int) -> list[str]:
    """Return what is wrong with the number of steps."""
    steps = epochs * facts.batches
    if count == steps:
        return []
    message = f"the history has {count:,} steps, and {epochs:,} epochs of the loader {steps:,}"
    # If a batch is cut into parts of ``physical`` records, an epoch has about this many parts.
    parts = facts.physical and epochs * math.ceil(facts.batches * facts.drawn / facts.physical)
    if count == parts:
        return [f"{message}: parts of batches were counted as steps; count whole batches"]
    batches_per_step = steps // count if count else 0
    if batches_per_step > 1 and steps // batches_per_step == count:
        return [
            f"{message}: one step was taken for {batches_per_step} batches, whose gradients were "
            "added; split batches by BatchMemoryManager instead"
        ]
    return [f"{message}: pass the history of all epochs, and of no others"]


def _other_batch(facts: LoaderFacts, batch: int) -> list[str]:
    """Return what is wrong with the size of a batch."""
    drawn = facts.drawn
    # Opacus draws at the rate 1 / batches, and the number of batches is records / batch, rounded up
    # or down.  So the records drawn on average are between these two.
    batch_counts = -(-facts.records // batch), facts.records // batch
    low, high = (facts.records / max(1, batches) for batches in batch_counts)
    if min(low, batch) * (1 - SAME) <= drawn <= max(high, batch) * (1 + SAME):
        return []
    return [
        f"a batch of {batch:,} was meant, and the loader draws {drawn:,.6g} records on average: "
        "Opacus takes the rate 1 / len(loader), so give make_private a loader over all records, "
        "without a sampler of its own"
    ]
