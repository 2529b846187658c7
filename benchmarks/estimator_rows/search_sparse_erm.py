"""Where the defaults of SparseERM come from: scores inside training parts, ten features.

Four fifths of each training part are fitted, the last fifth is scored; no test part is read.
"""

import argparse
from functools import partial

import numpy as np

from algorithms import SparseERM
from algorithms.base.noisy_gradient_rounds import affordable_rounds
from benchmarks.estimator_rows import DELTA, package_data, shared_files

TASKS = {
    "Adult, accuracy": ("logistic", shared_files.adult),
    "covtype, accuracy": ("logistic", shared_files.cover),
    "California housing, R2": ("squared", partial(package_data.parts, "California housing")),
}
CLIPS, NOISES = (0.25, 0.5, 1.0), (0.125, 0.5, 1.0, 2.0, 4.0)
STEPS = {"logistic": 7.2, "squared": 1.8}  # 1.8 over the smoothness
EPSILONS = (0.1, 1.0, 4.0)


def score(data, loss, clip, noise, epsilon, seeds):
    """The mean score on the last fifth of a training part."""
    x, y = data.train
    order = np.random.default_rng(0).permutation(len(y))
    fitted, scored = np.split(order, [4 * len(y) // 5])
    moved = 2 * clip * STEPS[loss] / len(fitted)
    rounds = affordable_rounds(moved, x.shape[1], epsilon, DELTA, noise)
    found = []
    for seed in range(seeds):
        made = SparseERM(
            loss=loss, epsilon=epsilon, delta=DELTA, sparsity=min(10, x.shape[1]), rounds=rounds,
            slope_bound=clip, random_state=seed, classes=np.unique(y),  # benches hold public data
        )  # fmt: skip
        found.append(made.fit(x[fitted], y[fitted]).score(x[scored], y[scored]))
    return float(np.mean(found))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="tiny data: the script works")
    parser.add_argument("--seeds", type=int, default=2, metavar="N", help="2 by default")
    parser.add_argument("--task", default="", metavar="WORD", help="only tasks with this word")
    given = parser.parse_args()
    for name, (loss, load) in TASKS.items():
        data = load(0, given.quick) if given.task in name else None
        if data is None:
            continue
        print(f"{name} at epsilon {', '.join(f'{one:g}' for one in EPSILONS)}")
        for clip in CLIPS:
            for noise in NOISES:
                row = [score(data, loss, clip, noise, one, given.seeds) for one in EPSILONS]
                said = "  ".join(f"{one:.4f}" for one in row)
                print(f"  clip {clip:<4} noise {noise:<5}  {said}", flush=True)


if __name__ == "__main__":
    main()
