"""Try a fresh sample of mutants: ``python -m tests.mutation``, ``--sample 30`` for a shorter one.

The seed is new each time and printed: tests that were written for a sample pass on it, and say
nothing of others.  ``--regression`` tries the sample that the tests were written for.
"""

import argparse
import json
import multiprocessing
import os
import secrets
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor

from tests.mutation import report, sampling
from tests.mutation.covering import LinesOfTests, measure
from tests.mutation.running import CACHE, contents_mark, copied_tree, import_libraries
from tests.mutation.trial import outcome

WORKER = {}  # what a process of the pool works with: a tree of its own, and the lines of the tests


def main(arguments=None):
    """Try the sample, print each that survives, and write the score of a whole sample."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--sample", type=int, default=sampling.SAMPLE, help="how many mutants")
    parser.add_argument("--seed", type=int, help="of the sample; a new one without it")
    parser.add_argument("--regression", action="store_true", help="the sample of earlier days")
    parser.add_argument("--only", default="", help="files whose path begins so")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants at a time")
    parser.add_argument(
        "--page", action="store_true", help="write the score of --seed again, once it is judged"
    )
    parser.add_argument(
        "--judged", action="store_true", help="try those listed as equivalent, which must survive"
    )
    options = parser.parse_args(arguments)
    seed = secrets.randbelow(10**9) if options.seed is None else options.seed
    seed = sampling.REGRESSION_SEED if options.regression else seed
    print(f"sample of {options.sample} by seed {seed}", flush=True)
    import_libraries()
    trees = [copied_tree(CACHE / f"tree-{job}") for job in range(options.jobs)]
    folder = measured_folder(trees)
    sample = [
        mutant
        for mutant in sampling.sample(trees[0], options.sample, seed)
        if mutant.path.startswith(options.only)
    ]
    judged = report.judged()
    outcomes = {} if options.judged else {
        mutant.name: "equivalent"
        for mutant in sample
        if judged.get(mutant.name, ("", ""))[0] == "equivalent"
    }  # fmt: skip
    results = []
    for mutant, became in tried(sample, outcomes, trees, folder):
        verdict, why = judged.get(mutant.name, ("", ""))
        results.append((mutant, became, why))
        progress = f"{len(results)} of {len(sample)}"
        if verdict and became == "fell":
            print(f"{progress}: listed as one that no test finds, and falls: "
                  f"{report.line_of(mutant, '', '')}", flush=True)  # fmt: skip
        elif became not in {"fell", "equivalent"}:
            print(f"{progress}: {report.line_of(mutant, became, why)}", flush=True)
        elif len(results) % 20 == 0:
            print(progress, flush=True)
    print(report.summary(results))
    is_fresh = options.seed is None and not options.regression
    if (is_fresh or options.page) and (options.sample, options.only) == (sampling.SAMPLE, ""):
        report.write(results, seed)
    wrongly_judged = any(why and became == "fell" for _, became, why in results)
    return 1 if wrongly_judged or report.score(results) < report.AIM else 0


def measured_folder(trees):
    """The folder with the lines of all tests in these trees; it is measured where it is not yet."""
    folder = CACHE / contents_mark(trees[0])
    if not folder.exists():
        print("measuring which tests run which lines", flush=True)
        unfinished = CACHE / "unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        measure(trees[0], unfinished, len(trees))
        unfinished.rename(folder)
    return folder


def tried(sample, outcomes, trees, folder):
    """Yield each mutant with what became of it; what an interrupted run has tried is kept."""
    kept = folder / "outcomes.jsonl"
    if kept.exists():
        tried_before = {tuple(name): became for name, became in map(json.loads, kept.open())}
        # one that was judged after it was tried counts as judged, unless a test finds it
        outcomes = tried_before | {
            name: became for name, became in outcomes.items() if tried_before.get(name) != "fell"
        }
    yield from ((mutant, outcomes[mutant.name]) for mutant in sample if mutant.name in outcomes)
    remaining = [mutant for mutant in sample if mutant.name not in outcomes]
    context = multiprocessing.get_context("fork")  # with the libraries that were imported
    free_trees = context.Queue()
    for tree in trees:
        free_trees.put(tree)
    with (
        ProcessPoolExecutor(len(trees), context, _take_tree, (free_trees, folder)) as pool,
        kept.open("a") as file,
    ):
        for mutant, became in zip(remaining, pool.map(_outcome, remaining), strict=True):
            file.write(json.dumps([mutant.name, became]) + "\n")
            file.flush()
            yield mutant, became


def _take_tree(free_trees, folder):
    """Let a process of the pool have a tree of its own, and the lines of the tests."""
    WORKER.update(tree=free_trees.get(), lines_of_tests=LinesOfTests(folder))


def _outcome(mutant):
    return outcome(mutant=mutant, **WORKER)


if __name__ == "__main__":
    sys.exit(main())
