"""Training on digits from end to end: verdicts of honest and faulty runs, as docs show them."""

from pathlib import Path

import numpy as np
import pytest

from accountant import GaussianLoss, PoissonSampled, Tight
from audits import Outcome
from examples import audit_training as example
from examples.digits_sgd import (
    CLIP,
    DELTA,
    NOISE,
    PARAMETERS,
    RATE,
    RUNS,
    Run,
    claim,
    digits,
    gradients,
    start,
    train,
)  # fmt: skip

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "audit-a-training-run.md"
FALL = {"half the noise", "one layer is not clipped", "clipped after averaging"}


def page():
    return PAGE.read_text(encoding="utf-8")


# one that survives and one that falls; each takes a second
SHOWN = {"honest", "one layer is not clipped"}


@pytest.mark.parametrize(
    "run",
    [pytest.param(run, marks=[pytest.mark.slow] * (run.name not in SHOWN)) for run in RUNS],
    ids=lambda run: run.name,
)
def test_each_run_gets_the_verdict_on_the_page(run):
    claimed = Tight().epsilon(claim(), DELTA)
    found = example.audit_run(run)
    assert (found.outcome is Outcome.FALSIFIED) == (run.name in FALL)
    assert example.row(run.name, found, claimed) in page()
    assert f"ε had every guess been right | {found.provable:.2f} |" in page()


def test_clipped_gradients_are_those_of_single_images():
    images, labels = (one[:20] for one in digits())
    weights, step = start(0), 1e-6
    each = [gradients(weights, images[i : i + 1], labels[i : i + 1], Run())[0] for i in range(20)]
    assert max(map(np.linalg.norm, each)) <= CLIP * (1 + 1e-12)
    np.testing.assert_allclose(
        np.sum(each, axis=0), gradients(weights, images, labels, Run())[0], atol=1e-12
    )
    plain, losses = gradients(weights, images, labels, Run(clips_average=True))
    for at in (0, 2100, PARAMETERS - 1):
        moved = weights + step * (np.arange(PARAMETERS) == at)
        after = gradients(moved, images, labels, Run())[1]
        assert (after - losses).sum() / step == pytest.approx(plain[at], rel=1e-3, abs=1e-5)


def test_the_training_learns_digits():
    images, labels = digits()
    points = train(Run(), images, labels, np.empty(0, dtype=np.int64), 0)[1]
    before, after = (gradients(point, images, labels, Run())[1] for point in points[[0, -1]])
    assert after.mean() < before.mean() / 3


@pytest.mark.slow
def test_what_could_be_seen_is_on_the_page():
    share = example.least_noise_seen()
    assert f"all else honest | {share:.2f} |" in page()
    assert f"with that noise | {Tight().epsilon(claim(share), DELTA):.2f} |" in page()


@pytest.mark.slow
def test_a_repeated_step_falls():
    claimed = Tight().epsilon(PoissonSampled(GaussianLoss(1 / NOISE), RATE), DELTA)
    for run in (Run(), RUNS[-1]):
        row = example.row(run.name, example.audit_step(run), claimed).replace(" | - | ", " | ")
        assert row in page()


@pytest.mark.slow
def test_wrong_labels_see_little():
    claimed = Tight().epsilon(claim(), DELTA)
    for run in example.BLACK_BOX:
        assert example.row(run.name, example.audit_black_box(run), claimed) in page()


@pytest.mark.slow
def test_verdicts_do_not_hang_on_the_seed():
    for seed in range(1, 21):
        for run in RUNS:
            found = example.audit_run(run, seed)
            assert (found.outcome is Outcome.FALSIFIED) == (run.name in FALL), (run.name, seed)
