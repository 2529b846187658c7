"""The audit of two files of scores: its claim is what the options say."""

import math

import numpy as np
import pytest

from accountant import ApproxLoss, GaussianLoss, ParameterError, PureLoss, Tight
from audits import Outcome
from audits.one_run.scores import audit_scores
from audits.results.result_file import Request
from audits.results.rows import Settings
from audits.runner.scores import ScoresRequest, scores_cases


@pytest.mark.parametrize(
    ("options", "claim"),
    [({}, None), ({"mu": "0.5"}, GaussianLoss(0.5)), ({"epsilon": "2"}, PureLoss(2.0)),
     ({"epsilon": "2", "delta": "1e-5"}, ApproxLoss(2.0, 1e-5))],
)  # fmt: skip
def test_the_claim_is_that_of_the_option_given(options, claim, tmp_path):
    names = tuple(str(tmp_path / name) for name in ("inside.npy", "outside.npy"))
    for name in names:
        np.save(name, np.arange(20.0))
    request = Request("scores", names, 0, 0.95, 1, options=options)
    assert ScoresRequest.from_request(request).claim == claim
    if options.get("mu"):
        with pytest.raises(ParameterError, match="--mu must be"):
            ScoresRequest.from_request(Request("scores", names, 0, 0.95, 1, options={"mu": "-1"}))


@pytest.mark.parametrize("split", ["coins", "fixed"])
@pytest.mark.parametrize(
    ("claim", "epsilon"),
    [(None, math.nan), (PureLoss(12.0), 12.0), (ApproxLoss(1.5, 1e-5), 1.5),
     (GaussianLoss(0.3), GaussianLoss(0.3).epsilon_at(1e-5)),
     (2 * GaussianLoss(0.2), Tight().epsilon(2 * GaussianLoss(0.2), 1e-5))],
)  # fmt: skip
def test_a_row_says_what_was_claimed_and_what_was_found(claim, epsilon, split, tmp_path):
    coins = np.random.default_rng(0).random(60) < 0.5
    names = tuple(str(tmp_path / name) for name in ("inside.npy", "outside.npy"))
    for name, chosen in zip(names, (coins, ~coins), strict=True):
        np.save(name, (np.arange(60.0) + 200 * coins)[chosen])
    [case] = scores_cases(ScoresRequest(*names, claim, 1e-5, split))
    row = case.run(Settings(1, 0.95, 3))
    found = audit_scores(*names, claim, 1e-5, 0.95, split=split, rng=3)
    assert row.subject == f"{names[0]} against {names[1]}"
    assert row.claim == pytest.approx((epsilon, 1e-5), nan_ok=True)
    assert row.epsilon_lower == row.verdict_lower == found.epsilon_lower > 1.5
    assert row.guesses == (found.right, found.guesses, found.coins)
    assert row.runs == found.coins >= found.guesses
    if claim is None or found.epsilon_lower <= epsilon < found.provable:
        assert row.outcome is Outcome.SURVIVED
    else:
        is_refuted = epsilon < found.epsilon_lower
        assert row.outcome is (Outcome.FALSIFIED if is_refuted else Outcome.INCONCLUSIVE)
    facts = dict(row.facts)
    assert facts["claim"] == ("none: the bound alone" if claim is None else repr(claim))
    assert facts["right guesses"] == f"{found.right} of {found.guesses}"
    assert ("Gaussian curves refuted" in facts) is (found.mu_lower is not None)


@pytest.mark.parametrize("split", ["coins", "fixed"])
def test_the_seed_of_a_row_is_that_of_its_settings(split, tmp_path):
    coins = np.random.default_rng(0).random(60) < 0.5
    scores = np.round(0.7 * np.random.default_rng(1).normal(size=60) + coins)  # ties are many
    names = tuple(str(tmp_path / name) for name in ("inside.npy", "outside.npy"))
    for name, chosen in zip(names, (coins, ~coins), strict=True):
        np.save(name, scores[chosen])
    [case] = scores_cases(ScoresRequest(*names, None, 1e-5, split))
    lowers = [case.run(Settings(1, 0.95, seed)).epsilon_lower for seed in (3, 4)]
    assert lowers == [
        audit_scores(*names, None, 1e-5, 0.95, split=split, rng=seed).epsilon_lower
        for seed in (3, 4)
    ]
    assert lowers[0] != lowers[1]
