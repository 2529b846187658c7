"""The ground floor: what privacy is, how it composes, and the gate to the data.

Glossary: ``scale`` noise scale in the query's units; ``sensitivity``; ``shift = sensitivity /
scale``; ``mu`` Gaussian shift over standard deviation; ``rho`` zCDP; ``rate`` sampling
probability; ``epsilon``, ``delta``; ``order`` Rényi order; ``runs`` draws used by an audit.
"""

from accountant.additive import GaussianLoss, LaplaceLoss
from accountant.advanced import Advanced
from accountant.basic import Basic
from accountant.bounded import ApproxLoss, BoundedRangeLoss, PureLoss
from accountant.budget import Budget
from accountant.calibration import calibrate
from accountant.certificate import Certificate
from accountant.comparison import Comparison, compare, compare_deltas
from accountant.errors import (
    BudgetExceeded,
    OffPlan,
    ParameterError,
    PrivateValueError,
    UnsupportedPlan,
)
from accountant.events import from_dp_event, from_opacus, to_dp_event
from accountant.filter import Filter, Odometer
from accountant.gdp import GDP, CentralLimit
from accountant.grouped import Grouped
from accountant.ledger import Ledger
from accountant.loss import Loss
from accountant.pairs import PairLoss, ZCDPLoss
from accountant.parallel import Parallel, Stated
from accountant.plan import Plan, Repeat, Sequential
from accountant.plan_json import from_json, to_json
from accountant.pld import PLD
from accountant.rdp import RDP
from accountant.sampled import PoissonSampled, SampledWithoutReplacement
from accountant.shuffled import Shuffled
from accountant.tight import Tight
from accountant.tradeoff import tradeoff
from accountant.zcdp import ZCDP

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
