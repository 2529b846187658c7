"""Heads of a book in words, which people keep elsewhere: today's book must go on from them.

A head is NUMBER:HASH; with a secret NUMBER:HASH:SIGNATURE; and of a book with roles a *checkpoint*,
a signed note as logs of transparency and their witnesses write it: the name of the log, the number
of its entries and its hash, an empty line, and a line for each signature.  The third line of other
logs is the root of a Merkle tree.  Here it is the hash of the last entry, from which all earlier
ones follow, so the book is needed to compare two checkpoints.

References: C2SP, signed-note and tlog-checkpoint (c2sp.org); RFC 8032 (Ed25519).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from typing import NamedTuple

from accountant.book.chain.author_keys import AuthorKey, refuse_without_ed25519
from accountant.book.chain.entries import ChainHead
from accountant.book.chain.roles import Roles
from accountant.book.chain.signing_key import SigningKey
from accountant.errors import LedgerCorrupt, ParameterError

HEAD = re.compile(r"([1-9][0-9]{0,18}):([0-9a-f]{64})(?::([0-9a-f]{64}))?", re.ASCII)
NUMBER = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)
ED25519 = b"\x01"  # the signature type of signed notes
SIGNATURE_MARK = "— "  # begins each line with a signature
MOST_SIGNATURES = 100  # lines with signatures that are read, as Go's reader of notes does


class KeptHead(NamedTuple):
    """A head that a person kept: the end of the chain, and of a checkpoint what was signed.

    ``origin`` names the log, "" where the head is no checkpoint.  ``signatures`` are the bytes of
    each line that bears the log's name: four that identify the key, and the signature.
    """

    head: ChainHead
    origin: str = ""
    signed_text: str = ""
    signatures: tuple[bytes, ...] = ()

    def refuse_other_book(self, book: str, book_id: str) -> None:
        """Raise `LedgerCorrupt` if a checkpoint names another book."""
        if self.origin not in ("", origin_of(book_id)):
            why = f"is another book than {self.origin}, of which the checkpoint is"
            raise LedgerCorrupt(book, why)

    def refuse_unless_signed(self, roles: Roles | None) -> None:
        """Raise `ParameterError` unless a checkpoint is signed by a person of these roles."""
        if not self.origin:
            return
        refuse_without_ed25519()
        people = [] if roles is None else roles.keys.values()
        message = self.signed_text.encode()
        for key in people:
            for signature in self.signatures:
                is_of_key = signature[:4] == key_id(self.origin, key.raw)
                if is_of_key and key.has_signed(signature[4:], message):
                    return
        allowed = "a checkpoint that is signed by a person whom the roles of the book name"
        raise ParameterError("head", self.signed_text, allowed)


def origin_of(book_id: str) -> str:
    """Return the name of a book's log in its checkpoints, and of the keys that sign these."""
    return f"dp-attest/{book_id}"


def key_id(name: str, public_key: bytes) -> bytes:
    """Return the four bytes by which a line of a signed note names its Ed25519 key."""
    return hashlib.sha256(name.encode() + b"\n" + ED25519 + public_key).digest()[:4]


def format_head(head: ChainHead, key: SigningKey | AuthorKey | None, book_id: str) -> str:
    """Return a head in words, signed where there is a key: with a person's key a checkpoint."""
    if key is None:
        return str(head)
    if isinstance(key, SigningKey):
        return f"{head}:{key.sign_head(head)}"
    origin, root = origin_of(book_id), base64.b64encode(bytes.fromhex(head.hash)).decode()
    text = f"{origin}\n{head.seq}\n{root}\n"
    signature = key_id(origin, key.public) + key.sign(text.encode())
    return f"{text}\n{SIGNATURE_MARK}{origin} {base64.b64encode(signature).decode()}\n"


def parse_head(text: str, key: SigningKey | AuthorKey | None) -> KeptHead:
    """Return the head that `format_head` wrote; with a secret only one that was signed with it."""
    head_match = HEAD.fullmatch(text.strip()) if isinstance(text, str) else None
    if head_match is None:
        return _parse_checkpoint(text)
    number, mark, signature = head_match.groups()
    head = ChainHead(int(number), mark)
    secret = key if isinstance(key, SigningKey) else None
    if secret is None and signature is not None:
        raise ParameterError("key", None, "given: the head is signed")
    if secret is not None and not hmac.compare_digest(signature or "", secret.sign_head(head)):
        allowed = "signed with the key of this book, NUMBER:HASH:SIGNATURE"
        raise ParameterError("head", text, allowed)
    return KeptHead(head)


def _parse_checkpoint(text: object) -> KeptHead:
    """Return the head of a checkpoint; its signatures are read and not yet checked."""
    allowed = "NUMBER:HASH, or a checkpoint, as an earlier verify or `ledger head` printed it"
    refusal = ParameterError("head", text, allowed)
    if not isinstance(text, str):
        raise refusal
    # the text of a note ends at its last empty line
    body, _, signature_lines = text.replace("\r\n", "\n").rpartition("\n\n")
    text_lines, lines = body.split("\n"), signature_lines.removesuffix("\n").split("\n")
    if len(text_lines) < 3 or "" in text_lines or len(lines) > MOST_SIGNATURES:
        raise refusal
    origin, number, root = text_lines[:3]  # lines after these are extensions
    try:
        mark = base64.b64decode(root, validate=True)
        signatures = [
            base64.b64decode(encoded, validate=True)
            for line in lines
            for name, _, encoded in [line.removeprefix(SIGNATURE_MARK).rpartition(" ")]
            if name == origin
        ]
    except (binascii.Error, ValueError):
        raise refusal from None
    are_signatures = all(line.startswith(SIGNATURE_MARK) for line in lines)
    is_hash = len(mark) == hashlib.sha256().digest_size
    if not (NUMBER.fullmatch(number) and is_hash and are_signatures):
        raise refusal
    return KeptHead(ChainHead(int(number), mark.hex()), origin, f"{body}\n", tuple(signatures))
