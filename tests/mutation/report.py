"""The score, those that survive, and the list of those that are judged by hand."""

import subprocess
import textwrap
import tomllib
from collections import Counter
from pathlib import Path

from tests.mutation.running import ROOT

JUDGED = Path(__file__).parent / "judged.toml"
PAGE = ROOT / "docs" / "testing.md"
START, END = "<!-- written by make mutants -->", "<!-- end of what make mutants writes -->"
AIM = 0.9


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
    return (
        f"Of {len(results)} sampled mutants {counts['equivalent']} are equivalent; of the other "
        f"{different} the tests find {counts['fell']}."
    )


def line_of(mutant, outcome, why):
    """A mutant in one line."""
    words = f" ({outcome})" if outcome else ""
    return (
        f"`{mutant.path}`, `{mutant.function or 'at import'}`{words}: `{mutant.was}` becomes "
        f"`{mutant.becomes}`. {why}"
    ).strip()


def write(results):
    """Write the score into the page; those that survive are in `JUDGED`, or were just printed."""
    left = [why for _, outcome, why in results if outcome not in {"fell", "equivalent"}]
    words = f"{summary(results)} {sum(map(bool, left))} that survive are judged harmless"
    unknown = len(left) - sum(map(bool, left))
    words += f", {unknown} are not judged." if unknown else "."
    git = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False, cwd=ROOT).stdout
    words += f" Measured at commit {commit.strip()}." if commit else ""
    page = PAGE.read_text()
    before, _, rest = page.partition(START)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{START}\n{textwrap.fill(words, 100)}\n{END}{after}")
