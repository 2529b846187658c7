"""The charts of lower bounds, tiny: files, and what must hold of every curve."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHARTS = ("bounds_records", "bounds_labels", "bounds_central", "bounds_everyday")


@pytest.mark.slow
def test_risks_lie_above_their_bounds(tmp_path):
    command = [sys.executable, "experiments/lower_bounds.py", "--quick", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    for name in CHARTS:
        assert (tmp_path / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
        with open(tmp_path / f"{name}.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        means = {(row["panel"], row["curve"], row["x"]): float(row["mean"]) for row in rows}
        errors = {(row["panel"], row["curve"], row["x"]): float(row["standard_error"])
                  for row in rows}  # fmt: skip
        bounded = 0
        for (panel, curve, x), mean in means.items():
            bound = means[panel, "lower bound", x]
            if "no noise" in curve or "rate" in curve or curve == "lower bound":
                continue
            if curve == "as published":
                assert mean <= bound * (1 + 1e-9), (panel, x)
            elif curve.endswith("theorem"):
                assert mean > bound, (panel, curve, x)
            else:
                bounded += 1
                # two runs: their error says little, so a wide berth
                assert mean + 20 * errors[panel, curve, x] >= bound, (panel, curve, x)
        assert bounded > 0
        assert f"{name}: PNG and CSV" in done.stdout
    assert "over the bound" in done.stdout
