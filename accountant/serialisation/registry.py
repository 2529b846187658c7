"""The kinds of plan by name: losses, nodes (which combine plans), and what other packages declare.

Mechanisms belong to packages above this one and are not known here.  Such a package has an entry
point in the group ``dp_attest.plans``, which names a module of it.  When that module is imported,
it adds the package's classes to `DECLARED_PLAN_KINDS` and `PLAN_FIELD_KINDS`.  A plan file names a
class by its name alone, so these names must differ.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

from accountant.amplification.group_privacy import Grouped
from accountant.amplification.poisson_sampling import PoissonSampled
from accountant.amplification.random_allocation import RandomAllocation
from accountant.amplification.repeated import Repeated
from accountant.amplification.sampling_without_replacement import SampledWithoutReplacement
from accountant.amplification.shuffling import Shuffled
from accountant.amplification.single_pass import OnePass, ShuffledEpoch
from accountant.amplification.truncated_sampling import TruncatedPoisson
from accountant.losses.bounded_range import BoundedRangeLoss
from accountant.losses.discrete_gaussian import DiscreteGaussianLoss
from accountant.losses.discrete_laplace import DiscreteLaplaceLoss
from accountant.losses.finite_pair import PairLoss
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.laplace import LaplaceLoss
from accountant.losses.mixture_of_gaussians import MixtureOfGaussians
from accountant.losses.pure_and_approximate import ApproxLoss, PureLoss
from accountant.losses.summed_noise import SummedNoiseLoss
from accountant.losses.zcdp import ZCDPLoss
from accountant.plans.declared_releases import PLAN_FIELD_KINDS, PlanField
from accountant.plans.parallel import Parallel, Stated
from accountant.plans.plan import DECLARED_PLAN_KINDS, Plan, Repeat, Sequential

OWN_PLAN_KINDS: tuple[type[Plan], ...] = (
    ApproxLoss, BoundedRangeLoss, DiscreteGaussianLoss, DiscreteLaplaceLoss, GaussianLoss,
    Grouped, LaplaceLoss, MixtureOfGaussians, OnePass, PairLoss, Parallel, PoissonSampled,
    PureLoss, RandomAllocation, Repeat, Repeated, SampledWithoutReplacement, Sequential, Shuffled,
    ShuffledEpoch, Stated, SummedNoiseLoss, TruncatedPoisson, ZCDPLoss,
)  # fmt: skip


def plan_kinds() -> dict[str, type[Plan]]:
    """Return every kind of plan by its name, those of installed packages included."""
    _load_other_packages()
    return _declared_kinds()


def plan_kind(name: str) -> type[Plan] | None:
    """Return the kind of plan with a name, None if there is none.

    Installed packages are imported only if no package imported so far has declared the name.
    """
    return _declared_kinds().get(name) or plan_kinds().get(name)


def _declared_kinds() -> dict[str, type[Plan]]:
    # Of two classes with one name the later counts, so none takes the place of the package's own.
    return {cls.__name__: cls for cls in (*DECLARED_PLAN_KINDS, *OWN_PLAN_KINDS)}


def plan_field_kinds() -> dict[str, type[PlanField]]:
    """Return every class of values inside plans, such as strategy matrices, by its name."""
    _load_other_packages()
    return PLAN_FIELD_KINDS


def constructor_fields(kind: type[Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a class's constructor, by their names in files.

    A parameter may begin with an underscore, as one that users do not set.  Files hold its name
    without the underscore.
    """
    parameters = inspect.signature(kind).parameters.values()
    return {parameter.name.lstrip("_"): parameter for parameter in parameters}


@functools.cache  # once in a process
def _load_other_packages() -> None:
    """Import the modules of installed packages that declare their kinds."""
    import importlib.metadata

    for point in importlib.metadata.entry_points(group="dp_attest.plans"):
        point.load()
