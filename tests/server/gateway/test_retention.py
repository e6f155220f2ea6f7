"""Every table has a retention declaration or a reason to be kept, and declarations work."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from builders.auth import FakeClock
from tapgate.core.id_generator import first_id_at
from tapgate.core.settings import Settings, load_settings
from tapgate.messenger import retention as messenger_retention
from tapgate.runtime import retention
from tapgate.runtime.retention import Days, Retention, RetentionJob
from tapgate.runtime.store.database import Database
from tapgate.server import retention as gateway_retention
from tools.manual.retention import render_retention_page

_DECLARATIONS = (*gateway_retention.RETENTION, *messenger_retention.RETENTION)
_KEPT = gateway_retention.KEPT | messenger_retention.KEPT
_SETTINGS = {"TAPGATE_IDEMPOTENCY_KEY_DAYS": "90", "TAPGATE_REQUEST_LOG_DAYS": "7"}
#: Few rows, so that they need no index: at most some endpoints, and people who wrote recently.
_SMALL_TABLES = {"webhook_endpoints", "messenger.codes", "messenger.rates"}

#: Columns and values of a row. $1 is its number, or its ID if it has one, and $2 the time.
_ROWS = {
    ("deliveries", "ended_at"): """(event_id, endpoint_id, status, created_at, ended_at)
        VALUES ($1, 1, 'delivered', $2, $2)""",
    ("deliveries", "next_attempt_at"): """(event_id, endpoint_id, created_at, next_attempt_at)
        VALUES ($1, -1, $2, $2)""",
    "events": "(id, type, subject_id, occurred_at) VALUES ($1, 't', 1, $2)",
    ("webhook_endpoints", "deleted_at"): """(id, url, events, secret, created_at, deleted_at)
        VALUES ($1, 'u', '{*}', '', $2, $2)""",
    ("webhook_endpoints", "previous_secret_expires_at"): """
        (id, url, events, secret, created_at, previous_secret, previous_secret_expires_at)
        VALUES ($1, 'u', '{*}', '', $2, 'sealed', $2)""",
    "messages": """
        (id, recipient, template, language, status, next_attempt_at, expires_at, created_at)
        VALUES ($1, 'r', 't', 'en', 'expired', $2, $2, $2)""",
    "chat_turns": """(id, subscriber_id, channel, input, outcome, replies)
        SELECT $1, 1, 'bridge', 'text', 'answered', 1 WHERE $2::timestamptz IS NOT NULL""",
    "statements": """
        (id, token_hash, subscriber_id, from_date, to_date, format, file, created_at, expires_at)
        VALUES ($1, int8send($1), 1, now(), now(), 'csv', '', $2, $2)""",
    "support_requests": """(id, phone_number, status, created_at, updated_at)
        VALUES ($1, $1::bigint::text, 'closed', $2, $2)""",
    "request_logs": """(id, key_id, caller_type, caller_name, method, endpoint, path, status,
        duration_us, request_id, ip)
        SELECT $1, 1, 't', 'n', 'GET', '/', '/', 200, 1, 'r', '' WHERE $2::timestamptz IS NOT NULL
        """,
    "card_taps": "(card_id, id, at, result) VALUES (1, $1, $2, 'used')",
    "cash_matches": "(transaction_id, matched_id, amount, matched_at) VALUES ($1, 1, 1, $2)",
    "pin_failures": "(account_id, failed_at) VALUES ($1, $2)",
    "pin_attempts": """(credential, minute, attempts, wrong)
        VALUES ($1::bigint::text, extract(epoch FROM $2::timestamptz)::bigint / 60, 1, 1)""",
    "guarded_calls": """(id, person, operations, amount, created_at)
        VALUES ($1, 'p', '{}', 1, $2)""",
    "login_failures": """(email, address, failed_at)
        VALUES ($1::bigint::text, 'a', ARRAY[$2::timestamptz])""",
    "one_time_code_sends": """(phone_number, sent_at)
        VALUES ($1::bigint::text, ARRAY[$2::timestamptz])""",
    "used_passkey_challenges": "(nonce, expires_at) VALUES (int8send($1), $2)",
    "oidc_logins": "(state_hash, expires_at) VALUES (int8send($1), $2)",
    "idempotency_keys": """(scope, request_id, transaction_id)
        SELECT 's', $1::bigint::text, $1 WHERE $2::timestamptz IS NOT NULL""",
    "partner_references": """(partner_id, reference, transaction_id)
        SELECT 1, $1::bigint::text, $1 WHERE $2::timestamptz IS NOT NULL""",
    "messenger.outbox": "(id, address, next_attempt_at, created_at) VALUES ($1, 'a', $2, $2)",
    "messenger.statuses": """(channel_message_id, status, updated_at)
        VALUES ($1::bigint::text, 'read', $2)""",
    "messenger.turns": """(id, phone, channel, input, outcome, replies, ended_at, report_at)
        VALUES ($1, '+23276000001', 'bridge', 'text', 'answered', 1, $2, $2)""",
    "messenger.received": """
        (id, message_id, address, sent_at, reserved_for, reserved_until, status, received_at)
        VALUES ($1, $1::bigint::text, 'a', 0, 0, $2, 'throttled', $2)""",
    "messenger.forms": """(token_hash, address, form, operation, language, text, expires_at)
        VALUES (int8send($1), 'a', 'pin', 'o', 'en', 't', $2)""",
    "messenger.images": """(id, address, digest, media_type, sealed, expires_at)
        VALUES ($1, 'a', int8send($1), 'image/png', '', $2)""",
    "messenger.codes": """(address, phone, code_hash, tries_left, expires_at)
        VALUES ($1::bigint::text, 'p', '', 3, $2)""",
    "messenger.rates": "(address, since, taken) VALUES ($1::bigint::text, $2, 1)",
    ("messenger.conversations", "expires_at"): """(address, expires_at, transcript)
        VALUES ($1::bigint::text, $2, 'sealed')""",
    ("messenger.conversations", "leased_until"): """(address, lease, leased_until)
        VALUES ($1::bigint::text, 1, $2)""",
    "messenger.people": """(address, language, updated_at) VALUES ($1::bigint::text, 'fr', $2)""",
}  # fmt: skip


@pytest.fixture
def retention_settings() -> Settings:
    return load_settings(_SETTINGS)


def _get_period(declaration: Retention, settings: Settings) -> timedelta:
    if isinstance(declaration.keep, Days):
        return timedelta(days=getattr(settings, declaration.keep.setting))
    return declaration.keep


async def _insert(database: Database, declaration: Retention, number: int, at: datetime) -> None:
    row = _ROWS.get((declaration.table, declaration.age)) or _ROWS[declaration.table]
    if declaration.to_cutoff is first_id_at:
        number += first_id_at(at)
    async with database.transaction() as tx:
        # Without parent rows.
        await tx.execute("SET LOCAL session_replication_role = replica")
        await tx.execute(f"INSERT INTO {declaration.table} {row}", number, at)


async def _count(database: Database, declaration: Retention) -> int:
    condition = f"{declaration.erase[0]} IS NOT NULL" if declaration.erase else "true"
    if declaration.table == "webhook_endpoints":
        condition += " AND id > 0"
    count: int = await database.fetchval(
        f"SELECT count(*) FROM {declaration.table} WHERE {condition}"
    )
    return count


@pytest.mark.parametrize(
    "declaration", _DECLARATIONS, ids=lambda item: f"{item.table}-{item.age}-{item.keep}"
)
async def test_rows_are_deleted_in_batches_when_they_are_old_enough(
    declaration: Retention,
    database: Database,
    retention_settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retention, "SCANNED_PAGES", 1)
    clock = FakeClock()
    await database.execute(
        "INSERT INTO webhook_endpoints (id, url, events, secret, created_at)"
        " VALUES (-1, 'u', '{*}', '', $1)",
        clock(),
    )
    for number in range(5):
        await _insert(database, declaration, number, clock())
    await _insert(database, declaration, 5, clock() + timedelta(minutes=2))
    job = RetentionJob(database, clock, retention_settings, ())
    clock.now += _get_period(declaration, retention_settings)
    assert await job.apply(declaration._replace(batch_size=2)) == 0
    clock.advance(minutes=1)
    assert await job.apply(declaration._replace(batch_size=2)) == 5
    assert await _count(database, declaration) == 1


def test_retention_page_is_up_to_date() -> None:
    document = Path(__file__).parents[3] / "docs" / "retention.md"
    assert document.read_text() == render_retention_page(), "docs/retention.md: run make docs"


async def test_every_table_is_deleted_from_or_kept_for_a_reason(database: Database) -> None:
    rows = await database.fetch(
        """SELECT CASE nspname WHEN 'public' THEN '' ELSE nspname || '.' END || relname
           FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
           WHERE nspname IN ('public', 'messenger') AND relkind IN ('r', 'p')
             AND NOT relispartition"""
    )
    kept = [table for tables in _KEPT.values() for table in tables]
    deleted = {declaration.table for declaration in _DECLARATIONS}
    assert sorted([*kept, *deleted]) == sorted(row[0] for row in rows)


async def test_expired_rows_are_found_by_an_index(
    database: Database, retention_settings: Settings
) -> None:
    async with database.transaction() as tx:
        await tx.execute("SET LOCAL enable_seqscan = off")
        for declaration in _DECLARATIONS:
            if declaration.is_scanned or declaration.table in _SMALL_TABLES:
                continue
            cutoff = declaration.compute_cutoff(FakeClock()(), retention_settings)
            plan = await tx.fetch(f"EXPLAIN {declaration.build_batch_sql()}", cutoff)
            assert not any("Seq Scan" in row[0] for row in plan), declaration.table


async def test_locked_rows_are_skipped(database: Database, retention_settings: Settings) -> None:
    (declaration,) = [item for item in _DECLARATIONS if item.table == "statements"]
    clock = FakeClock()
    for number in range(2):
        await _insert(database, declaration, number, clock() - timedelta(days=1))
    job = RetentionJob(database, clock, retention_settings, [declaration])
    async with database.transaction() as tx:
        await tx.execute("SELECT FROM statements WHERE id = 1 FOR UPDATE")
        await job.delete_expired()
        assert await _count(database, declaration) == 1
    await job.delete_expired()
    assert await _count(database, declaration) == 0


async def test_zero_days_keep_keys_forever_and_delete_the_request_log(database: Database) -> None:
    settings = load_settings(dict.fromkeys(_SETTINGS, "0"))
    clock = FakeClock()
    tables = {"idempotency_keys": 1, "request_logs": 0}
    declarations = [item for item in _DECLARATIONS if item.table in tables]
    for declaration in declarations:
        await _insert(database, declaration, 1, clock())
    clock.advance(days=1_000)
    await RetentionJob(database, clock, settings, declarations).delete_expired()
    for declaration in declarations:
        assert await _count(database, declaration) == tables[declaration.table]
