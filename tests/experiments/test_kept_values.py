"""The quick forms print what they printed when docs/records was written.

Where code moves a value, the records, figures and pages in docs are stale: run `make numbers` for
the experiments that fail here, then `python -m tests.experiments.test_kept_values FOLDER` for the
kept values (FOLDER gets the quick figures).
"""

import contextlib
import io
import json
import sys
from pathlib import Path

import pytest

from experiments import audits_in_reverse
from experiments.__main__ import main
from experiments.catalogue import FIGURES
from experiments.datasets import SHARED
from tests.docs.blocks import NUMBER, Printed

KEPT = Path(__file__).parents[1] / "snapshots" / "experiments.json"
# those that repeat the code of another, and one that takes a minute; the first tests of this folder
# mark the same
SLOW = {
    "sparse-regression-3", "sparse-regression-5", "sparse-regression-6", "sign-votes-3",
    "sign-votes-5", "sign-votes-claims", "lower-bounds-labels", "lower-bounds-central",
    "sign-votes-signals", "frank-wolfe-width", "sparse-regression-whole", "intervals",
    "planning-gap", "lower-bounds-tracing", "book-attacks",
}  # fmt: skip
# exact ties, of steps without noise, are decided by the last bit, and so by the processor
TIES = {"lower-bounds-tracing"}
KEPT_HERE = [name for name, figure in FIGURES.items() if not figure.page]  # others keep a page
NAMES = [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in KEPT_HERE]


def seeds_of(name):
    """As the other tests ask for, so that one run serves all."""
    return 2 if FIGURES[name].module == "lower_bounds" else 1


def values_in(said):
    """The numbers of all lines but those of Duchi's vector, whose basis is the processor's."""
    lines = [line for line in said.splitlines() if "duchi" not in line.lower()]
    return [float(f"{Printed.of(one[1]).value:.3g}") for one in NUMBER.finditer("\n".join(lines))]


@pytest.mark.parametrize("name", NAMES)
def test_the_quick_form_prints_what_it_printed(run, name):
    kept = json.loads(KEPT.read_text())[name]
    folder, said, _ = run(name, seeds_of(name), whole=True)
    found = values_in(said + "".join(path.read_text() for path in folder.glob("*.csv")))
    near = {"rel": 0.1, "abs": 0.25} if name in TIES else {"rel": 0.015, "abs": 1e-12}
    assert found == pytest.approx(kept, **near)


def kept_of_tracing():
    """The kept numbers of the first fit's row, and those of each row of the second table."""
    kept = json.loads(KEPT.read_text())["lower-bounds-tracing"]
    names = list(audits_in_reverse.traced_cases())
    rows = kept[-6 * len(names) :]
    return kept[6:18], {name: rows[6 * at : 6 * at + 6] for at, name in enumerate(names)}


@pytest.mark.parametrize("name", ["`GaussianFrankWolfe` on the l2 ball", "`ThresholdedMean`"])
def test_a_row_of_the_tracing_table_is_as_kept(name):
    found = values_in(audits_in_reverse.traced_row(name, 2, 2, 0).replace(name, ""))
    assert found == pytest.approx(kept_of_tracing()[1][name], rel=0.1, abs=0.25)


def test_a_row_of_one_traced_fit_is_as_kept():
    found = values_in(audits_in_reverse.one_fit(0, quick=True, seed=0))
    assert found == pytest.approx(kept_of_tracing()[0], rel=0.1, abs=0.25)


def test_every_experiment_is_kept():
    assert set(json.loads(KEPT.read_text())) == set(KEPT_HERE)


def write(folder):
    """Run every quick form, and keep what it prints."""
    kept = {}
    for name in KEPT_HERE:
        assert all(
            (SHARED / file).is_file()
            for file in (*FIGURES[name].data, *FIGURES[name].optional_data)
        )
        said, out = io.StringIO(), Path(folder) / name
        with contextlib.redirect_stdout(said):
            assert main([name, "--quick", "--seeds", str(seeds_of(name)), "--out", str(out)]) == 0
        drawn = "".join(path.read_text() for path in out.glob("*.csv"))
        kept[name] = values_in(said.getvalue() + drawn)
    lines = [f"{json.dumps(name)}: {json.dumps(values)}" for name, values in kept.items()]
    KEPT.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    write(sys.argv[1])
