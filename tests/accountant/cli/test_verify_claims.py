"""``certify`` and ``verify`` of mechanisms that the checker knows by their claims alone."""

import io
import json
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

from accountant.__main__ import main
from tests.accountant.verifier.test_hostile_proofs import WRONG, places
from tests.accountant.verifier.written_proofs import content, document

PLAN = """
[budget]
epsilon = 3.0
delta = 1e-6
[[release]]
kind = "SparseVector"
threshold = 10.0
scale = 40.0
answer_scale = 40.0
count = 5
[[release]]
kind = "MatrixMechanism"
scale = 8.0
strategy = { kind = "BinaryTree", steps = 4 }
"""
SPARSE = "5 x SparseVector(answer_scale=40.0, scale=40.0, threshold=10.0) as claimed (PureLoss(eps"
CLAIMS = (
    "the losses of SparseVector and MatrixMechanism are as those mechanisms claim: "
    "`dp-attest account verify --mechanisms` says which claims it proves\n"
)


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return str(path)


@pytest.fixture(scope="module")
def written_proof(tmp_path_factory):
    """The bytes of the proof that the command writes of the plan."""
    folder = tmp_path_factory.mktemp("written")
    plan, path = folder / "plan.toml", folder / "cost.proof.json"
    plan.write_text(PLAN)
    with redirect_stdout(io.StringIO()) as out:
        assert main(["certify", str(plan), "--proof", str(path)]) == 0
    assert CLAIMS in out.getvalue()
    return path.read_bytes()


@pytest.fixture
def proof(written_proof, tmp_path):
    path = tmp_path / "cost.proof.json"
    path.write_bytes(written_proof)
    return path


def ran(capsys, *words):
    status = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return status, out, err


@pytest.mark.usefixtures("small_grid")
def test_a_plan_of_claims_is_proved_and_says_so(plan, proof, capsys):
    status, out, err = ran(capsys, "verify", proof)
    assert (status, err, out.count("\n")) == (0, "", 5)
    assert out.startswith("PROVED: epsilon of this plan at delta 1e-6 is at least ")
    assert f"this plan releases {SPARSE}" in out
    assert CLAIMS in out
    status, out, err = ran(capsys, "verify", proof, "--plan", plan)
    assert (status, err, out.count("\n")) == (0, "", 4)
    assert CLAIMS in out
    _, out, _ = ran(capsys, "explain", plan, "--proof", proof)
    assert f"); {CLAIMS[:-1]}." in out
    page = proof.with_name("page.html")
    assert ran(capsys, "page", plan, "--proof", proof, "--out", page)[0] == 0
    assert f"; {CLAIMS[:-1]}." in page.read_text()


def test_a_proof_of_another_claim_is_of_another_plan(plan, proof, capsys):
    found = json.loads(proof.read_bytes())
    found["plan"]["parts"][0]["part"]["loss"]["epsilon"] = 1e-3
    proof.write_bytes(document(found))
    status, out, err = ran(capsys, "verify", proof, "--plan", plan)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "--plan must be the plan of the proof, 5 x SparseVector(" in err
    status, out, err = ran(capsys, "verify", proof)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "proof must be of what mechanisms claim, here SparseVector(" in err
    assert "as claimed (PureLoss(epsilon=0.001))" in err


def test_without_a_method_one_line_says_what_stands_and_what_to_do(tmp_path, capsys):
    path, out = tmp_path / "plan.toml", tmp_path / "cost.proof.json"
    path.write_text('[[release]]\nkind = "TruncatedLaplace"\nscale = 1.0\nreach = 40.0\n')
    status, said, err = ran(capsys, "certify", path, "--delta", "1e-6", "--proof", out)
    assert (status, said, err.count("\n")) == (1, "", 1)
    assert "no proof was written: the kind TruncatedLaplace has no proof here" in err
    assert "the interval of Tight stands without a proof (leave out --proof" in err
    assert "bound the part by a loss such as PureLoss or GaussianLoss" in err
    assert not out.exists()


def test_the_page_is_true(tmp_path, capsys):
    page = Path(__file__).parents[3] / "docs" / "certificates.md"
    _, _, rest = page.read_text(encoding="utf-8").partition("```\nthis plan releases")
    shown = ("this plan releases" + rest.partition("```")[0]).split()
    plan, proof = tmp_path / "plan.toml", tmp_path / "cost.proof.json"
    plan.write_text(PLAN.partition('[[release]]\nkind = "Matrix')[0].replace("= 5\n", "= 20\n"))
    assert main(["certify", str(plan), "--proof", str(proof)]) == 0
    capsys.readouterr()
    _, out, _ = ran(capsys, "verify", proof)
    said = re.sub(r"SparseVector\([^)]*\)", "SparseVector(...)", out).split("\n")[1:3]
    assert " ".join(said).split() == shown


def nested(levels, kind):
    value = {"kind": "PureLoss", "epsilon": 0.5}
    for _ in range(levels):
        value = {"kind": "Sequential", "parts": [value]} if kind == "plan" else [value]
    return value


X = {"kind": "X"}
MALFORMED = {  # behind a part that ends the proof, or in what the checker does not read
    "a number": {"kind": "Sequential", "parts": [X, 7]},
    "a repetition of nothing": {"kind": "Sequential", "parts": [X, {"kind": "Repeat"}]},
    "parts of text": {"kind": "Sequential", "parts": [X, {"kind": "Sequential", "parts": "x"}]},
    "a deep plan": {"kind": "Sequential", "parts": [X, nested(400, "plan")]},
    "deep lists": {"kind": "X", "x": nested(900, "lists")},
    "a deep mechanism": {"kind": "Claimed", "loss": nested(0, ""), "mechanism": nested(500, "x")},
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_plan_that_is_none_is_shown_or_refused(name, tmp_path, capsys):
    path = tmp_path / "cost.proof.json"
    path.write_bytes(document(content("contour") | {"plan": MALFORMED[name]}))
    status, out, err = ran(capsys, "verify", path)
    assert (status, out == "", err.count("\n")) in {(1, False, 0), (2, True, 1)}


@pytest.mark.parametrize(
    "step", [len(WRONG), pytest.param(1, marks=pytest.mark.slow)], ids=["one value", "all values"]
)
def test_a_wrong_value_anywhere_in_a_claim_is_refused_in_one_line(proof, tmp_path, capsys, step):
    """At each place of the plan, every so many of the wrong values: one, or in the sweep all."""
    whole = json.loads(proof.read_bytes())
    path = tmp_path / "wrong.json"
    for k, place in enumerate(places(whole["plan"])):
        for value in WRONG[k % step :: step] if place else ():
            other = json.loads(proof.read_bytes())
            holder = other["plan"]
            for key in place[:-1]:
                holder = holder[key]
            if holder[place[-1]] == value:
                continue
            holder[place[-1]] = value
            path.write_bytes(document(other))
            status, out, err = ran(capsys, "verify", path)
            # the threshold costs nothing: another one makes the same claim
            in_claim = {"loss", "mechanism"} & {*place} and place[-1] != "threshold"
            assert status == 2 or not in_claim, (place, value)
            assert (status == 2, err.count("\n")) in {(True, 1), (False, 0)}
            assert (status != 2) == ("this plan releases" in out)


@pytest.mark.parametrize("package", ["accountant.verifier", "verifier"])
def test_without_python_flint_the_checker_alone_names_the_remedy(proof, package):
    import accountant

    folder = os.path.dirname(accountant.__file__)
    code = (
        "import runpy, sys; sys.modules['flint'] = None; "
        f"runpy.run_module({package!r}, run_name='__main__', alter_sys=True)"
    )
    path = folder if package == "verifier" else os.path.dirname(folder)
    done = subprocess.run(
        [sys.executable, "-c", code, str(proof)], cwd=path, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "no verdict: pip install python-flint, its one need\n"
