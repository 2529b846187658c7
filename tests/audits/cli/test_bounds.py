"""`dp-attest audit bounds` as a person and as a program meet it, and what stands behind it."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import audits.minimax.checks.enumeration
from accountant import ParameterError
from audits.__main__ import main
from audits.minimax.checks.enumeration import Check, enumerate_checks
from audits.minimax.performance.answers import report_problem, size_text
from audits.minimax.problems import PROBLEMS, lower_bound, sample_size
from audits.report.bounds import closest_checks, to_html

FEW = enumerate_checks(0, 2, 1)
ONE = ["bounds", "private_selection", "--n", "50", "--k", "8", "--runs", "40"]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """The enumeration has tests of its own."""
    monkeypatch.setattr(audits.minimax.checks.enumeration, "enumerate_checks", lambda *_: FEW)


def test_one_problem_for_a_person(capsys):
    assert main(ONE) == 0
    shown = " ".join(capsys.readouterr().out.split())
    bound = lower_bound("private_selection", n=50, k=8, epsilon=1.0)
    assert f"{bound.value:.4g}" in shown
    assert "n = 50, k = 8, epsilon = 1.0" in shown
    assert "FewVotes(k=8, n=50" in shown
    assert "PrivateSelection" in shown
    assert "checks hold" in shown


def test_the_document(capsys):
    assert main(["bounds", "sparse_regression", "--n", "3000", "--error", "0.01", "--runs", "3",
                 "--json", "-"]) == 0  # fmt: skip
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert list(document) == ["schema", "seed", "bounds", "checks"]
    (one,) = document["bounds"]
    setting = {"n": 3000, "p": 20, "epsilon": 0.5, "interaction": "sequential"}
    assert one["setting"] == setting
    bound = lower_bound("sparse_regression", **setting)
    assert (one["value"], one["published"]) == (bound.value, bound.published)
    assert one["construction"]["kind"] == "SignedBasis"
    assert one["construction"]["separation"] == bound.construction.separation
    rest = {name: value for name, value in setting.items() if name != "n"}
    assert one["users"] == sample_size("sparse_regression", 0.01, **rest)
    for algorithm in one["algorithms"]:
        assert algorithm["runs"] == 3
        assert algorithm["ratio"] == algorithm["risk"] / bound.value > 1
        assert algorithm["free"] < algorithm["risk"]
    assert all(check["holds"] for check in document["checks"])
    assert "LocalIHT" in err


def test_all_problems_and_files(tmp_path):
    page, file = tmp_path / "b.html", tmp_path / "b.json"
    assert main(["bounds", "--runs", "2", "--out", str(page), "--json", str(file)]) == 0
    document = json.loads(file.read_text())
    assert [one["problem"] for one in document["bounds"]] == list(PROBLEMS)
    assert all(one["algorithms"] for one in document["bounds"])
    text = page.read_text()
    assert all(f"<h2>{problem}</h2>" in text for problem in PROBLEMS)
    assert "http://" not in text
    assert "https://" not in text
    assert "<script" not in text
    assert "dp-attest audit bounds --runs 2 --seed 0" in text


def test_same_seed_same_document(capsys):
    documents = []
    for seed in ("4", "4", "5"):
        assert main([*ONE, "--seed", seed, "--json", "-"]) == 0
        documents.append(json.loads(capsys.readouterr().out)["bounds"])
    assert documents[0] == documents[1] != documents[2]


def test_a_failed_inequality_is_told(monkeypatch, capsys):
    def failing(*given):
        return [Check("I(V; Z)", "made up", 2.0, 1.0), *FEW[:3]]

    monkeypatch.setattr(audits.minimax.checks.enumeration, "enumerate_checks", failing)
    assert main(ONE) == 1
    shown = capsys.readouterr().out
    assert "VIOLATED" in shown
    assert "3 of 4 checks hold" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nonsense"], "one of 'sparse_regression'"),
        (["--n", "5"], "given together with a PROBLEM"),
        (["--error", "5"], "given together with a PROBLEM"),
        (["private_selection", "--p", "5"], "private_selection takes n, k, epsilon"),
        (["private_selection", "--n", "0"], "n must"),
        (["private_selection", "--n", "many"], "n must"),
        (["private_selection", "--epsilon", "nan"], "epsilon must"),
        (["private_selection", "--error", "-1"], "--error must"),
        (["private_selection", "--runs", "1"], "--runs must"),
        (["label_regression", "--s", "80"], "2p / 3"),
        (["private_selection", "--json", "/nowhere/b.json"], "--json"),
    ],
)
def test_bad_usage_is_one_line(words, message, capsys):
    assert main(["bounds", *words]) == 2
    out, line = capsys.readouterr()
    assert out == ""
    assert message in line
    assert line.count("\n") == 1


def test_help_teaches_every_problem_and_option():
    done = subprocess.run(
        [sys.executable, "-m", "audits", "bounds", "--help"], capture_output=True, text=True,
        check=True, timeout=60,
    )  # fmt: skip
    words = " ".join(done.stdout.split())
    assert all(problem in words for problem in PROBLEMS)
    assert "Exit status" in words
    assert "dp-attest audit bounds sparse_regression --n" in words


def test_every_parameter_of_every_problem_is_an_option():
    import inspect

    from audits.cli.bounds import bounds
    from audits.minimax.problems import bound_function

    options = set(inspect.signature(bounds).parameters)
    for problem in PROBLEMS:
        assert set(inspect.signature(bound_function(problem)).parameters) <= options


def test_the_model_chooses_the_algorithm():
    rng = np.random.default_rng(0)
    names = {
        tuple(sorted(given.items())): [
            one.algorithm for one in report_problem("private_mean", given, None, 2, rng).gaps
        ]
        for given in ({}, {"model": "central"}, {"model": "central", "delta": 1e-6})
    }
    assert list(names.values()) == [
        ["LocalMean"], ["PrivateMean, Laplace"], ["PrivateMean, Gaussian"],
    ]  # fmt: skip
    with pytest.raises(ParameterError, match="private_mean takes"):
        report_problem("private_mean", {"p": 3}, None, 2, rng)


def test_words_from_outside_are_escaped():
    found = report_problem("private_selection", {"n": 20}, None, 2, np.random.default_rng(0))
    hostile = replace(found, bound=replace(found.bound, statement="<script>alert(1)</script>"))
    page = to_html([hostile], [], "again <b>")
    assert "<script" not in page
    assert "again &lt;b&gt;" in page


def test_the_closest_checks_are_shown_and_all_that_fail():
    checks = [
        Check("a", "1", 0.5, 1.0), Check("a", "2", 0.9, 1.0), Check("b", "3", 2.0, 1.0),
        Check("b", "4", 3.0, 1.0),
    ]  # fmt: skip
    assert [one.case for one in closest_checks(checks)] == ["2", "3", "4"]


def test_numbers_of_any_size():
    assert size_text(1024) == "1,024"
    assert size_text(2**500) == "2^500"
