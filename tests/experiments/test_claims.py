"""The four scripts of claims: each takes --quick and --seeds, as its page in docs/ promises."""

import re

import pytest

from experiments.catalogue import FIGURES

CLAIMS = [name for name in FIGURES if name.endswith("-claims")]
SLOW = {"sign-votes-claims"}  # twice three seconds
PAPERS = [pytest.param(one, marks=pytest.mark.slow if one in SLOW else ()) for one in CLAIMS]


def test_there_are_four():
    assert len(CLAIMS) == 4


@pytest.mark.parametrize("name", PAPERS)
def test_seeds_change_what_is_random_and_nothing_else(run, name):
    (_, one, first), (_, two, second) = (run(name, seeds, whole=True) for seeds in (1, 2))
    assert "seeds 0 to 0" in first
    assert "seeds 0 to 1" in second
    lines = list(zip(one.splitlines(), two.splitlines(), strict=True))
    assert len(lines) >= 5
    same = [a == b for a, b in lines]
    assert any(same)
    assert not all(same)
    assert not re.search(r"\b(nan|inf)\b", two)


@pytest.mark.parametrize("name", CLAIMS)
def test_the_page_promises_both(name):
    from pathlib import Path

    names = {"sparse": "sparse-regression", "sign": "sign-votes", "frank": "frank-wolfe",
             "private": "label-privacy"}  # fmt: skip
    page = Path(__file__).parents[2] / "docs" / f"{names[name.split('-')[0]]}.md"
    text = page.read_text(encoding="utf-8")
    assert f"python -m experiments {name}" in text
    assert "`--quick` takes" in text
    assert "`--seeds N` sets the runs" in text
