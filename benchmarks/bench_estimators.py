"""Our estimators with their defaults beside textbook alternatives, at the same guarantee.

Data sets come with packages, or from families of simulators; no file is needed.  Each row is the
mean score of five seeds on test data, and a seed draws the split, the simulated records and the
noise.  A ratio is of errors, the distance from the perfect score: ours over the least of the
alternatives and of the constant; below 1 ours is better.  The table at the end is that of the docs.
"""

import argparse
from time import process_time

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.estimator_rows import Kind, classification, private_labels, regression
from benchmarks.measure import beside
from mechanisms.base.marked_table import markdown_table

TASKS = (*regression.TASKS, *classification.TASKS, *private_labels.TASKS)
WORTHLESS = -1000  # a score that needs no digits
HEAD = ("task", "method", "score at each epsilon")
SUMMARY = ("data and measure", "ours", "the best alternative", "the constant", "without privacy")


def scores_of(task, seeds, quick):
    """Scores by method and epsilon, one for each seed; methods that cannot run have none.

    Data of a seed are loaded once for all methods, and a method without privacy, which needs no
    seed, is fitted once where all seeds have the same data.
    """
    epsilons, before = task.epsilons[-2:] if quick else task.epsilons, None
    table = {method: {one: [] for one in epsilons_of(method, epsilons)} for method in task.methods}
    for seed in seeds:
        data = task.load(seed, quick)
        for method, row in table.items():
            known = method.kind is Kind.FREE and data is before
            for epsilon, found in list(row.items()):
                score = found[-1] if known else method.score(data, epsilon, seed)
                if score is None:
                    row.clear()
                    break
                found.append(score)
        before = data
    return table


def epsilons_of(method, epsilons):
    """The last one alone where there is no privacy."""
    return epsilons[-1:] if method.kind is Kind.FREE else epsilons


def measured(task, seeds, quick):
    """The mean and its standard error of every method: a dictionary by epsilon."""
    table = {}
    for method, row in scores_of(task, seeds, quick).items():
        error = np.sqrt(max(1, len(seeds) - 1))
        table[method] = {epsilon: (float(np.mean(found)), float(np.std(found) / error))
                         for epsilon, found in row.items()}  # fmt: skip
        show(task, method, table[method])
    return table


def show(task, method, row):
    """A line for a method."""
    scores = ", ".join(f"{mean:.4f} ± {error:.4f}" for mean, error in row.values())
    print(f"  {method.kind.value:16} {method.name:44} {scores or 'left out'}", flush=True)


def ratios(task, table):
    """Lines that compare our errors with the least of the alternatives.

    There are none of calibration, in which a constant is best.
    """
    if task.measure == "calibration error":
        return
    for method, row in table.items():
        if method.kind is not Kind.OURS:
            continue
        for epsilon, (mean, _) in row.items():
            peers = {other.name: abs(task.best - found[epsilon][0])
                     for other, found in table.items()
                     if other.kind in {Kind.PEER, Kind.CONSTANT} and epsilon in found}  # fmt: skip
            if peers:
                name = min(peers, key=peers.get)
                ratio = beside(abs(task.best - mean), max(peers[name], 1e-300), name)
                print(f"  error of {method.name} at epsilon {epsilon:g}: {ratio}")


def rows_of(task, table):
    """Rows of the table in the docs."""
    digits = 3 if task.best else 4  # errors may be small
    for method, row in table.items():
        if row:
            if all(mean < WORTHLESS for mean, _ in row.values()):
                said = f"below {WORTHLESS:,} at each"
            elif method.kind is Kind.FREE:
                said = "; ".join(f"{mean:.{digits}f}" for mean, _ in row.values())
            else:
                said = "; ".join(f"{epsilon:g}: {mean:.{digits}f} ± {error:.{digits}f}"
                                 for epsilon, (mean, error) in row.items())  # fmt: skip
            yield [f"{task.name}, {task.measure}", f"{method.name}, {method.kind.value}", said]


def summary_of(task, table):
    """The row of the docs: our first estimator, and the best of the alternatives at each epsilon."""

    def said(kind, named=False):
        cells = []
        for epsilon in epsilons_of_kind(table, kind):
            means = {
                method.name: found[epsilon][0]
                for method, found in table.items()
                if method.kind is kind and epsilon in found
            }
            if kind is Kind.OURS:
                means = dict(list(means.items())[:1])
            name = min(means, key=lambda one: abs(task.best - means[one]))
            score = f"{means[name]:.3f}" if means[name] > WORTHLESS else f"below {WORTHLESS:,}"
            of = "" if kind is Kind.FREE else f"{epsilon:g}: "
            cells.append(f"{of}{score} ({name})" if named else f"{of}{score}")
        return "; ".join(cells)

    columns = [said(Kind.OURS), said(Kind.PEER, True), said(Kind.CONSTANT), said(Kind.FREE)]
    return [f"{task.name}, {task.measure}", *columns]


def epsilons_of_kind(table, kind):
    """Every epsilon at which a method of some kind was scored."""
    return sorted(
        {epsilon for method, row in table.items() if method.kind is kind for epsilon in row}
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="tiny data: the script works")
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="5 by default")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="0 by default")
    parser.add_argument("--task", default="", metavar="WORD", help="tasks with this in the name")
    given = parser.parse_args()
    rows, summary, started_all = [], [], process_time()
    for task in TASKS:
        if given.task.lower() not in task.name.lower() or task.load(0, given.quick) is None:
            continue
        epsilons = ", ".join(f"{one:g}" for one in task.epsilons)
        print(f"{task.name}, {task.measure} at epsilon {epsilons}, delta {task.delta:g}")
        started = process_time()
        seeds = range(given.first, given.first + (1 if given.quick else given.seeds))
        with threadpool_limits(1):  # threads that wait for each other would count as work
            table = measured(task, seeds, given.quick)
        ratios(task, table)
        print(f"  {process_time() - started:.0f} s of processor time")
        rows += rows_of(task, table)
        summary.append(summary_of(task, table))
    print(f"{process_time() - started_all:.0f} s of processor time in all")
    print(markdown_table(HEAD, rows))
    print(markdown_table(SUMMARY, summary), end="")


if __name__ == "__main__":
    main()
