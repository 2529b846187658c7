"""What is skipped is named at the end of a session."""

import os
import re
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


SKIP = re.compile(
    r'pytest\.(?:importor)?skip\(\s*f?"([^"]+)"(?:, reason="([^"]+)")?'
    r'|skipif\((?:[^()]|\([^()]*\))*?reason="([^"]+)"'
)
# what CI may be without: data, history, other libraries that no requirement names, some machines
MAY_BE_MISSING = (
    "data", "descriptors", "diffprivlib", "distributed", "dp_accounting", "event", "fork",
    "history", "matplotlib", "MNIST", "covtype", "rcv1", "mounts", "neither listed nor integrated",
    "no plan of this kind", "no road to a proof", "opendp", "pandas", "processor", "Rscript",
    "ssh-keygen", "torch",
)  # fmt: skip


def reasons_for_skips():
    """Every reason that a test gives, or the module that it needs, by file."""
    others = {"test_skips.py", "test_pytest_plugin.py"}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if "peers" not in path.parts and path.name not in others:
            for module, reason, other in SKIP.findall(path.read_text(encoding="utf-8")):
                yield f"{path.relative_to(ROOT)}: {other or reason or module}"


def test_ci_demands_what_it_tests_or_says_what_may_be_missing():
    program = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    demanded = re.search(r'export REQUIRE="([^"]+)"', program)[1].split()
    reasons = list(reasons_for_skips())
    words = [word.lower() for word in (*demanded, *MAY_BE_MISSING)]
    unknown = [
        one for one in reasons
        if not any(word in one.partition(": ")[2].lower() for word in words)
    ]  # fmt: skip
    assert unknown == []
    unused = [word for word in demanded if not any(word.lower() in one.lower() for one in reasons)]
    assert unused == []
    said = " ".join(reasons).lower()
    assert {"psycopg", "cryptography"} <= set(demanded)
    assert "lets no process trace another" in said
