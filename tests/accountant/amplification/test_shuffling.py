"""Shuffling against the clone pair, exact binary responses, and published figures."""

import math
from fractions import Fraction

import numpy as np
import pytest

from accountant import GaussianLoss, PairLoss, ParameterError, PureLoss, Shuffled, Stated, Tight
from accountant.amplification import shuffling
from mechanisms import CubeLinf, HemisphereL2, RandomizedResponse
from tests.accountant.enumeration import stick


def test_many_users_weigh_no_less_than_one():
    for users in (10**5, 10**7, 10**9):
        assert shuffling.binomial_window(users, 0.3, 9.5)[1].sum() >= 1.0


def test_shuffling_composes_in_seconds():
    for plan in (2 * Shuffled(PureLoss(1.0), 1), 3 * Shuffled(PureLoss(0.3), 1000)):
        found = Tight().certify(plan, 1e-6)
        assert 0 < found.lower <= found.upper


def clones(e0, users):
    """The clone pair as two dictionaries of masses, by its definition."""
    from scipy.stats import binom

    p, q = {}, {}
    d = math.exp(e0) / (1 + math.exp(e0))
    for c in range(users):
        w = binom.pmf(c, users - 1, 2 / (math.exp(e0) + 1))
        for a in range(c + 1):
            v = w * binom.pmf(a, c, 0.5)
            for one, chance in ((1, d), (0, 1 - d)):
                for law, i in ((p, a + one), (q, a + 1 - one)):
                    key = (i, c + 1 - i)
                    law[key] = law.get(key, 0.0) + v * chance
    keys = sorted(set(p) | set(q))
    return tuple(np.array([law.get(key, 0.0) for key in keys]) for law in (p, q))


@pytest.mark.parametrize("e0", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("users", [1, 2, 17])
def test_shuffled_is_the_clone_pair(e0, users):
    p, q = clones(e0, users)
    node = Shuffled(PureLoss(e0), users)
    for epsilon in np.linspace(0, e0, 7):
        assert node.profile(epsilon) == pytest.approx(stick(p, q, epsilon), rel=1e-9, abs=1e-13)


def truth(e0, users, epsilon):
    """The hockey stick of the clone pair in 40 digits."""
    import mpmath as mp

    with mp.workdps(40):
        e0, epsilon, total = mp.mpf(e0), mp.mpf(epsilon), mp.mpf(0)
        d = 1 / (1 + mp.exp(-e0))
        alpha, beta = d - mp.exp(epsilon) * (1 - d), mp.exp(epsilon) * d - (1 - d)
        chance = 2 * (1 - d)
        for c in range(users):
            w = mp.binomial(users - 1, c) * chance**c * (1 - chance) ** (users - 1 - c)
            m = int(mp.floor((c + 1) * beta / (alpha + beta)))
            equal = mp.binomial(c, m) / mp.mpf(2) ** c
            above = sum(mp.binomial(c, i) for i in range(m + 1, c + 1)) / mp.mpf(2) ** c
            total += w * (alpha * equal - mp.expm1(epsilon) * above)
        return total


@pytest.mark.parametrize(
    ("e0", "users", "epsilon"),
    [
        (1e-9, 60, 5.5932e-10),
        (0.3, 1, 0.3 * (1 - 1e-9)),
        (1.2, 90, 0.7),
        (3.0, 40, 2.9999999),
        (6.0, 40, 5.999999999999994),
        (30.0, 7, 29.9),
    ],
)
def test_sticks_are_just_above_the_truth(e0, users, epsilon):
    # some were below it, by all of themselves near e0
    apart = Shuffled(PureLoss(e0), users).profile(epsilon) / truth(e0, users, epsilon) - 1
    assert 0 <= apart < 1e-10


@pytest.mark.parametrize("users", [2000, 10**5])
def test_what_a_window_of_clones_leaves_out_is_next_to_nothing(users, monkeypatch):
    epsilons = np.linspace(0.0, 60.0, 60) / math.sqrt(users)
    sticks = shuffling.clone_hockey_sticks(1.0, users, epsilons)
    monkeypatch.setattr(shuffling, "DEVIATIONS", (45.0,))
    assert sticks == pytest.approx(shuffling.clone_hockey_sticks(1.0, users, epsilons), rel=1e-10)
    assert sticks.min() < 1e-100


@pytest.mark.parametrize(
    ("coins", "heads"),
    [
        (979, 1), (979, 978), (860, 1), (32, 16), (27, 10), (1000, 400), (64, 0),
        (10**8, 5 * 10**7 + 5000), (10**12, 5 * 10**11 + 10**7),  # heads and tails nearly cancel
    ],
)  # fmt: skip
def test_fair_coins_are_as_exact_as_the_proof_says(coins, heads):
    # 979 coins with one head were wrong by 23,668 ulps, where 8,269 are allowed
    import mpmath as mp

    found = shuffling._log_fair_mass(np.array([coins * 1.0]), np.array([[heads * 1.0]]))
    with mp.workdps(40):
        truth = mp.log(mp.binomial(coins, heads)) - coins * mp.log(2)
        ulps = abs(found.item() - truth) / 2.0**-52
    # 47 of 256 ulps are kept for the other 31 masses of a block
    assert ulps <= 256 - 47 + 12 * abs(truth)


@pytest.mark.parametrize("e0", [0.01, 1.0, 5.0, 800.0])
def test_sticks_are_0_from_the_largest_loss_on(e0):
    epsilon = np.array([0.5 * e0, e0, 1.1 * e0, 900.0])
    sticks = shuffling.clone_hockey_sticks(e0, 20, epsilon)
    assert 0 < sticks[0] < 1 + 1e-9
    assert np.array_equal(sticks[1:], np.zeros(3))


@pytest.mark.parametrize(
    ("n", "chance", "deviations"),
    [(200, 0.5, 1.0), (200, 0.5, 3.0), (50, 0.02, 1.0), (100, 0.97, 0.5), (40, 0.3, 45.0)],
)
def test_a_window_and_what_it_misses_are_a_binomial_law(n, chance, deviations):
    k, mass, missed = shuffling.binomial_window(n, chance, deviations)
    share = Fraction(str(chance))
    exact = [math.comb(n, i) * share**i * (1 - share) ** (n - i) for i in range(n + 1)]
    inside = [exact[int(i)] for i in k]
    assert missed == pytest.approx(float(1 - sum(inside)), rel=1e-11, abs=1e-300)
    scale = float(sum(inside))  # masses are raised to the sum 1
    assert mass == pytest.approx([float(x) / scale for x in inside], rel=1e-11)
    assert 1 <= math.fsum(mass) <= 1 + 1e-11
    reach = deviations * math.sqrt(n * chance * (1 - chance)) + deviations**2 / 2
    assert k[0] == max(0, math.floor(n * chance - reach))
    assert k[-1] == min(n, math.ceil(n * chance + reach))
    assert not k.flags.writeable
    assert not mass.flags.writeable


@pytest.mark.parametrize("chance", [0.0, 1.0])
def test_a_sure_number_is_a_window_of_its_own(chance):
    k, mass, missed = shuffling.binomial_window(7, chance, 9.5)
    assert (k.tolist(), mass.tolist(), missed) == ([7 * chance], [1.0], 0.0)


@pytest.mark.parametrize("e0", [690.0, 745.0, 1e5])
def test_reports_that_hide_nothing_cost_their_own_epsilon(e0):
    # the chance of a flipped answer is 0 as a float: math domain error
    plan = Shuffled(PureLoss(e0), 20)
    found = Tight().certify(plan, 1e-6)
    assert 0 <= found.lower <= e0
    assert e0 * (1 - 1e-8) <= found.upper <= e0
    assert plan.profile(1.0) >= 1.0 - 1e-12


@pytest.mark.parametrize(("e0", "users"), [(0.3, 6), (1.0, 11), (4.0, 9)])
def test_sticks_of_binary_responses_are_just_above_the_truth(e0, users):
    # by all data sets of the others, in 40 digits
    import mpmath as mp

    with mp.workdps(40):
        lie = 1 / (1 + mp.exp(mp.mpf(e0)))
        for epsilon in (0.0, 0.21 * e0, 0.83 * e0):
            worst = mp.mpf(0)
            for others in range(users):
                law = [mp.mpf(1)]
                for chance in (1 - lie,) * others + (lie,) * (users - 1 - others):
                    law = [(1 - chance) * same + chance * fewer
                           for same, fewer in zip([*law, 0], [0, *law], strict=True)]  # fmt: skip
                stick = sum(
                    max(((1 - lie) - mp.exp(epsilon) * lie) * fewer
                        + (lie - mp.exp(epsilon) * (1 - lie)) * same, 0)
                    for same, fewer in zip([*law, 0], [0, *law], strict=True)
                )  # fmt: skip
                worst = max(worst, stick)
            found = shuffling.binary_hockey_sticks(e0, users, np.array([epsilon])).item()
            assert 0 <= found / worst - 1 < 1e-10


def test_sticks_of_many_users():
    # truth in 40 digits by the recurrence of the proof; the first was .0264
    for epsilon, expected in ((0.0, 5.0275e-5), (0.0012, 1.0978e-26)):
        found = Shuffled(PureLoss(1.0), 10**8).profile(epsilon)
        assert found == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("e0", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("users", [1, 3, 12])
def test_shuffled_binary_responses_are_exact(e0, users):
    # every data set of the others, not only those of equal answers: interior ones can be worse
    lie = 1 / (1 + math.exp(e0))
    yes, no = np.array([lie, 1 - lie]), np.array([1 - lie, lie])
    node = Shuffled(PairLoss((1 - lie, lie), (lie, 1 - lie)), users)
    for epsilon in np.linspace(0, e0, 7):
        worst = 0.0
        for others in range(users):
            law = np.ones(1)
            for user in range(users - 1):
                law = np.convolve(law, yes if user < others else no)
            worst = max(worst, stick(np.convolve(law, yes), np.convolve(law, no), epsilon))
        assert node.profile(epsilon) == pytest.approx(worst, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize(("users", "e0", "delta"), [(5000, 1.0, 1e-20), (3001, 3.0, 1e-8)])
def test_the_lower_end_is_below_the_loss_of_binary_responses(users, e0, delta):
    # masses of so many users err by 1e-11, and the true delta at the lower end was 1e-10 too small
    import mpmath as mp

    lower = Tight().certify(Shuffled(PureLoss(e0), users), delta).lower
    with mp.workdps(40):
        honest, n = 1 / (1 + mp.exp(-mp.mpf(e0))), users - 1
        worst = mp.mpf(0)
        for yes in (honest, 1 - honest):
            reach = 30 * mp.sqrt(n * yes * (1 - yes)) + 100
            ends = max(0, int(n * yes - reach)), min(n, int(n * yes + reach))
            law = [
                mp.binomial(n, k) * yes**k * (1 - yes) ** (n - k)
                for k in range(ends[0], ends[1] + 1)
            ]
            stick = mp.mpf(0)
            for same, more in zip([*law, 0], [0, *law], strict=True):
                p, q = honest * more + (1 - honest) * same, (1 - honest) * more + honest * same
                stick += max(p - mp.exp(lower) * q, 0)
            worst = max(worst, stick)
        assert worst >= delta


def test_shuffling_figures():
    high = 1 / (1 + math.exp(-1.0))
    response = PairLoss((high, 1 - high), (1 - high, high))
    assert Shuffled(PureLoss(1.0), 1000).epsilon_at(1e-6) == pytest.approx(0.14867, abs=5e-6)
    assert Shuffled(response, 1000).epsilon_at(1e-6) == pytest.approx(0.12661, abs=5e-6)
    exact = Tight().certify(Shuffled(response, 1000), 1e-6)
    assert exact.width < 1e-9
    # Feldman, McMillan & Talwar (2021), closed form: .566
    assert Tight().epsilon(2 * Shuffled(PureLoss(1.0), 1000), 1e-6) < 0.3


def test_shuffling_hides_pure_randomisers_only():
    with pytest.raises(ParameterError, match="shuffling hides bounded losses only"):
        Shuffled(GaussianLoss(1.0), 100)
    with pytest.raises(ParameterError, match="randomised by each user"):
        Shuffled(Stated(PureLoss(1.0), "add-remove"), 100)
    with pytest.raises(ParameterError, match="users must be a whole number"):
        Shuffled(PureLoss(1.0), 1.5)
    assert Shuffled(RandomizedResponse(k=4, keep=0.5), 100).relation == "replace-one"


def test_reports_of_more_than_two_values_hide_among_clones():
    # Both have the loss of a binary response, but the other users may hold any direction or corner.
    keep = 1 / (1 + math.exp(-1.0))
    epsilon, pair = np.linspace(0.0, 0.9, 4), PairLoss((keep, 1 - keep), (1 - keep, keep))
    clones = Shuffled(PureLoss(1.0), 50).profile(epsilon)
    exact = Shuffled(RandomizedResponse(k=2, keep=keep), 50).profile(epsilon)
    assert np.all(exact < 0.99 * clones)
    assert exact == pytest.approx(Shuffled(pair, 50).profile(epsilon), rel=1e-9)
    for part in (HemisphereL2(3, 1.0, keep), CubeLinf(3, 1.0, keep), Stated(pair, "replace-one")):
        assert Shuffled(part, 50).profile(epsilon) == pytest.approx(clones, rel=1e-9)
