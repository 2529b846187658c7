"""The ground floor: what privacy is, how it composes, and the gate to the data.

Glossary: ``scale`` noise scale in the query's units; ``sensitivity``; ``shift = sensitivity /
scale``; ``mu`` Gaussian shift over standard deviation; ``rho`` zCDP; ``rate`` sampling
probability; ``epsilon``, ``delta``; ``order`` Rényi order; ``runs`` draws used by an audit.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accountant.accountants.advanced import Advanced
    from accountant.accountants.basic import Basic
    from accountant.accountants.budget import Budget
    from accountant.accountants.gdp import GDP, CentralLimit
    from accountant.accountants.pld import PLD
    from accountant.accountants.rdp import RDP
    from accountant.accountants.tight import Tight
    from accountant.accountants.tradeoff_curves import tradeoff
    from accountant.accountants.zcdp import ZCDP
    from accountant.amplification.group_privacy import Grouped
    from accountant.amplification.poisson_sampling import PoissonSampled
    from accountant.amplification.sampling_without_replacement import SampledWithoutReplacement
    from accountant.amplification.shuffling import Shuffled
    from accountant.book.book import Book
    from accountant.composition.certificate import Certificate
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
    from accountant.formats.dp_events import from_dp_event, from_opacus, to_dp_event
    from accountant.formats.plan_json import from_json, to_json
    from accountant.ledger.chunks import Chunks
    from accountant.ledger.filters import Filter, Odometer
    from accountant.ledger.ledger import Ledger
    from accountant.losses.bounded_range import BoundedRangeLoss
    from accountant.losses.finite_pair import PairLoss
    from accountant.losses.gaussian import GaussianLoss
    from accountant.losses.laplace import LaplaceLoss
    from accountant.losses.loss import Loss
    from accountant.losses.pure_and_approximate import ApproxLoss, PureLoss
    from accountant.losses.zcdp import ZCDPLoss
    from accountant.planning.allocation import allocate
    from accountant.planning.allocation_table import Allocation
    from accountant.planning.calibration import calibrate
    from accountant.planning.error_measures import Deviation, Maximum, Selection
    from accountant.planning.interpretation import explanation
    from accountant.planning.requests import Wanted
    from accountant.planning.what_if import (
        Needed,
        at_deltas,
        for_groups,
        one_more,
        records_needed,
        with_more_records,
    )
    from accountant.plans.parallel import Parallel, Stated
    from accountant.plans.plan import Plan, Repeat, Sequential
    from accountant.reports.comparison import Comparison, compare, compare_deltas

# which module holds what: loaded when it is first asked for, so that a command line starts at once
_MODULES = {
    "accountants.advanced": ("Advanced",),
    "planning.allocation_table": ("Allocation",),
    "accountants.basic": ("Basic",),
    "losses.bounded_range": ("BoundedRangeLoss",),
    "accountants.budget": ("Budget",),
    "planning.calibration": ("calibrate",),
    "composition.certificate": ("Certificate",),
    "ledger.chunks": ("Chunks",),
    "reports.comparison": ("Comparison", "compare", "compare_deltas"),
    "losses.zcdp": ("ZCDPLoss",),
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
    "formats.dp_events": ("from_dp_event", "from_opacus", "to_dp_event"),
    "planning.interpretation": ("explanation",),
    "ledger.filters": ("Filter", "Odometer"),
    "losses.gaussian": ("GaussianLoss",),
    "accountants.gdp": ("GDP", "CentralLimit"),
    "amplification.group_privacy": ("Grouped",),
    "losses.laplace": ("LaplaceLoss",),
    "ledger.ledger": ("Ledger",),
    "losses.loss": ("Loss",),
    "planning.error_measures": ("Deviation", "Maximum", "Selection"),
    "losses.finite_pair": ("PairLoss",),
    "plans.parallel": ("Parallel", "Stated"),
    "plans.plan": ("Plan", "Repeat", "Sequential"),
    "formats.plan_json": ("from_json", "to_json"),
    "planning.allocation": ("allocate",),
    "accountants.pld": ("PLD",),
    "accountants.rdp": ("RDP",),
    "losses.pure_and_approximate": ("ApproxLoss", "PureLoss"),
    "amplification.poisson_sampling": ("PoissonSampled",),
    "amplification.shuffling": ("Shuffled",),
    "book.book": ("Book",),
    "accountants.tight": ("Tight",),
    "accountants.tradeoff_curves": ("tradeoff",),
    "planning.requests": ("Wanted",),
    "planning.what_if": (
        "Needed",
        "at_deltas",
        "for_groups",
        "one_more",
        "records_needed",
        "with_more_records",
    ),
    "amplification.sampling_without_replacement": ("SampledWithoutReplacement",),
    "accountants.zcdp": ("ZCDP",),
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
