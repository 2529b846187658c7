"""The parameters of the road of one epoch of random allocation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import optimize

from accountant.numerics import Array
from accountant.numerics.logspace import logsumexp
from accountant.proofs.no_road import NoRoad

GRID = np.linspace(-9, 9, 700)
FAR = 18.0
MAX_NODES = 2**17 - 1
MARGIN = 32.0  # nats of delta that the error takes at most


class _LogNormal:
    """``E e^{-sV}`` of V = e^{mu x - mu^2/2} in floats."""

    def __init__(self, mu: float) -> None:
        self.mu = mu
        self._values: Array = np.exp(mu * GRID - mu * mu / 2)

    def log_transform(self, s: float) -> float:
        """Return its logarithm at a real s."""
        found = float(logsumexp(-s * self._values - GRID**2 / 2))
        return found + math.log((GRID[1] - GRID[0]) / math.sqrt(2 * math.pi))

    def decay(self, a: float, u: float) -> tuple[float, float]:
        """Return the least bound of ``ln |phi(a + iv)|``, v >= u, and its turn."""
        turns = math.pi / 2 / self.mu * 2.0 ** -np.arange(0.01, 14, 0.5)
        return min(
            (
                t * t / 2
                + self.log_transform(a * math.cos(t * self.mu) + u * math.sin(t * self.mu)),
                t,
            )
            for t in map(float, turns)
        )


def allocation_entry(
    mu2: float, steps: int, back: bool, epsilon: float, delta: float, right: float = 1.0
) -> dict[str, Any]:
    """Return the fields of an entry of the proof."""
    value = _LogNormal(math.sqrt(mu2))
    target = math.log(delta) - MARGIN + math.log(steps) - max(0.0, epsilon)
    size = steps * math.exp(-epsilon if back else epsilon)

    def height(log_a: float) -> float:
        a = math.exp(log_a)
        return a * size + steps * value.log_transform(a) - 2 * log_a

    found = optimize.minimize_scalar(height, bounds=(-18, 12), method="bounded")
    a = float(np.float32(right * math.exp(found.x)))  # a line further to the right is shorter
    period = max(1.01 * size, (math.log(1e3 * size + 1e3) - target + 10) / a)
    h = float(np.float32(2 * math.pi / period))
    count = 8
    while a * size + steps * value.decay(a, count * h)[0] - math.log(count * h) > target:
        count = int(1.1 * count) + 1
        if count > MAX_NODES:
            raise NoRoad("a contour of so many nodes is too long to check")
    y = float(np.float32(min(math.pi / 4.01 / value.mu, 2.5)))
    # n times the rule's error is against e^{target} of terms of size e^{height}
    log_rule = target - max(found.fun, target) - math.log(steps) - math.log(period * a) - 14
    log_rule -= max(0.0, a * size + 2 * math.log(1 / a))
    step = float(np.float32(2 * math.pi * y / (-max(log_rule, -150.0) + 2 * y * y)))
    turn = float(np.float32(value.decay(a, count * h)[1] * 0.9999))
    bits = 128 + 32 * math.ceil((-log_rule + math.log(steps)) / math.log(2) / 32)
    return {
        "road": "allocation",
        "a": a.hex(),
        "h": h.hex(),
        "nodes": count + 1,
        "y": y.hex(),
        "step": step.hex(),
        "turn": turn.hex(),
        "bits": bits,
    }
