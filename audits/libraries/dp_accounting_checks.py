"""Checks of Google's dp-accounting.

Its accountants must refuse NaN as noise, and an epsilon that they report as an upper bound must not
be below the certified lower bound of `Tight`.  `CHECKS` lists the checks with the versions that are
known to fail them.
"""

from __future__ import annotations

import importlib
import logging
from typing import Any

import numpy as np

from accountant.amplification.poisson_sampling import PoissonSampled
from accountant.plans.plan import Plan, Repeat
from audits.libraries.checks import (
    DELTA,
    CheckFunction,
    CheckResult,
    LibraryCheck,
    compare_with_certified,
)
from audits.results.rows import Settings
from mechanisms.gaussian import Gaussian
from mechanisms.laplace import Laplace

library: Any = importlib.import_module("dp_accounting")
# The accountants of the library: the module and the class in it.
ACCOUNTANTS = {"rdp": "RdpAccountant", "pld": "PLDAccountant"}
# Fine-tuning runs: sampling rate, noise, steps and delta.
FINE_TUNING = (
    (5.79e-5, 0.565, 36_000, 2.1e-12),
    (1.63e-4, 0.551, 44_000, 2e-12),
    (3.93e-4, 0.485, 35_000, 1.5e-11),
)
# One such run, whose rate is 1.522047e-4 in seven digits.
ONE_FINE_TUNING = tuple(
    (rate, 0.46825519, 33_758, 1.0591e-12)
    for rate in (1.52204679e-4, 1.52204672e-4, 1.52204735e-4, 1.52204651e-4)
)


def make_accountant(kind: str) -> Any:
    """A new accountant of the module ``kind``, which has composed nothing yet."""
    module = importlib.import_module(f"dp_accounting.{kind}")
    return getattr(module, ACCOUNTANTS[kind])()


def nan_noise(settings: Settings, rng: np.random.Generator) -> CheckResult:
    """Release events with NaN as noise: each must be refused, or have an epsilon above 0."""
    del settings, rng
    nan, uncharged = float("nan"), []
    events = [library.GaussianDpEvent(nan), library.LaplaceDpEvent(nan), library.ZCDpEvent(nan)]
    logging.disable(logging.CRITICAL)
    try:
        for kind in ACCOUNTANTS:
            for event in events:
                try:
                    epsilon = float(make_accountant(kind).compose(event).get_epsilon(DELTA))
                except Exception:  # refused, as it should be
                    continue
                if not epsilon > 0:
                    uncharged.append(f"{kind} of {type(event).__name__} is {epsilon:g}")
    finally:
        logging.disable(logging.NOTSET)
    witness = (
        f"noise NaN: {'; '.join(uncharged)}" if uncharged else "noise NaN is refused everywhere"
    )
    return CheckResult(bool(uncharged), witness, runs=len(ACCOUNTANTS) * len(events))


def _check_against(kind: str, event: Any, plan: Plan) -> Any:
    """The check of an accountant's epsilon for an event, which ``plan`` describes as well."""

    def run_check(settings: Settings, rng: np.random.Generator) -> CheckResult:
        del settings, rng
        return compare_with_certified(
            make_accountant(kind).compose(event).get_epsilon(DELTA), plan, kind
        )

    return run_check


def small_delta(settings: Settings, rng: np.random.Generator) -> CheckResult:
    """The epsilon of 10,000 sampled Gaussians with much noise, at delta 1e-10."""
    del settings, rng
    rate, noise, steps, delta = 0.05, 6.0, 10_000, 1e-10
    event = library.PoissonSampledDpEvent(rate, library.GaussianDpEvent(noise))
    reported = make_accountant("pld").compose(event, steps).get_epsilon(delta)
    plan = Repeat(PoissonSampled(Gaussian(noise), rate), steps)
    return compare_with_certified(reported, plan, "pld", delta)


def _fine_tuning(runs: tuple[tuple[float, float, int, float], ...]) -> CheckFunction:
    """The check of epsilons of long fine-tuning runs at deltas near 1e-12.

    Samples are small and there is little noise.  The library's answer is then the round-off of its
    Fourier transform: settings that differ in the seventh digit have answers far apart.  So the
    first answer that is too small is taken.
    """

    def run_check(settings: Settings, rng: np.random.Generator) -> CheckResult:
        del settings, rng
        for rate, noise, steps, delta in runs:
            event = library.PoissonSampledDpEvent(rate, library.GaussianDpEvent(noise))
            reported = make_accountant("pld").compose(event, steps).get_epsilon(delta)
            plan = Repeat(PoissonSampled(Gaussian(noise), rate), steps)
            result = compare_with_certified(reported, plan, "pld", delta)
            if result.falsified:
                break
        return result

    return run_check


def renyi_of_order_one_and_a_half(settings: Settings, rng: np.random.Generator) -> CheckResult:
    """The Renyi divergence of a sampled Gaussian at order 1.5: wrong if off by a share of 1e-3."""
    del settings, rng
    order, rate, noise = 1.5, 0.3, 10.0
    rdp = importlib.import_module("dp_accounting.rdp")
    event = library.PoissonSampledDpEvent(rate, library.GaussianDpEvent(noise))
    logging.disable(logging.CRITICAL)
    try:
        accountant = rdp.RdpAccountant(orders=[order]).compose(event)
        reported = float(accountant._rdp[0])  # no public name  # noqa: SLF001
    finally:
        logging.disable(logging.NOTSET)
    truth = PoissonSampled(Gaussian(noise), rate).renyi(order)
    witness = (
        f"order {order}, rate {rate}, noise {noise:g}: {reported:.6g} where {truth:.6g} is true"
    )
    return CheckResult(not abs(reported / truth - 1) < 1e-3, witness)  # NaN is wrong too


# The same releases as an event of the library and as a plan.
PLANS: dict[str, tuple[Any, Plan]] = {
    "100 Gaussians": (
        library.SelfComposedDpEvent(library.GaussianDpEvent(10.0), 100),
        Repeat(Gaussian(10.0), 100),
    ),
    "100 Laplaces": (
        library.SelfComposedDpEvent(library.LaplaceDpEvent(20.0), 100),
        Repeat(Laplace(20.0), 100),
    ),
    "200 sampled Gaussians": (
        library.SelfComposedDpEvent(
            library.PoissonSampledDpEvent(0.01, library.GaussianDpEvent(1.0)), 200
        ),
        Repeat(PoissonSampled(Gaussian(1.0), 0.01), 200),
    ),
}
FAULTY_VERSIONS = ("0.6.0",)
CHECKS = [
    LibraryCheck(
        "dp-accounting",
        "noise NaN",
        "parameters that are no numbers",
        nan_noise,
        faulty=FAULTY_VERSIONS,
    ),
    LibraryCheck(
        "dp-accounting",
        "pld, delta 1e-10",
        "its bound against a certified one",
        small_delta,
        faulty=FAULTY_VERSIONS,
    ),
    LibraryCheck(
        "dp-accounting",
        "pld, fine-tuning at delta 1e-12",
        "its bound against a certified one",
        _fine_tuning(FINE_TUNING),
        faulty=FAULTY_VERSIONS,
    ),
    LibraryCheck(
        "dp-accounting",
        "pld, fine-tuning of 33,758 steps",
        "its bound against a certified one",
        _fine_tuning(ONE_FINE_TUNING),
        faulty=FAULTY_VERSIONS,
    ),
    LibraryCheck(
        "dp-accounting",
        "Renyi divergence of order 1.5",
        "its value against the exact one",
        renyi_of_order_one_and_a_half,
        faulty=FAULTY_VERSIONS,
    ),
    *(
        LibraryCheck(
            "dp-accounting",
            f"{kind}, {name}",
            "its bound against a certified one",
            _check_against(kind, *PLANS[name]),
        )
        for kind in ACCOUNTANTS
        for name in PLANS
    ),
]
