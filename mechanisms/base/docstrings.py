"""Docstrings of mechanisms, completed from what their fields declare."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

EXAMPLES = "Examples\n--------\n"


def completed_docstring(cls: Any) -> str:
    """Return the docstring of a declared class with Parameters, Notes and References added.

    They come from the declared fields and from ``limits`` and ``reference`` of the class, and
    stand before the examples, in the order of numpydoc.
    """
    text, head, examples = inspect.cleandoc(cls.__doc__).partition(EXAMPLES)
    sections = {
        "Parameters": "\n".join(map(_parameter_entry, dataclasses.fields(cls))),
        "Notes": cls.limits and f"Known limits: {cls.limits}.",
        "References": f"{cls.reference}.",
    }
    parts = [f"{name}\n{'-' * len(name)}\n{body}" for name, body in sections.items() if body]
    return "\n\n".join([text.rstrip(), *parts, *([head + examples] if head else [])])


def _parameter_entry(field: dataclasses.Field[Any]) -> str:
    """Return the numpydoc entry of a field: type, default, meaning, range."""
    meaning = field.metadata["meaning"]
    kind = field.type if isinstance(field.type, str) else field.type.__name__
    # NaN is not equal to itself; it stands for no default after a field that has one
    has_default = field.default is not dataclasses.MISSING and field.default == field.default
    default = f", default={field.default!r}" if has_default else ""
    # The meaning describes a range that depends on other fields.
    allowed = [] if callable(meaning.domain) else [str(meaning.domain)]
    notes = "; ".join(allowed + ["`calibrate` searches it"] * meaning.knob)
    sentences = [f"{text[0].upper()}{text[1:]}." for text in (meaning.text, notes) if text]
    return "\n    ".join([f"{field.name} : {kind}{default}", *sentences])
