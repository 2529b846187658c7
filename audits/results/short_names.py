"""Short names of audited subjects for tables.

A subject is usually a mechanism, named by the call that makes it, such as
``Laplace(scale=1.0, sensitivity=1.0, ...)``.  Its short name leaves out arguments that equal their
default.
"""

from __future__ import annotations

import ast
import dataclasses
import functools

LONG = 58  # a name of more characters is shortened further; a table has 100 columns
DIGITS = 4  # significant digits of a number in a short name
MAX_NAME = 1000  # a longer name, in characters, is not read as a call and stays as it is


@functools.cache
def short_name(subject: str) -> str:
    """The subject without arguments at their default, and with numbers of four digits.

    If that is longer than `LONG`, leading arguments are written without ``name=``; if it still is,
    so is the argument ``arithmetic``.  A subject that is not the call of a mechanism is returned
    unchanged.  Result files have the full names.
    """
    prefix, start = "", subject.partition("(")[0]
    if " " in start:  # such as "low bits of Laplace(...)"
        prefix = start.rpartition(" ")[0] + " "
    if "(" not in subject or not start.isascii() or len(subject) > MAX_NAME:
        return subject
    try:
        call = ast.parse(subject.removeprefix(prefix), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return subject
    if not isinstance(call, ast.Call) or _fields(call) is None:
        return subject
    named, bare = (prefix + _written(call, names=names) for names in (True, False))
    if len(named) <= LONG:
        return named
    return bare if len(bare) <= LONG else bare.replace("arithmetic=", "")


def _written(node: ast.expr, *, names: bool) -> str:
    """The text of a node: a call in short form, a float with four digits, any other as it is."""
    fields = _fields(node)
    if isinstance(node, ast.Constant) and isinstance(node.value, float):
        return repr(float(f"{node.value:.{DIGITS}g}"))
    if not isinstance(node, ast.Call) or fields is None or node.args:
        return ast.unparse(node)
    # ``order`` has the names of the fields, up to the first one that is left out.
    parts, order = [], list(fields)
    for position, argument in enumerate(node.keywords):
        if argument.arg is None or ast.unparse(argument.value) == fields.get(argument.arg):
            order = order[:position]
            continue
        # An argument is written without its name only while none before it is left out.
        bare = not names and order[position : position + 1] == [argument.arg]
        value = _written(argument.value, names=names)
        parts.append(value if bare else f"{argument.arg}={value}")
    return f"{ast.unparse(node.func)}({', '.join(parts)})"


def _fields(node: ast.expr) -> dict[str, str] | None:
    """The arguments of the called class and their defaults as text; None for other nodes."""
    import accountant
    import mechanisms

    name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    kind = getattr(mechanisms, name, getattr(accountant, name, None)) if name else None
    if not isinstance(kind, type) or not dataclasses.is_dataclass(kind):
        return None
    return {field.name: repr(field.default) for field in dataclasses.fields(kind) if field.init}
