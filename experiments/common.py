"""What the figures share: what a figure is, and its runs over seeds.

A figure is a study (its data and methods) and a grid (what its panels vary).
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from threadpoolctl import threadpool_limits

SYMBOLS = {"features": "p", "sparsity": "s*", "epsilon": "ε"}


@dataclass(frozen=True)
class Setting:
    """What one curve is for."""

    features: int
    sparsity: int
    epsilon: float


Error = Callable[[Setting, Any, int], float]  # of a fit to data, with a seed


@dataclass(frozen=True)
class Method:
    """One way to estimate: its error on data, the epsilon it really has, a note for the legend."""

    name: str
    error: Error
    true_epsilon: Callable[[Setting], float] = lambda setting: setting.epsilon
    note: Callable[[Setting], str] = lambda _: ""
    line: str = "-"
    base_only: bool = False


class Study(Protocol):
    """Data, methods (the honest one first, then the printed one), options of the command line."""

    ylabel: str

    @property
    def methods(self) -> tuple[Method, ...]:
        """What is drawn."""

    def sample(self, setting: Setting, users: int, seed: int) -> Any:
        """The data of one run."""

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add this study's options."""

    def configured(self, options: argparse.Namespace) -> Study:
        """The study that the command line asks for."""


@dataclass(frozen=True)
class Grid:
    """Panels: each varies one field of ``base``; errors at every number of ``users``."""

    base: Setting
    users: tuple[int, ...]
    panels: dict[str, tuple[Any, ...]]

    def settings(self) -> list[Setting]:
        """Every curve's setting, once."""
        all_of = [replace(self.base, **{f: v}) for f, some in self.panels.items() for v in some]
        return list(dict.fromkeys([self.base, *all_of]))


@dataclass(frozen=True)
class Figure:
    """A figure of the paper."""

    name: str
    title: str
    study: Study
    full: Grid
    quick: Grid


Errors = dict[tuple[Setting, int, str], np.ndarray]  # one error a seed


def run(study: Study, grid: Grid, seeds: int) -> Errors:
    """Every method on the same data, for every setting, number of users and seed."""

    def measured(task: tuple[Setting, int, int]) -> dict[str, float]:
        setting, users, seed = task
        data = study.sample(setting, users, seed)
        return {
            method.name: method.error(setting, data, seed)
            for method in study.methods
            if setting == grid.base or not method.base_only
        }

    settings = grid.settings()
    tasks = [(s, n, seed) for seed in range(seeds) for n in grid.users[::-1] for s in settings]
    found: dict[tuple[Setting, int, str], list[float]] = {}
    threads = ThreadPoolExecutor(os.cpu_count())
    with warnings.catch_warnings(), threadpool_limits(1), threads as pool:
        warnings.filterwarnings("ignore", message="step .* lies outside")
        for (setting, users, _), errors in zip(tasks, pool.map(measured, tasks), strict=True):
            for name, error in errors.items():
                found.setdefault((setting, users, name), []).append(error)
    return {key: np.array(errors) for key, errors in found.items()}
