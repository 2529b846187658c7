"""``dp-attest ledger roles|grants``: who may write what to a book.

A book is a database of data sets, the privacy budget of each, and what was spent of it.  Its roles
are lists of public keys; the work is done by `accountant.book`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accountant.cli.ledger_options import (
    BookName,
    KeyFile,
    NewBook,
    PinFile,
    ReasonOfSet,
    check_reason_goes_with_set,
    open_book,
    wrapped,
    writes_to_stdout,
)
from accountant.cli.options import Force, Json
from accountant.cli.vocabulary import option

if TYPE_CHECKING:
    from accountant.book.chain.roles import Roles


def roles(
    book: BookName,
    set_: Annotated[
        str | None,
        option("set", "State the roles that FILE, a .toml, lists.", value="FILE"),
    ] = None,
    reason: ReasonOfSet = None,
    new: NewBook = False,
    json: Json = None,
    force: Force = False,
    pin: PinFile = None,
    key: KeyFile = None,
) -> None:
    """Say who may write what to a book, after stating it anew with --set.

    A file of roles lists public keys of OpenSSH, or files of one key. The comment of a key is the
    name of its holder:

    \b
      curators = ["ssh-ed25519 AAAA... ada", "bob.pub"]  # open, raise, close, quotas, roles
      analysts = ["ana.pub"]                             # spend
      auditors = ["eve.pub"]                             # only read and verify
      raise_needs = 2            # curators whom a larger budget needs (by default 1)

    From then on each entry is signed with the private key of its author, --key FILE, which
    `ssh-keygen -t ed25519 -C NAME -f FILE` makes. A new book is made with --new and the key of one
    of its curators. With raise_needs = 2 the first curator's command proposes a change, and the
    same command by a second one makes it.

    Examples: dp-attest ledger roles book.db --set roles.toml --new --key ada.key;
    dp-attest ledger roles book.db
    """  # fmt: skip  # \b keeps typer from filling the lines
    from accountant.errors import ParameterError

    if not new:
        check_reason_goes_with_set(set_, reason)
    if new and (set_ is None or reason is not None):
        raise ParameterError("--new", True, "given with --set, and without --reason")
    stated = None if set_ is None else _roles_of_file(set_)
    with open_book(book, pin, new=new, key=key, roles=stated if new else None) as opened_book:
        if stated is not None and reason is not None:
            opened_book.set_roles(stated, reason)
        roles_in_force, proposed = opened_book.roles, opened_book.proposed_roles
    facts = None if roles_in_force is None else roles_in_force.facts()
    if writes_to_stdout(json, {"roles": facts, "proposed": proposed}):
        return
    if roles_in_force is None:
        print("this book has no roles: anyone who can write the file may write every entry")
        return
    for name, public_key in roles_in_force.keys.items():
        whose = " and ".join(roles_in_force.roles_of(name))
        print(wrapped(f"{name}: {whose}, {public_key.fingerprint}"))
    curators = "one curator" if roles_in_force.raise_needs == 1 else "two curators"
    print(f"a larger budget, a later end and other roles need {curators}")
    if proposed:
        print(wrapped(proposed))


def grants(
    book: BookName,
    prefix: Annotated[
        str,
        typer.Option(
            metavar="WORD",
            help="Name the groups WORD_curators, WORD_analysts and WORD_auditors; another word "
            "for each book of a server.",
        ),
    ] = "book",
    pin: PinFile = None,
) -> None:
    """Print SQL that makes a PostgreSQL server enforce the roles; its owner runs it once.

    Logins get a group each, such as GRANT book_analysts TO ana. An analyst's login can then spend,
    and add no entry that only a curator writes; no login can change or delete entries.

    Example: dp-attest ledger grants postgresql://owner@host/db | psql -d db
    """
    with open_book(book, pin) as opened_book:
        print(opened_book.grants(prefix), end="")


def _roles_of_file(name: str) -> Roles:
    """Return the roles of a .toml file; names of key files are relative to its folder."""
    import tomllib

    from accountant.book.chain.roles import LISTS, Roles
    from accountant.errors import ParameterError
    from accountant.files import read_text

    fields = (*LISTS.values(), "raise_needs")
    try:
        document = tomllib.loads(read_text(Path(name)))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ParameterError("--set", name, f"a .toml file of roles ({why})") from None
    if not document.keys() <= {*fields} or "curators" not in document:
        raise ParameterError("--set", name, f"a file that states curators; it may state {fields}")
    for field in LISTS.values():
        keys = document.get(field, [])
        if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            raise ParameterError(field, name, "a list of keys in quotes")
        folder = Path(name).parent
        document[field] = [key if " " in key else folder / Path(key).expanduser() for key in keys]
    return Roles(**document)
