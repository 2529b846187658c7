"""Packages that another distribution has overwritten are named; so are misspelled names."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import accountant
import algorithms
import mechanisms
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
