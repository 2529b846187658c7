"""What texts and bytes decode to: hexadecimal digits, base64, compressed data, numbers, texts.

A release that returns an encoded output reveals what it encodes.  So an audit reads both.
"""

from __future__ import annotations

import base64
import contextlib
import re
import zlib
from collections.abc import Iterator

import numpy as np

from accountant.numerics import Array

MIN_ENCODED, MAX_ENCODED = 8, 1 << 16  # characters of a text that is decoded
MAX_DECOMPRESSED = 1 << 18  # bytes that are decompressed at most
MAX_FLOATS, LARGEST_FLOAT = 64, 1e15  # floats that are read of bytes, and their largest size
HEXADECIMAL = re.compile(r"(?:[0-9a-fA-F]{2})+")
BASE64 = re.compile(r"(?:[A-Za-z0-9+/_-]{4})+(?:[A-Za-z0-9+/_-]{2}==|[A-Za-z0-9+/_-]{3}=)?")
GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS  # either header is recognised
HEADERS = (b"\x1f\x8b", b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")


def decoded_text(text: str) -> Iterator[bytes]:
    """The bytes that a text of hexadecimal digits or of base64 stands for; none for other texts."""
    if not MIN_ENCODED <= len(text) <= MAX_ENCODED or text.isdecimal():
        return
    if HEXADECIMAL.fullmatch(text):
        yield bytes.fromhex(text)
    elif BASE64.fullmatch(text):
        yield base64.b64decode(text.replace("-", "+").replace("_", "/"))


def decoded_bytes(content: bytes) -> Iterator[bytes | str | Array]:
    """What bytes decompress to, and what they are as a text, or as floats."""
    if content.startswith(HEADERS):
        with contextlib.suppress(zlib.error):
            yield zlib.decompressobj(GZIP_OR_ZLIB).decompress(content, MAX_DECOMPRESSED)
        return
    if content.isascii() and len(content) <= MAX_ENCODED and content.decode().isprintable():
        yield content.decode()
    elif len(content) % 8 == 0 and 0 < len(content) <= 8 * MAX_FLOATS:
        numbers = np.frombuffer(content, "<f8")
        # Bytes that encode no floats would stand for huge ones, which hide others in a sum.
        yield np.where(np.abs(numbers) < LARGEST_FLOAT, numbers, np.nan)
