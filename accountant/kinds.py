"""What a plan may be made of, by name: losses, nodes, and whatever declares itself.

Mechanisms live a floor above and are not known here: a package that declares some names itself
under the entry point ``dp_attest.plans`` and registers them when it is imported.
"""

from __future__ import annotations

import functools
import inspect

from accountant.bounded import BoundedRangeLoss
from accountant.concentrated import ZCDPLoss
from accountant.gaussian import GaussianLoss
from accountant.grouped import Grouped
from accountant.laplace import LaplaceLoss
from accountant.pairs import PairLoss
from accountant.parallel import Parallel, Stated
from accountant.plan import DECLARED, Plan, Repeat, Sequential
from accountant.responses import ApproxLoss, PureLoss
from accountant.sampled import PoissonSampled
from accountant.shuffled import Shuffled
from accountant.without_replacement import SampledWithoutReplacement

OWN: tuple[type[Plan], ...] = (
    ApproxLoss, BoundedRangeLoss, GaussianLoss, Grouped, LaplaceLoss, PairLoss, Parallel,
    PoissonSampled, PureLoss, Repeat, SampledWithoutReplacement, Sequential, Shuffled, Stated,
    ZCDPLoss,
)  # fmt: skip


def kinds() -> dict[str, type[Plan]]:
    """Every kind of plan by its name, those of installed packages included."""
    _load_declared()
    return {cls.__name__: cls for cls in (*OWN, *DECLARED)}


def fields(kind: type[Plan]) -> dict[str, inspect.Parameter]:
    """What a plan of this kind is made from, by the names used in files."""
    found = inspect.signature(kind).parameters.values()
    return {one.name.lstrip("_"): one for one in found}


@functools.cache
def _load_declared() -> None:
    import importlib.metadata

    for point in importlib.metadata.entry_points(group="dp_attest.plans"):
        point.load()
