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
import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from .document import Fields, ProofError, Receipt, Verdict, need, parse
from .ed25519 import has_signed
from .plan_parts import CLAIMED, is_deep, same_plan
from .receipt_words import receipt_lines

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "dp-attest:receipt/v1"
MEBIBYTES = 16  # of a receipt
KEY_KIND = b"\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x20"  # before the 32 bytes of an OpenSSH key
# Base64 of 51 bytes, which is what such a key has.
KEY_LINE = re.compile(r"\s*ssh-ed25519\s+([A-Za-z0-9+/]{68})(?:\s|$)")
NO_KEY = (
    "no public key of OpenSSH, ssh-ed25519 AAAA... NAME, which ssh-keygen writes to a .pub file"
)
SHA256 = re.compile("[0-9a-f]{64}")
OUTCOMES = ("survived", "falsified", "inconclusive")  # of an audit
# The statement, as `fits` reads it: a table has these fields, [X] is a list of X, and a tuple lists
# what a value may be.
NUMBER, NOTHING = (int, float), type(None)
FILE = {"name": str, "sha256": str}
STATEMENT = {
    "subject": [{"name": str, "digest": {"sha256": str}}],
    "predicate": {
        "made": str,
        "author": str,
        "plan": dict,
        "promised": (NOTHING, {"epsilon": NUMBER, "delta": NUMBER}),
        "proof": (NOTHING, str),
        "why_no_proof": str,
        "audits": [{
            "file": str, "sha256": str, "command": str, "date": str, "code": str,
            "versions": dict,
            "findings": [{
                "subject": str, "kind": str, "confidence": NUMBER, "runs": (NOTHING, int),
                "claim": {"epsilon": (NOTHING, *NUMBER), "delta": (NOTHING, *NUMBER)},
                "epsilon_lower": (NOTHING, *NUMBER), "outcome": str,
                "not_tested": [{"kind": str, "sentence": str}],
            }],
        }],
        "book": (NOTHING, {
            "id": str, "dataset": str, "protects": str, "spent": NUMBER, "previous": str,
            "entries": [str], "head": str,
        }),
        "training": (NOTHING, dict),
        "code": [FILE],
        "environment": {
            "packages": dict, "machine": str, "system": str, "modules": int,
            "modules_sha256": str,
        },
    },
}  # fmt: skip
# What is read of a statement of training.
TRAINING = {"loader": str, "examples": int, "noise": NUMBER}
# Kinds of entries that charge, and the field of what they charge.
CHARGES = {"plan": "plan", "reserve": "mechanism"}
ROUND_OFF = 1e-9  # by how much of it budgets let a sum be above the budget
# The problems of parts that are about different plans.
OTHER_PROOF, OTHER_RUN, OTHER_CHARGE, OTHER_DIGEST = DIFFERENT_PLANS = (
    "the proof is of another plan",
    "the statement of training is about another plan",
    "the entries of the book charge something else than the plan",
    "the book was charged with another proof",
)
# What a signed file of another shape may raise where it is read.
MALFORMED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)


def check_receipt(document: bytes, key: bytes | None = None) -> Receipt:
    """Return what holds of a receipt; raise `ProofError` where its bytes are not as signed.

    ``key`` is the author's public key, 32 bytes, if the reader knows it: another one is refused.
    """
    try:
        statement, own_key = opened(document)
        mark, expected = fingerprint(own_key), fingerprint(own_key if key is None else key)
        need(mark == expected, f"signed with the key {mark}, and not with {expected}", ProofError)
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


def fits(value: Any, shape: Any) -> bool:
    """Return whether a value is as a table of shapes says, such as `STATEMENT`."""
    if isinstance(shape, tuple):
        return any(fits(value, choice) for choice in shape)
    if isinstance(shape, dict):
        is_table = isinstance(value, dict) and set(value) == set(shape)
        return is_table and all(fits(value[name], inner) for name, inner in shape.items())
    if isinstance(shape, list):
        return isinstance(value, list) and all(fits(item, shape[0]) for item in value)
    is_large = isinstance(value, int | float) and abs(value) > sys.float_info.max
    return isinstance(value, shape) and not isinstance(value, bool) and not is_large


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

    content = statement.remaining
    need(not is_deep(content), "the statement is nested too deep", ProofError)
    need(fits(content, STATEMENT), "the statement has other fields than a receipt", ProofError)
    predicate, subjects = content["predicate"], {}
    for subject in content["subject"]:
        digest = subject["digest"]["sha256"]
        need(SHA256.fullmatch(digest), "a subject has no SHA-256 digest", ProofError)
        subjects[subject["name"]] = digest
    packages = predicate["environment"]["packages"]
    need(fits([*packages.values()], [str]), "a version of a package is no text", ProofError)
    right = digest_of(predicate["plan"])
    need(subjects["plan"] == right, "the digest of the plan is wrong", ProofError)
    proof, book = predicate["proof"], predicate["book"]
    verdict = None if proof is None else verify(proof.encode())
    entries = [] if book is None else entries_of(book, key)
    answers = sum(entry["kind"] == "release" for entry in entries)
    problems = tuple(problems_of(predicate, verdict, entries))
    if OTHER_PROOF in problems:  # its numbers say nothing of this plan
        verdict = None
    author = predicate["author"].split(" ", 2)[2]
    receipt = Receipt(author, fingerprint(key), subjects, predicate, verdict, answers, problems)
    list(receipt_lines(receipt, is_key_known=False))  # what cannot be shown is refused here
    return receipt


def problems_of(
    predicate: dict[str, Any], verdict: Verdict | None, entries: list[dict[str, Any]]
) -> Iterator[str]:
    """Yield what is not as it should be, in sentences."""
    plan, promised, training = predicate["plan"], predicate["promised"], predicate["training"]
    if verdict is None:
        yield f"no proof: {predicate['why_no_proof']}"
    else:
        if verdict.word == "NOT PROVED":
            yield f"the proof does not prove its claim: {verdict.reason}"
        if not are_same(plan, verdict.plan):
            yield OTHER_PROOF
        bounds = {"epsilon": verdict.upper, "delta": verdict.delta}
        if promised and any(bounds[name] > promised[name] * (1 + ROUND_OFF) for name in bounds):
            yield "less epsilon or delta was promised than is proved"
        # A proof of one of several charges is not one of the whole plan.
        proofs = [entry.get("proof") for entry in entries if entry["kind"] in CHARGES]
        if len(proofs) == 1 and proofs[0] and proofs[0]["sha256"] != verdict.digest:
            yield OTHER_DIGEST
    if predicate["book"] is not None and not are_same(plan, *charged(entries)):
        yield OTHER_CHARGE
    if training is not None:
        run = {name: training["run"][name] for name in TRAINING}
        is_run = fits(run, TRAINING) and fits(training["relation"], str)
        need(is_run, "the statement of training is none", ProofError)
        if not are_same(plan, training["plan"]):
            yield OTHER_RUN
    for row in (row for audit in predicate["audits"] for row in audit["findings"]):
        need(row["outcome"] in OUTCOMES, "a finding has another outcome", ProofError)
        if row["outcome"] == "falsified":
            yield f"an audit falsified the claim of {row['subject']}"


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
    is_end = head_of(book, key) == f"{numbers[-1]}:{mark}"
    need(is_end, "the head is not that of the entries", ProofError)
    return [entry for entry in entries if entry["dataset"] == book["dataset"]]


def head_of(book: dict[str, Any], key: bytes) -> str:
    """Return NUMBER:HASH of a head; a checkpoint, which has lines, must be signed with the key."""
    head: str = book["head"]
    if "\n" not in head:
        return head
    text, _, signature_line = head.rpartition("\n\n")
    origin, number, root = text.split("\n")
    need(origin == f"dp-attest/{book['id']}", "the checkpoint is of another book", ProofError)
    signature = base64_bytes(signature_line.rstrip("\n").rpartition(" ")[2])[4:]
    is_signed = has_signed(key, signature, f"{text}\n".encode())
    need(is_signed, "the checkpoint is not signed by the author of the receipt", ProofError)
    return f"{number}:{base64_bytes(root).hex()}"


def charged(entries: Iterable[dict[str, Any]]) -> Iterator[Any]:
    """Yield the plans and mechanisms that entries of a book charge."""
    for entry in entries:
        if entry["kind"] in CHARGES:
            yield entry[CHARGES[entry["kind"]]]


def without_claims(value: Any) -> Any:
    """Return a plan in which each claim of a proof is the mechanism that claims."""
    if isinstance(value, dict):
        claims = value.get("kind") == CLAIMED and "mechanism" in value
        inner = {name: without_claims(field) for name, field in value.items()}
        return inner["mechanism"] if claims else inner
    return list(map(without_claims, value)) if isinstance(value, list) else value


def are_same(plan: Any, *others: Any) -> bool:
    """Return whether other plans together release what a plan does."""
    together = {"kind": "Sequential", "parts": without_claims(list(others))}
    return same_plan(without_claims(plan), together)


def canonical(value: Any) -> str:
    """Return the canonical JSON of a value: sorted keys, no blanks, a newline at the end."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False) + "\n"


def digest_of(value: Any) -> str:
    """Return the SHA-256 digest of the canonical JSON of a value."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def public_key(line: Any) -> bytes:
    """Return the 32 bytes of a public key from its line of OpenSSH: ssh-ed25519 AAAA... NAME."""
    match = KEY_LINE.match(line)
    wire = b"" if match is None else base64.b64decode(match[1])
    need(wire.startswith(KEY_KIND), NO_KEY, ProofError)
    return wire[-32:]


def read_public_key(path: str | os.PathLike[str]) -> bytes:
    """Return the public key in a file of OpenSSH, which may have no name."""
    with open(path, encoding="ascii", errors="replace") as file:
        return public_key(file.readline())


def fingerprint(key: bytes) -> str:
    """Return the fingerprint of a public key, as ``ssh-keygen -l`` shows it."""
    shown = base64.b64encode(hashlib.sha256(KEY_KIND + key).digest()).decode().rstrip("=")
    return f"SHA256:{shown}"


def base64_bytes(text: Any) -> bytes:
    """Return the bytes that a text stands for, in the only form they have."""
    raw = base64.b64decode(text, validate=True)
    need(base64.b64encode(raw).decode() == text, "base64 of another form", ProofError)
    return raw
