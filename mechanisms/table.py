"""The table of mechanisms, made from their own declarations; `make table` puts it in the README."""

from __future__ import annotations

from pathlib import Path

from mechanisms.mechanism import registry
from mechanisms.parameters import meanings

START, END = "<!-- table of mechanisms: made by `make table` -->\n", "<!-- end of table -->"
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


def in_readme(text: str) -> str:
    """The table that a README holds now."""
    return text.split(START)[1].split(END, maxsplit=1)[0]


def write_table(readme: str) -> None:
    """Write the table into a README, between its two marks."""
    path = Path(readme)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(START + in_readme(text), START + table()), encoding="utf-8")
