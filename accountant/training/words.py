"""The sentences of a privacy statement on one DP-SGD training run.

They say what was trained, what it costs and by which neighbours, what an attacker can do, what to
know before quoting the number, and what is assumed.  `StatementFacts` has the numbers; its rows
have bounds on epsilon for each loader (the way batches are drawn), unit and relation of neighbours.
"""

from __future__ import annotations

import math

from accountant.formatting import format_lower, format_short, format_upper, short_upper
from accountant.plans.adjacency import Adjacency
from accountant.training.facts import StatementFacts
from accountant.training.loaders import MEANINGS, PASSES, SAMPLING, TITLES
from accountant.training.rows import RECORD, USER, TrainingCost
from accountant.training.schemes import FEWER_BATCHES, REGROUPED, UNBOUNDED

WIDE = 1e-3  # relative width: a wider interval around epsilon is shown with both ends
# What is shown in place of epsilon: no theorem is known, or a removed record has no bound.
UNKNOWN, NO_BOUND = "no theorem known", "no bound"
# How two neighbouring data sets differ, by unit of privacy and relation.
DIFFERENCES = {
    (RECORD, Adjacency.ADD_REMOVE): "one record more or less",
    (RECORD, Adjacency.ZERO_OUT): "one record blanked",
    (RECORD, Adjacency.REPLACE_ONE): "one record replaced",
    (USER, Adjacency.ADD_REMOVE): "one user more or less",
    (USER, Adjacency.ZERO_OUT): "one user blanked",
    (USER, Adjacency.REPLACE_ONE): "one user replaced",
}


def interval(row: TrainingCost, digits: int = 4) -> str:
    """Return epsilon as text: the upper bound, after the lower one if they are not close."""
    if row.note == "none":
        return UNKNOWN
    if row.note in UNBOUNDED:
        return NO_BOUND
    upper = format_upper(row.upper, digits)
    if row.upper <= row.lower * (1 + WIDE):
        return upper
    return f"{format_lower(row.lower, digits)}–{upper}" if row.lower else f"≤ {upper}"


def short_words(statement: StatementFacts) -> tuple[str, list[str]]:
    """Return a sentence on the run, and what to know of its number: of each warning the first."""
    run = statement.run
    micro = ", microbatches" if run.microbatching else ""
    run_sentence = (
        f"DP-SGD, {TITLES[run.loader]}: {run.examples:,} examples, batches of {run.batch:,}, "
        f"noise multiplier {noise_words(statement)}, {run.taken:,} steps{micro}."
    )
    right_percent = format_upper(50 * (1 + statement.advantage), 3)
    # Where there is no bound, the second sentence of a warning names the remedy.
    end = "." if math.isfinite(statement.epsilon) else "\0"
    return run_sentence, [
        f"An attack on a record guesses right at most {right_percent} % of the time.",
        *(f"! {warning.partition(f'{end} ')[0].rstrip('.')}." for warning in warnings(statement)),
        "What must be true of the code, and all loaders: --all-loaders.",
    ]


def run_words(statement: StatementFacts) -> str:
    """Return a paragraph on the run: sizes, noise, length, clipping and loader."""
    run = statement.run
    length = f"{run.taken:,} {'step' if run.taken == 1 else 'steps'}"
    if run.epochs is not None:
        epochs = "1 epoch" if run.epochs == 1 else f"{run.epochs:,.15g} epochs"
        length = f"{epochs} ({length})"
    noise = f"noise multiplier {noise_words(statement)}"
    if statement.found == "noise":
        noise += f" (the least for epsilon {format_short(statement.target or 0.0)})"
    if statement.found == "epochs":
        length += f", the most for epsilon {format_short(statement.target or 0.0)}"
    with_or_without = "with" if run.microbatching else "without"
    of_users = (
        "no bound on the examples of one user"
        if run.examples_per_user is None
        else f"at most {run.examples_per_user:,} examples of one user"
    )
    return (
        f"DP-SGD over {run.examples:,} examples with batches of {run.batch:,}, {noise}, {length}, "
        f"{with_or_without} microbatching, and {of_users}. "
        f"Loader: {TITLES[run.loader]}; {_loader_words(statement)}."
    )


def noise_words(statement: StatementFacts) -> str:
    """Return the noise multiplier as it was given, or rounded up if it was calibrated."""
    is_given = statement.found != "noise"
    return f"{statement.noise:.12g}" if is_given else format_upper(statement.noise, 8)


def _loader_words(statement: StatementFacts) -> str:
    """Return how the run's loader draws batches, with its rate or its number of batches."""
    run = statement.run
    description = MEANINGS[run.loader]
    if run.loader in {"poisson", "truncated_poisson"}:
        description += f" (rate {run.sampling_rate:.6g})"
    elif run.loader not in SAMPLING:
        description += f" ({run.batches:,} a pass"
        if run.dropped:
            description += f", {run.dropped:,} records are left out"
        elif run.last_batch and run.loader != "random_allocation":
            description += f", the last has {run.last_batch:,}"
        description += ")"
    return description


def neighbours_words(unit: str, relation: Adjacency) -> str:
    """Return how neighbours differ, and the name of their relation."""
    return f"{DIFFERENCES[unit, relation]} ({relation})"


def cost_words(statement: StatementFacts, unit: str = RECORD) -> list[str]:
    """Return one phrase on epsilon for each relation, the statement's own relation first."""
    rows = [statement.row(unit=unit, relation=relation) for relation in statement.relations]
    return [
        f"{'epsilon ' * math.isfinite(row.upper)}{upper_words(row)} at delta "
        f"{short_upper(statement.delta)}, {neighbours_words(unit, row.relation)}"
        for row in rows
    ]


def upper_words(row: TrainingCost) -> str:
    """Return the upper bound, the number to quote; words where there is none."""
    if math.isfinite(row.upper):
        return format_upper(row.upper)
    return interval(row)


def interval_words(statement: StatementFacts) -> str:
    """Return the interval in which the run's true epsilon lies, as a sentence."""
    row = statement.row()
    relation_words = f"({statement.relation})"
    if not math.isfinite(row.upper):
        return f"There is no bound of epsilon {relation_words}."
    bounds_words = f"{format_lower(row.lower, 6)} and {format_upper(row.upper, 6)}"
    sentence = f"For the worst data epsilon lies between {bounds_words} {relation_words}."
    return sentence if row.lower else f"No lower end of the true epsilon is known {relation_words}."


def attack_words(statement: StatementFacts) -> str:
    """Return what an attacker who knows all other records can do, at most.

    ``advantage`` is the greatest difference between the chances to be right and to be wrong, so
    that (1 + advantage) / 2 of the guesses are right.  ``found_records`` is the greatest
    true-positive rate at a false-positive rate of 0.1 %.
    """
    right_percent = format_upper(50 * (1 + statement.advantage), 3)
    power_percent = format_upper(100 * statement.found_records, 3)
    guessed_fact = (
        "which of two records is in the data"
        if statement.relation is Adjacency.REPLACE_ONE
        else "whether a record is in the data"
        if statement.relation is Adjacency.ADD_REMOVE
        else "whether a record is in its place or that is blank"
    )
    return (
        f"An attacker who knows all others guesses {guessed_fact}. At most {right_percent} % of "
        f"the guesses are right. At one false alarm in 1,000 the attacker finds at most "
        f"{power_percent} % of the records."
    )


def warnings(statement: StatementFacts) -> list[str]:
    """Return warnings about the loader, removed records, a large delta, and the number of steps."""
    run, messages = statement.run, []
    poisson, own_row = statement.row("poisson"), statement.row()
    if run.loader not in ("poisson", "truncated_poisson"):
        habit = {"shuffled": "shuffles", "fixed_order": "keeps a fixed order"}.get(
            run.loader, "does not flip a coin for each record"
        )
        opening = (
            f"Your loader {habit}; the Poisson number does not hold for it. Poisson batches would "
            f"cost {format_upper(poisson.upper)} at the same noise; this run costs "
        )
        costs = interval(own_row) if math.isfinite(own_row.upper) else "more than any bound"
        messages.append(f"{opening}{costs} ({statement.relation}).")
    if run.loader in PASSES:
        messages += _removal_warnings(statement)
    if statement.delta >= 1 / run.examples:
        messages.append(
            f"Delta is not below 1 / examples = {1 / run.examples:.3g}: it would allow publishing "
            "a random record. Choose a smaller one."
        )
    steps_of_passes = math.ceil(run.passes * run.batches)
    if run.loader in SAMPLING and run.steps is None and steps_of_passes > run.taken:
        messages.append(
            f"Count your steps: {run.taken:,} are epochs x examples / batch. A loader of "
            f"{run.batches:,} batches an epoch takes {steps_of_passes:,}: then give steps."
        )
    return messages


def _removal_warnings(statement: StatementFacts) -> list[str]:
    """Return why in passes a removed record costs more than a blank one, or has no bound.

    Where there is no bound, the sentence says what to quote or to set instead.
    """
    run, removed = statement.run, statement.row(relation=Adjacency.ADD_REMOVE)
    if removed.note == FEWER_BATCHES:
        remedy = (
            "set drop_last=False"
            if run.drop_last
            else "set drop_last=True, or another batch size, so that a pass without it has as many"
        )
        return [
            f"A record less takes a batch from every pass of {run.batches:,}, and the number of "
            f"steps tells: no bound for add-remove. Quote zero-out or replace-one, or {remedy}."
        ]
    if removed.note == REGROUPED:
        return [
            "A record less changes in which microbatches others are: no bound for add-remove. "
            "Quote zero-out or replace-one, or clip each example's gradient."
        ]
    blanked = statement.row(relation=Adjacency.ZERO_OUT)
    if removed.upper <= blanked.upper:
        return []
    why = (
        "all later ones shift by a record"
        if run.loader == "fixed_order"
        else "another record takes its place"
    )
    return [
        f"A record less changes other batches too: {why}. Blanked, with all others in their "
        f"places, it costs {format_upper(blanked.upper)} (zero-out)."
    ]


def notes(statement: StatementFacts) -> list[str]:
    """Return the notes under the table of all rows: what two numbers, or words, in it mean."""
    run = statement.run
    sentences = [
        "Two numbers: the truth for the worst data lies between them; quote the larger. The "
        "attacker is assumed to see whether a truncated batch is full. Replaced records and users "
        "of random allocation are bounded by group privacy."
    ]
    if any(interval(row) == UNKNOWN for row in statement.rows):
        sentences.append("No theorem known: no bound is proved, or it is out of reach.")
    if any(interval(row) == NO_BOUND for row in statement.rows):
        sentences.append("No bound: a removed record takes a batch away, or regroups microbatches.")
    sentences += [
        "Shuffled passes: blanked or replaced records cost the lesser of two bounds, of any order "
        "and of a group; pairs of data sets cost the lower end.",
        "Microbatches: a mean is clipped, and moves by up to two clipping norms, not one.",
        f"Truncated Poisson keeps at most {run.largest_batch:,} records a batch.",
    ]
    if run.drop_last and run.last_batch:
        sentences.append(f"Passes leave out the {run.last_batch:,} records of a short last batch.")
    return sentences


def assumptions(statement: StatementFacts) -> list[str]:
    """Return what must be true of the code for the numbers to hold."""
    run = statement.run
    gradients = (
        "each microbatch's mean gradient" if run.microbatching else "each example's gradient"
    )
    sentences = [
        f"In every step {gradients} is clipped to a norm C, and Gaussian noise of deviation "
        f"{noise_words(statement)} C is added to their sum, fresh in every step. The sum is "
        "divided by a number that does not depend on the data, not by the size of the batch drawn.",
        "Batches are made as the loader's line says; the order and the coins are secret, and "
        "independent of the data. An epoch that was begun counts as a whole pass.",
        "All steps may be seen: the bound covers every checkpoint, not only the last model.",
        "Noise, loader and length were fixed in advance. The numbers leave out what was tuned on "
        "the same data, and the statistics that were used to prepare them.",
    ]
    sentences.append(
        "Add-remove: the loader draws from the data without the record, in as many steps and at "
        "the same rate, and cuts passes into batches anew. Zero-out: the record adds nothing, and "
        "all others are drawn as with it."
    )
    if run.microbatching:
        sentences.append("A record does not change in which microbatches the others are.")
    if run.examples_per_user is not None:
        sentences.append(f"No user has more than {run.examples_per_user:,} of the examples.")
    return sentences
