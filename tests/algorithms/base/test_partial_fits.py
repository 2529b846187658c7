"""Fits in parts: a person pays for one call, reports add up, and refused calls change nothing."""

import pickle

import numpy as np
import pytest
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import learning_curve
from sklearn.multiclass import OneVsRestClassifier

from accountant import Budget, BudgetExceeded, Parallel, ParameterError, Tight
from algorithms import LabelPrivateClassifier, LabelSGD, LocalHistogram, LocalMean
from algorithms.label_privacy.label_losses import label_loss_of
from audits import replay
from audits.algorithm_runs.fits import published

RNG = np.random.default_rng(2)
X = RNG.uniform(-0.5, 0.5, (900, 3))
SCORES = X @ [4.0, -2.0, 0.0]
CODES = (SCORES + 0.2 * RNG.logistic(size=900) > 0).astype(int)
NAMES = np.where(CODES > 0, "yes", "no")
LABELS = RNG.choice(4, 900, p=[0.5, 0.3, 0.1, 0.1])
ONE_PASS = {"method": "one pass", "batch": 20, "diameter": 20.0, "random_state": 0}


def histogram(**settings):
    return LocalHistogram(**{"k": 4, "epsilon": 2.0, "random_state": 0} | settings)


def mean(**settings):
    return LocalMean(**{"epsilon": 2.0, "random_state": 0} | settings)


def descent(**settings):
    usual = {"epsilon": 2.0, "k": 2, "diameter": 20.0, "batch": 20, "random_state": 0}
    return LabelSGD(**usual | settings)


def classifier(**settings):
    return LabelPrivateClassifier(
        **{"epsilon": 2.0, "classes": ["no", "yes"]} | ONE_PASS | settings
    )


STREAMS = {"histogram": (histogram, (LABELS,)), "mean": (mean, (X,)),
           "descent": (descent, (X, CODES)), "classifier": (classifier, (X, NAMES))}  # fmt: skip
EVERY = pytest.mark.parametrize("name", STREAMS)
RESULTS = {"histogram": "shares_", "mean": "mean_", "descent": "coef_", "classifier": "coef_"}


def made_of(name, **settings):
    return STREAMS[name][0](**settings)


def part(name, first, last):
    return tuple(array[first:last] for array in STREAMS[name][1])


def result(name, made):
    return getattr(made, RESULTS[name])


def streamed(name, made=None, calls=3):
    """An estimator after calls of as many persons each."""
    made = made_of(name) if made is None else made
    size = 900 // calls
    for first in range(0, 900, size):
        assert made.partial_fit(*part(name, first, first + size)) is made
    return made


def optimiser(made):
    """What counts the users."""
    return getattr(made, "optimiser_", made)


@EVERY
def test_a_person_pays_for_one_call(name):
    made = streamed(name)
    assert isinstance(made.plan_, Parallel)
    assert len(made.plan_.parts) == 3
    shape = STREAMS[name][1][0][:300].shape
    assert set(made.plan_.parts) == {made_of(name).plan(shape)}
    assert Tight().epsilon(made.plan_, 0.0) == Tight().epsilon(made.plan_.parts[0], 0.0) <= 2.0
    assert "(2, 0)-differential privacy" in made.summary() or "(1.9999" in made.summary()
    assert made.ledger_.plan == made.plan_.parts[-1]
    assert optimiser(made).n_samples_seen_ == 900


@EVERY
def test_the_dearest_call_is_the_cost_of_all(name):
    made = streamed(name)
    cheap = made_of(name, epsilon=1.0)
    cheap.fit(*part(name, 0, 300))
    both = Parallel([cheap.plan_, made.plan_])
    assert Tight().epsilon(both, 0.0) == Tight().epsilon(made.plan_, 0.0)


@EVERY
def test_a_fit_starts_anew(name):
    made = streamed(name)
    fresh = made_of(name).fit(*part(name, 0, 400))
    assert np.array_equal(result(name, made.fit(*part(name, 0, 400))), result(name, fresh))
    assert made.plan_ == fresh.plan_
    assert optimiser(made).n_samples_seen_ == 400
    made.partial_fit(*part(name, 400, 900))
    assert optimiser(made).n_samples_seen_ == 900
    assert len(made.plan_.parts) == 2


@pytest.mark.parametrize("name", ["histogram", "mean"])
def test_one_call_is_a_fit_and_more_are_the_sum_of_their_reports(name):
    first = made_of(name).partial_fit(*part(name, 0, 500))
    assert np.array_equal(result(name, first), result(name, made_of(name).fit(*part(name, 0, 500))))
    transcript = list(first.transcript_)
    made = first.partial_fit(*part(name, 500, 800))
    transcript += made.transcript_
    made = first.partial_fit(*part(name, 800, 900))
    transcript += made.transcript_
    mechanism = transcript[0].mechanism
    reports = np.concatenate([np.asarray(entry.output) for entry in transcript])
    assert len(reports) == made.n_samples_seen_ == 900
    if name == "histogram":
        exact = mechanism.estimate(mechanism.support_counts(reports), 900)
        positive = exact[made.shares_ > 0]
        apart = made.shares_[made.shares_ > 0] - positive
        assert apart == pytest.approx(np.full(len(apart), apart[0]), abs=1e-12)
        assert made.shares_.sum() == pytest.approx(1.0)
        return
    assert made.mean_ == pytest.approx(reports.mean(axis=0), rel=1e-12)
    half = 1.959963984540054 * reports.std(axis=0, ddof=1) / 30
    assert made.interval() == pytest.approx(np.stack([made.mean_ - half, made.mean_ + half], 1))


@EVERY
def test_noise_differs_between_calls_and_a_stream_with_a_seed_repeats(name):
    made, again = streamed(name), streamed(name)
    assert np.array_equal(result(name, made), result(name, again))
    same = part(name, 0, 300)
    both = made_of(name).partial_fit(*same)
    first = [np.asarray(entry.output) for entry in both.transcript_]
    second = [np.asarray(entry.output) for entry in both.partial_fit(*same).transcript_]
    assert not all(map(np.array_equal, first, second))
    shared = made_of(name, random_state=np.random.default_rng(0))
    one = [np.asarray(entry.output) for entry in shared.partial_fit(*same).transcript_]
    other = [np.asarray(entry.output) for entry in shared.partial_fit(*same).transcript_]
    assert not all(map(np.array_equal, one, other))


@EVERY
def test_a_refused_call_changes_nothing(name):
    made = streamed(name, calls=2)
    expected = result(name, made_of_copy(made).partial_fit(*part(name, 0, 300))).copy()
    before = repr(published(made))
    refused = [
        ({}, [np.ones((30, 7)), *part(name, 0, 30)[1:]]),  # of other features
        ({}, [np.array(["a"] * 30), *part(name, 0, 30)[1:]]),
        ({"ledger": Budget(0.1)}, part(name, 0, 30)),
        ({"ledger": "a budget"}, part(name, 0, 30)),
    ]
    for settings, data in refused:
        with pytest.raises((ParameterError, BudgetExceeded)):
            made.partial_fit(*data, **settings)
        assert repr(published(made)) == before
    made.set_params(epsilon=1.0)
    with pytest.raises(ParameterError, match=r"randomizer must be .*, that of earlier calls"):
        made.partial_fit(*part(name, 0, 300))
    made.set_params(epsilon=2.0)
    assert np.array_equal(result(name, made.partial_fit(*part(name, 0, 300))), expected)


def made_of_copy(made):
    """The estimator as another process has it."""
    return pickle.loads(pickle.dumps(made))


@EVERY
def test_each_call_is_charged_to_the_ledger_of_its_persons(name):
    made, own, other = made_of(name), Budget(2.5), Budget(2.0)
    made.partial_fit(*part(name, 0, 300), ledger=own)
    made.partial_fit(*part(name, 300, 600), ledger=other)
    made.partial_fit(*part(name, 600, 700))
    with pytest.raises(BudgetExceeded):  # a shared one has the sum
        made.partial_fit(*part(name, 700, 900), ledger=own)
    assert optimiser(made).n_samples_seen_ == 700


ODD = {"histogram": lambda label: 3 - label, "mean": lambda row: -9 * row,
       "descent": lambda label: 1 - label,
       "classifier": lambda label: "yes" if label == "no" else "no"}  # fmt: skip


def in_two_calls(kind):
    """An estimator whose fit is two calls."""

    class InTwoCalls(kind):
        def fit(self, *data, ledger=None):
            super().fit(*(array[:20] for array in data), ledger=ledger)
            return self.partial_fit(*(array[20:] for array in data), ledger=ledger)

    return InTwoCalls


@EVERY
def test_a_stream_shows_no_more_than_its_reports(name):
    made = made_of(name)
    kind = in_two_calls(type(made))
    made = kind(**made.get_params() | {"epsilon": 1.0})
    data = part(name, 0, 40)
    public, private = data[0] if len(data) > 1 else None, data[-1]
    for row in (3, 33):
        other = private.copy()
        other[row] = ODD[name](private[row])
        found = replay(made, private, other, public=public, rng=0)
        assert found.data_independent, found.witness


@pytest.mark.filterwarnings("ignore::algorithms.base.non_private.NotPrivateWarning")
def test_steps_of_a_stream_fall_as_the_root_of_their_number():
    """Batches as large as a call have no order; the rows of the third call are the longest."""
    made = descent(epsilon=np.inf, non_private=True, diameter=1.0, batch=20)
    loss, theta, total = label_loss_of("logistic"), np.zeros((2, 3)), np.zeros((2, 3))
    longest = 0.0
    for t, reach in enumerate([1.0, 0.5, 3.0, 0.5, 0.5], start=1):
        rows, labels = reach * X[20 * t : 20 * t + 20], CODES[20 * t : 20 * t + 20]
        made.partial_fit(rows, labels)
        longest = max(longest, np.linalg.norm(rows, axis=1).max())
        lipschitz = loss.lipschitz(longest, 2)
        assert made.lipschitz_ == pytest.approx(lipschitz)
        total += theta
        assert made.coef_ == pytest.approx(total / t, abs=1e-12)
        gradient, _ = loss.estimate(theta, rows, np.eye(2)[labels])
        theta = theta - 1.0 / (lipschitz * np.sqrt(2 * t)) * gradient / 20
        theta *= min(1.0, 0.5 / np.linalg.norm(theta))
    assert np.abs(theta).max() > 0.1


def test_a_stream_learns_as_well_as_a_pass():
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (20_000, 4))
    labels = (rows @ [2.0, -1.0, 0.0, 0.0] + 0.3 * rng.logistic(size=20_000) > 0).astype(int)
    made = classifier(epsilon=1.0, classes=None, batch=50)
    for first in range(0, 20_000, 1000):
        some = slice(first, first + 1000)
        made.partial_fit(rows[some], labels[some], classes=[0, 1])
    whole = classifier(epsilon=1.0, classes=[0, 1], batch=50).fit(rows, labels)
    assert made.score(rows, labels) > whole.score(rows, labels) - 0.01 > 0.88


def test_classes_are_those_of_the_first_call():
    made = classifier(classes=None)
    with pytest.raises(ParameterError, match="classes must be a list of all labels"):
        made.partial_fit(X[:50], NAMES[:50])
    made.partial_fit(X[:50], NAMES[:50], classes=["yes", "no"])
    assert made.classes_.tolist() == ["no", "yes"]
    made.partial_fit(X[50:90], NAMES[50:90])
    made.partial_fit(X[90:99], NAMES[90:99], classes=["no", "yes"])  # fewer than a batch
    assert set(made.predict(X)) <= {"no", "yes"}
    assert made.predict_proba(X).shape == (900, 2)
    with pytest.raises(ParameterError, match="as in the first call"):
        made.partial_fit(X[99:120], NAMES[99:120], classes=["no", "yes", "maybe"])
    with pytest.raises(ValueError, match="X has 2 features"):
        made.partial_fit(X[99:120, :2], NAMES[99:120])
    assert made.optimiser_.n_samples_seen_ == 99
    assert not hasattr(LabelPrivateClassifier(1.0), "partial_fit")  # by the likelihood


def test_routines_around_parts_of_a_fit():
    selection = SelectFromModel(descent()).partial_fit(X[:300], CODES[:300])
    assert selection.estimator_.n_samples_seen_ == 300
    with pytest.raises(BudgetExceeded, match="learning_curve"):
        learning_curve(classifier(), X, NAMES, exploit_incremental_learning=True, cv=2,
                       error_score="raise")  # fmt: skip
    many = OneVsRestClassifier(classifier(classes=[0, 1]))
    with pytest.raises(BudgetExceeded, match="OneVsRestClassifier"):
        many.partial_fit(X, LABELS, classes=[0, 1, 2, 3])
