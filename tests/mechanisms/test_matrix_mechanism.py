"""Matrix mechanisms: published costs, the released pair, decoders, and what holds a mechanism."""

import math
import pickle

import numpy as np
import pytest

from accountant import (
    BandedMatrix,
    BinaryTree,
    Budget,
    BufferedToeplitz,
    Filter,
    FixedEpochs,
    Ledger,
    MinSeparation,
    Once,
    ParameterError,
    PrivateValueError,
    StrategyMatrix,
    Tight,
    Toeplitz,
    calibrate,
    from_json,
    read_plan,
    to_json,
    write_plan,
)
from mechanisms import Gaussian, MatrixMechanism

RUNS = [
    MatrixMechanism(BinaryTree((5, 4)), 1.5, FixedEpochs(3), dimension=2),
    MatrixMechanism(Toeplitz((1.0, 0.6, 0.3), 7), 2.0, MinSeparation(3, 2), decoder="steps"),
    MatrixMechanism(StrategyMatrix(np.tri(4)), 1.0, MinSeparation(2, 2), 0.5, "idealised"),
    MatrixMechanism(BufferedToeplitz((0.9,), (0.4,), 6), 3.0, Once(), decoder="rows"),
    MatrixMechanism(BandedMatrix([[2.0, 1.0, 3.0], [0.5, 1.0, 0.0]]), 1.0, MinSeparation(2, 2)),
]
every_run = pytest.mark.parametrize("run", RUNS, ids=repr)


# Kairouz et al. (2021) print 19.74 and 2.04, by Renyi divergences
@pytest.mark.parametrize(("noise", "cost"), [(1.13, 17.666751), (8.83, 1.648659)])
def test_a_tree_of_1600_steps(noise, cost):
    run = MatrixMechanism(BinaryTree(1600), noise)
    assert Tight().epsilon(run, delta=1e-6) == pytest.approx(cost, abs=1e-6)


@every_run
def test_releases_of_the_worst_pair_have_the_declared_loss(run):
    first, second = run.worst_pair()
    losses = [
        sign * (run.log_density(drawn, first) - run.log_density(drawn, second))
        for sign, value, seed in ((1, first, 1), (-1, second, 2))
        for drawn in [run.release(value, seed, 20_000)]
    ]
    mu = run.loss.mu
    for found in losses:  # N(mu^2 / 2, mu^2); five deviations: 6e-7
        assert found.mean() == pytest.approx(mu**2 / 2, abs=5 * mu / math.sqrt(20_000))
        assert found.std() == pytest.approx(mu, rel=5 / math.sqrt(40_000))
    assert not run.loss_is_upper_bound


@every_run
def test_decoded_noise_has_the_covariance_of_least_squares(run):
    width = run.dimension or 1
    value = run.values.example(np.random.default_rng(3))
    drawn = run.release(value, 4, 20_000).reshape(20_000, -1, width)
    entries = run.strategy.times(np.eye(run.strategy.columns))
    exact = np.reshape(value, (-1, width))
    decoder, centre = np.eye(len(entries)), entries @ exact
    if run.decoder != "rows":
        decoder, centre = np.linalg.pinv(entries), exact
    if run.decoder == "prefix sums":
        decoder, centre = np.cumsum(decoder, axis=0), np.cumsum(exact, axis=0)
    noise = (drawn - centre)[..., 0]
    wanted = run.scale**2 * decoder @ decoder.T
    largest = wanted.max()
    assert np.abs(noise.mean(axis=0)).max() < 5.5 * math.sqrt(largest / 20_000)
    assert np.abs(np.cov(noise.T) - wanted).max() < 5.5 * largest * math.sqrt(2 / 20_000)
    assert run.deviation == pytest.approx(math.sqrt(largest), rel=1e-9)


@every_run
def test_batches_and_densities_have_a_row_for_each_value(run):
    value = run.values.example(np.random.default_rng(5))
    batch = np.stack([value] * 3)
    released = run.release(batch, 6)
    each = run.log_density(released, batch, each=True)
    assert np.allclose(each, [run.log_density(one, value) for one in released])
    assert run.log_density(released, batch) == pytest.approx(each.sum())
    assert run.release(np.empty((0, *np.shape(value))), 6).shape == (0, *released.shape[1:])
    with pytest.raises(ParameterError, match="size"):
        run.release(batch, 6, 2)
    for wrong in (value[:-1], np.zeros((2, 2, 2, 2)), value * np.nan, "text"):
        with pytest.raises(PrivateValueError, match="value must be"):
            run.release(wrong, 6)


@every_run
def test_runs_are_values_in_files_and_pickles(run, tmp_path):
    assert from_json(to_json(run)) == run == pickle.loads(pickle.dumps(run))
    for name in ("plan.toml", "plan.json"):
        write_plan(3 * run, tmp_path / name)
        assert read_plan(tmp_path / name) == 3 * run


@every_run
def test_noise_is_found(run):
    found = calibrate(
        MatrixMechanism, strategy=run.strategy, participation=run.participation, epsilon=1.0,
        delta=1e-6,
    )  # fmt: skip
    assert 1 - 1e-5 < Tight().epsilon(found, 1e-6) <= 1


def test_a_plan_file_names_what_it_does_not_know(tmp_path):
    file = tmp_path / "plan.toml"
    file.write_text(
        '[[release]]\nkind = "MatrixMechanism"\nscale = 2.0\n'
        'strategy = { kind = "BinaryTrees", steps = 8 }\n'
    )
    with pytest.raises(ParameterError, match=r"line 4, column 14: .*BinaryTree \(did you mean"):
        read_plan(file)


def test_a_gate_draws_from_its_own_copy_of_the_strategy():
    run = MatrixMechanism(Toeplitz((1.0, 0.5), 4), 2.0)
    ledger = Ledger(np.ones(4), 2 * run, rng=1)

    def query(data):
        object.__setattr__(run.strategy, "coefficients", (9.0, 9.0))
        return data

    ledger.release(run, query)
    (entry,) = ledger.transcript
    assert entry.mechanism.strategy == Toeplitz((1.0, 0.5), 4)


def test_gates_release_runs():
    data, run = np.arange(12.0), MatrixMechanism(BinaryTree(4), 5.0, dimension=3)
    gate = Filter(data, Budget(3.0, 1e-6))
    answer = gate.release(run, lambda rows: np.clip(rows, 0, 1).reshape(4, 3))
    assert answer.shape == (4, 3)
    ledger = Ledger(data, run + Gaussian(3.0), rng=7)
    assert ledger.release(run, lambda rows: np.zeros((4, 3))).shape == (4, 3)


@pytest.mark.parametrize("magnitude", [1e15, 1e200, 1e280])
def test_large_values_keep_their_leading_digits(magnitude):
    run = MatrixMechanism(Toeplitz((1.0, 0.5), 3), 1.0, decoder="rows")
    released = run.release([magnitude, -magnitude, 0.0], 0)
    assert np.allclose(released / magnitude, [1.0, -0.5, -0.5], rtol=1e-9, atol=1e-9)
    assert np.isfinite(run.release([1e308, -1e308, 5e-324], 0)).all()  # they stay at 2^1000 steps


def test_a_number_of_one_step_is_a_gaussian():
    run = MatrixMechanism(Toeplitz((2.0,), 1), 3.0)
    assert run.loss.mu == pytest.approx(Gaussian(1.5).loss.mu, rel=1e-15)
    assert run.release(4.0, 1).shape == ()
    assert run.release([4.0, 5.0], 1).shape == (2,)


def test_a_step_of_the_grid_above_the_sensitivity_is_charged():
    run = MatrixMechanism(Toeplitz((1.0,), 4), 1.0, sensitivity=1e-14)
    assert run.drawn_scale == 1.0
    assert run.loss.mu > 1e-14 + 2.0**-40


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"strategy": np.zeros((2, 2))}, "matrix of finite real numbers"),
        ({"strategy": np.ones((2, 3))}, "'rows' for a strategy that is not invertible"),
        ({"strategy": [[1.0]]}, "strategy must be a strategy"),
        ({"participation": "once"}, r"must be Once\(\), MinSeparation"),
        ({"participation": FixedEpochs(3)}, "divisor of the 4 steps"),
        ({"participation": (0, 2)}, "participations must be"), ({"decoder": "sums"}, "one of"),
        ({"scale": float("nan")}, "scale must be"), ({"dimension": 0}, "dimension must be"),
        ({"epsilon": 1.0}, r"calibrate\(MatrixMechanism"),
    ],
)  # fmt: skip
def test_nonsense_is_refused(given, match):
    with pytest.raises(ParameterError, match=match):
        MatrixMechanism(**{"strategy": BinaryTree(4), "scale": 1.0, **given})


def test_a_matrix_and_a_pair_are_understood():
    short = MatrixMechanism(np.tri(4), 1.0, (2, 3))
    assert short == MatrixMechanism(StrategyMatrix(np.tri(4)), 1.0, MinSeparation(2, 3))
