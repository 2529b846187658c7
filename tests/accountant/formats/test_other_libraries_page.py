"""The table of docs/other-libraries.md, from the transcripts of the libraries."""

import pytest

from accountant import (
    GaussianLoss,
    ShuffledEpoch,
    Tight,
    from_flower,
    from_jax_privacy,
    from_opacus,
)
from accountant.formats.added_samples import added_samples
from accountant.formats.loader_facts import loader_facts
from accountant.formatting import format_lower, format_upper
from accountant.plans.adjacency import Adjacency
from accountant.training.run import TrainingRun
from accountant.training.schemes import Scheme, certified, record_scheme
from tests.accountant.formats.transcripts_of import as_object, transcript
from tests.docs.blocks import DOCS

DELTA = 1e-5

REMOVED = record_scheme(
    TrainingRun(1000, 64, 2, loader="shuffled"), 1.0, "shuffled", Adjacency.ADD_REMOVE,
    microbatching=False,
)  # fmt: skip


def interval(plan):
    scheme = plan if isinstance(plan, Scheme) else Scheme((plan,), (plan,))
    lower, upper = certified(scheme, lambda one: Tight(1e-5).bracket(one, DELTA))
    ends = format_lower(lower, 4), format_upper(upper, 4)
    return " to ".join(ends) if upper - lower > 0.001 else ends[1]


SLOW_ROWS = {2, 7}  # two shuffled epochs, and what is drawn in fit, take a second or more each


@pytest.mark.parametrize(
    "row",
    [pytest.param(k, marks=pytest.mark.slow) if k in SLOW_ROWS else k for k in range(8)],
)
def test_the_table_is_true(row):
    opacus, flower = transcript("opacus")["runs"], transcript("flower")["runs"]
    jax = transcript("jax_privacy")["configs"]
    poisson, shuffled = opacus["poisson"], opacus["shuffled"]
    added = opacus["four Poisson samples added"]
    rate = loader_facts(as_object(added["loader"])).rate
    batches = loader_facts(as_object(shuffled["loader"])).batches
    without = flower["without-replacement"]
    unclaimed = {**jax["batches added"], "epsilon": None}
    in_fit = {**jax["batches added, drawn in fit"], "epsilon": None}
    rows = [
        (poisson["epsilon"]["prv"], from_opacus(poisson["history"], as_object(poisson["loader"]))),
        (shuffled["epsilon"]["prv"], REMOVED),
        (shuffled["epsilon"]["prv"], 2 * ShuffledEpoch(GaussianLoss(1.0), batches)),
        (added["epsilon"]["prv"], added["history"][0][2] * added_samples(1.0, rate, 4)),
        (flower["poisson"]["epsilon"], from_flower(flower["poisson"]["state"])),
        (without["epsilon"], from_flower(without["state"])),
        (f"accepted as {jax['batches added']['epsilon']}", from_jax_privacy(unclaimed, "poisson")),
        (f"accepted as {jax['batches added, drawn in fit']['epsilon']}", from_jax_privacy(in_fit)),
    ]
    page = (DOCS / "other-libraries.md").read_text(encoding="utf-8")
    block = page.partition("<!-- tested: ")[2].partition("<!-- end -->")[0]
    shown = [line.strip("| ").split(" | ")[1:] for line in block.splitlines()[3:]]
    assert len(shown) == len(rows)
    said, plan = rows[row]
    assert shown[row] == [said if isinstance(said, str) else f"{said:.3f}", interval(plan)]


def test_the_cost_of_batches_that_are_not_added_is_true():
    unclaimed = {**transcript("jax_privacy")["configs"]["batches added"], "epsilon": None}
    alone = from_jax_privacy({**unclaimed, "gradient_accumulation_steps": 1}, "poisson")
    page = (DOCS / "other-libraries.md").read_text(encoding="utf-8")
    assert f"costs {format_upper(Tight().epsilon(alone, DELTA), 4)[1:]}." in page
