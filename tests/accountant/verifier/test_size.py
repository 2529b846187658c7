"""The checker is small enough to be read, and stands alone."""

import ast
import sys
from pathlib import Path

import pytest

import accountant

FOLDER = Path(accountant.__file__).parent / "verifier"
BESIDE = ("lattice.py", "mechanisms.py")
FILES = sorted(FOLDER.glob("*.py"))


def lines(path):
    return len(path.read_text().splitlines())


def test_the_checker_has_at_most_600_lines():
    assert sum(lines(path) for path in FILES if path.name not in BESIDE) <= 600


@pytest.mark.parametrize("name", BESIDE)
def test_each_file_beside_it_has_at_most_200_lines(name):
    assert lines(FOLDER / name) <= 200


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_it_imports_itself_flint_and_the_standard_library(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 1 or node.module.split(".")[0] in {
                "flint",
                *sys.stdlib_module_names,
            }
        elif isinstance(node, ast.Import):
            assert {one.name.split(".")[0] for one in node.names} <= sys.stdlib_module_names
