"""Sequential protocols, enumerated: a tree of reports, whose channels depend on earlier ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from accountant.numerics import Array
from audits.minimax.checks.channels import (
    best_decoding_rate,
    coordinate_response,
    kl_divergences,
    point_distributions,
    translation_channel,
)
from audits.minimax.decoding.record_decoding import most_right
from audits.minimax.families.signed_basis import SignedBasis
from audits.minimax.information.contraction import le_cam_divergence

ChannelChoice = Callable[[Array], Array]


def check_sequential(
    family: SignedBasis, epsilon: float, users: int, rng: np.random.Generator
) -> Iterator[tuple[str, str, str, float, float]]:
    """Rows of `enumeration`: trees that ask for the likeliest coordinate, a random one, or sets."""
    p, group = family.p, f"p = {family.p}"
    questions = [coordinate_response(p, at, epsilon) for at in range(p)]

    def likeliest(reach: Array) -> Array:
        return questions[int(np.argmax(reach)) % p]

    def at_random(_: Array) -> Array:
        return questions[int(rng.integers(p))]

    def random_set(_: Array) -> Array:
        # A random channel of two reports: its columns are split at random into two sets.
        channel = translation_channel(rng.random(2**p) < 0.5, epsilon)
        one_report = channel[:, rng.random(2**p) < 0.5].sum(axis=1)
        return np.stack([one_report, 1 - one_report], axis=1)

    strategies: tuple[tuple[str, ChannelChoice], ...] = (
        ("likeliest coordinate", likeliest),
        ("random coordinate", at_random),
        ("random sets", random_set),
    )
    for name, ask in strategies:
        joint, none = _report_tree(point_distributions(family), users, ask)
        case = f", n = {users}, epsilon = {epsilon:g}, d = {family.d:g}, {name}"
        divergence = float(kl_divergences(none, joint).mean())
        mixture = float(kl_divergences(none, joint.mean(axis=0)))
        nats = le_cam_divergence(family, users, epsilon)
        yield "mean KL(M_0 || M_v), in turn", group, case, divergence, nats.sharp
        yield "printed KL(M_0 || mean M_v), in turn", group, case, mixture, nats.published
        right = most_right(family, users, epsilon, "sequential")
        yield "P(right decode), in turn", group, case, best_decoding_rate(joint), right


def _report_tree(law: Array, users: int, ask: ChannelChoice) -> tuple[Array, Array]:
    """Distributions of all reports: (points, 2^users) under the points, (2^users,) under P_0."""
    joint, none = np.ones((len(law), 1)), np.ones(1)
    for _ in range(users):
        nodes, empty = [], []
        for reach, chance in zip(joint.T, none, strict=True):
            channel = ask(reach)
            nodes.append(reach[:, None] * (law @ channel))
            empty.append(chance * channel.mean(axis=0))
        joint, none = np.concatenate(nodes, axis=1), np.concatenate(empty)
    return joint, none
