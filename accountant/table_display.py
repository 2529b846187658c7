"""Objects that show themselves as a table, in a notebook, a data frame or a list of dictionaries.

A class that inherits from `TableDisplay` defines ``_table``, which returns a `Table`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from accountant.errors import ParameterError
from accountant.formatting import escape_control, format_lower, format_upper

# The HTML of a table, in the template language of Jinja2.
TEMPLATE = """\
<table>
{% if caption %}<caption style="text-align: left">{{ caption }}</caption>
{% endif %}<thead><tr>{% for name in columns %}<th>{{ name }}</th>{% endfor %}</tr></thead>
<tbody>
{% for row in rows %}<tr>{% for text in row %}<td style="text-align: left">{{ text }}</td>\
{% endfor %}</tr>
{% endfor %}</tbody>
</table>
"""
FACTS = ("fact", "value")  # the columns of a table that has one fact in each row
DIGITS = 9  # significant digits of a bound in a notebook
MOST_ROWS = 60  # a notebook shows at most this many rows, the last ones; a data frame has all


class Table(NamedTuple):
    """The names of columns, rows of values, and a caption above them.

    ``upper`` and ``lower`` name the columns whose numbers are upper or lower bounds, and are shown
    rounded up or down.  In a table with the columns `FACTS` they name the facts instead.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    caption: str = ""
    upper: Collection[str] = ()
    lower: Collection[str] = ()

    def shown_row(self, row: Sequence[Any]) -> list[str]:
        """Return the values of a row as text.

        Bounds have `DIGITS` significant digits, other floats 6, None is empty.
        """
        facts = tuple(self.columns) == FACTS
        names = [row[0], row[0]] if facts else self.columns
        return [self._shown(name, value) for name, value in zip(names, row, strict=True)]

    def _shown(self, name: str, value: Any) -> str:
        """Return the text of a value in the column ``name``, or of the fact ``name``."""
        if value is None:
            return ""
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value) if name == "seed" else f"{value:,}"
        if not isinstance(value, float):
            return escape_control(value)
        if name in self.upper or name in self.lower:
            return (format_upper if name in self.upper else format_lower)(value, DIGITS)
        return f"{value:.6g}"


class TableDisplay(ABC):
    """A value that a notebook shows as a table, and that `to_frame` turns into a data frame."""

    __slots__ = ()

    @abstractmethod
    def _table(self) -> Table:
        """Return the table; its numbers are numbers, its other values are the text to show."""

    def to_frame(self) -> Any:
        """Return the rows as a pandas data frame.

        Returns
        -------
        pandas.DataFrame
            Numbers stay numbers.

        Raises
        ------
        ParameterError
            If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            allowed = "used where pandas is installed (pip install pandas)"
            raise ParameterError("to_frame", type(self).__name__, allowed) from None
        table = self._table()
        return pd.DataFrame([list(row) for row in table.rows], columns=list(table.columns))

    def to_records(self) -> list[dict[str, Any]]:
        """Return each row as a dictionary, by the names of the columns, with _ for a space.

        Returns
        -------
        list of dict
            Numbers stay numbers; None where a row has no value.
        """
        table = self._table()
        names = [name.replace(" ", "_") for name in table.columns]
        return [dict(zip(names, row, strict=True)) for row in table.rows]

    def _repr_html_(self) -> str:
        """Return the table as HTML, which notebooks show; every character is escaped."""
        from jinja2 import Environment

        table = self._table()
        rows, caption = list(table.rows), table.caption
        if len(rows) > MOST_ROWS:
            caption += f" (the last {MOST_ROWS} of {len(rows):,} rows; to_frame has all)"
            rows = rows[-MOST_ROWS:]
        shown = [table.shown_row(row) for row in rows]
        template = Environment(autoescape=True).from_string(TEMPLATE)
        return template.render(
            columns=table.columns, rows=shown, caption=escape_control(caption.strip())
        )
