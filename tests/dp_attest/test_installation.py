"""Packages that another distribution has overwritten are named; so are misspelled names."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import accountant
import algorithms
import mechanisms
from dp_attest.__main__ import main
from dp_attest.installation import PACKAGES, check_packages

ROOT = Path(__file__).parents[2]


def test_every_package_is_its_own():
    check_packages()


@pytest.mark.parametrize("importing", ["audits", "mechanisms", "dp_attest.__main__"])
def test_an_overwritten_package_is_named_by_the_others(importing, tmp_path):
    """As ``pip install algorithms`` leaves it: one file is another distribution's."""
    for name in ("dp_attest", *PACKAGES):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "algorithms").unlink()
    shutil.copytree(ROOT / "algorithms", tmp_path / "algorithms")
    (tmp_path / "algorithms" / "__init__.py").write_text("def bubble_sort(x): ...\n")
    facts = tmp_path / "algorithms-0.1.4.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: algorithms\nVersion: 0.1.4\n")
    (facts / "RECORD").write_text("algorithms/__init__.py,,\n")
    (facts / "top_level.txt").write_text("algorithms\n")
    done = subprocess.run(
        [sys.executable, "-c", f"import {importing}"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: ")
    assert "is not dp-attest's package 'algorithms'" in last
    assert "of algorithms has taken its place" in last
    assert "pip uninstall algorithms" in last


@pytest.mark.parametrize(
    ("package", "name", "words"),
    [
        ("accountant", "Laplace", "it is in mechanisms: `from mechanisms import Laplace`"),
        ("accountant", "Tigth", "did you mean 'Tight'?"),
        ("accountant", "Gausian", "did you mean 'Gaussian', from mechanisms?"),
        ("mechanisms", "Gausian", "did you mean 'Gaussian'?"),
        ("mechanisms", "Laplac", "did you mean 'Laplace'?"),
        ("algorithms", "Budget", "it is in accountant"),
        ("audits", "audti", "did you mean 'audit'?"),
    ],
)
def test_a_name_that_is_not_there_is_corrected(package, name, words):
    with pytest.raises(ImportError) as caught:
        exec(f"from {package} import {name}")
    assert words in str(caught.value)


def test_attributes_of_packages_stay_attributes():
    for package in (accountant, mechanisms, algorithms):
        assert not hasattr(package, "no_such_name")
        assert not hasattr(package, "__wrapped__")
        assert getattr(package, "no_such_name", 3) == 3
    with pytest.raises(AttributeError, match="did you mean 'Gaussian'"):
        mechanisms.Gausian  # noqa: B018
    with pytest.raises(ImportError, match=r"has no 'xyz'$"):
        exec("from accountant import xyz")


def hiding_folder(folder):
    """A folder of a user, who has a package and a module of the same names as ours."""
    (folder / "algorithms").mkdir()
    (folder / "algorithms" / "__init__.py").write_text("def bubble_sort(x): ...\n")
    (folder / "mycode.py").write_text("def release(value, rng): return value + rng.laplace()\n")
    return folder


@pytest.mark.parametrize("module", ["dp_attest", "accountant", "audits"])
def test_a_folder_of_the_user_that_hides_a_package_is_explained(module, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", module, "--version"],
        cwd=hiding_folder(tmp_path), env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    (line,) = done.stderr.splitlines()
    assert done.returncode != 0
    assert line.startswith(f"dp-attest: {tmp_path}/algorithms/__init__.py is not dp-attest's")
    assert line.endswith(f"rename {tmp_path}/algorithms, or work in another folder: to install "
                         "again cannot help")  # fmt: skip
    assert "pip" not in line


@pytest.mark.parametrize("command", ["target", "record"])
def test_code_to_audit_in_such_a_folder_is_refused_in_words(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(hiding_folder(tmp_path))
    words = [command, "mycode:release", "--pair", "0", "1", "--epsilon", "1", "--allow-import"]
    assert main(["audit", *words]) == 2
    said = capsys.readouterr().err
    assert "hides dp-attest's package 'algorithms': rename" in said
    assert said.count("\n") == 1


LOADED = """
import sys
before = set(sys.modules)
from accountant import PoissonSampled, Tight
from mechanisms import Gaussian, Laplace
plan = 3 * Laplace(10.0) + 10 * PoissonSampled(Gaussian(1.0), 0.01)
print(Tight().epsilon(plan, 1e-6) < 2)
print(*{name.partition(".")[0] for name in set(sys.modules) - before})
"""


def test_an_epsilon_loads_numpy_and_scipy_alone():
    done = subprocess.run(
        [sys.executable, "-c", LOADED], cwd=ROOT, capture_output=True, text=True, check=True
    )
    answer, names = done.stdout.splitlines()
    owners = importlib.metadata.packages_distributions()
    loaded = {owner for name in names.split() for owner in owners.get(name, ())}
    assert answer == "True"
    assert loaded - {"dp-attest", "lazy-loader"} <= {"numpy", "scipy"}


UNPUBLISHED = re.compile(r"pip install [`'\"]*dp-attest")


def test_no_remedy_names_what_is_not_published():
    texts = [
        *(path for package in ("dp_attest", *PACKAGES) for path in (ROOT / package).rglob("*.py")),
        *(ROOT / "accountant" / "reports" / "templates").glob("*.html"),
        *(ROOT / "docs").rglob("*.md"),
    ]
    texts = [path for path in texts if "records" not in path.parts]
    assert [path for path in texts if UNPUBLISHED.search(path.read_text(encoding="utf-8"))] == []
