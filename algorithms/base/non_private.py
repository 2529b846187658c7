"""Fits without privacy, for comparison: they are requested explicitly, and every output says so."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, final

import numpy as np

from accountant.domains import POSITIVE
from accountant.errors import ParameterError
from accountant.losses.finite_pair import PairLoss
from accountant.numerics import Array
from accountant.plans.declared_releases import declare_release, parts_of
from accountant.plans.plan import Item, Plan, Release

PACKAGE = str(Path(__file__).parents[1])  # the files of all estimators
INFINITE_LOSS = PairLoss((1.0, 0.0), (0.0, 1.0))  # no outcome is possible on both neighbours


class NotPrivateWarning(UserWarning):
    """A warning that a fit or a prediction is not private."""


@final
@declare_release
@dataclass(frozen=True, slots=True)
class NoPrivacy(Release):
    """The absence of a mechanism: the value itself, with infinite epsilon and delta 1."""

    value_axes: ClassVar[None] = None

    @property
    def loss(self) -> PairLoss:
        """The infinite loss: two neighbours are distinguished with certainty."""
        return INFINITE_LOSS

    def release(self, value: Any, rng: Any = None, size: int | None = None) -> Any:
        """Return the value, ``size`` times."""
        del rng
        return np.array(value) if size is None else np.array([value] * size)

    def log_density(self, output: Any, value: Any, each: bool = False) -> Array:
        """Return 0 where the output is the value, else minus infinity."""
        del each
        return np.where(np.array_equal(output, value), 0.0, -np.inf)

    def losses(self) -> Iterator[tuple[Item, int]]:
        """Yield the loss, once."""
        yield self.loss, 1

    @property
    def reversed(self) -> PairLoss:
        """The loss with the two neighbours exchanged."""
        return self.loss.reversed


def has_no_privacy(plan: Plan) -> bool:
    """Return whether a part of the plan is released without noise."""
    return any(isinstance(part, NoPrivacy) for part in parts_of(plan))


def checked_epsilon(epsilon: object, non_private: object) -> float:
    """Return a positive epsilon; infinity if and only if ``non_private`` is True."""
    if not isinstance(non_private, (bool, np.bool_)):
        raise ParameterError("non_private", non_private, "True or False")
    if not non_private:
        if isinstance(epsilon, (float, np.floating)) and epsilon == math.inf:
            raise ParameterError("epsilon", epsilon, "finite, unless non_private=True")
        return POSITIVE.check("epsilon", epsilon)
    if isinstance(epsilon, (bool, np.bool_)) or epsilon != math.inf:
        raise ParameterError("epsilon", epsilon, "infinity, as non_private is True")
    return math.inf


def warn_not_private(estimator: Any, subject: str) -> None:
    """Warn that an output is not private; ``subject`` names it, with its verb."""
    message = f"{type(estimator).__name__}: {subject} NOT private (non_private=True)"
    warnings.warn(message, NotPrivateWarning, stacklevel=level_of_caller())


def level_of_caller() -> int:
    """Return the ``stacklevel`` of a warning of the calling function: the first call from outside.

    That is the first one that is not of this package.
    """
    level, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    return level
