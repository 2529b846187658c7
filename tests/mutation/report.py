"""The score, those that survive, and the list of those that are judged by hand."""

import math
import re
import subprocess
import textwrap
import tomllib
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from statsmodels.stats.proportion import proportion_confint

from tests.mutation.running import ROOT
from tests.mutation.sampling import PACKAGES

JUDGED = Path(__file__).parent / "judged.toml"
PAGE = ROOT / "docs" / "testing.md"
START, END = "<!-- written by make mutants -->", "<!-- end of what make mutants writes -->"
AIM = 0.85
CONFIDENCE = 0.95
MOST_COMMITS = 300  # that changed the program since the score of the page was measured
WRITTEN = re.compile(r"at commit ([0-9a-f]{7,40})")


def judged():
    """By the name of a mutant its verdict, ``equivalent`` or ``harmless``, and why."""
    found = tomllib.loads(JUDGED.read_text()).get("mutant", [])
    return {
        (one["path"], one["function"], one["was"], one["becomes"]): (one["verdict"], one["why"])
        for one in found
    }


def score(results):
    """The share of those that are not equivalent that fell."""
    counts = Counter(outcome for _, outcome, _ in results)
    return counts["fell"] / max(1, len(results) - counts["equivalent"])


def summary(results):
    """The score in one sentence."""
    counts = Counter(outcome for _, outcome, _ in results)
    different = len(results) - counts["equivalent"]
    low, high = proportion_confint(counts["fell"], different, 1 - CONFIDENCE, method="beta")
    return (
        f"Of {len(results)} sampled mutants {counts['equivalent']} are equivalent; of the other "
        f"{different} the tests find {counts['fell']}, {score(results):.1%} "
        f"({CONFIDENCE:.0%} interval {low:.1%} to {high:.1%})."
    )


def line_of(mutant, outcome, why):
    """A mutant in one line."""
    words = f" ({outcome})" if outcome else ""
    return (
        f"`{mutant.path}`, `{mutant.function or 'at import'}`{words}: `{mutant.was}` becomes "
        f"`{mutant.becomes}`. {why}"
    ).strip()


def git(*words):
    """What git says, or nothing."""
    done = subprocess.run(["git", *words], capture_output=True, text=True, check=False, cwd=ROOT)
    return done.stdout.strip()


def commits_since(page):
    """How many commits changed the program after the one that a page names.

    None where the history is not here.  Commits of documents and tests alone are not counted: the
    score is of the program.
    Infinite where the history is here, and the commit is not in it.
    """
    words = re.sub(r"\s+", " ", page.partition(START)[2].partition(END)[0])
    named = WRITTEN.search(words)
    count = git("rev-list", "--count", f"{named[1]}..HEAD", "--", *PACKAGES) if named else ""
    if count:
        return int(count)
    return math.inf if git("rev-parse", "--is-shallow-repository") == "false" else None


def write(results, seed):
    """Write the score into the page; those that survive are in `JUDGED`, or were just printed."""
    reasons = [why for _, outcome, why in results if outcome not in {"fell", "equivalent"}]
    judged_harmless = sum(map(bool, reasons))
    words = f"{summary(results)} {judged_harmless} that survive are judged harmless"
    unknown = len(reasons) - judged_harmless
    words += f", {unknown} are not judged." if unknown else "."
    words += f" Measured on {datetime.now(UTC):%Y-%m-%d} with the fresh seed {seed}"
    words += f" at commit {git('rev-parse', '--short=12', 'HEAD') or 'unknown'}."
    page = PAGE.read_text()
    before, _, rest = page.partition(START)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{START}\n{textwrap.fill(words, 100)}\n{END}{after}")
