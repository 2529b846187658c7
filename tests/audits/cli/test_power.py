"""`dp-attest audit power`: a table and JSON."""

import json

from audits.__main__ import main


def test_the_command_tells_a_table_and_json(capsys):
    assert main(["power", "--claim", "1", "--truth", "1.25", "--json", "-"]) == 0
    shown = capsys.readouterr()
    rows = json.loads(shown.out)["needed"]
    assert [row["name"] for row in rows[::2]] == ["two outcomes", "Laplace", "ten outcomes"]
    assert all(row["limit"] <= row["guess"] for row in rows)
    assert "guess test" in shown.err
    assert main(["power", "DiscreteLaplace(scale=1.0, sensitivity=1)", "--claim", "2"]) == 0
    assert "never" in capsys.readouterr().out
