"""The table of mechanisms, made from their own declarations."""

from __future__ import annotations

from mechanisms.mechanism import registry
from mechanisms.parameters import meanings

HEAD = ("mechanism", "releases", "claim, for example", "arithmetic", "source")


def table() -> str:
    """Return a Markdown table with one row for every registered mechanism and choice."""
    lines = [_row(HEAD), _row(["---"] * len(HEAD))]
    for cls in registry():
        for one in cls.instances():
            signature = f"`{cls.__name__}({', '.join(meanings(cls))})`"
            claim = f"`{one!r}`: `{one.loss!r}`"
            loose = " (an upper bound)" if one.loose else ""
            lines.append(
                _row([signature, cls.releases, claim + loose, one.arithmetic.name, cls.reference])
            )
    return "\n".join(lines) + "\n"


def _row(cells: list[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"
