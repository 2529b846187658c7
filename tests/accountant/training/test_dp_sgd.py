"""A statement of a training run: its numbers, its forms, and what it refuses."""

import functools
import itertools
import json
import math
from dataclasses import replace

import mpmath
import pytest

from accountant import (
    GaussianLoss,
    OnePass,
    ParameterError,
    PoissonSampled,
    RandomAllocation,
    SampledWithoutReplacement,
    Tight,
    TrainingStatement,
    dp_sgd,
    training_page,
)
from accountant.formatting import format_upper
from accountant.plans.adjacency import SAMPLING_RELATIONS, Adjacency
from accountant.training import words
from accountant.training.document import StatementDiffers, check_same, read_document
from accountant.training.dp_sgd import least_noise, longest_run
from accountant.training.loaders import LOADERS, PASSES, TITLES
from accountant.training.rows import RunCosts, TrainingCost
from accountant.training.run import TrainingRun, default_delta
from accountant.training.schemes import record_scheme
from accountant.training.statement import FALSE_POSITIVES, rates_of_epsilon
from accountant.training.users import user_scheme
from tests.html_checks import harmless, saved_tables

ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
ZERO_OUT = Adjacency.ZERO_OUT


# the arguments of tensorflow/privacy, compute_dp_sgd_privacy_test.py, statements by PLD
PUBLISHED = {"examples": 10_000, "batch": 64, "epochs": 5.0, "microbatching": True,
             "examples_per_user": 2}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def intervals_are_kept():
    """A statement that is made again asks for the same intervals: they are computed once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tight, "bracket", functools.cache(Tight.bracket))
        yield


@pytest.fixture(scope="module")
def shuffled():
    return dp_sgd(examples=200, batch=100, epochs=1, noise=2.0, loader="shuffle")


@pytest.mark.parametrize(
    ("loader", "scheme_of", "printed"),
    [
        ("fixed_order", record_scheme, "12.595"),
        ("poisson", record_scheme, "1.199"),
        ("fixed_order", user_scheme, "30.579"),
        ("poisson", user_scheme, "2.532"),
    ],
)
def test_the_numbers_of_tensorflow_privacy_come_out(loader, scheme_of, printed):
    # it blanks the record, or all of a user's: the others keep batches and microbatches
    (plan,) = scheme_of(TrainingRun(**PUBLISHED), 2.0, loader, ZERO_OUT, microbatching=True).above
    assert f"{Tight().epsilon(plan, 1e-6):.3f}" == printed


@pytest.mark.slow
def test_the_statement_of_tensorflow_privacy_has_the_numbers():
    found = dp_sgd(**PUBLISHED, noise=2.0, delta=1e-6)
    assert found.epsilon == found.row("poisson").upper
    assert found.user_epsilon == found.row("poisson", unit="user").upper
    for number in ("1.199", "2.532", "12.60", "30.58"):
        assert number in found.text(all_loaders=True)
    assert TrainingStatement.from_json(found.to_json()) == found


def test_only_the_cells_that_are_asked_for_are_computed():
    computed = []
    statement = dp_sgd(examples=200, batch=100, epochs=1, noise=2.0, loader="fixed_order",
                       on_row=lambda: computed.append(1))  # fmt: skip
    assert not computed
    assert statement.epsilon == statement.row("fixed_order").upper
    assert len(computed) == 1
    assert "Epsilon of every loader" not in str(statement)
    shown = len(computed)  # its own loader for all neighbours, and Poisson batches beside it
    assert shown == 4
    assert statement.row("poisson", relation=ZERO_OUT).loader == "poisson"
    assert len(computed) == shown + 1
    assert len(tuple(statement.rows)) == len(statement.rows) == len(computed) == 36
    assert statement.rows[:2] == tuple(statement.rows)[:2]


def test_every_row_is_an_interval_and_replaced_records_cost_no_less(shuffled):
    for one in shuffled.rows:
        regrouped = one.microbatching and one.relation is ADD_REMOVE and one.loader in PASSES
        assert 0 <= one.lower <= one.upper
        assert (one.upper == math.inf) == regrouped == (one.note == "microbatches")
    for loader in LOADERS:
        for micro in (False, True):
            less, more = (
                shuffled.row(loader, relation=relation, microbatching=micro)
                for relation in (ZERO_OUT, REPLACE_ONE)
            )
            assert less.lower <= more.upper
            assert less.upper <= more.upper * (1 + 1e-3)
        plain, other = (shuffled.row(loader, microbatching=micro) for micro in (False, True))
        assert plain.lower <= other.upper
        assert plain.upper <= other.upper * (1 + 1e-3)


def test_the_rows_are_what_the_plans_cost(shuffled):
    one, two = GaussianLoss(0.5), GaussianLoss(1.0)
    plans = {
        ("poisson", ADD_REMOVE): 2 * PoissonSampled(one, 1 / 2),
        ("fixed_size", ADD_REMOVE): 2 * PoissonSampled(two, 1 / 2),
        ("fixed_size", REPLACE_ONE): 2 * SampledWithoutReplacement(two, 100, 200),
        ("random_allocation", ADD_REMOVE): RandomAllocation(one, 2),
        # two batches: the first loses a record and takes one of the second
        ("fixed_order", ADD_REMOVE): GaussianLoss(math.sqrt(5) / 2),
        ("fixed_order", ZERO_OUT): one,
        ("fixed_order", REPLACE_ONE): two,
        # in the first batch, a half of the data, another record takes its place
        ("shuffled", ADD_REMOVE): PoissonSampled(two, 1 / 2) + one,
        ("shuffled", ZERO_OUT): one,
        ("poisson", ZERO_OUT): 2 * PoissonSampled(one, 1 / 2),
    }
    for (loader, relation), plan in plans.items():
        exact = Tight(1e-4).epsilon(plan, shuffled.delta)
        assert shuffled.row(loader, relation=relation).upper == pytest.approx(exact, rel=2e-3)


def test_a_shuffled_run_is_not_stated_as_poisson(shuffled):
    poisson = shuffled.row("poisson").upper
    removed = Tight().epsilon(PoissonSampled(GaussianLoss(1.0), 1 / 2) + GaussianLoss(0.5), 2e-3)
    assert poisson < shuffled.epsilon == pytest.approx(removed)
    assert len(str(shuffled).splitlines()) <= 10
    words = " ".join(shuffled.text(all_loaders=True).split())
    assert "shuffles; the Poisson number does not hold for it" in words
    assert f"would cost {format_upper(poisson)} at the same noise" in words
    page = shuffled.text(all_loaders=True).splitlines()
    assert max(map(len, page)) <= 80
    assert len(page) <= 66
    assert Tight().epsilon(shuffled.plan, shuffled.delta) == pytest.approx(shuffled.epsilon)


def test_a_statement_is_the_same_after_json(shuffled, monkeypatch):
    document = shuffled.to_json()
    assert TrainingStatement.from_json(document) == shuffled
    for key, value in (("epsilon", 0.1), ("lower", 0.0), ("advantage", 0.0)):
        with pytest.raises(StatementDiffers, match=key):
            check_same(shuffled, {**json.loads(document), key: value})
    forged = json.loads(document)
    forged["rows"][0]["upper"] = 1e-3
    with pytest.raises(StatementDiffers, match=r"rows\[0\].upper"):
        check_same(shuffled, forged)
    for text in ("", "[]", "{}", None, 5, "{" * 9, '{"kind": "dp-sgd statement"}'):
        with pytest.raises(ParameterError):
            TrainingStatement.from_json(text)
    for place, wrong in (("run", {}), ("found", None), ("found", {"what": "x"}), ("schema", 4)):
        with pytest.raises(ParameterError):
            read_document(json.dumps({**json.loads(document), place: wrong}))


def as_written_before_zero_out(statement):
    """The document of a statement as schema 1 had it: removed records of passes as if blank."""
    read = json.loads(statement.to_json())
    rows = {(one["loader"], one["relation"], one["microbatching"]): one for one in read["rows"]}
    for (loader, relation, micro), one in rows.items():
        if relation == ADD_REMOVE and loader in PASSES:
            one.update({**rows[loader, ZERO_OUT, micro], "relation": relation})
    rows = [one for one in rows.values() if one["relation"] != ZERO_OUT]
    (own,) = [
        one for one in rows if one["loader"] == statement.run.loader
        and one["relation"] == statement.relation and not one["microbatching"]
    ]  # fmt: skip
    del read["relation"]
    return {**read, "schema": 1, "rows": rows, "epsilon": own["upper"], "lower": own["lower"]}


def test_a_document_from_before_zero_out_is_read_unless_its_own_number_was_wrong(shuffled):
    poisson = replace(shuffled, run=replace(shuffled.run, loader="poisson"))
    before = as_written_before_zero_out(poisson)
    check_same(poisson, read_document(json.dumps(before)))
    before["rows"][0]["upper"] *= 0.9
    with pytest.raises(StatementDiffers, match=r"rows\[0\].upper"):
        check_same(poisson, before)
    wrong = as_written_before_zero_out(shuffled)
    with pytest.raises(StatementDiffers, match=r"epsilon must be 2\.48"):
        check_same(shuffled, read_document(json.dumps(wrong)))


def test_a_document_with_older_numbers_of_shuffled_passes_is_read_where_they_are_of_others(
    shuffled,
):
    poisson = replace(shuffled, run=replace(shuffled.run, loader="poisson"))
    for statement, row_is_own in ((poisson, False), (shuffled, True)):
        before = {**json.loads(statement.to_json()), "schema": 2}
        for row in before["rows"]:
            row["upper"] = row["upper"] and row["upper"] * (1 + (row["loader"] == "shuffled"))
        check_same(statement, read_document(json.dumps(before)))
        if row_is_own:
            with pytest.raises(StatementDiffers, match="epsilon must be"):
                check_same(statement, {**before, "epsilon": 3.3535})
        before["rows"][0]["upper"] *= 0.9
        with pytest.raises(StatementDiffers, match=r"rows\[0\].upper"):
            check_same(statement, before)


def test_every_epsilon_of_a_statement_stands_beside_its_neighbours(shuffled):
    page = shuffled.text(all_loaders=True)
    lines = [one for one in page.splitlines() if "epsilon" in one.lower()]
    named = [one for one in lines if any(str(relation) in one for relation in SAMPLING_RELATIONS)]
    # the others have no number of epsilon
    assert [one for one in lines if one not in named] == [
        "Epsilon of every loader at the same noise, length and delta (*: of this run)"
    ]
    first = next(one for one in lines if " at delta " in one)
    assert first.endswith("one record more or less (add-remove)")
    document = json.loads(shuffled.to_json())
    assert document["relation"] == "add-remove"
    assert {one["relation"] for one in document["rows"]} == set(SAMPLING_RELATIONS)
    assert shuffled.plan.relation == shuffled.relation
    assert "add-remove" in repr(shuffled)
    assert "add-remove" in shuffled._repr_html_()
    html = training_page(shuffled)
    for relation in SAMPLING_RELATIONS:
        assert f"epsilon, {relation}" in html


@pytest.mark.parametrize(
    ("run", "why"),
    [
        ({"examples": 3, "batch": 2}, "drop_last=True"),
        ({"examples": 4, "batch": 2, "drop_last": True}, "drop_last=False"),
        ({"examples": 4, "batch": 2, "microbatching": True}, "clip each example's gradient"),
    ],
)
def test_a_removed_record_that_has_no_bound_is_said_with_the_remedy(run, why):
    # so much noise that the intervals of the other loaders are quickly found
    facts = {"epochs": 1, "noise": 50.0, "loader": "fixed_order"}
    found = dp_sgd(**run, **facts)
    assert found.epsilon == math.inf
    assert found.advantage == 1.0
    words = " ".join(str(found).split())
    assert "no bound at delta" in words
    assert why in words
    assert "no bound" in training_page(found)
    assert TrainingStatement.from_json(found.to_json()) == found
    kept = dp_sgd(**run, **facts, relation="zero-out")
    assert kept.epsilon < math.inf
    with pytest.raises(ParameterError, match="relation must be another than add-remove"):
        dp_sgd(**run, epochs=1, epsilon=1.0, loader="fixed_order")


@pytest.mark.parametrize("microbatching", [False, True])
@pytest.mark.parametrize("examples_per_user", [None, 2])
def test_the_table_of_a_statement_has_every_number_in_its_place(microbatching, examples_per_user):
    run = TrainingRun(
        1000, 10, steps=5, loader="fixed_size", microbatching=microbatching,
        examples_per_user=examples_per_user,
    )  # fmt: skip
    blocks = {"one record, plain": ("record", False), "with microbatches": ("record", True)}
    if examples_per_user is not None:
        blocks["one user"] = ("user", microbatching)
    names = list(itertools.product(blocks, LOADERS, SAMPLING_RELATIONS))
    numbers = {name: 1 + k / 1000 for k, name in enumerate(names)}  # as many as there are cells
    rows = tuple(
        TrainingCost(loader, blocks[block][0], relation, blocks[block][1], epsilon, epsilon)
        for (block, loader, relation), epsilon in numbers.items()
    )
    statement = TrainingStatement(
        run=run, noise=2.0, delta=1e-6, relation=ADD_REMOVE,
        rows=RunCosts(run, 2.0, 1e-6, known=rows), advantage=0.5, found_records=0.25,
    )  # fmt: skip
    lines = statement.text(all_loaders=True).splitlines()
    for block, (_, has_microbatches) in blocks.items():
        (start,) = (k for k, line in enumerate(lines) if line.startswith(block))
        assert lines[start].removeprefix(block).split() == list(map(str, SAMPLING_RELATIONS))
        for loader, line in zip(LOADERS, lines[start + 1 :], strict=False):
            is_own = loader == "fixed_size" and has_microbatches == microbatching
            assert line.startswith(f"{'*' if is_own else ' '} {TITLES[loader]} ")
            shown = [format_upper(numbers[block, loader, one]) for one in SAMPLING_RELATIONS]
            assert line.split()[-len(shown) :] == shown
    assert any(line.startswith("one user") for line in lines) == ("one user" in blocks)
    assert ("without examples_per_user" in "\n".join(lines)) == (examples_per_user is None)


def test_the_page_asks_for_nothing_and_has_the_numbers(shuffled):
    html = training_page(shuffled, "python -m x <b>")
    harmless(html, {})
    assert format_upper(shuffled.epsilon) in html
    assert "python -m x &lt;b&gt;" in html
    (table,) = saved_tables(html).values()
    assert len(table) == len(shuffled.rows) + 1
    assert "microbatching" in shuffled._repr_html_()
    assert len(shuffled.to_frame()) == len(shuffled.rows)


def test_steps_and_passes_are_counted_as_loaders_do():
    plain = TrainingRun(10_000, 64, 5.0)
    assert (plain.draws, plain.batches, plain.last_batch, plain.dropped) == (782, 157, 16, 0)
    less = TrainingRun(10_000, 64, 5.0, loader="shuffled", drop_last=True)
    assert (less.batches, less.dropped, less.taken) == (156, 16, 780)
    assert TrainingRun(1000, 100, 0.1, loader="fixed_order").taken == 1
    assert TrainingRun(1000, 100, 2.05, loader="fixed_order").taken == 21
    assert TrainingRun(1000, 100, 0.3).draws == 3  # not 4 by a decimal that is no float
    assert TrainingRun(1000, 300, steps=9, loader="fixed_order").passes == 2 + 1 / 4
    # a pass that was begun counts above, and not below
    cut = TrainingRun(1000, 100, 2.5, loader="random_allocation")
    scheme = record_scheme(cut, 1.0, cut.loader, ADD_REMOVE, microbatching=False)
    epochs = [plan.epochs for plan in (*scheme.above, *scheme.below)]
    assert epochs == [3, 2]
    shuffled_half = TrainingRun(1000, 100, 0.5)
    scheme = record_scheme(shuffled_half, 1.0, "shuffled", ZERO_OUT, microbatching=False)
    assert scheme.below == ()
    # a removed record is in the five batches that are seen, in place of another, or in none
    scheme = record_scheme(shuffled_half, 1.0, "shuffled", ADD_REMOVE, microbatching=False)
    half = PoissonSampled(RandomAllocation(GaussianLoss(2.0), 5), 0.5)
    for (plan,) in (scheme.above[:1], scheme.below):
        assert list(plan.losses()) == list(half.losses())
    rated = TrainingRun(1000, 64, steps=5, rate=1 / 16)
    plan = record_scheme(rated, 2.0, "poisson", ADD_REMOVE, microbatching=False).plan
    assert plan == 5 * PoissonSampled(GaussianLoss(0.5), 1 / 16)


@pytest.mark.parametrize(
    ("run", "delta", "expected"),
    [
        (TrainingRun(10_000, 64, 5.0), 1e-5,
         ["Count your steps: 782 are epochs x examples / batch. A loader of 157 batches an epoch "
          "takes 785: then give steps."]),
        (TrainingRun(1000, 64, 1.5, loader="truncated_poisson"), 1e-5, []),  # 24 either way
        (TrainingRun(1000, 64, 2.5), 1e-5, []),  # 40 either way
        (TrainingRun(1000, 64, 1.1), 1e-5, []),
        (TrainingRun(1000, 64, 3.0, drop_last=True), 1e-5, []),  # the loader takes fewer
        (TrainingRun(1000, 100, 3.0), 1e-5, []),
        (TrainingRun(10_000, 64, steps=782), 1e-5, []),
        (TrainingRun(1000, 100, 3.0), 0.999e-3, []),
        (TrainingRun(1000, 100, 3.0), 1e-3,
         ["Delta is not below 1 / examples = 0.001: it would allow publishing a random record. "
          "Choose a smaller one."]),
    ],
)  # fmt: skip
def test_a_statement_warns_of_a_large_delta_and_of_a_loader_that_takes_more_steps(
    run, delta, expected
):
    rows = [
        TrainingCost(loader, "record", ADD_REMOVE, False, 0.5, 0.6)
        for loader in ("poisson", "truncated_poisson")
    ]
    known = RunCosts(run, 2.0, delta, known=rows)
    assert words.warnings(TrainingStatement(run, 2.0, delta, ADD_REMOVE, known)) == expected


def test_the_default_delta_is_below_one_over_n():
    assert [default_delta(n) for n in (60_000, 10_000, 10**6, 10, 1)] == [
        5e-6, 3e-5, 2e-7, 0.07, 0.1,
    ]  # fmt: skip
    for n in (2, 17, 10**5, 10**9, 10**12):
        assert default_delta(n) <= n**-1.1 < 1 / n


@pytest.mark.parametrize("loader", ["poisson", "fixed_order", "shuffled"])
def test_noise_is_found_from_epsilon(loader):
    run = TrainingRun(1000, 100, 2.0, loader=loader)
    noise = least_noise(run, ADD_REMOVE, 1.5, 1e-5)
    scheme = record_scheme(run, noise, loader, ADD_REMOVE, microbatching=False)
    assert 1.5 * (1 - 2e-6) <= Tight().epsilon(scheme.above[0], 1e-5) <= 1.5


def test_a_statement_finds_its_noise_from_epsilon(monkeypatch):
    monkeypatch.setattr("accountant.training.rows.LOADERS", ("poisson",))
    found = dp_sgd(examples=200, batch=100, epochs=2, epsilon=3, delta=1e-5)
    assert f"{found.noise:.4f}" == "1.7595"
    assert 3 * (1 - 2e-6) <= found.epsilon <= 3
    assert found.found == "noise"


def test_the_longest_run_is_found():
    run = longest_run(TrainingRun(1000, 100), 2.0, ADD_REMOVE, 1.5, 1e-5)
    costs = [
        Tight().epsilon(n * PoissonSampled(GaussianLoss(0.5), 0.1), 1e-5)
        for n in (run.steps, run.steps + 1)
    ]
    assert costs[0] <= 1.5 < costs[1]
    passes = longest_run(TrainingRun(9, 3, loader="fixed_order"), 9.0, ADD_REMOVE, 1.5, 1e-5)
    # three batches: two change by two clips, the last by one
    ends = [Tight().epsilon(n * GaussianLoss(3 / 9), 1e-5)
            for n in (int(passes.epochs), int(passes.epochs) + 1)]  # fmt: skip
    assert ends[0] <= 1.5 < ends[1]
    kept = longest_run(TrainingRun(9, 3, loader="fixed_order"), 9.0, ZERO_OUT, 1.5, 1e-5)
    ends = [Tight().epsilon(n * OnePass(GaussianLoss(1 / 9), 3), 1e-5)
            for n in (int(kept.epochs), int(kept.epochs) + 1)]  # fmt: skip
    assert ends[0] <= 1.5 < ends[1]
    with pytest.raises(ParameterError, match="one pass costs"):
        longest_run(TrainingRun(9, 3, loader="fixed_order"), 0.1, ADD_REMOVE, 1.5, 1e-5)


WRONG = [
    {"examples": 0}, {"examples": 100.0}, {"examples": True}, {"batch": 101}, {"batch": 0},
    {"epochs": math.nan}, {"epochs": 0}, {"epochs": 1e9}, {"epochs": None}, {"steps": 5},
    {"noise": math.nan}, {"noise": 0}, {"noise": None}, {"noise": "1"}, {"epsilon": 1.0},
    {"noise": None, "epsilon": math.inf}, {"delta": 0}, {"delta": 1}, {"loader": "DataLoader"},
    {"loader": None}, {"relation": "label-replace"}, {"examples_per_user": 0},
    {"examples_per_user": 101}, {"drop_last": 1}, {"microbatching": None}, {"max_batch": 0},
    {"rate": 0}, {"rate": 0.1, "loader": "shuffled"},
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_wrong_arguments_are_refused_by_name(wrong):
    facts = {"examples": 100, "batch": 10, "epochs": 1, "noise": 1.0}
    with pytest.raises(ParameterError) as error:
        dp_sgd(**{**facts, **wrong})
    assert error.value.argument in {*facts, *wrong}


def test_a_row_that_is_not_there_is_refused(shuffled):
    with pytest.raises(ParameterError, match="examples_per_user"):
        shuffled.row(unit="user")
    assert shuffled.user_epsilon is None
    assert repr(shuffled).startswith("<TrainingStatement: epsilon ")


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-3, 1e-9), (0.0, 1e-7), (1e-10, 1e-20)])
def test_rates_that_epsilon_admits_are_rounded_up(epsilon, delta):
    with mpmath.workdps(50):
        grown, fpr = mpmath.e ** mpmath.mpf(epsilon), mpmath.mpf(FALSE_POSITIVES)
        advantage = (grown - 1 + 2 * mpmath.mpf(delta)) / (grown + 1)
        power = min(delta + grown * fpr, 1 - (1 - mpmath.mpf(delta) - fpr) / grown)
    advantage_upper, power_upper = rates_of_epsilon(epsilon, delta)
    assert advantage <= advantage_upper <= advantage * (1 + 1e-14)
    assert power <= power_upper <= power * (1 + 1e-14)
