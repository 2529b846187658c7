"""What is made of errors: statistics, a table, slopes."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from typing import Any

import numpy as np
from common import SYMBOLS, Errors, Figure, Grid, Setting

COLUMNS = (
    "figure", "panel", "value", "method", "users", "seeds", "mean", "standard_error",
    "minimum_of_10", "epsilon", "true_epsilon",
)  # fmt: skip
PAPER_RUNS = 10  # the paper reports the least error of as many runs


def statistics(errors: np.ndarray) -> tuple[float, float, float]:
    """Mean, its standard error, and the paper's statistic."""
    spread = errors.std(ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else 0.0
    return float(errors.mean()), float(spread), float(errors[:PAPER_RUNS].min())


def table(figure: Figure, grid: Grid, errors: Errors) -> str:
    """All that is drawn, as CSV."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(COLUMNS)
    for field, values in grid.panels.items():
        for value in values:
            setting = replace(grid.base, **{field: value})
            for method in figure.study.methods:
                for users in grid.users:
                    if (setting, users, method.name) in errors:
                        some = errors[setting, users, method.name]
                        numbers = *statistics(some), setting.epsilon, method.true_epsilon(setting)
                        start = figure.name, field, value, method.name, users, len(some)
                        out.writerow([*start, *(f"{number:.6g}" for number in numbers)])
    return text.getvalue()


def slopes(figure: Figure, grid: Grid, errors: Errors) -> list[str]:
    """Least squares of ln(mean error) on the logarithm of what varies, and its jackknife s.e."""

    def fitted(values: tuple[Any, ...], keys: list[tuple[Setting, int, str]]) -> str:
        runs = np.array([errors[key] for key in keys])
        seeds = runs.shape[1]
        total = runs.sum(axis=1, keepdims=True)
        means = np.hstack([total / seeds, (total - runs) / max(seeds - 1, 1)])  # all, all but one
        logs = np.log(np.maximum(means, 1e-12))
        slope, *others = np.polyfit(np.log(np.array(values, float)), logs, 1)[0]
        return f"{slope:+.3f} ± {np.sqrt((seeds - 1) * np.var(others)):.3f}"

    lines = []
    for method in (m for m in figure.study.methods if not m.base_only):
        along = [(grid.base, users, method.name) for users in grid.users]
        parts = [f"n^({fitted(grid.users, along)})"]
        for field, values in grid.panels.items():
            settings = [replace(grid.base, **{field: value}) for value in values]
            keys = [(setting, grid.users[-1], method.name) for setting in settings]
            parts.append(f"{SYMBOLS[field]}^({fitted(values, keys)})")
        lines.append(f"{figure.name} slopes, {method.name}: " + ", ".join(parts))
    return lines
