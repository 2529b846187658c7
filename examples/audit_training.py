"""Audits of DP-SGD on scikit-learn's digits, each of one run with thousands of canaries.

White box: a fair coin puts each gradient canary into the data.  Its score is what the released
noisy sums moved along its parameter, less what the images are expected to.  Black box: the
canaries are images with a wrong label, and a score is minus the loss at the end.

    python -m examples.audit_training
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from accountant import GaussianLoss, PoissonSampled, Tight
from audits import Canaries, Finding, OneRunFinding, audit
from examples.digits_sgd import (
    CLIP,
    DELTA,
    NOISE,
    PARAMETERS,
    RATE,
    RUNS,
    STEPS,
    Array,
    Run,
    claim,
    digits,
    gradients,
    start,
    train,
)  # fmt: skip

IMAGES = 797  # the other 1,000 digits are black-box canaries
STEP_RUNS = 4_000  # of one step that is repeated
NO_NOISE = Run("clipped after averaging, no noise", 0.0, clips_average=True)
BLACK_BOX = (Run(), RUNS[1], RUNS[3], NO_NOISE)


def scores(released: Array, points: Array, images: Array, labels: Any) -> Array:
    """Return the score of each canary: what was released along it, less what images give there."""
    honest = Run()
    known = [RATE * gradients(point, images, labels, honest)[0] for point in points[:-1]]
    found: Array = (released - np.array(known)).sum(axis=0)
    return found


def audit_run(run: Run, seed: int = 0) -> OneRunFinding:
    """Flip the coins, train once, and audit the scores."""
    images, labels = digits()
    canaries = Canaries.flip(PARAMETERS, rng=seed)
    inside = canaries.included(np.arange(PARAMETERS))
    released, points = train(run, images, labels, inside, seed + 1_000_000)
    return canaries.audit(scores(released, points, images, labels), claim(), DELTA)


def audit_black_box(run: Run, seed: int = 0) -> OneRunFinding:
    """Train with wrong labels on the canaries inside, and audit by the losses at the end."""
    images, labels = digits()
    rng = np.random.default_rng(seed)
    wrong = (labels[IMAGES:] + rng.integers(1, 10, labels.size - IMAGES)) % 10
    canaries = Canaries.flip(wrong.size, rng=seed)
    pixels = np.concatenate([images[:IMAGES], canaries.included(images[IMAGES:])])
    shown = np.concatenate([labels[:IMAGES], canaries.included(wrong)])
    none = np.empty(0, dtype=np.int64)
    end = train(run, pixels, shown, none, seed + 1_000_000)[1][-1]
    return canaries.audit(-gradients(end, images[IMAGES:], wrong, run)[1], claim(), DELTA)


def audit_step(run: Run, seed: int = 0) -> Finding:
    """Repeat one step with three or four images, and audit the length of what it releases."""
    images, labels = digits()
    weights = start(seed)

    def length(count: int, rng: np.random.Generator) -> float:
        drawn = np.flatnonzero(rng.random(count) < RATE)
        total = gradients(weights, images[drawn], labels[drawn], run)[0]
        total += rng.normal(scale=run.noise * CLIP, size=PARAMETERS)
        size = max(drawn.size, 1) if run.divides_by_batch else 2.0
        return float(np.linalg.norm(total)) / size

    step = PoissonSampled(GaussianLoss(1 / NOISE), RATE)
    return audit(length, (4, 3), step, runs=STEP_RUNS, delta=DELTA, rng=seed)


def least_noise_seen(count: int = PARAMETERS, seed: int = 0) -> float:
    """Return the largest share of the claimed noise at which a run is convicted, to 1/64.

    The runs are drawn: a canary is in Bin(STEPS, RATE) of the sums, and the noise is all there is.
    """
    canaries, rng = Canaries.flip(count, rng=seed), np.random.default_rng(seed + 1)
    moved = canaries.coins * rng.binomial(STEPS, RATE, count) * CLIP
    noise = rng.normal(scale=NOISE * CLIP * np.sqrt(STEPS), size=count)
    low, high = 0.0, 1.0
    while high - low > 1 / 64:
        share = (low + high) / 2
        found = canaries.audit(moved + share * noise, claim(), DELTA)
        low, high = (share, high) if found.outcome.name == "FALSIFIED" else (low, share)
    return low


def row(name: str, found: Finding | OneRunFinding, claimed: float) -> str:
    """Return one row of a table of the page."""
    seen = f"{found.right:,} of {found.guesses:,}" if isinstance(found, OneRunFinding) else "-"
    return f"| {name} | {claimed:.2f} | {found.epsilon_lower:.2f} | {seen} | {found.outcome.name} |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    claimed = Tight().epsilon(claim(), DELTA)
    print("gradient canaries, one run")
    for run in RUNS:
        print(row(run.name, audit_run(run, seed), claimed), flush=True)
    share = least_noise_seen(seed=seed)
    true = Tight().epsilon(claim(share), DELTA)
    print(f"least violation seen: {share:.2f} of the noise, epsilon {true:.2f}")
    print(f"provable had every guess been right: {audit_run(Run(), seed).provable:.2f}")
    print("wrong labels, one run")
    for run in BLACK_BOX:
        print(row(run.name, audit_black_box(run, seed), claimed), flush=True)
    print(f"one step, {STEP_RUNS:,} runs")
    once = Tight().epsilon(PoissonSampled(GaussianLoss(1 / NOISE), RATE), DELTA)
    for run in (Run(), RUNS[5]):
        print(row(run.name, audit_step(run, seed), once), flush=True)


if __name__ == "__main__":
    main()
