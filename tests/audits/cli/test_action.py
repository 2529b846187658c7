"""The action and the hooks of pre-commit, run on a small repository as their hosts run them."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
EXPRESSION = re.compile(r"\$\{\{ inputs\.([a-z-]+) \}\}")
RELEASES = """\
from noise.scales import SCALE


def count(value, rng, size):
    return value + rng.laplace(scale=SCALE, size=size)


def broken_count(value, rng, size):
    return value + rng.laplace(scale=SCALE / 2, size=size)
"""
CLAIM = "--epsilon 1 --pair 0 1 --runs 2000 --allow-import"


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A repository with an honest and a broken function, whose noise is in another module."""
    folder = tmp_path_factory.mktemp("repository")
    (folder / "noise").mkdir()
    (folder / "noise/__init__.py").write_text("")
    (folder / "noise/scales.py").write_text("SCALE = 1.0\n")
    (folder / "releases.py").write_text(RELEASES)
    author = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], [*author, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


class Job:
    """What the steps of the action leave: the exit status of the last one, and its files."""

    def __init__(self, repository, **inputs):
        given = {name: each.get("default") for name, each in ACTION["inputs"].items()}
        given |= {"python": sys.executable, "install": "none"}
        given |= {name.replace("_", "-"): text for name, text in inputs.items()}
        summary, output = repository / ".git/summary", repository / ".git/output"
        for file in (summary, output):
            file.write_text("")
        runner = {
            **os.environ, "GITHUB_STEP_SUMMARY": str(summary), "GITHUB_OUTPUT": str(output),
            "GITHUB_ACTION_PATH": str(ROOT), "PYTHONPATH": str(ROOT),
        }  # fmt: skip

        def filled(text):
            return EXPRESSION.sub(lambda match: given[match[1]], text)

        for step in ACTION["runs"]["steps"]:
            assert step["shell"] == "bash"
            # a word of an input in a script would be run as a command
            assert "${{" not in step["run"]
            env = {name: filled(text) for name, text in step["env"].items()}
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=repository / filled(step.get("working-directory", ".")),
                env={**runner, **env}, capture_output=True, text=True, check=False,
            )  # fmt: skip
            self.status, self.shown = done.returncode, done.stdout + done.stderr
            if self.status:
                break
        self.summary = summary.read_text()
        self.output = dict(line.split("=", 1) for line in output.read_text().splitlines())

    @property
    def results(self):
        """The results in the SARIF file that the output names."""
        (run,) = json.loads(Path(self.output["sarif"]).read_text())["runs"]
        return run["results"]


def rendered(summary):
    """Markdown as a reader sees it, where underscores are entities."""
    return summary.replace("&#95;", "_")


# each starts the auditor and a process of the function, which takes a second or two
def test_an_honest_function_passes_and_the_summary_says_so(repository):
    job = Job(repository, arguments=f"target releases:count {CLAIM}")
    assert job.status == 0, job.shown
    assert job.results == []
    assert job.summary.startswith("## dp-attest audit\n\n**No violation seen in 1 audit.**")
    assert job.output["status"] == "0"
    assert job.output["sarif"] == str(repository / "audits.sarif")
    assert json.loads(Path(job.output["json"]).read_text())["findings"][0]["outcome"] == "survived"


def test_a_broken_function_fails_at_its_line_until_it_is_known_and_when_it_changes(repository):
    # several lines and quotes are words of a shell
    words = f"target 'releases:broken_count'\n  {CLAIM}\n"
    job = Job(repository, arguments=words, json=".git/main.json", baseline="not-yet.json")
    assert job.status == 1, job.shown
    assert job.output["status"] == "1"
    assert "**1 violation: releases:broken_count leaks" in rendered(job.summary)
    assert "releases.py:8" in job.summary
    (one,) = job.results
    place = one["locations"][0]["physicalLocation"]
    assert (one["level"], place["region"]) == ("error", {"startLine": 8})
    assert place["artifactLocation"]["uri"] == "releases.py"

    known = Job(repository, arguments=words, baseline=".git/main.json")
    assert known.status == 0, known.shown
    assert known.results[0]["baselineState"] == "unchanged"
    assert "1 of 1 row kept from the baseline." in known.summary

    scales = repository / "noise/scales.py"
    scales.write_text("SCALE = 0.99\n")
    changed = Job(repository, arguments=words, baseline=".git/main.json")
    scales.write_text("SCALE = 1.0\n")
    assert changed.status == 1
    assert changed.results[0]["baselineState"] == "updated"
    assert "Audited now, as its code changed: " in changed.summary


def test_too_few_runs_fail_only_if_strict_and_are_a_note(repository):
    words = f"target releases:count {CLAIM}".replace("2000", "100")
    assert Job(repository, arguments=words).status == 0
    job = Job(repository, arguments=words, strict="true", sarif="out/../few.sarif")
    assert job.status == 2  # the folder is not there
    job = Job(repository, arguments=words, strict="true", sarif="few.sarif")
    assert job.status == 3
    assert [(one["ruleId"], one["level"]) for one in job.results] == [("too-few-runs", "note")]


INJECTED = ["target x:y; touch stolen", "$(touch stolen)", "`touch stolen`", "run *", "'a", ""]


@pytest.mark.parametrize("words", INJECTED)
def test_no_word_of_the_arguments_is_run(words, repository):
    job = Job(repository, arguments=words, baseline="$(touch stolen)", strict="; touch stolen",
              json="$(touch stolen).json")  # fmt: skip
    assert job.status == 2, job.shown
    assert not list(repository.rglob("stolen"))
    assert words == "'a" or "the log says why" in job.summary


def test_every_input_and_output_is_described_and_used():
    text = (ROOT / "action.yml").read_text()
    used = set(EXPRESSION.findall(text))
    assert used == set(ACTION["inputs"])
    for each in (*ACTION["inputs"].values(), *ACTION["outputs"].values()):
        assert len(each["description"]) > 20
    assert ACTION["runs"]["using"] == "composite"


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ("releases:count", 0, "No violation seen"),
        ("releases:broken_count", 1, "1 violation: releases:broken_count leaks"),
    ],
)
def test_a_hook_fails_where_the_claim_is_falsified(words, status, said, repository):
    hook = HOOKS["dp-attest-target"]
    command = [*shlex.split(hook["entry"]), words, *shlex.split(CLAIM)]
    # pre-commit puts the environment of a hook first on the path
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=repository, env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    assert said in done.stdout


def test_every_hook_calls_a_command_of_the_auditor():
    from audits.__main__ import COMMANDS

    for hook in HOOKS.values():
        *program, command = shlex.split(hook["entry"])
        assert program == ["dp-attest", "audit"]
        assert command in COMMANDS
        assert (hook["language"], hook["pass_filenames"]) == ("python", False)
