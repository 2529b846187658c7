"""`dp-attest audit scores`: two files of scores, a verdict, reports, and the run again."""

import json

import numpy as np
import pytest

from accountant import GaussianLoss, Repeat, to_json
from audits import audit_scores
from audits.__main__ import main


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    coins = rng.random(2000) < 0.5
    scores = 2 * coins + rng.normal(size=2000)
    paths = str(tmp_path / "inside.npy"), str(tmp_path / "outside.npy")
    np.save(paths[0], scores[coins])
    np.save(paths[1], scores[~coins])
    return paths


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--epsilon", "2", "--delta", "1e-5"], 1),
        (["--epsilon", "12", "--delta", "1e-5"], 0),
        (["--epsilon", "12", "--delta", "1e-5", "--strict"], 3),
        (["--mu", "0.5"], 1),
        (["--mu", "2", "--delta", "1e-5"], 0),
        ([], 0),
        (["--epsilon", "4", "--split", "fixed"], 1),
        (["--epsilon", "1", "--mu", "1"], 2),
        (["--epsilon", "nan"], 2),
        (["--split", "half"], 2),
    ],
)
def test_exit_statuses(files, words, status, capsys):
    assert main(["scores", *files, *words, "--seed", "0"]) == status
    shown = capsys.readouterr()
    if status == 1:
        assert "1 violation: " in shown.out
        assert "A true claim survives with probability 95 % at least." in shown.out
    if status == 2:
        assert "must be" in shown.err


def test_reports_and_the_run_again(files, tmp_path, capsys):
    name = str(tmp_path / "run.json")
    page = tmp_path / "run.html"
    words = ["--epsilon", "2", "--delta", "1e-5", "--json", name, "--out", str(page)]
    assert main(["scores", *files, *words]) == 1
    report = json.loads((tmp_path / "run.json").read_text())
    found = audit_scores(*files, delta=1e-5, rng=report["seed"])
    assert report["findings"][0]["epsilon_lower"] == found.epsilon_lower
    assert report["command"].startswith("dp-attest audit scores ")
    assert "--runs" not in report["command"]
    assert "in a million" not in page.read_text()
    assert main(["replay", name]) == 0
    assert "identical" in capsys.readouterr().out


@pytest.mark.parametrize(("mu", "status"), [(0.1, 1), (0.5, 0)])
def test_a_plan_is_a_claim_by_its_whole_curve(files, tmp_path, mu, status):
    plan = tmp_path / "plan.json"
    plan.write_text(to_json(Repeat(GaussianLoss(mu), 25)))
    assert main(["scores", *files, "--plan", str(plan), "--delta", "1e-5"]) == status


def test_a_file_that_is_none(files, capsys):
    assert main(["scores", files[0], "no-such.npy"]) == 2
    assert "OUTSIDE.npy must be a .npy file to read" in capsys.readouterr().err
