"""`dp-attest-verify`: the checker as a distribution of its own, built here and run by itself.

docs/receipts.md says that it is two packages.
"""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import accountant.verifier
from accountant import Budget, make_receipt
from dp_attest import __version__
from mechanisms import Laplace
from tests.accountant.book.people import write_key

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "distributions" / "verify"
PROJECT = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)]
    subprocess.run(command, cwd=FOLDER, capture_output=True, check=True)
    [built] = target.glob("*.whl")
    return built


def test_it_is_two_packages(wheel):
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert PROJECT["version"] == __version__
    assert PROJECT["dependencies"] == whole["optional-dependencies"]["verify"]
    with zipfile.ZipFile(wheel) as files:
        [metadata] = [name for name in files.namelist() if name.endswith("METADATA")]
        needs = [
            line for line in files.read(metadata).decode().splitlines()
            if line.startswith("Requires-Dist")
        ]  # fmt: skip
    assert needs == ["Requires-Dist: python-flint<1,>=0.9"]
    # a link would lead out of the source distribution
    assert not (FOLDER / "LICENSE").is_symlink()
    assert (FOLDER / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_its_modules_are_those_of_the_checker(wheel):
    checker = Path(accountant.verifier.__file__).parent
    with zipfile.ZipFile(wheel) as files:
        built = {
            name.partition("/")[2]: files.read(name)
            for name in files.namelist()
            if name.startswith("dp_attest_verify/")
        }
    assert built == {path.name: path.read_bytes() for path in checker.glob("*.py")}


def test_it_runs_by_itself(wheel, tmp_path):
    key = write_key(tmp_path, "ada")
    document = make_receipt(key, plan=Laplace(2.0), budget=Budget(1.0), author="ada")
    (tmp_path / "receipt.json").write_bytes(document)
    # no other package of the project can be imported: the wheel alone is on the path
    code = f"import sys; sys.path[:0] = [{str(wheel)!r}]\n"
    code += "import importlib.util as u; assert u.find_spec('numpy') is None\n"
    code += "from dp_attest_verify.__main__ import main; sys.exit(main())"
    import flint

    packages = tmp_path / "packages"
    packages.mkdir()
    for path in Path(flint.__file__).parents[1].glob("*flint*"):
        (packages / path.name).symlink_to(path)
    done = subprocess.run(
        [sys.executable, "-S", "-c", code, "receipt.json"], cwd=tmp_path, capture_output=True,
        text=True, check=False, env={"PYTHONPATH": str(packages)},
    )  # fmt: skip
    assert done.stderr == ""
    assert done.returncode == 0
    assert done.stdout.startswith("SIGNED    by ada on ")
    assert "PROVED    epsilon is at least 0.5 and at most 0.5 at delta 0" in done.stdout
