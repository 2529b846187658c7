"""The place in the audited code where a draw is asked for, found on the stack of calls."""

from __future__ import annotations

import inspect
import itertools
import os
import random
import secrets
import sysconfig
from collections.abc import Iterator
from types import FrameType

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
# the packages that the audit itself runs in
OWN_PACKAGES = tuple(
    os.path.join(os.path.dirname(os.path.dirname(HERE)), name, "")
    for name in ("accountant", "audits")
)
STANDARD = sysconfig.get_path("stdlib")  # the folder of Python's own modules
# Code in these files draws for its callers, so the call site is the first frame outside of them.
PASSED_OVER = [HERE, os.path.dirname(np.__file__), random.__file__, secrets.__file__]
LIBRARIES = tuple(
    os.sep + os.path.join("site-packages", *parts) + os.sep
    for parts in (("scipy", "stats"), ("torch",), ("diffprivlib", "mechanisms"), ("opendp",))
)


def call_site() -> str:
    """Return ``file:line`` of the first frame that is neither ours nor a library of noise."""
    frame = next(_frames_of_code(), None)
    if frame is None:
        return "unknown place"
    return f"{shown_path(frame.f_code.co_filename)}:{frame.f_lineno}"


def draw_site() -> tuple[tuple[str, int], ...]:
    """Return the call in the first two such frames: a helper that draws has several callers."""
    return tuple(
        (f"{frame.f_code.co_filename}:{frame.f_code.co_firstlineno}", frame.f_lasti)
        for frame in itertools.islice(_frames_of_code(), 2)
    )


def _frames_of_code() -> Iterator[FrameType]:
    """Yield the frames that are neither ours nor of a library of noise, innermost first."""
    frame = inspect.currentframe()
    while frame is not None:
        name = frame.f_code.co_filename
        if not (
            name.startswith(tuple(PASSED_OVER))
            or any(part in name for part in LIBRARIES)
            or name.startswith(("<frozen", "<__array"))
        ):
            yield frame
        frame = frame.f_back


def is_library(path: str) -> bool:
    """Return whether a file is of Python or of an installed package, and not the user's."""
    return path.startswith((STANDARD, *OWN_PACKAGES, "<frozen")) or "-packages" + os.sep in path


def is_importing() -> bool:
    """Return whether a module is being imported, which takes place in one run alone."""
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def shown_path(name: str) -> str:
    """Return a path below the working folder as it is from there, else its last two parts."""
    here = os.getcwd() + os.sep
    return name[len(here) :] if name.startswith(here) else os.sep.join(name.split(os.sep)[-2:])
