"""Any estimator under audit, called as one function of data, generator and noise factor.

There are three kinds.  An algorithm with ``plan`` and ``run`` is run behind a ledger that can draw
its noise multiplied by a factor from 0 to 1.  An estimator with ``fit`` is copied for every run.  A
function is called as it is.
"""

from __future__ import annotations

import copy
import inspect
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.plans.adjacency import Adjacency
from accountant.plans.plan import Plan
from algorithms.base.signal import NoSignalWarning
from audits.adapters.reduced_noise import NOISE_FACTOR, ReducedNoiseLedger
from audits.algorithm_runs.fits import declared_plan

DataOf = Callable[[Array, Array], Any]


@final
@dataclass(frozen=True, slots=True)
class EstimatorAdapter:
    """An algorithm, estimator or function under audit, with one way to call all of them.

    ``kind`` is "gate" (an algorithm with plan and run, which asks the data through a ledger, the
    gate), "estimator" (with fit) or "function" ``(x, y, rng)``, which may also take ``noise``.
    ``data_of`` maps features and targets (x, y) to the input of an algorithm or estimator; a
    function gets x and y.  ``local`` asks for the local model: algorithms that query all users
    together, or one user twice, are refused.  How estimators and functions ask is out of sight.

    `estimate` returns the coefficients of a regression, from features and targets.
    `release_result` returns any result on data that are all private.  Both call `run` for an
    algorithm.
    """

    algorithm: Any
    kind: str
    data_of: DataOf | None = None
    local: bool = False

    @classmethod
    def of(
        cls, algorithm: Any, data_of: DataOf | None = None, local: bool = False
    ) -> EstimatorAdapter:
        """Recognise the kind of an algorithm, or raise `ParameterError`."""
        if all(callable(getattr(algorithm, name, None)) for name in ("plan", "run")):
            return cls(algorithm, "gate", data_of, local)
        if callable(getattr(algorithm, "fit", None)):
            return cls(algorithm, "estimator", data_of)
        if not callable(algorithm):
            allowed = "an algorithm (plan, run), an estimator (fit) or a function (x, y, rng)"
            raise ParameterError("algorithm", algorithm, allowed)
        return cls(algorithm, "function")

    @property
    def name(self) -> str:
        """The name of the algorithm's class, or of the function."""
        if self.kind == "function":
            return str(getattr(self.algorithm, "__name__", "a function"))
        return type(self.algorithm).__name__

    @property
    def labels_only(self) -> bool:
        """True if only the labels are private and the features are public."""
        return getattr(self.algorithm, "neighbours", None) == Adjacency.LABEL_REPLACE

    @property
    def has_adjustable_noise(self) -> bool:
        """True if the noise can be reduced by a factor."""
        if self.kind == "function":
            return "noise" in inspect.signature(self.algorithm).parameters
        return self.kind == "gate"

    def plan(self, x: Array, y: Array) -> Plan | None:
        """The plan that the algorithm declares for data of this shape; None for other kinds."""
        if self.kind != "gate":
            return None
        data, public = self._private_and_public(x, y)
        return declared_plan(self.algorithm, data, public)

    def estimate(self, x: Array, y: Array, rng: np.random.Generator, noise: float = 1.0) -> Array:
        """The coefficients estimated from features ``x`` and targets ``y``.

        The noise of the algorithm is multiplied by ``noise``.  An intercept is left out.  Behind
        the gate a classifier gets two classes: targets above 0, and all others.
        """
        noise = self._checked_noise(noise)
        if self.kind == "function":
            noise_option = {"noise": noise} if self.has_adjustable_noise else {}
            return _checked_finite(
                np.asarray(self.algorithm(x, y, rng, **noise_option), dtype=float)
            )
        if self.kind == "estimator":
            estimator = _fresh_copy(self.algorithm, rng)
            data = (x, y) if self.data_of is None else self.data_of(x, y)
            return _coefficient_vector(estimator.fit(*data).coef_)
        coefficients = _coefficient_vector(self.run(self._private_and_public(x, y), rng, noise))
        has_intercept = getattr(self.algorithm, "fit_intercept", False)
        # the intercept is the last coefficient
        return coefficients[: x.shape[1]] if has_intercept else coefficients

    def release_result(self, data: Any, rng: np.random.Generator, noise: float = 1.0) -> Array:
        """The result on data that are all private; the noise is multiplied by ``noise``."""
        noise = self._checked_noise(noise)
        if self.kind == "gate":
            return _checked_finite(np.asarray(self.run((data, None), rng, noise), dtype=float))
        if self.kind != "function":
            raise ParameterError(
                "algorithm", self.algorithm, "an algorithm or a function (data, rng)"
            )
        noise_option = {"noise": noise} if self.has_adjustable_noise else {}
        return _checked_finite(np.asarray(self.algorithm(data, rng, **noise_option), dtype=float))

    def run(self, inputs: tuple[Any, Any], rng: np.random.Generator, noise: float = 1.0) -> Any:
        """The result of the algorithm's run on ``inputs``, which are (private, public) data."""
        algorithm, (data, public) = self.algorithm, inputs
        has_parameters = hasattr(algorithm, "get_params")
        if noise == 0 and has_parameters and "non_private" in algorithm.get_params(deep=False):
            # such an algorithm has a form of its own without noise
            algorithm = copy.copy(algorithm)
            algorithm.epsilon, algorithm.non_private = math.inf, True
        with warnings.catch_warnings():  # that the noise hides the signal is no news to an audit
            warnings.simplefilter("ignore", NoSignalWarning)
            plan = declared_plan(algorithm, data, public)
        return algorithm.run(ReducedNoiseLedger(data, plan, noise, rng, public, self.local))

    def _checked_noise(self, noise: float) -> float:
        """The noise factor, or `ParameterError` if the noise cannot be reduced."""
        noise = NOISE_FACTOR.check("noise", noise)
        if noise != 1 and not self.has_adjustable_noise:
            allowed = f"1: the noise of {self.name} is out of reach (no plan and run)"
            raise ParameterError("noise", noise, allowed)
        return noise

    def _private_and_public(self, x: Array, y: Array) -> tuple[Any, Any]:
        """The private data, and the public data or None."""
        # A classifier has a list of its classes, or like `LabelSGD` their number ``k``.
        has_count_of_classes = self.labels_only and hasattr(self.algorithm, "k")
        if has_count_of_classes or getattr(self.algorithm, "classes", None) is not None:
            # Behind the gate labels are the codes 0, 1, ... of the classes; only a classifier that
            # is limited to two classes has the labels -1 and 1.
            algorithm: Any = self.algorithm
            tags = algorithm.__sklearn_tags__() if hasattr(algorithm, "__sklearn_tags__") else None
            classifier_tags = getattr(tags, "classifier_tags", None)
            is_binary = getattr(classifier_tags, "multi_class", True) is False
            y = np.where(y > 0, 1, -1 if is_binary else 0)
        if self.labels_only:
            return y, x
        return (x, y) if self.data_of is None else self.data_of(x, y), None


def _fresh_copy(estimator: Any, rng: np.random.Generator) -> Any:
    """A copy that is not fitted and has new seeds from ``rng``, as have estimators within it."""
    from sklearn.base import clone

    if hasattr(estimator, "get_params"):
        unfitted = clone(estimator)
        for name in sorted(unfitted.get_params()):  # of one within it: inner__random_state
            if name.split("__")[-1] == "random_state":
                unfitted.set_params(**{name: int(rng.integers(2**32))})
        return unfitted
    unfitted = copy.deepcopy(estimator)
    if hasattr(unfitted, "random_state"):
        unfitted.random_state = int(rng.integers(2**32))
    return unfitted


def _checked_finite(estimate: Array) -> Array:
    """The estimate, or `ParameterError` if an entry is not finite."""
    if not np.isfinite(estimate).all():
        raise ParameterError("algorithm", "an estimate that is not finite", "one of finite numbers")
    return estimate


def _coefficient_vector(result: Any) -> Array:
    """Coefficients as one vector; with several classes, those of the second minus the first."""
    coefficients = np.asarray(result, dtype=float)
    if coefficients.ndim == 2:
        coefficients = (
            coefficients[1] - coefficients[0] if len(coefficients) > 1 else coefficients[0]
        )
    if coefficients.ndim != 1:
        shown = f"a result of shape {coefficients.shape}"
        raise ParameterError("algorithm", shown, "one that returns one coefficient a feature")
    return _checked_finite(coefficients)
