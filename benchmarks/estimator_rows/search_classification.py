"""Where the defaults of PrivateLogisticRegression come from: accuracy inside training parts.

Four fifths of each training part are fitted, the last fifth is scored; no test part is read.
"""

import argparse

import numpy as np

from algorithms import PrivateLogisticRegression
from benchmarks.estimator_rows import DELTA, shared_files

TASKS = {"Adult": shared_files.adult, "covtype": shared_files.cover}
CANDIDATES = ({}, {"clip": 0.2}, {"clip": 0.8}, {"clip": 1.2}, {"rounds": 20}, {"step": 1.0})
EPSILONS = (0.1, 1.0, 4.0)


def accuracy(data, epsilon, seeds, **settings):
    """The mean accuracy on the last fifth of a training part."""
    x, y = data.train
    order = np.random.default_rng(0).permutation(len(y))
    fitted, scored = np.split(order, [4 * len(y) // 5])
    found = []
    for seed in range(seeds):
        made = PrivateLogisticRegression(
            epsilon=epsilon, delta=DELTA, classes=np.unique(y), random_state=seed, **settings
        )
        found.append(made.fit(x[fitted], y[fitted]).score(x[scored], y[scored]))
    return float(np.mean(found))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="tiny data: the script works")
    parser.add_argument("--seeds", type=int, default=2, metavar="N", help="2 by default")
    given = parser.parse_args()
    for name, load in TASKS.items():
        data = load(0, given.quick)
        if data is None:
            continue
        print(f"{name}, accuracy at epsilon {', '.join(f'{one:g}' for one in EPSILONS)}")
        for settings in CANDIDATES:
            row = [accuracy(data, one, given.seeds, **settings) for one in EPSILONS]
            said = ", ".join(f"{key} {value:g}" for key, value in settings.items()) or "defaults"
            print(f"  {said:12} " + "  ".join(f"{one:.4f}" for one in row), flush=True)


if __name__ == "__main__":
    main()
