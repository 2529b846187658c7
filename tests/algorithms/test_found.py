"""What an adversarial reader found, and must not come back."""

import math
import pickle
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from accountant import Chunks, Ledger, Parallel, ParameterError, Repeat, Tight
from algorithms import (
    FrankWolfe,
    GaussianFrankWolfe,
    LabelIHT,
    LabelPrivateClassifier,
    LabelSGD,
    LocalIHT,
    PrivateLasso,
    PrivateLogisticLasso,
    SignVote,
    SparseERM,
    ThresholdedMean,
    ThresholdedRegression,
    best_randomizer,
)
from algorithms.base.glm_losses import DeclaredLoss
from algorithms.base.non_private import NotPrivateWarning
from algorithms.frank_wolfe.convex_sets import L2Ball
from algorithms.label_privacy.gradient_span import GradientSpan
from algorithms.label_privacy.label_randomizers import randomizer_of
from algorithms.label_privacy.report_decoders import decoder_of
from mechanisms import Laplace

SIGNS = np.where(np.arange(64) % 2, 1.0, -1.0)
CENTRAL = {"epsilon": 1.0, "delta": 1e-5, "sparsity": 3, "random_state": 0}


@pytest.mark.parametrize(
    ("dtype", "value"), [(bool, True), (np.uint8, 16), (np.int64, 2**32), (np.float32, 1e30)]
)
def test_rows_of_any_kind_of_number_are_shortened(dtype, value):
    some, none = np.zeros((64, 100), dtype), np.zeros((64, 100), dtype)
    some[0] = value
    made = SparseERM(rounds=1, **CENTRAL)
    plan = made.plan(some.shape)

    def outputs(x):
        for data in ((x, SIGNS), Chunks(lambda: [(x, SIGNS)], x.shape)):
            ledger = Ledger(data, plan, rng=0)
            made.run(ledger)
            yield ledger.transcript[0].output

    for kind in (np.asarray, sparse.csr_array):
        both = [list(outputs(kind(x))) for x in (some, none)]
        moved = [np.linalg.norm(one - other) for one in both[0] for other in both[1]]
        assert 0.2 * plan.part.sensitivity < max(moved) <= plan.part.sensitivity * (1 + 1e-9)


def test_features_of_small_integers_have_their_lengths():
    x = np.full((40, 3), 200, dtype=np.uint8)
    LabelSGD(epsilon=1.0, classes=2, diameter=1.0, random_state=0).fit(x, np.arange(40) % 2)
    pieces = Chunks(lambda: [(x, np.arange(40) % 2)], x.shape)
    LabelSGD(epsilon=1.0, classes=2, diameter=1.0, random_state=0).fit(pieces)


def test_chunks_hand_out_the_users_that_were_charged_in_any_order():
    data = np.arange(100.0, 108.0)
    rng = np.random.default_rng(0)
    for _ in range(200):
        who = rng.permutation(8)[: rng.integers(1, 9)]
        pieces = Chunks(lambda: [data[:4], data[4:4], data[4:7], data[7:]], (8,))
        ledger = Ledger(pieces, Parallel([Laplace(1e-9)] * 2), rng=0)
        seen = ledger.release_each(ledger.plan.parts[0], np.copy, who)
        assert np.round(seen).tolist() == data[who].tolist()
    with pytest.raises(ParameterError, match="the 9 of the shape"):
        Chunks(lambda: [data], (9,))[np.array([8, 0])]
    assert Chunks(lambda: [data], (8,))[0:0].shape == (0,)
    assert Chunks(lambda: [data], (8,))[np.array([], dtype=int)].shape == (0,)


def test_pieces_that_come_in_another_order_move_no_gradient_further():
    x = np.full((64, 10), 1e-6)
    x[:4] = 100.0
    count = iter(range(100))

    def shuffled():
        order = np.random.default_rng(next(count)).permutation(64)
        yield x[order], SIGNS[order]

    made = SparseERM(rounds=5, **CENTRAL).fit(Chunks(shuffled, x.shape))
    for entry in made.transcript_:  # the mean gradient is at most 1, noise as declared
        assert np.linalg.norm(entry.output) < 1 + 12 * entry.mechanism.scale * math.sqrt(10)


def test_labels_are_within_their_bound_behind_any_gate():
    x = np.random.default_rng(0).normal(size=(64, 10))
    made = SparseERM(rounds=1, **CENTRAL)
    plan, far = made.plan(x.shape), np.where(np.arange(64) == 0, 1e4, SIGNS)
    outputs = []
    for y in (SIGNS, far):
        ledger = Ledger((x, y), plan, rng=0)
        made.run(ledger)
        outputs.append(ledger.transcript[0].output)
    assert np.linalg.norm(outputs[0] - outputs[1]) <= plan.part.sensitivity * (1 + 1e-9)


def test_published_constants_that_break_the_claim_are_refused():
    with pytest.raises(ParameterError, match="small enough for the published constants"):
        ThresholdedMean(20.0, 1e-3, 100, 1.0, form="published").plan((200, 200))
    made = ThresholdedMean(1.0, 1e-5, 10, 1.0, form="published")
    assert Tight().epsilon(made.plan((200, 200)), 1e-5) <= 1.0


def test_clones_share_a_generator_and_an_executor():
    rng, x = np.random.default_rng(5), np.ones((30, 2))
    made = LabelIHT(epsilon=1.0, delta=1e-5, sparsity=1, label_bound=1.0, random_state=rng)
    twins = [clone(made).fit(x, np.zeros(30)) for _ in range(2)]
    first, second = (one.transcript_[0].output for one in twins)
    assert not np.any(first == second)
    with ThreadPoolExecutor(1) as pool:
        assert clone(SignVote(1.0, 1e-3, 2, executor=pool)).executor is pool
    again = pickle.loads(pickle.dumps(twins[0]))
    assert again.coef_.tobytes() == twins[0].coef_.tobytes()


def test_a_legacy_random_state_gives_more_than_a_short_seed():
    x, y = np.ones((30, 2)), np.zeros(30)
    made = LabelIHT(epsilon=1.0, delta=1e-5, sparsity=1, label_bound=1.0)
    made.random_state = np.random.RandomState(7)
    first = made.fit(x, y).transcript_[0].output
    made.random_state = int(np.random.RandomState(7).randint(2**31))
    assert not np.any(made.fit(x, y).transcript_[0].output == first)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_one_huge_row_decides_nothing_about_success(loss, kind):
    x = np.random.default_rng(0).normal(size=(64, 5))
    x[3] = [1.7e308, -1.7e308, 1.7e308, 0.0, -1.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = SparseERM(rounds=6, loss=loss, **CENTRAL)
        ledger = Ledger((kind(x), SIGNS), made.plan(x.shape), rng=0)
        assert np.isfinite(made.run(ledger)).all()
        ball = GaussianFrankWolfe("squared", L2Ball(1e10), 1.0, 1e-5, rounds=4, random_state=0)
        assert np.isfinite(ball.run(Ledger((kind(x), SIGNS), ball.plan(x.shape), rng=0))).all()


@pytest.mark.parametrize("link", ["identity", "8x + cos x"])
def test_one_huge_target_decides_nothing_about_success(link):
    x, y = np.ones((64, 3)), SIGNS.copy()
    y[3] = 1.7e308
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = LocalIHT(epsilon=1.0, sparsity=2, noise_bound=0.1, rounds=2, link=link)
        assert np.isfinite(made.run(Ledger((x, y), made.plan(x.shape), rng=0))).all()


@pytest.mark.parametrize(
    "gradients",
    [lambda theta, x, y: x.sum(axis=0), lambda theta, x, y: np.repeat(x, 5, axis=0),
     lambda theta, x, y: x[:, :1]],
)  # fmt: skip
def test_a_declared_loss_gives_one_gradient_for_each_record(gradients):
    made = FrankWolfe(DeclaredLoss(gradients, 1.0, 1.0), np.eye(5), 1.0, 1e-5, rounds=2)
    with pytest.raises(ParameterError, match="one gradient for each record"):
        made.fit(np.ones((64, 5)), SIGNS)


def test_errors_and_warnings_show_no_labels():
    x = np.ones((64, 3))
    for bad in (SIGNS * (1.234 + 2j), np.array([1.5, "a"] * 32, dtype=object)):
        with pytest.raises((ParameterError, TypeError)) as caught:
            SparseERM(rounds=1, **CENTRAL).fit(x, bad)
        assert "1.234" not in str(caught.value)
    with pytest.raises(ParameterError) as caught:
        SparseERM(rounds=1, **CENTRAL).fit(np.array(3.14159), SIGNS)
    assert "3.14" not in str(caught.value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = LabelPrivateClassifier(1.0, classes=range(100), random_state=0)
        made.fit(np.random.default_rng(0).normal(size=(64, 3)), np.arange(64))


def test_marks_follow_the_fit_and_not_the_parameters():
    x, y = np.ones((30, 2)), np.zeros(30)
    made = LabelIHT(
        epsilon=math.inf, non_private=True, delta=1e-5, sparsity=1, label_bound=1.0, random_state=0
    )
    with pytest.warns(NotPrivateWarning):
        made.fit(x, y)
    made.set_params(non_private=False, epsilon=1.0)
    with pytest.warns(NotPrivateWarning, match="predictions"):
        made.predict(x)
    assert "NOT PRIVATE" in made.summary()
    made.fit(x, y).set_params(non_private=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made.predict(x)
    assert "NOT PRIVATE" not in made.summary()


@pytest.mark.parametrize(
    "made",
    [SparseERM(rounds=2, **CENTRAL), PrivateLasso(1.0, 1e-5, rounds=2),
     LabelIHT(epsilon=1.0, delta=1e-5, sparsity=1, label_bound=1.0),
     LocalIHT(epsilon=1.0, sparsity=1, noise_bound=0.1)],
    ids=lambda one: type(one).__name__,
)  # fmt: skip
def test_pieces_of_the_wrong_kind_are_refused_in_words(made):
    x = np.ones((64, 3))
    wrong = [(x, SIGNS[:, None]), (x.astype(str), SIGNS), (x * 1j, SIGNS), (x, SIGNS, SIGNS), x]
    for piece in wrong:
        with pytest.raises(ParameterError, match=r"a pair of numbers|rows as in"):
            made.fit(Chunks(lambda piece=piece: [piece], x.shape))
    if not isinstance(made, LocalIHT):
        with pytest.raises(ParameterError, match="starts anew"):
            made.fit(Chunks([(x, SIGNS)], x.shape))
        assert not hasattr(made, "ledger_")


def test_whoever_cannot_stream_says_so():
    pieces = Chunks(lambda: [(np.ones((8, 2)), SIGNS[:8])], (8, 2))
    for made in (FrankWolfe("squared", np.eye(2), 1.0, 1e-5),
                 GaussianFrankWolfe("squared", L2Ball(1.0), 1.0, 1e-5)):  # fmt: skip
        with pytest.raises(ParameterError, match="in memory"):
            made.fit(pieces, SIGNS[:8])
    made = ThresholdedRegression(1.0, 1e-5, 1, 1.0, 1.0, 1.0)
    with pytest.raises(ParameterError, match="a target for each record"):
        made.fit([(np.ones((4, 2)), np.ones((4, 1)))] * 3)


@pytest.mark.parametrize("kind", [PrivateLasso, PrivateLogisticLasso])
def test_the_lasso_streams_from_other_processes(kind):
    x = np.random.default_rng(0).uniform(-1, 1, (64, 4))
    pieces = Chunks(lambda: iter([(x[:30], SIGNS[:30]), (x[30:], SIGNS[30:])]), x.shape)
    made = kind(1.0, 1e-5, rounds=2, random_state=0)
    expected = made.fit(pieces).coef_.tobytes()
    with ProcessPoolExecutor(1) as pool:
        assert made.fit(pieces, executor=pool).coef_.tobytes() == expected


@pytest.mark.parametrize(("classes", "rank"), [(3, 1), (5, 1), (5, 2), (6, 5)])
def test_duchis_moments_count_the_span_alone(classes, rank):
    rng = np.random.default_rng(classes)
    gradients = rng.normal(size=(classes, rank)) @ rng.normal(size=(rank, rank))
    gram = gradients @ gradients.T
    analyser = decoder_of(randomizer_of("duchi", classes, 1.0), classes)
    span, draws = GradientSpan.from_gram(gram[None]), 40_000
    for label in range(classes):
        corner = span.label_corners(np.array([label]))[0]
        reports = analyser.mechanism.release(corner, rng, size=draws)
        estimates = span.coefficients(reports)
        squares = np.einsum("ij,jk,ik->i", estimates, gram, estimates)
        # six standard errors: a false alarm of 2e-9 a label
        expected = analyser.second_moments(gram)[label]
        assert squares.mean() == pytest.approx(expected, abs=6 * squares.std() / math.sqrt(draws))


def test_gradients_along_one_line_are_best_told_by_duchi():
    line = np.linspace(-1, 1, 20)[:, None]
    assert best_randomizer(20, 1.0, line) == "duchi"


def test_a_parallel_of_many_equal_parts_is_reversed_at_once():
    one = Laplace(1.0)
    plan = Parallel([one] * 1_000_000)
    turned = plan.reversed
    assert turned.parts[0] is turned.parts[-1]
    assert Tight().epsilon(Repeat(plan, 1), 0.0) == pytest.approx(1.0)
