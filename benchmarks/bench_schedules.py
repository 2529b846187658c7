"""Schedules of sampled Gaussians, one step each: time and certified width for each kind.

A plan that takes more than a minute of processor time is stopped, and its row says so.  Beside it PLD, whose time grows with the number of different steps, on the first 40 and 80 of them.
"""

import argparse
import math
import signal
import time

import numpy as np

from accountant import PLD, GaussianLoss, PoissonSampled, Sequential, Tight

DELTA = 1e-6
MOST_SECONDS = 60  # of processor time, for one plan
RARE = [  # steps, ends of the noise, about the rate, and delta
    (99, (0.3, 0.5), 1e-5, 3e-12), (300, (0.5, 2.0), 1e-4, 1e-12), (1000, (0.3, 1.0), 1e-4, 1e-10),
    (200, (0.1, 0.3), 1e-4, 1e-8), (10_000, (0.4, 4.0), 1e-5, 1e-9),
]  # fmt: skip
MODERATE = [  # the same where hits are neither rare nor many
    (100, (1.8, 6.0), 8e-5, 5e-11), (1000, (0.46, 2.5), 8e-5, 1e-8), (1000, (1.0, 8.0), 4e-4, 2e-6),
    (1000, (1.4, 10.0), 0.01, 8e-6), (3000, (0.55, 1.35), 2e-6, 1e-5),
    (10_000, (0.5, 1.55), 1e-6, 3e-6), (10_000, (0.7, 4.0), 1e-5, 1e-7),
    (10_000, (2.5, 10.0), 5e-6, 1e-12), (10_000, (4.6, 9.5), 1e-4, 2e-12),
    (100_000, (0.7, 4.0), 1e-5, 1e-9), (100_000, (0.5, 3.0), 1e-4, 1e-8),
]  # fmt: skip


def schedules(steps):
    """Noise and rate of each step, for each kind."""
    rng, part = np.random.default_rng(0), np.arange(steps) / (steps - 1)
    half = part < 0.5
    return {
        "noise falls by a factor": (4 * 0.2**part, np.full(steps, 0.01)),
        "noise falls by a difference": (3 - 2 * part, np.full(steps, 0.005)),
        "rate rises": (np.ones(steps), 1e-4 * 300**part),
        "both random": (rng.uniform(0.5, 5, steps), 10 ** rng.uniform(-4, math.log10(0.05), steps)),
        "small rates": (rng.uniform(0.7, 2, steps), 10 ** rng.uniform(-4, -3, steps)),
        "twelve values": (rng.choice([0.7, 1.0, 1.5, 2.0], steps),
                          rng.choice([0.001, 0.01, 0.02], steps)),
        "two phases": (np.where(half, 2 - part, 1 - 0.2 * part), np.where(half, 0.01, 0.003)),
    }  # fmt: skip


def plan(noise, rates):
    steps = zip(noise.tolist(), rates.tolist(), strict=True)
    return Sequential(PoissonSampled(GaussianLoss(1 / scale), rate) for scale, rate in steps)


def timed(function, *given):
    start = time.process_time()
    return function(*given), time.process_time() - start


def stop(*_):
    raise TimeoutError


def row(kind, steps, noise, rates, delta):
    """The row of a plan in the table: its time, its epsilon, and the width of the interval."""
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        found, seconds = timed(Tight().certify, plan(noise, rates), delta)
    except TimeoutError:
        return f"| {kind} | {steps:,} | more than {MOST_SECONDS} s | not found | |"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    width = found.width / found.upper
    return f"| {kind} | {steps:,} | {seconds:.2f} s | {found.upper:.9f} | {width:.1e} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two kinds of 100 steps only")
    quick = parser.parse_args().quick
    signal.signal(signal.SIGPROF, stop)
    sizes = (100,) if quick else (1000, 10_000, 100_000)
    kinds, beside = list(schedules(2)), "both random"
    if quick:
        kinds, beside = kinds[-2:], "twelve values"
    print("| schedule | steps | processor time | epsilon | relative width |")
    print("| --- | --- | --- | --- | --- |")
    for steps in sizes:
        for name in kinds:
            print(row(name, steps, *schedules(steps)[name], DELTA), flush=True)
    print("| rates near 1e-5, delta a 200th of their sum | | | | |")
    for steps in (5,) if quick else (2, 5, 20, 50, 99):
        rng = np.random.default_rng(steps)
        noise, rates = rng.uniform(0.7, 4, steps), 10 ** rng.uniform(-5.3, -4.7, steps)
        print(row("both random", steps, noise, rates, float(rates.sum()) / 200), flush=True)
    print("| great losses are rare: noise, rates and delta | | | | |")
    settings = RARE[:2] + MODERATE[:1] if quick else RARE + MODERATE
    for steps, ends, rate, delta in settings:
        if (steps, ends, rate, delta) == MODERATE[0]:
            print("| hits are neither rare nor many | | | | |")
        rng = np.random.default_rng(2)
        noise, rates = rng.uniform(*ends, steps), rate * 10 ** rng.uniform(-0.3, 0.3, steps)
        kind = f"{ends[0]} to {ends[1]}, {rate:g}, {delta:g}"
        print(row(kind, steps, noise, rates, delta), flush=True)
    for steps in (5, 10) if quick else (40, 80):
        few = plan(*(column[:steps] for column in schedules(1000)[beside]))
        (tight, own), (grid, peer) = (timed(one().epsilon, few, DELTA) for one in (Tight, PLD))
        ratio = f"{peer / own:.1f} x Tight's {own:.2f} s"
        print(f"PLD, {steps} steps, {beside}: {ratio}, {grid - tight:+.1e} of epsilon")


if __name__ == "__main__":
    main()
