"""Processor time of planning in a first fit, of every estimator: mostly calibration of noise."""

import gc
import multiprocessing
import time

import numpy as np
import scipy.special
import scipy.stats

import algorithms
from algorithms.frank_wolfe.convex_sets import L2Ball
from benchmarks.measure import beside, options

SHAPES = ((1_000, 10), (20_000, 100), (1_000_000, 50))
BUDGETS = (0.1, 1.0, 8.0)
DELTA = 1e-6
AIM = 0.1
# functions, and fits of other estimators
NEITHER = {"best_partition_selection", "best_randomizer", "BoundsScaler", "PrivateSearchCV"}


def settings(name, features, epsilon):
    """Return the arguments of an estimator's plan: required ones, and those with a variant."""
    both = {"epsilon": epsilon, "delta": DELTA}
    three, two = {"classes": [0, 1, 2]}, {"classes": [0, 1]}
    signs = np.vstack([np.eye(features), -np.eye(features)])
    sparse, labels = {"sparsity": 3}, {"label_bound": 1.0}
    some = {
        "FrankWolfe": {"loss": "squared", "vertices_or_oracle": signs, **both},
        "GaussianFrankWolfe": {"loss": "squared", "convex_set": L2Ball(1.0), **both},
        "LabelIHT": {**both, **sparse, **labels},
        "LabelIHT, Gaussian": {**both, **sparse, **labels, "noise": "gaussian"},
        "LabelLasso": {**both, **labels, "noise_bound": 0.1},
        "LabelPrivateClassifier": {"epsilon": epsilon, **three},
        "LabelSGD": {"epsilon": epsilon, "classes": 3, "diameter": 10.0},
        "LocalHistogram": {"epsilon": epsilon, "k": features},
        "LocalIHT": {"epsilon": epsilon, **sparse, "noise_bound": 0.1},
        "LocalIHT, gradients": {"epsilon": epsilon, **sparse, "noise_bound": 0.1, "method": "gradients"},
        "LocalMean": {"epsilon": epsilon},
        "PrivateLasso": both,
        "PrivateLasso, Frank-Wolfe": {**both, "method": "frank-wolfe"},
        "PrivateLinearRegression": both,
        "PrivateLogisticLasso": {**both, **two},
        "PrivateLogisticRegression": {**both, **two},
        "PrivateLogisticRegression, batches": {**both, **two, "batch_rate": 0.05},
        "PrivateMean": both,
        "PrivateQuantiles": {"quantiles": [0.25, 0.5, 0.75], "lower": 0.0, "upper": 1.0, **both},
        "PrivateSelection": {"epsilon": epsilon},
        "PrivateTopK": {"categories": list(range(features)), "k": 3, **both},
        "SignVote": {**both, "select": 5},
        "SparseERM": {**both, **sparse, **two},
        "SparseERM, batches": {**both, **sparse, **two, "batch_rate": 0.05},
        "ThresholdedMean": {**both, "select": 5, "bound": 1.0},
        "ThresholdedRegression": {**both, "select": 5, "x_bound": 1.0, "y_bound": 1.0, "radius": 1.0},
    }  # fmt: skip
    return some if name is None else some[name]


def shape_of(name, shape):
    users, features = shape
    if name == "LocalHistogram":
        return (users,)
    if name == "PrivateQuantiles":
        return (users, 1)
    return (users, 100, features) if name == "ThresholdedRegression" else shape


def planned(name, shape, epsilon, seconds):
    """Put the processor seconds of a plan into a pipe; those of a process whose caches are cold."""
    kind = getattr(algorithms, name.split(",")[0])
    made = kind(**settings(name, shape[1], epsilon))
    start = time.process_time()
    made.plan(shape_of(name, shape))
    seconds.send(time.process_time() - start)


def first_seconds(name, shape, epsilon):
    ours, theirs = multiprocessing.Pipe(duplex=False)
    # forked: what is imported is not measured, and nothing was calibrated before
    forked = multiprocessing.get_context("fork")
    one = forked.Process(target=planned, args=(name, shape, epsilon, theirs))
    one.start()
    theirs.close()
    found = ours.recv()
    one.join()
    return found


def main():
    given = options(__doc__)
    names = list(settings(None, 2, 1.0))
    missing = set(algorithms.__all__) - NEITHER - {name.split(",")[0] for name in names}
    if missing:
        raise SystemExit(f"no settings for {sorted(missing)}")
    for name in names:  # imported here, before the processes that measure
        getattr(algorithms, name.split(",")[0])
    scipy.special.ndtri(scipy.stats.norm.cdf(0.0))
    gc.collect()  # else the first plan pays some 60 ms for what all the imports left to be looked at
    shapes, budgets = (SHAPES[:1], BUDGETS[1:2]) if given.quick else (SHAPES, BUDGETS)
    columns = [(shape, epsilon) for shape in shapes for epsilon in budgets]
    print("milliseconds of processor time for a plan, delta 1e-6; shapes",
          ", ".join(f"{n:,} x {p}" for n, p in shapes), "with epsilon",
          ", ".join(map(str, budgets)), "each")  # fmt: skip
    for name in names:
        found = [first_seconds(name, *column) for column in columns]
        print(f"  {name:36}", *(f"{1e3 * one:5.0f}" for one in found),
              f"  {beside(max(found), AIM, 'the aim of 100 ms')}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
