"""Each figure's quick form is run once, and shared by the tests of all workers.

Figures that repeat the code of another are marked slow, so that the others take seconds.
Pictures are two thirds of that: `make test` draws those of `DRAWN`, `make thorough` all.
"""

import contextlib
import csv
import fcntl
import io
import json
import math
import os
import warnings
from functools import cache

import pytest

from experiments import drawing
from experiments.__main__ import main
from experiments.catalogue import FIGURES
from experiments.datasets import SHARED

DRAWN = {"frank-wolfe-risk"}
STAND_INS = {"png": b"\x89PNG, in place of a picture", "svg": b"<?xml, in place of a picture"}


@pytest.fixture(scope="session")
def run(tmp_path_factory, pytestconfig):
    """(folder, what it printed, what it said on stderr) of a quick run."""
    draws_all = pytestconfig.option.markexpr != "not slow"

    def of(name, seeds=1, *, whole=False):
        figure = FIGURES[name]
        needed = (*figure.data, *(figure.optional_data if whole else ()))
        if not all((SHARED / file).is_file() for file in needed):
            pytest.skip(f"no data for {name}")
        return made(name, seeds)

    @cache
    def made(name, seeds):
        folder = shared_folder(tmp_path_factory) / f"{name}-{seeds}"
        folder.mkdir(exist_ok=True)
        done = folder / "done.json"
        with open(folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                done.write_text(json.dumps(drawn(name, seeds, folder)))
        return folder, *json.loads(done.read_text())

    def drawn(name, seeds, folder):
        said, heard = io.StringIO(), io.StringIO()
        with (
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(heard),
            warnings.catch_warnings(),
            pytest.MonkeyPatch.context() as patch,
        ):
            warnings.simplefilter("error")
            for kind, picture in STAND_INS.items():
                if not (draws_all or name in DRAWN):
                    patch.setattr(drawing, kind, lambda chart, title, picture=picture: picture)
            status = main([name, "--quick", "--seeds", str(seeds), "--out", str(folder)])
        assert status == 0, heard.getvalue()
        return said.getvalue(), heard.getvalue()

    return of


def shared_folder(tmp_path_factory):
    """A folder of this session, the same for all workers of pytest-xdist."""
    own = tmp_path_factory.getbasetemp()
    shared = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "experiments"
    shared.mkdir(exist_ok=True)
    return shared


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
