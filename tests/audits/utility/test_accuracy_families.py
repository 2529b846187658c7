"""Too accurate to be private, on means, histograms and selections: the same audit."""

import numpy as np
import pytest

from accountant import ParameterError
from algorithms import LocalHistogram, LocalMean, PrivateMean, PrivateSelection
from audits import audit_accuracy
from audits.claims.findings import Outcome
from audits.minimax.bounds.selection import FewVotes
from audits.minimax.families.paired_shares import PairedShares
from audits.minimax.families.sign_means import SignCopies, SignMeans

SURE = 1 - 1e-6  # of every verdict below, so that honest ones fall with chance 1e-6 at most
CASES = {
    "local mean": (LocalMean(epsilon=1.0), SignMeans(64), 60),
    "local histogram": (LocalHistogram(k=64, epsilon=1.0), PairedShares(64), 500),
    "central mean": (PrivateMean(epsilon=1.0), SignCopies(64, 60, 10), 60),
    "selection": (PrivateSelection(epsilon=0.5), FewVotes(20, 50, 3), 50),
}


@pytest.mark.parametrize("name", CASES)
def test_without_noise_it_is_falsified(name):
    algorithm, family, n = CASES[name]
    found = audit_accuracy(algorithm, n, family=family, noise=0.0, confidence=SURE, rng=1)
    assert found.outcome is Outcome.FALSIFIED
    assert found.right == found.runs
    assert found.noise == 0.0
    assert found.epsilon_lower > found.epsilon
    assert type(family).__name__ in found.witness


@pytest.mark.parametrize("name", CASES)
def test_with_its_noise_it_is_not(name):
    algorithm, family, n = CASES[name]
    found = audit_accuracy(algorithm, n, family=family, confidence=SURE, runs=40, rng=2)
    assert found.outcome is Outcome.SURVIVED
    assert found.noise == 1.0
    assert found.epsilon_lower <= found.epsilon


@pytest.mark.parametrize(("name", "least"), [("local mean", 0.05), ("selection", 0.1)])
def test_the_largest_part_of_the_noise_at_which_it_is_falsified(name, least):
    algorithm, family, n = CASES[name]
    found = audit_accuracy(algorithm, n, family=family, noise=0.0, search=6, rng=3)
    assert least < found.noise_factor < 1


def test_a_plain_function_and_a_delta():
    def best(scores, rng):
        return scores.sum(axis=0).argmax()

    family = FewVotes(20, 50, 3)
    found = audit_accuracy(best, 50, epsilon=0.5, delta=1e-6, family=family, rng=1)
    assert found.outcome is Outcome.FALSIFIED
    assert "central" in found.witness


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"p": 3}, "left out where a family is given"),
        ({"private": "labels"}, "left out"),
        ({"delta": 1e-6}, "0 in the local model"),
        ({"family": object()}, "most_right"),
        ({"noise": 2.0}, "noise"),
        ({"algorithm": PrivateMean(epsilon=1.0)}, "local, with one report of each user"),
        ({"algorithm": lambda x, rng: x[0], "epsilon": None}, "no plan"),
        ({"algorithm": lambda x, rng: x[0] * np.nan, "epsilon": 1.0}, "not finite"),
        ({"family": None, "p": 3, "separation": 0.0}, "separation"),
        ({"family": None, "p": 1 << 20, "n": 1 << 12}, "numbers, which a run holds"),
    ],
)
def test_nonsense_is_refused(change, word):
    given = {"algorithm": LocalMean(epsilon=1.0), "n": 60, "family": SignMeans(64), **change}
    with pytest.raises(ParameterError, match=word):
        audit_accuracy(
            given.pop("algorithm"), given.pop("n"), rng=np.random.default_rng(0), **given
        )
