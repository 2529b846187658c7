"""Claims of a book and the evidence on them: one process for the life of each."""

import contextlib
import math

import numpy as np
import pytest

from accountant import (
    ApproxLoss,
    Book,
    Budget,
    GaussianLoss,
    LaplaceLoss,
    LedgerCorrupt,
    ParameterError,
    PureLoss,
    RoleRefused,
)
from accountant.book.evidence import grown, log_mean, log_total, proof
from accountant.plans.adjacency import Adjacency
from mechanisms import Laplace
from tests.accountant.book.people import People
from tests.accountant.book.throwaway_books import exit_status_in_child, rewritten

PURE = [(1.0, 0.0)]


def runs(number):
    return f"{number:064x}"


def wealth_after(*e_values):
    """What the definition says: a share of the first wealth is bet from each audit on."""
    count = len(e_values)
    shares = [1 / (k * (k + 1)) for k in range(1, count + 1)]
    bet = [share * math.prod(e_values[k:]) for k, share in enumerate(shares)]
    return sum(bet) + 1 / (count + 1)


def add(book, *log_e_values, number=0, claim="c", points=PURE, version="1"):
    return book.add_evidence(claim, log_e_values, points, runs=runs(number), version=version)


@pytest.fixture
def book(any_book):
    with Book.create(any_book.url, author="ada") as opened_book:
        opened_book.claim("c", Budget(1.0))
        yield opened_book


# --- claims


@pytest.mark.parametrize(
    ("claim", "loss"),
    [
        (Budget(1.0), PureLoss(1.0)),
        (Budget(1.0, 1e-5), ApproxLoss(1.0, 1e-5)),
        (LaplaceLoss(0.5), LaplaceLoss(0.5)),
        (GaussianLoss(1.0), GaussianLoss(1.0)),
    ],
)
def test_a_claim_is_opened_once_and_found_again(any_book, claim, loss):
    with Book.create(any_book.url, author="ada") as book:
        assert book.claims == []
        opened = book.claim("c", claim, alpha=0.01, relation="add/remove")
        assert (opened.claim, opened.alpha, opened.author) == (loss, 0.01, "ada")
        assert (opened.relation, opened.wealth, opened.is_alarmed) == (
            Adjacency.ADD_REMOVE, 1.0, False)  # fmt: skip
        assert book.claim("c") == opened == book.claim("c", loss, alpha=0.01)
        book.claim("d", Budget(2.0))
    with Book.open(any_book.url) as book:
        assert book.claims == ["c", "d"]
        assert book.evidence("c") == opened
        assert book.verify().entries == 3


@pytest.mark.parametrize(
    ("terms", "argument"),
    [
        ({"claim": Budget(2.0)}, "claim"),
        ({"claim": Budget(1.0, 1e-9)}, "claim"),
        ({"alpha": 0.06}, "alpha"),
        ({"relation": "add-remove"}, "relation"),
        ({"claim": 1.0}, "claim"),
        ({"claim": Laplace(1.0)}, "claim"),
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": 1.0}, "alpha"),
        ({"alpha": 1e-301}, "alpha"),
        ({"alpha": math.nan}, "alpha"),
        ({"relation": "siblings"}, "relation"),
    ],
)
def test_another_claim_is_another_process(book, terms, argument):
    for name, allowed in (("c", ""), ("e", "a claim of this book; Book.claim opens one")):
        if name == "e" and "claim" in terms:
            continue
        with pytest.raises(ParameterError) as caught:
            book.claim(name, **terms)
        assert caught.value.argument == argument or caught.value.allowed == allowed
    assert book.claims == ["c"]


@pytest.mark.parametrize("name", ["", " c", "c\n", "x" * 201, 3, None])
def test_names_of_claims_are_names(book, name):
    for ask in (book.evidence, lambda name: book.claim(name, Budget(1.0))):
        with pytest.raises(ParameterError, match=r"printable characters|without spaces"):
            ask(name)
    assert book.claims == ["c"]


def test_data_sets_and_claims_of_one_name_stay_apart(book):
    book.dataset("c", Budget(1.0))
    assert (book.names, book.claims) == (["c"], ["c"])
    add(book, 1.0)
    assert len(book.history("c")) == 0
    assert book.verify().entries == 4


# --- evidence


def test_wealth_grows_by_e_values_and_the_alarm_stays(book):
    logs = [2.0, 0.5, 1.5, -9.0]
    wealths = [add(book, number, number=k).wealth for k, number in enumerate(logs)]
    expected = [wealth_after(*np.exp(logs[: k + 1])) for k in range(4)]
    assert wealths == pytest.approx(expected)
    assert np.all(np.array(wealths) <= expected)  # rounded down
    evidence = book.evidence("c")
    assert [line.e_value for line in evidence.lines] == pytest.approx(np.exp(logs))
    assert evidence.alarm == evidence.lines[2]  # the first wealth of 20 or more
    assert evidence.is_alarmed
    assert "ALARM since entry 5, version 1, at wealth 29." in str(evidence)
    assert evidence.to_records()[3]["wealth"] == evidence.wealth == wealths[3]
    book.verify()


def test_each_bet_goes_on_by_itself_and_their_mean_counts(book):
    add(book, 1.0, -5.0)
    add(book, 1.0, number=1)  # an e-value for all bets
    evidence = add(book, 1.0, -5.0, number=2)
    expected = wealth_after(*np.exp([1.0, 1.0, 1.0])), wealth_after(*np.exp([-5.0, 1.0, -5.0]))
    assert evidence.wealth == pytest.approx(np.mean(expected))
    # and not as the means of the audits would, which pay for the search for a stake each time
    means = [(math.e + math.e**-5) / 2, math.e, (math.e + math.e**-5) / 2]
    assert evidence.wealth > 1.4 * wealth_after(*means)
    with pytest.raises(ParameterError, match="log_e_values must be 2 numbers, as the claim has"):
        add(book, 1.0, 1.0, 1.0, number=3)
    assert len(book.evidence("c").lines) == 3


def test_huge_and_tiny_evidence_stays_finite(book):
    assert 1e303 < add(book, 1e6).wealth < math.inf
    assert add(book, -2e6, number=1).wealth == pytest.approx(1 / 3)
    evidence = add(book, -1e6, 3.0, number=2)
    assert evidence.wealth == pytest.approx(math.e**3 / 12 / 2 + 1 / 4)
    book.verify()


def test_many_honest_versions_do_not_hide_one_that_is_broken_later(book):
    for number in range(30):
        evidence = add(book, -3.0, number=number)
    assert evidence.wealth == pytest.approx(1 / 31, rel=0.2)
    for number in range(30, 35):
        evidence = add(book, 2.5, number=number)
    assert evidence.is_alarmed  # a product of all would be e^-77
    book.verify()


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"log_e_values": [math.nan]}, "log_e_values"),
        ({"log_e_values": [math.inf]}, "log_e_values"),
        ({"log_e_values": []}, "log_e_values"),
        ({"log_e_values": [0.0] * 65}, "log_e_values"),
        ({"log_e_values": ["x"]}, "log_e_values"),
        ({"points": []}, "points"),
        ({"points": [(0.9, 0.0)]}, "points"),
        ({"points": [(1.0, 0.0), (0.9, 0.01)]}, "points"),
        ({"points": [(-1.0, 0.5)]}, "points"),
        ({"points": [(1.0, 1.0)]}, "points"),
        ({"runs": "seed 7"}, "runs"),
        ({"runs": 7}, "runs"),
        ({"runs": "F" * 64}, "runs"),
        ({"version": ""}, "version"),
        ({"version": "1\n"}, "version"),
        ({"claim": "d"}, "claim"),
    ],
)
def test_bad_evidence_is_refused_and_nothing_is_written(book, change, argument):
    stated = {"claim": "c", "log_e_values": [1.0], "points": PURE, "runs": runs(1), "version": "1"}
    with pytest.raises(ParameterError) as caught:
        book.add_evidence(**{**stated, **change})
    assert caught.value.argument == argument
    assert book.verify().entries == 2


def test_what_follows_from_a_claim_is_evidence_on_it(any_book):
    loss = GaussianLoss(1.0)
    with Book.create(any_book.url) as book:
        book.claim("c", loss)
        for number, epsilon in enumerate((0.0, 0.3, 1.0, 4.0)):
            add(book, 0.1, number=number, points=[(epsilon, loss.delta_at(epsilon))])
            with pytest.raises(ParameterError, match="what the claim 'c', GaussianLoss"):
                add(book, 0.1, number=99, points=[(epsilon, loss.delta_at(epsilon) * 0.99)])
        for number, delta in enumerate((0.3, 1e-3, 1e-9), 10):
            add(book, 0.1, number=number, points=[(loss.epsilon_at(delta), delta)])
        assert len(book.evidence("c").lines) == 7
        book.verify()


def test_the_same_runs_count_once_on_a_claim(book):
    add(book, 1.0)
    with pytest.raises(ParameterError, match="entry 3 has these, and the same luck is no evidence"):
        add(book, 2.0, version="2")
    book.claim("d", Budget(1.0))
    add(book, 1.0, claim="d")  # the runs are evidence on each claim that they test
    assert [len(book.evidence(name).lines) for name in book.claims] == [1, 1]


def test_two_processes_add_the_same_runs_once_and_lose_no_others(stored_book):
    with Book.create(stored_book.url) as book:
        book.claim("c", Budget(1.0))

    def work(first):
        with Book.open(stored_book.url) as own_book:
            for number in range(first, first + 6):
                with contextlib.suppress(ParameterError):  # the other process was first
                    add(own_book, 0.25, number=number)

    with Book.open(stored_book.url) as book:
        before = add(book, 0.25, number=100)
        assert len(before.lines) == 1
    assert [exit_status_in_child(lambda first=first: work(first)) for first in (0, 3)] == [0, 0]
    with Book.open(stored_book.url) as book:
        evidence = book.evidence("c")
        assert len(evidence.lines) == 10
        assert evidence.wealth == pytest.approx(wealth_after(*[math.exp(0.25)] * 10))
        book.verify()


def test_a_damaged_entry_is_named(any_book):
    with Book.create(any_book.url) as book:
        book.claim("c", Budget(1.0))
        add(book, 1.0)
    any_book.tamper(*rewritten(any_book, 3, lambda facts: facts.pop("version", None)))
    with (
        Book.open(any_book.url) as book,
        pytest.raises(LedgerCorrupt, match="an entry does not say what it must"),
    ):
        book.evidence("c")


def test_curators_open_claims_and_auditors_add_evidence(stored_book, tmp_path):
    pytest.importorskip("cryptography")
    people = People(tmp_path)
    people.make(stored_book)
    only_a_curator = pytest.raises(RoleRefused, match="'aud' is an auditor, and only a curator")
    with people.open(stored_book, "aud") as book, only_a_curator:
        book.claim("c", Budget(1.0))
    with people.open(stored_book, "ada") as book:
        book.claim("c", Budget(1.0))
    for name in ("ada", "ana"):
        only_an_auditor = pytest.raises(RoleRefused, match="only an auditor adds evidence: aud")
        with people.open(stored_book, name) as book, only_an_auditor:
            add(book, 1.0)
    with people.open(stored_book, "aud") as book:
        assert [line.author for line in add(book, 1.0).lines] == ["aud"]
        book.verify()


# --- rounding


def test_wealth_is_rounded_down():
    rng = np.random.default_rng(0)
    for nth in range(1, 300):
        count, size = int(rng.integers(1, 10)), 10.0 ** rng.integers(-3, 4)
        before, added = rng.normal(scale=size, size=(2, count)).tolist()
        after = grown(before if nth > 1 else [], added, nth)
        long = np.array(before if nth > 1 else [-np.inf] * count, dtype=np.longdouble)
        exact = np.logaddexp(long, -np.log(np.longdouble(nth * (nth + 1)))) + np.array(added)
        assert np.all(np.array(after) < exact)
        assert after == pytest.approx(exact.astype(float), rel=1e-12, abs=1e-12)
        in_bets = np.logaddexp.reduce(np.array(after, dtype=np.longdouble)) - np.log(
            np.longdouble(count)
        )
        total = np.logaddexp(in_bets, -np.log(np.longdouble(nth + 1)))
        for rounded, right in ((log_mean(after), in_bets), (log_total(after, nth), total)):
            assert rounded < right
            assert rounded == pytest.approx(float(right), rel=1e-12, abs=1e-12)


def test_no_money_comes_from_nowhere():
    # with e-values of 1 nothing changes, and the shares of all audits add up to the first wealth
    wealth = []
    for nth in range(1, 200):
        wealth = grown(wealth, [0.0] * 3, nth)
        assert log_total(wealth, nth) == pytest.approx(0.0, abs=1e-12)
        assert log_total(wealth, nth) <= 0


@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-3, 1e-12])
def test_a_wealth_just_below_the_proof_raises_no_alarm(alpha):
    assert proof(alpha) > math.log(1 / alpha) > proof(alpha) - 1e-12
    assert log_mean([math.log(1 / alpha)]) < proof(alpha)
