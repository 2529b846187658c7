"""How large the error of a release is expected to be, as its mechanism declares it.

A mechanism declares what it can say of itself by a property ``deviation``, or by a method
``error_quantile(probability)``, ``expected_maximum(dimension)``, ``selection_error(candidates)`` or
``selection_quantile(candidates, probability)``; no accountant knows which do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Protocol, final

from accountant.domains import IntegerRange, Interval
from accountant.errors import ParameterError
from accountant.plans.plan import Plan, Release

SIZE = IntegerRange(1)
PROBABILITY = Interval(0.0, 1.0, "()")


class Measure(Protocol):
    """A measure of the error of a release."""

    def of(self, plan: Plan) -> float:
        """Return the error of one release, in the units of its query."""
        ...


@final
@dataclass(frozen=True, slots=True)
class Deviation:
    """The standard deviation of the noise in a coordinate.

    Examples
    --------
    >>> from accountant import Deviation
    >>> from mechanisms import Laplace
    >>> round(Deviation().of(Laplace(1.0)), 4)
    1.4142
    """

    def of(self, plan: Plan) -> float:
        """Return the error of one release.

        Parameters
        ----------
        plan : Plan
            A mechanism that declares its deviation.

        Returns
        -------
        float
            In the units of the query.
        """
        return float(_declared(plan, "deviation", self))

    def __str__(self) -> str:
        return "deviation"


@final
@dataclass(frozen=True, slots=True)
class Quantile:
    """The error that the noise of a coordinate stays within, with a probability.

    Parameters
    ----------
    probability : float
        In (0, 1).

    Examples
    --------
    >>> from accountant import Quantile
    >>> from mechanisms import DiscreteLaplace
    >>> Quantile(0.95).of(DiscreteLaplace(1.0))
    3.0
    """

    probability: float

    def __post_init__(self) -> None:
        probability = PROBABILITY.check("probability", self.probability)
        object.__setattr__(self, "probability", probability)

    def of(self, plan: Plan) -> float:
        """Return the error of one release.

        Parameters
        ----------
        plan : Plan
            A mechanism that declares its quantiles.

        Returns
        -------
        float
            In the units of the query; rounded up.
        """
        return float(_declared(plan, "error_quantile", self)(self.probability))

    def __str__(self) -> str:
        return f"quantile {self.probability:g}"


@final
@dataclass(frozen=True, slots=True)
class Maximum:
    """The expected greatest noise in several coordinates.

    Parameters
    ----------
    dimension : int
        Number of coordinates, at least 1.

    Examples
    --------
    >>> from accountant import Maximum
    >>> from mechanisms import Laplace
    >>> round(Maximum(3).of(Laplace(1.0)), 4)
    1.8333
    """

    dimension: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension", SIZE.check("maximum", self.dimension))

    def of(self, plan: Plan) -> float:
        """Return the error of one release.

        Parameters
        ----------
        plan : Plan
            A mechanism that declares its expected maximum.

        Returns
        -------
        float
            In the units of the query.
        """
        return float(_declared(plan, "expected_maximum", self)(self.dimension))

    def __str__(self) -> str:
        return f"maximum of {self.dimension:,}"


@final
@dataclass(frozen=True, slots=True)
class Selection:
    """How far the winner's score lies below the best, at worst: expected, or with a probability.

    Parameters
    ----------
    candidates : int
        Number of candidates, at least 2.
    probability : float, optional
        In (0, 1): the distance is not exceeded with this probability.  Without it the distance is
        the expected one.

    Examples
    --------
    >>> from accountant import Selection
    >>> from mechanisms import Exponential
    >>> round(Selection(300).of(Exponential(scale=1.0)), 2)
    5.7
    >>> round(Selection(300, 0.95).of(Exponential(scale=1.0)), 2)
    8.64
    """

    candidates: int
    probability: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "candidates", SIZE.check("selection", self.candidates))
        if self.probability is not None:
            probability = PROBABILITY.check("probability", self.probability)
            object.__setattr__(self, "probability", probability)

    def of(self, plan: Plan) -> float:
        """Return the error of one release.

        Parameters
        ----------
        plan : Plan
            A mechanism that declares its selection error.

        Returns
        -------
        float
            In the units of the scores.
        """
        if self.probability is None:
            return float(_declared(plan, "selection_error", self)(self.candidates))
        quantile = _declared(plan, "selection_quantile", self)
        return float(quantile(self.candidates, self.probability))

    def __str__(self) -> str:
        among = f"selection among {self.candidates:,}"
        return among if self.probability is None else f"{among}, quantile {self.probability:g}"


def _declared(plan: Plan, name: str, measure: object) -> Any:
    """Return what the one mechanism of a plan declares by the property or method ``name``."""
    # A mechanism that post-processes the answer of another one has its own error.
    mechanisms = set(inner_plans(plan, inside_mechanisms=False))
    if len(mechanisms) == 1:
        declared_error = getattr(mechanisms.pop(), name, None)
        if declared_error is not None:
            return declared_error
    raise ParameterError(
        "error", measure, f"one that {type(plan).__name__} declares, or a function"
    )


def inner_plans(plan: Plan, inside_mechanisms: bool = True) -> Iterator[Plan]:
    """Yield the mechanisms and bare losses of a plan, also inside samples and groups.

    ``inside_mechanisms`` says whether to look for mechanisms inside others, too.
    """
    children = [
        child
        for field in fields(plan)  # type: ignore[arg-type]  # every plan is a dataclass
        for value in [getattr(plan, field.name)]
        for child in (value if isinstance(value, tuple) else (value,))
        if isinstance(child, Plan)
    ]
    is_leaf = not children or (not inside_mechanisms and hasattr(plan, "release"))
    if isinstance(plan, Release) and is_leaf:
        yield plan
        return
    for child in children:
        yield from inner_plans(child, inside_mechanisms)
