"""Try a fresh sample of mutants: ``python -m tests.mutation``, ``--sample 30`` for a shorter one.

The seed is new each time and printed: tests that were written for a sample pass on it, and say
nothing of others.  ``--regression`` tries the sample that the tests were written for.
"""

import argparse
import secrets
import sys

from tests.mutation import report, sampling
from tests.mutation.covering import CoverageMap
from tests.mutation.running import copied_tree, import_libraries
from tests.mutation.trial import Trial


def main(arguments=None):
    """Try the sample, print each that survives, and write the score of a whole sample."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--sample", type=int, default=sampling.SAMPLE, help="how many mutants")
    parser.add_argument("--seed", type=int, help="of the sample; a new one without it")
    parser.add_argument("--regression", action="store_true", help="the sample of earlier days")
    parser.add_argument("--only", default="", help="files whose path begins so")
    parser.add_argument("--fresh", action="store_true", help="forget the results of earlier runs")
    parser.add_argument(
        "--judged", action="store_true", help="try those listed as equivalent, which must survive"
    )
    asked = parser.parse_args(arguments)
    seed = secrets.randbelow(10**9) if asked.seed is None else asked.seed
    seed = sampling.REGRESSION_SEED if asked.regression else seed
    print(f"sample of {asked.sample} by seed {seed}", flush=True)
    import_libraries()
    tree = copied_tree()
    sample = sampling.sample(tree, asked.sample, seed)
    cover = CoverageMap(tree, sampling.modules(tree))
    cover.measure()
    judged = report.judged()
    trial = Trial(tree, cover, fresh=asked.fresh)
    wrong, results = [], []
    for number, mutant in enumerate(sample, 1):
        if not mutant.path.startswith(asked.only):
            continue
        verdict, why = judged.get(mutant.name, ("", ""))
        if verdict == "equivalent" and not asked.judged:
            results.append((mutant, "equivalent", why))
            continue
        found = trial.of(mutant)
        results.append((mutant, found["outcome"], why))
        if verdict and found["outcome"] == "fell":
            wrong.append(mutant)
        if found["outcome"] != "fell":
            print(f"{number}: {report.line_of(mutant, found['outcome'], why)}", flush=True)
    for mutant in wrong:
        print(f"listed as one that no test finds, and falls: {report.line_of(mutant, '', '')}")
    print(report.summary(results))
    fresh = asked.seed is None and not asked.regression
    if fresh and (asked.sample, asked.only) == (sampling.SAMPLE, ""):
        report.write(results, seed)
    return 1 if wrong or report.score(results) < report.AIM else 0


if __name__ == "__main__":
    sys.exit(main())
