"""Opacus: a history is tied to its loader, as recorded from real trainings, or refused."""

import math
import re

import pytest

from accountant import (
    GaussianLoss,
    ParameterError,
    PoissonSampled,
    Tight,
    from_opacus,
    statement_of_opacus,
)
from accountant.formats import opacus_statement
from accountant.formats.added_samples import added_samples
from accountant.formats.loader_facts import LoaderFacts, loader_facts
from accountant.formats.opacus import opacus_record, register
from accountant.formats.opacus_steps import OpacusSteps, opacus_steps
from tests.accountant.formats.transcripts_of import as_object, transcript

RECORDED = transcript("opacus")
RUNS = RECORDED["runs"]
DELTA = RECORDED["delta"]
SOUND = ["poisson", "poisson of drop_last", "poisson, split by memory", "poisson, 93 batches"]
ORDERS = {
    "shuffled": "shuffled",
    "shuffled, split by memory": "shuffled",
    "shuffled, drop_last": "shuffled",
    "shuffled, two batches added": "shuffled",
    "subset": "shuffled",
    "fixed order": "fixed_order",
    "fixed size": "fixed_size",
    "with replacement": "repeated",
    "weighted": "weighted",
}
FACTS = {
    "order": "poisson", "sampler": "UniformWithReplacementSampler", "records": 1000, "batches": 16,
    "batch": None, "rate": 0.0625, "drop_last": False, "dataset": 1000,
}  # fmt: skip
HISTORY = [(1.0, 0.0625, 32)]


def loader(name):
    return as_object(RUNS[name]["loader"])


def refused(history=HISTORY, facts=FACTS, **options):
    with pytest.raises(ParameterError) as caught:
        from_opacus(history, facts, **options)
    return str(caught.value)


@pytest.mark.parametrize("name", SOUND)
def test_loaders_of_make_private_are_read_at_their_own_rate(name):
    run = RUNS[name]
    plan = from_opacus(run["history"], loader(name), epochs=run["epochs"], batch=run["batch"])
    facts = loader_facts(loader(name))
    assert facts.order == "poisson"
    [(noise, claimed, steps)] = run["history"]
    assert plan.parts[0].part == PoissonSampled(GaussianLoss(1 / noise), facts.rate)
    assert plan.parts[0].count == steps == run["epochs"] * facts.batches
    # Opacus' own accountants state upper bounds, the numerical one with an error of 0.01
    epsilon = Tight().epsilon(plan, DELTA)
    assert epsilon <= run["epsilon"]["prv"] + 1e-6 <= run["epsilon"]["rdp"]
    if claimed == facts.rate:
        assert run["epsilon"]["prv"] - epsilon < 0.02


def test_a_rate_that_opacus_counted_from_one_batch_too_few_is_the_loaders():
    # int(1 / (1 / 93)) is 92
    [(_, claimed, _)] = RUNS["poisson, 93 batches"]["history"]
    assert claimed == 1 / 92
    assert loader_facts(loader("poisson, 93 batches")).rate == 1 / 93


@pytest.mark.parametrize("name", ORDERS)
def test_a_loader_that_draws_no_poisson_samples_is_refused_with_a_remedy(name):
    facts = loader_facts(loader(name))
    assert facts.order == ORDERS[name]
    message = refused(RUNS[name]["history"], loader(name))
    assert "poisson_sampling=True" in message
    assert ("statement_of_opacus" in message) == (facts.order not in {"repeated", "weighted"})


def test_a_weighted_sampler_is_named_with_the_rate_that_was_claimed():
    # meta-pytorch/opacus#813: the rate is 1 / len(loader), and the loader has 128 draws of 100,000
    facts = {**FACTS, "order": "weighted", "sampler": "WeightedRandomSampler", "rate": None}
    facts |= {"records": 100_000, "dataset": 100_000, "batches": 8, "batch": 16}
    message = refused([(1.0, 0.125, 8)], facts)
    assert "the history counts Poisson samples of rate 0.125, while a batch holds" in message
    two_rates = refused([(1.0, 0.125, 4), (1.0, 0.25, 4)], facts)
    assert "Poisson samples of rate 0.125, 0.25, while a batch holds" in two_rates
    assert "0.00016 of the 100,000 records" in message
    # made private, batches are Poisson samples of 1/8 of all records, which were not meant
    run = RUNS["weighted, made private"]
    assert run["history"] == [[1.0, 0.125, 8]]
    assert from_opacus(run["history"], loader("weighted, made private")).parts[0].count == 8
    message = refused(run["history"], loader("weighted, made private"), batch=16)
    assert "a batch of 16 was meant, and the loader draws 125" in message


@pytest.mark.parametrize(
    ("history", "change", "options", "words"),
    [
        ([(1.0, 0.25, 8)], {}, {}, "gradients of 4 batches were added"),
        ([(1.0, 0.25, 8)], {}, {"epochs": 2}, "one step was taken for 4 batches"),
        ([(1.0, 0.016, 126)], {"physical": 16}, {}, "parts of a batch"),
        ([(1.0, 0.0625, 126)], {"physical": 16}, {"epochs": 2}, "parts of batches were counted"),
        (HISTORY, {}, {"epochs": 3}, "32 steps, and 3 epochs of the loader 48"),
        ([(1.0, 0.01, 32)], {}, {}, "10 records on average was counted and 62.5 are drawn"),
        (HISTORY, {"drop_last": True}, {}, "set drop_last=False"),
        (HISTORY, {"dataset": 2000}, {}, "the data set has 2,000"),
        (HISTORY, {"replicas": 8}, {}, "empty batches"),
        ([(1.0, 0.0625, 16), (1.0, 0.125, 16)], {}, {}, "rate is 0.125"),
        (HISTORY, {}, {"batch": 16}, "a batch of 16 was meant"),
        (HISTORY, {"batch": 16}, {}, "a batch of 16 was meant"),
    ],
)
def test_a_difference_is_named_with_its_remedy(history, change, options, words):
    assert words in refused(history, {**FACTS, **change}, **options)
    if len(history) == 1:  # no statement is of a schedule
        with pytest.raises(ParameterError, match=re.escape(words)):
            statement_of_opacus(history, {**FACTS, **change}, DELTA, **options)


def test_steps_whose_added_samples_were_counted_are_read():
    one = from_opacus([(1.0, 0.0625, 8, 4)], FACTS, epochs=2).parts[0]
    assert (one.part, one.count) == (added_samples(1.0, 0.0625, 4), 8)


@pytest.mark.parametrize(
    ("history", "words"),
    [
        ([(1.0, 0.0625, 8, 4)], r"those of several were added .* got \[\(1.0, 0.0625, 8, 4\)\]"),
        ([(1.0, 0.0625, 8), (2.0, 0.0625, 8)], "one noise and one rate"),
        ([], "of at least one step"),
        ([(1.0, 0.0625, 0)], "of at least one step"),
    ],
)
def test_a_history_that_no_statement_is_of_is_refused(history, words):
    with pytest.raises(ParameterError, match=words):
        statement_of_opacus(history, FACTS)


def test_all_differences_are_named_at_once():
    message = refused([(1.0, 0.25, 8)], {**FACTS, "drop_last": True}, epochs=3)
    assert all(f"({i})" in message for i in (1, 2, 3))


def test_processes_that_share_the_records_are_read_where_no_batch_is_empty():
    facts = loader_facts(as_object(RECORDED["distributed loader"]))
    assert (facts.order, facts.records, facts.rate) == ("poisson", 1000, 0.0625)
    shared = {**FACTS, "replicas": 2, "records": 10_000, "dataset": 10_000}
    assert from_opacus(HISTORY, shared).parts[0].count == 32


def random_loader(records, drawn, batch, **more):
    sampler = {"class": "RandomSampler", "length": drawn, "replacement": False}
    outer = {"class": "BatchSampler", "length": 1, "sampler": sampler, "batch_size": batch, **more}
    dataset = {"class": "TensorDataset", "length": records}
    return as_object(
        {"class": "DataLoader", "length": 1, "dataset": dataset, "batch_sampler": outer}
    )


@pytest.mark.parametrize(
    ("loader", "expected"),
    [
        (random_loader(1000, 50, 64), ("fixed_size", 50, 1)),
        (random_loader(1000, 1000, 2000), ("shuffled", 1000, 1)),
        (random_loader(1000, 1000, 64, drop_last=True), ("shuffled", 64, 15)),
        (random_loader(1000, 200, 64), ("part_of_shuffle", 64, 4)),
        (random_loader(1000, 3000, 64), ("repeated", 64, 47)),
    ],
)
def test_batches_of_a_random_sampler_are_counted(loader, expected):
    facts = loader_facts(loader)
    assert (facts.order, facts.batch, facts.batches) == expected


def test_a_loader_without_a_batch_is_refused():
    for loader in (random_loader(10, 10, 64, drop_last=True), random_loader(0, 0, 64)):
        with pytest.raises(ParameterError, match="at least one batch"):
            loader_facts(loader)


def test_a_manager_of_memory_is_read_as_the_loader_that_it_splits():
    class BatchMemoryManager:
        data_loader, max_physical_batch_size = loader("poisson"), 16

    facts = loader_facts(BatchMemoryManager())
    assert (facts.physical, facts.rate) == (16, 0.0625)
    assert from_opacus(HISTORY, BatchMemoryManager(), epochs=2).parts[0].count == 32


def test_a_sampler_that_draws_in_its_own_way_is_unknown():
    class UniformWithReplacementSampler:
        num_samples, sample_rate, steps = 1000, 0.0625, 16

        def __iter__(self):
            return iter(())

    class Mine(UniformWithReplacementSampler):
        def __iter__(self):
            return iter([[1, 2]])

    class Loader:
        dataset, batch_size, drop_last = range(1000), None, False

    Loader.batch_sampler = UniformWithReplacementSampler()
    assert loader_facts(Loader()).order == "poisson"
    Loader.batch_sampler = Mine()
    assert loader_facts(Loader()).order == "unknown"
    assert "no epsilon is known" in refused(HISTORY, Loader())


@pytest.mark.parametrize(
    "wrong",
    [
        None, 3, "text", b"text", [3], [(1.0, 0.1)], [(1.0, 0.1, 1, 1, 1)], [(math.nan, 0.1, 1)],
        [(math.inf, 0.1, 1)], [(0.0, 0.1, 1)], [(True, 0.1, 1)], [(1.0, True, 1)],
        [(1.0, 1.6, 1)], [(1.0, -0.1, 1)], [(1.0, 0.1, True)], [(1.0, 0.1, -1)], [(1.0, 0.1, 2.0)],
        [("1", 0.1, 1)], [(1.0, 0.1, 1, 0)], {"history": None}, {"mechanism": "rdp"},
    ],
)  # fmt: skip
def test_no_history_is_trusted(wrong):
    for read in (from_opacus, opacus_record, lambda one: from_opacus(one, FACTS)):
        with pytest.raises(ParameterError):
            read(wrong)


@pytest.mark.parametrize("wrong", [None, 3, "text", [3], [(1.0, 0.1)], [(1.0, 0.1, 1, 1, 1)]])
def test_the_refusal_of_what_is_no_history_says_what_one_is(wrong):
    words = r"history must be a list of \(noise_multiplier, sample_rate, steps\)"
    with pytest.raises(ParameterError, match=words):
        from_opacus(wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        3, [1.0, 2.0], {}, {**FACTS, "rate": True}, {**FACTS, "rate": math.nan},
        {**FACTS, "rate": 0.0}, {**FACTS, "rate": -0.1}, {**FACTS, "rate": 1.5},
        {**FACTS, "batches": -1}, {**FACTS, "order": "any"}, {**FACTS, "more": 1},
        {**FACTS, "drop_last": 1}, {**FACTS, "rate": None}, {**FACTS, "sampler": 3},
        {**FACTS, "order": "shuffled"}, as_object({"class": "DataLoader", "length": 3}),
    ],
)  # fmt: skip
def test_no_loader_is_trusted_and_no_data_are_shown(wrong):
    with pytest.raises(ParameterError) as caught:
        from_opacus(HISTORY, wrong)
    assert "2.0" not in str(caught.value)


def test_a_history_alone_is_refused_with_both_remedies():
    # noise 1, 100 batches of 10 of 1,000 records, 10 passes: 2.003 by the history
    history = [(1.0, 0.01, 1000)]
    with pytest.raises(
        ParameterError, match=r"make_private returned it.*assume='poisson'"
    ) as error:
        from_opacus(history)
    assert error.value.argument == "loader"
    plan = from_opacus(history, assume="poisson")
    assert plan.parts == (1000 * PoissonSampled(GaussianLoss(1.0), 0.01),)
    for wrong in ("shuffled", "Poisson", True, 1):
        with pytest.raises(ParameterError, match="assume"):
            from_opacus(history, assume=wrong)
    with pytest.raises(ParameterError, match="assume must be left out where a loader is given"):
        from_opacus(HISTORY, FACTS, assume="poisson")


def test_epochs_and_batch_need_a_loader():
    with pytest.raises(ParameterError, match="left out where no loader"):
        from_opacus(HISTORY, epochs=2, assume="poisson")


def test_every_form_of_a_history_is_read():
    class Accountant:
        history = HISTORY

    class Engine:
        accountant = Accountant()

    plan = from_opacus(HISTORY, assume="poisson")
    checkpoint = {"module_state_dict": {}, "privacy_accountant_state_dict": {"history": HISTORY}}
    record = opacus_record(Engine(), FACTS)
    for form in (Accountant(), Engine(), {"history": HISTORY, "mechanism": "prv"}, checkpoint):
        assert from_opacus(form, assume="poisson") == plan
    assert from_opacus(record) == plan
    assert record["loader"] == loader_facts(FACTS).to_dict()
    with pytest.raises(ParameterError, match="3 epochs"):
        from_opacus(record, epochs=3)


@pytest.fixture
def asked(monkeypatch):
    """What `dp_sgd` is asked for; its table takes a second or more."""
    found = {}

    def dp_sgd(examples, batch, **options):
        found.update(options, examples=examples, batch=batch)

    monkeypatch.setattr(opacus_statement, "dp_sgd", dp_sgd)
    return found


@pytest.mark.parametrize(
    "name", [*SOUND, *(k for k in ORDERS if k not in {"with replacement", "weighted"})]
)
def test_a_statement_is_asked_for_the_loader_that_holds(name, asked):
    run, facts = RUNS[name], loader_facts(loader(name))
    statement_of_opacus(
        run["history"], loader(name), DELTA, epochs=run["epochs"] * ("added" not in name) or None
    )
    [(noise, _, steps)] = run["history"]
    assert (asked["loader"], asked["noise"], asked["steps"]) == (facts.order, noise, steps)
    assert (asked["examples"], asked["rate"]) == (facts.records, facts.rate)
    assert asked["drop_last"] == facts.drop_last
    drawn = {"shuffled, two batches added": 128, "poisson of drop_last": 67}
    expected = drawn.get(name, run["batch"])
    assert abs(asked["batch"] - expected) <= 2 * (facts.order == "poisson")


def test_a_shuffled_run_costs_more_than_its_claim():
    facts = {**FACTS, "order": "shuffled", "batch": 50, "batches": 2, "rate": None}
    history = [(4.0, 0.5, 2)]
    found = statement_of_opacus(history, {**facts, "records": 100, "dataset": 100}, DELTA, epochs=1)
    assert found.run.loader == "shuffled"
    claim = Tight().epsilon(from_opacus(history, assume="poisson"), DELTA)
    assert found.row().lower > claim
    again = opacus_statement._only_steps(opacus_steps([(4.0, 0.5, 1, 2)]), loader_facts(facts))
    assert again == OpacusSteps(4.0, 1.0, 1)
    assert found.row("poisson").upper == pytest.approx(claim, rel=1e-3)


@pytest.mark.parametrize(
    ("history", "change", "words"),
    [
        ([(1.0, 0.0625, 16), (2.0, 0.0625, 16)], {}, "one noise"),
        ([], {}, "of at least one step"),
        (HISTORY, {"order": "weighted", "batch": 16, "rate": None}, "draws by weights"),
        ([(1.0, 0.3, 8)], {"order": "shuffled", "batch": 64, "rate": None}, "pass the loader"),
        ([(1.0, 5 / 16, 8)], {"order": "shuffled", "batch": 64, "rate": None}, "do not divide"),
        ([(1.0, 0.25, 8)], {}, "gradients of 4 batches"),
    ],
)
def test_a_statement_that_cannot_be_made_is_refused(history, change, words):
    with pytest.raises(ParameterError, match=words):
        statement_of_opacus(history, {**FACTS, **change}, DELTA)
    with pytest.raises(ParameterError, match="given here or to opacus_record"):
        statement_of_opacus(HISTORY)


def test_facts_say_what_they_are():
    assert "rate 0.0625 of 1,000 records" in str(LoaderFacts(**FACTS))


def test_registration_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "opacus", None)
    with pytest.raises(ImportError, match="Opacus is not installed"):
        register()
