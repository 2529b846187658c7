"""How much there is to read, and how hard it is: words and school grade of every page.

`make docs` prints it.  Prose is what is left without code, tables, headings and links; the grade is
that of Flesch and Kincaid (1975).  Syllables are counted as groups of vowels: textstat, which has
a dictionary of them, loads that from a server when it runs.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).resolve().parents[1] / "docs"
MOST_WORDS = 1500  # of prose, in a topic
LONG_TOPICS = ("accounting", "algorithms", "budget", "frames", "mechanisms")
MOST_OF_BENCHMARKS = 2000
NOT_PROSE = re.compile(
    r"^ *```.*?^ *```$|<!--.*?-->|^\|.*?$|^#.*?$|^    \S.*?$", re.MULTILINE | re.DOTALL
)


class Reading(NamedTuple):
    """A page: its words, and the grade of its sentences."""

    page: str
    words: int
    grade: float


def prose_of(text: str) -> str:
    """Return the sentences of a page, without what is not read as one; names stand for code."""
    text = NOT_PROSE.sub("", text)
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`]*`", "name", text)
    # an item of a list is a sentence
    return re.sub(r"^ *(?:-|\d+\.) ", ". ", text, flags=re.MULTILINE)


def words_of(text: str) -> int:
    """Return how many words of prose a page has."""
    return len(prose_of(text).split())


def grade_of(text: str) -> float:
    """Return the school grade of a page: 0.39 words a sentence + 11.8 syllables a word - 15.59."""
    prose = prose_of(text)
    words = re.findall(r"[A-Za-zÀ-ÿ']+", prose)
    sentences = [one for one in re.split(r"[.!?](?=\s|$)|\n\s*\n", prose) if re.search(r"\w", one)]
    if not words:
        return 0.0
    syllables = sum(map(syllables_of, words))
    return 0.39 * len(words) / len(sentences) + 11.8 * syllables / len(words) - 15.59


def syllables_of(word: str) -> int:
    """Return how many syllables a word has, about: groups of vowels, without a silent e."""
    groups = len(re.findall(r"[aeiouyäöüé]+", word.lower()))
    is_silent = re.search(r"[^aeiouyl]e$|[^aeiouytd]ed$", word.lower()) is not None
    return max(groups - is_silent, 1)


def readings() -> list[Reading]:
    """Return every page but the proofs, those with most words first."""
    pages = [page for page in sorted(DOCS.rglob("*.md")) if "proofs" not in page.parts]
    texts = {str(page.relative_to(DOCS)): page.read_text(encoding="utf-8") for page in pages}
    read = [Reading(page, words_of(text), grade_of(text)) for page, text in texts.items()]
    return sorted(read, key=lambda reading: -reading.words)


def main() -> int:
    """Print the table; the exit status is 1 where a page is longer than it may be."""
    table = readings()
    for reading in table:
        print(f"{reading.page:<40}{reading.words:>7,}{reading.grade:>8.1f}")
    print(f"{'all but proofs':<40}{sum(reading.words for reading in table):>7,}")
    limits = {f"{name}.md": MOST_WORDS for name in LONG_TOPICS}
    limits["benchmarks.md"] = MOST_OF_BENCHMARKS
    too_long = [one.page for one in table if one.words > limits.get(one.page, one.words)]
    for page in too_long:
        print(f"{page} has more words than {limits[page]:,}", file=sys.stderr)
    return 1 if too_long else 0


if __name__ == "__main__":
    sys.exit(main())
