"""A plan as lines of a table, and the same lines with other noise or other counts.

A line is one kind of release with how often it is planned.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from accountant.accountants.budget import Budget
from accountant.formats.plan_file import PlanFile
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.laplace import LaplaceLoss
from accountant.planning.allocation import allocate
from accountant.plans.map_leaves import map_leaves
from accountant.plans.plan import Plan, Repeat, Sequential


@final
@dataclass(frozen=True, slots=True)
class PlanLine:
    """One kind of release and how often it is planned."""

    part: Plan  # one release
    count: int
    name: str = ""  # in the plan file
    error: float | None = None  # of one answer, in the query's units; None if none is stated


def lines_of(plan: Plan) -> list[PlanLine]:
    """Return the lines of a plan: equal parts once, in order of first use."""
    counts: dict[Plan, int] = {}
    for part in plan.parts if isinstance(plan, Sequential) else (plan,):
        repeated_part, count = (part.part, part.count) if isinstance(part, Repeat) else (part, 1)
        counts[repeated_part] = counts.get(repeated_part, 0) + count
    return [PlanLine(part, count) for part, count in counts.items()]


def lines_of_file(file: PlanFile, budget: Budget) -> list[PlanLine]:
    """Return the lines of a plan file; `allocate` finds the noise that it leaves open.

    A release with a weight has no scale yet, and shares with all others what the budget allows, so
    `allocate` then gets all releases.  Else each release has a settled scale: the file states it,
    or a target for its error, from which it follows.
    """
    if any(release.weight is not None for release in file.releases):
        scales = allocate(file.releases, budget).scales
    else:
        scales = tuple(release.settled for release in file.releases)
    named = [
        PlanLine(release.plan(scale), release.count, release.name, release.error_at(scale))
        for release, scale in zip(file.releases, scales, strict=True)
    ]
    # A file may hold one whole plan in place of a list of releases: its parts are the lines.
    if len(named) == 1 and isinstance(named[0].part, Sequential) and named[0].count == 1:
        return lines_of(named[0].part)
    return named


def plan_of(
    lines: Sequence[PlanLine],
    noise_factor: float = 1.0,
    count_factor: float = 1.0,
    changed_line: int | None = None,
) -> Plan:
    """Return the plan of the lines with other noise and other counts.

    Noise is multiplied by ``noise_factor``, and counts by ``count_factor``, rounded up.  Only the
    line at the index ``changed_line`` changes, or for None all of them.
    """
    return Sequential(
        Repeat(scale_noise(line.part, noise_factor), scaled_count(line.count, count_factor))
        if changed_line in (None, index)
        else Repeat(line.part, line.count)
        for index, line in enumerate(lines)
    )


def scaled_count(count: int, count_factor: float) -> int:
    """Return the count times ``count_factor``, rounded up: more releases never cost less."""
    return math.ceil(count * count_factor)


def scale_noise(plan: Plan, factor: float) -> Plan:
    """Return the plan with ``factor`` times the noise; parts without a noise scale stay."""

    def scaled(leaf: Plan) -> Plan:
        """Return one release with ``factor`` times the noise.

        The mu and the shift of a loss are a distance over the noise scale, so they are divided.
        """
        if isinstance(leaf, GaussianLoss):
            return GaussianLoss(leaf.mu / factor)
        if isinstance(leaf, LaplaceLoss):
            return LaplaceLoss(leaf.shift / factor)
        # a mechanism that wraps another, such as a clamped one, has it in the field ``inner``
        inner: object = leaf
        while dataclasses.is_dataclass(inner) and hasattr(inner, "inner"):
            inner = inner.inner
        # A parameter that is a probability, as in randomised response, is no scale of noise.
        if hasattr(leaf, "with_noise_factor") and hasattr(inner, "scale"):
            mechanism: Plan = leaf.with_noise_factor(factor)
            return mechanism
        return leaf

    return plan if factor == 1 else map_leaves(plan, scaled)


def has_noise_scale(plan: Plan) -> bool:
    """Return whether more noise changes the plan; any factor but 1 shows it."""
    return scale_noise(plan, 2.0) != plan
