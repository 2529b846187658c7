"""A function with one place of its source changed: the smallest of all mutants."""

import __future__

import contextlib
import functools
import inspect
import textwrap


def edit(patch, owner, name, old, new, everywhere=False):
    """Put ``new`` for the only ``old`` in the source of a function or property of ``owner``."""
    found = inspect.getattr_static(owner, name)
    is_cached = isinstance(found, functools.cached_property)
    function = found.fget if isinstance(found, property) else inspect.unwrap(found)
    function = found.func if is_cached else function
    source = textwrap.dedent(inspect.getsource(function))
    if source.count(old) != 1 and not (everywhere and old in source):
        raise ValueError(f"{old!r} is {source.count(old)} times in {name}")
    lines = source.replace(old, new).splitlines()
    while not lines[0].startswith("def "):  # decorators are put back below
        lines.pop(0)
    code = compile(
        "\n".join(lines), f"<edited {name}>", "exec", __future__.annotations.compiler_flag
    )
    made = {}
    exec(code, function.__globals__, made)
    changed = made[function.__name__]
    if isinstance(found, property):
        changed = property(changed)
    elif is_cached:
        changed = functools.cached_property(changed)
        changed.__set_name__(owner, name)
    elif function is not found and not hasattr(found, "cache_clear"):
        changed = contextlib.contextmanager(changed)
    patch.setattr(owner, name, changed)
    tables = [table for table in vars(owner).values() if isinstance(table, dict)]
    for table in tables:  # a table that holds the function holds the changed one
        for key in [key for key, value in table.items() if value is found]:
            patch.setitem(table, key, changed)
