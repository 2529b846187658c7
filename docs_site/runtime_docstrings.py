"""Docstrings of the site as `help` shows them: declared mechanisms add their parameters to theirs.

The text in a mechanism's file says what it does; what it takes follows from the declaration of its
fields, and stands in ``__doc__`` when the class is made.
"""

import importlib
import inspect
from typing import Any

import griffe


class RuntimeDocstrings(griffe.Extension):
    """Gives every public class of the mechanisms the docstring that it has when it is imported."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Replace the docstring that stands in the file."""
        if not cls.path.startswith("mechanisms.") or cls.name.startswith("_"):
            return
        found = getattr(importlib.import_module(cls.module.path), cls.name, None)
        text = inspect.getdoc(found) if inspect.isclass(found) else None
        if text and cls.docstring:
            cls.docstring.value = text
