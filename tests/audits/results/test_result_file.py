"""A result comes back from its file as it was."""

import math

from audits.results.result_file import read_result, to_json, without_times
from tests.audits.results.report_rows import result, row


def test_a_result_comes_back_as_it_was(tmp_path):
    nothing = row("n", claim=(math.nan, math.nan), exact_epsilon=None, epsilon_lower=None,
                  guesses=None, curve=None, verdict_lower=None, facts=(("a", "b"),))  # fmt: skip
    results = result(row("a"), nothing, row("c", wrong=True), absent={"x": "y"}, names=["a", "b c"])
    path = tmp_path / "r.json"
    path.write_text(to_json(results))
    back = read_result(str(path), "FILE")
    assert to_json(back) == to_json(results)
    assert without_times(back) == without_times(results)
    assert back.rows[0] == results.rows[0]
    assert back.request == results.request
    assert back.request.repeat_command == "python -m audits a 'b c' --seed 7 --samples 100"
