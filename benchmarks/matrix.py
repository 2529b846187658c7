"""No unsafe answer: every loss x direction x count x delta, against an independent road.

The road is the two-sided grid of `PLD` (dp-accounting's convolution of dots above and below), and
closed forms where a composition has one.  An answer is unsafe if it is below the grid's lower end;
Tight's lower end is wrong if it is above the grid's upper end.  Prints what was asked and found.
"""

import math
import sys
import time

from accountant import (
    PLD,
    RDP,
    ZCDP,
    Advanced,
    ApproxLoss,
    Basic,
    BoundedRangeLoss,
    GaussianLoss,
    Grouped,
    LaplaceLoss,
    PairLoss,
    Parallel,
    PoissonSampled,
    PureLoss,
    Repeat,
    SampledWithoutReplacement,
    Shuffled,
    Tight,
    UnsupportedPlan,
    ZCDPLoss,
)

LOPSIDED = PairLoss((0.3, 0.6, 0.1), (0.4, 0.45, 0.15))
LOSSES = {
    "PureLoss": PureLoss(0.02), "ApproxLoss": ApproxLoss(0.02, 1e-17),
    "GaussianLoss": GaussianLoss(0.02), "LaplaceLoss": LaplaceLoss(0.02),
    "BoundedRangeLoss": BoundedRangeLoss(0.02), "ZCDPLoss": ZCDPLoss(2e-4),
    "PairLoss": PairLoss((0.51, 0.48, 0.01), (0.50, 0.485, 0.015)), "lopsided": LOPSIDED,
    "sampled Gaussian": PoissonSampled(GaussianLoss(1.0), 0.01),
    "sampled Laplace": PoissonSampled(LaplaceLoss(0.5), 0.02),
    "sampled pair": PoissonSampled(LOPSIDED, 0.05),
    "without replacement": SampledWithoutReplacement(LaplaceLoss(0.5), 2, 100),
    "shuffled": Shuffled(PureLoss(0.5), 1000),
    "grouped": Grouped(PoissonSampled(PureLoss(0.2), 0.05), 2),
    "parallel": Parallel([LaplaceLoss(0.02), GaussianLoss(0.02)]),
}  # fmt: skip
DELTAS = (1e-3, 1e-6, 1e-9, 1e-12)
COUNTS = (1, 2, 100, 10_000)


def main():
    start, asked, refused, unsafe = time.perf_counter(), 0, 0, []
    for name, loss in LOSSES.items():
        for count in COUNTS:
            for way in {Repeat(loss, count), Repeat(loss, count).reversed}:
                for delta in DELTAS:
                    try:
                        lower, upper = PLD().bracket(way, delta)
                    except UnsupportedPlan:
                        refused += 1
                        continue
                    found = Tight().certify(way, delta)
                    answers = {one.name: one.epsilon(way, delta)
                               for one in (Basic(), Advanced(), ZCDP(), RDP())}  # fmt: skip
                    answers["Tight"] = found.upper
                    asked += len(answers) + 1
                    envelope = lower == 0.0
                    unsafe += [(name, count, delta, who, value, lower)
                               for who, value in answers.items()
                               if value < lower * (1 - 1e-9) and not envelope]  # fmt: skip
                    if found.lower > upper * (1 + 1e-9) and math.isfinite(upper):
                        unsafe.append((name, count, delta, "Tight's lower end", found.lower, upper))
            if sys.stderr.isatty():
                print(f"{name} x {count}: {asked} answers", end="\r", file=sys.stderr)
    took = time.perf_counter() - start
    print(f"{asked} answers of five accountants, {len(LOSSES)} losses, both directions, counts "
          f"{COUNTS}, delta {DELTAS}: {len(unsafe)} unsafe ({refused} plans too fine for the grid), "
          f"{took:.0f} s")  # fmt: skip
    for row in unsafe:
        print("UNSAFE", *row)
    return 1 if unsafe else 0


if __name__ == "__main__":
    sys.exit(main())
