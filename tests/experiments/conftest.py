"""Each figure's quick form is run once, in this process, and shared by the tests.

Figures that repeat the code of another are marked slow, so that the others take seconds.
"""

import contextlib
import csv
import io
import math
import warnings
from functools import cache
from pathlib import Path

import pytest

from experiments.__main__ import main
from experiments.catalogue import FIGURES
from experiments.datasets import SHARED


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """(folder, what it printed, what it said on stderr) of a quick run."""

    def of(name, seeds=1, *, whole=False):
        figure = FIGURES[name]
        needed = (*figure.data, *(figure.optional_data if whole else ()))
        if not all((SHARED / file).is_file() for file in needed):
            pytest.skip(f"no data for {name}")
        return made(name, seeds)

    @cache
    def made(name, seeds):
        folder, said, heard = tmp_path_factory.mktemp(name), io.StringIO(), io.StringIO()
        with (
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(heard),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("error")
            status = main([name, "--quick", "--seeds", str(seeds), "--out", str(folder)])
        assert status == 0, heard.getvalue()
        return Path(folder), said.getvalue(), heard.getvalue()

    return of


@pytest.fixture(scope="session")
def rows(run):
    """The rows of a figure's CSV."""

    @cache
    def of(name, seeds=1):
        with (run(name, seeds)[0] / f"{FIGURES[name].file}.csv").open(newline="") as file:
            return list(csv.DictReader(file))

    return of


@pytest.fixture(scope="session")
def curves(rows):
    """Means by (panel, curve) and x."""

    @cache
    def of(name):
        found = {}
        for row in rows(name):
            assert math.isfinite(float(row["mean"]))
            means = found.setdefault((row["panel"], row["curve"]), {})
            means[float(row["x"])] = float(row["mean"])
        return found

    return of
