"""Groups by private keys: those that many persons have are selected, then answered for."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from accountant import (
    Book,
    Budget,
    BudgetExceeded,
    Filter,
    Ledger,
    OffPlan,
    ParameterError,
    Tight,
    UnsupportedPlan,
)
from algorithms.frames import (
    Key,
    Number,
    Schema,
    col,
    count,
    mean,
    median,
    private_keys,
    quantiles,
    regression,
    sum_,
    top_k,
    variance,
)
from tests.algorithms.frames.frames_of import LIBRARIES, frame_of

COST = {"epsilon": 1.0, "delta": 1e-6}
COLUMNS = {"shop": Key(2), "zip": Key(), "pay": Number(0, 10)}

TIPPED = Schema({**COLUMNS, "tip": Number(0, 2)}, person="id")


def shops(n=2000):
    rng = np.random.default_rng(0)
    return {
        "shop": [*rng.choice(["drop", "east"], n - 3).tolist(), None, "", "x" * 300],
        "zip": [*rng.integers(-1, 2, n - 1).tolist(), 7], "pay": rng.uniform(0, 10, n).tolist(),
        "id": (np.arange(n) // 2).tolist(),
    }  # fmt: skip


def declared(**facts):
    return Schema(COLUMNS, **{"person": "id", "rows_per_person": 2, **facts})


def budget():
    return Budget(1.0, 1e-6)


@pytest.mark.parametrize("library", LIBRARIES)
def test_keys_are_selected_and_then_counted(library):
    columns, query = shops(), count(by="shop", **COST)
    frame, plan = frame_of(library, columns), query.plan(declared())
    assert Tight().epsilon(plan, 1e-6) <= 1.0
    selection, noise = plan.leaves()
    assert (selection.keys, noise.sensitivity) == (2, 2)
    ledger = Ledger(frame, plan, rng=0)
    answer = query.release(ledger, declared())
    assert ledger.next is None
    table = answer.frame
    assert type(table) is type(frame)
    assert list(table["shop"].to_numpy()) == ["drop", "east"]
    truth = [columns["shop"].count(name) for name in ("drop", "east")]
    assert np.abs(answer.value - truth).max() < 60
    ends = answer.interval()
    assert (ends[:, 0] <= truth).all()
    assert (truth <= ends[:, 1]).all()
    assert released_by_filter(query, frame).released.tolist() == answer.released.tolist()


def released_by_filter(query, frame):
    return query.release(Filter(frame, budget(), notion="pure", rng=0), declared())


def many_keys(seed=0, persons=3000, keys=40):
    """Rows of persons with 2 to 40 distinct keys, of which few are frequent."""
    rng = np.random.default_rng(seed)
    held = np.minimum(2 * (rng.pareto(1.0, persons) + 1), keys).astype(int)
    person = np.repeat(np.arange(persons), held)
    key = np.minimum(rng.zipf(1.3, person.size), 5000)
    return pl.DataFrame({"shop": key, "id": person})


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_rounds_keep_more_keys_of_persons_with_many(relation):
    frame, kept = many_keys(), {}
    schema = Schema({"shop": Key(40)}, person="id", rows_per_person=40, relation=relation)
    for noise in ("auto", "laplace"):
        query = count(by="shop", noise=noise, **COST)
        plan = query.plan(schema)
        assert 0.97 < Tight().epsilon(plan, 1e-6) <= 1.0
        ledger = Ledger(frame, plan, rng=0)
        kept[noise] = query.release(ledger, schema).frame["shop"].to_list()
        assert ledger.next is None
        steps = 4 if noise == "auto" else 2
        assert len(list(plan.leaves())) == steps
        assert ("in 3 rounds" in query.explain(schema)) == (noise == "auto")
    assert len(kept["auto"]) > 1.5 * len(kept["laplace"]) > 0
    assert kept["auto"] == sorted(set(kept["auto"]))


@pytest.mark.parametrize("notion", ["pure", "zcdp", "rdp", "gdp", "pure-or-rdp"])
def test_filters_that_refuse_rounds_name_the_one_selection(notion):
    schema = Schema({"shop": Key(5)}, person="id", rows_per_person=40)
    gate = Filter(many_keys(), budget(), notion=notion)
    with pytest.raises(UnsupportedPlan, match='noise="laplace" asks for one selection'):
        count(by="shop", **COST).release(gate, schema)
    assert gate.spent == 0


@pytest.mark.parametrize(("keys", "epsilon", "steps"), [(512, 0.1, 4), (50, 1000.0, 2)])
def test_keys_are_selected_by_whichever_selection_exists(keys, epsilon, steps):
    schema = Schema({"shop": Key(keys)}, person="id", rows_per_person=keys)
    plan = count(by="shop", epsilon=epsilon, delta=1e-6).plan(schema)
    assert len(list(plan.leaves())) == steps
    assert Tight().epsilon(plan, 1e-6) <= epsilon


def test_keys_that_no_selection_keeps_are_refused():
    schema = Schema({"shop": Key(512)}, person="id", rows_per_person=512)
    with pytest.raises(ParameterError, match="key_epsilon"):
        count(by="shop", epsilon=1e-9, delta=1e-6).plan(schema)


def test_a_filter_that_adds_up_epsilons_refuses_rounds_and_takes_one_release():
    schema = Schema({"shop": Key(5)}, person="id", rows_per_person=40)
    gate = Filter(many_keys(), budget(), notion="pure", rng=0)
    with pytest.raises(UnsupportedPlan):
        count(by="shop", **COST).release(gate, schema)
    assert gate.spent == 0
    kept = count(by="shop", noise="laplace", **COST).release(gate, schema)
    assert len(kept.value) > 0


@pytest.mark.parametrize("library", LIBRARIES)
def test_keys_are_numbers_too_beside_public_ones(library):
    columns = shops()
    frame = frame_of(library, columns)
    pay = np.array(columns["pay"])
    for query, exact, near in (
        (sum_("pay", by="zip", **COST), np.sum, 300),
        (mean("pay", by="zip", where=col("pay") >= 0, **COST), np.mean, 0.6),
        (variance("pay", by="zip", **COST), np.var, 4),
    ):
        answer = released_by_filter(query, frame)
        assert list(answer._columns()["zip"]) == [-1, 0, 1]
        truth = [exact(pay[np.array(columns["zip"]) == name]) for name in (-1, 0, 1)]
        assert np.abs(answer.value - truth).max() < near


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_quantiles_of_keys_that_were_selected(library, relation):
    columns = shops()
    frame, schema = frame_of(library, columns), declared(relation=relation)
    query = quantiles("pay", [0.25, 0.5], by="shop", epsilon=3.0, delta=1e-6)
    plan = query.plan(schema)
    assert Tight().epsilon(plan, 1e-6) <= 3.0
    ledger = Ledger(frame, plan, rng=0)
    answer = query.release(ledger, schema)
    assert ledger.next is None
    assert answer.labels["shop"] == ["drop", "drop", "east", "east"]
    pay, shop = np.array(columns["pay"]), np.array(columns["shop"], dtype=object)
    truth = [np.quantile(pay[shop == name], [0.25, 0.5]) for name in ("drop", "east")]
    assert np.abs(answer.value - truth).max() < 0.5
    assert "keys of shop: kept by chance" in query.explain(schema)
    few = Ledger(frame_of(library, shops(8)), plan, rng=0)
    answer_without_keys = query.release(few, schema)
    assert answer_without_keys.value.shape == (0, 2)
    assert answer_without_keys.noise_scale == answer.noise_scale  # of the tree, not of the ends
    assert few.next is None


def test_where_no_key_is_kept_the_answer_has_no_cells():
    frame = frame_of("polars", shops(8))
    for query in (count(by="shop", **COST), mean("pay", by="zip", **COST)):
        ledger = Ledger(frame, query.plan(declared()), rng=0)
        answer = query.release(ledger, declared())
        assert answer.value.shape == (0,)
        assert len(answer.frame) == 0
        assert ledger.next is None


@pytest.mark.parametrize("frame", [
    pd.DataFrame({"zip": pd.array([3, None] * 400, dtype="Int64")}),
    pd.DataFrame({"zip": pd.Categorical(["3", None] * 400)}),
    pd.DataFrame({"zip": ["3", 5] * 400}),
    pl.DataFrame({"zip": ["3", None] * 400}, schema={"zip": pl.Categorical}),
    pa.table({"zip": pa.array(["3", None] * 400).dictionary_encode()}),
])  # fmt: skip
def test_types_of_columns_that_libraries_have(frame):
    answer = count(by="zip", **COST).release(
        Filter(frame, budget(), notion="pure", rng=0), Schema({"zip": Key()})
    )
    assert [str(one) for one in answer._columns()["zip"]] == ["3"]
    assert answer.value[0] == pytest.approx(400, abs=40)


def test_what_does_not_fit_spends_nothing():
    frame, query = frame_of("polars", shops(50)), count(by="shop", **COST)
    ledger = Filter(frame, Budget(0.9, 1e-6), notion="pure", rng=0)
    with pytest.raises(BudgetExceeded):
        query.release(ledger, declared())
    assert ledger.spent == 0
    with pytest.raises(ParameterError, match="label must be None: only the ledger of a book"):
        query.release(ledger, declared(), label="shops")


def test_a_book_reserves_the_plan_first(tmp_path):
    frame, query = frame_of("polars", shops()), count(by="shop", **COST)
    with Book.create(f"sqlite:///{tmp_path / 'book.db'}") as book:
        book.dataset("shops", Budget(1.0, 1e-6), notion="pure")
        plan = query.plan(declared())
        with book.ledger("shops", frame, plan, run="first") as ledger:
            answer = query.release(ledger, declared())
        with book.ledger("shops", frame, plan, run="first") as ledger:
            again = query.release(ledger, declared())
            with pytest.raises(ParameterError, match="label must be None: only the ledger"):
                query.release(ledger, declared(), label="shops")
        assert again.released.tolist() == answer.released.tolist()
        assert book.spent("shops") <= 1.0


def test_a_book_reserves_a_question_of_several_steps_by_itself(tmp_path):
    frame, query = frame_of("polars", shops()), count(by="shop", **COST)
    with Book.create(f"sqlite:///{tmp_path / 'book.db'}") as book:
        book.dataset("shops", Budget(1.0, 1e-6), notion="pure")
        with book.ledger("shops", frame) as ledger:
            answer = query.release(ledger, declared(), label="shops")
            coins = ledger.coins.random()
            spent = book.spent("shops")
            assert query.release(ledger, declared(), label="shops").released.tolist() == (
                answer.released.tolist()
            )
            with pytest.raises(BudgetExceeded):  # what is left does not suffice for all steps
                query.release(ledger, declared())
            assert ledger.coins.random() != coins
        with book.ledger("shops", frame) as ledger:  # as after a crash
            again = query.release(ledger, declared(), label="shops")
        assert again.released.tolist() == answer.released.tolist()
        assert book.spent("shops") == spent > 0.5
        assert [line.run for line in book.history("shops")] == ["shops"] * 3
        ledger = book.ledger("shops", frame)
        ledger.close()
        with pytest.raises(OffPlan, match="this ledger was closed"):
            query.release(ledger, declared(), label="others")
        book.verify()


@pytest.mark.parametrize(("make", "words"), [
    (lambda: Key(0), "keys_per_person must be"),
    (lambda: count(by="shop", epsilon=1.0).plan(declared()), "epsilon must be given, with a delta"),
    (lambda: count(by="shop", rho=1.0).plan(declared()), "epsilon must be given, with a delta"),
    (lambda: count(by="shop", noise="gaussian", **COST).plan(declared()),
     'noise must be "laplace" or "auto": how many keys'),
    (lambda: count(by=["shop", "zip"], **COST).plan(declared()), "one column of private"),
    (lambda: count("shop", **COST).plan(declared()), "column 'shop' must be used in by= alone"),
    (lambda: count(where=col("shop") == "a", **COST).plan(declared()), "used in by= alone"),
    (lambda: count(by="zip", where=col("zip") == 1, **COST).plan(declared()), "must be one of"),
    (lambda: median("pay", by="shop", epsilon=1.0).plan(declared()), "epsilon must be given, with"),
    (lambda: top_k("shop", 1, epsilon=1.0).plan(declared()), "used in by= alone"),
    (lambda: regression("pay", "tip", by="shop", **COST).plan(TIPPED),
     "by private keys count, sum_, mean, variance and quantiles are asked"),
])  # fmt: skip
def test_refusals(make, words):
    with pytest.raises(ParameterError, match=words):
        make()


def test_the_schema_is_a_file(tmp_path):
    path = str(tmp_path / "shops.toml")
    declared().to_toml(path)
    assert Schema.from_toml(path) == declared()
    (tmp_path / "short.toml").write_text("[columns.shop]\nkind = 'key'\n")
    assert Schema.from_toml(str(tmp_path / "short.toml")).columns["shop"] == Key()


def test_it_explains_how_many_persons_a_key_needs():
    words = count(by="shop", **COST).explain(declared())
    assert "half of those of 51 persons (2 keys a person)" in words


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("key", ["shop", "zip"])
def test_equal_cells_are_counted_as_rows_are(library, key, monkeypatch):
    columns, schema = shops(60), declared(person=None, rows_per_person=1)
    columns[key] += [None if key == "shop" else 5, columns[key][0]]
    frame, query = frame_of(library, {key: columns[key]}), count(by=key, **COST)
    names = [7, -1, 5] if key == "zip" else ["east", "never", "drop"]
    public = private_keys.with_keys(schema, key, names)

    def counts():
        counted = private_keys.key_counts(query, frame, key, schema)
        sums = private_keys.sums_by_keys(query, frame, key, public, names)
        return dict(zip(counted.keys.tolist(), counted.counts.tolist(), strict=True)), sums.tolist()

    by_cells = counts()
    expected = [columns[key].count(name) for name in names]
    assert (by_cells[1], sum(by_cells[0].values())) == (expected, 62 if key == "zip" else 58)
    monkeypatch.setattr(private_keys, "counts_of_distinct", lambda *question: None)
    assert counts() == by_cells


class ClaimsEquality(str):
    """A text that says it is equal to all others."""

    __slots__ = ()

    def __eq__(self, other):
        return True

    def __hash__(self):
        return hash("a")


def objects(*cells):
    return pd.Series(cells, dtype=object)


@pytest.mark.parametrize("column", [
    objects("a", "b", "a"),
    objects("a", "a\ud800", "b", "a", "", "a\0", "x" * 300),
    objects("a", None, 1, True, 1.0, float("nan"), b"a", ["a"], {}, "b", "a"),
    objects("a", np.str_("a"), ClaimsEquality("b"), 1),
    pd.Series(pd.Categorical.from_codes([0, 1, 0, -1, 2, 3, 4], [*"ab", "", "a\0", "never"]))[:-1],
    pd.Series(pd.Categorical.from_codes([0, 1, 0, 2], pd.Index(["a", "b", 1], dtype=object))),
    pl.Series(["a", "b", "a", None], dtype=pl.Enum(["b", "a"])),
])  # fmt: skip
def test_cells_of_objects_and_categories_are_counted_by_their_plain_texts(column, monkeypatch):
    frame = {"pandas": pd, "polars": pl}[type(column).__module__.split(".")[0]].DataFrame
    schema = declared(person=None, rows_per_person=1)

    def counts():
        data = frame({"shop": column})
        counted = private_keys.key_counts(count(by="shop", **COST), data, "shop", schema)
        return dict(zip(counted.keys.tolist(), counted.counts.tolist(), strict=True))

    assert counts() == {"a": 2, "b": 1}
    monkeypatch.setattr(private_keys, "counts_of_distinct", lambda *question: None)
    assert counts() == {"a": 2, "b": 1}
