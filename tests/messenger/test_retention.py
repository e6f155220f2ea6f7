"""Retention deletes expired rows and nothing else."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from builders.auth import FakeClock
from tapgate.messenger import retention
from tapgate.messenger.retention import RETENTION_RULES, Retention, RetentionRule
from tapgate.runtime.store.database import Database

#: Columns and values of one row per table. $1 is the row's number, and $2 the start of its age.
TABLE_ROWS: dict[str, str] = {
    "outbox": """(id, address, next_attempt_at, created_at) VALUES ($1, 'a', $2, $2)""",
    "received": """(id, message_id, address, sent_at, reserved_for, reserved_until, status,
                    received_at) VALUES ($1, $1::bigint::text, 'a', 0, 0, $2, 'handled', $2)""",
    "forms": """(token_hash, address, form, operation, language, text, expires_at)
                VALUES (int8send($1), 'a', 'pin', 'o', 'en', 't', $2)""",
    "images": """(id, address, digest, media_type, sealed, expires_at)
                 VALUES ($1, 'a', int8send($1), 'image/png', '', $2)""",
    "codes": """(address, phone, code_hash, tries_left, expires_at)
                VALUES ($1::bigint::text, 'p', '', 3, $2)""",
    "turns": """(id, phone, channel, input, outcome, replies, ended_at, report_at)
                VALUES ($1, '+23276000001', 'bridge', 'text', 'answered', 1, $2, $2)""",
    "statuses": """(channel_message_id, status, updated_at)
                   VALUES ($1::bigint::text, 'read', $2)""",
    "people": """(address, language, updated_at) VALUES ($1::bigint::text, 'fr', $2)""",
    "rates": "(address, since, taken) VALUES ($1::bigint::text, $2, 1)",
    "conversations": "(address, expires_at) VALUES ($1::bigint::text, $2)",
}


#: The same for retention rules that apply to only some rows of a table.
PARTIAL_TABLE_ROWS: dict[tuple[str, str], str] = {
    ("received", "status = 'throttled'"): """(id, message_id, address, sent_at, reserved_for,
        reserved_until, status, received_at)
        VALUES ($1, $1::bigint::text, 'a', 0, 0, $2, 'throttled', $2)""",
    ("conversations", "expires_at IS NULL"): """(address, lease, leased_until)
        VALUES ($1::bigint::text, 1, $2)""",
}


async def insert_rows(database: Database, rule: RetentionRule, count: int, at: datetime) -> None:
    for _ in range(count):
        number = await count_rows(database, rule)
        row = PARTIAL_TABLE_ROWS.get((rule.table, rule.condition), TABLE_ROWS[rule.table])
        await database.execute(f"INSERT INTO messenger.{rule.table} {row}", number, at)


async def count_rows(database: Database, rule: RetentionRule) -> int:
    count: Any = await database.fetchval(f"SELECT count(*) FROM messenger.{rule.table}")
    return int(count)


@pytest.mark.parametrize(
    "rule", RETENTION_RULES, ids=lambda rule: f"{rule.table}-{rule.max_age.days}"
)
async def test_expired_rows_are_deleted_in_batches(
    database: Database, rule: RetentionRule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH_SIZE", 2)
    clock = FakeClock()
    worker = Retention(database, clock)
    await insert_rows(database, rule, 5, clock())
    await insert_rows(database, rule, 1, clock() + timedelta(seconds=1))
    clock.now += rule.max_age
    await worker.delete_expired()
    assert await count_rows(database, rule) == 6
    clock.advance(seconds=0.5)
    await worker.delete_expired()
    assert await count_rows(database, rule) == 1


async def test_rows_in_use_are_kept(database: Database) -> None:
    clock = FakeClock()
    tables = {rule.table: rule for rule in reversed(RETENTION_RULES)}
    await insert_rows(database, tables["received"], 1, clock())
    await insert_rows(database, tables["conversations"], 1, clock())
    await database.execute("UPDATE messenger.received SET status = 'waiting'")
    await database.execute("UPDATE messenger.conversations SET lease = 1")
    clock.advance(days=400)
    await Retention(database, clock).delete_expired()
    assert await count_rows(database, tables["received"]) == 1
    assert await count_rows(database, tables["conversations"]) == 1


async def test_every_growing_table_has_a_retention_rule(database: Database) -> None:
    tables = await database.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'messenger'")
    capped = {"recipients"}  # 30 per person
    assert {row["tablename"] for row in tables} - capped == {rule.table for rule in RETENTION_RULES}


async def test_people_are_deleted_only_if_nothing_but_their_language_is_stored(
    database: Database,
) -> None:
    clock = FakeClock()
    for address, phone, trusted in (
        ("+1", None, True),
        ("+2", None, True),
        ("+3", None, True),
        ("+4", None, False),
        ("user:5", "+5", True),
    ):
        await database.execute(
            "INSERT INTO messenger.people VALUES ($1, $2, 'fr', $3, $4)",
            address,
            phone,
            trusted,
            clock(),
        )
    clock.advance(days=401)
    await database.execute(
        "INSERT INTO messenger.recipients VALUES ('+2', 'CARD-1', 'Sia K.', $1)", clock()
    )
    await database.execute("INSERT INTO messenger.conversations (address) VALUES ('+3')")
    await Retention(database, clock).delete_expired()
    rows = await database.fetch("SELECT address FROM messenger.people ORDER BY address")
    assert [row["address"] for row in rows] == ["+2", "+3", "+4", "user:5"]


async def test_expired_lease_does_not_keep_a_conversation(database: Database) -> None:
    clock = FakeClock()
    await database.execute(
        """INSERT INTO messenger.conversations (address, expires_at, lease, leased_until)
           VALUES ('+1', $1, 1, $1)""",
        clock(),
    )
    clock.advance(days=31)
    await Retention(database, clock).delete_expired()
    assert await database.fetchval("SELECT count(*) FROM messenger.conversations") == 0


async def test_transcripts_of_expired_conversations_are_deleted(database: Database) -> None:
    clock = FakeClock()
    for address, hours in (("old", 2), ("recent", 0)):
        await database.execute(
            """INSERT INTO messenger.conversations (address, expires_at, transcript)
               VALUES ($1, $2, 'sealed')""",
            address,
            clock() - timedelta(hours=hours),
        )
    await Retention(database, clock).delete_expired()
    rows = await database.fetch(
        "SELECT address FROM messenger.conversations WHERE transcript IS NOT NULL"
    )
    assert [row["address"] for row in rows] == ["recent"]
