"""Plans from the history of an Opacus accountant, tied to the loader that was trained on.

Opacus writes (noise multiplier, sample rate, steps) and counts Poisson samples, whatever the loader
does: with ``poisson_sampling=False`` the history is the same.  So a history alone is a claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accountant.domains import OneOf, OrNone
from accountant.errors import ParameterError
from accountant.formats.loader_differences import differences, refuse_differences
from accountant.formats.loader_facts import LoaderFacts, loader_facts
from accountant.formats.opacus_steps import opacus_steps
from accountant.plans.plan import Plan, Sequential

ASSUMED = ("poisson",)  # what may be assumed of a loader that is not given
NO_LOADER = (
    "the one that was trained on, as make_private returned it: a history is the same whether "
    "batches were Poisson samples or cut from a shuffle, which costs more; or give "
    "assume='poisson', if you know that poisson_sampling was True"
)


def from_opacus(
    history: Any,
    loader: Any = None,
    *,
    epochs: int | None = None,
    batch: int | None = None,
    assume: str | None = None,
) -> Plan:
    """Return the plan of an Opacus accountant's history, checked against the loader.

    Opacus writes the same history with ``poisson_sampling=False``, whose batches are no Poisson
    samples and cost more.  So the loader is needed, or the assumption that it drew such samples.

    Parameters
    ----------
    history : list of tuple
        Steps (noise_multiplier, sample_rate, steps); also the accountant, its ``state_dict()``, the
        `PrivacyEngine`, a checkpoint, or what `opacus_record` returned.
    loader : torch.utils.data.DataLoader, optional
        The loader that was trained on: what `make_private` returned, or `BatchMemoryManager`.  May
        be left out where the history is an `opacus_record` with one.
    epochs : int, optional
        Passes over the loader, from which its steps are counted.
    batch : int, optional
        The batch that was meant, in records.
    assume : {"poisson"}, optional
        Instead of the loader: that every batch was a Poisson sample, which is not checked.

    Returns
    -------
    Plan
        Poisson-sampled Gaussians, for add-remove neighbours, at the loader's own rate.

    Raises
    ------
    ParameterError
        If the history is not one, if nothing is said of the loader, or if it draws otherwise than
        the history claims: each difference is named, with its remedy.

    Examples
    --------
    >>> from accountant import ParameterError, from_opacus
    >>> from_opacus([(2.0, 0.01, 100)], assume="poisson").parts[0].count
    100
    >>> shuffled = dict(order="shuffled", sampler="RandomSampler", records=6400, batches=100,
    ...                 batch=64, rate=None, drop_last=False, dataset=6400)
    >>> try:
    ...     from_opacus([(2.0, 0.01, 100)], shuffled)
    ... except ParameterError as error:
    ...     print("poisson_sampling=True" in str(error))
    True
    """
    steps = opacus_steps(history)
    facts = facts_beside(history, loader)
    OrNone(OneOf(ASSUMED)).check("assume", assume)
    if facts is not None and assume is not None:
        raise ParameterError("assume", assume, "left out where a loader is given, which says it")
    if facts is None:
        if assume is None:
            raise ParameterError("loader", None, NO_LOADER)
        for name, value in (("epochs", epochs), ("batch", batch)):
            if value is not None:
                raise ParameterError(name, value, "left out where no loader is given")
        return Sequential(entry.plan() for entry in steps)
    refuse_differences(steps, facts, differences(steps, facts, epochs, batch))
    return Sequential(entry.plan(facts.rate) for entry in steps)


def facts_beside(history: Any, loader: Any) -> LoaderFacts | None:
    """Return the facts of a loader, given or kept in the same record as the history."""
    if loader is None and isinstance(history, Mapping):
        loader = history.get("loader")
    return None if loader is None else loader_facts(loader)
