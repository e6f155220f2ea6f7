"""Contents of audit entries, and their protection against changes."""

import asyncpg
import pytest

from builders.auth import ACTOR, WriteEntry
from tapgate.runtime.store.database import Database


async def _fetch_only_entry(database: Database) -> asyncpg.Record:
    (row,) = await database.fetch("SELECT * FROM audit_entries")
    return row


async def test_entry_records_actor_action_and_origin(
    database: Database, write_entry: WriteEntry
) -> None:
    async with database.transaction() as tx:
        await write_entry(tx, reason="stolen", changes={"status": ("ACTIVE", "LOST")})
    row = await _fetch_only_entry(database)
    assert row["event"] == "card.blocked"
    assert (row["resource_type"], row["resource_id"]) == ("card", "TAP-1")
    assert (row["result"], row["reason"]) == ("success", "stolen")
    assert (row["actor"], row["actor_id"]) == (ACTOR.record, ACTOR.id)
    assert (row["ip"], row["request_id"]) == (ACTOR.ip, ACTOR.request_id)
    assert row["changes"] == {"status": ["ACTIVE", "LOST"]}
    assert (row["previous_hash"], row["hash"]) == (None, None)


async def test_entry_is_rolled_back_with_its_change(
    database: Database, write_entry: WriteEntry
) -> None:
    with pytest.raises(ZeroDivisionError):
        async with database.transaction() as tx:
            await write_entry(tx)
            raise ZeroDivisionError
    assert await database.fetchval("SELECT count(*) FROM audit_entries") == 0


@pytest.mark.parametrize(
    "name",
    ["pin", "new_pin", "PASSWORD", "password_hash", "hmac_secret", "token", "otp", "api_key"],
)
async def test_value_of_a_field_named_like_a_secret_is_masked(
    database: Database, write_entry: WriteEntry, name: str
) -> None:
    async with database.transaction() as tx:
        await write_entry(
            tx, changes={name: (None, "4071"), "nested": ({name: ["4071"]}, {name: {"a": 1}})}
        )
    changes = (await _fetch_only_entry(database))["changes"]
    assert changes == {name: [None, "***"], "nested": [{name: "***"}, {name: "***"}]}


@pytest.mark.parametrize("name", ["key_id", "pin_locked_until", "no_pin_limit", "pinned", "prefix"])
async def test_value_of_a_field_that_only_refers_to_a_secret_is_kept(
    database: Database, write_entry: WriteEntry, name: str
) -> None:
    async with database.transaction() as tx:
        await write_entry(tx, changes={name: ("1", ["2"])})
    assert (await _fetch_only_entry(database))["changes"] == {name: ["1", ["2"]]}


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_entries SET reason = 'another'",
        "UPDATE audit_entries SET actor = '{\"id\": \"someone else\"}', hash = '\\x00'",
        "DELETE FROM audit_entries",
        "TRUNCATE audit_entries",
        "UPDATE audit_head SET hash = '\\x00'",
        "DELETE FROM audit_head",
        "TRUNCATE audit_head",
    ],
)
async def test_database_rejects_changes_to_the_log(
    database: Database, write_entry: WriteEntry, statement: str
) -> None:
    async with database.transaction() as tx:
        await write_entry(tx)
    with pytest.raises(asyncpg.RestrictViolationError):
        await database.execute(statement)
