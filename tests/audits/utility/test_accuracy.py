"""Too accurate to be private: noise-free local algorithms fall, honest ones never do."""

import math
import time

import numpy as np
import pytest
from scipy.stats import binom

from accountant import ParameterError
from algorithms import (
    LabelIHT,
    LabelLasso,
    LabelPrivateClassifier,
    LabelSGD,
    LocalIHT,
    PrivateLasso,
)
from audits.claims.findings import Outcome
from audits.minimax import SignedBasis, most_right
from audits.utility.accuracy import audit_accuracy
from tests.processor_time import standard

PROOF = 1 - 1e-6  # confidence of verdicts that a test relies on


def local_iht(epsilon=1.0, **more):
    return LocalIHT(epsilon=epsilon, **{"sparsity": 1, "noise_bound": 1.0, "rounds": 1} | more)


def label_iht(epsilon=0.5, **more):
    return LabelIHT(epsilon=epsilon, **{"delta": 0.0, "sparsity": 1, "y_bound": 1.0} | more)


LABELS = {
    "LabelIHT, bounded": label_iht(randomizer="bounded"),
    "LabelIHT, laplace": label_iht(randomizer="laplace"),
    "LabelIHT, gaussian": label_iht(delta=1e-5),
    "LabelIHT, made pure": label_iht(delta=1e-12, randomizer="pure"),
    "LabelLasso": LabelLasso(epsilon=0.5, delta=1e-5, y_bound=1.0, noise_bound=0.01),
    "LabelSGD": LabelSGD(epsilon=0.5, k=2, diameter=2.0),
    "LabelSGD, unary": LabelSGD(epsilon=0.5, k=2, diameter=2.0, randomizer="unary"),
    "LabelSGD, subset": LabelSGD(epsilon=0.5, k=3, diameter=2.0, randomizer="subset"),
    "LabelSGD, response": LabelSGD(epsilon=0.5, k=2, diameter=2.0, randomizer="response"),
    "LabelSGD, duchi": LabelSGD(epsilon=0.5, k=2, diameter=2.0, randomizer="duchi"),
}
RECORDS = {
    "LocalIHT": local_iht(),
    "LocalIHT, two rounds": local_iht(rounds=2),
    "LocalIHT, eight entries": local_iht(sparsity=8, true_sparsity=1),
    "LocalIHT, clipped residuals": local_iht(residual_bound=1.0),
}
every_label = pytest.mark.parametrize("algorithm", LABELS.values(), ids=LABELS.keys())
every_record = pytest.mark.parametrize("algorithm", RECORDS.values(), ids=RECORDS.keys())


def given_delta(algorithm):
    made_pure = getattr(algorithm, "randomizer", "") == "pure"
    return 0.0 if made_pure else getattr(algorithm, "delta", 0.0)


def test_the_printed_bounds():
    # methods.md 4, d = 1
    for n, p, epsilon, most in (
        (30, 64, 1.0, 0.095), (100, 256, 1.0, 0.066), (200, 512, 0.5, 0.017),
        (200, 512, 1.0, 0.063), (200, 512, 2.0, 0.337),
    ):  # fmt: skip
        found = audit_accuracy(local_iht(), n, p, epsilon, noise=0.0, runs=2, rng=0)
        assert found.most_right == pytest.approx(most, abs=6e-4)
        assert found.right == 2
        assert f"on the {2 * p} points " in found.witness
        assert f" n = {n}, p = {p}: " in found.witness
        # two runs are enough at alpha .01, where s^2 is below it
        assert (found.outcome is Outcome.FALSIFIED) == (most**2 <= 0.01)


@pytest.mark.parametrize("part", [0.0, 0.02])
def test_local_iht_without_noise_falls_in_twenty_runs(part):
    start = time.process_time()
    found = audit_accuracy(local_iht(), 200, 512, 1.0, noise=part, rng=1)
    assert standard(time.process_time() - start) < 10
    assert found.outcome is Outcome.FALSIFIED
    assert found.p_value <= 0.01
    assert "1024 points" in found.witness
    assert "one user after another" in found.witness


@every_record
def test_records_noise_free_and_honest(algorithm):
    free = audit_accuracy(algorithm, 200, 512, noise=0.0, confidence=PROOF, rng=2)
    assert free.outcome is Outcome.FALSIFIED
    assert free.epsilon == pytest.approx(1.0)
    assert free.epsilon_lower > 1.0
    # false with probability 1e-6 at most, by the audit's own confidence
    honest = audit_accuracy(algorithm, 200, 512, confidence=PROOF, rng=2)
    assert honest.outcome is Outcome.SURVIVED


@every_label
def test_labels_noise_free_and_honest(algorithm):
    delta = given_delta(algorithm)
    free = audit_accuracy(algorithm, 30, 512, 0.5, delta, noise=0.0, confidence=PROOF, rng=3)
    assert free.outcome is Outcome.FALSIFIED
    assert "labels private" in free.witness
    honest = audit_accuracy(algorithm, 30, 512, 0.5, delta, confidence=PROOF, rng=3)
    assert honest.outcome is Outcome.SURVIVED


def test_non_private_fits_fall():
    from sklearn.linear_model import Lasso

    def correlation(x, y, rng):
        return x.T @ y

    for fit in (correlation, Lasso(alpha=0.1)):
        found = audit_accuracy(fit, 200, 512, 1.0, confidence=PROOF, rng=4)
        assert found.outcome is Outcome.FALSIFIED


def test_the_classifier_as_a_function():
    def fit(x, y, rng, noise):
        made = LabelPrivateClassifier(
            epsilon=0.5 if noise else math.inf, non_private=not noise,
            method="one pass", batch=1, diameter=2.0, random_state=int(rng.integers(2**32)),
        ).fit(x, y > 0)  # fmt: skip
        return made.coef_[0]

    with pytest.warns(match="NOT private"):
        found = audit_accuracy(
            fit, 30, 256, 0.5, private="labels", noise=0.0, confidence=PROOF, rng=5
        )
    assert found.outcome is Outcome.FALSIFIED
    honest = audit_accuracy(fit, 30, 256, 0.5, private="labels", confidence=PROOF, rng=5)
    assert honest.outcome is Outcome.SURVIVED


def test_the_largest_factor_lies_between_the_printed_ones():
    found = audit_accuracy(local_iht(), 200, 512, search=7, rng=6)
    assert 0.015 < found.noise_factor < 0.06  # .02 is falsified, .05 is not
    assert f"noise times {found.noise_factor:.3g}" in found.witness
    assert found.outcome is Outcome.SURVIVED


@pytest.mark.parametrize(
    ("deviation", "search", "least", "most"),
    [(1e-3, 0, None, None), (30.0, 0, None, None), (3.0, 3, 0.0, 1.0)],
)
def test_a_noise_factor_is_only_searched_for_on_request(deviation, search, least, most):
    def noisy_correlation(x, y, rng, noise=1.0):
        return x.T @ y / len(y) + noise * deviation * rng.normal(size=x.shape[1])

    found = audit_accuracy(noisy_correlation, 200, 16, 0.1, runs=5, search=search, rng=0)
    assert (found.outcome is Outcome.FALSIFIED) == (deviation < 1)
    if search:
        assert least < found.noise_factor < most
        assert found.witness.endswith(f"noise times {found.noise_factor:.3g}")
        smaller = audit_accuracy(
            noisy_correlation, 200, 16, 0.1, runs=5, noise=found.noise_factor / 4, rng=1
        )
        assert smaller.outcome is Outcome.FALSIFIED
    else:
        assert found.noise_factor is None
        assert "noise times" not in found.witness.removeprefix("noisy_correlation (noise times 1)")


def test_a_lasso_whose_penalty_follows_the_labels_is_falsified_with_little_noise():
    found = audit_accuracy(LABELS["LabelLasso"], 30, 512, 0.5, 1e-5, search=4, rng=7)
    assert 0.2 < found.noise_factor < 0.8
    assert f"noise times {found.noise_factor:.3g}" in found.witness


def test_epsilon_lower_inverts_the_bound():
    found = audit_accuracy(local_iht(), 200, 512, 1.0, noise=0.0, rng=1)
    family = SignedBasis(512, 1.0)
    at = most_right(family, 200, found.epsilon_lower, "sequential")
    assert binom.sf(found.right - 1, found.runs, at) <= 0.01 * (1 + 1e-6)
    above = most_right(family, 200, found.epsilon_lower + 0.01, "sequential")
    assert binom.sf(found.right - 1, found.runs, above) > 0.01


def honest_settings(count, seed):
    """Random algorithms with their settings: (algorithm, n, p, epsilon, delta, separation)."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        n, p = int(rng.integers(5, 400)), int(rng.integers(2, 300))
        epsilon, d = float(np.exp(rng.uniform(-2, 1.5))), float(rng.uniform(0.3, 1.0))
        kind = int(rng.integers(5))
        if kind == 0:
            more = {"rounds": int(rng.integers(1, 4)), "sparsity": int(rng.integers(1, p + 1))}
            yield local_iht(epsilon, **more), n, p, epsilon, 0.0, d
        elif kind == 1:
            noise = str(rng.choice(["bounded", "laplace"]))
            yield label_iht(epsilon, randomizer=noise), n, p, epsilon, 0.0, d
        elif kind == 2:
            yield label_iht(epsilon, delta=1e-4), n, p, epsilon, 1e-4, d
        elif kind == 3:
            made = LabelLasso(epsilon=epsilon, delta=1e-4, y_bound=1.0, noise_bound=0.1)
            yield made, n, p, epsilon, 1e-4, d
        else:
            randomizer = str(rng.choice(["unary", "subset", "response", "duchi"]))
            classes = 3 if randomizer == "subset" else 2
            made = LabelSGD(epsilon=epsilon, k=classes, diameter=2.0, randomizer=randomizer)
            yield made, n, p, epsilon, 0.0, d


def never_falsified(count, seed):
    # all false alarms together have probability at most 1e-6
    level = 1 - 1e-6 / count
    for i, (algorithm, n, p, epsilon, delta, d) in enumerate(honest_settings(count, seed)):
        found = audit_accuracy(
            algorithm, n, p, epsilon, delta, separation=d, runs=10, confidence=level, rng=i
        )
        assert found.outcome is Outcome.SURVIVED, found.witness


def test_no_honest_algorithm_is_falsified():
    never_falsified(25, 0)


@pytest.mark.slow
def test_no_honest_algorithm_is_falsified_in_200_settings():
    never_falsified(200, 1)


@pytest.mark.slow
def test_the_best_local_protocol_known_is_not_falsified():
    """Each user asked about one random coordinate, by randomised response: nearer to the bound.

    2000 runs at (30, 4, 2): below s_max, and above chance.
    """
    n, p, epsilon = 30, 4, 2.0

    def asking(x, y, rng):
        at = rng.integers(p, size=n)
        reports = x[np.arange(n), at] * y
        reports = np.where(rng.random(n) < 1 / (1 + math.exp(-epsilon)), reports, -reports)
        return np.bincount(at, reports, minlength=p)

    found = audit_accuracy(asking, n, p, epsilon, runs=2000, confidence=PROOF, rng=8)
    assert found.outcome is Outcome.SURVIVED
    assert found.right / 2000 > 3 / (2 * p)


def test_algorithms_of_another_model_are_refused():
    with pytest.raises(ParameterError, match="asks all users together"):
        audit_accuracy(PrivateLasso(1.0, 0.0, rounds=3, fit_intercept=False), 30, 64, 1.0)

    class Twice:
        def plan(self, shape):
            return local_iht().plan(shape)

        def run(self, ledger):
            mechanism = ledger.plan.parts[0]
            for _ in range(2):
                ledger.release_each(mechanism, lambda rows: rows[0])
            return np.zeros(ledger.shape[1])

    with pytest.raises((ParameterError, RuntimeError), match=r"asks twice|plan allows"):
        audit_accuracy(Twice(), 30, 64, 1.0)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"n": 0}, "n must"), ({"p": 0}, "p must"), ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"), ({"delta": 1e-6}, "delta"), ({"runs": 0}, "runs"),
        ({"separation": 1.5}, "separation must"), ({"interaction": "full"}, "interaction"),
        ({"private": "all"}, "private"), ({"noise": -0.1}, "noise"), ({"confidence": 1}, "confid"),
    ],
)  # fmt: skip
def test_bad_settings_are_refused(changed, words):
    given = {"algorithm": local_iht(), "n": 30, "p": 64, "epsilon": 1.0} | changed
    with pytest.raises(ParameterError, match=words):
        audit_accuracy(**given)


def test_a_function_must_come_with_its_epsilon():
    with pytest.raises(ParameterError, match="no plan to state it"):
        audit_accuracy(lambda x, y, rng: x[0], 30, 64)


# the bound for labels
