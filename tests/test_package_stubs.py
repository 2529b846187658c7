"""The stubs are what users see: names at run time, types under mypy, files in the wheel."""

import ast
import importlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import mechanisms
from mechanisms.base.package_stub import STUB, package_stub

ROOT = Path(__file__).parents[1]
PACKAGES = ("accountant", "mechanisms", "algorithms", "audits", "audits.minimax")


def stub_path(package):
    return ROOT / package.replace(".", "/") / "__init__.pyi"


def stub_names(package):
    """Every name of a stub with the module it comes from."""
    imports = ast.parse(stub_path(package).read_text()).body[1:]
    assert all(isinstance(line, ast.ImportFrom) and line.level == 1 for line in imports)
    pairs = [(alias, line.module) for line in imports for alias in line.names]
    # mypy exports what is imported `as` itself
    assert all(alias.asname == alias.name for alias, _ in pairs)
    assert len({alias.name for alias, _ in pairs}) == len(pairs)
    return {alias.name: f"{package}.{module}" for alias, module in pairs}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_lists_and_holds_what_its_stub_names(package):
    module, names = importlib.import_module(package), stub_names(package)
    assert sorted(module.__all__) == sorted(dir(module)) == sorted(names)
    for name, home in names.items():
        assert getattr(module, name) is getattr(importlib.import_module(home), name)
    with pytest.raises(AttributeError, match="Nothing"):
        _ = module.Nothing
    with pytest.raises(ImportError, match="Nothing"):
        exec(f"from {package} import Nothing")


def test_the_stub_of_mechanisms_is_that_of_the_registry():
    assert stub_path("mechanisms") == STUB
    assert STUB.read_text() == package_stub(), "run `make table`"
    declared = {cls.__name__ for cls in mechanisms.registry() if "mechanisms" in cls.__module__}
    assert declared < set(mechanisms.__all__)


USES = """
from accountant import Stated, calibrate
from algorithms import PrivateLasso
from audits import audit
from audits.minimax import lower_bound
from mechanisms import Laplace
reveal_type(Laplace(1.0))
reveal_type(calibrate)
reveal_type(PrivateLasso(1.0, 1e-6))
reveal_type(audit(Laplace(1.0)))
reveal_type(lower_bound("mean"))
Stated(Laplace(1.0), "replace-one")
Laplace("one")
from mechanisms import Nothing
"""


@pytest.mark.slow  # it runs mypy on all packages, which `make types` does for the sources
def test_public_names_have_types_under_strict_mypy(tmp_path):
    file = tmp_path / "uses.py"
    file.write_text(USES)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    said = [line.split("uses.py:")[1] for line in done.stdout.splitlines()]
    shown = [line.split("type is ")[1].strip('"') for line in said if "Revealed" in line]
    assert shown[0] == "mechanisms.laplace.Laplace", done.stdout + done.stderr
    assert shown[1].startswith("Overload(def ")
    assert shown[2:] == [
        "algorithms.frank_wolfe.private_lasso.PrivateLasso", "audits.claims.findings.Finding",
        "audits.minimax.bounds.bound.LowerBound",
    ]  # fmt: skip
    errors = [line for line in said if "error:" in line]
    assert [line.partition(":")[0] for line in errors] == ["13", "14"]
    assert '"Laplace" has incompatible type "str"' in errors[0]
    assert 'Module "mechanisms" has no attribute "Nothing"' in errors[1]


def test_the_wheel_carries_the_stubs(tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    (wheel,) = tmp_path.glob("*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    for package in PACKAGES:
        folder = package.replace(".", "/")
        assert {f"{folder}/__init__.py", f"{folder}/__init__.pyi"} <= held
        assert f"{package.partition('.')[0]}/py.typed" in held
