"""``dp-attest audit record``: its exit status, its lines and its JSON."""

import json

import numpy as np
import pytest

from audits.__main__ import main

CODE = """
import numpy as np

def noisy_sum(data):
    return np.clip(data, 0, 1).sum() + np.random.laplace(scale=2.0)

def noisy_mean(data, rng):
    return (np.clip(data, 0, 1).sum() + rng.laplace(scale=1.0)) / len(data)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "code_to_record.py").write_text(CODE)
    np.save(tmp_path / "a.npy", np.ones(5))
    np.save(tmp_path / "b.npy", np.ones(4))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def run(name, *more):
    return main(["record", f"code_to_record:{name}", "--pair", "a.npy", "b.npy", *more])


def test_a_function_with_nothing_found_exits_with_0(folder, capsys):
    assert run("noisy_sum", "--epsilon", "1", "--allow-import") == 0
    assert capsys.readouterr().out.startswith("nothing found in 1 draw; this pair costs epsilon")


def test_a_finding_exits_with_1_and_is_written(folder, capsys):
    assert run("noisy_mean", "--epsilon", "1", "--allow-import", "--json", "found.json") == 1
    rows = json.loads((folder / "found.json").read_text())
    assert rows["findings"][0]["site"].endswith("code_to_record.py:8")
    assert "input" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "more", "words"),
    [
        ("noisy_sum", [], "--allow-import"),
        ("no_such", ["--allow-import"], "can be imported"),
        ("noisy_sum", ["--allow-import", "--epsilon", "nan"], "--epsilon"),
    ],
)
def test_bad_usage_exits_with_2(folder, capsys, name, more, words):
    assert run(name, *more) == 2
    assert words in capsys.readouterr().err
