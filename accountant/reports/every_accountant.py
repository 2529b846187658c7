"""The accountants that a comparison asks, from the coarsest to the tightest."""

from __future__ import annotations

from accountant.accountants.advanced import Advanced
from accountant.accountants.base import Accountant
from accountant.accountants.basic import Basic
from accountant.accountants.gdp import GDP
from accountant.accountants.pld import PLD
from accountant.accountants.rdp import RDP
from accountant.accountants.tight import Tight
from accountant.accountants.zcdp import ZCDP

ALL_ACCOUNTANTS: tuple[Accountant, ...] = (
    Basic(),
    Advanced(),
    ZCDP(),
    RDP(),
    GDP(),
    PLD(),
    Tight(width=1e-8),  # its default width could make another row look smaller
)
