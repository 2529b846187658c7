"""`training --opacus`: a file that `opacus_record` wrote, read with the loader in it."""

import json

import pytest

from accountant.__main__ import main
from accountant.formats.opacus import opacus_record

FACTS = {
    "order": "shuffled", "sampler": "RandomSampler", "records": 100, "batches": 2, "batch": 50,
    "rate": None, "drop_last": False, "dataset": 100,
}  # fmt: skip


@pytest.fixture
def file(tmp_path):
    def written(record):
        path = tmp_path / "run.json"
        path.write_text(record if isinstance(record, str) else json.dumps(record))
        return str(path)

    return written


def test_a_recorded_run_is_stated_under_its_own_loader(file, capsys):
    name = file(opacus_record([(1000.0, 0.5, 2)], FACTS))
    words = ["training", "--opacus", name, "--delta", "9e-3", "--epochs", "1", "--json", "-"]
    assert main(words) == 0
    shown = capsys.readouterr()
    assert "the Poisson number does not hold" in shown.err
    assert '"shuffled"' in shown.out


@pytest.mark.parametrize(
    ("record", "options", "words"),
    [
        ({"history": [[4.0, 0.5, 2]]}, [], "given here or to opacus_record"),
        ("[1, 2", [], "--opacus must be a JSON file"),
        ("[1, 2]", [], "--opacus must be a JSON file"),
        ({"history": [[4.0, 0.5, 2]], "loader": FACTS}, ["--epochs", "3"], "3 epochs of the"),
        ({"history": [[4.0, 0.5, 2]], "loader": FACTS}, ["--noise", "1"], "--noise is left out"),
        ({"history": [[4.0, 0.5, 2]], "loader": {**FACTS, "order": "weighted"}}, [], "weights"),
        ('{"history": [[NaN, 0.5, 2]], "loader": {}}', [], "noise_multiplier"),
        ({"history": [[4.0, 0.5, 2]]}, ["--replay", "x.json"], "--replay is given alone"),
    ],
)  # fmt: skip
def test_files_without_a_record_and_other_options_are_refused(file, capsys, record, options, words):
    assert main(["training", "--opacus", file(record), *options]) == 2
    assert words in capsys.readouterr().err
    assert main(["training", "--opacus", "no such file"]) == 2
