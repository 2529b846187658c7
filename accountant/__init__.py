"""The ground floor: what privacy is, how it composes, and the gate to the data.

Glossary: ``scale`` noise scale in the query's units; ``sensitivity``; ``shift = sensitivity /
scale``; ``mu`` Gaussian shift over standard deviation; ``rho`` zCDP; ``rate`` sampling
probability; ``epsilon``, ``delta``; ``order`` Rényi order; ``runs`` draws used by an audit.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accountant.advanced import Advanced
    from accountant.allocation import Allocation
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
        LedgerBusy,
        LedgerCorrupt,
        LedgerUnwritable,
        OffPlan,
        ParameterError,
        PrivateValueError,
        UnhealthyRandomness,
        UnsupportedPlan,
    )
    from accountant.events import from_dp_event, from_opacus, to_dp_event
    from accountant.explaining import explanation
    from accountant.filter import Filter, Odometer
    from accountant.gaussian import GaussianLoss
    from accountant.gdp import GDP, CentralLimit
    from accountant.grouped import Grouped
    from accountant.laplace import LaplaceLoss
    from accountant.ledger import Ledger
    from accountant.loss import Loss
    from accountant.measures import Deviation, Maximum, Selection
    from accountant.pairs import PairLoss
    from accountant.parallel import Parallel, Stated
    from accountant.plan import Plan, Repeat, Sequential
    from accountant.plan_json import from_json, to_json
    from accountant.planning import allocate
    from accountant.pld import PLD
    from accountant.rdp import RDP
    from accountant.responses import ApproxLoss, PureLoss
    from accountant.sampled import PoissonSampled
    from accountant.shuffled import Shuffled
    from accountant.store import Book
    from accountant.tight import Tight
    from accountant.tradeoff_curves import tradeoff
    from accountant.wanted import Wanted
    from accountant.what_if import (
        Needed,
        at_deltas,
        for_groups,
        one_more,
        records_needed,
        with_more_records,
    )
    from accountant.without_replacement import SampledWithoutReplacement
    from accountant.zcdp import ZCDP

# which module holds what: loaded when it is first asked for, so that a command line starts at once
_MODULES = {
    "advanced": ("Advanced",),
    "allocation": ("Allocation",),
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
        "LedgerBusy",
        "LedgerCorrupt",
        "LedgerUnwritable",
        "OffPlan",
        "ParameterError",
        "PrivateValueError",
        "UnhealthyRandomness",
        "UnsupportedPlan",
    ),
    "events": ("from_dp_event", "from_opacus", "to_dp_event"),
    "explaining": ("explanation",),
    "filter": ("Filter", "Odometer"),
    "gaussian": ("GaussianLoss",),
    "gdp": ("GDP", "CentralLimit"),
    "grouped": ("Grouped",),
    "laplace": ("LaplaceLoss",),
    "ledger": ("Ledger",),
    "loss": ("Loss",),
    "measures": ("Deviation", "Maximum", "Selection"),
    "pairs": ("PairLoss",),
    "parallel": ("Parallel", "Stated"),
    "plan": ("Plan", "Repeat", "Sequential"),
    "plan_json": ("from_json", "to_json"),
    "planning": ("allocate",),
    "pld": ("PLD",),
    "rdp": ("RDP",),
    "responses": ("ApproxLoss", "PureLoss"),
    "sampled": ("PoissonSampled",),
    "shuffled": ("Shuffled",),
    "store": ("Book",),
    "tight": ("Tight",),
    "tradeoff_curves": ("tradeoff",),
    "wanted": ("Wanted",),
    "what_if": (
        "Needed",
        "at_deltas",
        "for_groups",
        "one_more",
        "records_needed",
        "with_more_records",
    ),
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
    "Allocation",
    "ApproxLoss",
    "Basic",
    "Book",
    "BoundedRangeLoss",
    "Budget",
    "BudgetExceeded",
    "CentralLimit",
    "Certificate",
    "Chunks",
    "Comparison",
    "Deviation",
    "Filter",
    "GaussianLoss",
    "Grouped",
    "LaplaceLoss",
    "Ledger",
    "LedgerBusy",
    "LedgerCorrupt",
    "LedgerUnwritable",
    "Loss",
    "Maximum",
    "Needed",
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
    "Selection",
    "Sequential",
    "Shuffled",
    "Stated",
    "Tight",
    "UnhealthyRandomness",
    "UnsupportedPlan",
    "Wanted",
    "ZCDPLoss",
    "allocate",
    "at_deltas",
    "calibrate",
    "compare",
    "compare_deltas",
    "explanation",
    "for_groups",
    "from_dp_event",
    "from_json",
    "from_opacus",
    "one_more",
    "records_needed",
    "to_dp_event",
    "to_json",
    "tradeoff",
    "with_more_records",
]
