"""The accountants beside dp-accounting on the same plans, in the same process."""

import time

import numpy as np
from dp_accounting import dp_event
from dp_accounting.pld import pld_privacy_accountant

from accountant import PLD, Sequential, Tight
from mechanisms import Gaussian, Laplace

SCALES = np.linspace(50, 150, 50)
REPEATS = 5


def timed(work):
    times, answer = [], None
    for _ in range(REPEATS):
        start = time.perf_counter()
        answer = work()
        times.append(time.perf_counter() - start)
    return float(np.median(times)), answer


def peer(events):
    accountant = pld_privacy_accountant.PLDAccountant()
    for event, count in events:
        accountant.compose(event, count)
    return accountant.get_epsilon(1e-6)


def main():
    mixed = [10 * Laplace(s) for s in SCALES] + [10 * Gaussian(s) for s in SCALES]
    mixed_events = [(dp_event.LaplaceDpEvent(s), 10) for s in SCALES]
    mixed_events += [(dp_event.GaussianDpEvent(s), 10) for s in SCALES]
    rows = {
        "1000 Gaussians": (1000 * Gaussian(100.0), [(dp_event.GaussianDpEvent(100.0), 1000)],
                           1.3675714750843),
        "64 Laplaces": (64 * Laplace(20.0), [(dp_event.LaplaceDpEvent(20.0), 64)],
                        1.7003609253711630),
        "50 + 50 distinct, ten each": (Sequential(mixed), mixed_events, 1.60676542832806),
    }  # fmt: skip
    print(f"epsilon at delta 1e-6, median of {REPEATS}; error against 13 known digits")
    for name, (plan, events, truth) in rows.items():
        theirs, their_epsilon = timed(lambda events=events: peer(events))
        for ours in (PLD(), Tight()):
            took, epsilon = timed(lambda ours=ours, plan=plan: ours.epsilon(plan, 1e-6))
            print(f"  {name:27} {ours.name:5} {took * 1e3:7.1f} ms, error {epsilon / truth - 1:+.1e}; "
                  f"dp-accounting {theirs * 1e3:7.1f} ms, {their_epsilon / truth - 1:+.1e}; "
                  f"{took / theirs:.2f} x its time")  # fmt: skip


if __name__ == "__main__":
    main()
