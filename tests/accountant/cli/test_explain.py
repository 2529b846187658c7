"""``dp-attest account explain``: the exact cost in words."""

import re

from accountant import Tight
from accountant.__main__ import main
from mechanisms import Gaussian

GAUSSIAN = '[[release]]\nkind = "Gaussian"\nscale = 4.0\n'


LOCAL = """
[[release]]
kind = "Stated"
part = { kind = "PureLoss", epsilon = 1.0 }
relation = "local-replace"
"""


def test_the_command_tells_the_exact_cost(tmp_path, capsys):
    path = tmp_path / "plan.toml"
    path.write_text("[budget]\nepsilon = 9\ndelta = 1e-5\n" + GAUSSIAN)
    assert main(["explain", str(path)]) == 0
    found = float(re.search(r"epsilon ([\d.]+)", capsys.readouterr().out)[1])
    exact = Tight().epsilon(Gaussian(4.0), 1e-5)
    assert exact <= found <= exact * (1 + 1e-5)
    path.write_text(LOCAL)
    assert main(["explain", str(path), "--delta", "0"]) == 0
    assert "trust no one" in capsys.readouterr().out
    path.write_text(GAUSSIAN)
    assert main(["explain", str(path), "--delta", "0"]) == 2
    assert "one at which the plan has an epsilon" in capsys.readouterr().err
