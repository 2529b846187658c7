"""`dp-attest audit papers`."""

import json

from audits.__main__ import main


def test_the_command(tmp_path, capsys):
    path = tmp_path / "papers.json"
    words = ["papers", "label noise", "--runs", "20000", "--seed", "7", "--json", str(path)]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "provable" in shown
    assert "4 of 4 as expected" in shown
    document = json.loads(path.read_text())
    assert {row["kind"] for row in document["findings"]} == {"paper"}
    assert main(["replay", str(path)]) == 0
    assert "identical but for times" in capsys.readouterr().out
