"""Mechanisms of diffprivlib and measurements of OpenDP: one call on the tape each."""

from __future__ import annotations

import copy
import functools
import inspect
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from accountant.losses.loss import Loss
from accountant.losses.pure_and_approximate import ApproxLoss, PureLoss
from audits.recorded_runs.draws.declared_calls import named_arguments
from audits.recorded_runs.followed_steps import use
from audits.recorded_runs.tape import EventKind, current_tape, running

LEFT_OUT = {"random_state", "accountant"}
# functions whose privacy is not that of noise added to a value: a quantile by the exponential
# mechanism on intervals between records, and an objective with a random term
MECHANISMS_OF_DIFFPRIVLIB = (
    ("diffprivlib.tools.quantiles", "quantile"),
    ("diffprivlib.models.logistic_regression", "_logistic_regression_path"),
)
Replacement = tuple[Any, str, Any]


def library_patches() -> Iterator[Replacement]:
    """What to replace in the libraries that are loaded: owner, name, replacement."""
    kind: Any
    mechanisms = sys.modules.get("diffprivlib.mechanisms")
    if mechanisms is not None:
        base = sys.modules["diffprivlib.mechanisms.base"].DPMechanism
        for kind in _all_subclasses(base):
            if "randomise" in vars(kind) and not getattr(kind.randomise, "__isabstractmethod__", 0):
                yield kind, "randomise", _recording_randomise(kind.randomise)
    for module_name, name in MECHANISMS_OF_DIFFPRIVLIB:
        module = sys.modules.get(module_name)
        if module is not None:
            yield module, name, _recording_function(getattr(module, name))
    measurements = sys.modules.get("opendp.mod")
    if measurements is not None:
        kind = measurements.Measurement
        yield kind, "__call__", _recording_measurement(kind.__call__)


def _all_subclasses(kind: Any) -> Iterator[Any]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _all_subclasses(subclass)


def _recording_function(function: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        tape = current_tape()
        if tape is None:
            return function(*arguments, **options)
        epsilon = float(named_arguments(signature, arguments, options)["epsilon"])

        def make() -> Any:
            with running(None):
                return function(*map(use, arguments), **options)

        event = tape.event(
            EventKind.CALL,
            function.__name__,
            make,
            shape=(),
            equal={"epsilon": epsilon},
            declared=PureLoss(epsilon),
        )
        return copy.deepcopy(event.output)

    return call


def _recording_randomise(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def randomise(self: Any, *values: Any) -> Any:
        tape = current_tape()
        if tape is None:
            return function(self, *values)

        def make() -> Any:
            with running(None):
                return function(self, *map(use, values))

        facts = {
            name: value
            for name, value in vars(self).items()
            if name not in LEFT_OUT and name[0] != "_"
        }
        argument, norm = use(values[0]) if values else facts.pop("utility", None), 1.0
        if not values:
            norm = math.inf
        sensitivity = facts.get("sensitivity")
        if not _is_numeric(argument) or not isinstance(sensitivity, (int, float)):
            # a function, or a matrix whose norm is the mechanism's own
            argument = sensitivity = None
        event = tape.event(
            EventKind.CALL,
            type(self).__name__,
            make,
            shape=(),
            equal=facts,
            given=argument,
            sensitivity=sensitivity,
            norm=norm,
            declared=_loss(self),
        )
        return event.output

    return randomise


def _is_numeric(thing: Any) -> bool:
    try:
        return np.asarray(thing).dtype.kind in "biuf"
    except ValueError:
        return False


def _loss(mechanism: Any) -> Loss | None:
    epsilon, delta = getattr(mechanism, "epsilon", None), getattr(mechanism, "delta", 0.0) or 0.0
    if epsilon is None:
        return None
    return ApproxLoss(float(epsilon), float(delta)) if delta else PureLoss(float(epsilon))


def _recording_measurement(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(self: Any, argument: Any) -> Any:
        tape = current_tape()
        if tape is None:
            return function(self, argument)

        def make() -> Any:
            with running(None):
                return function(self, use(argument))

        # the map gives the loss at distance 1, the largest distance between neighbours
        numeric_argument = use(argument) if _is_numeric(use(argument)) else None
        data_metric = "Distance" in str(self.input_metric) and "Absolute" not in str(
            self.input_metric
        )
        scalar = numeric_argument is not None and not (
            data_metric and "L" not in str(self.input_metric)[:2]
        )
        event = tape.event(
            EventKind.CALL,
            "Measurement",
            make,
            shape=(),
            declared=_loss_at_one(self),
            given=numeric_argument if scalar else None,
            sensitivity=1.0 if scalar else None,
            norm=2.0 if "L2" in str(self.input_metric) else 1.0,
        )
        return event.output

    return call


def _loss_at_one(measurement: Any) -> Loss | None:
    distances: tuple[Any, ...] = (1.0, 1)
    for distance in distances:
        try:
            loss = measurement.map(distance)
        except Exception:  # this metric takes distances of another type
            continue
        if isinstance(loss, float) and "ZeroConcentrated" in str(measurement.output_measure):
            from accountant.losses.zcdp import ZCDPLoss

            return ZCDPLoss(loss)
        return PureLoss(float(loss)) if isinstance(loss, (int, float)) else None
    return None
