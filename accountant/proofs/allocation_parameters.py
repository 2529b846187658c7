"""The parameters of the proof of one epoch of random allocation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import optimize

from accountant.numerics import Array
from accountant.numerics.logspace import logsumexp
from accountant.proofs.no_method import NoMethod

GRID = np.linspace(-9, 9, 700)
MAX_NODES = 2**17 - 1
MARGIN = 32.0  # nats of delta that the error takes at most
RATIOS = 2.0 ** np.arange(0, 7)  # of abscissas and the saddle


class _LogNormal:
    """``E e^{-sV}`` of V = e^{mu x - mu^2/2} in floats."""

    def __init__(self, mu: float) -> None:
        self.mu = mu
        self._values: Array = np.exp(mu * GRID - mu * mu / 2)

    def log_transform(self, s: float) -> float:
        """Return its logarithm at a real s."""
        log_sum = float(logsumexp(-s * self._values - GRID**2 / 2))
        return log_sum + math.log((GRID[1] - GRID[0]) / math.sqrt(2 * math.pi))

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


def _nodes(
    value: _LogNormal, steps: int, size: float, a: float, target: float
) -> tuple[int, float]:
    """Return how many nodes a line needs, and their step."""
    period = max(1.01 * size, (math.log(1e3 * size + 1e3) - target + 10) / a)
    h = float(np.float32(2 * math.pi / period))
    count = 8
    while a * size + steps * value.decay(a, count * h)[0] - math.log(count * h) > target:
        count = int(1.1 * count) + 1
        if count > MAX_NODES:
            break
    return count, h


def allocation_entry(
    mu2: float, steps: int, back: bool, epsilon: float, delta: float, right: float = 1.0
) -> dict[str, Any]:
    """Return the fields of an entry of the proof.

    ``right`` other than 1 is the abscissa over the saddle: a line for many epsilons, and digits
    for them.
    """
    value = _LogNormal(math.sqrt(mu2))
    target = math.log(delta) - MARGIN + math.log(steps) - max(0.0, epsilon)
    size = steps * math.exp(-epsilon if back else epsilon)

    def height(log_a: float) -> float:
        a = math.exp(log_a)
        return a * size + steps * value.log_transform(a) - 2 * log_a

    minimum = optimize.minimize_scalar(height, bounds=(-18, 12), method="bounded")
    # right of the saddle phi falls sooner, as the exponential does not: less nodes at first
    ratios = RATIOS if right == 1 else [right]
    lines = [
        (_nodes(value, steps, size, factor * math.exp(minimum.x), target), factor)
        for factor in ratios
    ]
    (count, h), ratio = min(lines)
    if count > MAX_NODES:
        raise NoMethod("a contour of so many nodes is too long to check")
    a = float(np.float32(ratio * math.exp(minimum.x)))
    period = 2 * math.pi / h
    y = float(np.float32(min(math.pi / 4.01 / value.mu, 2.5)))
    # n times the rule's error is against e^{target} of terms of size e^{height}
    log_rule = target - max(height(math.log(a)), target) - math.log(steps) - 14
    log_rule += min(0.0, value.log_transform(a)) - max(0.0, math.log(period * a))
    if right != 1:
        log_rule -= max(0.0, a * size - 2 * math.log(a))
    step = float(np.float32(2 * math.pi * y / (-max(log_rule, -150.0) + 2 * y * y)))
    turn = float(np.float32(value.decay(a, count * h)[1] * 0.9999))
    bits = (64 if right == 1 else 128) + 8 * math.ceil(
        (-log_rule + math.log(steps * count)) / math.log(2) / 8
    )
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
