"""Checks of IBM's diffprivlib.

Faults that are looked for: noise on floats that shows in low-order bits, a moment of a regression
without noise, a sum that is rounded by more than its sensitivity, and a budget of which threads at
once get more than all.  The snapping mechanism is a sound control.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from accountant.losses.loss import Loss
from accountant.losses.pure_and_approximate import ApproxLoss, PureLoss
from audits.attacks.floating_point import audit_bits
from audits.attacks.front import audit
from audits.attacks.output_structure import audit_atoms
from audits.libraries.checks import CheckFunction, CheckResult, LibraryCheck, result_of_finding
from audits.results.rows import Settings

library: Any = importlib.import_module("diffprivlib")
mechanisms: Any = library.mechanisms
# Lower bound of the numbers of a sum, and how many they are.  The sum is about 2^60, where floats
# are 256 apart.
LARGE_BOUND, ROWS = 2.0**50, 1024
ATTEMPTS, THREADS = 40, 8  # most races for one budget, and threads of each race
# Seconds after which Python lets another thread run, in a race: so that threads meet more often.
SWITCH_SECONDS = 1e-6
ROUNDING = 1e-9  # an excess over the budget of at most this is rounding of its sum


def _check_with(
    make: Callable[[], Any], claim: Loss, audit_release: Callable[..., Any]
) -> CheckFunction:
    """The check that audits a mechanism on 0 against 1 with one of the audits."""

    def run_check(settings: Settings, rng: np.random.Generator) -> CheckResult:
        mechanism = make()

        def release(value: float, rng: np.random.Generator, size: int) -> Any:
            del rng
            return np.array([mechanism.randomise(value) for _ in range(size)], dtype=float)

        finding = audit_release(
            release,
            pair=(0.0, 1.0),
            claim=claim,
            runs=settings.samples,
            confidence=settings.confidence,
            rng=rng,
        )
        return result_of_finding(finding, claim)

    return run_check


def regression(settings: Settings, rng: np.random.Generator) -> CheckResult:
    """A regression with bounds (0, 1): the sum of squares gets noise for a sensitivity of 0."""
    claim = PureLoss(0.1)
    y = np.linspace(0.0, 1.0, 50)
    data = np.linspace(0.1, 0.9, 50)[:, None]
    neighbour = data.copy()
    neighbour[0] = 0.7

    def release(x: Any, rng: np.random.Generator) -> float:
        del rng
        model = library.models.LinearRegression(
            epsilon=0.1,
            bounds_X=(0.0, 1.0),
            bounds_y=(0.0, 1.0),
            fit_intercept=False,
            accountant=library.BudgetAccountant(),
        )
        return float(model.fit(x, y)._obj_coefs[2][0, 0])  # what the fit keeps  # noqa: SLF001

    finding = audit_atoms(
        release,
        pair=(data, neighbour),
        claim=claim,
        runs=min(settings.samples, 400),  # each run is a fit
        confidence=settings.confidence,
        rng=rng,
        truth=lambda x: float(np.einsum("ij,ik", x, x)[0, 0]),
    )
    return result_of_finding(finding, claim)


def rounded_sum(settings: Settings, rng: np.random.Generator) -> CheckResult:
    """A sum of 1024 numbers between 2^50 and 2^50 + 1, which one record moves by 256 in floats."""
    data_set, neighbour = _rounding_pair()
    claim = PureLoss(1.0)

    def release(data: Any, rng: np.random.Generator) -> float:
        del rng
        noisy_sum = library.tools.sum(
            data,
            epsilon=1.0,
            bounds=(LARGE_BOUND, LARGE_BOUND + 1),
            accountant=library.BudgetAccountant(),
        )
        return float(noisy_sum - LARGE_BOUND * ROWS)

    change = abs(float(np.sum(data_set)) - float(np.sum(neighbour)))
    finding = audit(
        release,
        pair=(data_set, neighbour),
        claim=claim,
        runs=min(settings.samples, 4000),  # each run is a sum of all rows
        confidence=settings.confidence,
        rng=rng,
    )
    result = result_of_finding(finding, claim)
    return replace(result, witness=f"one record moves the sum by {change:g} of 1; {result.witness}")


def _rounding_pair() -> tuple[Any, Any]:
    """The neighbours within the bounds whose float sums differ most, of a chain of data sets.

    The data set number k has the middle of the bounds in the first k rows, and the lower bound in
    all others; it and the next one are neighbours.
    """
    largest_change = 0.0
    best_pair: tuple[Any, Any] = (None, None)
    for row in range(ROWS):
        data = np.full(ROWS, LARGE_BOUND)
        data[:row] = LARGE_BOUND + 0.5
        neighbour = data.copy()
        neighbour[row] = LARGE_BOUND + 0.5
        change = abs(float(np.sum(data)) - float(np.sum(neighbour)))
        if change > largest_change:
            largest_change, best_pair = change, (data, neighbour)
    return best_pair


def accountant(settings: Settings, rng: np.random.Generator) -> CheckResult:
    """A budget that several threads ask for at once: they must not spend more than all of it."""
    del settings, rng
    worst, interval = 0.0, sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        for _ in range(ATTEMPTS):
            worst = max(worst, _race_threads())
            if worst > 1.0 + ROUNDING:
                break
    finally:
        sys.setswitchinterval(interval)
    witness = f"{THREADS} threads spent {worst:.4g} of a budget of 1 in up to {ATTEMPTS} attempts"
    return CheckResult(worst > 1.0 + ROUNDING, witness, runs=ATTEMPTS, claim=(1.0, 0.0))


def _race_threads() -> float:
    """The epsilon that all threads together were granted of a budget of 1."""
    shared, start = library.BudgetAccountant(epsilon=1.0, delta=0.0), threading.Barrier(THREADS)

    def spend() -> None:
        start.wait()
        for _ in range(20):  # more than the ten times 0.1 that the budget allows
            try:
                shared.spend(0.1, 0.0)
            except library.utils.BudgetError:
                return

    threads = [threading.Thread(target=spend) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return float(sum(epsilon for epsilon, _ in shared.spent_budget))


def _snapping() -> Any:
    return mechanisms.Snapping(epsilon=1.0, sensitivity=1.0, lower=-10.0, upper=10.0)


FAULTY_VERSIONS, ISSUES = ("0.6.6",), "IBM/differential-privacy-library"
PURE_CLAIM, APPROXIMATE_CLAIM = PureLoss(1.0), ApproxLoss(1.0, 1e-6)
CHECKS = [
    LibraryCheck(
        "diffprivlib",
        "Laplace, bits",
        "low-order bits",
        _check_with(
            lambda: mechanisms.Laplace(epsilon=1.0, sensitivity=1.0), PURE_CLAIM, audit_bits
        ),
        faulty=FAULTY_VERSIONS,
        reported=f"{ISSUES}#19, {ISSUES}#94",
    ),
    LibraryCheck(
        "diffprivlib",
        "GaussianAnalytic, bits",
        "low-order bits",
        _check_with(
            lambda: mechanisms.GaussianAnalytic(epsilon=1.0, delta=1e-6, sensitivity=1.0),
            APPROXIMATE_CLAIM,
            audit_bits,
        ),
        faulty=FAULTY_VERSIONS,
        reported=f"{ISSUES}#94",
    ),
    LibraryCheck(
        "diffprivlib",
        "LinearRegression, bounds (0, 1)",
        "equality with the answer",
        regression,
        faulty=FAULTY_VERSIONS,
        reported=f"{ISSUES}#104, {ISSUES}#105",
    ),
    LibraryCheck(
        "diffprivlib",
        "tools.sum, large bounds",
        "rounding of a float sum",
        rounded_sum,
        faulty=FAULTY_VERSIONS,
        reported="Casacuberta, Shoemate, Vadhan & Wagaman (2022), for libraries of this kind",
    ),
    LibraryCheck(
        "diffprivlib",
        "accountant, 8 threads",
        "stress of the ledger",
        accountant,
        faulty=FAULTY_VERSIONS,
    ),
    LibraryCheck(
        "diffprivlib",
        "Snapping, values",
        "guesses of its releases",
        _check_with(_snapping, PURE_CLAIM, audit),
    ),
    LibraryCheck(
        "diffprivlib",
        "Snapping, bits",
        "low-order bits",
        _check_with(_snapping, PURE_CLAIM, audit_bits),
    ),
]
