"""Heads that others keep: checkpoints in the format of signed notes, and keys of people."""

import base64
import subprocess
import traceback

import pytest

from accountant import Book, Budget, LedgerCorrupt, ParameterError, RoleRefused
from accountant.book.chain.author_keys import PublicKey
from accountant.book.chain.checkpoint import key_id, parse_head
from accountant.book.chain.signatures import key_of
from accountant.book.databases.postgres_grants import grants_sql
from tests.accountant.book.people import People, private_key, spend, with_passphrase

pytest.importorskip("cryptography")
# the example of C2SP signed-note v1.0.0: its verifier key and its note
EXAMPLE_KEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
EXAMPLE_TEXT = "This is an example message.\n"
EXAMPLE_SIGNATURE = (
    "Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM="
)
# the example of C2SP tlog-checkpoint
EXAMPLE_CHECKPOINT = """\
example.com/behind-the-sofa
20852163
CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=

— example.com/behind-the-sofa \
Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
"""


@pytest.fixture
def people(tmp_path):
    folder = tmp_path / "keys"
    folder.mkdir()
    return People(folder)


def checkpoint_of(people, place, name):
    with people.open(place, name) as book:
        return book.head


# --- the format


def test_signed_notes_are_those_of_the_specification():
    name, number, encoded = EXAMPLE_KEY.split("+")
    public_key = base64.b64decode(encoded)[1:]
    signature = base64.b64decode(EXAMPLE_SIGNATURE)
    assert key_id(name, public_key).hex() == number == signature[:4].hex()
    assert PublicKey("foo", public_key).has_signed(signature[4:], EXAMPLE_TEXT.encode())
    kept = parse_head(EXAMPLE_CHECKPOINT, None)
    assert kept.origin == "example.com/behind-the-sofa"
    assert kept.head.seq == 20852163
    assert kept.signed_text == EXAMPLE_CHECKPOINT.rpartition("\n—")[0]
    assert [signature[:4].hex() for signature in kept.signatures] == ["033de0ae"]


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n\n", "\n"),
        lambda text: text.replace("— ", "- "),
        lambda text: text.replace("20852163", "020852163"),
        lambda text: text.replace("20852163", "²"),
        lambda text: text.replace("q2I=", "q2I"),
        lambda text: text.replace("CsUYapGG", ""),
        lambda text: text.replace("AYQ8=", "A*Q8="),
        lambda text: text.rpartition("\n\n")[0],
        lambda text: text + text,
        lambda text: text + "— x AAAA\n" * 100,
        lambda _: "8:abc",
        lambda _: None,
    ],
)
def test_what_is_no_checkpoint_is_refused(change):
    with pytest.raises(ParameterError, match="head must be NUMBER:HASH, or a checkpoint"):
        parse_head(change(EXAMPLE_CHECKPOINT), None)


# --- what a head finds


def test_whoever_keeps_a_checkpoint_finds_a_tail_that_was_cut(sqlite_book, people):
    people.make(sqlite_book)
    early, before = checkpoint_of(people, sqlite_book, "aud"), sqlite_book.path.read_bytes()
    with people.open(sqlite_book, "ana") as book:
        spend(book)
    late = checkpoint_of(people, sqlite_book, "bob")
    origin, size, _, _, line, _ = late.split("\n")
    assert (size, line.split()[1]) == ("7", origin)
    for name in (None, "eve", "aud"):
        with Book.open(sqlite_book.url, key=name and people.keys[name]) as book:
            heads = [early, late, late.replace("\n", "\r\n")]
            if name != "eve":  # whom the book does not know: a head for her is refused
                heads.append(book.head)
            for head in heads:
                assert book.verify(head).entries == 7
    sqlite_book.path.write_bytes(before)
    with Book.open(sqlite_book.url) as book:
        assert book.verify(early).entries == 5
        with pytest.raises(LedgerCorrupt, match="ends at entry 5, but entry 7 was written"):
            book.verify(late)


def test_a_rewritten_book_is_found_though_every_signature_is_right(sqlite_book, people, tmp_path):
    people.make(sqlite_book)
    head = checkpoint_of(people, sqlite_book, "aud")
    sqlite_book.path.unlink()
    people.make(sqlite_book)
    with Book.open(sqlite_book.url) as book:
        assert book.verify().entries == 5
        with pytest.raises(LedgerCorrupt, match="is another book than dp-attest/"):
            book.verify(head)
        book_id = book._log.first_facts["id"]
    # one that took over the identity of the first is another chain
    stolen = head.replace(head.partition("\n")[0], f"dp-attest/{book_id}")
    with Book.open(sqlite_book.url) as book, pytest.raises(LedgerCorrupt, match="another chain"):
        book.verify(stolen)


def test_a_checkpoint_is_believed_only_from_a_person_of_the_book(any_book, people):
    people.make(any_book)
    head = checkpoint_of(people, any_book, "ana")
    with pytest.raises(RoleRefused, match="the roles name no holder of this key, SHA256:"):
        checkpoint_of(people, any_book, "eve")
    text, _, line = head.rpartition("\n\n")
    raw = base64.b64decode(line.split()[2])
    forged = key_of(people.keys["eve"]).sign(f"{text}\n".encode())
    for signature in (raw[:-1] + bytes([raw[-1] ^ 1]), raw[:4] + forged, bytes(68)):
        said = f"{text}\n\n— {line.split()[1]} {base64.b64encode(signature).decode()}\n"
        with (
            Book.open(any_book.url) as book,
            pytest.raises(ParameterError, match="signed by a person whom the roles"),
        ):
            book.verify(said)
    witness = f"{head}— witness.example/w {base64.b64encode(bytes(72)).decode()}\n"
    with Book.open(any_book.url) as book:
        assert book.verify(witness).entries == 5  # signatures of others are passed over
    with people.open(any_book, "ada") as book:
        book.set_roles(people.roles(analysts="eve"), "ana has left")
        book.verify(head)  # she was there when she signed it
        with pytest.raises(LedgerCorrupt, match="another chain"):
            book.verify(head.replace("\n5\n", "\n4\n"))


def test_a_book_without_roles_has_no_checkpoints(sqlite_book, people):
    with Book.create(sqlite_book.url) as book:
        book.dataset("d", Budget(1.0))
        origin = f"dp-attest/{book._log.first_facts['id']}"
        number, mark = book.head.split(":")
        root = base64.b64encode(bytes.fromhex(mark)).decode()
        head = f"{origin}\n{number}\n{root}\n\n— {origin} {EXAMPLE_SIGNATURE}\n"
        with pytest.raises(ParameterError, match="signed by a person whom the roles"):
            book.verify(head)
    assert checkpoint_of(people, sqlite_book, "ada") == f"{number}:{mark}"


def test_a_book_that_its_people_wrote_anew_is_found_by_a_head(sqlite_book, people):
    people.make(sqlite_book)
    head = checkpoint_of(people, sqlite_book, "aud")
    sqlite_book.tamper("DELETE FROM entries WHERE seq > 3", "DELETE FROM blobs",
                       "PRAGMA user_version = 3")  # fmt: skip
    with people.open(sqlite_book, "ana") as book:
        spend(book)  # another release in place of the first
        book.verify()
        with pytest.raises(LedgerCorrupt, match="another chain"):
            book.verify(head)


# --- files of private keys


def test_private_keys_of_openssh_and_pem_are_read(people, tmp_path):
    from cryptography.hazmat.primitives import serialization as forms

    key = private_key(people.keys["ada"])
    pem = tmp_path / "ada.pem"
    pem.touch(mode=0o600)
    pem.write_bytes(
        key._key.private_bytes(
            forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption()
        )
    )  # fmt: skip
    assert key_of(pem).public == key.public == key_of(str(people.keys["ada"])).public
    shown = [repr(key), str(vars(key_of(pem)))]
    assert not any("PRIVATE" in text or pem.read_text()[40:60] in text for text in shown)
    with pytest.raises(TypeError, match="not pickled"):
        key.__reduce__()


def test_a_home_folder_is_found(people, monkeypatch):
    monkeypatch.setenv("HOME", str(people.keys["ada"].parent))
    assert key_of("~/ada").public == private_key(people.keys["ada"]).public


PASSPHRASE = "a passphrase of Ämter"


@pytest.fixture(params=["PEM", "OpenSSH"])
def hidden_key(request, people):
    """The key of ada in a file with a passphrase."""
    path = people.keys["ada"]
    if request.param == "PEM":
        return with_passphrase(path, PASSPHRASE)
    pytest.importorskip("bcrypt")
    words = ["ssh-keygen", "-q", "-p", "-a", "1", "-P", "", "-N", PASSPHRASE, "-f", str(path)]
    try:
        subprocess.run(words, check=True, capture_output=True)
    except OSError:
        pytest.skip("no ssh-keygen")
    return path


@pytest.mark.parametrize("passphrase", [PASSPHRASE, lambda: PASSPHRASE], ids=["text", "function"])
def test_a_private_key_opens_with_its_passphrase(sqlite_book, people, hidden_key, passphrase):
    roles = people.roles()
    with Book.create(sqlite_book.url, key=hidden_key, roles=roles, passphrase=passphrase) as book:
        book.dataset("d", Budget(1.0))
        shown = [repr(book), repr(vars(book._log)), repr(vars(book._log.signing_key))]
    with Book.open(sqlite_book.url, key=hidden_key, passphrase=passphrase) as book:
        assert book.close_dataset("d", "the end").closed
        assert book.verify().entries == 4
        shown.append(book.verify().head)
    assert not any("phrase" in text for text in shown)


@pytest.mark.parametrize(
    ("passphrase", "sentence"),
    [
        (None, "key must be given with its passphrase, as it has one: passphrase=, got"),
        (
            "a passphrase of another key",
            "key must be opened with its own passphrase; the given one",
        ),
        ("", "key must be opened with its own passphrase; the given one is wrong, got"),
        ("half of a pair: \ud800", "key must be opened with its own passphrase; the given one"),
        (lambda: "a passphrase of another key", "key must be opened with its own passphrase; the"),
        (lambda: None, "key must be opened with its own passphrase; the given one is wrong"),
        (
            b"a passphrase of another key",
            "passphrase must be a text, or a function that returns one",
        ),
    ],
)
def test_a_wrong_passphrase_is_refused_and_never_shown(hidden_key, passphrase, sentence):
    for call in (Book.open, Book.create):
        with pytest.raises(ParameterError, match=sentence) as caught:
            call("no/book.db", key=hidden_key, passphrase=passphrase)
        error = caught.value
        later_frames = error.__traceback__.tb_next  # the first is that of this test
        shown = traceback.TracebackException(
            ParameterError, error, later_frames, capture_locals=not isinstance(passphrase, bytes)
        )
        for text in (str(error), repr(error), "".join(shown.format())):
            assert "of another key" not in text
            assert "half of" not in text
        assert error.__context__ is None


def test_a_key_without_a_passphrase_asks_for_none(people):
    for path in (people.keys["ada"], people.keys["bob"]):
        assert key_of(path, lambda: 1 / 0).public == private_key(path).public


def test_without_bcrypt_a_key_of_openssh_says_what_is_missing(people, monkeypatch):
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    def load(_, passphrase):
        raise TypeError if passphrase is None else UnsupportedAlgorithm("Need bcrypt module")

    monkeypatch.setattr(serialization, "load_ssh_private_key", load)
    with pytest.raises(ParameterError, match=r"bcrypt is not installed; `pip install bcrypt`"):
        key_of(people.keys["ada"], lambda: PASSPHRASE)


@pytest.mark.parametrize("mode", [0o640, 0o644])
def test_a_private_key_that_others_can_read_is_refused(people, mode):
    people.keys["ada"].chmod(mode)
    with pytest.raises(ParameterError, match="chmod 600"):
        key_of(people.keys["ada"])


def test_other_private_keys_are_refused(tmp_path):
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric import ec

    plain = (forms.PrivateFormat.PKCS8, forms.NoEncryption())
    other = ec.generate_private_key(ec.SECP256R1()).private_bytes(forms.Encoding.PEM, *plain)
    for text in (other, b"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n", b"-----BEGIN x"):
        path = tmp_path / "key"
        path.touch(mode=0o600)
        path.write_bytes(text)
        with pytest.raises(ParameterError, match="key must be an Ed25519 private key; `ssh-keyge"):
            key_of(path)


def test_groups_have_names_that_need_no_quotes(sqlite_book):
    for wrong in ("", "Book", "a b", "a;b", "1a", "x" * 41, None):
        with pytest.raises(ParameterError, match="prefix must be at most 40"):
            grants_sql("public", wrong)
    with (
        Book.create(sqlite_book.url) as book,
        pytest.raises(ParameterError, match="url must be of a book on a PostgreSQL server"),
    ):
        book.grants()
