"""Ask the corpus again, and print ends, widths and times beside those that were kept.

    python -m tests.references.corpus.report [--kinds WORD ...] [--against FILE] [--save FILE]

``--save`` writes what was found, ``--against`` compares with such a file instead of the corpus.
Times are of a processor, and are compared only where both were measured on one machine.
"""

import argparse
import json
import statistics
from collections import Counter
from pathlib import Path

from accountant import GaussianLoss, PoissonSampled, Tight
from tests.references.corpus.plans import plan_of
from tests.references.corpus.write import DATA, asked

WIDTH = 1e-6  # of epsilon
SLOWER = 3.0  # times
TICK = 0.005  # processor seconds: what is quicker is not called slower


def width_of(lower, upper):
    """The width of an interval, of its upper end."""
    return 0.0 if lower == upper else (upper - lower) / upper


def verdicts(before, after):
    """Yield what is worse in an answer than it was."""
    _, old_lower, old_upper, _, old_seconds = before
    _, lower, upper, _, seconds = after
    if upper < old_lower or lower > old_upper:
        yield "CONTRADICTS"
    if upper > old_upper * (1 + WIDTH):
        yield "upper end"
    if width_of(lower, upper) > WIDTH >= width_of(old_lower, old_upper):
        yield "wider"
    if seconds > SLOWER * max(old_seconds, TICK):
        yield "slower"
    if old_seconds < 1 and seconds > 2:
        yield "OVER TWO SECONDS"


def quantiles(values):
    cuts = statistics.quantiles(values, n=100)
    return (
        f"median {cuts[49]:.3g}, 90 % {cuts[89]:.3g}, 99 % {cuts[98]:.3g}, worst {max(values):.3g}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="*", default=[""], help="rows whose kind holds a word")
    parser.add_argument("--against", type=Path, default=DATA)
    parser.add_argument("--save", type=Path)
    given = parser.parse_args()
    Tight().certify(3 * PoissonSampled(GaussianLoss(1.0), 0.1), 1e-5)  # what is imported once
    rows = json.loads(given.against.read_text())
    rows = [row for row in rows if any(word in row["kind"] for word in given.kinds)]
    counts, engines, pairs = Counter(), Counter(), []
    for number, row in enumerate(rows):
        plan, before_ends = plan_of(row["plan"]), row["ends"]
        row["ends"] = []
        for before in before_ends:
            after = asked(plan, before[0])
            row["ends"].append(after)
            pairs.append((before, after))
            engines[before[3], after[3]] += 1
            found = list(verdicts(before, after))
            counts.update(found)
            if found:
                print(f"{number} {row['kind']}, delta {before[0]:g}: {', '.join(found)}: "
                      f"{before[1:]} -> {after[1:]}", flush=True)  # fmt: skip
    if given.save:
        lines = ",\n".join(json.dumps(row) for row in rows)
        given.save.write_text(f"[\n{lines}\n]\n")
    print(f"\n{len(pairs)} answers of {len(rows)} plans; worse: {dict(counts)}")
    for title, column in (("before", 0), ("after", 1)):
        answers = [pair[column] for pair in pairs]
        seconds = [answer[4] for answer in answers]
        widths = [width_of(*answer[1:3]) for answer in answers if answer[2] < float("inf")]
        print(f"{title}: processor seconds {sum(seconds):.1f}: {quantiles(seconds)}")
        print(f"{title}: relative width {quantiles(widths)}")
    ratios = [after[4] / max(before[4], 1e-4) for before, after in pairs]
    print(f"time after over before: {quantiles(ratios)}")
    for (old, new), number in engines.most_common():
        print(f"  {number}: {old}" + ("" if old == new else f" -> {new}"))


if __name__ == "__main__":
    main()
