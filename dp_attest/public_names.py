"""Errors about names that a package does not have: the nearest name, or the package that has it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable
from typing import Any

from dp_attest.installation import PACKAGES

Lookup = Callable[[str], Any]


def with_hints(package: str, lookup: Lookup | None, public: Collection[str]) -> Lookup:
    """Return a module's ``__getattr__`` whose errors say which name was meant.

    ``lookup`` finds lazy names, or raises AttributeError.
    """

    def module_getattr(name: str) -> Any:
        try:
            if lookup is not None:
                return lookup(name)
        except AttributeError:
            pass
        importing = _is_from_import()
        words = f"{package!r} has no {name!r}"
        if not name.startswith("_"):
            words += _hint(package, name, public, search_others=importing)
        if importing:
            # Python would replace the words of an AttributeError with its own
            raise ImportError(words, name=package)
        raise AttributeError(words, name=name)

    return module_getattr


def _is_from_import() -> bool:
    """Whether the module's attribute is looked up by ``from package import name``."""
    import dis
    import inspect

    frame = inspect.currentframe()
    for _ in range(2):  # module_getattr, and the code that asked
        frame = frame.f_back if frame is not None else None
    if frame is None or frame.f_lasti < 0:
        return False
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == "IMPORT_FROM"


def _hint(package: str, name: str, public: Collection[str], search_others: bool) -> str:
    """What may have been meant, in words; other packages are imported only where asked."""
    names = dict.fromkeys(public, package)
    for other in PACKAGES if search_others else ():
        names = {**dict.fromkeys(_public_names_of(other), other), **names}
    if name in names:
        return f"; it is in {names[name]}: `from {names[name]} import {name}`"
    meant = nearest_name(name, names)
    if meant is None:
        return ""
    place = "" if names[meant] == package else f", from {names[meant]}"
    return f"; did you mean {meant!r}{place}?"


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that may have been meant, whatever its case; None if none is near."""
    import difflib

    by_lower = {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.7)
    return by_lower[near[0]] if near else None


def _public_names_of(package: str) -> Collection[str]:
    """The public names of a package, or none where it cannot be imported."""
    import importlib

    try:
        module = sys.modules.get(package) or importlib.import_module(package)
    except ImportError:
        return ()
    return list(getattr(module, "__all__", ()))
