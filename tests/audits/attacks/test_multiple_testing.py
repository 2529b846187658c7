"""Many tests under one error rate."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom

from accountant import ParameterError, PureLoss
from audits import audit_family
from audits.attacks import multiple_testing as families
from audits.claims.findings import Outcome
from mechanisms import Laplace

ONE = PureLoss(1.0)
PAIRS = [(0.0, 1.0), (0.0, 0.5), (1.0, 0.0)]


@pytest.fixture(autouse=True)
def _without_the_collections_of_statsmodels(monkeypatch):
    # `multipletests` collects garbage at every call, which takes longer than all else in a test
    monkeypatch.setattr("gc.collect", lambda *_: 0)


def fine(value, rng, size):
    return value + rng.laplace(size=size)


def worse_when_high(value, rng, size):
    return value + rng.laplace(scale=0.5 if value > 5 else 1.0, size=size)


def test_one_bad_pair_among_many_is_found_and_named():
    pairs = [(float(k), float(k + 1)) for k in range(10)]
    found = audit_family(worse_when_high, pairs, ONE, runs=200_000, confidence=1 - 1e-6, rng=0)
    assert found.outcome is Outcome.FALSIFIED
    names = [one.name for one in found.falsified]
    # value 5 has scale 1 and 6 has 0.5, so that even the pair (5, 6) tells
    assert names == [f"{k} against {k + 1}, PureLoss(epsilon=1.0)" for k in (5, 6, 7, 8, 9)]
    assert found.worst in found.falsified
    assert found.witness.startswith("5 against 6")
    assert {one.finding.outcome for one in found.members[:5]} == {Outcome.SURVIVED}


def test_holm_lets_the_rest_share_the_error():
    def fell(*chances):
        tests = [SimpleNamespace(refutes=lambda level, p=p: p <= 1 - level) for p in chances]
        return families._holm_rejections(tests, 0.05)

    assert fell(0.01, 0.04) == {0, 1}  # .04 is above a half of the error, and fits the rest
    assert fell(0.03, 0.04) == set()
    assert fell(0.04, 0.001, 0.9, 0.012) == {1, 3}  # of four: 1/80, then 1/60, then 1/40
    assert fell(0.049) == {0}


def step_down(chances, error):
    """Holm (1979), written again: the least chance first, until one is too large."""
    fell = set()
    for place, at in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        if chances[at] > error / (len(chances) - place):
            break
        fell.add(at)
    return fell


def test_the_library_rejects_what_the_steps_of_holm_reject():
    rng = np.random.default_rng(0)
    sizes = []
    for _ in range(300):
        tests, error = int(rng.integers(1, 12)), float(rng.choice([0.5, 0.05, 1e-6]))
        chances = list(error * rng.random(tests) * rng.choice([0.1, 0.5, 2.0]))
        findings = [SimpleNamespace(refutes=lambda level, p=p: 1 - level >= p) for p in chances]
        fell = families._holm_rejections(findings, error)
        assert fell == step_down(chances, error)
        sizes.append((len(fell), tests))
    # all, none and some fell
    assert {0} < {count for count, _ in sizes}
    assert sum(0 < count < tests for count, tests in sizes) > 20


def test_events_are_members_of_the_family():
    def leaks_its_sign(value, rng, size):
        noise = rng.laplace(size=size)
        return np.stack([noise, np.where(rng.random(size) < 0.02, value, 0.5)], axis=1)

    events = {"the mark": lambda outputs: outputs[:, 1], "the noise": lambda outputs: outputs[:, 0]}
    found = audit_family(
        leaks_its_sign, [(0.0, 1.0)], ONE, events, runs=60_000, confidence=1 - 1e-6, rng=1
    )
    assert len(found.members) == 3
    assert any("by the mark" in one.name for one in found.falsified)
    assert not any("by the noise" in one.name for one in found.falsified)


def test_a_mechanism_on_pairs_of_its_own():
    found = audit_family(Laplace(1.0), PAIRS, rng=1, runs=60_000, claims=Laplace(1.0).loss)
    assert found.outcome is Outcome.SURVIVED
    assert 0.9 < found.epsilon_lower <= 1.0


def response(value, rng, size):
    """Randomised response, at exactly epsilon 1."""
    return np.where(rng.random(size) < np.e / (1 + np.e), value, 1 - value)


REAL_PAIRS = [(0.0, 1.0), (1.0, 2.0), (2.0, 3.0), (5.0, 4.0), (3.0, 2.0)]


# honest at exactly the claim: any alarm in a family counts; chance 1e-6 of a failure
@pytest.mark.parametrize(
    ("release", "pairs", "repeats"),
    [
        # where each of ten tests has the whole error of a family, 15 families have an alarm
        (response, [(0, 1), (1, 0)] * 5, 40),
        pytest.param(fine, REAL_PAIRS, 150, marks=pytest.mark.slow),
    ],
)
def test_family_wise_false_alarms_stay_within_the_rate(release, pairs, repeats):
    alarms = 0
    for seed in range(repeats):
        found = audit_family(release, pairs, ONE, runs=5_000, rng=seed)
        alarms += bool(found.falsified) or found.epsilon_lower > 1.0
    assert alarms <= binom.ppf(1 - 1e-6, repeats, 0.05)


def test_the_same_seed_gives_the_same_family():
    one, two = (audit_family(fine, PAIRS, ONE, runs=6_000, rng=7) for _ in range(2))
    assert [m.finding.guesses for m in one.members] == [m.finding.guesses for m in two.members]
    assert one.seed == 7


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"pairs": []}, "at least one pair"),
        ({"claims": []}, "and one claim"),
        ({"claims": ["1.0"]}, "claim"),
        ({"runs": 200}, "at least 300"),
        ({"confidence": 1.0}, "confidence"),
        ({"events": {"odd": 3}}, "events['odd']"),
        ({"events": {"short": lambda outputs: outputs[:1]}}, "events['short']"),
    ],
)
def test_nonsense_is_refused(change, word):
    given = {"pairs": PAIRS, "claims": ONE, "runs": 6_000, **change}
    with pytest.raises(ParameterError, match=word.replace("[", r"\[")):
        audit_family(fine, rng=0, **given)
