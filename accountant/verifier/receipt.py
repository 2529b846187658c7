"""Checks a receipt: one signed document on what was promised, proved, audited, spent and published.

A receipt is a statement of in-toto in an envelope (DSSE): canonical JSON, signed by its author with
an Ed25519 key.  `check_receipt` refuses a file of which a byte was changed.  Then it checks again
what can be checked: the proof, the chain of the book's entries, and that proof, book and statement
of training are about one plan.  `receipt_words` says what remains a claim of the author.

docs/receipt.schema.json lists the fields.  References: in-toto Attestation Framework, Statement v1;
DSSE v1 (github.com/secure-systems-lab/dsse); RFC 8032.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from .document import Fields, ProofError, Verdict, is_list, need, parse
from .ed25519 import has_signed
from .plan_parts import CLAIMED, is_deep, same_plan

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "dp-attest:receipt/v1"
MEBIBYTES = 16  # of a receipt
KEY_KIND = b"\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x20"  # before the 32 bytes of an OpenSSH key
SHA256 = re.compile("[0-9a-f]{64}")
# The fields of the predicate, and what each may be.
PREDICATE: dict[str, tuple[type, ...]] = {
    "made": (str,), "author": (str,), "plan": (dict,), "promised": (dict, type(None)),
    "proof": (str, type(None)), "why_no_proof": (str,), "audits": (list,),
    "book": (dict, type(None)), "training": (dict, type(None)), "code": (list,),
    "environment": (dict,),
}  # fmt: skip
# The problems of parts that are about different plans.
OTHER_PROOF, OTHER_RUN, OTHER_CHARGE, OTHER_DIGEST = DIFFERENT_PLANS = (
    "the proof is of another plan",
    "the statement of training is about another plan",
    "the entries of the book charge something else than the plan",
    "the book was charged with another proof",
)
# What a signed file of another shape may raise where it is read.
MALFORMED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)


class Receipt(NamedTuple):
    """A receipt whose bytes are those that its author signed.

    ``verdict`` is that on its proof, None where it has none.  ``predicate`` is what the author
    wrote.  ``answers`` counts the answers in the entries of the book.  ``problems`` are sentences
    on what is not as it should be: the proof does not prove its upper end, or less was promised
    than is proved, an audit falsified a claim, or two parts are about different plans.
    """

    author: str
    fingerprint: str
    subjects: dict[str, str]
    predicate: dict[str, Any]
    verdict: Verdict | None
    answers: int
    problems: tuple[str, ...]


def check_receipt(document: bytes, key: bytes | None = None) -> Receipt:
    """Return what holds of a receipt; raise `ProofError` where its bytes are not as signed.

    ``key`` is the author's public key, 32 bytes, if the reader knows it: another one is refused.
    """
    try:
        statement, own_key = opened(document)
        mark, known = fingerprint(own_key), fingerprint(own_key if key is None else key)
        need(mark == known, f"signed with the key {mark}, and not with {known}", ProofError)
        return checked(statement, own_key)
    except MALFORMED as error:
        need(not isinstance(error, ProofError), str(error), ProofError)
        raise ProofError(f"the receipt is malformed: {error!r:.99}") from None


def opened(document: bytes) -> tuple[Fields, bytes]:
    """Return the statement in an envelope, and its author's public key; check the signature.

    The key is that of the statement itself: who trusts it must know it from elsewhere.
    """
    envelope = parse(document, "the receipt", MEBIBYTES)
    need(envelope.take("payloadType") == PAYLOAD_TYPE, "the receipt is no statement", ProofError)
    payload = base64_bytes(envelope.take("payload"))
    (only_one,) = envelope.take("signatures", fits=lambda value: len(value) == 1)
    envelope.done()
    signature = Fields(only_one, "the signature")
    keyid, signed = signature.take("keyid"), base64_bytes(signature.take("sig"))
    signature.done()
    statement = parse(payload, "the statement", MEBIBYTES)
    types = statement.take("_type"), statement.take("predicateType")
    need(types == (STATEMENT_TYPE, PREDICATE_TYPE), "no receipt of this version", ProofError)
    key = public_key(statement.remaining["predicate"]["author"])
    need(keyid == fingerprint(key), "keyid is not that of the author's key", ProofError)
    is_signed = has_signed(key, signed, signed_message(payload))
    need(is_signed, f"not signed with the key of its author, {keyid}", ProofError)
    return statement, key


def signed_message(payload: bytes) -> bytes:
    """Return what is signed: the payload, its type and both lengths, as DSSE encodes them."""
    return b"DSSEv1 %d %s %d %s" % (
        len(PAYLOAD_TYPE),
        PAYLOAD_TYPE.encode(),
        len(payload),
        payload,
    )


def checked(statement: Fields, key: bytes) -> Receipt:
    """Return what holds of a statement that the holder of a key has signed."""
    from .verdict import verify  # python-flint is needed from here on

    predicate = statement.take("predicate")
    fields = Fields(predicate, "the predicate")
    for name, kinds in PREDICATE.items():
        need(isinstance(fields.take(name), kinds), f"{name} is of another kind", ProofError)
    fields.done()
    plan, proof, training = predicate["plan"], predicate["proof"], predicate["training"]
    subjects = {}
    for subject in statement.take("subject", fits=is_list):
        digest = subject["digest"]["sha256"]
        need(SHA256.fullmatch(digest), "a subject has no SHA-256 digest", ProofError)
        subjects[subject["name"]] = digest
    statement.done()
    need(subjects["plan"] == digest_of(plan), "the digest of the plan is wrong", ProofError)
    need(not is_deep(predicate), "the statement is nested too deep", ProofError)
    problems: list[str] = []
    verdict = None if proof is None else verify(proof.encode())
    if verdict is None:
        problems.append(f"no proof: {predicate['why_no_proof']}")
    else:
        if verdict.word == "NOT PROVED":
            problems.append(f"the proof does not prove its claim: {verdict.reason}")
        if not are_same(plan, verdict.plan):
            problems.append(OTHER_PROOF)
        promised = predicate["promised"]
        bounds = {"epsilon": verdict.upper, "delta": verdict.delta}
        if promised and any(bounds[name] > promised[name] for name in bounds):
            problems.append("less epsilon or delta was promised than is proved")
    if training is not None and not are_same(plan, training["plan"]):
        problems.append(OTHER_RUN)
    for audit in predicate["audits"]:
        fallen = [row["subject"] for row in audit["findings"] if row["outcome"] == "falsified"]
        problems += [f"an audit falsified the claim of {subject}" for subject in fallen]
    answers = 0
    if predicate["book"] is not None:
        entries = entries_of(predicate["book"], key)
        answers = sum(entry["kind"] == "release" for entry in entries)
        if not are_same(plan, *charged(entries)):
            problems.append(OTHER_CHARGE)
        proofs = {entry["proof"] for entry in entries if entry.get("proof")}
        if verdict is not None and proofs - {verdict.digest}:
            problems.append(OTHER_DIGEST)
    author = predicate["author"].split(" ", 2)[2]
    return Receipt(author, fingerprint(key), subjects, predicate, verdict, answers, tuple(problems))


def entries_of(book: dict[str, Any], key: bytes) -> list[dict[str, Any]]:
    """Return the entries of the data set; refuse entries that are no chain up to the head.

    The hash of an entry is that of the hash before it and its text, so the last hash, which is in
    the head, fixes all entries.
    """
    mark, entries = book["previous"], []
    for body in book["entries"]:
        mark = hashlib.sha256(f"{mark}{body}".encode()).hexdigest()
        entries.append(json.loads(body))
    start = entries[0]["seq"]
    numbers = [entry["seq"] for entry in entries]
    is_row = numbers == list(range(start, start + len(entries)))
    need(is_row, "the entries of the book do not follow one another", ProofError)
    is_end = head_of(book["head"], key) == f"{numbers[-1]}:{mark}"
    need(is_end, "the head is not that of the entries", ProofError)
    return [entry for entry in entries if entry["dataset"] == book["dataset"]]


def head_of(head: str, key: bytes) -> str:
    """Return NUMBER:HASH of a head; a checkpoint, which has lines, must be signed with the key."""
    if "\n" not in head:
        return head
    text, _, signature_line = head.rpartition("\n\n")
    origin, number, root = text.split("\n")
    need(origin.startswith("dp-attest/"), "the checkpoint is of another log", ProofError)
    signature = base64_bytes(signature_line.rstrip("\n").rpartition(" ")[2])[4:]
    is_signed = has_signed(key, signature, f"{text}\n".encode())
    need(is_signed, "the checkpoint is not signed by the author of the receipt", ProofError)
    return f"{number}:{base64_bytes(root).hex()}"


def charged(entries: Iterable[dict[str, Any]]) -> Iterator[Any]:
    """Yield the plans and mechanisms that entries of a book charge."""
    for entry in entries:
        if entry["kind"] in {"plan", "reserve"}:
            yield entry["plan" if entry["kind"] == "plan" else "mechanism"]


def without_claims(value: Any) -> Any:
    """Return a plan in which each claim of a proof is the mechanism that claims."""
    if isinstance(value, dict):
        claims = value.get("kind") == CLAIMED and "mechanism" in value
        inner = {name: without_claims(field) for name, field in value.items()}
        return inner["mechanism"] if claims else inner
    return list(map(without_claims, value)) if isinstance(value, list) else value


def are_same(plan: Any, *others: Any) -> bool:
    """Return whether other plans together release what a plan does."""
    whole = {"kind": "Sequential", "parts": without_claims(list(others))}
    return same_plan(without_claims(plan), whole)


def canonical(value: Any) -> str:
    """Return the canonical JSON of a value: sorted keys, no blanks, a newline at the end."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False) + "\n"


def digest_of(value: Any) -> str:
    """Return the SHA-256 digest of the canonical JSON of a value."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def public_key(line: Any) -> bytes:
    """Return the 32 bytes of a public key from its line of OpenSSH: ssh-ed25519 AAAA... NAME."""
    kind, encoded, _ = line.strip().split(" ", 2)
    wire = base64_bytes(encoded)
    is_key = kind == "ssh-ed25519" and wire.startswith(KEY_KIND) and len(wire) == 51
    need(is_key, "no public key of OpenSSH, ssh-ed25519 AAAA... NAME", ProofError)
    return wire[-32:]


def fingerprint(key: bytes) -> str:
    """Return the fingerprint of a public key, as ``ssh-keygen -l`` shows it."""
    shown = base64.b64encode(hashlib.sha256(KEY_KIND + key).digest()).decode().rstrip("=")
    return f"SHA256:{shown}"


def base64_bytes(text: Any) -> bytes:
    """Return the bytes that a text stands for, in the only form they have."""
    raw = base64.b64decode(text, validate=True)
    need(base64.b64encode(raw).decode() == text, "base64 of another form", ProofError)
    return raw
