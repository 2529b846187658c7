"""The score, those that survive, and the list of those that are judged by hand."""

import textwrap
import tomllib
from collections import Counter
from pathlib import Path

from tests.mutation.running import ROOT

JUDGED = Path(__file__).parent / "judged.toml"
PAGE = ROOT / "docs" / "testing.md"
START, END = "<!-- written by make mutants -->", "<!-- end of what make mutants writes -->"
AIM = 0.9
WRAP = textwrap.TextWrapper(
    width=100, initial_indent="- ", subsequent_indent="  ",
    break_long_words=False, break_on_hyphens=False,
)  # fmt: skip


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
        f"{different} the tests find {counts['fell']} ({100 * score(results):.1f} %)."
    )


def line_of(mutant, outcome, why):
    """A mutant in one line."""
    words = f" ({outcome})" if outcome else ""
    return (
        f"`{mutant.path}`, `{mutant.function or 'at import'}`{words}: `{mutant.was}` becomes "
        f"`{mutant.becomes}`. {why}"
    ).strip()


def write(results):
    """Write the score and the survivors into the page."""
    left = [one for one in results if one[1] not in {"fell", "equivalent"}]
    lines = [START, summary(results)]
    if left:
        lines += ["", "Those that survive:", ""]
        lines += [WRAP.fill(line_of(*one)) for one in left]
    page = PAGE.read_text()
    before, _, rest = page.partition(START)
    after = rest.partition(END)[2]
    PAGE.write_text(before + "\n".join([*lines, END]) + after)
