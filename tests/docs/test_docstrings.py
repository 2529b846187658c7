"""Docstrings teach: numpydoc form for everything exported, and an example.

numpydoc's own validation reads them.  A method that overrides one of a base class of the project
keeps the base's contract, so its sentence is enough; the base is checked instead.
"""

import doctest
import enum
import importlib
import inspect
import re
from functools import cache

import pytest
from numpydoc.validate import validate

PACKAGES = ("accountant", "mechanisms", "algorithms", "algorithms.frames", "audits",
            "audits.minimax")  # fmt: skip
ROOTS = ("accountant", "mechanisms", "algorithms", "audits")
# no docstring; no capital or full stop; parameters missing, unknown, out of order or without a
# description; no Returns section, or one without a description; no Yields section
FORM = {"GL08", "SS02", "SS03", "PR01", "PR02", "PR03", "PR07", "RT01", "RT03", "YD01"}
PRIVATE_PARAMETERS = r"Parameters \{('_\w+'(, )?)+\} not documented"
SENTENCE = {"GL08", "SS02", "SS03"}
# an enumeration is not called: numpydoc would ask for the parameters of the class of all of them
MEMBERS = FORM - {"PR01", "PR02"}


def home(value: object) -> str:
    return f"{value.__module__}.{value.__qualname__}"


def ours(cls: type) -> bool:
    return cls.__module__.split(".")[0] in ROOTS


@cache
def exported() -> dict[str, object]:
    """Every exported class and function, under the place where it is defined."""
    found = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isroutine(value):
                found[home(value)] = value
    return dict(sorted(found.items()))


@cache
def classes() -> dict[str, type]:
    """The exported classes and the classes of the project that they inherit from."""
    found = {}
    for value in exported().values():
        if inspect.isclass(value):
            found.update({home(cls): cls for cls in value.__mro__ if ours(cls)})
    return dict(sorted(found.items()))


def public_members(cls: type) -> dict[str, bool]:
    """Public methods and properties of a class, and whether each overrides one of a base."""
    members = {}
    for name, value in vars(cls).items():
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if not name.startswith("_") and (
            inspect.isfunction(function) or isinstance(value, property)
        ):
            bases = [base for base in cls.__mro__[1:] if name in vars(base)]
            members[name] = bool(bases)
    return members


@cache
def checked() -> dict[str, set[str]]:
    """Every name whose docstring is looked at, and the faults that count there."""
    # members of an enumeration are named, not made: its signature is Python's own
    rows = {name: SENTENCE if isinstance(value, enum.EnumType) else FORM
            for name, value in exported().items()}  # fmt: skip
    for place, cls in classes().items():
        if issubclass(cls, enum.Enum):
            rows[place] = MEMBERS
        elif not place.rpartition(".")[2].startswith("_"):
            rows.setdefault(place, FORM)
        for name, overrides in public_members(cls).items():
            rows[f"{place}.{name}"] = SENTENCE if overrides else FORM
    return dict(sorted(rows.items()))


@pytest.mark.parametrize("name", checked())
def test_a_docstring_has_the_sections_that_its_signature_asks_for(name):
    faults = [
        words for code, words in validate(name)["errors"]
        if code in checked()[name] and not re.fullmatch(PRIVATE_PARAMETERS, words)
    ]  # fmt: skip
    assert not faults, f"{name}: {'; '.join(faults)}"


@pytest.mark.parametrize("name", exported())
def test_an_exported_name_has_an_example(name):
    # `tests/test_packages.py` runs the examples of every module
    examples = doctest.DocTestParser().get_examples(exported()[name].__doc__)
    assert examples, f"{name} has no example"
