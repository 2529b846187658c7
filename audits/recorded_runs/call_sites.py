"""Where in the audited code a draw is asked for."""

from __future__ import annotations

import os
import random
import secrets
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
# frames of these files draw for others: the call site is the first frame outside of them
PASSED_OVER = [HERE, os.path.dirname(np.__file__), random.__file__, secrets.__file__]
LIBRARIES = tuple(
    os.sep + os.path.join("site-packages", *parts) + os.sep
    for parts in (("scipy", "stats"), ("torch",), ("diffprivlib", "mechanisms"), ("opendp",))
)


def call_site() -> str:
    """Return ``file:line`` of the first frame that is neither ours nor a library of noise."""
    frame = sys._getframe(1)  # the standard way to see the caller  # noqa: SLF001
    while frame is not None:
        name = frame.f_code.co_filename
        if not (
            name.startswith(tuple(PASSED_OVER))
            or any(part in name for part in LIBRARIES)
            or name.startswith(("<frozen", "<__array"))
        ):
            return f"{shown_path(name)}:{frame.f_lineno}"
        if frame.f_back is None:
            break
        frame = frame.f_back
    return "unknown place"


def is_importing() -> bool:
    """True within the import of a module, which takes place in one run alone."""
    frame = sys._getframe(1)  # noqa: SLF001
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        if frame.f_back is None:
            break
        frame = frame.f_back
    return False


def shown_path(name: str) -> str:
    """Return a path below the working folder as it is from there, else its last two parts."""
    here = os.getcwd() + os.sep
    return name[len(here) :] if name.startswith(here) else os.sep.join(name.split(os.sep)[-2:])
