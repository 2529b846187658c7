"""Where in a TOML text each key stands; and what is too deep to be read at all.

A scanner of tokens, not a parser: `tomllib` says whether the text is right. It goes first, since
`tomllib` takes the square of a dotted key's length and recurses into nested values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

Place = tuple[int, int]
Steps = tuple[str | int, ...]
DEEPEST = 100

_TOKEN = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"{3,5}'
    r"|'''(?:[^']|'(?!''))*'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*|[\[\]{},=.\n]|[^\s\"'#\[\]{},=.]+|(?P<open>[\"'])",
    re.DOTALL,
)


class TooDeep(ValueError):
    """Nested deeper, or with longer dotted keys, than any plan is; ``at`` is its offset."""

    def __init__(self, at: int) -> None:
        self.at = at
        super().__init__(at)


def tokens(text: str) -> list[tuple[str, int]]:
    """The tokens and their offsets, up to a string that never ends; raises `TooDeep`."""
    found, depth, dots = [], 0, 0
    for match in _TOKEN.finditer(text):
        if match["open"]:
            break
        token, at = match[0], match.start()
        depth += (token in "[{") - (token in "]}")
        dots = dots + 1 if token == "." else dots * (token not in "=\n,[{")
        if max(depth, dots) > DEEPEST:
            raise TooDeep(at)
        if not token.startswith("#"):
            found.append((token, at))
    return found


def place(text: str, at: int) -> Place:
    """Line and column of an offset, counted from 1."""
    return text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1


def offsets(text: str) -> dict[Steps, int]:
    """The offset of each key and element of a TOML text that `tomllib` reads."""
    return dict(_Scan(tokens(text)).found())


class _Scan:
    """The text's tokens, and how far they were read."""

    def __init__(self, found: list[tuple[str, int]]) -> None:
        self._tokens, self._next = [*found, ("\n", -1)], 0
        self._elements: dict[Steps, int] = {}

    def found(self) -> Iterator[tuple[Steps, int]]:
        """Paths with their offsets, in the order of the text."""
        table: Steps = ()
        while self._next < len(self._tokens):
            token = self._tokens[self._next][0]
            if token == "\n":
                self._next += 1
            elif token == "[":
                table, at = self._header()
                yield table, at
            else:
                yield from self._pair(table)

    def _header(self) -> tuple[Steps, int]:
        # [[a]] tells its tokens from [a] by a second bracket
        many = self._tokens[self._next + 1][0] == "["
        self._next += 1 + many
        at = self._tokens[self._next][1]
        path: Steps = ()
        keys = self._key()
        for i, key in enumerate(keys):
            path = (*path, key)
            if i == len(keys) - 1 and many:
                self._elements[path] = self._elements.get(path, -1) + 1
            if path in self._elements:
                path = (*path, self._elements[path])
        self._next += 1 + many
        return path, at

    def _key(self) -> list[str]:
        keys = []
        while (token := self._tokens[self._next][0]) not in ("=", "]", "\n"):
            if token != ".":
                keys.append(_unquoted(token))
            self._next += 1
        return keys

    def _pair(self, table: Steps) -> Iterator[tuple[Steps, int]]:
        at = self._tokens[self._next][1]
        path = (*table, *self._key())
        self._next += 1
        yield path, at
        yield from self._value(path)

    def _value(self, path: Steps) -> Iterator[tuple[Steps, int]]:
        opened = self._tokens[self._next][0]
        if opened not in ("[", "{"):
            while self._tokens[self._next][0] not in (",", "]", "}", "\n"):
                self._next += 1
            return
        self._next += 1
        count = 0
        while (token := self._tokens[self._next][0]) not in ("]", "}"):
            if token in (",", "\n"):
                self._next += 1
            elif opened == "{":
                yield from self._pair(path)
            else:
                yield (*path, count), self._tokens[self._next][1]
                yield from self._value((*path, count))
                count += 1
        self._next += 1


def _unquoted(token: str) -> str:
    import tomllib

    if token[0] not in "\"'":
        return token
    document: dict[str, Any] = tomllib.loads(f"{token} = 0")
    return next(iter(document))
