"""Measure the corpus again and write it: the ends, the engine and the processor time of each ask.

    python -m tests.references.corpus.write

The ends that are kept are those that later versions are compared with: write them only where a
plan is added, or where narrower ones were proved.
"""

import json
import time
from pathlib import Path

from accountant import GaussianLoss, PoissonSampled, Tight
from accountant.errors import ParameterError, UnsupportedPlan
from tests.references.corpus.plans import DELTAS, drawn, plan_of

DATA = Path(__file__).parent / "corpus.json"


def asked(plan, delta):
    """Return [delta, lower, upper, engine, processor seconds]."""
    start = time.process_time()
    found = Tight().certify(plan, delta)
    seconds = time.process_time() - start
    return [delta, found.lower, found.upper, found.engine, float(f"{seconds:.3g}")]


def main():
    Tight().certify(3 * PoissonSampled(GaussianLoss(1.0), 0.1), 1e-5)  # what is imported once
    rows = []
    for kind, stored in drawn():
        try:
            plan = plan_of(stored)
            ends = [asked(plan, delta) for delta in DELTAS]
        except (ParameterError, UnsupportedPlan) as error:
            print(f"left out: {kind}: {error}")
            continue
        rows.append({"kind": kind, "plan": stored, "ends": ends})
        print(f"{len(rows)}: {kind}: {[end[3:] for end in ends]}", flush=True)
    lines = ",\n".join(json.dumps(row) for row in rows)
    DATA.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
