"""Every finding says what its audit did not look at, by kind, and no more than that."""

import functools
import io
import json
import xml.etree.ElementTree as Xml

import numpy as np
import pytest
from rich.console import Console

from audits import (
    Box,
    Outcome,
    Sensitivity,
    assert_private,
    audit,
    audit_atoms,
    audit_bits,
    audit_family,
    search_pairs,
    watch,
)
from audits.claims.findings import NotTested, kinds_of
from audits.formats.html import to_html
from audits.formats.junit import to_junit
from audits.report.terminal import print_report
from audits.results.result_file import read_result, to_json
from mechanisms import DiscreteLaplace, Laplace, RandomizedResponse
from tests.audits.results.report_rows import result, row

PAIR = (4711.25, 4712.25)
ALWAYS = {"timing", "other pairs", "side effects"}
FEW = {"runs": 40, "rng": 1}


class Handle:
    __slots__ = ()

    def __reduce_ex__(self, protocol):
        raise TypeError("a handle stays where it is")


def noisy(value, rng, size):
    return value + rng.laplace(size=size)


def counted(value, rng, size):
    return int(value) + rng.geometric(0.5, size=size)


def word(value, rng):
    return "yes" if rng.random() < 0.5 else "no"


def clipped(value, rng, low=0.0, *, high=9000.0):
    return np.clip(value, low, high) + rng.laplace()


def with_handle(value, rng):
    return int(value), Handle()


class Clipped:
    def __init__(self):
        self.bound = 9000.0

    def __call__(self, value, rng):
        return min(value, self.bound) + rng.laplace()

    def release(self, value, rng, low=0.0):
        return max(value, low) + rng.laplace()


def by_size(value, generator, number):
    return value + generator.laplace(size=number)


FLOATS = ALWAYS | {"low bits"}
AUDITS = {
    "floats": (lambda: audit(noisy, PAIR, 1.0, **FEW), FLOATS),
    "whole numbers": (lambda: audit(counted, PAIR, 1.0, **FEW), ALWAYS),
    "words": (lambda: audit(word, PAIR, 1.0, **FEW), ALWAYS),
    "arguments by name": (
        lambda: audit(clipped, PAIR, 1.0, **FEW), FLOATS | {"arguments never varied"},
    ),
    "arguments by place": (lambda: audit(by_size, PAIR, 1.0, **FEW), FLOATS),
    "a partial": (
        lambda: audit(functools.partial(clipped, low=1.0), PAIR, 1.0, **FEW),
        FLOATS | {"arguments never varied"},
    ),
    "no claim": (lambda: audit(noisy, PAIR, **FEW), FLOATS),
    "a score": (lambda: audit(noisy, PAIR, 1.0, score=np.sign, **FEW), FLOATS),
    "an early stop": (lambda: watch(noisy, PAIR, 1.0, **FEW), FLOATS),
    "unseen parts": (lambda: audit(with_handle, PAIR, 1.0, **FEW), FLOATS | {"unseen parts"}),
    "a mechanism": (lambda: audit(Laplace(1.0), **FEW), FLOATS | {"arguments never varied"}),
    "a mechanism of integers": (
        lambda: audit(DiscreteLaplace(1.0), **FEW), ALWAYS | {"arguments never varied"},
    ),
    "labels": (
        lambda: audit(RandomizedResponse(k=3, keep=0.5), **FEW),
        ALWAYS | {"arguments never varied"},
    ),
    "bits": (lambda: audit_bits(noisy, PAIR, 1.0, **FEW), ALWAYS | {"other events"}),
    "atoms": (lambda: audit_atoms(noisy, PAIR, 1.0, **FEW), FLOATS | {"other events"}),
    "a search": (
        lambda: search_pairs(noisy, Box(0.0, 1.0), 1.0, runs=1000, rng=1).finding, FLOATS,
    ),
    "an event": (
        lambda: audit_family(noisy, [PAIR], 1.0, {"sign": np.sign}, runs=240, rng=1)
        .members[1].finding,
        FLOATS | {"other events"},
    ),
    "a member": (
        lambda: audit_family(noisy, [PAIR], 1.0, {"sign": np.sign}, runs=240, rng=1)
        .members[0].finding,
        FLOATS,
    ),
    "a sensitivity": (
        lambda: audit(lambda data: data.sum(), Box(0.0, 1.0, (2,)), Sensitivity(9.0), **FEW),
        ALWAYS | {"other events"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AUDITS)
def test_a_finding_names_each_kind_that_was_not_looked_at(name):
    made, kinds = AUDITS[name]
    found = made()
    assert {reason.kind for reason in found.not_tested} == kinds
    assert len(found.not_tested) == len(kinds)
    assert all(sentence for _, sentence in found.not_tested)
    said = repr(found.not_tested) + repr(found)
    assert "4711" not in said
    assert "4712" not in said


def test_sentences_name_arguments_and_parts_and_no_values():
    by_kind = dict(audit(clipped, PAIR, 1.0, **FEW).not_tested)
    assert by_kind["arguments never varied"] == "low, high"
    assert by_kind["side effects"] == "files, network, globals"
    assert dict(audit(noisy, PAIR, 1.0, **FEW).not_tested)["side effects"].endswith("warnings")
    assert dict(audit(with_handle, PAIR, 1.0, **FEW).not_tested)["unseen parts"] == (
        "output[1]: Handle"
    )
    held = "arguments never varied"
    assert dict(audit(Clipped(), PAIR, 1.0, **FEW).not_tested)[held] == "what Clipped holds"
    bound = dict(audit(Clipped().release, PAIR, 1.0, **FEW).not_tested)
    assert bound[held] == "low, what Clipped holds"
    own = dict(audit(Laplace(1.0), **FEW).not_tested)
    assert own["other pairs"].startswith("the worst pairs")
    assert "scale, sensitivity" in own["arguments never varied"]
    given = dict(audit(Laplace(1.0), (0.0, 1.0), **FEW).not_tested)
    assert given["other pairs"] == by_kind["other pairs"] == "one pair of values was tried"
    found = search_pairs(noisy, Box(0.0, 1.0), 1.0, runs=1000, rng=1)
    tried = f"{len(found.screened)} pairs were tried"
    assert dict(found.finding.not_tested)["other pairs"].startswith(tried)


def test_a_finding_shows_the_kinds_in_one_line():
    found = audit(noisy, PAIR, 1.0, **FEW)
    kinds = kinds_of(found.not_tested)
    assert kinds == "low bits, timing, other pairs, side effects"
    assert "40 runs; too few runs to see half of Laplace noise" in repr(found)
    assert repr(found).endswith(f"; not tested: {kinds}>")
    assert kinds in str(found)
    with pytest.raises(AssertionError, match=f"Not tested: {kinds}"):
        assert_private(lambda value, rng: value, PAIR, 1.0, runs=200)


REASONS = (NotTested("timing", "audit_timing <looks> at it"), NotTested("other pairs", "one pair"))


def printed(rows):
    screen = io.StringIO()
    print_report(rows, Console(file=screen, width=400))
    return screen.getvalue()


def test_every_format_of_a_report_has_it(tmp_path):
    rows = result(row("f", kind="target", not_tested=REASONS))
    path = tmp_path / "report.json"
    path.write_text(to_json(rows))
    assert read_result(str(path), "FILE").rows == rows.rows
    (details,) = json.loads(to_json(rows))["details"]
    assert details["not_tested"][1] == {"kind": "other pairs", "sentence": "one pair"}
    (suite,) = Xml.fromstring(to_junit(rows).encode())
    sentence = "timing (audit_timing <looks> at it); other pairs (one pair)"
    assert f"not tested: {sentence}" in suite.find(".//system-out").text
    assert f"Not tested: {sentence}." in printed(rows)
    page = to_html(rows)
    assert page.count("timing (audit_timing &lt;looks&gt; at it); other pairs (one pair)") == 2


def test_of_many_rows_the_terminal_names_the_kinds():
    rows = result(*(row(name, not_tested=REASONS[: k + 1]) for k, name in enumerate("ab")))
    assert "Not tested: timing, other pairs." in printed(rows)
    assert "Not tested" not in printed(result(row("old")))
    assert rows.rows[0].outcome is Outcome.SURVIVED
