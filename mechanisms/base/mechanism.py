"""What a mechanism is: noise that was chosen, its density, and the loss that follows."""

from __future__ import annotations

import dataclasses
import enum
import itertools
from abc import abstractmethod
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.domains import IntegerRange, Interval, OneOf
from accountant.errors import ParameterError
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.plans.plan import Item, Release
from mechanisms.base.parameters import REGISTERED, REQUIRED, param, parameters_of
from mechanisms.base.supports import Support
from mechanisms.base.values import Values

SIZE = IntegerRange(0)
ALWAYS_IN_REPR = ("sensitivity", "arithmetic")


class Arithmetic(enum.StrEnum):
    """Whether the claim holds of the sampler as it runs.

    IDEALISED: floats stand for real numbers, and the low-order bits can leak.  EXACT: given
    ideal random bits the claim holds of what is released, to the last bit.
    """

    IDEALISED = "idealised"
    EXACT = "exact"

    def __repr__(self) -> str:
        return self.name


IDEALISED, EXACT = Arithmetic


@dataclasses.dataclass(frozen=True, slots=True)
class ArithmeticDomain:
    """The arithmetics that a mechanism offers."""

    choices: tuple[Arithmetic, ...]

    def check(self, argument: str, value: object) -> Arithmetic:
        """One of the choices, by name or by value."""
        return Arithmetic(self._names.check(argument, value))

    def __str__(self) -> str:
        return str(self._names)

    @property
    def _names(self) -> OneOf:
        return OneOf(tuple(one.value for one in self.choices))


def arithmetic_field(*choices: Arithmetic) -> Any:
    """Declare the field that says which arithmetic samples; the first is the default."""
    text = "arithmetic of the sampler: floats that stand for real numbers, or exact integers"
    return param(ArithmeticDomain(choices), text, typical=choices, default=choices[0])


class Mechanism(Release):
    """A frozen value that releases a private value with noise; equality is meaning.

    A subclass declares its parameters with `param`, is decorated with `@declare`, and gives
    `release`, `log_density`, `loss`, `worst_pair`, `values`, `support`, `releases`, `reference`.
    """

    __slots__ = ()
    releases: ClassVar[str]
    reference: ClassVar[str]
    limits: ClassVar[str] = ""

    @abstractmethod
    def release(
        self,
        value: ArrayLike,
        rng: np.random.Generator | int | None = None,
        size: int | None = None,
    ) -> Any:
        """Release ``value``: once, or ``size`` times along a new first axis.

        A batch of values along the first axis gives one output each.  ``rng=None`` draws from
        operating-system entropy.  Raises `PrivateValueError` for a value that is no value.
        """

    @abstractmethod
    def log_density(self, output: ArrayLike, value: ArrayLike, each: bool = False) -> Array:
        """Log of the density of ``output`` when ``value`` is released.

        Summed over the axes of ``value``, or over all but its first with ``each``; further axes
        of ``output`` in front are independent draws.
        """

    @property
    @abstractmethod
    def loss(self) -> Loss:
        """The privacy loss of one release, for neighbours within the declared sensitivity."""

    @abstractmethod
    def worst_pair(self, epsilon: float = 0.0) -> tuple[Any, Any]:
        """Two neighbouring values at which the profile at ``epsilon`` is attained."""

    @property
    @abstractmethod
    def values(self) -> Values:
        """What may be released, and who its neighbours are."""

    @property
    @abstractmethod
    def support(self) -> Support:
        """Where outputs lie: the real line, or cells of constant density."""

    @property
    def arithmetic(self) -> str:
        """Whether the claim holds to the last bit: IDEALISED or EXACT; a field of many."""
        return IDEALISED

    @property
    def value_axes(self) -> int | None:
        """Axes of one value; None where an array of any shape is one value."""
        return self.values.axes

    @property
    def loss_is_upper_bound(self) -> bool:
        """Whether no pair attains the profile: the loss is an upper bound only."""
        return False

    def __post_init__(self) -> None:
        for name, meaning in parameters_of(type(self)).items():
            checked = meaning.domain_of(self).check(
                f"{type(self).__name__}.{name}", getattr(self, name)
            )
            object.__setattr__(self, name, checked)
        _ = self.loss  # a mechanism that cannot say what it costs cannot be made

    def __repr__(self) -> str:
        shown = [
            f"{field.name}={_field_repr(getattr(self, field.name))}"
            for field in dataclasses.fields(self)  # type: ignore[arg-type]  # declared
            if field.name in ALWAYS_IN_REPR or getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def losses(self) -> Iterator[tuple[Item, int]]:
        """Yield its loss, once."""
        yield self.loss, 1

    @property
    def reversed(self) -> Loss:
        """Its loss with the neighbours exchanged."""
        return self.loss.reversed

    @classmethod
    def knob(cls, **fixed: Any) -> tuple[str, Interval]:
        """Return the name and the range of the parameter that `calibrate` turns."""
        declared = parameters_of(cls)
        name = next((n for n, meaning in declared.items() if meaning.knob), "")
        others = {f.name: f.default for f in dataclasses.fields(cls) if f.name != name}  # type: ignore[arg-type]  # every declared class is a dataclass
        needed = [n for n, default in others.items() if default is REQUIRED]
        if not name or not set(needed) <= set(fixed) <= set(others):
            allowed = f"fields of {cls.__name__} other than its knob {name!r}"
            raise ParameterError("fixed", fixed, f"{allowed}, {needed} among them")
        known = SimpleNamespace(**{n: fixed.get(n, default) for n, default in others.items()})
        for other, value in vars(known).items():
            declared[other].domain_of(known).check(f"{cls.__name__}.{other}", value)
        domain = declared[name].domain_of(known)
        if not isinstance(domain, Interval):
            raise ParameterError("knob", name, "a real number")
        return name, domain

    def with_noise_factor(self, factor: float) -> Self:
        """The same mechanism with its knob at ``factor`` times what it is."""
        knob = next((n for n, meaning in parameters_of(type(self)).items() if meaning.knob), None)
        if knob is None:
            raise ParameterError("plan_of", self, "made of mechanisms, each with a knob to turn")
        turned = {knob: factor * getattr(self, knob)}
        changed: Self = dataclasses.replace(self, **turned)  # type: ignore[type-var]  # declared
        return changed

    @classmethod
    def instances(cls) -> list[Self]:
        """One mechanism for every combination of the parameters' typical values."""
        declared = parameters_of(cls)
        combinations = itertools.product(*(meaning.typical for meaning in declared.values()))
        return [cls(**dict(zip(declared, values, strict=True))) for values in combinations]


def registry() -> tuple[type[Mechanism], ...]:
    """Every declared mechanism class, in alphabetical order."""
    return tuple(sorted(REGISTERED, key=lambda cls: cls.__name__))


def draw_shape(size: int | None, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Shape of ``size`` draws of something of the given shape."""
    return shape if size is None else (SIZE.check("size", size), *shape)


def sum_log_density(terms: NDArray[Any], value_axes: int, each: bool) -> Array:
    """Sum log-densities over the last ``value_axes`` axes, all but the first with ``each``."""
    axes = tuple(range(each - value_axes, 0)) if value_axes else ()
    result: Array = terms.sum(axis=axes) if axes else terms
    return result


def _field_repr(value: object) -> str:
    """A field as it would be written; a function by the name it is imported by."""
    if isinstance(value, np.ufunc):
        return f"numpy.{value.__name__}"
    if callable(value) and not isinstance(value, Mechanism):
        return f"{value.__module__}.{getattr(value, '__qualname__', type(value).__name__)}"
    return repr(value)
