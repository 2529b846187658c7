"""Declared parameters: domain, meaning and typical values, which checks, docs and tests read.

A mechanism is a class of which `param` declares the fields.  The decorator `declare` makes it a
frozen dataclass, completes its docstring from these fields, and registers it.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, dataclass_transform

from accountant.domains import Domain
from accountant.errors import ParameterError
from accountant.plans.declared_releases import declare_release
from accountant.plans.plan import DECLARED_PLAN_KINDS
from dp_attest.calls import shows_call

REQUIRED: Any = dataclasses.MISSING  # the default of a field that has none
REGISTERED: list[type[Any]] = []  # the mechanisms that were declared
M = TypeVar("M")
EXAMPLES = "Examples\n--------\n"  # the head of a docstring's last section


@dataclasses.dataclass(frozen=True, slots=True)
class Parameter:
    """What `param` declared of a parameter; its arguments are described there."""

    domain: Domain | Callable[[Any], Domain]
    text: str
    typical: tuple[Any, ...]
    knob: bool

    def domain_of(self, fields: Any) -> Domain:
        """Return the domain, given an object that holds the other fields."""
        return self.domain(fields) if callable(self.domain) else self.domain


def param(
    domain: Domain | Callable[[Any], Domain],
    text: str,
    *,
    typical: tuple[Any, ...],
    default: Any = REQUIRED,
    knob: bool = False,
) -> Any:
    """Declare a field of a mechanism: its domain, its meaning and typical values.

    Construction checks the domain, `declare` writes the docstring from the meaning, and tests use
    the typical values.

    Parameters
    ----------
    domain : Domain or callable
        The allowed values; or a function that maps the mechanism to them, where they depend on
        other fields.
    text : str
        The meaning, with the unit; a phrase that starts with a small letter.
    typical : tuple
        One or more allowed values, for examples and tests; examples show the first.
    default : object
        The default; without one the field is required.
    knob : bool
        Whether `calibrate` searches this parameter; at most one of a mechanism.

    Returns
    -------
    dataclasses.Field
        The field, to be assigned to an annotated name of a `declare` class.

    Examples
    --------
    >>> from accountant.domains import POSITIVE
    >>> from mechanisms import param
    >>> field = param(POSITIVE, "noise scale, in the units of the query", typical=(1.0,), knob=True)
    >>> field.metadata["meaning"].text
    'noise scale, in the units of the query'
    """
    meaning = Parameter(domain, text, typical, knob)
    return dataclasses.field(default=default, metadata={"meaning": meaning})


def parameters_of(cls: Any) -> dict[str, Parameter]:
    """Return the declared parameters of a mechanism class, by name."""
    return {f.name: f.metadata["meaning"] for f in dataclasses.fields(cls)}


@dataclass_transform(frozen_default=True, field_specifiers=(param,))
def declare(cls: type[M]) -> type[M]:
    """Make a frozen dataclass of a `Mechanism` subclass, register it, and complete its docstring.

    The sections Parameters, Notes and References of the docstring are composed from the fields that
    `param` declares and from the class attributes ``limits`` and ``reference`` (see `Mechanism`).
    A ledger releases through declared classes only: who declares a class vouches for its loss.  The
    class is final from then on; to declare it again changes nothing.

    Returns
    -------
    type
        The class, with slots, value equality and checked fields; `registry` lists it.

    Raises
    ------
    ParameterError
        If the class was made a dataclass before, or declared and then defined anew; it stays as it
        is.
    TypeError
        If a class of this name was declared in another place, or a base is declared.

    Examples
    --------
    >>> import dataclasses
    >>> from mechanisms import Laplace, registry
    >>> Laplace in registry(), [field.name for field in dataclasses.fields(Laplace)]
    (True, ['scale', 'sensitivity', 'arithmetic', 'dimension'])
    """
    if any(kind is cls for kind in REGISTERED):
        return cls
    # A second dataclass would take the declared parameters from the first one, and then fail.
    if "__dataclass_fields__" in vars(cls):
        raise ParameterError("cls", cls.__name__, "no dataclass yet: declare makes it one, once")
    declared = dataclasses.dataclass(frozen=True, slots=True, repr=False)(cls)
    if cls.__doc__:
        declared.__doc__ = completed_docstring(declared)
    _remember_loss(declared)
    if "epsilon" not in parameters_of(declared):
        _refuse_epsilon(declared)
    declare_release(declared)
    # plan files may name the kinds in the second list
    lists: tuple[list[Any], list[Any]] = REGISTERED, DECLARED_PLAN_KINDS
    for kinds in lists:
        # A class that is defined again in the same place, as in a notebook, replaces the earlier
        # one; `declare_release` refuses any other class of its name.
        kinds[:] = [kind for kind in kinds if kind.__name__ != declared.__name__]
        kinds.append(declared)
    return declared


def _remember_loss(cls: type[Any]) -> None:
    """Replace the property ``loss`` by one that computes the loss once for each mechanism.

    The loss depends on frozen fields alone, and plans ask for it often.  `Mechanism` has the slot
    ``_remembered_loss`` for it.
    """
    compute: Callable[[Any], Any] = cls.loss.fget

    @functools.wraps(compute)
    def loss(self: Any) -> Any:
        try:
            return self._remembered_loss
        except AttributeError:  # not computed yet; a copy or a pickle has only the fields
            computed = compute(self)
            object.__setattr__(self, "_remembered_loss", computed)
            return computed

    type.__setattr__(cls, "loss", property(loss))


def _refuse_epsilon(cls: type[Any]) -> None:
    """Make the constructor refuse an argument ``epsilon``, which is no field of this class.

    Its epsilon follows from its noise; the error names the call of `calibrate` that finds noise for
    the epsilon asked for.
    """
    construct = cls.__init__
    searched = [name for name, parameter in parameters_of(cls).items() if parameter.knob]

    @shows_call(
        sigma="the scale of the noise is scale=, in the unit of the query",
        b="the scale of the noise is scale=, in the unit of the query",
        noise_multiplier="the noise is scale= and sensitivity=, in the unit of the query",
    )
    @functools.wraps(construct)
    def construct_or_refuse(self: Any, *values: Any, **fields: Any) -> None:
        if "epsilon" in fields:
            other_fields = {name: value for name, value in fields.items() if name not in searched}
            arguments = ", ".join(f"{name}={value!r}" for name, value in other_fields.items())
            hint = f"calibrate({cls.__name__}, {arguments}) finds the noise that has it"
            raise ParameterError("epsilon", fields["epsilon"], f"left out; {hint}")
        construct(self, *values, **fields)

    type.__setattr__(cls, "__init__", construct_or_refuse)


def completed_docstring(cls: Any) -> str:
    """Return the docstring of a declared class with Parameters, Notes and References added.

    They come from the declared fields and from ``limits`` and ``reference`` of the class, and
    stand before the examples, in the order of numpydoc.
    """
    text, head, examples = inspect.cleandoc(cls.__doc__).partition(EXAMPLES)
    sections = {
        "Parameters": "\n".join(map(_parameter_entry, dataclasses.fields(cls))),
        "Notes": cls.limits and f"Known limits: {cls.limits}.",
        "References": f"{cls.reference}.",
    }
    parts = [f"{name}\n{'-' * len(name)}\n{body}" for name, body in sections.items() if body]
    return "\n\n".join([text.rstrip(), *parts, *([head + examples] if head else [])])


def _parameter_entry(field: dataclasses.Field[Any]) -> str:
    """Return the numpydoc entry of a field: type, default, meaning, range."""
    meaning = field.metadata["meaning"]
    kind = field.type if isinstance(field.type, str) else field.type.__name__
    # A required field that follows one with a default has the default NaN, which is not equal to
    # itself, in place of none.
    has_default = field.default is not dataclasses.MISSING and field.default == field.default
    default = f", default={field.default!r}" if has_default else ""
    # The meaning describes a range that depends on other fields.
    allowed = [] if callable(meaning.domain) else [str(meaning.domain)]
    notes = "; ".join(allowed + ["`calibrate` searches it"] * meaning.knob)
    sentences = [f"{text[0].upper()}{text[1:]}." for text in (meaning.text, notes) if text]
    return "\n    ".join([f"{field.name} : {kind}{default}", *sentences])
