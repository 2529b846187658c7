"""People with keys, a book that they share, and entries that are forged into it."""

import contextlib

import numpy as np
import pytest

from accountant import Book, Budget, Roles
from accountant.book.chain.author_keys import AuthorKey, PublicKey
from accountant.book.chain.entries import FORMAT
from accountant.book.chain.signatures import Signatures, key_of
from accountant.book.opening import Make, open_log
from mechanisms import Laplace

DATA = np.arange(20.0)
TENTH = Laplace(10.0)
NAMES = ("ada", "bob", "ana", "aud", "eve")


def write_key(folder, name):
    """Write a private key as ``ssh-keygen`` does; its path."""
    ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
    from cryptography.hazmat.primitives import serialization as forms

    private = ed25519.Ed25519PrivateKey.generate()
    text = private.private_bytes(
        forms.Encoding.PEM, forms.PrivateFormat.OpenSSH, forms.NoEncryption()
    )
    path = folder / name
    path.touch(mode=0o600)
    path.write_bytes(text)
    return path


class People:
    """Five people with a key each: ada and bob are curators, ana spends, aud reads, eve is none."""

    def __init__(self, folder):
        self.keys = {name: write_key(folder, name) for name in NAMES}
        self.lines = {
            name: PublicKey(name, key_of(path).public).line for name, path in self.keys.items()
        }

    def roles(self, curators="ada bob", analysts="ana", auditors="aud", raise_needs=1):
        return Roles(
            *([self.lines[name] for name in names.split()]
              for names in (curators, analysts, auditors)),
            raise_needs=raise_needs,
        )  # fmt: skip

    def make(self, place, needed_for_d=None, **roles):
        """A book with a data set that was spent from; it may itself ask for two curators."""
        with Book.create(place.url, key=self.keys["ada"], roles=self.roles(**roles)) as book:
            book.dataset("d", Budget(1.0), notion="pure", raise_needs=needed_for_d)
        with self.open(place, "ana") as book:
            spend(book)

    def open(self, place, name):
        return Book.open(place.url, key=self.keys[name])

    @contextlib.contextmanager
    def forging(self, place, author, holder=None, roles=None):
        """A log that writes any facts that it gets, as an author, with the key of a holder.

        ``roles`` are the entries of roles that the entries name, one after another.
        """
        log = open_log(place.url, Make.NEVER, wait=5.0, key=self.keys[holder or author])
        with pytest.MonkeyPatch.context() as patch, contextlib.closing(log):
            patch.setattr(Signatures, "_refuse_to_write", lambda *_: log.signing_key)
            if roles is not None:
                stated = iter(roles)
                patch.setattr(Signatures, "facts_of_next",
                              lambda *_: {"format": FORMAT, "roles": next(stated)})  # fmt: skip
            with log.writing():
                log.author = author
                yield log


def spend(book):
    with book.ledger("d", DATA) as ledger:
        return ledger.release(TENTH, np.sum)


def private_key(path):
    return AuthorKey.of(path.read_bytes(), str(path))


def with_passphrase(path, passphrase):
    """Write the private key of a file as PEM with a passphrase, in its place; its path."""
    from cryptography.hazmat.primitives import serialization as forms

    hidden = forms.BestAvailableEncryption(passphrase.encode())
    key = private_key(path)._key
    path.write_bytes(key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, hidden))
    return path
