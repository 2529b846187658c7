"""Sensitivities of matrices: those of jax-privacy, what is exact, files, and refusals."""

from fractions import Fraction

import numpy as np
import pytest

from accountant import (
    BandedMatrix,
    BinaryTree,
    BufferedToeplitz,
    FixedEpochs,
    MinSeparation,
    Once,
    ParameterError,
    StrategyMatrix,
    Toeplitz,
    sensitivity,
)


def square_root(steps):
    """The coefficients of the root of prefix sums, 1, 1/2, 3/8, ..."""
    k = np.arange(1, steps)
    return np.append(1.0, np.cumprod((2 * k - 1) / (2 * k)))


BUFFERS = (0.9, 0.5), (0.2, 0.3)
BANDED = [[1.0, 0, 0, 0], [2, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, -6]]
FALLING = np.tril(1 / (1 + np.arange(12)[:, None] + np.arange(12) ** 2))
COSINES = np.tril(np.cos(np.arange(12)[:, None] * np.arange(12)))


# squared, by google-deepmind/jax_privacy at 8967688 (2.3.0.dev0), matrix_factorization: `toeplitz.
# minsep_sensitivity_squared`, `buffered_toeplitz.sensitivity_squared`, `sensitivity.*`, in float64
@pytest.mark.parametrize(
    ("strategy", "participation", "squared"),
    [
        (Toeplitz(square_root(1000), 1000), Once(), 3.2650030806724337),
        (Toeplitz(square_root(1000), 1000), MinSeparation(5, 200), 26.915685285659197),
        (Toeplitz(square_root(1000), 1000), MinSeparation(20, 50), 291.05705744930526),
        (Toeplitz(square_root(1000), 1000), MinSeparation(1000, 1), 636938.3909272082),
        (BufferedToeplitz(*BUFFERS, 100), Once(), 1.548708133787924),
        (BufferedToeplitz(*BUFFERS, 100), MinSeparation(5, 20), 8.317753449680563),
        (BufferedToeplitz(*BUFFERS, 2000), MinSeparation(5, 20), 8.32273192687271),
        (StrategyMatrix(BANDED), MinSeparation(1, 2), 36.0),
        (StrategyMatrix(BANDED), MinSeparation(4, 2), 41.0),
        (StrategyMatrix(FALLING), FixedEpochs(3), 1.680117224233933),
        (StrategyMatrix(FALLING), FixedEpochs(4), 1.8174389318096082),
        (StrategyMatrix(FALLING), MinSeparation(3, 4), 1.6801172242339337),
        (StrategyMatrix(COSINES), FixedEpochs(3), 22.2189141604463),
    ],
    ids=lambda one: "",
)
def test_those_of_jax_privacy(strategy, participation, squared):
    found = sensitivity(strategy, participation)
    assert squared * (1 - 1e-14) <= found.value**2 <= squared * (1 + 1e-9)
    assert found.exact == (strategy != StrategyMatrix(COSINES))


@pytest.mark.parametrize(
    ("strategy", "participation", "bound", "squared"),
    [
        (Toeplitz((0.5, 1, 0.2, 0.9), 12), MinSeparation(3, 4), 10.86, 6.3),
        (Toeplitz((0.5, 1, 0.2, 0.9), 12), MinSeparation(4, 2), 25.28, 14.4),
        (StrategyMatrix(COSINES), MinSeparation(3, 4), 26.845618065308958, 25.4490254),
    ],
)
def test_bounds_are_below_those_of_jax_privacy(strategy, participation, bound, squared):
    found = sensitivity(strategy, participation).value ** 2
    assert found < bound
    assert found == pytest.approx(squared, rel=1e-8)


def test_a_banded_matrix_is_the_same_as_its_entries():
    rng = np.random.default_rng(1)
    diagonals = rng.normal(size=(3, 9))
    whole = StrategyMatrix(BandedMatrix(diagonals).times(np.eye(9)))
    for participation in (Once(), MinSeparation(3, 2), MinSeparation(2, 4), FixedEpochs(3)):
        banded = sensitivity(BandedMatrix(diagonals), participation)
        assert banded.value == pytest.approx(sensitivity(whole, participation).value, rel=1e-11)


@pytest.mark.parametrize("scale", [1e-90, 1e90])
def test_no_square_overflows_or_vanishes(scale):
    falling = np.array([1.0, 0.7, 0.2])
    for make in (
        lambda c: Toeplitz(c, 9),
        lambda c: StrategyMatrix(Toeplitz(c, 9).times(np.eye(9))),
    ):
        plain = sensitivity(make(falling), MinSeparation(3, 2)).value
        assert sensitivity(make(scale * falling), MinSeparation(3, 2)).value == pytest.approx(
            scale * plain, rel=1e-12
        )


def test_whole_numbers_are_exact():
    assert sensitivity(StrategyMatrix(np.tri(50)), Once()).squared == 50
    assert sensitivity(Toeplitz([1] * 30, 30), MinSeparation(2, 10)).squared == 10 + 4 * 20
    assert sensitivity(StrategyMatrix(np.eye(7)), MinSeparation(9, 2)).value == 2.0


@pytest.mark.parametrize("uses", [1, 3, 1024])
def test_sums_whose_every_step_rounds_down_are_no_smaller_than_the_truth(uses):
    # Of some thousand additions of the square most lose half of the last digit, in one direction.
    entry = 1 + 2.0**-45 - 2.0**-52
    value = sensitivity(StrategyMatrix([[entry] * (2 * uses)]), FixedEpochs(uses)).value
    exact = uses * Fraction(entry)
    assert exact <= Fraction(value) <= exact * (1 + Fraction(2e-12))


@pytest.mark.parametrize(
    ("participation", "reason", "squared"),
    [
        (Once(), "the longest column", 3),
        (MinSeparation(1, 1), "the longest column", 3),
        (MinSeparation(3, 3), "columns of a pattern are orthogonal", 9),
        (MinSeparation(3, 2), "the earliest pattern meets itself most", 13),
        (FixedEpochs(6), "every place of an epoch tried", 27),
    ],
)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_sensitivity_says_how_it_was_found_and_whether_it_is_attained(
    participation, reason, squared, sign
):
    """Columns at a distance of 2 meet in one row, where their product has this sign."""
    strategy = BandedMatrix(np.array([[1.0], [1.0], [sign]]) * np.ones(12))
    found, meet = sensitivity(strategy, participation), squared > 9
    assert found.squared == squared
    assert found.exact is (sign > 0 or not meet)
    assert found.reason == reason + (
        "" if found.exact else ", with absolute inner products: a bound"
    )


def test_a_hundred_thousand_steps_need_no_matrix():
    steps = 100_000
    for strategy in (
        Toeplitz(square_root(steps), steps), BufferedToeplitz(*BUFFERS, steps), BinaryTree(steps),
        BandedMatrix(np.ones((3, steps))),
    ):  # fmt: skip
        assert sensitivity(strategy, MinSeparation(10, 10_000)).exact
        assert sensitivity(strategy, FixedEpochs(100)).exact


def test_least_squares_recover_the_steps():
    rng = np.random.default_rng(2)
    for strategy in (
        BinaryTree((3, 8, 5)), Toeplitz((1.0, -0.4, 0.3), 16), BufferedToeplitz(*BUFFERS, 16),
        BandedMatrix(1 + rng.random((2, 16))), StrategyMatrix(rng.normal(size=(20, 16))),
    ):  # fmt: skip
        entries, rows = strategy.times(np.eye(16)), rng.normal(size=(strategy.rows, 2))
        nearest = np.linalg.lstsq(entries, rows, rcond=None)[0]
        assert np.allclose(strategy.recovered(rows), nearest)
        assert np.isclose(strategy.log_volume, np.linalg.slogdet(entries.T @ entries)[1] / 2)


def test_long_products_are_those_of_the_matrix():
    rng = np.random.default_rng(3)
    one = Toeplitz(rng.random(1500), 2100)  # in blocks
    values = rng.normal(size=(2100, 2))
    by_hand = [np.convolve(one.coefficients, column)[:2100] for column in values.T]
    assert np.allclose(one.times(values), np.array(by_hand).T)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8])
def test_a_matrix_is_read_from_a_file(tmp_path, dtype):
    np.save(tmp_path / "c.npy", np.asfortranarray(np.tri(4, dtype=dtype)))
    assert StrategyMatrix.from_npy(tmp_path / "c.npy") == StrategyMatrix(np.tri(4))


@pytest.mark.parametrize(
    "content",
    [np.array([[1, "a"]], dtype=object), np.array([[1.0, np.nan]]), np.array([[np.inf]]),
     np.ones(3), np.ones((2, 2), complex), np.zeros((2, 2)), np.ones((0, 2)), np.array([["1"]]),
     np.array([[True]]), np.ones((2, 2, 2)), np.array([[1e101]]), b"", b"garbage"],
    ids=str,
)  # fmt: skip
def test_a_file_of_no_matrix_is_refused(tmp_path, content):
    path = tmp_path / "c.npy"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.save(path, content)
    with pytest.raises(ParameterError, match=r"path must be .*c\.npy"):
        StrategyMatrix.from_npy(path)


def test_a_huge_file_is_refused_unread(tmp_path):
    huge = np.lib.format.open_memmap(tmp_path / "c.npy", "w+", dtype=float, shape=(10**5, 10**5))
    del huge  # sparse: it takes no room
    with pytest.raises(ParameterError, match="16,777,216 entries"):
        StrategyMatrix.from_npy(tmp_path / "c.npy")


def test_a_file_that_claims_more_than_a_machine_holds_is_refused(tmp_path):
    with open(tmp_path / "c.npy", "wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (1 << 32, 1 << 32)}
        np.lib.format.write_array_header_1_0(file, header)
    with pytest.raises(ParameterError, match=r"path must be an \.npy file"):
        StrategyMatrix.from_npy(tmp_path / "c.npy")


@pytest.mark.parametrize("path", [None, 3, True, b"c.npy"])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(ParameterError, match=r"path must be the path of an \.npy file"):
        StrategyMatrix.from_npy(path)


@pytest.mark.parametrize("name", ["missing.npy", "c.txt", ".", "folder.npy"])
def test_what_is_no_file_is_refused(tmp_path, name):
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(ParameterError, match="path must be"):
        StrategyMatrix.from_npy(tmp_path / name)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Toeplitz((1.0, 2.0), 1), lambda: Toeplitz((), 3), lambda: Toeplitz((0.0,), 3),
        lambda: Toeplitz((float("nan"),), 3), lambda: Toeplitz(1.0, 3), lambda: Toeplitz("12", 3),
        lambda: Toeplitz((1.0,), True), lambda: BufferedToeplitz((0.5,), (1.0, 2.0), 4),
        lambda: BufferedToeplitz((1.5,), (1.0,), 4), lambda: BufferedToeplitz((), (), 4),
        lambda: BandedMatrix([[1, 2], [3]]), lambda: BandedMatrix(np.ones((3, 2))),
        lambda: BandedMatrix([[np.inf]]), lambda: BandedMatrix([[0.0, 0.0], [0.0, 1.0]]),
        # squares below the least float: their sensitivity was 0
        lambda: Toeplitz((1e-170,), 3), lambda: BandedMatrix([[1e-170, 1e-170]]),
        lambda: StrategyMatrix([[1e-170]]),
        lambda: StrategyMatrix([[1, 2], [3]]), lambda: StrategyMatrix(np.ma.ones((2, 2))),
        lambda: MinSeparation(0, 1), lambda: MinSeparation(1, 0), lambda: MinSeparation(1.5, 1),
        lambda: FixedEpochs(True), lambda: sensitivity(BinaryTree(4), "once"),
        lambda: sensitivity(np.eye(2), Once()), lambda: sensitivity(BinaryTree(4), FixedEpochs(8)),
    ],
)  # fmt: skip
def test_nonsense_is_refused(make):
    with pytest.raises(ParameterError, match="must be"):
        make()


@pytest.mark.parametrize(
    ("strategy", "participation", "message"),
    [
        ("tree", Once(), r"strategy must be a strategy, such as BinaryTree\(steps\)"),
        (BinaryTree(4), 4, r"participation must be Once\(\), MinSeparation\(.*\) or FixedEpochs"),
        (
            BinaryTree(4),
            FixedEpochs,
            r"participation must be Once\(\), MinSeparation\(.*FixedEpochs",
        ),
    ],
)
def test_what_is_no_strategy_or_participation_is_told_what_is_one(strategy, participation, message):
    with pytest.raises(ParameterError, match=message):
        sensitivity(strategy, participation)
