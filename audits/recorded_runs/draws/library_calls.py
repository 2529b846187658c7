"""Replacements for mechanisms of diffprivlib and measurements of OpenDP within a recorded run.

An audit records a function on data and replays it on their neighbour.  Within such a run a call of
one of these libraries is one event on the `Tape`: its whole output is recorded, and the replay gets
the same output.  The event states the loss that the library's own parameters declare, what must be
equal in both runs, and the value whose move is compared with the sensitivity.  Draws inside the
call are not recorded.
"""

from __future__ import annotations

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
from audits.recorded_runs.noisy_numbers import use
from audits.recorded_runs.tape import tape_of_draw, unrecorded

NO_PARAMETERS = {"random_state", "accountant"}  # attributes that may differ between runs
# Functions of diffprivlib, by module and name, that are recorded as a whole.  Their privacy is not
# that of noise which is added to a value: the first is a quantile by the exponential mechanism on
# intervals between records, the second minimises an objective with a random term.
MECHANISMS_OF_DIFFPRIVLIB = (
    ("diffprivlib.tools.quantiles", "quantile"),
    ("diffprivlib.models.logistic_regression", "_logistic_regression_path"),
)
Replacement = tuple[Any, str, Any]


def library_patches() -> Iterator[Replacement]:
    """What to replace in those of the libraries that are loaded: owner, name, replacement.

    Replaced are ``randomise`` of every mechanism of diffprivlib, the functions above, and the call
    of an OpenDP measurement.
    """
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
    """A function like this one of diffprivlib, whose call costs its argument ``epsilon``."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        tape = tape_of_draw()
        if tape is None:
            return function(*arguments, **options)
        epsilon = float(named_arguments(signature, arguments, options)["epsilon"])
        return tape.call(
            function.__name__,
            lambda: unrecorded(function, *map(use, arguments), **options),
            equal={"epsilon": epsilon},
            declared=PureLoss(epsilon),
        )

    return call


def _recording_randomise(function: Callable[..., Any]) -> Callable[..., Any]:
    """A method like ``randomise`` of a mechanism of diffprivlib, recorded with its parameters.

    The private value is the first argument.  A mechanism without arguments selects by scores, its
    attribute ``utility``: they are the private value, and its sensitivity is the largest move of
    one of them.
    """

    @functools.wraps(function)
    def randomise(self: Any, *values: Any) -> Any:
        tape = tape_of_draw()
        if tape is None:
            return function(self, *values)

        facts = {
            name: value
            for name, value in vars(self).items()
            if name not in NO_PARAMETERS and name[0] != "_"
        }
        argument = use(values[0]) if values else facts.pop("utility", None)
        sensitivity = facts.get("sensitivity")
        if not _is_numeric(argument) or not isinstance(sensitivity, (int, float)):
            # The argument is a function, or the mechanism measures moves in a norm of its own.
            argument = sensitivity = None
        loss: Loss | None = None
        epsilon = getattr(self, "epsilon", None)
        if epsilon is not None:
            delta = float(getattr(self, "delta", 0.0) or 0.0)
            loss = ApproxLoss(float(epsilon), delta) if delta else PureLoss(float(epsilon))
        return tape.call(
            type(self).__name__,
            lambda: unrecorded(function, self, *map(use, values)),
            equal=facts,
            private_value=argument,
            sensitivity=sensitivity,
            norm=1.0 if values else math.inf,
            declared=loss,
        )

    return randomise


def _is_numeric(value: Any) -> bool:
    try:
        return np.asarray(value).dtype.kind in "biuf"
    except ValueError:
        return False


def _recording_measurement(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function like the call of an OpenDP measurement, recorded with the loss of its map."""

    @functools.wraps(function)
    def call(self: Any, argument: Any) -> Any:
        tape = tape_of_draw()
        if tape is None:
            return function(self, argument)

        # Neighbours are taken to be at distance 1 in the measurement's input metric.  A metric of
        # data sets (SymmetricDistance and others) counts records.  A metric of numbers or vectors
        # (AbsoluteDistance, L1Distance, L2Distance) says how far the argument itself moves.
        numeric_argument = use(argument) if _is_numeric(use(argument)) else None
        metric = str(self.input_metric)
        is_metric_of_data = (
            "Distance" in metric and "Absolute" not in metric and "L" not in metric[:2]
        )
        is_value = numeric_argument is not None and not is_metric_of_data
        return tape.call(
            "Measurement",
            lambda: unrecorded(function, self, use(argument)),
            declared=_loss_at_one(self),
            private_value=numeric_argument if is_value else None,
            sensitivity=1.0 if is_value else None,
            norm=2.0 if "L2" in metric else 1.0,
        )

    return call


def _loss_at_one(measurement: Any) -> Loss | None:
    """The loss that a measurement's map gives for distance 1; None if it is no number."""
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
