"""scikit-learn's checks of the array API, in a process where SciPy dispatches on arrays."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def test_estimators_pass_the_checks_of_the_array_api():
    checked = [path for path in sorted(HERE.rglob("test_*.py"))
               if "\n@passes_scikit_learn_checks(" in path.read_text("utf-8")]  # fmt: skip
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
               "-k", "scikit_learn", *map(str, checked)]  # fmt: skip
    shown = subprocess.run(
        command, capture_output=True, text=True, cwd=HERE.parents[1],
        env=os.environ | {"SCIPY_ARRAY_API": "1"}, check=False,
    ).stdout  # fmt: skip
    assert len(checked) == 13
    assert shown.splitlines()[-1].startswith("43 passed"), shown
