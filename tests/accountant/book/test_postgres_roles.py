"""A PostgreSQL server enforces the roles of a book on the logins of people."""

import pytest

from accountant import Book, Budget, LedgerCorrupt, ParameterError, RoleRefused
from accountant.book.chain.roles import ACTS, ANALYST, AUDITOR, CURATOR, LISTS, SET_ASIDE
from tests.accountant.book.people import DATA, TENTH, spend

psycopg = pytest.importorskip("psycopg")


@pytest.fixture
def place(postgres_server):
    """A book whose owner has given three logins a group each."""
    found = postgres_server.database()
    prefix = found.url.rpartition("%3D")[2]  # roles are of the whole server, so each book has its
    with Book.create(found.url) as book:
        book.dataset("d", Budget(1.0))
        sql = book.grants(prefix)
    found.execute(sql)
    found.execute(sql)  # a second time changes nothing
    for role, argument in LISTS.items():
        found.execute(f"CREATE ROLE {prefix}_{role} LOGIN")
        found.execute(f"GRANT {prefix}_{argument} TO {prefix}_{role}")
    found.prefix = prefix
    return found


def as_login(place, role):
    return place.url.replace("postgres@", f"{place.prefix}_{role}@")


def execute_as(place, role, sql, *values):
    with psycopg.connect(**{**place._to, "user": f"{place.prefix}_{role}"}, autocommit=True,
                         options=f"-csearch_path={place.prefix}") as db:  # fmt: skip
        return db.execute(sql, values)


def test_an_analyst_spends_and_does_no_work_of_a_curator(place):
    with Book.open(as_login(place, ANALYST)) as book:
        spend(book)
        book.ledger("d", DATA, 2 * TENTH, run="june").release(TENTH, lambda rows: rows.sum())
        for change in (
            lambda: book.dataset("e", Budget(1.0)),
            lambda: book.dataset("e", Budget(1.0), plan=2 * TENTH),
            lambda: book.raise_budget("d", Budget(2.0), "more"),
            lambda: book.expire("d", "2999-01-01", "some day"),
            lambda: book.set_quota("d", "ana", 0.5, "half"),
            lambda: book.close_dataset("d", "the end"),
        ):
            with pytest.raises(RoleRefused, match=r"SQLSTATE 42501.*ledger grants"):
                change()
        spend(book)
    with Book.open(as_login(place, CURATOR)) as book:
        book.raise_budget("d", Budget(2.0), "more")
        book.dataset("e", Budget(1.0), plan=2 * TENTH)
        with pytest.raises(RoleRefused):
            spend(book)
    with Book.open(as_login(place, AUDITOR)) as book:
        with pytest.raises(RoleRefused):
            spend(book)
        assert book.verify().entries == 12


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET kind = 'terms'",
        "DELETE FROM entries",
        "DELETE FROM blobs",
        "UPDATE blobs SET body = ''",
        "TRUNCATE entries",
        "DROP TABLE entries CASCADE",
        "DROP TRIGGER entries_need_role ON entries",
        "DROP TRIGGER entries_stay ON entries",
        "ALTER TABLE entries DISABLE TRIGGER ALL",
        "ALTER TABLE entries ADD COLUMN x int",
        "DROP FUNCTION entries_need_role() CASCADE",
        "CREATE OR REPLACE FUNCTION entries_need_role() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RETURN NEW; END $$",
        "CREATE TABLE other (x int)",
        "SET session_replication_role = replica",
        "SET SESSION AUTHORIZATION postgres",
    ],
)
@pytest.mark.parametrize("role", [CURATOR, ANALYST])
def test_no_login_takes_the_checks_away(place, role, statement):
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        execute_as(place, role, statement)


INSERT = "INSERT INTO entries VALUES (%s, %s, %s, %s, %s, '')"


@pytest.mark.parametrize("role", [CURATOR, ANALYST, AUDITOR])
def test_the_server_lets_each_role_write_its_acts(place, role):
    for act, whose in ACTS.items():
        kind, runs = ("plan", ',"runs":1') if act == SET_ASIDE else (act, "")
        body = f'{{"dataset":"d","format":2,"key":null,"kind":"{kind}"{runs},"seq":%d}}'
        seq = 100 + list(ACTS).index(act)
        values = (seq, "d", kind, None, body % seq)
        if whose.role == role:
            execute_as(place, role, INSERT, *values)
        else:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                execute_as(place, role, INSERT, *values)


@pytest.mark.parametrize(
    "body",
    [
        '{"dataset":"d","format":2,"key":null,"kind":"terms","seq":100}',
        '{"dataset":"e","format":2,"key":null,"kind":"seed","seq":100}',
        '{"dataset":"d","format":2,"key":"x","kind":"seed","seq":100}',
        '{"dataset":"d","format":2,"key":null,"kind":"seed","seq":101}',
        '{"dataset":"d","format":2,"key":null,"kind":"seed","kind":"terms","seq":100}',
        '{"dataset":"d","key":null,"kind":"seed","seq":100}',
        '{"dataset":"d","format":2,"key":null,"kind":"seed","seq":100,"x":"\\ud800"}',
        "no JSON with a format",
        "{}",
    ],
)
def test_a_column_must_say_what_its_entry_says(place, body):
    with pytest.raises(psycopg.errors.RaiseException):
        execute_as(place, ANALYST, INSERT, 100, "d", "seed", None, body)


def test_an_analyst_who_writes_by_hand_is_found(place):
    execute_as(place, ANALYST, INSERT, 3, "d", "seed", None,
               '{"dataset":"d","format":2,"key":null,"kind":"seed","seq":3}')  # fmt: skip
    with pytest.raises(LedgerCorrupt), Book.open(place.url) as book:
        book.verify()


def test_a_login_without_a_group_hears_that_it_may_not_see_the_book(place):
    place.execute(f"CREATE ROLE {place.prefix}_other LOGIN")
    with pytest.raises(ParameterError, match="sees only schemas that it may use"):
        Book.open(as_login(place, "other"))
