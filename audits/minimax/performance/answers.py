"""The report on one problem: its minimax lower bound, and the project's algorithms beside it.

The algorithms run on the hard family from which the bound is proved; see `measure_risk_gap`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.errors import ParameterError
from audits.minimax.bounds.bound import LowerBound
from audits.minimax.performance.algorithm_table import algorithms_for
from audits.minimax.performance.gap import RiskGap, measure_risk_gap
from audits.minimax.problems import bound_function, lower_bound, sample_size


@final
@dataclass(frozen=True, slots=True)
class ProblemReport:
    """One problem at one setting, with the gap of each algorithm to the bound.

    With fewer than ``users`` users no private algorithm reaches the risk ``error``; both are None
    if no error was asked for.
    """

    problem: str
    setting: dict[str, Any]  # the parameters of the bound, by name
    bound: LowerBound
    gaps: tuple[RiskGap, ...]  # one for each algorithm
    error: float | None = None
    users: int | None = None


def report_problem(
    problem: str,
    given: Mapping[str, Any],
    error: float | None,
    runs: int,
    rng: np.random.Generator,
    on_progress: Callable[[str], None] = lambda _: None,
) -> ProblemReport:
    """Return the report on a problem, with ``given`` in place of its example's values.

    ``on_progress`` is called with a line for each algorithm.
    """
    examples = [entry.setting for entry in algorithms_for(problem)]
    accepted = inspect.signature(bound_function(problem)).parameters
    for name, value in given.items():
        if name not in accepted:
            raise ParameterError(
                f"--{name}", value, f"left out: {problem} takes {', '.join(accepted)}"
            )
    setting = dict(examples[0] if examples else {}) | dict(given)
    bound = lower_bound(problem, **setting)
    users = None
    if error is not None:
        parameters = {name: value for name, value in setting.items() if name != "n"}
        users = sample_size(problem, error, **parameters)
    gaps = []
    for match, stream in zip(algorithms_for(problem), rng.spawn(len(examples)), strict=True):
        # The hard family is that of the setting's model; algorithms for another one are left out.
        if _model(match.setting) != _model(setting):
            continue
        on_progress(f"{problem}: {match.algorithm}")
        gaps.append(measure_risk_gap(match, setting, runs, stream))
    return ProblemReport(problem, setting, bound, tuple(gaps), error, users)


def _model(setting: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the privacy model of a setting, local or central, and whether delta is above 0."""
    return setting.get("model", "local"), bool(setting.get("delta"))


def size_text(points: int) -> str:
    """Return a number of any size as text: exact below 10^9, else a power of two."""
    return f"{points:,}" if points < 10**9 else f"2^{math.log2(points):.4g}"


def setting_text(setting: Mapping[str, Any]) -> str:
    """Return the setting as text, such as ``n = 10,000, p = 20``."""
    return ", ".join(
        f"{name} = {value:,}" if isinstance(value, int) else f"{name} = {value}"
        for name, value in setting.items()
    )
