"""What is skipped is named at the end of a session."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CODE = """
import pytest

@pytest.mark.parametrize("k", range(3))
def test_needs_a_server(k):
    pytest.skip("no server: install it")

def test_nothing():
    pass
"""


@pytest.mark.parametrize(
    ("require", "status", "more"),
    [("chromium", 0, []), ("chromium Server", 1, []), ("chromium Server", 1, ["-n", "1"])],
)
def test_the_summary_says_what_was_not_tested_and_why(require, status, more, tmp_path):
    (tmp_path / "test_one.py").write_text(CODE)
    (tmp_path / "test_two.py").write_text("import pytest; pytest.importorskip('no_such_module')")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-c", "/dev/null"]
    done = subprocess.run(
        [*words, "--rootdir", str(tmp_path), str(tmp_path), *more], check=False,
        capture_output=True, text=True, cwd=ROOT, env=os.environ | {"REQUIRE": require},
    )  # fmt: skip
    assert done.returncode == status
    assert ("FAILED: REQUIRE names Server" in done.stdout) == bool(status)
    assert "not tested, and why" in done.stdout
    assert "   3  test_one.py: no server: install it" in done.stdout
    assert "   1  test_two.py: could not import 'no_such_module'" in done.stdout
