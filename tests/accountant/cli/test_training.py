"""``dp-attest account training``: the command's forms and errors."""

import json

import pytest

from accountant import TrainingStatement
from accountant.__main__ import main
from accountant.training.loaders import LOADERS
from accountant.training.rows import RunCosts, TrainingCost

FACTS = ["training", "--examples", "600", "--batch", "100", "--epochs", "1", "--noise", "2"]


@pytest.fixture(autouse=True)
def quick_rows(monkeypatch):
    """Rows that cost no time; `tests/accountant/training` computes them."""

    def cost(rows, loader, unit, relation, micro):
        del rows, unit
        return TrainingCost(loader, "record", relation, micro, 0.5, 3.0)

    monkeypatch.setattr(RunCosts, "cost", cost)


def test_the_command_writes_text_json_and_a_page(tmp_path, capsys):
    out, file = tmp_path / "statement.html", tmp_path / "statement.json"
    words = [*FACTS, "--loader", "shuffled", "--out", str(out), "--json", str(file)]
    assert main(words) == 0
    assert capsys.readouterr().out.startswith("DP-SGD, shuffled passes: 600 examples")
    found = TrainingStatement.from_json(file.read_text())
    assert (found.run.loader, found.noise, found.run.examples) == ("shuffled", 2.0, 600)
    assert "--loader shuffled --out FILE" in out.read_text()
    assert main(words) == 2
    assert "--force" in capsys.readouterr().err
    assert main([*words, "--force"]) == 0
    capsys.readouterr()
    assert main([*FACTS, "--json", "-"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["run"]["loader"] == "poisson"
    assert "DP-SGD, Poisson: 600 examples" in captured.err


def test_a_statement_is_replayed(tmp_path, capsys):
    file = tmp_path / "statement.json"
    assert main([*FACTS, "--json", str(file)]) == 0
    assert main(["training", "--replay", str(file)]) == 0
    file.write_text(file.read_text().replace('"epsilon": 3.0', '"epsilon": 0.3'))
    capsys.readouterr()
    assert main(["training", "--replay", str(file)]) == 1
    assert "says another number" in capsys.readouterr().err
    for wrong in (["--replay", str(file), "--noise", "2"], ["--replay", str(tmp_path)]):
        assert main(["training", *wrong]) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["training"], "give --examples"),
        (FACTS[:3], "give --batch"),
        ([*FACTS, "--loader", "DataLoader"], "--loader must be one of"),
        ([*FACTS, "--delta", "nan"], "--delta must be"),
        ([*FACTS, "--examples-per-user", "1.5"], "--examples-per-user must be"),
        ([*FACTS[:-1], "two"], "--noise must be"),
        ([*FACTS, "--out", "/no/such/folder/x.html"], "--out must be"),
    ],
)
def test_wrong_use_is_one_line(words, said, capsys):
    assert main(words) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_the_help_names_every_loader(capsys):
    assert main(["training", "--help"]) == 0
    words = capsys.readouterr().out
    assert all(loader in words for loader in LOADERS)
