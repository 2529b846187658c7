"""SQL that lets a PostgreSQL server enforce the roles of a book, beside the signatures of entries.

Each role is a group of logins, such as ``book_curators``.  All of them may read and add entries,
each of its own kinds.  A trigger refuses an entry of a kind that is not the act of the login's
group; it runs with the rights of the table's owner, so that no other login can change what it does.
"""

from __future__ import annotations

import re

from accountant.book.chain.roles import ACTS, ANALYST, AUDITOR, CURATOR, LISTS, SET_ASIDE
from accountant.errors import ParameterError

# The names of groups that need no quotes in SQL; PostgreSQL cuts names off after 63 letters.
PREFIX = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)
VIEWS = ("datasets", "plans", "reservations", "releases")
GRANTS = """\
-- Roles of a book of dp-attest, for PostgreSQL: run this once as the owner of its tables.
-- Then give each login its group, for example: GRANT {analysts} TO ana;
-- A login must own nothing in the schema, and be no superuser.
DO $do$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['{curators}', '{analysts}', '{auditors}'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', name);
        END IF;
    END LOOP;
END $do$;
REVOKE CREATE ON SCHEMA {schema} FROM PUBLIC;
REVOKE ALL ON {tables} FROM PUBLIC, {groups};
GRANT USAGE ON SCHEMA {schema} TO {groups};
GRANT SELECT ON {tables} TO {groups};
GRANT INSERT ON {schema}.entries TO {groups};
GRANT INSERT ON {schema}.blobs TO {analysts};
CREATE OR REPLACE FUNCTION {schema}.entries_need_role() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    stated jsonb;
    act text;
BEGIN
    IF session_user = (SELECT tableowner FROM pg_tables
                       WHERE schemaname = TG_TABLE_SCHEMA AND tablename = TG_TABLE_NAME) THEN
        RETURN NEW;
    END IF;
    BEGIN
        stated := NEW.body::jsonb;
    EXCEPTION WHEN data_exception THEN
        RAISE EXCEPTION 'an entry is not JSON as PostgreSQL reads it';
    END;
    IF (NEW.kind, NEW.dataset, NEW.key, NEW.seq) IS DISTINCT FROM
       (stated ->> 'kind', stated ->> 'dataset', stated ->> 'key', (stated ->> 'seq')::bigint) THEN
        RAISE EXCEPTION 'a column does not say what its entry says';
    END IF;
    act := CASE WHEN NEW.kind = 'plan' AND stated ? 'runs' THEN '{set_aside}' ELSE NEW.kind END;
    IF NOT (act IN ({curator_acts})
            AND pg_has_role(session_user, '{curators}', 'MEMBER')
         OR act IN ({analyst_acts})
            AND pg_has_role(session_user, '{analysts}', 'MEMBER')
         OR act IN ({auditor_acts})
            AND pg_has_role(session_user, '{auditors}', 'MEMBER')) THEN
        RAISE EXCEPTION 'the group of % does not write entries of this kind: %', session_user, act
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
REVOKE ALL ON FUNCTION {schema}.entries_need_role() FROM PUBLIC;
DROP TRIGGER IF EXISTS entries_need_role ON {schema}.entries;
CREATE TRIGGER entries_need_role BEFORE INSERT ON {schema}.entries
    FOR EACH ROW EXECUTE FUNCTION {schema}.entries_need_role();
"""


def grants_sql(schema: str, prefix: str = "book") -> str:
    """Return the statements for a book in a schema; ``prefix`` begins the names of the groups."""
    if not isinstance(prefix, str) or not PREFIX.fullmatch(prefix):
        raise ParameterError("prefix", prefix, "at most 40 lower-case letters, digits and _")
    groups = {plural: f"{prefix}_{plural}" for plural in LISTS.values()}
    quoted_schema = '"{}"'.format(schema.replace('"', '""'))

    def acts_of(role: str) -> str:
        return ", ".join(f"'{kind}'" for kind, act in ACTS.items() if act.role == role)

    return GRANTS.format(
        **groups,
        groups=", ".join(groups.values()),
        schema=quoted_schema,
        tables=", ".join(f"{quoted_schema}.{name}" for name in ("entries", "blobs", *VIEWS)),
        set_aside=SET_ASIDE,
        curator_acts=acts_of(CURATOR),
        analyst_acts=acts_of(ANALYST),
        auditor_acts=acts_of(AUDITOR),
    )
