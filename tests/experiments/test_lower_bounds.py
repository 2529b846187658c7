"""The quick charts of lower bounds: what must hold of every curve."""

import pytest

SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("labels", "central")]


@pytest.mark.parametrize("name", ["records", "everyday", *SLOW])
def test_risks_lie_above_their_bounds(run, rows, name):
    folder, said, _ = run(f"lower-bounds-{name}", 2)
    assert (folder / f"bounds_{name}.png").read_bytes().startswith(b"\x89PNG")
    means, errors = (
        {(row["panel"], row["curve"], row["x"]): float(row[column])
         for row in rows(f"lower-bounds-{name}", 2)}
        for column in ("mean", "standard_error")
    )  # fmt: skip
    bounded = 0
    for (panel, curve, x), mean in means.items():
        bound = means[panel, "lower bound", x]
        if "no noise" in curve or "rate" in curve or curve == "lower bound":
            continue
        if curve == "as published":
            assert mean <= bound * (1 + 1e-9), (panel, x)
        elif curve.endswith("theorem"):
            assert mean > bound, (panel, curve, x)
        else:
            bounded += 1
            # two runs: their error says little, so a wide berth
            assert mean + 20 * errors[panel, curve, x] >= bound, (panel, curve, x)
    assert bounded > 0
    assert "over the bound" in said
