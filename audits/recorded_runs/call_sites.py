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
SCIPY = os.sep + os.path.join("scipy", "stats") + os.sep


def call_site() -> str:
    """Return ``file:line`` of the first frame that is neither ours nor a library of noise."""
    frame = sys._getframe(1)  # the standard way to see the caller  # noqa: SLF001
    while frame is not None:
        name = frame.f_code.co_filename
        if not (name.startswith(tuple(PASSED_OVER)) or SCIPY in name or name[0] == "<"):
            return f"{shown_path(name)}:{frame.f_lineno}"
        if frame.f_back is None:
            break
        frame = frame.f_back
    return "unknown place"


def shown_path(name: str) -> str:
    """Return a path below the working folder as it is from there, else its last two parts."""
    here = os.getcwd() + os.sep
    return name[len(here) :] if name.startswith(here) else os.sep.join(name.split(os.sep)[-2:])
