"""Private labels, enumerated: distributions by their distances, and signs of paired labels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from accountant.numerics import Array
from audits.minimax.bounds.label_optimisation import sign_correlation
from audits.minimax.checks.channels import joint_distribution, mutual_information
from audits.minimax.families.label_family import LabelFamily
from audits.minimax.information.contraction import distance_information


def subset_channel(k: int, size: int, epsilon: float) -> Array:
    """A random set of ``size`` labels, likelier by ``e^eps`` if it has the true one (Ye & Barg)."""
    subsets = list(itertools.combinations(range(k), size))
    inside = np.array([[label in subset for subset in subsets] for label in range(k)])
    weights = np.where(inside, math.exp(epsilon), 1.0)
    channel: Array = weights / weights.sum(axis=1, keepdims=True)
    return channel


def check_distances(rng: np.random.Generator) -> Iterator[tuple[str, str, str, float, float]]:
    """Rows of `enumeration`: random distributions on k labels, by the distances of their pairs."""
    for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0):
        for _ in range(60):
            k, points = int(rng.integers(2, 7)), int(rng.integers(2, 6))
            law = rng.dirichlet(np.full(k, rng.choice([0.05, 0.5, 5.0])), points)
            channel = subset_channel(k, int(rng.integers(1, k)), epsilon)
            distances = np.abs(law[:, None] - law).sum(axis=2) / 2
            n = int(rng.integers(1, 4))
            joint = joint_distribution([law @ channel] * n)
            nats = distance_information(n, epsilon, float((distances**2).mean()))
            case = f"epsilon = {epsilon:g}, n = {n}, k = {k}, {points} laws"
            yield "I(V; Z) by distances", "", case, mutual_information(joint), nats.sharp
            yield (
                "printed I(V; Z) by distances",
                "",
                case,
                mutual_information(joint),
                nats.published,
            )


def check_signs() -> Iterator[tuple[str, str, str, float, float]]:
    """Rows of `enumeration`: the correlation of n reports with the signs of paired labels."""
    for k, epsilon, d in itertools.product((2, 4, 6), (0.1, 1.0, 3.0), (0.1, 0.5, 1.0)):
        family = LabelFamily(k, d)
        law = np.array([family.shares(which) for which in range(family.points)])
        signs = np.where((np.arange(family.points)[:, None] >> np.arange(k // 2)) & 1, 1.0, -1.0)
        for size, n in itertools.product(range(1, k), (1, 2, 3)):
            joint = joint_distribution([law @ subset_channel(k, size, epsilon)] * n)
            total = joint.sum(axis=0)
            sign_means = signs.T @ joint / total
            exact = float((sign_means**2 * total).sum() / len(law) / (k // 2))
            bound = sign_correlation(n, k, epsilon, d) ** 2
            case = f", n = {n}, epsilon = {epsilon:g}, d = {d:g}, sets of {size}"
            yield "mean E[v_j | Z]^2", f"k = {k}", case, exact, bound
