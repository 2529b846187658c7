"""The accountant "tight" of Opacus; importing this module imports Opacus and PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from opacus.accountants import IAccountant

from accountant.accountants.tight import Tight
from accountant.domains import DELTA, NON_NEGATIVE, POSITIVE
from accountant.errors import ParameterError
from accountant.formats.added_samples import ADDED
from accountant.formats.opacus_steps import RATE, opacus_steps
from accountant.plans.plan import Sequential

MECHANISM = "tight"


class TightAccountant(IAccountant):  # type: ignore[misc]  # Opacus has no types
    """An Opacus accountant whose epsilon is the upper end of the interval that `Tight` proves.

    The history is that of Opacus' own accountants.  Steps before which the gradients of several
    Poisson samples were added up have their number as a fourth entry.
    """

    history: list[Any]

    def __init__(self) -> None:
        super().__init__()

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Add one step to the history.

        Parameters
        ----------
        noise_multiplier : float
            Noise over the clipping length; 0 makes every epsilon infinite.
        sample_rate : float
            The probability of each record.
        """
        noise = NON_NEGATIVE.check("noise_multiplier", noise_multiplier)
        self._add(noise, RATE.check("sample_rate", sample_rate))

    def get_epsilon(self, delta: float, **options: Any) -> float:
        """Return the epsilon spent so far.

        Parameters
        ----------
        delta : float
            In [0, 1).
        **options : Any
            Options of Opacus' other accountants, without effect here.

        Returns
        -------
        float
            Rounded up; infinite after a step without noise.

        Raises
        ------
        ParameterError
            If delta or the history is not what it must be.
        """
        delta = DELTA.check("delta", delta)
        steps = [
            entry
            for entry in opacus_steps(self.history, NON_NEGATIVE)
            if entry.steps and entry.rate
        ]
        if any(entry.noise < POSITIVE.low for entry in steps):
            return math.inf
        return Tight().epsilon(Sequential(entry.plan() for entry in steps), delta)

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[Any], None]:
        """Return what an optimizer calls before each step.

        Opacus multiplies the rate by the number of batches whose gradients were added.  A record
        can be in several of them, so their number is kept instead.

        Parameters
        ----------
        sample_rate : float
            The probability of each record in one batch.

        Returns
        -------
        callable
            A function of the optimizer.
        """
        rate = RATE.check("sample_rate", sample_rate)

        def hook(optimizer: Any) -> None:
            noise = NON_NEGATIVE.check("noise_multiplier", optimizer.noise_multiplier)
            self._add(noise, rate, ADDED.check("added", optimizer.accumulated_iterations))

        return hook

    def _add(self, noise: float, rate: float, added: int = 1) -> None:
        """Add a step to the last entry if its parameters are equal, else as a new entry."""
        last_entry = self.history[-1] if self.history else None
        added_field = (added,) if added > 1 else ()
        kind = (noise, rate, *added_field)
        if last_entry is not None and (*last_entry[:2], *last_entry[3:]) == kind:
            self.history[-1] = (noise, rate, last_entry[2] + 1, *added_field)
        else:
            self.history.append((noise, rate, 1, *added_field))

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over the history of a saved accountant "tight".

        Parameters
        ----------
        state_dict : mapping
            What `state_dict` returned; the mechanism may also be its name, as JSON holds it.

        Raises
        ------
        ParameterError
            If the history is not one.
        ValueError
            If it was saved by another accountant; Opacus raises that.  Assign its ``history`` to
            this accountant's instead.
        """
        if isinstance(state_dict, Mapping) and state_dict.get("mechanism") == MECHANISM:
            state_dict = {**state_dict, "mechanism": type(self).mechanism}
        before = self.history
        super().load_state_dict(state_dict)
        try:
            opacus_steps(self.history, NON_NEGATIVE)
            self.history = [tuple(entry) for entry in self.history]
        except ParameterError:
            self.history = before
            raise

    def __len__(self) -> int:
        """Return the number of entries of the history, as Opacus' own accountants do."""
        return len(self.history)

    @classmethod
    def mechanism(cls) -> str:
        """Return "tight".

        Returns
        -------
        str
            The name that `PrivacyEngine` takes.
        """
        return MECHANISM
