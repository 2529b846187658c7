"""Makes a receipt: what was promised, proved, audited, spent and published, in one signed document.

`accountant.verifier.receipt` checks it, and says what each part of it shows.  A receipt is checked
before it is returned: one that its own reader would refuse is never written.
"""

from __future__ import annotations

import base64
import contextlib
import datetime
import hashlib
import importlib.metadata
import json
import os
import platform
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from accountant.accountants.budget import Budget
from accountant.accountants.tight import Tight
from accountant.book.book import Book
from accountant.book.chain.author_keys import AuthorKey, Passphrase, PublicKey, asking
from accountant.book.chain.entries import checked_name
from accountant.book.chain.signatures import PERSONS_KEY, key_of
from accountant.book.excerpt import Excerpt
from accountant.book.status import Status
from accountant.errors import ParameterError, UnsupportedPlan
from accountant.plans.plan import Plan, Sequential, as_plan
from accountant.proofs.checked_proof import (
    Proof,
    checked_proof,
    proof_of_claim,
    refuse_without_flint,
)
from accountant.proofs.claimed_losses import proof_plan
from accountant.serialisation.plan_json import from_dict
from accountant.training.statement import TrainingStatement
from accountant.verifier import ProofError
from accountant.verifier.receipt import (
    DIFFERENT_PLANS,
    PAYLOAD_TYPE,
    PREDICATE_TYPE,
    STATEMENT_TYPE,
    canonical,
    charged,
    check_receipt,
    digest_of,
    fingerprint,
    signed_message,
)
from dp_attest.installation import modules_digest

AnyPath = str | os.PathLike[str]
AUDIT = "a result that `dp-attest audit --json FILE` wrote"
# The fields of a finding that a receipt repeats; its file, whose digest stands beside it, has more.
FINDING = ("subject", "kind", "claim", "epsilon_lower", "confidence", "runs", "outcome")


def make_receipt(
    key: AnyPath | AuthorKey,
    *,
    plan: Plan | None = None,
    budget: Budget | None = None,
    proof: Proof | None = None,
    book: Book | None = None,
    dataset: str = "",
    since: int | None = None,
    until: int | None = None,
    others: bool = False,
    audits: Iterable[AnyPath] = (),
    training: TrainingStatement | None = None,
    published: Iterable[AnyPath] = (),
    code: Iterable[AnyPath] = (),
    author: str = "",
    passphrase: Passphrase | None = None,
) -> bytes:
    """Return a receipt of one plan, signed by its author.

    Parameters
    ----------
    key : path or AuthorKey
        The author's Ed25519 private key, as ``ssh-keygen -t ed25519`` writes it.
    plan : Plan, optional
        What was released; by default what the book charged, or what the training run is.
    budget : Budget, optional
        What was promised; by default that of the data set, or what the training run costs.
    proof : bytes or path, optional
        The proof of the plan at the budget's delta; by default it is written here.  Where there is
        none for such a plan, the receipt says so.
    book : Book, optional
        The book that was charged.
    dataset : str
        The name of the data set of the book.
    since, until : int, optional
        Numbers of the first and the last entry; by default those of the data set, all of them.
    others : bool
        Whether entries of other data sets may lie between; readers of the receipt see them.
    audits : iterable of path
        Results of audits, as ``--json`` wrote them.
    training : TrainingStatement, optional
        The statement of the training run.
    published : iterable of path
        Files that were published; the receipt has their digests.
    code : iterable of path
        Files that made the release; the receipt has their digests.
    author : str
        Name of the author; not needed where the roles of the book name the holder of the key.
    passphrase : str or function, optional
        The passphrase of the key, if it has one.

    Returns
    -------
    bytes
        The receipt: an in-toto statement in a DSSE envelope.

    Raises
    ------
    ParameterError
        If the parts are about different plans, or a file is not what it should be.

    Examples
    --------
    >>> from accountant import Budget, PureLoss, make_receipt
    >>> from accountant.book.chain.author_keys import AuthorKey
    >>> from accountant.verifier import check_receipt
    >>> from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    >>> key = AuthorKey(Ed25519PrivateKey.generate())
    >>> document = make_receipt(key, plan=PureLoss(0.5), budget=Budget(1.0), author="ada")
    >>> receipt = check_receipt(document)
    >>> receipt.author, receipt.verdict.upper, receipt.problems
    ('ada', 0.5, ())
    """
    refuse_without_flint()
    signing_key = key if isinstance(key, AuthorKey) else key_of(key, asking(passphrase))
    if not isinstance(signing_key, AuthorKey):
        raise ParameterError("key", "a secret", PERSONS_KEY)
    excerpt = status = None
    for argument, value in (("since", since), ("until", until), ("others", others or None)):
        if book is None and value is not None:
            raise ParameterError(argument, value, "left out where no ledger has entries to choose")
    if book is not None:
        excerpt = book.excerpt(dataset, signing_key, since, until, others)
        status, author = book.status(dataset), excerpt.author or author
    whole_plan = planned(excerpt, dataset, training) if plan is None else as_plan(plan)
    limit = promised(status, training) if budget is None else budget
    fields = proof_plan(whole_plan, decimal=limit.delta == 0)
    files = [{"name": "plan", "sha256": digest_of(fields)}]
    files += [file_facts("published", path) for path in published]
    if len({file["name"] for file in files}) < len(files):
        raise ParameterError("published", [file["name"] for file in files], "files of other names")
    predicate = {
        "made": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "author": PublicKey(checked_name("author", author), signing_key.public).line,
        "plan": fields,
        "promised": {"epsilon": limit.epsilon, "delta": limit.delta},
        "audits": [audit_facts(Path(path)) for path in audits],
        "book": None if excerpt is None or status is None else {
            "id": excerpt.book_id, "dataset": dataset, "protects": status.protects,
            "spent": status.epsilon, "previous": excerpt.previous,
            "entries": list(excerpt.bodies), "head": excerpt.head,
        },
        "training": None if training is None else json.loads(training.to_json()),
        "code": [file_facts("code", path) for path in code],
        "environment": environment(),
    }  # fmt: skip
    # The proof takes longest, so that all else was read before.
    predicate["proof"], predicate["why_no_proof"] = proof_or_reason(whole_plan, limit.delta, proof)
    payload = canonical({
        "_type": STATEMENT_TYPE,
        "predicateType": PREDICATE_TYPE,
        "subject": [{"name": file["name"], "digest": {"sha256": file["sha256"]}} for file in files],
        "predicate": predicate,
    }).encode()  # fmt: skip
    document = canonical({
        "payloadType": PAYLOAD_TYPE,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [{
            "keyid": fingerprint(signing_key.public),
            "sig": base64.b64encode(signing_key.sign(signed_message(payload))).decode(),
        }],
    }).encode()  # fmt: skip
    try:
        receipt = check_receipt(document, signing_key.public)
    except ProofError as error:
        raise ParameterError("receipt", str(error), "one that its checker accepts") from None
    for problem in receipt.problems:
        if problem in DIFFERENT_PLANS:
            raise ParameterError("plan", problem, "the same in all parts of a receipt")
    return document


def planned(excerpt: Excerpt | None, dataset: str, training: TrainingStatement | None) -> Plan:
    """Return the plan that entries of a book charge, or that of a training run."""
    if excerpt is None and training is not None:
        return training.plan
    if excerpt is None:
        raise ParameterError("plan", None, "given, or a book or a training run whose plan it is")
    entries = map(json.loads, excerpt.bodies)
    charges = list(charged(entry for entry in entries if entry["dataset"] == dataset))
    if not charges:
        raise ParameterError("dataset", dataset, "one with a charge among the entries")
    plans = list(map(from_dict, charges))
    # A proof that was given with the only charge is of that plan, and not of a sequence of it.
    return plans[0] if len(plans) == 1 else Sequential(plans)


def promised(status: Status | None, training: TrainingStatement | None) -> Budget:
    """Return the budget of a data set, or what a training run costs."""
    if status is not None:
        return status.budget
    if training is None:
        raise ParameterError("budget", None, "given: the epsilon and delta that were promised")
    return Budget(training.epsilon, training.delta)


def proof_or_reason(plan: Plan, delta: float, proof: Proof | None) -> tuple[str | None, str]:
    """Return the text of a proof of the plan, or None and why there is none."""
    if proof is not None:
        return checked_proof(plan, delta, proof).document.decode(), ""
    try:
        certificate = Tight().certify(plan, delta)
        checked = proof_of_claim(plan, delta, certificate.lower, certificate.upper)
    except UnsupportedPlan as error:
        return None, error.instead
    return checked.document.decode(), ""


def audit_facts(path: Path) -> dict[str, Any]:
    """Return what a receipt repeats of the result of an audit, and the digest of its file."""
    facts = file_facts("audits", path)
    try:
        result = json.loads(path.read_bytes())
        rows = zip(result["findings"], result["details"], strict=True)
        findings = [
            {name: row[name] for name in FINDING} | {"not_tested": detail["not_tested"]}
            for row, detail in rows
        ]
        copied = {name: result[name] for name in ("command", "date", "code", "versions")}
    except (KeyError, TypeError, ValueError):
        raise ParameterError("audits", str(path), AUDIT) from None
    return {"file": facts["name"], "sha256": facts["sha256"], "findings": findings, **copied}


def file_facts(argument: str, path: AnyPath) -> dict[str, str]:
    """Return the name and the SHA-256 digest of a file."""
    try:
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, TypeError, ValueError) as error:
        why = getattr(error, "strerror", None) or "no path"
        raise ParameterError(argument, str(path), f"a file that can be read ({why})") from None
    return {"name": Path(path).name, "sha256": digest}


def environment() -> dict[str, Any]:
    """Return the versions of Python and of dp-attest's packages, and the digest of its modules."""
    digest, count = modules_digest()
    packages = {"python": platform.python_version()}
    for requirement in ("dp-attest", *(importlib.metadata.requires("dp-attest") or ())):
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            packages[name] = importlib.metadata.version(name)
    return {"packages": packages, "machine": platform.machine(), "system": platform.system(),
            "modules": count, "modules_sha256": digest}  # fmt: skip
