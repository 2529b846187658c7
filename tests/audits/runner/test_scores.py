"""The audit of two files of scores: its claim is what the options say."""

import numpy as np
import pytest

from accountant import ApproxLoss, GaussianLoss, ParameterError, PureLoss
from audits.results.result_file import Request
from audits.runner.scores import ScoresRequest


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
