"""Table of docs/budget.md: how far 1,000 planned releases are from the least error."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

import numpy as np

from accountant import allocate
from experiments.charts import Options

HEAD = "| 1,000 releases | different losses | ε | error over the dual bound |"


def gaps(options: Options) -> Iterator[str]:
    """A row for each workload of the benchmark, which also measures the times; quick has no gaps.

    Selections have no dual bound.  How many losses are left depends on the last bits of scales.
    """
    bench = import_module("benchmarks.bench_planning")
    yield from (HEAD, "|" + " --- |" * 4)
    for name, classes in bench.WORKLOADS.items():
        releases = bench.workload(classes, np.random.default_rng(options.seeds[0]), 1000)
        found = allocate(releases, bench.BUDGET)
        losses = len(dict(found.plan.losses()))
        bounded = not options.quick and name != "with selections"
        ratio = f"{1 + bench.gap(found):.5f}" if bounded else ""
        about = f"about {float(f'{losses:.1g}'):g}"
        yield f"| {name} | {about} | {found.epsilon:.6f} | {ratio} |"


FIGURES = {"planning-gap": gaps}
