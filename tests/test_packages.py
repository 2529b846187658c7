"""Packages: what an import costs, examples of their modules, one file a mechanism."""

import doctest
import importlib.util
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import accountant
import algorithms
import audits
import dp_attest
import mechanisms
from audits.runner.california_housing import load

PACKAGES = [dp_attest, accountant, algorithms, audits, mechanisms]


def loaded_by(statement, *heavy):
    code = f"{statement}; import sys; print([m for m in {heavy!r} if m in sys.modules])"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)


@pytest.mark.parametrize("package", ["accountant", "mechanisms", "algorithms", "audits"])
def test_importing_a_package_loads_numpy_at_most(package):
    heavy = ("scipy", "sklearn", "dp_accounting", "statsmodels", "rich", "typer", "pandas")
    assert loaded_by(f"import {package}", *heavy).stdout == "[]\n"


WITHOUT_FLINT = """
import sys
sys.modules["flint"] = None  # the checker alone needs it

import accountant, algorithms, audits, mechanisms
for package in (accountant, mechanisms, algorithms, audits):
    for name in package.__all__:
        getattr(package, name)
"""


def test_every_public_name_is_there_without_python_flint():
    subprocess.run([sys.executable, "-c", WITHOUT_FLINT], check=True)


WITHOUT_POSIX = """
import sys
sys.modules["fcntl"] = sys.modules["resource"] = None  # as on Windows

import numpy as np
import accountant, algorithms, audits, dp_attest, mechanisms
from accountant import Book, Budget, Ledger, ParameterError, Tight

print(round(Tight().epsilon(4 * mechanisms.Laplace(2.0), 0.0), 6))
for package in (accountant, algorithms, audits, mechanisms):
    for name in package.__all__:
        getattr(package, name)
for name in ("audits.__main__", "audits.runner.target_processes", "accountant.__main__"):
    __import__(name)
gate = Ledger(np.arange(9.0), mechanisms.Laplace(1.0))
print(np.isfinite(gate.release(mechanisms.Laplace(1.0), np.sum)))
for refused in (
    lambda: Book.create("sqlite:///book.db"),
    lambda: Book.create("postgresql://user@host/book", pin="book.pin"),
    lambda: audits.runner.target_processes.TargetProcesses("m:f", ("0", "1"), (0, 1), None, 1),
):
    try:
        refused()
    except ParameterError as error:
        print(error)
"""


def test_without_posix_all_works_but_books_on_files(tmp_path):
    child = subprocess.run(
        [sys.executable, "-c", WITHOUT_POSIX],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert child.stdout.splitlines() == [
        "2.0",
        "True",
        "url must be of a PostgreSQL server here: files of books and pins need the locks of Linux "
        "or macOS, got 'book.db'",
        "pin must be left out: files of books and pins need the locks of Linux or macOS, "
        "got 'book.pin'",
        "PKG.MODULE:FUNCTION must be audited on Linux or macOS: the limits of a function are those "
        "of their systems, got 'm:f'",
    ]
    assert os.listdir(tmp_path) == []


def test_help_loads_no_numpy():
    code = "import audits.__main__ as m; m.main(['--help'])"
    assert loaded_by(code, "numpy").stdout.endswith("[]\n")


def modules_with_examples():
    found = []
    for package in PACKAGES:
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            source = importlib.util.find_spec(module.name).origin
            if ">>> " in Path(source).read_text():
                found.append(module.name)
    return found


@pytest.mark.parametrize("name", modules_with_examples())
def test_docstring_examples_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


NEW = '''
"""A mechanism dropped in by a test."""

from typing import ClassVar

import numpy as np

from accountant.losses.gaussian import GaussianLoss
from accountant.domains import POSITIVE
from mechanisms.gaussian import Gaussian
from mechanisms.base import Mechanism, RealLine, Reals, declare, param


@declare
class HalvedGaussian(Mechanism):
    """Half the value under Gaussian noise."""

    releases: ClassVar[str] = "half a number"
    reference: ClassVar[str] = "Example (2026)"
    scale: float = param(POSITIVE, "noise", typical=(1.0,), knob=True)

    def release(self, value, rng=None, size=None):
        return Gaussian(self.scale).release(np.divide(value, 2), rng, size)

    def log_density(self, output, value, each=False):
        return Gaussian(self.scale).log_density(output, np.divide(value, 2), each)

    @property
    def loss(self):
        return GaussianLoss(0.5 / self.scale)

    def worst_pair(self, epsilon=0.0):
        return 1.0, 0.0

    @property
    def values(self):
        return Reals(2.0)

    @property
    def support(self):
        return RealLine()
'''


def test_a_mechanism_is_one_file_and_no_other_edit(tmp_path):
    for package in PACKAGES:
        shutil.copytree(package.__path__[0], tmp_path / package.__name__)
    (tmp_path / "mechanisms" / "halved_gaussian.py").write_text(NEW)
    code = """
from accountant import RDP, calibrate, compare
from audits import audit, exact
from audits.runner.cases import cases
from mechanisms import HalvedGaussian
import mechanisms
from mechanisms.base.docs_table import declarations
from mechanisms.base.package_stub import package_stub
assert 'HalvedGaussian' in mechanisms.__all__
assert 'import HalvedGaussian as HalvedGaussian' in package_stub()
made = calibrate(HalvedGaussian, epsilon=1.0, delta=1e-5)
assert abs(exact(made, 1.0) - 1e-5) < 1e-9
assert 0.4 < audit(made, rng=1).epsilon_lower < 1.0
assert RDP().epsilon(2 * made, 1e-6) > compare(2 * made, 1e-6).best.epsilon
assert any('Example (2026)' in row for _, row in declarations())
parameters = "Parameters\\n----------\\nscale : float\\n    Noise.\\n"
assert parameters in HalvedGaussian.__doc__
assert HalvedGaussian.__doc__.endswith("References\\n----------\\nExample (2026).")
assert any('HalvedGaussian' in case.subject for case in cases())
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_what_make_installs_is_pinned_by_hashes_and_names_no_address():
    root = Path(__file__).parents[1]
    text = (root / "requirements.txt").read_text()
    assert "://" not in text
    lines = "".join(line for line in text.splitlines(keepends=True) if line[0] != "#")
    for requirement in lines.replace("\\\n", "").splitlines():
        pin, *hashes = requirement.split("--hash=sha256:")
        condition = r"\w+ [!=]= '[\w.*]+'"
        pattern = rf"[\w.-]+==[\w.]+( ; {condition}( and {condition})*)? +"
        assert re.fullmatch(pattern, pin), pin
        assert hashes
        assert all(re.fullmatch(r"[0-9a-f]{64} *", hash_) for hash_ in hashes), pin
    installs = [
        line
        for line in (root / "Makefile").read_text().splitlines()
        if "-r requirements.txt" in line
    ]
    assert len(installs) == 2
    assert all("--require-hashes" in line for line in installs)


def test_no_asserts_in_the_packages():
    # they vanish under -O
    for package in PACKAGES:
        for path in Path(package.__path__[0]).rglob("*.py"):
            lines = [line.strip() for line in path.read_text().splitlines()]
            assert not [line for line in lines if line.startswith("assert ")], path


def test_the_embedded_data_are_whole():
    data = load()
    assert data.train[0].shape == (16_512, 14)
    assert data.test[0].shape == (4_128, 14)
    for part in (*data.train, *data.test):
        assert abs(part).max() <= 1.0
    other_x, other_y = data.neighbour()
    changed = (other_x != data.train[0]).any(axis=1) | (other_y != data.train[1])
    assert changed.sum() == 1
    assert changed[0]
    # The census cuts ages of houses at 52 years and their values at 500,001 dollars: some records
    # are at these bounds, and none is beyond.
    for rows, values in (data.train, data.test):
        age = rows[:, data.names.index("housing_median_age")]
        for column in (age, values):
            assert 0.01 < (column == 1.0).mean() < 0.1
