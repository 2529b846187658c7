"""Positions of keys in a TOML text, and a limit on nesting.

A scanner of tokens, not a parser: `tomllib` decides whether the text is valid.  The scanner runs
first, since `tomllib` takes the square of a dotted key's length and recurses into nested values.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

from accountant.serialisation.plan_json import MAX_DEPTH, KeyPath

LineAndColumn = tuple[int, int]
OPENING, CLOSING = ("[", "{"), ("]", "}")
KEY_ENDS = ("=", "\n", ",", "[", "{")  # signs after which another key may begin

# Strings over several lines, then strings in a line; then a comment, a sign, or a bare word.  A
# quote that fits none of these opens a string that is never closed.
_TOKEN = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"{3,5}'
    r"|'''(?:[^']|'(?!''))*'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*|[\[\]{},=.\n]|[^\s\"'#\[\]{},=.]+|(?P<open>[\"'])",
    re.DOTALL,
)


class NestingTooDeep(ValueError):
    """Values are nested too deeply, or dotted keys too long; ``offset`` is the position."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        super().__init__(offset)


def tokens(text: str) -> list[tuple[str, int]]:
    """Return the tokens and their offsets, up to an unclosed string; raise `NestingTooDeep`."""
    located_tokens, depth, dotted = [], 0, 0
    for match in _TOKEN.finditer(text):
        if match["open"]:
            break
        token, at = match[0], match.start()
        depth += (token in OPENING) - (token in CLOSING)
        if token == ".":
            dotted += 1  # dots of the present key
        elif token in KEY_ENDS:
            dotted = 0
        # As in JSON a plan in another one takes up to two levels: an array, and a table.
        if max(depth, dotted) > 2 * MAX_DEPTH:
            raise NestingTooDeep(at)
        if not token.startswith("#"):
            located_tokens.append((token, at))
    return located_tokens


def line_and_column(text: str, offset: int) -> LineAndColumn:
    """Return line and column of an offset, counted from 1."""
    return text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1


def key_offsets(text: str) -> dict[KeyPath, int]:
    """Return the offset of each key and element of a valid TOML text."""
    return dict(_TokenScanner(tokens(text)).key_paths())


class _TokenScanner:
    """The text's tokens, the number of the next one, and how many tables of each array were read.

    Its methods read the tokens of one construct, and leave the next token to be read after it.
    """

    def __init__(self, located_tokens: list[tuple[str, int]]) -> None:
        # A line break at the end saves the question whether there is a next token.
        self._tokens, self._next = [*located_tokens, ("\n", -1)], 0
        self._elements: dict[KeyPath, int] = {}  # of [[table]] headers, the number of the last one

    def key_paths(self) -> Iterator[tuple[KeyPath, int]]:
        """Yield paths with their offsets, in the order of the text."""
        table: KeyPath = ()
        while self._next < len(self._tokens):
            token = self._tokens[self._next][0]
            if token == "\n":
                self._next += 1
            elif token == "[":
                table, at = self._header()
                yield table, at
            else:
                yield from self._pair(table)

    def _header(self) -> tuple[KeyPath, int]:
        """Read a table's header, and return its path and the offset of its key.

        The path of a [[table]] ends in the number of such tables before it.
        """
        # [[a]] begins with a second bracket, unlike [a].
        is_array = self._tokens[self._next + 1][0] == "["
        self._next += 1 + is_array
        at = self._tokens[self._next][1]
        path: KeyPath = ()
        keys = self._key()
        for i, key in enumerate(keys):
            path = (*path, key)
            if i == len(keys) - 1 and is_array:
                self._elements[path] = self._elements.get(path, -1) + 1
            if path in self._elements:
                path = (*path, self._elements[path])
        self._next += 1 + is_array
        return path, at

    def _key(self) -> list[str]:
        """Read a key up to the sign after it, and return the parts between its dots."""
        keys: list[str] = []
        while (token := self._tokens[self._next][0]) not in ("=", "]", "\n"):
            if token[0] in "\"'":
                keys += tomllib.loads(f"{token} = 0")  # the key without its quotes and escapes
            elif token != ".":
                keys.append(token)
            self._next += 1
        return keys

    def _pair(self, table: KeyPath) -> Iterator[tuple[KeyPath, int]]:
        """Read a key and its value, and yield the paths of the key and of all keys in the value."""
        at = self._tokens[self._next][1]
        path = (*table, *self._key())
        self._next += 1  # the sign =
        yield path, at
        yield from self._value(path)

    def _value(self, path: KeyPath) -> Iterator[tuple[KeyPath, int]]:
        """Read past the value of a key, and yield the paths of the keys and elements in it."""
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
