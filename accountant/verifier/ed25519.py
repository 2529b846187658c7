"""Checks Ed25519 signatures (RFC 8032): a signature holds no secret, so plain integers will do.

The curve is -x^2 + y^2 = 1 + d x^2 y^2 over the numbers modulo P, and B is its base point, of order
ORDER.  The signature (R, s) of a message M under the public key A is right if s B = R + k A, with
k = SHA-512(R, A, M).

Points are (X, Y, Z, T) with x = X / Z, y = Y / Z and x y = T / Z, in which addition needs no
division (Hisil, Wong, Carter & Dawson, 2008).
"""

from __future__ import annotations

import hashlib

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT_OF_MINUS_1 = pow(2, (P - 1) // 4, P)
COFACTOR = 8  # the curve has COFACTOR * ORDER points
Point = tuple[int, int, int, int]
ZERO: Point = (0, 1, 1, 0)


def add(a: Point, b: Point) -> Point:
    """Return the sum of two points; they may be the same."""
    low, high = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    mixed, twice = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = high - low, twice - mixed, twice + mixed, high + low
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(count: int, point: Point) -> Point:
    """Return the sum of ``count`` equal points."""
    total = ZERO
    while count:
        if count & 1:
            total = add(total, point)
        point, count = add(point, point), count >> 1
    return total


def encoded(point: Point) -> bytes:
    """Return the 32 bytes of a point: y, and the lowest bit of x as the highest."""
    inverse = pow(point[2], -1, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def decoded(raw: bytes) -> Point | None:
    """Return the point of 32 bytes in their only form; None where they are no such point."""
    number = int.from_bytes(raw, "little")
    y, is_odd = number & (2**255 - 1), number >> 255
    if len(raw) != 32 or y >= P:
        return None
    # x^2 = u / v; its root, if there is one, is u v^3 (u v^7)^((P - 5) / 8), times 1 or sqrt(-1)
    u, v = (y * y - 1) % P, (D * y * y + 1) % P
    x = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    if v * x * x % P != u:
        x = x * ROOT_OF_MINUS_1 % P
    if v * x * x % P != u or (x == 0 and is_odd):
        return None
    x = P - x if x & 1 != is_odd else x
    return x, y, 1, x * y % P


BASE = decoded((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def has_signed(key: bytes, signature: bytes, message: bytes) -> bool:
    """Return whether the holder of a public key signed the message.

    Each signature has one form: s is below ORDER, and R is compared as bytes.  A key of small
    order, under which one signature is right for many messages, has signed nothing.
    """
    point, s = decoded(key), int.from_bytes(signature[32:], "little")
    if point is None or BASE is None or len(signature) != 64 or s >= ORDER:
        return False
    if encoded(times(COFACTOR, point)) == encoded(ZERO):
        return False
    hashed = hashlib.sha512(signature[:32] + key + message).digest()
    k = int.from_bytes(hashed, "little") % ORDER
    negative = (P - point[0], point[1], 1, P - point[3])
    return encoded(add(times(s, BASE), times(k, negative))) == signature[:32]
