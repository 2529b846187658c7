"""Anything that estimates, as one function of data, generator and the part of its noise.

An algorithm with ``plan`` and ``run`` goes through a ledger, which can be told to draw less noise;
an estimator with ``fit`` is copied for every run; a function is called.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.plans.plan import Plan
from audits.adapters.reduced_noise import FACTOR, FainterLedger
from audits.algorithm_runs.replaying import declared_plan

LABELS = "label-replace"
DataOf = Callable[[Array, Array], Any]


@final
@dataclass(frozen=True, slots=True)
class Subject:
    """What is audited.

    ``kind`` is "gate" (plan and run), "estimator" (fit) or "function" ``(x, y, rng)``, which may
    also take ``noise``.  ``data_of`` turns (x, y) into what it is given, but for functions.
    ``local`` refuses algorithms that ask all users together, or one twice.
    """

    given: Any
    kind: str
    data_of: DataOf | None = None
    local: bool = False

    @classmethod
    def of(cls, given: Any, data_of: DataOf | None = None, local: bool = False) -> Subject:
        """Recognise it, or raise `ParameterError`."""
        if all(callable(getattr(given, name, None)) for name in ("plan", "run")):
            return cls(given, "gate", data_of, local)
        if callable(getattr(given, "fit", None)):
            return cls(given, "estimator", data_of)
        if not callable(given):
            allowed = "an algorithm (plan, run), an estimator (fit) or a function (x, y, rng)"
            raise ParameterError("algorithm", given, allowed)
        return cls(given, "function")

    @property
    def name(self) -> str:
        """Its class, or the function's name."""
        if self.kind == "function":
            return str(getattr(self.given, "__name__", "a function"))
        return type(self.given).__name__

    @property
    def labels_alone(self) -> bool:
        """Whether labels alone are private, and features public."""
        return getattr(self.given, "neighbours", None) == LABELS

    @property
    def turns(self) -> bool:
        """Whether its noise can be turned down."""
        if self.kind == "function":
            return "noise" in inspect.signature(self.given).parameters
        return self.kind == "gate"

    def plan(self, x: Array, y: Array) -> Plan | None:
        """What it declares for data of this shape; None where it declares nothing."""
        if self.kind != "gate":
            return None
        data, public = self._behind(x, y)
        return declared_plan(self.given, data, public)

    def estimate(self, x: Array, y: Array, rng: np.random.Generator, noise: float = 1.0) -> Array:
        """Its estimate from features ``x`` and targets ``y``, with ``noise`` times its noise."""
        noise = self._reached(noise)
        if self.kind == "function":
            more = {"noise": noise} if self.turns else {}
            return _known(np.asarray(self.given(x, y, rng, **more), dtype=float))
        if self.kind == "estimator":
            one = _copied(self.given, rng)
            data = (x, y) if self.data_of is None else self.data_of(x, y)
            return _one_vector(one.fit(*data).coef_)
        return _one_vector(self.run(self._behind(x, y), rng, noise))

    def answer(self, data: Any, rng: np.random.Generator, noise: float = 1.0) -> Array:
        """Its result on data that are all private, with ``noise`` times its noise."""
        noise = self._reached(noise)
        if self.kind == "gate":
            return _known(np.asarray(self.run((data, None), rng, noise), dtype=float))
        if self.kind != "function":
            raise ParameterError("algorithm", self.given, "an algorithm or a function (data, rng)")
        more = {"noise": noise} if self.turns else {}
        return _known(np.asarray(self.given(data, rng, **more), dtype=float))

    def run(self, behind: tuple[Any, Any], rng: np.random.Generator, noise: float = 1.0) -> Any:
        """The result of plan and run on data behind the gate and what is public beside them."""
        algorithm, (data, public) = self.given, behind
        if noise == 0 and "non_private" in parameters(algorithm):
            # its own form without noise, which knows that there is none
            algorithm = copy.copy(algorithm)
            algorithm.epsilon, algorithm.non_private = math.inf, True
        plan = declared_plan(algorithm, data, public)
        return algorithm.run(FainterLedger(data, plan, noise, rng, public, self.local))

    def _reached(self, noise: float) -> float:
        """The part of its noise, if that can be turned."""
        noise = FACTOR.check("noise", noise)
        if noise != 1 and not self.turns:
            allowed = f"1: the noise of {self.name} is out of reach (no plan and run)"
            raise ParameterError("noise", noise, allowed)
        return noise

    def _behind(self, x: Array, y: Array) -> tuple[Any, Any]:
        """Data behind the gate, and what is public."""
        if getattr(self.given, "classes", None) is not None:
            y = (y > 0).astype(np.intp)
        if self.labels_alone:
            return y, x
        return (x, y) if self.data_of is None else self.data_of(x, y), None


def parameters(estimator: Any) -> dict[str, Any]:
    """scikit-learn's parameters; none of what has none."""
    return dict(estimator.get_params(deep=False)) if hasattr(estimator, "get_params") else {}


def _copied(estimator: Any, rng: np.random.Generator) -> Any:
    """A fresh estimator with a seed of its own."""
    from sklearn.base import clone

    one = clone(estimator) if hasattr(estimator, "get_params") else copy.deepcopy(estimator)
    if hasattr(one, "random_state"):
        one.random_state = int(rng.integers(2**32))
    return one


def _known(estimate: Array) -> Array:
    """An estimate that says something."""
    if not np.isfinite(estimate).all():
        raise ParameterError("algorithm", "an estimate that is not finite", "one of finite numbers")
    return estimate


def _one_vector(result: Any) -> Array:
    """Coefficients as one vector: of several classes, how the second differs from the first."""
    found = np.asarray(result, dtype=float)
    if found.ndim == 2:
        found = found[1] - found[0] if len(found) > 1 else found[0]
    if found.ndim != 1:
        shown = f"a result of shape {found.shape}"
        raise ParameterError("algorithm", shown, "one that returns one coefficient a feature")
    return _known(found)
