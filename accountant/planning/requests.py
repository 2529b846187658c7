"""Requested releases: a family of mechanisms, how many releases, and the wanted accuracy.

`allocate` turns a list of requests and a budget into noise scales.  A family of mechanisms is what
makes a release from a noise scale: a class or a function.  A class has a method ``knob``, which
returns the name of the parameter that sets the noise, and the values that this parameter may have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, cast, final

from accountant.domains import POSITIVE, IntegerRange, Interval
from accountant.errors import ParameterError
from accountant.numerics.search import greatest_float_that
from accountant.planning.error_measures import Measure
from accountant.plans.plan import COUNT, Plan, as_plan

Family = type[Plan] | Plan | Callable[[float], Plan]
MAX_NAME_LENGTH = 100
RELATIVE_TOLERANCE = 1e-12  # relative precision of the largest scale that meets a target
# A parameter is a noise scale if its largest value is at least this many times its least one.
NOISE_SCALE_RANGE = 1e12
STRIDE = 8  # factor from one scale to the next while the target is sought


@final
@dataclass(frozen=True, slots=True)
class Wanted:
    """A request for ``count`` releases of one kind.

    Their noise is set by ``scale``, follows from a ``target``, or is a share of the budget by
    ``weight``: exactly one of the three is given, and none if the family is a plan.

    Parameters
    ----------
    family : Mechanism class, callable or Plan
        A mechanism class, its other fields given as keywords; a function from a noise scale to a
        plan; or a plan, which has its noise.
    error : Measure or callable, optional
        How much noise hurts: `Deviation`, `Maximum`, `Selection`, or a function of the scale that
        does not decrease.
    count : int
        At least 1; 0 as well where the noise is given by ``scale`` or by a plan.
    scale : float, optional
        The noise scale, set by hand.
    target : float, optional
        An error not to be exceeded.
    weight : float, optional
        Weight of the error in the sum that `allocate` makes small.
    name : str
        For tables.
    **fields : Any
        Other fields of the mechanism class.

    Examples
    --------
    >>> from accountant import Deviation, Wanted
    >>> from mechanisms import Laplace
    >>> weekly = Wanted(Laplace, Deviation(), target=9.0, count=4, name="weekly count")
    >>> weekly.label, round(weekly.settled, 3)
    ('weekly count', 6.364)
    """

    family: Family
    error: Measure | Callable[[float], float] | None
    count: int
    scale: float | None
    target: float | None
    weight: float | None
    name: str
    fields: tuple[tuple[str, Any], ...]
    knob: str = field(compare=False, repr=False)  # the name of the noise scale
    domain: Interval = field(compare=False, repr=False)  # the noise scales that are allowed

    def __init__(
        self,
        family: Family,
        error: Measure | Callable[[float], float] | None = None,
        *,
        count: int = 1,
        scale: float | None = None,
        target: float | None = None,
        weight: float | None = None,
        name: str = "",
        **fields: Any,
    ) -> None:
        if not isinstance(family, Plan) and not callable(family):
            raise ParameterError("family", family, "a mechanism class, a plan, or a function")
        if fields and not isinstance(family, type):
            raise ParameterError("family", family, f"a mechanism class to take {sorted(fields)}")
        if not isinstance(name, str) or not (name.isprintable() and len(name) <= MAX_NAME_LENGTH):
            raise ParameterError(
                "name", name, f"printable text of at most {MAX_NAME_LENGTH} characters"
            )
        noise_options = {"scale": scale, "target": target, "weight": weight}
        given_options = {
            key: POSITIVE.check(key, number)
            for key, number in noise_options.items()
            if number is not None
        }
        has_noise = isinstance(family, Plan)
        if len(given_options) != (0 if has_noise else 1):
            how_many = "none" if has_noise else "one"
            raise ParameterError("family", family, f"given {how_many} of scale, target and weight")
        if error is None and not has_noise and scale is None:
            raise ParameterError("error", error, "a measure, such as Deviation(), or a function")
        is_measure = hasattr(error, "of") or callable(error)
        # A class, such as `Deviation` without brackets, is callable but no measure.
        if error is not None and (isinstance(error, type) or not is_measure):
            raise ParameterError("error", error, "a measure, such as Deviation(), or a function")
        knob, domain = _noise_scale_parameter(family, fields)
        count_domain = COUNT if weight is None and target is None else IntegerRange(1)
        # The dataclass is frozen, so its fields are set past `__setattr__`.
        values = {
            "family": family,
            "error": error,
            "count": count_domain.check("count", count),
            "name": name,
            "fields": tuple(sorted(fields.items())),
            "knob": knob,
            "domain": domain,
        }
        for key, value in (values | dict.fromkeys(noise_options) | given_options).items():
            object.__setattr__(self, key, value)

    @property
    def unit(self) -> float:
        """Where searches for a noise scale begin: at the sensitivity, or 1 where there is none."""
        return float(dict(self.fields).get("sensitivity", 1.0))

    @property
    def kind(self) -> Hashable:
        """The key of requests with equal noise: all fields but name and count."""
        return self.family, self.error, self.scale, self.target, self.weight, self.fields

    def plan(self, scale: float | None) -> Plan:
        """Return one release at a noise scale.

        Parameters
        ----------
        scale : float or None
            In the units of the query; None where the family has its noise.

        Returns
        -------
        Plan
            One release.
        """
        if isinstance(self.family, Plan):
            return self.family
        if isinstance(self.family, type):
            return cast("Callable[..., Plan]", self.family)(
                **dict(self.fields), **{self.knob: scale}
            )
        return as_plan(self.family(cast("float", scale)))

    def error_at(self, scale: float | None) -> float | None:
        """Return the error of one release at a noise scale.

        Parameters
        ----------
        scale : float or None
            In the units of the query; None where the family has its noise.

        Returns
        -------
        float or None
            In the units of the query; None where no measure was given.
        """
        return None if self.error is None else self.error_of(self.plan(scale), scale)

    def error_of(self, plan: Plan, scale: float | None) -> float:
        """Return the error of the plan that was built at a noise scale.

        A measure has to be given; `error_at` returns None where there is none.

        Parameters
        ----------
        plan : Plan
            What `plan` returned.
        scale : float or None
            The scale it was built at.

        Returns
        -------
        float
            In the units of the query.
        """
        measure = getattr(self.error, "of", None)
        error = self.error(scale) if measure is None else measure(plan)  # type: ignore[operator,misc,arg-type]  # a function has no `of`
        if not 0 <= error < math.inf:
            raise ParameterError("error", error, "a number from 0 on")
        return float(error)

    @property
    def settled(self) -> float | None:
        """The noise scale, where it does not depend on the other releases; else None.

        It is the scale set by hand, or the largest one that meets the target.
        """
        if self.target is None:
            return self.scale

        def error(scale: float) -> float:
            return cast("float", self.error_at(scale))

        scale_within_target = largest_scale(error, self.target, self.unit, self.domain)
        if scale_within_target is None:
            raise ParameterError("target", self.target, f"an error that {self.label} can reach")
        return scale_within_target

    @property
    def label(self) -> str:
        """The name of the request, or of its family."""
        named = type(self.family) if isinstance(self.family, Plan) else self.family
        return self.name or str(getattr(named, "__name__", type(named).__name__))


def _noise_scale_parameter(family: Family, fields: dict[str, Any]) -> tuple[str, Interval]:
    """Return the name of the parameter that is the noise scale, and its domain.

    Refuse a class whose noise is set by something else, such as a probability.
    """
    if not isinstance(family, type):
        return "scale", POSITIVE
    noise_parameter = getattr(family, "knob", None)
    if noise_parameter is None:
        raise ParameterError("family", family, "a mechanism class with a noise scale")
    name, domain = noise_parameter(**fields)
    if not domain.high >= NOISE_SCALE_RANGE * domain.low > 0:
        raise ParameterError("family", family, "a mechanism calibrated by a noise scale")
    return name, domain


def largest_scale(
    error: Callable[[float], float], target: float, start: float, domain: Interval
) -> float | None:
    """Return the greatest scale of the domain that meets the target; None where none does.

    A scale meets it if ``error(scale) <= target``.  ``error`` does not decrease, so these scales
    end at a point: it is approached from below, to `RELATIVE_TOLERANCE`.  Strides from ``start``
    find ``low``, which meets the target, and ``high``, which does not; a bisection follows.
    """
    low = high = min(max(start, domain.low), domain.high)
    while error(low) > target:
        if low == domain.low:
            return None
        low, high = max(low / STRIDE, domain.low), low
    # Most errors are proportional to the scale, or nearly so.
    guess = low * (target / error(low)) * (1 - RELATIVE_TOLERANCE / 2) if error(low) > 0 else low
    if low < guess <= domain.high and error(guess) <= target:
        low = guess
        high = min(guess * (1 + RELATIVE_TOLERANCE), domain.high)
    while error(high) <= target:
        if high == domain.high:
            return high
        low, high = high, min(STRIDE * high, domain.high)
    return greatest_float_that(
        lambda scale: error(scale) <= target,
        low=low,
        high=high,
        relative=RELATIVE_TOLERANCE,
        mean=lambda good, bad: good + (bad - good) / 2,
    )
