"""A result comes back from its file as it was."""

import json
import math
from dataclasses import MISSING, fields, replace

import pytest

from accountant import ParameterError
from audits.claims.findings import Outcome
from audits.results.result_file import read_result, to_json, without_times
from audits.results.rows import ReportRow
from tests.audits.results.report_rows import result, row


def test_a_result_comes_back_as_it_was(tmp_path):
    nothing = row("n", claim=(math.nan, math.nan), exact_epsilon=None, epsilon_lower=None,
                  guesses=None, curve=None, verdict_lower=None, facts=(("a", "b"),))  # fmt: skip
    noted = row("c", wrong=True, notes=("It changes its value.",))
    results = result(row("a"), nothing, noted, absent={"x": "y"}, names=["a", "b c"])
    path = tmp_path / "r.json"
    path.write_text(to_json(results))
    back = read_result(str(path), "FILE")
    assert to_json(back) == to_json(results)
    assert without_times(back) == without_times(results)
    assert back.rows[0] == results.rows[0]
    assert back.request == results.request
    assert back.request.repeat_command == "dp-attest audit run a 'b c' --seed 7 --runs 100"


def test_a_file_from_before_notes_is_read(tmp_path):
    written = json.loads(to_json(result(row("a"))))
    assert written["details"][0].pop("notes") == []
    path = tmp_path / "r.json"
    path.write_text(json.dumps(written))
    assert read_result(str(path), "FILE").rows == [row("a")]


WRONG = {
    "options": [[], "x", None, 3],
    "names": [[1], 3, None],
    "command": [3, None, []],
    "samples": ["100", None, []],
    "confidence": ["x", None, []],
    "seed": [None, "7"],
    "curves": ["no", []],
}


@pytest.mark.parametrize(("name", "value"), [(k, v) for k, some in WRONG.items() for v in some])
def test_a_field_of_another_kind_is_refused_in_one_line(tmp_path, name, value):
    written = json.loads(to_json(result(row("a"))))
    written["request"][name] = value
    path = tmp_path / "r.json"
    path.write_text(json.dumps(written))
    with pytest.raises(ParameterError, match="FILE must be a result of schema 1"):
        read_result(str(path), "FILE")


def test_an_undecided_row_comes_back_with_what_was_not_seen(tmp_path):
    unseen = row("u", outcome=Outcome.INCONCLUSIVE, unseen=("output[1]: Handle",))
    path = tmp_path / "r.json"
    path.write_text(to_json(result(unseen)))
    assert read_result(str(path), "FILE").rows == [unseen]
    weak = replace(unseen, unseen=(), noise="Laplace noise", needed_runs=690)
    (tmp_path / "weak.json").write_text(to_json(result(weak)))
    assert read_result(str(tmp_path / "weak.json"), "FILE").rows == [weak]
    assert '"outcome": "inconclusive"' in path.read_text()


def test_a_file_from_before_the_third_outcome_is_read(tmp_path):
    written = json.loads(to_json(result(row("few"), row("enough"))))
    for detail in written["details"]:
        for name in ("unseen", "noise", "needed_runs", "not_tested"):
            del detail[name]
    written["details"][0]["decisive"] = False
    path = tmp_path / "r.json"
    path.write_text(json.dumps(written))
    rows = read_result(str(path), "FILE").rows
    assert [one.outcome for one in rows] == [Outcome.INCONCLUSIVE, Outcome.SURVIVED]
    assert all(one.as_expected for one in rows)


def test_a_row_that_says_nothing_of_guesses_has_none():
    plain = row()
    needed = {f.name: getattr(plain, f.name) for f in fields(plain) if f.default is MISSING}
    made = json.loads(to_json(result(ReportRow(**needed))))
    assert '"guesses": null' in json.dumps(made)
