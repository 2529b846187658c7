"""A receipt of a real run: a table of a frame, charged to a book with roles, audited and proved."""

import base64
import hashlib
import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from accountant import (
    Book,
    Budget,
    ParameterError,
    PureLoss,
    RoleRefused,
    Shuffled,
    Tight,
    dp_sgd,
    make_receipt,
)  # fmt: skip
from accountant.book.chain.author_keys import AuthorKey
from accountant.book.chain.checkpoint import origin_of
from accountant.publishing.model_card import model_card
from accountant.publishing.receipt import FINDING
from accountant.reports.receipt_page import receipt_page
from accountant.verifier import ProofError, check_receipt, receipt_words
from accountant.verifier.receipt import (
    NOTHING,
    NUMBER,
    STATEMENT,
    canonical,
    digest_of,
    fingerprint,
    signed_message,
)
from accountant.verifier.receipt_words import receipt_lines
from algorithms.frames import Category, Number, Schema, count, median
from audits.__main__ import main as audits
from dp_attest.__main__ import main
from mechanisms import Gaussian, Laplace
from tests.accountant.book.people import People
from tests.html_checks import Checked, harmless
from tests.schema_check import errors

FRAME = pd.DataFrame({"age": np.arange(200.0) % 50, "job": ["cook", "nurse"] * 100})
SCHEMA = Schema({"age": Number(0, 50), "job": Category(["cook", "nurse"])})
DOCS = Path(__file__).parents[3] / "docs"
FINDING_FIELDS = {*FINDING, "not_tested"}
RELEASE = """
def jobs(value, rng, size):
    return value + rng.laplace(scale=2.0, size=size)
"""


class Run:
    """Files of a run: the book, the keys, the code, an audit of it, and the published table."""

    def __init__(self, folder):
        self.people = People(folder)
        self.book, self.code = folder / "book.db", folder / "released.py"
        self.audit, self.table = folder / "audit.json", folder / "table.csv"
        self.code.write_text(RELEASE)
        roles = self.people.roles()
        with Book.create(
            f"sqlite:///{self.book}", key=self.people.keys["ada"], roles=roles
        ) as book:
            book.dataset("people", Budget(1.0, 1e-6))
            book.dataset("others", Budget(1.0))
        with self.open("ana") as book, book.ledger("people", FRAME) as ledger:
            answer = count(by="job", epsilon=0.5).release(ledger, SCHEMA)
            median("age", epsilon=0.25).release(ledger, SCHEMA)
        answer.frame.to_csv(self.table)

    def open(self, name):
        return Book.open(f"sqlite:///{self.book}", key=self.people.keys[name])

    def receipt(self, name="ana", **options):
        options = {"dataset": "people", "others": True} | options
        with self.open(name) as book:
            return make_receipt(self.people.keys[name], book=book, **options)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    made = Run(folder)
    command = (
        f"target released:jobs --epsilon 0.5 --pair 0 1 --runs 2000 --seed 7 --json {made.audit}"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(str(folder))
        assert audits([*command.split(), "--allow-import"]) == 0
    return made


@pytest.fixture(scope="module")
def document(run):
    return run.receipt(audits=[run.audit], published=[run.table], code=[run.code])


def payload_of(document):
    return base64.b64decode(json.loads(document)["payload"])


def sealed(run, name, statement):
    """An envelope of a statement, signed by a person."""
    key = AuthorKey.of(run.people.keys[name].read_bytes(), name)
    payload = canonical(statement).encode()
    return canonical({
        "payloadType": "application/vnd.in-toto+json",
        "payload": base64.b64encode(payload).decode(),
        "signatures": [{"keyid": fingerprint(key.public),
                        "sig": base64.b64encode(key.sign(signed_message(payload))).decode()}],
    }).encode()  # fmt: skip


def changed(run, document, change, name="ana"):
    """A receipt whose statement its own author changed and signed again."""
    statement = json.loads(payload_of(document))
    change(statement["predicate"], statement)
    return sealed(run, name, statement)


def test_a_receipt_says_what_is_proved_recorded_audited_and_claimed(run, document):
    receipt = check_receipt(document, AuthorKey.of(run.people.keys["ana"].read_bytes(), "").public)
    assert receipt.problems == ()
    assert receipt.author == "ana"
    assert receipt.answers == 4  # of the count, and of the three steps of the median
    assert receipt.verdict.word == "PROVED"
    assert receipt.verdict.upper <= 0.75
    assert list(receipt.subjects) == ["plan", "table.csv"]
    screen = receipt_words(receipt)
    headings = [line.split(" ")[0] for line in screen.splitlines() if line[0] != " "]
    assert headings[:4] == ["SIGNED", "PROVED", "RECORDED", "AUDITED"]
    assert set(headings[4:]) == {"CLAIMED"}
    assert "released:jobs: survived a claim of epsilon 0.5 in 2,000 runs" in " ".join(
        screen.split()
    )
    assert "not tested: low bits" in " ".join(screen.split())
    assert max(map(len, screen.splitlines())) <= 80
    assert len(screen.splitlines()) <= 34


def test_the_checkpoint_in_a_receipt_is_one_of_the_book(run, document):
    book_facts = json.loads(payload_of(document))["predicate"]["book"]
    assert book_facts["head"].split("\n")[0] == origin_of(book_facts["id"])
    with run.open("aud") as book:
        assert (
            book.verify(book_facts["head"]).entries == json.loads(book_facts["entries"][-1])["seq"]
        )


KINDS = {"string": (str,), "number": NUMBER, "integer": (int,), "null": (NOTHING,),
         "object": (dict,)}  # fmt: skip


def shape_of(schema):
    """A schema as the checker states the shape of a statement."""
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if kinds == ["array"]:
        return [shape_of(schema["items"])]
    table = {name: shape_of(inner) for name, inner in schema.get("properties", {}).items()}
    choices = sorted(
        (one for kind in kinds for one in KINDS[kind]), key=lambda kind: kind != NOTHING
    )
    choices = tuple(table if table and choice is dict else choice for choice in choices)
    return choices[0] if len(choices) == 1 else choices


def test_a_receipt_fits_its_schema(run, document):
    schema = json.loads((DOCS / "receipt.schema.json").read_text())
    assert list(errors(json.loads(payload_of(document)), schema)) == []
    predicate = schema["properties"]["predicate"]["properties"]
    assert shape_of(schema)["subject"] == STATEMENT["subject"]
    assert shape_of(schema["properties"]["predicate"]) == STATEMENT["predicate"]
    assert (
        set(predicate["audits"]["items"]["properties"]["findings"]["items"]["required"])
        == FINDING_FIELDS
    )


def test_the_page_has_every_line_and_asks_for_nothing(run, document):
    receipt = check_receipt(document)
    html = receipt_page(receipt)
    harmless(html, {})
    words = " ".join(" ".join(Checked(html).words).split())
    for heading, sentence in receipt_lines(receipt, is_key_known=False):
        assert f"{heading.lower()} {' '.join(sentence.split())}" in words
    for heading in ("Privacy parameters", "Unit of privacy", "Algorithms and correctness",
                    "Utility", "Bias", "Access control", "Trust models", "Side channels",
                    "Data collection exposure", "AI model design", "AI model analysis",
                    "AI model testing and resistance to attacks", "Documentation"):  # fmt: skip
        assert heading in words
    assert "ε is at most" in words
    assert "not tested: low bits, timing" in words


def test_a_page_of_a_problem_says_so(run, document):
    html = receipt_page(check_receipt(changed(run, document, leave_out_the_proof)))
    words = " ".join(" ".join(Checked(html).words).split())
    assert "No ε is proved" in words
    assert "problem no proof: I did not like it" in words
    assert "no bound is proved" in words


def test_the_block_of_a_model_card_has_no_markup_of_the_file(run, document):
    def hostile(predicate, _):
        predicate.update(proof=None, why_no_proof="<script>[x](y)` *b*\n# head")

    forged = changed(run, document, hostile)
    block = model_card(check_receipt(forged), forged)
    assert "<script>" not in block.replace("\\<", "")
    assert "\n# head" not in block
    assert hashlib.sha256(forged).hexdigest() in block
    block = model_card(check_receipt(document), document)
    assert block.startswith("## Differential privacy\n\n- **Signed**: by ana")
    assert "membership inference has an advantage of at most" in block


def places(text, step):
    """Every byte near both ends, and some of all others."""
    ends = {*range(60), *range(len(text) - 60, len(text))}
    return sorted(ends | {*range(0, len(text), step)})


def test_every_changed_byte_of_the_file_is_refused(document):
    for place in places(document, len(document) // 50):
        for other in {document[place] ^ 1, document[place] ^ 32, ord(" ")} - {document[place]}:
            with pytest.raises(ProofError):
                check_receipt(document[:place] + bytes([other]) + document[place + 1 :])
    for shorter in (b"", document[:-1], document + b"\n", document[1:], b"{}", b"[]", b"null"):
        with pytest.raises(ProofError):
            check_receipt(shorter)


@pytest.mark.parametrize(
    "kind", ["_type", "subject", "sha256", "author", "made", "promised", "proof", "findings",
             "not_tested", "entries", "head", "previous", "spent", "code", "packages"],
)  # fmt: skip
def test_every_changed_part_of_the_statement_is_refused(document, kind):
    envelope, payload = json.loads(document), payload_of(document)
    start = payload.index(f'"{kind}"'.encode()) + len(kind) + 5
    for place in range(start, start + 30):
        if payload[place : place + 1].isalnum():
            other = b"1" if payload[place : place + 1] != b"1" else b"2"
            forged = payload[:place] + other + payload[place + 1 :]
            envelope["payload"] = base64.b64encode(forged).decode()
            with pytest.raises(ProofError):
                check_receipt(canonical(envelope).encode())


def test_a_receipt_of_much_is_one_screen_too(run, document):
    def change(predicate, statement):
        audit = predicate["audits"][0]
        rows = [audit["findings"][0] | {"subject": f"{k} " + "x" * 900} for k in range(50)]
        audit["findings"] = [row | {"outcome": ("survived", "falsified")[k % 2]}
                             for k, row in enumerate(rows)]  # fmt: skip
        predicate["code"] = 99 * [{"name": "y" * 900, "sha256": "0" * 64}]
        statement["subject"] += [{"name": f"{k} " + "z" * 900, "digest": {"sha256": "0" * 64}}
                                 for k in range(99)]  # fmt: skip

    receipt = check_receipt(changed(run, document, change))
    screen = receipt_words(receipt)
    assert len(screen.splitlines()) < 60
    assert "PROBLEM   and 22 more" in screen
    assert "47 more subjects, of which 23 survived" in screen
    assert "of code that is not the receipt's" in " ".join(screen.split())


CLAIM = {"kind": "Claimed", "mechanism": {"kind": "Laplace", "scale": 0.01},
         "loss": {"kind": "PureLoss", "epsilon": 0.1}}  # fmt: skip


@pytest.mark.parametrize("plan", [CLAIM, CLAIM["mechanism"]], ids=["a claim", "its mechanism"])
def test_a_claim_that_is_not_the_mechanisms_own_is_shown_and_refused_where_it_is_known(
    run, document, tmp_path, capsys, plan
):
    proof = json.loads(Tight().certify(PureLoss(0.1), 0.0, proof=tmp_path / "p.json") and
                       (tmp_path / "p.json").read_text())  # fmt: skip

    def change(predicate, statement):
        predicate.update(plan=plan, proof=canonical(proof | {"plan": CLAIM}), book=None)
        statement["subject"][0]["digest"]["sha256"] = digest_of(plan)

    out = tmp_path / "receipt.json"
    out.write_bytes(changed(run, document, change))
    receipt = check_receipt(out.read_bytes())
    page = " ".join(Checked(receipt_page(receipt)).words)
    card = model_card(receipt, b"").replace("\\", "")
    for text in (receipt_words(receipt), page, card):
        shown = " ".join(text.split())
        assert "Laplace(scale=0.01) as claimed (PureLoss(epsilon=0.1))" in shown
        assert "the losses of Laplace are as that mechanism claims" in shown
    assert main(["receipt", "verify", f"{out}"]) == 2
    assert "of what mechanisms claim" in capsys.readouterr().err


def test_numbers_are_rounded_to_the_side_that_flatters_nobody(run, document):
    def change(predicate, _):
        row = predicate["audits"][0]["findings"][0]
        row.update(epsilon_lower=1.99999999996, confidence=0.999999)
        predicate["promised"].update(epsilon=1.00000000004)

    screen = " ".join(receipt_words(check_receipt(changed(run, document, change))).split())
    assert "epsilon at least 1.99999999" in screen
    assert "at confidence 0.999999;" in screen
    assert "epsilon 1.000000001 at delta 1e-06 was promised" in screen


def test_an_envelope_of_another_form_is_refused(run, document):
    envelope = json.loads(document)
    forms = [
        json.dumps(envelope, indent=1).encode(),
        canonical(envelope | {"payloadType": "application/json"}).encode(),
        canonical(envelope | {"note": 1}).encode(),
        canonical(envelope | {"signatures": 2 * envelope["signatures"]}).encode(),
        canonical(envelope | {"signatures": []}).encode(),
        canonical(envelope | {"payload": envelope["payload"] + "\n"}).encode(),
        canonical(envelope | {"payload": 3}).encode(),
    ]
    for form in forms:
        with pytest.raises(ProofError):
            check_receipt(form)


def test_another_author_is_refused(run, document):
    statement = json.loads(payload_of(document))
    with pytest.raises(ProofError, match="keyid is not that of the author"):
        check_receipt(sealed(run, "eve", statement))
    statement["predicate"]["author"] = run.people.lines["eve"]
    with pytest.raises(ProofError, match="checkpoint is not signed by the author"):
        check_receipt(sealed(run, "eve", statement))
    ana = AuthorKey.of(run.people.keys["ana"].read_bytes(), "").public
    with pytest.raises(ProofError, match="signed with the key"):
        check_receipt(run.receipt("bob"), ana)


def drop_an_entry(predicate, _):
    del predicate["book"]["entries"][2]


def cut_the_end(predicate, _):
    del predicate["book"]["entries"][-1]


def change_an_entry(predicate, _):
    predicate["book"]["entries"][0] = predicate["book"]["entries"][0].replace("1.0", "9.0")


def forge_the_digest(_, statement):
    statement["subject"][0]["digest"]["sha256"] = "0" * 64


def name_another_book(predicate, _):
    predicate["book"]["id"] = "0" * 32


def take_no_author(predicate, _):
    predicate["author"] = "ssh-rsa AAAA ana"


def add_a_field(predicate, _):
    predicate["extra"] = 1


def break_the_proof(predicate, _):
    predicate["proof"] = predicate["proof"][:-2]


def nest_deep(predicate, _):
    for _ in range(300):
        predicate["environment"] = {"inner": predicate["environment"]}


def claim_a_huge_number(predicate, _):
    predicate["audits"][0]["findings"][0]["claim"]["epsilon"] = 10**400


def repeat_too_often(predicate, statement):
    for _ in range(2):
        predicate["plan"] = {"kind": "Repeat", "part": predicate["plan"], "count": 10**4000}
    statement["subject"][0]["digest"]["sha256"] = digest_of(predicate["plan"])


@pytest.mark.parametrize(
    "change", [claim_a_huge_number, repeat_too_often, name_another_book, drop_an_entry,
               cut_the_end, change_an_entry, forge_the_digest, take_no_author, add_a_field,
               break_the_proof, nest_deep],
)  # fmt: skip
def test_what_an_author_signs_must_still_fit_together(run, document, change):
    with pytest.raises(ProofError):
        check_receipt(changed(run, document, change))


def paths_in(value, path=()):
    """The paths to all values inside a value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for name, inner in inside if isinstance(value, dict | list) else ():
        yield (*path, name)
        yield from paths_in(inner, (*path, name))


JUNK = [
    None, 0, -1, 1e308, True, "", "x" * 50, [], {}, [[]], [None], "\n\n", 10**30,
    {"kind": "Repeat", "part": {}, "count": -5}, {"kind": "Claimed"}, {"epsilon": "a"},
]  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_whatever_an_author_signs_is_refused_or_shown(run, document, seed):
    rng = random.Random(seed)

    def change(_, statement):
        path = rng.choice(list(paths_in(statement)))
        for name in path[:-1]:
            statement = statement[name]
        statement[path[-1]] = rng.choice(JUNK)

    try:
        forged = changed(run, document, change)
    except (KeyError, TypeError, AttributeError, IndexError):
        return  # the predicate itself was replaced
    try:
        receipt = check_receipt(forged)
    except ProofError:
        return
    assert receipt_words(receipt).startswith("SIGNED")
    assert "<html" in receipt_page(receipt)
    assert model_card(receipt, forged).startswith("## ")


def without_entries(predicate, _):
    predicate["book"]["dataset"] = "nobody"


def other_plan(predicate, statement):
    predicate["plan"] = {"kind": "Laplace", "scale": 2.0}
    statement["subject"][0]["digest"]["sha256"] = hashlib.sha256(
        canonical(predicate["plan"]).encode()
    ).hexdigest()


def lower_promise(predicate, _):
    predicate["promised"]["epsilon"] = 0.1


def falsify(predicate, _):
    predicate["audits"][0]["findings"][0]["outcome"] = "falsified"


def leave_out_the_proof(predicate, _):
    predicate.update(proof=None, why_no_proof="I did not like it")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (other_plan, "the proof is of another plan"),
        (other_plan, "the entries of the book charge something else than the plan"),
        (without_entries, "the entries of the book charge something else than the plan"),
        (lower_promise, "less epsilon or delta was promised than is proved"),
        (falsify, "an audit falsified the claim of released:jobs"),
        (leave_out_the_proof, "no proof: I did not like it"),
    ],
)  # fmt: skip
def test_parts_that_speak_against_each_other_are_a_problem(run, document, change, problem):
    receipt = check_receipt(changed(run, document, change))
    assert problem in receipt.problems
    assert f"PROBLEM   {problem[:30]}" in receipt_words(receipt)


def test_the_number_of_a_proof_of_another_plan_is_not_shown(run, document):
    receipt = check_receipt(changed(run, document, other_plan))
    assert receipt.verdict is None
    assert "its epsilon is not proved here" in " ".join(receipt_words(receipt).split())
    page = " ".join(" ".join(Checked(receipt_page(receipt)).words).split())
    assert "No ε is proved" in page
    assert "no bound is proved" in page
    assert "membership inference" not in model_card(receipt, b"")


@pytest.mark.slow
def test_a_training_run_has_a_receipt(run):
    statement = dp_sgd(examples=100, batch=100, epochs=2, noise=20.0, delta=1e-4)
    receipt = check_receipt(make_receipt(run.people.keys["ana"], training=statement, author="ana"))
    assert receipt.problems == ()
    assert receipt.verdict.upper <= statement.epsilon
    assert "noise multiplier 20" in " ".join(receipt_words(receipt).split())
    with pytest.raises(ParameterError, match="the statement of training is about another plan"):
        make_receipt(run.people.keys["ana"], plan=Laplace(2.0), training=statement, author="ana")


def test_a_plan_without_a_proof_has_a_receipt_that_says_so(run):
    plan = Shuffled(Laplace(2.0), 1000)
    receipt = check_receipt(
        make_receipt(run.people.keys["ana"], plan=plan, budget=Budget(9.0, 1e-6), author="ana")
    )
    assert receipt.verdict is None
    assert receipt.problems[0].startswith("no proof: ")


def test_what_cannot_be_joined_is_refused(run, tmp_path):
    key = run.people.keys["ana"]
    other = Tight().certify(Gaussian(3.0), 1e-6, proof=tmp_path / "other.proof.json")
    assert other.upper > 0
    (tmp_path / "note.json").write_text("{}")
    (tmp_path / "secret").write_bytes(b"x" * 32)
    (tmp_path / "secret").chmod(0o600)
    budget = Budget(1.0, 1e-6)
    for options, words in (
        ({}, "plan must be given"),
        ({"plan": Laplace(2.0)}, "budget must be given"),
        ({"plan": Laplace(2.0), "budget": budget}, "author must be 1 to 200"),
        ({"plan": Laplace(2.0), "budget": budget, "author": "ana",
          "proof": tmp_path / "other.proof.json"}, "proof"),
        ({"plan": Laplace(2.0), "budget": budget, "author": "ana",
          "audits": [tmp_path / "note.json"]}, "audits must be a result"),
        ({"plan": Laplace(2.0), "budget": budget, "author": "ana",
          "code": [tmp_path / "gone.py"]}, "code must be a file"),
        ({"plan": Laplace(2.0), "budget": budget, "author": "ana",
          "published": [run.table, run.table]}, "published must be files of other names"),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=words):
            make_receipt(key, **options)
    with pytest.raises(ParameterError, match="key must be the private key of one of its people"):
        make_receipt(tmp_path / "secret", plan=Laplace(2.0), budget=budget, author="ana")
    with run.open("ana") as book, pytest.raises(RoleRefused, match="name no holder of this key"):
        make_receipt(run.people.keys["eve"], book=book, dataset="people", others=True)
    with pytest.raises(ParameterError, match="entries of others lie between"):
        run.receipt(others=False)
    with pytest.raises(ParameterError, match="since must be a whole number"):
        run.receipt(since=10_000)
    for choice in ({"since": 5}, {"until": 5}, {"others": True}):
        with pytest.raises(ParameterError, match="must be left out where no ledger"):
            make_receipt(key, plan=Laplace(2.0), budget=budget, author="ana", **choice)


def test_a_book_without_roles_and_a_part_of_it(run, tmp_path):
    key = run.people.keys["ana"]
    with Book.create(f"sqlite:///{tmp_path}/plain.db") as book:
        book.dataset("d", Budget(1.0))
        with book.ledger("d", np.ones(5)) as ledger:
            ledger.release(Laplace(10.0), np.sum)
            ledger.release(Laplace(20.0), np.sum)
        lines = book.history("d")
        options = {"book": book, "dataset": "d", "author": "ana"}
        whole = check_receipt(make_receipt(key, **options))
        part = check_receipt(make_receipt(key, since=lines[1].seq, **options))
        first = check_receipt(make_receipt(key, until=lines[1].seq - 1, **options))
        assert [one.answers for one in (whole, part, first)] == [2, 1, 1]
        for receipt, epsilon in ((whole, 0.15), (part, 0.05), (first, 0.1)):
            assert receipt.verdict.upper == pytest.approx(epsilon, rel=1e-9)
            assert book.verify(receipt.predicate["book"]["head"]).entries == 6
        assert "from its opening on" in " ".join(receipt_words(whole).split())
        assert "from a later entry on" in " ".join(receipt_words(part).split())
        for wrong in ({"since": 1}, {"since": True}, {"until": 99}, {"since": 5, "until": 4}):
            with pytest.raises(ParameterError, match="must be a whole number"):
                make_receipt(key, **wrong, **options)
        with pytest.raises(ParameterError, match="one with a charge among the entries"):
            make_receipt(key, until=2, **options)
        with pytest.raises(ParameterError, match="charge something else than the plan"):
            make_receipt(key, plan=Laplace(10.0), **options)


def test_a_book_that_was_charged_with_proofs(run, tmp_path):
    key, plan = run.people.keys["ana"], PureLoss(0.25)
    proof, other = tmp_path / "cost.proof.json", tmp_path / "other.proof.json"
    Tight().certify(plan, 0.0, proof=proof)
    with Book.create(f"sqlite:///{tmp_path}/proved.db") as book:
        book.dataset("d", Budget(1.0), verified=True)
        book.ledger("d", np.ones(5), plan, proof=proof).close()
        options = {"book": book, "dataset": "d", "author": "ana"}
        receipt = check_receipt(make_receipt(key, **options))
        assert receipt.problems == ()
        assert receipt.verdict.digest == book.history("d")[-1].proof
        text = json.loads(proof.read_text())
        other.write_text(canonical(text | {"upper": (0.5).hex()}))
        with pytest.raises(ParameterError, match="the book was charged with another proof"):
            make_receipt(key, proof=other, **options)
        book.ledger("d", np.ones(5), plan, proof=proof).close()
        receipt = check_receipt(make_receipt(key, **options))
        assert receipt.problems == ()
        assert receipt.verdict.upper == 0.5


def test_the_command_makes_and_verifies(run, tmp_path, capsys):
    out, key = tmp_path / "receipt.json", run.people.keys["ana"]
    public = tmp_path / "ana.pub"
    public.write_text(run.people.lines["ana"] + "\n")
    made = ["receipt", "make", "--ledger", f"{run.book}", "--dataset", "people", "--key", f"{key}",
            "--audit", f"{run.audit}", "--code", f"{run.code}", "--since", "5"]  # fmt: skip
    assert main([*made, "--out", f"{out}"]) == 0
    assert main([*made, "--out", f"{out}"]) == 2  # without --force
    assert main(["receipt", "verify", f"{out}", "--key", f"{public}"]) == 0
    assert "(the key that you gave)" in " ".join(capsys.readouterr().out.split())
    public.write_text(run.people.lines["ana"].rsplit(" ", 1)[0])  # a key needs no name
    assert main(["receipt", "verify", f"{out}", "--key", f"{public}"]) == 0
    assert main(["receipt", "verify", f"{out}", "--key", f"{key}"]) == 2
    assert "which ssh-keygen writes to a .pub file" in capsys.readouterr().err
    public.write_text(run.people.lines["bob"])
    assert main(["receipt", "verify", f"{out}", "--key", f"{public}"]) == 2
    document = out.read_bytes()
    page = tmp_path / "receipt.html"
    assert main(["receipt", "page", f"{out}", "--out", f"{page}"]) == 0
    assert page.read_text() == receipt_page(check_receipt(document))
    assert main(["receipt", "card", f"{out}"]) == 0
    assert capsys.readouterr().out.endswith(model_card(check_receipt(document), document))
    out.write_bytes(document.replace(b'"sig":"', b'"sig":"A', 1))
    assert main(["receipt", "verify", f"{out}"]) == 2
    assert "refused: " in capsys.readouterr().err


def test_the_checker_alone_verifies(document, tmp_path):
    import accountant.verifier

    folder = Path(accountant.verifier.__file__).parent
    (tmp_path / "verifier").symlink_to(folder)
    (tmp_path / "receipt.json").write_bytes(document)
    modules = ("numpy", "cryptography", "accountant", "msgspec")
    code = f"import sys, runpy; sys.modules.update(dict.fromkeys({modules!r}))\n"
    code += "runpy.run_module('verifier', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code, "receipt.json"], cwd=tmp_path, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == receipt_words(check_receipt(document)) + "\n"
