"""The checker stands alone."""

import ast
import sys
from pathlib import Path

import pytest

import accountant

FOLDER = Path(accountant.__file__).parent / "verifier"
FILES = sorted(FOLDER.glob("*.py"))


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
