"""The ways in which a loader makes batches, by name and in words."""

from __future__ import annotations

from accountant.domains import OneOf

# from a coin for each record to a fixed order
LOADERS = (
    "poisson",
    "truncated_poisson",
    "fixed_size",
    "random_allocation",
    "shuffled",
    "fixed_order",
)
SAMPLING = LOADERS[:3]  # every step draws anew; the others go through the data in passes
PASSES = LOADERS[4:]  # loaders that cut an order of all records into batches
# records are drawn independently, so a removed record costs what a blank one does
INDEPENDENT = ("poisson", "random_allocation")
ALIASES = {
    "truncated": "truncated_poisson",
    "without_replacement": "fixed_size",
    "sampled_without_replacement": "fixed_size",
    "allocation": "random_allocation",
    "balls_in_bins": "random_allocation",
    "balls_and_bins": "random_allocation",
    "shuffle": "shuffled",
    "shuffled_pass": "shuffled",
    "shuffled_passes": "shuffled",
    "shuffled_epoch": "shuffled",
    "sequential": "fixed_order",
    "one_pass": "fixed_order",
}
TITLES = {
    "poisson": "Poisson",
    "truncated_poisson": "truncated Poisson",
    "fixed_size": "fixed size",
    "random_allocation": "random allocation",
    "shuffled": "shuffled passes",
    "fixed_order": "fixed order",
}
MEANINGS = {
    "poisson": "in every step each record is drawn by its own coin",
    "truncated_poisson": "Poisson, and of a batch that is too large some are left out at random",
    "fixed_size": "every step draws a fixed number of different records anew",
    "random_allocation": "in every pass each record draws one random step, alone",
    "shuffled": "in every pass the records are put in random order and cut into batches",
    "fixed_order": "in every pass the batches are the same",
}


def check_loader(argument: str, value: object) -> str:
    """Return the name of a loader as `LOADERS` has it, or raise `ParameterError`."""
    name = value.lower().replace("-", "_").replace(" ", "_") if isinstance(value, str) else value
    if isinstance(name, str) and ALIASES.get(name, name) in LOADERS:
        return ALIASES.get(name, name)
    return OneOf(LOADERS).check(argument, value)
