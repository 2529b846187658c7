"""Short names: what a constructor does by itself is left out, other names stay."""

import pytest

from audits.results.short_names import short_name
from audits.runner.execution import select_cases


@pytest.mark.parametrize(
    ("whole", "short"),
    [
        ("Laplace(scale=1.0, sensitivity=1.0, arithmetic=EXACT)", "Laplace(scale=1.0)"),
        ("Laplace(scale=1.0, sensitivity=2.0, arithmetic=EXACT)",
         "Laplace(scale=1.0, sensitivity=2.0)"),
        ("low bits of Laplace(scale=1.0, sensitivity=1.0, arithmetic=IDEALISED)",
         "low bits of Laplace(scale=1.0, arithmetic=IDEALISED)"),
        ("BinaryLabel(bound=1.0, keep=0.7310585786300049)", "BinaryLabel(bound=1.0, keep=0.7311)"),
        ("PureFromApproximate(inner=Gaussian(scale=40.0, sensitivity=1.0, arithmetic=EXACT), "
         "odds=0.2, candidates=12)", "PureFromApproximate(Gaussian(40.0), 0.2, 12)"),
        ("Unknown(scale=1.0, sensitivity=1.0)", "Unknown(scale=1.0, sensitivity=1.0)"),
        ("mycode:count", "mycode:count"),
        ("lower bound, K=100, epsilon <= 1: sqrt(K / (epsilon n))",
         "lower bound, K=100, epsilon <= 1: sqrt(K / (epsilon n))"),
        ("Laplace(" * 400, "Laplace(" * 400),
        ("Laplace(\x00)", "Laplace(\x00)"),
    ],
)  # fmt: skip
def test_short_names(whole, short):
    assert short_name(whole) == short


def test_a_short_name_selects_its_row():
    for subject in ("Laplace(scale=1.0)", "low bits of Laplace(scale=1.0)"):
        (case,) = select_cases([subject])
        assert case.subject.endswith("Laplace(scale=1.0, sensitivity=1.0, arithmetic=EXACT)")
