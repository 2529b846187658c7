"""``dp-attest account certify|verify``, and ``--proof`` of explain, compare and page."""

import hashlib
import json
import re
import sys

import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

from accountant import Tight, read_plan
from accountant.__main__ import main
from accountant.proofs import checked_proof

PLAN = """
[budget]
epsilon = 3.0
delta = 1e-6
[[release]]
name = "ages"
kind = "Laplace"
scale = 4.0
count = 2
[[release]]
kind = "Gaussian"
scale = 10.0
"""


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
    assert main(["certify", str(plan), "--proof", str(path)]) == 0
    return path.read_bytes()


@pytest.fixture
def proof(written_proof, tmp_path):
    path = tmp_path / "cost.proof.json"
    path.write_bytes(written_proof)
    return str(path)


def ran(capsys, *words):
    status = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return status, out, err


def digest_of(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def test_a_written_proof_is_checked_and_said(plan, tmp_path, capsys):
    path = tmp_path / "cost.proof.json"
    status, out, err = ran(capsys, "certify", plan, "--proof", path, "--json", "-")
    found, exact = json.loads(out), Tight().certify(read_plan(plan), 1e-6)
    assert (status, found["lower"], found["upper"]) == (0, exact.lower, exact.upper)
    assert found["proof"]["sha256"] == digest_of(path)
    assert found["proof"]["verdict"] == "PROVED"
    assert "at delta 1e-6 the true epsilon is in [" in err
    status, out, err = ran(capsys, "verify", path)
    assert (status, err) == (0, "")
    assert out.startswith("PROVED: epsilon of this plan at delta 1e-6 is at least 0.8644")
    assert "this plan releases 2 x Laplace(scale=4.0)\n" in out
    assert re.search(rf"SHA-256 {digest_of(path)}, checked in \d+\.\d s\n$", out)
    status, out, _ = ran(capsys, "verify", path, "--plan", plan, "--json", "-")
    found = json.loads(out)
    assert (status, found["verdict"], found["upper"]) == (0, "PROVED", exact.upper)


def test_the_interval_is_the_one_that_is_proved(tmp_path, capsys):
    plan, path = tmp_path / "plan.toml", tmp_path / "cost.proof.json"
    plan.write_text('[[release]]\nkind = "Laplace"\nscale = 8.0\ncount = 9\n')
    found = json.loads(ran(capsys, "certify", plan, "--delta", "1e-3", "--json", "-")[1])
    words = ("certify", plan, "--delta", "1e-3", "--proof", path, "--json", "-")
    proved, exact = json.loads(ran(capsys, *words)[1]), Tight().certify(read_plan(plan), 1e-3)
    assert (found["lower"], found["upper"]) == (exact.lower, exact.upper)
    ends = [proved[name] for name in ("lower", "upper")]
    assert ends == [proved["proof"][name] for name in ("lower", "upper")]
    assert 0 < exact.lower - ends[0] <= 1e-5 * exact.upper
    assert 0 < ends[1] - exact.upper <= 1e-5 * exact.upper
    kept = Tight().certify(read_plan(plan), 1e-3, proof=path)
    verdict = kept.verify()
    assert ends == [kept.lower, kept.upper] == [verdict.lower, verdict.upper]


def test_the_same_bytes_each_time(plan, proof, tmp_path, capsys):
    again = tmp_path / "again.json"
    assert ran(capsys, "certify", plan, "--proof", again)[0] == 0
    assert digest_of(again) == digest_of(proof)
    status, _, err = ran(capsys, "certify", plan, "--proof", again)
    assert status == 2
    assert "--force given" in err
    assert ran(capsys, "certify", plan, "--proof", again, "--force")[0] == 0


def test_runs_are_one_plan(plan, tmp_path, capsys):
    path = tmp_path / "cost.proof.json"
    assert ran(capsys, "certify", plan, "--runs", "3", "--proof", path)[0] == 0
    status, _, err = ran(capsys, "verify", path, "--plan", plan)
    assert (status, err.count("\n")) == (2, 1)
    assert "the plan of the proof, 6 x Laplace(scale=4.0) + 3 x Gaussian(scale=10.0)" in err
    assert ran(capsys, "verify", path, "--plan", plan, "--runs", "3")[0] == 0
    assert ran(capsys, "verify", path, "--runs", "3")[0] == 2


def test_a_claim_that_is_not_so_is_not_proved(proof, capsys):
    with open(proof) as file:
        claim = json.load(file)
    ends = {name: float.fromhex(claim[name]) for name in ("lower", "upper")}
    claim |= {name: (0.999 * value).hex() for name, value in ends.items()}
    with open(proof, "w") as file:
        file.write(json.dumps(claim, sort_keys=True, separators=(",", ":")) + "\n")
    status, out, err = ran(capsys, "verify", proof)
    assert (status, err) == (1, "")
    assert out.startswith("NOT PROVED: ")
    assert "so it is open whether epsilon of this plan at delta 1e-6 is at " in out


def test_a_plan_without_a_proof_writes_no_file(tmp_path, capsys):
    path, out = tmp_path / "plan.toml", tmp_path / "cost.proof.json"
    path.write_text('[[release]]\nkind = "TruncatedLaplace"\nscale = 1.0\nreach = 40.0\n')
    status, said, err = ran(capsys, "certify", path, "--delta", "1e-6", "--proof", out)
    assert (status, said, err.count("\n")) == (1, "", 1)
    assert "no proof was written: " in err
    assert not out.exists()
    assert ran(capsys, "certify", path, "--delta", "1e-6")[0] == 0


@pytest.mark.usefixtures("small_grid")
def test_reports_say_what_was_checked(plan, proof, tmp_path, capsys):
    exact = Tight().certify(read_plan(plan), 1e-6).upper
    words = "Checked with ball arithmetic: epsilon of this plan at delta 1e-6 is at least 0.8644"
    _, out, _ = ran(capsys, "explain", plan, "--proof", proof)
    assert words in out
    assert digest_of(proof) in out
    _, out, _ = ran(capsys, "explain", plan, "--proof", proof, "--json", "-")
    found = json.loads(out)
    assert (found["epsilon"], found["proof"]["upper"]) == (exact, exact)
    _, out, _ = ran(capsys, "compare", plan, "--proof", proof)
    assert f"Tight: {words}" in out
    page = tmp_path / "page.html"
    assert ran(capsys, "page", plan, "--proof", proof, "--out", page)[0] == 0
    assert words in page.read_text()
    assert digest_of(proof) in page.read_text()
    without = tmp_path / "gaussian.toml"
    without.write_text('[[release]]\nkind = "Gaussian"\nscale = 10.0\n')
    words = ("--epsilon", "3", "--delta", "1e-6", "--out", page, "--force")
    assert ran(capsys, "page", without, *words)[0] == 0
    assert "Checked with" not in page.read_text()


@pytest.mark.parametrize("command", ["explain", "compare", "page"])
@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--delta", "1e-7"], "certify --delta 1e-7"),
        (["--delta", "1.000000000000001e-6"], "certify --delta 1.000000000000001e-06"),
        (["other"], "of this plan: "),
        (["edited"], "a proof ("),
        (["missing"], "a file that can be read"),
    ],
)
def test_no_report_takes_another_proof(plan, proof, tmp_path, capsys, command, more, said):
    out, path = tmp_path / "page.html", tmp_path / "other.toml"
    where = ["--out", str(out)] if command == "page" else []
    if more == ["other"]:
        path.write_text(PLAN.replace("count = 2", "count = 3"))
        plan, more = str(path), []
    elif more == ["edited"]:
        with open(proof, "a") as file:
            file.write("\n")
        more = []
    elif more == ["missing"]:
        proof, more = str(tmp_path / "none.json"), []
    status, words, err = ran(capsys, command, plan, "--proof", proof, *where, *more)
    assert (status, words, err.count("\n")) == (2, "", 1)
    assert said in err
    assert not out.exists()


def test_without_python_flint_one_line_says_what_to_install(
    plan, proof, tmp_path, capsys, monkeypatch
):
    monkeypatch.setitem(sys.modules, "flint", None)
    out = tmp_path / "another.json"
    for words in (["verify", proof], ["certify", plan, "--proof", out],
                  ["explain", plan, "--proof", proof]):  # fmt: skip
        status, said, err = ran(capsys, *words)
        assert (status, said, err.count("\n")) == (2, "", 1)
        assert "pip install python-flint" in err
    assert not out.exists()
    assert ran(capsys, "certify", plan)[0] == 0


def test_an_interruption_is_no_answer(proof, capsys, monkeypatch):
    def interrupted(document):
        raise KeyboardInterrupt

    monkeypatch.setattr(checked_proof, "verdict_on", interrupted)
    assert ran(capsys, "verify", proof)[0] == 130


@pytest.mark.parametrize("command", ["certify", "verify"])
def test_every_command_teaches(command, capsys):
    status, out, _ = ran(capsys, command, "--help")
    assert status == 0
    assert "Example" in out
    assert "Exit status: 0 " in out


def test_the_page_is_true(tmp_path, monkeypatch, capsys):
    from pathlib import Path

    page = Path(__file__).parents[3] / "docs" / "certificates.md"
    lines = page.read_text(encoding="utf-8").partition("$ dp-attest account verify")[2]
    shown = lines.partition("```")[0].splitlines()[1:]
    monkeypatch.chdir(tmp_path)
    releases = "".join(
        f'[[release]]\nkind = "{kind}"\nscale = {scale}\ncount = {count}\n'
        for kind, scale, count in (("Laplace", 20.0, 64), ("Gaussian", 10.0, 3))
    )
    Path("plan.toml").write_text(releases)
    certify = "certify plan.toml --delta 1e-6 --proof cost.proof.json"
    assert main(certify.split()) == 0
    capsys.readouterr()
    assert main(["verify", "cost.proof.json", "--plan", "plan.toml"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[:2] == shown[:2]
    assert printed[2].partition("checked")[0] == shown[2].partition("checked")[0]
