"""Canaries in a training by Opacus: three lines around the training that its users have.

The canaries are put among the gradients of single records before Opacus clips them, so that its own
clipping, adding and noise are audited.  PyTorch is not imported: its tensors come from Opacus.
"""

from __future__ import annotations

import gc
import inspect
import sys
from dataclasses import replace
from typing import Any, final

import numpy as np

from accountant.errors import ParameterError
from accountant.formats.opacus_history import from_opacus
from accountant.numerics import Array
from accountant.plans.plan import Plan
from accountant.randomness import Rng
from audits.claims.claims import ClaimLike
from audits.one_run.canaries import COUNT
from audits.one_run.canary_power import CanaryPower
from audits.one_run.findings import NoiseFinding, OneRunFinding
from audits.one_run.gradient_canaries import LENGTH, GradientCanaries


def opacus_canaries(engine: Any, count: int, rng: Rng = None) -> OpacusCanaries:
    """Put canaries into the training of a privacy engine of Opacus.

    Parameters
    ----------
    engine : PrivacyEngine
        The engine, best before ``make_private``: then the loader is checked too.
    count : int
        Number of canaries: at least 10, at most the number of trained parameters.
    rng : int, Generator or None, optional
        Draws the coins, and the steps that use a canary.  The training must not get the same seed.

    Returns
    -------
    OpacusCanaries
        They take part in every step from now on; its ``audit`` is called after the training.

    Raises
    ------
    ParameterError
        If this is no privacy engine, or its training is of a kind that canaries cannot enter.

    Examples
    --------
    >>> from audits import opacus_canaries
    >>> def audited(engine, train):
    ...     canaries = opacus_canaries(engine, 700)
    ...     train(engine)  # calls engine.make_private, and all steps
    ...     return canaries.audit()
    """
    return OpacusCanaries(engine, count, rng)


@final
class OpacusCanaries:
    """Canaries in the steps of an optimizer of Opacus; `opacus_canaries` makes them.

    Parameters
    ----------
    engine : PrivacyEngine
        As in `opacus_canaries`.
    count : int
        As in `opacus_canaries`.
    rng : int, Generator or None, optional
        As in `opacus_canaries`.

    Examples
    --------
    >>> from audits import OpacusCanaries
    >>> class Engine:  # stands for the PrivacyEngine of Opacus
    ...     accountant = make_private = None
    >>> OpacusCanaries(Engine(), 700)
    <OpacusCanaries: 700, which wait for engine.make_private>
    """

    def __init__(self, engine: Any, count: int, rng: Rng = None) -> None:
        if not (hasattr(engine, "make_private") and hasattr(engine, "accountant")):
            allowed = "the PrivacyEngine of Opacus; for other trainers there is GradientCanaries"
            raise ParameterError("engine", f"a {type(engine).__name__}", allowed)
        self.engine, self.count, self.rng = engine, COUNT.check("count", count), rng
        self.inner: GradientCanaries | None = None
        self._loader: Any = None
        self._declared_noise = 0.0
        # Of the step that is going on: the sum of the records along the canaries.
        self._others: Array | None = None
        for optimizer in optimizers_of(engine):
            self._enter(optimizer)
        if self.inner is None:
            make_private = engine.make_private

            def make_private_with_canaries(*arguments: Any, **options: Any) -> Any:
                parts = make_private(*arguments, **options)
                if self.inner is None:
                    self._enter(parts[1])
                    self._loader = parts[-1]
                return parts

            engine.make_private = make_private_with_canaries

    def __repr__(self) -> str:
        inner = "which wait for engine.make_private" if self.inner is None else repr(self.inner)
        return f"<OpacusCanaries: {self.count:,}, {inner}>"

    def _enter(self, optimizer: Any) -> None:
        """Wrap what clips the gradients of an optimizer, and what it calls after the noise."""
        parameters = sum(parameter.numel() for parameter in optimizer.params)
        kinds = [kind for kind in type(optimizer).__mro__ if kind.__module__.startswith("opacus")]
        if not kinds or kinds[0].__name__ != "DPOptimizer":
            allowed = "a DPOptimizer: grad_sample_mode='hooks', clipping='flat', one process"
            raise ParameterError("optimizer", f"a {type(optimizer).__name__}", allowed)
        if self.count > parameters:
            allowed = f"at most the {parameters:,} trained parameters: each canary has one"
            raise ParameterError("count", self.count, allowed)
        count_step = optimizer.step_hook
        hooked = inspect.getclosurevars(count_step).nonlocals
        self._declared_noise = float(optimizer.noise_multiplier)
        inner = self.inner = GradientCanaries(
            self.count,
            parameters,
            rate=hooked["sample_rate"] if "sample_rate" in hooked else hooked["rate"],
            noise_multiplier=optimizer.noise_multiplier,
            rng=self.rng,
        )
        # For each parameter of the model the places of its canaries, which are in ascending order.
        ends = np.cumsum([parameter.numel() for parameter in optimizer.params])
        starts = np.append(0, ends[:-1])
        clip = optimizer.clip_and_accumulate

        def along_canaries(tensors: list[Any]) -> Array:
            numbers = [
                tensor.detach().reshape(-1)[
                    inner.along[(inner.along >= low) & (inner.along < high)] - low
                ]
                for tensor, low, high in zip(tensors, starts, ends, strict=True)
            ]
            return np.concatenate([part.double().cpu().numpy() for part in numbers])

        def clip_with_canaries() -> None:
            if optimizer.accumulated_iterations > 1:
                allowed = "1: gradients of several Poisson samples are no step of one sample"
                raise ParameterError(
                    "accumulated batches", optimizer.accumulated_iterations, allowed
                )
            sums = [parameter.summed_grad for parameter in optimizer.params]
            sums = [None if total is None else total.clone() for total in sums]
            clip()  # as Opacus does without canaries, to know what the records add
            records = along_canaries([parameter.summed_grad for parameter in optimizer.params])
            if self._others is not None:  # a later part of a batch that was split by memory
                self._others += records - along_canaries(sums)
                return
            self._others, drawn = records, inner.draw()
            for parameter, total, low, high in zip(
                optimizer.params, sums, starts, ends, strict=True
            ):
                rows = parameter.grad_sample
                joined = rows.new_zeros((len(rows) + drawn.size, *rows.shape[1:]))
                joined[: len(rows)] = rows
                here = np.flatnonzero((drawn >= low) & (drawn < high))
                flat = joined.view(len(joined), -1)
                flat[len(rows) + here, drawn[here] - low] = LENGTH * float(optimizer.max_grad_norm)
                parameter.grad_sample, parameter.summed_grad = joined, total
            clip()

        def observe_step(stepped: Any) -> None:
            count_step(stepped)
            size, length = 1.0, float(stepped.max_grad_norm)
            if stepped.loss_reduction == "mean":
                size = stepped.expected_batch_size * stepped.accumulated_iterations
            released = along_canaries([parameter.grad for parameter in stepped.params])
            inner.noise_multiplier = float(stepped.noise_multiplier)
            inner.observe_along(released * size / length, np.asarray(self._others) / length)
            self._others = None

        optimizer.clip_and_accumulate = clip_with_canaries
        optimizer.attach_step_hook(observe_step)

    def power(
        self,
        steps: int,
        claim: Plan | ClaimLike | None = None,
        delta: float = 1e-5,
        confidence: float = 0.95,
    ) -> CanaryPower:
        """Say, after ``make_private`` and before the steps, what these canaries can show.

        Parameters
        ----------
        steps : int
            Number of steps.
        claim : Plan, Budget, float or (float, float), optional
            As in `canary_power`.
        delta : float, optional
            As in `canary_power`.
        confidence : float, optional
            As in `canary_power`.

        Returns
        -------
        CanaryPower
            The chance that half the noise is falsified, and what would do if it is below 95 %.
        """
        return self._entered().power(steps, claim, delta, confidence)

    def audit(
        self,
        claim: Plan | ClaimLike | None = None,
        delta: float = 1e-5,
        confidence: float = 0.95,
    ) -> OneRunFinding:
        """Judge the claim of the whole training.

        Parameters
        ----------
        claim : Plan, Budget, float or (float, float), optional
            What is claimed; by default what the engine's accountant counted, which is checked
            against the loader if the canaries came before ``make_private``.
        delta : float, optional
            As in `GradientCanaries.audit`.
        confidence : float, optional
            As in `GradientCanaries.audit`.

        Returns
        -------
        OneRunFinding
            As `GradientCanaries.audit` returns it.
        """
        inner = self._entered()
        if claim is None and inner.steps:
            poisson = {"assume": "poisson"} if self._loader is None else {"loader": self._loader}
            claim = from_opacus(self.engine, **poisson)
        finding = inner.audit(claim, delta, confidence)
        if inner.noise_multiplier == self._declared_noise:
            return finding
        changed = f"; the noise multiplier was {self._declared_noise:g} at first"
        return replace(finding, witness=finding.witness + changed)

    def audit_noise(
        self, noise_multiplier: float | None = None, confidence: float = 0.95
    ) -> NoiseFinding:
        """Judge the noise alone.

        Parameters
        ----------
        noise_multiplier : float, optional
            What is declared; by default what the accountant counted.
        confidence : float, optional
            As in `GradientCanaries.audit_noise`.

        Returns
        -------
        NoiseFinding
            As `GradientCanaries.audit_noise` returns it.
        """
        return self._entered().audit_noise(noise_multiplier, confidence)

    def _entered(self) -> GradientCanaries:
        """The canaries in the optimizer, or `ParameterError` if there is none yet."""
        if self.inner is None:
            allowed = "called first: until then there is no optimizer that canaries can enter"
            raise ParameterError("engine.make_private", "not called", allowed)
        return self.inner


def optimizers_of(engine: Any) -> list[Any]:
    """The optimizer that the engine made last; the engine keeps none, so its hook tells."""
    if "opacus.optimizers" not in sys.modules:
        return []
    kind, optimizers = sys.modules["opacus.optimizers"].DPOptimizer, []
    for candidate in gc.get_objects():
        if issubclass(type(candidate), kind) and candidate.step_hook is not None:
            hooked = inspect.getclosurevars(candidate.step_hook).nonlocals
            if any(value is engine.accountant for value in hooked.values()):
                optimizers.append(candidate)
    return optimizers[-1:]
