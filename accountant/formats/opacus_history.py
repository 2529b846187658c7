"""Plans from the history of an Opacus accountant, tied to the loader that was trained on.

Opacus writes (noise multiplier, sample rate, steps) and counts Poisson samples, whatever the loader
does: with ``poisson_sampling=False`` the history is the same.  So a history alone is a claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accountant.errors import ParameterError
from accountant.formats.loader_differences import differences, refuse_differences
from accountant.formats.loader_facts import LoaderFacts
from accountant.formats.opacus_steps import opacus_steps
from accountant.formats.torch_loader import loader_facts
from accountant.plans.plan import Plan, Sequential


def from_opacus(
    history: Any, loader: Any = None, *, epochs: int | None = None, batch: int | None = None
) -> Plan:
    """Return the plan of an Opacus accountant's history, checked against the loader.

    Opacus writes the same history with ``poisson_sampling=False``, whose batches are no Poisson
    samples: without the loader this plan is a claim, not what was run.

    Parameters
    ----------
    history : list of tuple
        Steps (noise_multiplier, sample_rate, steps); also the accountant, its ``state_dict()``, the
        `PrivacyEngine`, a checkpoint, or what `opacus_record` returned.
    loader : torch.utils.data.DataLoader, optional
        The loader that was trained on: what `make_private` returned, or `BatchMemoryManager`.
    epochs : int, optional
        Passes over the loader, from which its steps are counted.
    batch : int, optional
        The batch that was meant, in records.

    Returns
    -------
    Plan
        Poisson-sampled Gaussians, for add-remove neighbours, at the loader's own rate.

    Raises
    ------
    ParameterError
        If the history is not one, or if the loader draws otherwise than it claims: each difference
        is named, with its remedy.

    Examples
    --------
    >>> from accountant import ParameterError, from_opacus
    >>> from_opacus([(2.0, 0.01, 100)]).parts[0].count
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
    if facts is None:
        for name, value in (("epochs", epochs), ("batch", batch)):
            if value is not None:
                raise ParameterError(name, value, "left out where no loader is given")
        return Sequential(one.plan() for one in steps)
    refuse_differences(steps, facts, differences(steps, facts, epochs, batch))
    return Sequential(one.plan(facts.rate) for one in steps)


def facts_beside(history: Any, loader: Any) -> LoaderFacts | None:
    """Return the facts of a loader, given or kept in the same record as the history."""
    if loader is None and isinstance(history, Mapping):
        loader = history.get("loader")
    return None if loader is None else loader_facts(loader)
