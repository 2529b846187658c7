"""Signatures are checked as RFC 8032 says, and as the package `cryptography` checks them."""

import pytest

from accountant.verifier.ed25519 import (
    BASE,
    ORDER,
    ZERO,
    D,
    P,
    add,
    decoded,
    encoded,
    has_signed,
    times,
)

ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
# RFC 8032, 7.1: public key, message and signature of tests 1, 2 and 3
VECTORS = [
    ("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9"
     "b46bd25bf5f0595bbe24655141438e7a100b"),
    ("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f1"
     "1d8c387b2eaeb4302aeeb00d291612bb0c00"),
    ("fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
     "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984d"
     "c6594a7c15e9716ed28dc027beceea1ec40a"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "message", "signature"), VECTORS)
def test_the_vectors_of_the_standard(key, message, signature):
    key, message, signature = map(bytes.fromhex, (key, message, signature))
    assert has_signed(key, signature, message)
    assert not has_signed(key, signature, message + b"x")


@pytest.mark.parametrize("seed", range(12))
def test_it_agrees_with_cryptography(seed):
    private = ed25519.Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)
    key, message = private.public_key().public_bytes_raw(), bytes(range(17 * seed))
    signature = private.sign(message)
    assert has_signed(key, signature, message)
    for place in range(seed, 64, 12):
        forged = bytearray(signature)
        forged[place] ^= 1 << seed % 8
        assert not has_signed(key, bytes(forged), message)
        other = bytearray(key)
        other[place // 2] ^= 1 << seed % 8
        assert not has_signed(bytes(other), signature, message)


def test_a_signature_has_one_form():
    key, message, signature = map(bytes.fromhex, VECTORS[1])
    s = int.from_bytes(signature[32:], "little")
    for other in (s + ORDER, s + 2 * ORDER):
        assert not has_signed(key, signature[:32] + other.to_bytes(32, "little"), message)
    for wrong in (b"", signature[:63], signature + b"\0", signature[:32]):
        assert not has_signed(key, wrong, message)
    for wrong in (b"", key[:31], key + b"\0"):
        assert not has_signed(wrong, signature, message)


def points_of_small_order():
    """The eight points of an order that divides 8, in the form they have and in others."""
    point = next(p for p in map(decoded, (bytes([n]) + bytes(31) for n in range(2, 99))) if p)
    torsion = times(ORDER, point)
    return {encoded(times(count, torsion)) for count in range(8)}


def test_a_key_of_small_order_has_signed_nothing():
    small = points_of_small_order()
    assert len(small) in (2, 4, 8)
    assert encoded(ZERO) in small
    for key in small:
        # under the neutral point (R, s) = (s B, s) is right for every message
        signature = encoded(times(5, BASE)) + (5).to_bytes(32, "little")
        assert not has_signed(key, signature, b"any message")


def test_points_have_one_form():
    for y in (0, 1, 2, 18):
        other = (y + P).to_bytes(32, "little") if y + P < 2**255 else b"\xff" * 32
        assert decoded(other) is None
    assert decoded((1 | 1 << 255).to_bytes(32, "little")) is None  # x = 0 with a sign
    no_points = sum(decoded(bytes([n]) + bytes(31)) is None for n in range(200))
    assert 50 < no_points < 150  # about half of all y


def test_the_group_has_its_order():
    assert encoded(times(ORDER, BASE)) == encoded(ZERO)
    assert encoded(add(times(3, BASE), times(4, BASE))) == encoded(times(7, BASE))
    x, y, z, t = times(11, BASE)
    inverse = pow(z, -1, P)
    x, y = x * inverse % P, y * inverse % P
    assert (-x * x + y * y - 1 - D * x * x * y * y) % P == 0
    assert t * inverse % P == x * y % P
