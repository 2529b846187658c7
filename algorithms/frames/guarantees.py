"""What a statistic of a table may cost, and the discrete noise that meets this with least error.

A caller states epsilon (perhaps with delta), rho of zCDP, or the scale of the noise itself.  The
noise is added to sums of whole steps, so it is discrete Laplace or discrete Gaussian noise.

References: Ghosh, Roughgarden & Sundararajan (2012); Canonne, Kamath & Steinke (2020).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, final

from accountant.domains import DELTA, POSITIVE, OneOf
from accountant.errors import ParameterError
from accountant.planning.calibration import calibrate
from algorithms.frames.bases import Sensitivities
from algorithms.frames.noise_tails import Noise
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace

COST = "one of them: it says what the answer may cost, such as epsilon=1.0"
NOISE = OneOf(("auto", "laplace", "gaussian"))


@final
@dataclass(frozen=True, slots=True)
class Guarantee:
    """What a statistic may cost: one of epsilon (with delta), rho, or a scale of the noise.

    None of them is stated where the cost is said later, by `Question.costing`.
    ``noise`` is a kind of noise, or ``"auto"`` to choose among those that can give the guarantee.
    """

    epsilon: float | None = None
    delta: float = 0.0
    rho: float | None = None
    scale: float | None = None
    noise: str = "auto"

    def __post_init__(self) -> None:
        stated = [name for name in ("epsilon", "rho", "scale") if getattr(self, name) is not None]
        if len(stated) > 1:
            raise ParameterError("epsilon, rho, scale", stated, COST)
        for name in stated:
            object.__setattr__(self, name, POSITIVE.check(name, getattr(self, name)))
        object.__setattr__(self, "delta", DELTA.check("delta", self.delta))
        NOISE.check("noise", self.noise)
        if self.delta and self.epsilon is None:
            raise ParameterError("delta", self.delta, "given with epsilon")
        if self.noise == "gaussian" and self.epsilon is not None and not self.delta:
            raise ParameterError("delta", self.delta, "above 0 for Gaussian noise")
        if self.noise == "laplace" and self.rho is not None:
            raise ParameterError("noise", self.noise, '"gaussian" or "auto" for a rho')
        if self.noise == "auto" and self.scale is not None:
            raise ParameterError(
                "noise", self.noise, '"laplace" or "gaussian" where a scale is given'
            )

    def check_stated(self) -> None:
        """Refuse a question that does not say what it may cost."""
        if self.epsilon is None and self.rho is None and self.scale is None:
            raise ParameterError("epsilon, rho, scale", [], COST)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of noise that can give the guarantee."""
        if self.noise != "auto":
            return (self.noise,)
        if self.rho is not None:
            return ("gaussian",)
        return ("laplace", "gaussian") if self.delta else ("laplace",)

    def mechanism(self, noise: str, moved: Sensitivities, numbers: int, unit: float) -> Noise:
        """Return the least noise of one kind that meets the guarantee.

        ``moved`` are the sensitivities of the ``numbers`` sums that are released together, in
        steps, and ``unit`` is what a step is worth in the units of the scale.
        """
        kind: type[Any] = DiscreteLaplace if noise == "laplace" else DiscreteGaussian
        fields: dict[str, Any] = {"sensitivity": moved.l1}
        if noise == "gaussian":
            fields = {"sensitivity": moved.l2, "dimension": numbers}
        if self.scale is not None:
            noise_mechanism: Noise = kind(self.scale / unit, **fields)
        elif self.rho is not None:
            # rho = sensitivity^2 / (2 scale^2).  The rho that is proved for discrete noise may be
            # that of the scale sqrt(scale^2 - 4), so two larger scales are tried next.
            scale = moved.l2 / math.sqrt(2 * self.rho)
            candidate_scales = (
                s * (1 + 1e-12) for s in (scale, math.sqrt(scale * scale + 4), scale + 2)
            )
            noise_mechanism = next(
                option
                for option in (kind(s, **fields) for s in candidate_scales)
                if option.loss.rho <= self.rho
            )
        else:
            delta = self.delta if noise == "gaussian" else 0.0
            noise_mechanism = _calibrated(noise, self.epsilon, delta, tuple(fields.items()))
        return noise_mechanism

    def __str__(self) -> str:
        if self.scale is not None:
            return f"{self.noise} noise of scale {self.scale:g}"
        if self.rho is not None:
            return f"rho {self.rho:g}"
        if self.epsilon is None:
            return "no cost"
        return f"epsilon {self.epsilon:g}" + (f", delta {self.delta:g}" if self.delta else "")


@lru_cache(maxsize=256)
def _calibrated(noise: str, epsilon: float, delta: float, fields: tuple[Any, ...]) -> Any:
    """Return the least noise of a kind, with these fields of its class, that costs epsilon."""
    kind: type[Any] = DiscreteLaplace if noise == "laplace" else DiscreteGaussian
    try:
        return calibrate(kind, epsilon=epsilon, delta=delta, **dict(fields))
    except ParameterError as error:
        if error.argument != "epsilon" or epsilon <= 1:
            raise
        allowed = "smaller: so much would leave the counts next to no noise at all"
        raise ParameterError("epsilon", epsilon, allowed) from None
