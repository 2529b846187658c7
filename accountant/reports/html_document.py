"""The frame of every page: one file, no request to anywhere, nothing inline but what is hashed."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

from accountant.formatting import escape_html


@functools.cache
def read_asset(name: str) -> str:
    """A style or script that lies beside this module."""
    return files("accountant.reports").joinpath(name).read_text(encoding="utf-8")


def html_page(title: str, body: Iterable[str], data: dict[str, Any] | None = None) -> str:
    """The page; with ``data`` the script is there too, and finds it as ``#data``."""
    style, script = read_asset("base.css") + read_asset("page.css"), read_asset("page.js")
    # forbids every request, also one that a mistake in here would make
    policy = f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; base-uri 'none'; "
    policy += f"form-action 'none'; script-src '{_hash(script)}'" if data else "form-action 'none'"
    parts = [
        "<!doctype html><html lang=en><head><meta charset=utf-8>",
        f'<meta http-equiv=Content-Security-Policy content="{policy}">',
        "<meta name=viewport content='width=device-width,initial-scale=1'>",
        "<meta name=color-scheme content='light dark'><meta name=referrer content=no-referrer>",
        # an icon of its own, or a browser asks for one
        f"<link rel=icon "
        f"href='data:,'><title>{escape_html(title)}</title><style>{style}</style></head>",
        "<body><main>", *body, "</main>",
    ]  # fmt: skip
    if data:
        parts.append(f"<script type='application/json' id=data>{_embedded(data)}</script>")
        parts.append(f"<script>{script}</script>")
    return "\n".join([*parts, "</body></html>"]) + "\n"


def _hash(source: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()


def _embedded(data: dict[str, Any]) -> str:
    """JSON that no HTML parser takes for markup."""
    words = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        words = words.replace(character, f"\\u{ord(character):04x}")
    return words
