"""Hypothesis strategies of the whole suite: numbers, losses, requests, files, answers, counts."""

import math

from hypothesis import strategies as st
from hypothesis.extra import numpy as stn

from accountant import ApproxLoss, Budget, Deviation, Maximum, PairLoss, PureLoss, Selection, Wanted
from accountant.formats.plan_file import PlanFile
from mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    Mapped,
    NoisyMax,
    PermuteAndFlip,
    registry,
)

# --- numbers

rates = st.floats(0.001, 1.0)  # of sampling
probabilities = st.floats(0.0, 1.0)
shares = st.floats(0.0, 0.99)  # of the largest loss
orders = st.floats(1.001, 500.0)  # of a Renyi divergence
priors = st.floats(1e-9, 0.999)
small_deltas = st.sampled_from([1e-9, 1e-5, 1e-2])
positive_floats = st.floats(1e-300, 1e300)
signed_floats = st.floats(-1e9, 1e9) | st.floats(-1e-300, 1e-300)
positive_roots = st.floats(1e-9, 1e3)
seeds = st.integers(0, 2**32 - 1)
any_floats = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True), st.sampled_from([0.0, 1.0, 2.0, math.nan])
)
cuts = st.sets(st.sampled_from([-math.inf, -1.0, 0.0, 1.0, 2.0, math.inf]))


def epsilons(low=1e-3, high=20.0):
    """Epsilons, and the shifts of losses in units of the noise."""
    return st.floats(low, high)


def deltas(*choices):
    """Deltas that an enumeration can tell from its round-off."""
    return st.sampled_from(choices or (1e-2, 1e-3, 1e-6))


# --- losses of finitely many outcomes, and plans of them


def _pair(high, low, leak):
    """A pair of two outcomes, and in a fifth of all draws one that is impossible on one side."""
    if leak > 0.04:
        return PairLoss((high * 0.95, 1 - high * 0.95, 0.0), (low * 0.9, 0.95 - low * 0.9, 0.05))
    return PairLoss((high, 1 - high), (low, 1 - low))


finite_pairs = st.builds(_pair, st.floats(0.05, 0.9), st.floats(0.05, 0.9), st.floats(0.0, 0.05))
finite_losses = st.one_of(
    st.floats(0.01, 2.0).map(PureLoss),
    finite_pairs,
    st.builds(ApproxLoss, st.floats(0.01, 2.0), st.just(1e-4)),
)


def finite_plans(most=4):
    """Lists of losses few enough to enumerate every outcome of them all."""
    return st.lists(finite_losses, min_size=1, max_size=most)


pure_epsilons = st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=30)

# --- wanted releases, and files of them

convex_families = st.sampled_from([Laplace, Gaussian, PermuteAndFlip])
families = st.sampled_from([Laplace, Gaussian, PermuteAndFlip, DiscreteGaussian])
wanted_budgets = st.sampled_from([(0.3, 1e-7), (1.0, 1e-5), (3.0, 1e-3)])


def wanted(family, sensitivity=1.0, **given):
    """A wanted release whose error is that of its family."""
    selects = family in (NoisyMax, PermuteAndFlip, Exponential)
    measure = Selection(50) if selects else Deviation()
    return Wanted(family, measure, sensitivity=sensitivity, **given)


_by_weight = st.builds(wanted, families, count=st.integers(1, 5), weight=st.floats(0.1, 10.0))
_by_target = st.builds(wanted, families, count=st.integers(1, 5), target=st.floats(200.0, 2000.0))
wanted_lists = st.lists(st.one_of(_by_weight, _by_weight, _by_target), max_size=4).map(
    lambda more: [wanted(Laplace, weight=1.0), *more]
)


def log_scales(count):
    """Logarithms of noise scales, one for each of so many releases."""
    return st.lists(st.floats(-1.5, 3.0), min_size=count, max_size=count)


_counts, _sizes = st.integers(1, 10**6), st.floats(1e-9, 1e9)
_written_releases = st.one_of(
    st.builds(
        lambda d, w, n: Wanted(Laplace, Deviation(), sensitivity=d, weight=w, count=n),
        _sizes, _sizes, _counts,
    ),
    st.builds(
        lambda d, t, n: Wanted(DiscreteLaplace, Maximum(n), sensitivity=d, target=t),
        st.integers(1, 9), st.floats(1, 1e9), _counts,
    ),
    st.sampled_from(
        [Wanted(one) for cls in registry() if cls is not Mapped for one in cls.instances()]
    ),
)  # fmt: skip
_written_budgets = st.none() | st.builds(Budget, st.floats(0.01, 10), st.sampled_from([0.0, 1e-9]))
plan_files = st.builds(
    PlanFile, st.lists(_written_releases, min_size=1, max_size=6).map(tuple), _written_budgets
)
printable_names = st.text(
    st.characters(categories=["L", "N", "P", "S", "Zs"]), min_size=1, max_size=20
)

# --- what a book stores

_plain = st.one_of(
    st.none(), st.booleans(), st.text(), st.integers(), st.floats(), st.complex_numbers()
)
_dtypes = st.one_of(
    stn.boolean_dtypes(), stn.integer_dtypes(), stn.floating_dtypes(),
    stn.complex_number_dtypes(), stn.unicode_string_dtypes(),
)  # fmt: skip
_arrays = stn.arrays(_dtypes, stn.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
answers = st.recursive(
    st.one_of(_plain, _arrays),
    lambda inner: st.one_of(
        st.lists(inner), st.tuples(inner, inner), st.dictionaries(st.text(), inner)
    ),
    max_leaves=6,
)
users = st.lists(st.integers(0, 10**9), unique=True)

# --- guesses

trials = st.integers(1, 3000)
error_rates = st.sampled_from([0.05, 0.01, 1e-6])
right_guesses, wrong_guesses = st.integers(0, 400), st.integers(0, 900)
scored_values = st.lists(any_floats, max_size=40)


def guesses(count):
    """A guess for each of so many cells: the second value, the first, or none."""
    return st.lists(st.sampled_from([-1, 0, 1]), min_size=count, max_size=count)
