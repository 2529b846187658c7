"""Values that the tests of autodp and opendp state, beside ours, and beside theirs where installed.

The files say where each value was read.  Ours agrees up to the round-off of both.
"""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from dp_accounting import dp_event

from accountant import ParameterError, ZCDPLoss
from accountant.formats.dp_accounting import TightAccountant
from tests.heldout.peer_rows import PASSED, REFUSED, PeerRow, judged

HERE = Path(__file__).parent
AUTODP, OPENDP = HERE / "autodp_rows.json", HERE / "opendp_values.json"
# Relative.  autodp states series of tensorflow-privacy that are cut where terms are small: the
# greatest difference is 6.3e-9, where quadrature in 25 digits gives ours (test_heldout.py).
AUTODP_AGREES, OPENDP_AGREES = 1e-8, 1e-10
# autodp's own tests ask that a bound be no more than one in a hundred below a value
TOO_LOW = 0.01


def renyi_divergences(
    rate: float, noise: float, steps: int, orders: list[float]
) -> np.ndarray[Any, Any]:
    """What our accountant gives to a user of dp-accounting for Poisson samples."""
    event = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(noise))
    return np.asarray(TightAccountant().compose(event, steps).get_rdp(orders))


def autodp_rows() -> Iterator[PeerRow]:
    """1,344 Renyi divergences of Poisson samples, for add/remove neighbours."""
    suite = "autodp, Poisson samples"
    for rate, noise, steps, pairs in json.loads(AUTODP.read_text(encoding="utf-8"))["runs"]:
        found = renyi_divergences(rate, noise, steps, [order for order, _ in pairs])
        for (order, value), ours in zip(pairs, found.tolist(), strict=True):
            agrees = ours == value or abs(ours - value) <= AUTODP_AGREES * value
            case = f"rate {rate}, noise {noise}, {steps} steps, order {order}"
            yield judged(suite, case, agrees, why=f"{ours}, not {value}")


def autodp_package_rows() -> Iterator[PeerRow]:
    """The installed autodp on the same runs: no bound of it is below ours, and which are above."""
    from autodp import mechanism_zoo, transformer_zoo

    suite = "autodp, as installed"
    sample, compose = (transformer_zoo.AmplificationBySampling(PoissonSampling=True),
                       transformer_zoo.Composition())  # fmt: skip
    for rate, noise, steps, pairs in json.loads(AUTODP.read_text(encoding="utf-8"))["runs"]:
        one = sample(mechanism_zoo.ExactGaussianMechanism(noise), rate)
        whole = compose([one], [steps])
        orders = [order for order, _ in pairs]
        found = renyi_divergences(rate, noise, steps, orders).tolist()
        for order, ours in zip(orders, found, strict=True):
            theirs = float(whole.get_RDP(order))
            above = "its bound is more than one in a hundred above the divergence"
            case = f"rate {rate}, noise {noise}, {steps} steps, order {order}"
            yield judged(suite, case, ours <= theirs * (1 + AUTODP_AGREES),
                         above if ours < theirs * (1 - TOO_LOW) else "",
                         f"{theirs} is below {ours}")  # fmt: skip


def number(value: Any) -> float:
    """A number of the file, where null is infinity."""
    return math.inf if value is None else float(value)


def cost(kind: str, rho: float, given: float) -> float:
    """Delta or epsilon of a zCDP loss."""
    loss = ZCDPLoss(rho)
    return float(loss.delta_at(given) if kind == "delta" else loss.epsilon_at(given))


def opendp_rows() -> Iterator[PeerRow]:
    """What `cdp_delta` and `cdp_epsilon` are tested with."""
    document = json.loads(OPENDP.read_text(encoding="utf-8"))
    values = [row for name, rows in document.items() if name.endswith(".rs") for row in rows]
    for kind, rho, given, stated in values:
        case = f"{kind} of rho {rho} at {given}"
        try:
            ours = cost(kind, number(rho), number(given))
        except ParameterError as error:
            refused = stated == "error"
            reason = f"{error.argument} must be {error.allowed}"
            yield PeerRow("opendp, zCDP", case, PASSED if refused else REFUSED,
                          "" if refused else reason)  # fmt: skip
            continue
        if stated == "above 0":
            agrees = ours > 0
        else:
            wanted = number(stated)
            agrees = ours == wanted or abs(ours - wanted) <= max(OPENDP_AGREES * wanted, 1e-12)
        yield judged("opendp, zCDP", case, agrees, why=f"{ours}, not {stated}")


def opendp_package_rows() -> Iterator[PeerRow]:
    """The installed opendp on a grid: its bounds are no lower than ours but for round-off."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain, metric = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    suite = "opendp, as installed"
    for scale in (0.5, 1.0, 4.0, 30.0):
        profile = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(domain, metric, scale)).map(1.0)
        rho = 1 / (2 * scale**2)
        pairs = [(("epsilon", d), profile.epsilon(delta=d)) for d in (1e-9, 1e-5, 0.01)]
        pairs += [(("delta", e), profile.delta(epsilon=e)) for e in (0.1, 1.0, 3.0)]
        for (kind, given), theirs in pairs:
            ours = cost(kind, rho, given)
            agrees = abs(ours - theirs) <= max(OPENDP_AGREES * theirs, 1e-300)
            yield judged(suite, f"{kind} of scale {scale} at {given}", agrees,
                         why=f"{ours}, not {theirs}")  # fmt: skip


def rows() -> Iterator[PeerRow]:
    """The values, and the packages where they are installed."""
    yield from autodp_rows()
    if importlib.util.find_spec("autodp"):
        yield from autodp_package_rows()
    yield from opendp_rows()
    if importlib.util.find_spec("opendp"):
        yield from opendp_package_rows()
