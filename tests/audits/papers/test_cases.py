"""`dp-attest audit papers`: verdicts of published claims, as their own tests have them."""

import re

import pytest

from audits.claims.findings import Outcome
from audits.papers.cases import cases, verdict_confidence
from audits.results.rows import Settings

FALSE = {
    "label noise, s*=5, C=0.05, identity": 36.2236, "label noise, s*=5, C=1, identity": 1.12,
    "label noise in code, s*=5, C=0.05": None, "gradient reports, s=s*=5, C=0.05": None,
}  # fmt: skip


@pytest.fixture(scope="module")
def rows():
    settings = Settings(20_000, 0.95, 7)
    return {case.subject: case.run(settings) for case in cases()}


def test_every_verdict_is_as_known(rows):
    assert all(row.as_expected for row in rows.values())
    assert len(rows) == len(cases()) == 13
    fell = {name for name, row in rows.items() if row.outcome is Outcome.FALSIFIED}
    assert set(FALSE) <= fell
    assert sum("epsilon <= 1" in name for name in fell) == 2  # the printed rates
    assert len(fell) == 6


def test_what_is_provable_is_what_the_accountant_says(rows):
    for name, true in FALSE.items():
        if true is not None:
            assert rows[name].exact_epsilon == pytest.approx(true, rel=5e-3)
            assert rows[name].epsilon_lower == pytest.approx(true, rel=5e-3)
    lasso = rows["private LASSO, laplace, T=50, replace"]
    assert lasso.claim == (1.0, 1e-6)
    assert lasso.epsilon_lower < 1.0 < lasso.exact_epsilon
    assert "neither proved nor refuted" in lasso.evidence
    assert "holds" in rows["private LASSO, gumbel, T=50, replace"].evidence
    for row in rows.values():
        if row.exact_epsilon is not None and row.epsilon_lower is not None:
            assert row.epsilon_lower <= row.exact_epsilon * (1 + 1e-9)


def test_a_row_says_its_source_and_its_verdict(rows):
    for case in cases():
        row = rows[case.subject]
        if row.exact_epsilon is None:  # the claim is not about epsilon
            assert row.evidence in row.witness
            assert row.runs == 0
            assert row.epsilon_lower is None
            assert row.confidence == 0.95
            continue
        assert re.search(r"\w+ \(\d{4}\), |public MATLAB code", case.about)
        assert row.witness == f"{case.about}: {row.evidence}"
        is_false = row.outcome is Outcome.FALSIFIED
        holds = row.exact_epsilon <= row.claim[0]
        verdict = "holds" if holds else "false" if is_false else "neither proved nor refuted"
        assert row.evidence.startswith(f"{verdict}; provable {row.exact_epsilon:.4g}")
        assert not (holds and is_false)


def test_verdicts_hold_together():
    assert (1 - verdict_confidence()) * len(cases()) == pytest.approx(1e-6)
