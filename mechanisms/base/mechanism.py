"""The abstract mechanism: chosen noise, its density, and the privacy loss that follows.

References: Dwork & Roth (2014), Chapters 2 and 3; Mironov (2012) for the arithmetic.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import itertools
import math
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
from accountant.plans.adjacency import Adjacency
from accountant.plans.plan import Item, Release
from mechanisms.base.parameters import REGISTERED, REQUIRED, param, parameters_of
from mechanisms.base.supports import Support
from mechanisms.base.values import Values

SIZE = IntegerRange(0)  # how many releases of one value may be asked for
ALWAYS_IN_REPR = ("sensitivity", "arithmetic")  # fields that are shown at their defaults, too
CACHE_BYTES = 1 << 19  # bytes that are processed at a time: they fit into a processor's cache


class Arithmetic(enum.StrEnum):
    """Whether a claim also holds for the sampler as a computer runs it.

    ``IDEALISED``: the proof treats floats as real numbers, so the last digits of a release can
    reveal the value; for study only.  ``EXACT``: given ideal random bits the claim holds for the
    release as it is, to the last bit; safe to publish.

    References
    ----------
    Mironov (2012); Canonne, Kamath & Steinke (2020).

    Examples
    --------
    >>> from mechanisms import Arithmetic, Laplace
    >>> Laplace(scale=2.0).arithmetic
    EXACT
    >>> Laplace(scale=2.0, arithmetic="idealised").arithmetic is Arithmetic.IDEALISED
    True
    """

    IDEALISED = "idealised"
    EXACT = "exact"

    def __repr__(self) -> str:
        return self.name


IDEALISED, EXACT = Arithmetic


@dataclasses.dataclass(frozen=True, slots=True)
class ArithmeticDomain:
    """The arithmetics that a mechanism offers, as the domain of its field."""

    choices: tuple[Arithmetic, ...]

    def check(self, argument: str, value: object) -> Arithmetic:
        """Return the choice, which may be given as the enumeration or as its string."""
        return Arithmetic(self._names.check(argument, value))

    def __str__(self) -> str:
        return str(self._names)

    @property
    def _names(self) -> OneOf:
        return OneOf(tuple(choice.value for choice in self.choices))


def arithmetic_field(*choices: Arithmetic) -> Any:
    """Declare the field that says which arithmetic the sampler uses; the first is the default."""
    text = "ordinary floats, which are for study only, or exact integers, safe to publish"
    return param(ArithmeticDomain(choices), text, typical=choices, default=choices[0])


class Mechanism(Release):
    """A mechanism: an immutable value that releases private values with noise.

    You choose the noise; the privacy loss is computed from it.  Two mechanisms with equal fields
    are equal, and ``repr`` shows the call that makes them.  A new mechanism is a subclass that
    declares its parameters with `param`, is decorated with `declare`, and defines `release`,
    `log_density`, `loss`, `worst_pair`, `values`, `support` and the texts below.

    Attributes
    ----------
    releases : str
        What is released, for the table of mechanisms.
    reference : str
        Where the mechanism and its guarantee are published.
    limits : str
        Known limits of the implementation; empty if there are none.
    statistic : str or None
        The kind of statistic for which `least_epsilon` tries this mechanism: "count", "sum" or
        "selection".

    References
    ----------
    Dwork & Roth (2014), Chapters 2 and 3.

    Examples
    --------
    >>> from mechanisms import Laplace, Mechanism
    >>> one = Laplace(scale=2.0)
    >>> isinstance(one, Mechanism), one == Laplace(scale=2.0, sensitivity=1.0)
    (True, True)
    >>> one.loss
    LaplaceLoss(shift=0.5)
    """

    __slots__ = ("_remembered_loss",)  # `declare` fills it
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]  # `declare` makes them
    releases: ClassVar[str]
    reference: ClassVar[str]
    limits: ClassVar[str] = ""
    statistic: ClassVar[str | None] = None

    @abstractmethod
    def release(
        self,
        value: ArrayLike,
        rng: np.random.Generator | int | None = None,
        size: int | None = None,
    ) -> Any:
        """Return a noisy release of ``value``.

        Parameters
        ----------
        value : array_like
            A value that `values` accepts, or a batch of values along a new first axis: then each
            gives one output.
        rng : numpy.random.Generator, int or None
            Source of randomness or a seed; None draws from the operating system's entropy.
        size : int or None
            Number of independent releases of one value, along a new first axis; None for one.

        Returns
        -------
        object
            The output, or an array of outputs.

        Raises
        ------
        PrivateValueError
            If ``value`` is outside `values`; the message never shows it.
        ParameterError
            If ``size`` is given for a batch.
        """

    @abstractmethod
    def log_density(self, output: ArrayLike, value: ArrayLike, each: bool = False) -> Array:
        """Return the natural logarithm of the density of ``output`` when ``value`` is released.

        Parameters
        ----------
        output : array_like
            Outputs; further axes in front are independent draws.
        value : array_like
            A value or a batch of values.
        each : bool
            False sums over all axes of ``value``; True keeps its first axis, the batch.

        Returns
        -------
        numpy.ndarray
            Log-densities, -inf for impossible outputs; with respect to the measure that `support`
            describes.
        """

    @property
    @abstractmethod
    def loss(self) -> Loss:
        """The privacy loss of one release, for neighbours within the declared sensitivity."""

    @abstractmethod
    def worst_pair(self, epsilon: float = 0.0) -> tuple[Any, Any]:
        """Return two neighbouring values that attain the privacy profile at ``epsilon``.

        Parameters
        ----------
        epsilon : float
            Where the profile is attained, in nats; many mechanisms have one pair for every epsilon.

        Returns
        -------
        tuple
            Two values; the best known pair where `loss_is_upper_bound` holds.
        """

    @property
    @abstractmethod
    def values(self) -> Values:
        """The values that may be released, with their neighbours."""

    @property
    @abstractmethod
    def support(self) -> Support:
        """The set of outputs, as cells of constant density, a list or the real line."""

    def outputs_fault(self, outputs: NDArray[Any], users: int) -> str:
        """Return why the mechanism cannot have released these outputs, one for each user.

        It is asked of what worker processes return, before a ledger hands that out as a release.

        Parameters
        ----------
        outputs : numpy.ndarray
            One output along the first axis for each user.
        users : int
            Number of users.

        Returns
        -------
        str
            The fault, without an output; "" where none is seen.  Of local randomisers every
            impossible output is seen, of others a wrong type, shape or range.
        """
        value = self.values.example(np.random.default_rng(0))
        if np.asarray(value).dtype == object:
            values: NDArray[Any] = np.empty(1, dtype=object)
            values[0] = value
        else:
            values = np.asarray([value])
        drawn = np.asarray(self.release(values, 0))
        # All values of users are neighbours of each other, so they have the same possible outputs.
        local = self.relation is Adjacency.LOCAL_REPLACE
        # Where an output has the shape of its value, vectors may have any length, and the example
        # does not tell which.
        is_any_length = not local and self.value_axes != 0 and drawn.shape == values.shape
        output_shape = outputs.shape[1:] if is_any_length else drawn.shape[1:]
        fits = self.value_axes is None or outputs.ndim == drawn.ndim
        if outputs.dtype != drawn.dtype or not fits or outputs.shape != (users, *output_shape):
            return f"{drawn.dtype} of shape {(users, *output_shape)}"
        if not (self._may_release(outputs, values) if local else self.support.may_hold(outputs)):
            return "outputs that it can have"
        return ""

    def _may_release(self, outputs: NDArray[Any], values: NDArray[Any]) -> bool:
        """Return whether a local randomiser can release all of these outputs."""
        return all_possible(self, outputs, values[0])

    @property
    def arithmetic(self) -> str:
        """IDEALISED, or EXACT where the claim holds to the last bit; a field of many mechanisms."""
        return IDEALISED

    @property
    def value_axes(self) -> int | None:
        """The number of axes of one value; None where an array of any shape is one value."""
        return self.values.axes

    @property
    def value_shape(self) -> tuple[int, ...] | None:
        """The shape of one value without its hidden axes; None where each release declares it."""
        shape: tuple[int, ...] | None = getattr(self.values, "shape", None)
        return shape if self.values.axes else ()

    @property
    def hidden_axes(self) -> int:
        """How many of the last axes of a value have lengths that no output shows."""
        return 0

    @property
    def loss_is_upper_bound(self) -> bool:
        """Whether `loss` is only an upper bound, which no pair of neighbours attains."""
        return False

    @property
    def why_no_formula(self) -> str:
        """Why `loss` is no formula that the density attains; "" where it is one."""
        return "an upper bound, which no pair attains" if self.loss_is_upper_bound else ""

    @property
    def drawn_numbers(self) -> dict[str, Any]:
        """The numbers of the drawn law that are not declared parameters, as exact plain numbers."""
        return {}

    @property
    def drawn_tables(self) -> list[dict[str, Any]]:
        """The tables of integers that exact draws come from, as plain numbers."""
        return []

    def __post_init__(self) -> None:
        for name, meaning in parameters_of(type(self)).items():
            checked = meaning.domain_of(self).check(
                f"{type(self).__name__}.{name}", getattr(self, name)
            )
            object.__setattr__(self, name, checked)
        _ = self.loss  # a mechanism without a known cost cannot be made

    def __repr__(self) -> str:
        texts = [
            f"{field.name}={_field_repr(getattr(self, field.name))}"
            for field in dataclasses.fields(self)
            if field.name in ALWAYS_IN_REPR or getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join(texts)})"

    def losses(self) -> Iterator[tuple[Item, int]]:
        """Yield the loss, once."""
        yield self.loss, 1

    @property
    def reversed(self) -> Loss:
        """The privacy loss with the two neighbours exchanged."""
        return self.loss.reversed

    @classmethod
    def knob(cls, **fixed: Any) -> tuple[str, Interval]:
        """Return the name and the range of the parameter that `calibrate` searches.

        Parameters
        ----------
        **fixed : object
            The other fields, by name; those without a default must be given.

        Returns
        -------
        name : str
            The name of the field.
        domain : Interval
            Its allowed range, given the fixed fields.

        Raises
        ------
        ParameterError
            If fields are missing or unknown, or the class has no such parameter.
        """
        declared = parameters_of(cls)
        name = next((n for n, meaning in declared.items() if meaning.knob), "")
        defaults = {f.name: f.default for f in dataclasses.fields(cls) if f.name != name}
        needed = [n for n, default in defaults.items() if default is REQUIRED]
        if not name or not set(needed) <= set(fixed) <= set(defaults):
            allowed = f"fields of {cls.__name__} other than its knob {name!r}"
            raise ParameterError("fixed", fixed, f"{allowed}, {needed} among them")
        fixed_fields = cls._other_fields(fixed)
        for field, value in vars(fixed_fields).items():
            declared[field].domain_of(fixed_fields).check(f"{cls.__name__}.{field}", value)
        domain = declared[name].domain_of(fixed_fields)
        if not isinstance(domain, Interval):
            raise ParameterError("knob", name, "a real number")
        return name, domain

    @classmethod
    def _other_fields(cls, fixed: dict[str, Any]) -> SimpleNamespace:
        """Return the fields but the calibrated one, those that are not given by their defaults."""
        declared = parameters_of(cls)
        fields = dataclasses.fields(cls)
        return SimpleNamespace(
            **{f.name: fixed.get(f.name, f.default) for f in fields if not declared[f.name].knob}
        )

    @classmethod
    def closed_form(cls, epsilon: float, delta: float, **fixed: Any) -> float | None:
        """Return the value of the calibrated parameter in closed form, or None where there is none.

        Parameters
        ----------
        epsilon : float
            What a release costs, in nats.
        delta : float
            At which delta.
        **fixed : object
            The other fields, by name, as for `knob`.

        Returns
        -------
        float or None
            To round-off; `calibrate` moves it to the private side.
        """
        return cls._closed_form(epsilon, delta, cls._other_fields(fixed))

    @classmethod
    def _closed_form(cls, epsilon: float, delta: float, fields: Any) -> float | None:
        del epsilon, delta, fields
        return None

    def with_noise_factor(self, factor: float) -> Self:
        """Return the same mechanism with its calibrated parameter multiplied by ``factor``.

        Parameters
        ----------
        factor : float
            Multiplies the parameter that `knob` names, such as the noise scale.

        Returns
        -------
        Mechanism
            A new mechanism; the other fields stay.

        Raises
        ------
        ParameterError
            If the mechanism has no such parameter.
        """
        knob = next((n for n, meaning in parameters_of(type(self)).items() if meaning.knob), None)
        if knob is None:
            raise ParameterError(
                "plan_of",
                self,
                "made of mechanisms, each with a parameter to calibrate, such as a noise scale",
            )
        changes = {knob: factor * getattr(self, knob)}
        changed: Self = dataclasses.replace(self, **changes)
        return changed

    @classmethod
    def instances(cls) -> list[Self]:
        """Return one mechanism for every combination of the parameters' typical values.

        Returns
        -------
        list of Mechanism
            At least one; the tests and the table of mechanisms use them.
        """
        declared = parameters_of(cls)
        combinations = itertools.product(*(meaning.typical for meaning in declared.values()))
        return [cls(**dict(zip(declared, values, strict=True))) for values in combinations]


def registry() -> tuple[type[Mechanism], ...]:
    """Return every declared mechanism class.

    Returns
    -------
    tuple of type
        The subclasses of `Mechanism` decorated with `declare`, in alphabetical order.

    Examples
    --------
    >>> from mechanisms import registry
    >>> [cls.__name__ for cls in registry()][:3]
    ['AboveThreshold', 'BinaryLabel', 'Clamped']
    """
    importlib.import_module("mechanisms.base.every_module")  # it declares them
    return tuple(sorted(REGISTERED, key=lambda cls: cls.__name__))


def all_possible(mechanism: Mechanism, outputs: NDArray[Any], value: NDArray[Any]) -> bool:
    """Return whether the density of a value is positive at all of these outputs."""
    same = np.broadcast_to(value, (len(outputs), *value.shape))
    return bool((mechanism.log_density(outputs, same, each=True) > -math.inf).all())


def draw_shape(size: int | None, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of ``size`` draws of an array of the given shape."""
    return shape if size is None else (SIZE.check("size", size), *shape)


def sum_log_density(terms: NDArray[Any], value_axes: int, each: bool) -> Array:
    """Return log-densities summed over the last ``value_axes`` axes; ``each`` keeps the batch.

    The batch is the first of these axes, which ``each`` leaves out of the sum.
    """
    axes = tuple(range(each - value_axes, 0)) if value_axes else ()
    result: Array = terms.sum(axis=axes) if axes else terms
    return result


def _field_repr(value: object) -> str:
    """Return a field as source code; a function by the name it is imported by."""
    if isinstance(value, np.ufunc):
        return f"numpy.{value.__name__}"
    if callable(value) and not isinstance(value, Mechanism):
        return f"{value.__module__}.{getattr(value, '__qualname__', type(value).__name__)}"
    return repr(value)


def cache_blocks(rows: NDArray[Any], width: int) -> Iterator[slice]:
    """Return slices of the first axis that fit into the cache, at ``width`` bytes a row."""
    step = max(64, CACHE_BYTES // width)  # enough very wide rows to justify the calls
    return (slice(start, start + step) for start in range(0, len(rows), step))
