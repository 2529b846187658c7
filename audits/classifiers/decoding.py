"""What texts and bytes decode to: hexadecimal digits, base 64 and 32, compressed data, numbers.

A release that returns an encoded output reveals what it encodes.  A code of a text, or of
compressed data, is read as what it encodes; of other codes, which a chance text may be too, an
audit reads both.
"""

from __future__ import annotations

import base64
import binascii
import bz2
import contextlib
import lzma
import re
import zlib
from collections.abc import Iterator

import numpy as np

from accountant.numerics import Array

MIN_ENCODED, MAX_ENCODED = 8, 1 << 16  # characters of a text that is decoded
MAX_DECOMPRESSED = 1 << 18  # bytes that are decompressed at most
MAX_FLOATS, LARGEST_FLOAT = 64, 1e15  # floats that are read of bytes, and their largest size
HEXADECIMAL = re.compile(r"(?:[0-9a-fA-F]{2})+")
BASE32 = re.compile(r"(?:[A-Z2-7]{8})*[A-Z2-7]{2,8}={0,6}")
BASE64 = re.compile(r"(?:[A-Za-z0-9+/_-]{4})+(?:[A-Za-z0-9+/_-]{2}==|[A-Za-z0-9+/_-]{3}=)?")
SEGMENT = re.compile(r"[A-Za-z0-9+/_-]{16,}")  # a code within a text
GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS  # either header is recognised
ZLIB_HEADERS = (b"\x1f\x8b", b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
BZ2_HEADER, XZ_HEADER = b"BZh", b"\xfd7zXZ\x00"
DECOMPRESSION_ERRORS = (zlib.error, lzma.LZMAError, OSError)


def decoded_text(text: str) -> Iterator[bytes]:
    """The bytes that a text of hexadecimal digits or of base 32 or 64 stands for, if it is one."""
    if not MIN_ENCODED <= len(text) <= MAX_ENCODED or text.isdecimal():
        return
    if HEXADECIMAL.fullmatch(text):
        yield bytes.fromhex(text)
        return
    if len(text) % 8 == 0 and BASE32.fullmatch(text):
        with contextlib.suppress(binascii.Error):
            yield base64.b32decode(text)
    if BASE64.fullmatch(text):
        yield base64.b64decode(text.replace("-", "+").replace("_", "/"))


def sure_code(text: str) -> list[bytes]:
    """What a text, or the codes within it, stand for, as far as these are texts or compressed.

    Random letters hardly ever decode to printable ones, so these parts of the text are codes.
    """
    decoded = [content for content in decoded_text(text) if is_text(content) or is_packed(content)]
    if decoded or len(text) > MAX_ENCODED:
        return decoded
    for segment in SEGMENT.findall(text):
        whole = segment + "=" * (-len(segment) % 4)
        decoded += [content for content in decoded_text(whole) if is_text(content)]
    return decoded


def is_text(content: bytes) -> bool:
    """Whether bytes are a printable text."""
    return 0 < len(content) <= MAX_ENCODED and content.isascii() and content.decode().isprintable()


def is_packed(content: bytes) -> bool:
    """Whether bytes begin as compressed ones do."""
    return content.startswith((*ZLIB_HEADERS, BZ2_HEADER, XZ_HEADER))


def unpacked(content: bytes) -> bytes | None:
    """What compressed bytes decompress to, up to a limit; None if they are not compressed."""
    with contextlib.suppress(*DECOMPRESSION_ERRORS):
        if content.startswith(ZLIB_HEADERS):
            return zlib.decompressobj(GZIP_OR_ZLIB).decompress(content, MAX_DECOMPRESSED)
        if content.startswith(BZ2_HEADER):
            return bz2.BZ2Decompressor().decompress(content, MAX_DECOMPRESSED)
        if content.startswith(XZ_HEADER):
            return lzma.LZMADecompressor().decompress(content, MAX_DECOMPRESSED)
    return None


def decoded_floats(content: bytes) -> Iterator[Array]:
    """The floats that bytes may be."""
    if len(content) % 8 == 0 and 0 < len(content) <= 8 * MAX_FLOATS:
        numbers = np.frombuffer(content, "<f8")
        # Bytes that encode no floats would stand for huge ones, which hide others in a sum.
        yield np.where(np.abs(numbers) < LARGEST_FLOAT, numbers, np.nan)
