"""Retention deletes expired rows and nothing else."""

from datetime import timedelta

from builders.auth import FakeClock
from tapgate.core.settings import load_settings
from tapgate.messenger.retention import RETENTION
from tapgate.runtime.retention import RetentionJob
from tapgate.runtime.store.database import Database


async def delete_expired(database: Database, clock: FakeClock) -> None:
    await RetentionJob(database, clock, load_settings({}), RETENTION).delete_expired()


async def test_rows_in_use_are_kept(database: Database) -> None:
    clock = FakeClock()
    await database.execute(
        """INSERT INTO messenger.received
               (id, message_id, address, sent_at, reserved_for, reserved_until, status, received_at)
           VALUES (1, 'm', 'a', 0, 0, $1, 'waiting', $1)""",
        clock(),
    )
    await database.execute(
        "INSERT INTO messenger.conversations (address, expires_at, lease) VALUES ('a', $1, 1)",
        clock(),
    )
    clock.advance(days=400)
    await delete_expired(database, clock)
    for table in ("received", "conversations"):
        assert await database.fetchval(f"SELECT count(*) FROM messenger.{table}") == 1


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
    await delete_expired(database, clock)
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
    await delete_expired(database, clock)
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
    await delete_expired(database, clock)
    rows = await database.fetch(
        "SELECT address FROM messenger.conversations WHERE transcript IS NOT NULL"
    )
    assert [row["address"] for row in rows] == ["recent"]
