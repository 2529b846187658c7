"""Recorded calls of functions that the user declares to be mechanisms (`Primitive`).

The inside of such a function is not recorded.  The tape keeps one call: its private argument, its
whole output, which the replay gets again, and the declared loss or sensitivity.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from accountant.domains import NON_NEGATIVE
from accountant.errors import ParameterError
from accountant.losses.loss import Loss
from audits.recorded_runs.noisy_numbers import use
from audits.recorded_runs.tape import tape_of_draw, unrecorded

NORMS = {"l1": 1.0, "l2": 2.0, "linf": float("inf")}


@final
@dataclass(frozen=True, slots=True)
class Primitive:
    """What is known of a function that adds noise, or of a named draw.

    Parameters
    ----------
    value : str
        The argument that holds the private value; by default the first.
    sensitivity : float or str, optional
        The most by which neighbours move the value: a number, or the name of an argument.
    norm : str
        The norm of the sensitivity: ``"l1"``, ``"l2"`` or ``"linf"``.
    loss : Loss or function of the arguments, optional
        What one call costs; the function takes the arguments as a dict.

    Examples
    --------
    >>> from accountant import PureLoss
    >>> from audits import Primitive
    >>> Primitive("scores", sensitivity="sens", norm="linf", loss=lambda a: PureLoss(a["eps"])).norm
    'linf'
    """

    value: str = ""
    sensitivity: float | str | None = None
    norm: str = "l1"
    loss: Loss | Callable[[dict[str, Any]], Loss] | None = None

    def __post_init__(self) -> None:
        if self.norm not in NORMS:
            raise ParameterError("norm", self.norm, f"one of {', '.join(map(repr, NORMS))}")


def sensitivity_of(primitive: Primitive, arguments: dict[str, Any]) -> float | None:
    """The sensitivity that a call with these arguments declares."""
    sensitivity = primitive.sensitivity
    if isinstance(sensitivity, str):
        if sensitivity not in arguments:
            names = ", ".join(map(repr, arguments))
            raise ParameterError("sensitivity", sensitivity, f"a number or one of {names}")
        sensitivity = arguments[sensitivity]
    return None if sensitivity is None else NON_NEGATIVE.check("sensitivity", sensitivity)


def loss_of(primitive: Primitive, arguments: dict[str, Any]) -> Loss | None:
    """The loss that a call with these arguments declares."""
    loss = primitive.loss
    if not (isinstance(loss, Loss) or loss is None):
        loss = loss(arguments)
        if not isinstance(loss, Loss):
            raise ParameterError("Primitive.loss", type(loss), "a function that returns a Loss")
    return loss


def primitive_of(declared: Any) -> Primitive:
    """A declaration as a `Primitive`: a number is a sensitivity, a loss that of a call."""
    if isinstance(declared, Primitive):
        return declared
    if isinstance(declared, Loss):
        return Primitive(loss=declared)
    if declared is None:
        return Primitive()
    if isinstance(declared, (int, float)) and not isinstance(declared, bool):
        return Primitive(sensitivity=float(declared))
    raise ParameterError("primitives", declared, "a Primitive, a loss, a sensitivity, or None")


def named_arguments(
    signature: inspect.Signature, arguments: tuple[Any, ...], options: dict[str, Any]
) -> dict[str, Any]:
    """The arguments of a call by name, with the defaults of those that were omitted."""
    bound = signature.bind(*arguments, **options)
    bound.apply_defaults()
    return dict(bound.arguments)


def recording_call(function: Callable[..., Any], declared: Primitive) -> Callable[..., Any]:
    """A function like the given one that, within a recorded run, writes its call on the tape."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        tape = tape_of_draw()
        if tape is None:
            return function(*arguments, **options)
        plain_arguments: tuple[Any, ...] = use(arguments)
        plain_options = {name: use(option) for name, option in options.items()}
        named = named_arguments(signature, plain_arguments, plain_options)
        named.pop("self", None)
        value = declared.value or next(iter(named), "")
        if value and value not in named:
            allowed = f"one of {', '.join(map(repr, named))}"
            raise ParameterError("Primitive.value", value, allowed)

        def make() -> Any:
            return unrecorded(function, *plain_arguments, **plain_options)

        return tape.call(
            function.__name__,
            make,
            equal={name: argument for name, argument in named.items() if name != value},
            private_value=named.get(value),
            sensitivity=sensitivity_of(declared, named),
            declared=loss_of(declared, named),
            norm=NORMS[declared.norm],
        )

    return call
