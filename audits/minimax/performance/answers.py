"""What the command line answers of a problem: bound, construction, checks, our algorithms."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.errors import ParameterError
from audits.minimax.bounds.bound import LowerBound
from audits.minimax.performance.algorithm_table import matches_of
from audits.minimax.performance.gap import Distance, distance
from audits.minimax.problems import bound_of, lower_bound, sample_size


@final
@dataclass(frozen=True, slots=True)
class Answer:
    """Of one problem at one setting; ``users`` is the n below which ``error`` is out of reach."""

    problem: str
    setting: dict[str, Any]
    bound: LowerBound
    distances: tuple[Distance, ...]
    error: float | None = None
    users: int | None = None


def answer(
    problem: str,
    given: Mapping[str, Any],
    error: float | None,
    runs: int,
    rng: np.random.Generator,
    told: Callable[[str], None] = lambda _: None,
) -> Answer:
    """The problem with what is given in place of its example's values; ``told`` hears progress."""
    examples = [one.setting for one in matches_of(problem)]
    accepted = inspect.signature(bound_of(problem)).parameters
    for name, value in given.items():
        if name not in accepted:
            raise ParameterError(f"--{name}", value, f"left out: {problem} takes {_of(problem)}")
    setting = dict(examples[0] if examples else {}) | dict(given)
    bound = lower_bound(problem, **setting)
    users = None
    if error is not None:
        rest = {name: value for name, value in setting.items() if name != "n"}
        users = sample_size(problem, error, **rest)
    found = []
    for match, one in zip(matches_of(problem), rng.spawn(len(examples)), strict=True):
        # an algorithm of another model, by its example, is not run on this one's
        if _model(match.setting) != _model(setting):
            continue
        told(f"{problem}: {match.algorithm}")
        found.append(distance(match, setting, runs, one))
    return Answer(problem, setting, bound, tuple(found), error, users)


def _model(setting: Mapping[str, Any]) -> tuple[str, bool]:
    return setting.get("model", "local"), bool(setting.get("delta"))


def size_in_words(points: int) -> str:
    """A number of any size."""
    return f"{points:,}" if points < 10**9 else f"2^{math.log2(points):.4g}"


def setting_in_words(setting: Mapping[str, Any]) -> str:
    """As ``n = 10,000, p = 20``."""
    return ", ".join(
        f"{name} = {value:,}" if isinstance(value, int) else f"{name} = {value}"
        for name, value in setting.items()
    )


def _of(problem: str) -> str:
    return ", ".join(inspect.signature(bound_of(problem)).parameters)
