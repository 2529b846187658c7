"""Programs of the how-to as users have them: from an empty folder, with the package installed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "audit-a-training-run.md"
PROGRAM = re.compile(
    r"<!-- runs: [^>]*-->\n```python\n(.*?)```\n<!-- end of program -->", re.DOTALL
)
OPACUS, JAX_PRIVACY = PROGRAM.findall(PAGE.read_text(encoding="utf-8"))
HALF = """
add_noise = optimizer.add_noise
def add_half():
    optimizer.noise_multiplier = 0.55
    add_noise()
    optimizer.noise_multiplier = 1.1
optimizer.add_noise = add_half
"""


def printed(program, folder):
    """What the program prints; outside of the repository `examples` is Opacus's own package."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow  # trains a network
@pytest.mark.parametrize("fault", ["", HALF], ids=["honest", "half the noise"])
def test_the_program_for_opacus(fault, tmp_path):
    pytest.importorskip("opacus", reason="Opacus is not installed: make peers")
    program = OPACUS.replace("opacus_canaries(engine, 700)", "opacus_canaries(engine, 700, rng=0)")
    power, audited, noise = printed(
        program.replace("print(canaries.power", fault + "print(canaries.power"), tmp_path
    ).splitlines()
    assert power.startswith("<CanaryPower: 700 canaries, 100 steps: half the noise is falsified in")
    outcome = "FALSIFIED" if fault else "SURVIVED"
    assert audited.startswith(f"<OneRunFinding: {outcome}, epsilon >= ")
    assert f"noise multiplier {0.55 if fault else 1.1}"[:20] in noise


@pytest.mark.slow  # trains a network
@pytest.mark.parametrize("share", [1.0, 0.5])
def test_the_program_for_jax_privacy(share, tmp_path):
    pytest.importorskip("jax_privacy", reason="jax-privacy is not installed: make peers")
    program = JAX_PRIVACY.replace("noise_multiplier=1.1)", "noise_multiplier=1.1, rng=0)")
    program = program.replace("stddev=1.1", f"stddev={1.1 * share}")
    audited, _ = printed(program, tmp_path).splitlines()
    outcome = "SURVIVED" if share == 1 else "FALSIFIED"
    assert audited.startswith(f"<OneRunFinding: {outcome}, epsilon >= ")
