"""Coarse rules along the cut of a transform, and coarse lattices across the steps of an epoch."""

import itertools
import math

import numpy as np
import pytest

from accountant.amplification.allocation import allocated_gaussian, few_steps
from accountant.numerics import lognormal_cut
from accountant.numerics.lognormal_cut import CutTransform
from tests.laws.error_bounds.epochs import excess_of_sum

ROOM = 1e-6  # of the truths, whose rules have a corner


def cut_violation():
    """Nodes of ln r so far apart that the excess of two log-normals errs by some percent."""
    k = np.array([2.0, 2.3, 3.5, 6.0, 12.0])
    for mu in (0.5, 0.9, 1.6):
        truth = excess_of_sum(mu, k, 2) + 2 - k
        rules = itertools.product((0.06, 0.12, 0.25), (17.0, 2.0), ((5, 60), (0.3, 0.5)), (42.0,))
        few_digits = itertools.product(
            (0.06,), (17.0,), ((5, 60),), (2.0, 4.0, 6.0, 8.0, 11.0, 15.0)
        )
        for spacing, farthest, node, digits in (*rules, *few_digits):
            with np.errstate(all="ignore"), pytest.MonkeyPatch.context() as patch:
                patch.setattr(lognormal_cut, "FARTHEST", farthest)
                patch.setattr(lognormal_cut, "FARTHEST_NODE", node)
                patch.setattr(lognormal_cut, "DIGITS", digits)
                low, high, _ = CutTransform(mu, spacing).excess_bounds(2, k)
            lognormal_cut._sizes_of_one.cache_clear()
            if not np.all((low <= truth + ROOM) & (truth - ROOM <= high)):
                words = f"mu {mu}, {spacing}, {farthest}, {node}, {digits} digits"
                return f"{words}: {truth} not in [{low}, {high}]"
    return ""


def few_steps_violation():
    """Lattices of few points, which end early."""
    epsilon = np.array([0.01, 0.2, 0.6, 1.2])
    for mu, steps in ((0.8, 2), (2.0, 2), (0.7, 3)):
        for added in (False, True):
            k = steps * np.exp(-epsilon if added else epsilon)
            below = excess_of_sum(mu, k, steps)
            truth = below / k if added else (below + steps - k) / steps
            for digits, log_range in ((1.0, 66.0), (2.5, 66.0), (32.0, 1.0), (32.0, 3.0)):
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(few_steps, "DIGITS", digits)
                    patch.setattr(few_steps, "ALL_DIGITS", digits)
                    patch.setattr(few_steps, "LOG_DENSITY_RANGES", (log_range,))
                    lattice = few_steps.lattice_across
                    lattice = getattr(lattice, "__wrapped__", lattice)
                    patch.setattr(few_steps, "lattice_across", lattice)
                    with np.errstate(divide="ignore"):
                        bounds = few_steps.few_steps_bounds(mu, steps, epsilon, added=added)
                low, high = map(np.exp, bounds)
                # what lies beyond the lattice is missing in the lower end
                if not np.all((low <= truth + ROOM) & (truth - ROOM <= high)):
                    words = f"{steps} steps of {mu}, {digits} digits up to {log_range}"
                    return f"{words}: {truth} not in [{low}, {high}]"
    return ""


def renyi_violation():
    """The Gamma integral of an epoch's divergences, by rules of few points."""
    x = np.linspace(-12.0, 12.0, 961)
    mass = np.exp(-x * x / 2) * (x[1] - x[0]) / math.sqrt(2 * math.pi)
    order = np.array([1.6, 2.0, 3.5, 9.0])
    for mu in (0.3, 0.8, 1.5):
        value = np.exp(mu * x - mu * mu / 2)
        ratio = np.add.outer(value, value) / 2
        moments = [mass @ ratio ** (1 - one) @ mass for one in order]
        truth = np.log(moments) / (order - 1)
        for efoldings in (1.0, 2.0, 3.0, 5.0):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(allocated_gaussian, "EFOLDINGS", efoldings)
                made = allocated_gaussian._log_transform
                patch.setattr(
                    allocated_gaussian, "_log_transform", getattr(made, "__wrapped__", made)
                )
                found = allocated_gaussian.renyi_absent(mu, 2, order)
            if not np.all(truth <= found + 1e-12):
                return f"mu {mu}, {efoldings} e-foldings: {found} is below {truth}"
    return ""
