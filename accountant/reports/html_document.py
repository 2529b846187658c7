"""HTML pages from Jinja templates, for all reports.

Each page is one file that makes no network request, and every value in it is escaped.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from accountant.files import csv_lines
from accountant.formatting import escape_control, format_lower, format_short, format_upper

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, *packages: str, **values: Any) -> str:
    """Return the page of a template of ``packages``, or of this package, filled with the values."""
    return _environment(*packages, "accountant.reports").get_template(template).render(values)


@functools.cache
def _environment(*packages: str) -> Environment:
    """Return the templates of packages: missing values are errors, only assets are not escaped."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    loader = ChoiceLoader([PackageLoader(package) for package in packages])
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=lambda value: value if isinstance(value, Markup) else escape_control(value),
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    environment.globals["asset"] = lambda name: Markup(loader.get_source(environment, name)[0])
    environment.filters |= {
        "csp_hash": _csp_hash,
        "thousands": "{:,}".format,
        "px": "{:.1f}".format,
        "format_upper": format_upper,
        "format_lower": format_lower,
        "format_short": format_short,
    }
    return environment


def csv_address(rows: Iterable[Iterable[object]]) -> str:
    """Return rows as an address that holds them as CSV, for a link that saves them."""
    return "data:text/csv;charset=utf-8," + quote("".join(csv_lines(rows)))


def _csp_hash(source: str) -> str:
    """Return the hash by which a content security policy allows this style or script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
