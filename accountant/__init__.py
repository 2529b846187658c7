"""The ground floor: what privacy is, how it composes, and the gate to the data.

Glossary: ``scale`` noise scale in the query's units; ``sensitivity``; ``shift = sensitivity /
scale``; ``mu`` Gaussian shift over standard deviation; ``rho`` zCDP; ``rate`` sampling
probability; ``epsilon``, ``delta``; ``order`` Rényi order; ``runs`` draws used by an audit.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accountant.advanced import Advanced
    from accountant.basic import Basic
    from accountant.bounded import BoundedRangeLoss
    from accountant.budget import Budget
    from accountant.calibration import calibrate
    from accountant.certificate import Certificate
    from accountant.chunks import Chunks
    from accountant.comparison import Comparison, compare, compare_deltas
    from accountant.concentrated import ZCDPLoss
    from accountant.errors import (
        BudgetExceeded,
        OffPlan,
        ParameterError,
        PrivateValueError,
        UnsupportedPlan,
    )
    from accountant.events import from_dp_event, from_opacus, to_dp_event
    from accountant.filter import Filter, Odometer
    from accountant.gaussian import GaussianLoss
    from accountant.gdp import GDP, CentralLimit
    from accountant.grouped import Grouped
    from accountant.laplace import LaplaceLoss
    from accountant.ledger import Ledger
    from accountant.loss import Loss
    from accountant.pairs import PairLoss
    from accountant.parallel import Parallel, Stated
    from accountant.plan import Plan, Repeat, Sequential
    from accountant.plan_json import from_json, to_json
    from accountant.pld import PLD
    from accountant.rdp import RDP
    from accountant.responses import ApproxLoss, PureLoss
    from accountant.sampled import PoissonSampled
    from accountant.shuffled import Shuffled
    from accountant.tight import Tight
    from accountant.tradeoff_curves import tradeoff
    from accountant.without_replacement import SampledWithoutReplacement
    from accountant.zcdp import ZCDP

# which module holds what: loaded when it is first asked for, so that a command line starts at once
_MODULES = {
    "advanced": ("Advanced",),
    "basic": ("Basic",),
    "bounded": ("BoundedRangeLoss",),
    "budget": ("Budget",),
    "calibration": ("calibrate",),
    "certificate": ("Certificate",),
    "chunks": ("Chunks",),
    "comparison": ("Comparison", "compare", "compare_deltas"),
    "concentrated": ("ZCDPLoss",),
    "errors": (
        "BudgetExceeded",
        "OffPlan",
        "ParameterError",
        "PrivateValueError",
        "UnsupportedPlan",
    ),
    "events": ("from_dp_event", "from_opacus", "to_dp_event"),
    "filter": ("Filter", "Odometer"),
    "gaussian": ("GaussianLoss",),
    "gdp": ("GDP", "CentralLimit"),
    "grouped": ("Grouped",),
    "laplace": ("LaplaceLoss",),
    "ledger": ("Ledger",),
    "loss": ("Loss",),
    "pairs": ("PairLoss",),
    "parallel": ("Parallel", "Stated"),
    "plan": ("Plan", "Repeat", "Sequential"),
    "plan_json": ("from_json", "to_json"),
    "pld": ("PLD",),
    "rdp": ("RDP",),
    "responses": ("ApproxLoss", "PureLoss"),
    "sampled": ("PoissonSampled",),
    "shuffled": ("Shuffled",),
    "tight": ("Tight",),
    "tradeoff_curves": ("tradeoff",),
    "without_replacement": ("SampledWithoutReplacement",),
    "zcdp": ("ZCDP",),
}
_HOLDERS = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOLDERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_HOLDERS[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "GDP",
    "PLD",
    "RDP",
    "ZCDP",
    "Advanced",
    "ApproxLoss",
    "Basic",
    "BoundedRangeLoss",
    "Budget",
    "BudgetExceeded",
    "CentralLimit",
    "Certificate",
    "Chunks",
    "Comparison",
    "Filter",
    "GaussianLoss",
    "Grouped",
    "LaplaceLoss",
    "Ledger",
    "Loss",
    "Odometer",
    "OffPlan",
    "PairLoss",
    "Parallel",
    "ParameterError",
    "Plan",
    "PoissonSampled",
    "PrivateValueError",
    "PureLoss",
    "Repeat",
    "SampledWithoutReplacement",
    "Sequential",
    "Shuffled",
    "Stated",
    "Tight",
    "UnsupportedPlan",
    "ZCDPLoss",
    "calibrate",
    "compare",
    "compare_deltas",
    "from_dp_event",
    "from_json",
    "from_opacus",
    "to_dp_event",
    "to_json",
    "tradeoff",
]
