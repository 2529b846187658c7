"""Ed25519 keys of the people of a book: a private key signs, and anyone checks with the public one.

Private keys are files as ``ssh-keygen -t ed25519`` writes them, or PEM, with or without a
passphrase.  Public keys are lines of
OpenSSH, ``ssh-ed25519 AAAA... NAME``, where the comment is the name of the key's holder.

References: Bernstein, Duif, Lange, Schwabe & Yang (2011); RFC 8032 (Ed25519); RFC 8709 (its lines).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from accountant.book.chain.entries import checked_name
from accountant.errors import ParameterError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KIND = "ssh-ed25519"
# What stands before the 32 bytes of a key in a line: the lengths and the name of the kind.
WIRE_PREFIX = b"\x00\x00\x00\x0b" + KIND.encode() + b"\x00\x00\x00\x20"
KEY_LENGTH = 32  # bytes
PRIVATE_KEY_MARK = b"-----BEGIN "  # begins each private key of OpenSSH or PEM
NEW_KEY = "`ssh-keygen -t ed25519 -C NAME -f FILE` makes one"
Passphrase = str | Callable[[], str]


class PublicKey(NamedTuple):
    """The public key of a person, by the name that stands beside it."""

    name: str
    raw: bytes

    @classmethod
    def of(cls, argument: str, stated: object) -> PublicKey:
        """Return the key of a line of OpenSSH, or of a file with one such line."""
        allowed = "lines 'ssh-ed25519 AAAA... NAME', or files of one, as ssh-keygen writes (.pub)"
        line = stated
        if isinstance(stated, os.PathLike) or (isinstance(stated, str) and " " not in stated):
            try:
                with open(os.path.expanduser(stated), encoding="utf-8") as file:
                    line = file.read(1 << 16)
            except (OSError, ValueError):
                raise ParameterError(argument, str(stated), allowed) from None
        kind, _, rest = line.strip().partition(" ") if isinstance(line, str) else ("", "", "")
        encoded, _, name = rest.partition(" ")
        try:
            wire = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            wire = b""
        is_key = wire.startswith(WIRE_PREFIX) and len(wire) == len(WIRE_PREFIX) + KEY_LENGTH
        if kind != KIND or not is_key:
            raise ParameterError(argument, stated, allowed)
        return cls(checked_name(f"the name of a key in {argument}", name), wire[-KEY_LENGTH:])

    @property
    def line(self) -> str:
        """Return the line of OpenSSH."""
        return f"{KIND} {base64.b64encode(WIRE_PREFIX + self.raw).decode()} {self.name}"

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint, as ``ssh-keygen -l`` shows it."""
        return fingerprint(self.raw)

    def has_signed(self, signature: bytes, message: bytes) -> bool:
        """Return whether the holder of this key has signed the message."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True


class AuthorKey:
    """The private key of a person; neither it nor its passphrase is ever shown."""

    def __init__(self, private_key: Ed25519PrivateKey) -> None:
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        self._key = private_key
        self.public = private_key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)

    @classmethod
    def of(cls, file_bytes: bytes, path: str, ask: Callable[[], str] | None = None) -> AuthorKey:
        """Return the key of a file; ``ask`` returns its passphrase, and is called if it has one."""
        refuse_without_ed25519()
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric import ed25519
        from cryptography.hazmat.primitives.serialization import (
            load_pem_private_key,
            load_ssh_private_key,
        )

        load = load_ssh_private_key if b"OPENSSH" in file_bytes[:40] else load_pem_private_key
        private_key, has_passphrase = None, False
        try:
            private_key = load(file_bytes, None)
        except TypeError:  # what the package raises for a key with a passphrase
            has_passphrase = True
        except (ValueError, UnsupportedAlgorithm):
            private_key = None
        if has_passphrase:
            private_key = opened_key(load, file_bytes, path, ask)
        if not isinstance(private_key, ed25519.Ed25519PrivateKey):
            raise ParameterError("key", path, f"an Ed25519 private key; {NEW_KEY}")
        return cls(private_key)

    def sign(self, message: bytes) -> bytes:
        """Return the signature of a message."""
        return self._key.sign(message)

    def __repr__(self) -> str:
        return f"AuthorKey({fingerprint(self.public)})"

    def __reduce__(self) -> str:
        raise TypeError("a key is not pickled")


def asking(passphrase: object) -> Callable[[], str] | None:
    """Return a function that returns a passphrase: unlike the text, a traceback may show it."""
    if passphrase is None:
        return None
    if isinstance(passphrase, str):
        return lambda: passphrase
    if callable(passphrase):
        return passphrase
    allowed = "a text, or a function that returns one"
    raise ParameterError("passphrase", type(passphrase), allowed)


def opened_key(
    load: Callable[..., Any], file_bytes: bytes, path: str, ask: Callable[[], str] | None
) -> Any:
    """Return the private key of a file with a passphrase, which no local name ever holds."""
    from cryptography.exceptions import UnsupportedAlgorithm

    if ask is None:
        allowed = "given with its passphrase, as it has one: passphrase="
        raise ParameterError("key", path, allowed)
    allowed = "opened with its own passphrase; the given one is wrong"
    try:
        return load(file_bytes, ask().encode())
    except UnsupportedAlgorithm:
        allowed = "one without a passphrase where bcrypt is not installed; "
        allowed += "`pip install bcrypt` installs it"
    except ParameterError:  # nothing could be asked
        raise
    except (AttributeError, TypeError, ValueError):
        pass  # what is raised below has no context, which could hold the passphrase
    raise ParameterError("key", path, allowed)


def fingerprint(raw: bytes) -> str:
    """Return the fingerprint of a public key, as ``ssh-keygen -l`` shows it."""
    raw_digest = hashlib.sha256(WIRE_PREFIX + raw).digest()
    return f"SHA256:{base64.b64encode(raw_digest).decode().rstrip('=')}"


@cache
def has_ed25519() -> bool:
    """Return whether the package is installed that makes and checks signatures."""
    try:
        import cryptography.hazmat.primitives.asymmetric.ed25519  # noqa: F401
    except ImportError:
        return False
    return True


def refuse_without_ed25519() -> None:
    """Raise `ParameterError` where cryptography, which checks signatures, is not installed."""
    if not has_ed25519():
        allowed = "used where cryptography is installed (pip install cryptography)"
        raise ParameterError("keys of people", "nothing", allowed)
