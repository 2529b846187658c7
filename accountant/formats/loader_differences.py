"""Where a history of Opacus claims other batches than a loader draws, in words, with the remedy."""

from __future__ import annotations

import math

from accountant.domains import RECORDS
from accountant.errors import ParameterError
from accountant.formats.loader_facts import WORDS, LoaderFacts
from accountant.formats.opacus_steps import OpacusSteps

SAME = 1e-9  # two rates that are computed from the same counts
EMPTY = 1e-12  # the chance of an empty batch that may be left out of a run


def refuse_differences(steps: list[OpacusSteps], facts: LoaderFacts, found: list[str]) -> None:
    """Raise `ParameterError` with all differences between a history and a loader, if any."""
    if found:
        numbered = "; ".join(f"({i}) {one}" for i, one in enumerate(found, 1))
        why = numbered if len(found) > 1 else found[0]
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
    """Return in words, with the remedy, where a history claims other batches than a loader's.

    ``any_order`` leaves out that they are no Poisson samples: the loader's own cost is stated then.
    """
    count = sum(one.steps * one.added for one in steps)  # of batches
    rates = sorted({one.rate for one in steps if one.steps})
    found = []
    if facts.rate is None:
        found += [] if any_order else [_no_poisson(facts, rates)]
    else:
        found += [_other_rate(rate, facts) for rate in rates if not _is_rate_of(rate, facts)]
        found += _left_out(facts, count)
    if facts.order == "poisson" and facts.records != facts.dataset:
        found.append(
            f"the sampler draws from {facts.records:,} records and the data set has "
            f"{facts.dataset:,}: make the loader anew for this data set"
        )
    if epochs is not None:
        found += _other_steps(count, facts, RECORDS.check("epochs", epochs))
    meant = facts.batch if batch is None and facts.order == "poisson" else batch
    if meant is not None:
        found += _other_batch(facts, RECORDS.check("batch", meant))
    return found


def _is_rate_of(claimed: float, facts: LoaderFacts) -> bool:
    """Return whether a rate is the sampler's, or 1 over its batches, which Opacus takes.

    It counts int(1 / rate) batches; that is one too few for some rates 1/n in floats, and then the
    history claims 1 / (n - 1): a little too much.
    """
    q = facts.rate or 0.0
    counted = facts.batches == int(1 / q) and math.isclose(claimed * facts.batches, 1, rel_tol=SAME)
    return math.isclose(claimed, q, rel_tol=SAME) or (counted and claimed > q)


def _no_poisson(facts: LoaderFacts, rates: list[float]) -> str:
    """Return what is wrong with a loader that draws no Poisson samples."""
    claimed = ", ".join(f"{rate:.6g}" for rate in rates)
    words = f"its batches are {WORDS[facts.order]}, and the history counts Poisson samples"
    words += f" of rate {claimed}" * bool(rates)
    drawn = facts.drawn / facts.dataset
    # 1 over the batches of an epoch, which rounds batch / records up or down
    if any(abs(rate - drawn) > max(rate, drawn) / max(facts.batches, 2) for rate in rates):
        words += f", while a batch holds {drawn:.6g} of the {facts.dataset:,} records"
    remedy = "train with poisson_sampling=True and pass the loader that make_private returned"
    if facts.order in {"weighted", "repeated", "unknown"}:
        return f"{words}: no epsilon is known for such draws; {remedy}"
    return f"{words}: {remedy}, or take the cost of this loader from statement_of_opacus"


def _other_rate(claimed: float, facts: LoaderFacts) -> str:
    """Return what is wrong with a claimed rate, and where it may come from."""
    q = facts.rate or 1.0
    words = f"the history's rate is {claimed:.6g} and the loader's {q:.6g}"
    times = round(claimed / q)
    if facts.physical is not None and math.isclose(
        claimed, facts.physical / facts.records, rel_tol=0.01
    ):
        return f"{words}: it is that of parts of a batch; count whole batches, at the loader's rate"
    if times > 1 and math.isclose(claimed, times * q, rel_tol=SAME):
        return (
            f"{words}: gradients of {times} batches were added before a step; a record can be in "
            "several of them, which the history leaves out; split batches by BatchMemoryManager"
        )
    return (
        f"{words}: a step that draws {claimed * facts.records:,.6g} records on average was counted "
        f"and {q * facts.records:,.6g} are drawn; pass the loader and the history of one run"
    )


def _left_out(facts: LoaderFacts, count: int) -> list[str]:
    """Return what is wrong with a Poisson loader that leaves out a batch."""
    found = []
    if facts.drop_last:
        found.append("drop_last leaves out a batch by its size: set drop_last=False")
    if facts.replicas > 1:
        # a process without a record in a step gives no batch: the steps of others are moved
        chance = (
            count * facts.replicas * (1 - (facts.rate or 1.0)) ** (facts.records // facts.replicas)
        )
        if chance > EMPTY:
            found.append(
                f"a process leaves out its empty batches, with probability up to {chance:.1g} in "
                "this run: take larger batches or fewer processes"
            )
    return found


def _other_steps(count: int, facts: LoaderFacts, epochs: int) -> list[str]:
    """Return what is wrong with the number of steps."""
    steps = epochs * facts.batches
    if count == steps:
        return []
    words = f"the history has {count:,} steps, and {epochs:,} epochs of the loader {steps:,}"
    parts = facts.physical and epochs * math.ceil(facts.batches * facts.drawn / facts.physical)
    if count == parts:
        return [f"{words}: parts of batches were counted as steps; count whole batches"]
    if 0 < count < steps and steps // count > 1 and steps // (steps // count) == count:
        return [
            f"{words}: one step was taken for {steps // count} batches, whose gradients were "
            "added; split batches by BatchMemoryManager instead"
        ]
    return [f"{words}: pass the history of all epochs, and of no others"]


def _other_batch(facts: LoaderFacts, batch: int) -> list[str]:
    """Return what is wrong with the size of a batch."""
    drawn = facts.drawn
    low, high = (
        facts.records / max(1, n) for n in (-(-facts.records // batch), facts.records // batch)
    )
    if min(low, batch) * (1 - SAME) <= drawn <= max(high, batch) * (1 + SAME):
        return []
    return [
        f"a batch of {batch:,} was meant, and the loader draws {drawn:,.6g} records on average: "
        "Opacus takes the rate 1 / len(loader), so give make_private a loader over all records, "
        "without a sampler of its own"
    ]
