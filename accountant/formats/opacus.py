"""Opacus with our accountant: importing this module makes `PrivacyEngine(accountant="tight")` work.

Where Opacus is not installed the import does nothing more, and `register` says so.  `from_opacus`
is also exported by `accountant`, which imports neither this module nor Opacus.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from typing import Any

from accountant.formats.loader_facts import loader_facts
from accountant.formats.opacus_history import from_opacus
from accountant.formats.opacus_steps import opacus_steps

__all__ = ["from_opacus", "opacus_record", "register"]

INSTALL = "Opacus is not installed: python -m pip install opacus"


def register() -> None:
    """Make the accountant "tight" known to Opacus, once; importing this module does it too.

    Opacus has no list of accountants: its function that makes one by name is wrapped, wherever a
    module of Opacus holds it.

    Raises
    ------
    ImportError
        If Opacus, or what it needs, is not installed.
    """
    try:
        import opacus.accountants.utils
        import opacus.privacy_engine

        from accountant.formats.opacus_accountant import MECHANISM, TightAccountant
    except ImportError as error:
        raise ImportError(f"{INSTALL} ({error})") from error
    original = opacus.accountants.create_accountant
    if getattr(original, "makes_tight", False):
        return

    @functools.wraps(original)
    def create_accountant(mechanism: str) -> Any:
        return TightAccountant() if mechanism == MECHANISM else original(mechanism)

    vars(create_accountant)["makes_tight"] = True  # so that it is wrapped once
    for name, module in list(sys.modules.items()):
        is_of_opacus = name.partition(".")[0] == "opacus"
        if is_of_opacus and vars(module).get("create_accountant") is original:
            vars(module)["create_accountant"] = create_accountant


def opacus_record(engine: Any, loader: Any = None) -> dict[str, Any]:
    """Return a history and the facts of its loader in a form that JSON can hold.

    Parameters
    ----------
    engine : PrivacyEngine or IAccountant
        What trained; also any history that `from_opacus` reads.
    loader : torch.utils.data.DataLoader, optional
        The loader that was trained on.

    Returns
    -------
    dict
        "history" and, with a loader, "loader"; `from_opacus` reads and checks it.

    Examples
    --------
    >>> from accountant.formats.opacus import opacus_record
    >>> opacus_record([(1.0, 0.01, 100)])
    {'history': [[1.0, 0.01, 100]]}
    """
    steps = opacus_steps(engine)
    # Where a step added up several Poisson samples, a fourth number says how many.
    history = [[s.noise, s.rate, s.steps, *([s.added] if s.added > 1 else [])] for s in steps]
    facts = {} if loader is None else {"loader": loader_facts(loader).to_dict()}
    return {"history": history, **facts}


with contextlib.suppress(ImportError):
    register()
