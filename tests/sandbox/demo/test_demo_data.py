"""The small demo on a real database: plausible, within the rules, and with a consistent ledger."""

import asyncio
import contextlib
import shlex
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from databases import ScratchDatabases, build_database_url
from harness import Harness
from tapgate.auth.actors import SYSTEM_ACTOR
from tapgate.core.id_generator import IdGenerator
from tapgate.core.settings import load_settings
from tapgate.http.api.services import Services
from tapgate.ledger import chart
from tapgate.ledger.rules.loaded_rules import insert_defaults
from tapgate.ledger.verification.closed_days import list_broken_days
from tapgate.ledger.verification.verify import verify
from tapgate.runtime.store.database import Database
from tapgate.server.gateway_installation import create_first_admin
from tapgate.server.gateway_services import open_services
from tapgate_client.schemas.payouts import PayoutStatus
from tapgate_sandbox.demo import build as demo
from tapgate_sandbox.demo.administrator import DemoError
from tapgate_sandbox.demo.batches import pay_batch
from tapgate_sandbox.demo.build import build_demo
from tapgate_sandbox.demo.country import SIZES, Size
from tapgate_sandbox.demo.examples import load_example_person, load_examples
from tapgate_sandbox.demo.finance import VERIFIER, open_bank_accounts
from tapgate_sandbox.installation import prepare_installation

#: A Wednesday afternoon. Two months start in the 60 days before it.
NOW = datetime(2026, 6, 17, 15, 30, tzinfo=UTC)

TYPES = {
    chart.REVERSAL,
    chart.TRANSFER_P2P,
    chart.TRANSFER,
    chart.AGENT_CASHIN,
    chart.AGENT_CASHOUT,
    chart.AGENT_FUND,
    chart.AGENT_TRANSFER,
    chart.COMMISSION_PAYOUT,
    chart.POS_PAYMENT,
    chart.ONLINE_PAYMENT,
    chart.PARTNER_FUND,
    chart.PARTNER_DEPOSIT,
    chart.PROCESSOR_TRANSFER,
    chart.REFUND,
    chart.BATCH_CREDIT,
    chart.PAYOUT,
    chart.PAYOUT_RETURN,
    chart.BANK_POSTING,
}


@contextlib.asynccontextmanager
async def build_demo_database(
    folder: Path, copies: ScratchDatabases, server: str, size: str, **variables: str
) -> AsyncIterator[Database]:
    """Yield a scratch database with the demo, built as if the current time were `NOW`."""
    name = await copies.acquire()
    url = build_database_url(name, server)
    settings = load_settings({"TAPGATE_DATA_DIR": str(folder), **variables})
    try:
        async with open_services(settings, url) as services:
            async with services.transaction() as tx:
                await insert_defaults(tx, settings.currency, IdGenerator(1023))
            await create_first_admin(services, "ada@example.com", "correct horse battery")
            clock = demo.create_clock(NOW, size, settings.timezone)
            async with open_services(
                demo.without_notifications(settings), url, clock=clock
            ) as past_services:
                await demo.build(past_services, clock, size, NOW, lambda _: None)
            yield services.database
    finally:
        await copies.release(name)


@pytest.fixture(scope="module")
async def demo_database(
    tmp_path_factory: pytest.TempPathFactory, scratch_databases: ScratchDatabases, postgres: str
) -> AsyncIterator[Database]:
    async with build_demo_database(
        tmp_path_factory.mktemp("demo"), scratch_databases, postgres, "small"
    ) as database:
        yield database


async def count_by(database: Database, sql: str) -> dict[Any, int]:
    return {row[0]: row[1] for row in await database.fetch(sql)}


async def test_demo_sends_no_notifications(demo_database: Database) -> None:
    assert await demo_database.fetchval("SELECT count(*) FROM notices") == 0
    due = "SELECT count(*) FROM messages WHERE status = 'pending'"
    assert await demo_database.fetchval(due) == 0


async def test_ledger_is_consistent_and_entries_sum_to_zero(demo_database: Database) -> None:
    async with demo_database.connection() as connection:
        proof = await verify(connection)
    assert [finding for finding in proof.findings if finding.broken] == []
    assert proof.transactions > 600
    total = await demo_database.fetchval(
        """SELECT sum(side.amount) FROM accounts JOIN (
               SELECT debit_account AS account_id, -amount AS amount FROM entries
               UNION ALL SELECT credit_account, amount FROM entries
           ) AS side ON side.account_id = accounts.id"""
    )
    assert total == 0
    stored = await demo_database.fetchval("SELECT min(balance - held) FROM accounts WHERE checked")
    assert stored >= 0


async def test_every_transaction_type_occurs_and_a_few_transactions_are_declined(
    demo_database: Database,
) -> None:
    types = await count_by(demo_database, "SELECT type, count(*) FROM transactions GROUP BY type")
    assert types.keys() == TYPES
    assert max(types, key=lambda kind: types[kind]) == chart.POS_PAYMENT
    statuses = await count_by(
        demo_database, "SELECT status, count(*) FROM transactions GROUP BY status"
    )
    assert statuses.keys() >= {"completed", "failed", "under_review", "refunded"}
    assert 0.01 < statuses["failed"] / sum(types.values()) < 0.1
    codes = await count_by(
        demo_database, "SELECT failure_code, count(*) FROM transactions GROUP BY 1"
    )
    assert codes.keys() >= {"INSUFFICIENT_FUNDS", "CARD_NOT_ACTIVE", "SUBSCRIBER_BLOCKED"}


async def test_demo_has_participants_of_every_kind_in_various_states(
    demo_database: Database,
) -> None:
    size = SIZES["small"]
    for table, count in (
        ("subscribers", size.subscribers),
        ("agents", size.agents),
        ("processors", size.merchants),
        ("partners", 1),
        ("alerts", 3),  # a large held payment, the top-up that funded it, and a cloned card
    ):
        assert await demo_database.fetchval(f"SELECT count(*) FROM {table}") == count, table
    levels = await count_by(demo_database, "SELECT kyc_level, count(*) FROM accounts GROUP BY 1")
    assert levels[1] > levels[2] >= 2
    assert levels[3] >= 3
    categories = await count_by(
        demo_database, "SELECT category, count(*) FROM subscribers GROUP BY 1"
    )
    assert categories.keys() == {"standard", "vip", "corporate"}
    cards = await count_by(demo_database, "SELECT status, count(*) FROM cards GROUP BY 1")
    assert cards.keys() == {"ACTIVE", "LOST", "UNASSIGNED"}
    assert await demo_database.fetchval("SELECT count(*) FROM cards WHERE type = 'CHILD'") >= 2
    proofs = await count_by(demo_database, "SELECT authenticity, count(*) FROM cards GROUP BY 1")
    assert proofs["sun"] == proofs["none"]
    rejected = await demo_database.fetch("SELECT result FROM card_taps")
    assert [row["result"] for row in rejected] == ["used"]
    expired = "SELECT count(*) FROM cards WHERE status = 'ACTIVE' AND expires_at < $1"
    assert await demo_database.fetchval(expired, NOW) == 1
    states = await count_by(
        demo_database, "SELECT status, count(*) FROM accounts WHERE kind = 'wallet' GROUP BY 1"
    )
    assert states == {"active": size.subscribers - 1, "blocked": 1}
    assert await demo_database.fetchval("SELECT count(*) FROM subscribers WHERE restricted") == 1
    assert await demo_database.fetchval("SELECT max(failures) FROM pins") < 3
    terminals = "SELECT count(*) FROM terminals WHERE last_seen_at IS NOT NULL"
    assert await demo_database.fetchval(terminals) >= size.merchants


async def test_demo_has_payouts_in_every_state_and_one_unmatched_line(
    demo_database: Database,
) -> None:
    states = await demo_database.fetch("SELECT status FROM payouts ORDER BY status")
    assert [row["status"] for row in states] == sorted(PayoutStatus)
    lines = await demo_database.fetch("SELECT status, description FROM bank_statement_lines")
    open_lines = [row["description"] for row in lines if row["status"] == "unmatched"]
    assert (len(lines), open_lines) == (4, ["Monthly fee"])


async def test_demo_has_two_closed_months_and_a_verifier_who_exists(
    demo_database: Database,
) -> None:
    days = await demo_database.fetchrow(
        "SELECT count(*), max(day) AS last, bool_and(closed_at < $1) AS is_past FROM closed_days",
        NOW,
    )
    assert tuple(days) == (SIZES["small"].days - 1, NOW.date() - timedelta(days=1), True)
    async with demo_database.connection() as connection:
        assert await list_broken_days(connection, 0) == []
    accounts = await demo_database.fetch(
        """SELECT a.email, b.created_by <> b.verified_by AS is_another
           FROM bank_accounts b LEFT JOIN admins a ON a.id = b.verified_by"""
    )
    assert [tuple(row) for row in accounts] == [(VERIFIER.email, True)] * 2


async def test_demo_has_a_batch_with_one_failed_line(demo_database: Database) -> None:
    batches = await demo_database.fetch("SELECT status, lines, paid, failed FROM batches")
    assert [tuple(row) for row in batches] == [("completed_with_errors", 5, 4, 1)]


async def test_demo_has_work_for_support_and_compliance_staff(demo_database: Database) -> None:
    waiting = await demo_database.fetch(
        """SELECT array_agg(d.document_type ORDER BY d.id) AS types
           FROM subscribers s JOIN kyc_documents d ON d.subscriber_id = s.id
           WHERE s.kyc_status = 'PENDING' AND s.kyc_pending_since < $1 GROUP BY s.id ORDER BY 1""",
        NOW,
    )
    assert [row["types"] for row in waiting] == [["id_front"], ["id_front", "selfie"]]
    open_requests = "SELECT count(*) FROM support_requests WHERE status = 'open'"
    assert await demo_database.fetchval(open_requests) == 1


async def test_demo_has_one_of_each_way_to_undo_a_payment(demo_database: Database) -> None:
    recall = await demo_database.fetchrow("SELECT status, amount, held_amount FROM recalls")
    assert (recall["status"], recall["amount"]) == ("open", recall["held_amount"])
    assert await demo_database.fetchval("SELECT status FROM disputes") == "open"
    reversed_type = await demo_database.fetchval(
        """SELECT o.type FROM transactions r JOIN transactions o ON o.id = r.original_id
           WHERE r.type = 'reversal' AND r.status = 'completed'"""
    )
    assert reversed_type == chart.AGENT_CASHIN
    notices = await demo_database.fetch("SELECT DISTINCT template FROM messages")
    templates = {row["template"] for row in notices}
    assert {"recall_request", "dispute_updated", "card_changed"} <= templates


async def test_transactions_are_in_the_past_and_in_order(demo_database: Database) -> None:
    first, last, days = await demo_database.fetchrow(
        """SELECT min(created_at), max(created_at), count(DISTINCT created_at::date)
           FROM transactions"""
    )
    assert (NOW - first).days == SIZES["small"].days - 1
    assert last < NOW
    assert days == SIZES["small"].days
    out_of_order = await demo_database.fetchval(
        """SELECT count(*) FROM (
               SELECT created_at < lag(created_at) OVER (ORDER BY id) AS back FROM transactions
           ) AS steps WHERE back"""
    )
    assert out_of_order == 0
    assert await demo_database.fetchval("SELECT max(created_at) FROM subscribers") < NOW


async def snapshot(database: Database) -> list[tuple[Any, ...]]:
    rows = await database.fetch(
        """SELECT type, status, amount, created_at, card_serial FROM transactions
           ORDER BY created_at, type, amount, card_serial, status"""
    )
    keysets = await database.fetch("SELECT name, kcv FROM card_keysets")
    return [tuple(row) for row in [*rows, *keysets]]


@pytest.fixture
def tiny_size(monkeypatch: pytest.MonkeyPatch) -> str:
    """Register a size for tests that do not depend on the amount of data; return its name."""
    size = Size(
        subscribers=16, merchants=4, agents=3, days=27, transactions_per_day=0.4, slots_per_day=2
    )
    monkeypatch.setitem(SIZES, "tiny", size)
    return "tiny"


async def test_demo_is_deterministic(
    tmp_path: Path, scratch_databases: ScratchDatabases, postgres: str, tiny_size: str
) -> None:
    async with (
        build_demo_database(tmp_path, scratch_databases, postgres, tiny_size) as first_build,
        build_demo_database(tmp_path, scratch_databases, postgres, tiny_size) as second_build,
    ):
        assert await snapshot(first_build) == await snapshot(second_build)


async def test_demo_works_with_another_currency_and_time_zone(
    tmp_path: Path, scratch_databases: ScratchDatabases, postgres: str, tiny_size: str
) -> None:
    variables = {
        "TAPGATE_CURRENCY": "JPY",
        "TAPGATE_TIMEZONE": "Pacific/Auckland",
        "TAPGATE_REFUSE_WEAK_PINS": "on",
    }
    async with build_demo_database(
        tmp_path, scratch_databases, postgres, tiny_size, **variables
    ) as database:
        async with database.connection() as connection:
            proof = await verify(connection)
        assert proof.is_valid
        assert proof.transactions > 150
        assert await database.fetchval("SELECT max(created_at) FROM transactions") < NOW


async def test_payouts_and_batches_need_an_administrator(services: Services) -> None:
    with pytest.raises(DemoError, match="no administrator"):
        await open_bank_accounts(services, SYSTEM_ACTOR, 1)
    with pytest.raises(DemoError, match="no administrator"):
        await pay_batch(services, SYSTEM_ACTOR, "Salaries", 1, [], close_nothing)


async def close_nothing() -> None:
    raise AssertionError("the batch was paid without an administrator")


async def test_second_or_concurrent_build_and_build_without_an_administrator_are_rejected(
    services: Services, database_url: str
) -> None:
    with pytest.raises(DemoError, match="no administrator"):
        await build_demo(services, database_url, "small")
    async with demo.acquire_build_lock(services.database):
        with pytest.raises(DemoError, match="another process"):
            async with demo.acquire_build_lock(services.database):
                pass
    await services.database.execute(
        """INSERT INTO cards (id, serial, status, created_at, updated_at)
           VALUES (1, 'DEMO-000001', 'UNASSIGNED', now(), now())"""
    )
    with pytest.raises(DemoError, match="already exists"):
        async with demo.acquire_build_lock(services.database):
            pass


async def test_build_saves_example_requests_with_a_key_that_works(
    services: Services, database_url: str, harness: Harness, tiny_size: str
) -> None:
    await harness.create_admin()
    lines = await build_demo(services, database_url, tiny_size)
    data_dir = services.settings.data_dir
    assert load_examples(data_dir) == lines
    person = load_example_person(data_dir)
    assert person is not None and person.card == "DEMO-000001"
    curl = next(shlex.split(line) for line in lines if "/api/v1/balance/" in line)
    (url,) = (word for word in curl if word.startswith("http"))
    key = next(word.removeprefix("Authorization: ") for word in curl if "Bearer " in word)
    response = await harness.get(urlsplit(url).path, headers={"Authorization": key})
    assert response.status_code == 200
    assert lines[-1].endswith(" verify")


async def test_interrupted_build_leaves_a_consistent_ledger(
    services: Services, database_url: str, tiny_size: str
) -> None:
    settings = services.settings
    clock = demo.create_clock(NOW, tiny_size, settings.timezone)
    under_way = asyncio.Event()
    progress: list[int] = []

    def advance(done: int) -> None:
        progress.append(done)
        if len(progress) == 10:
            under_way.set()

    async with open_services(
        demo.without_notifications(settings), database_url, clock=clock
    ) as past_services:
        building = asyncio.create_task(demo.build(past_services, clock, tiny_size, NOW, advance))
        await under_way.wait()
        building.cancel()
        with pytest.raises(asyncio.CancelledError):
            await building
    async with services.database.connection() as connection:
        proof = await verify(connection)
    assert proof.is_valid
    assert 0 < proof.transactions < 150
    assert await demo.is_built(services.database)


async def test_failed_demo_build_does_not_prevent_the_first_start_and_is_not_retried(
    services: Services, database_url: str
) -> None:
    await services.database.execute(
        """INSERT INTO cards (id, serial, status, created_at, updated_at)
           VALUES (1, 'DEMO-000001', 'UNASSIGNED', now(), now())"""
    )
    assert services.settings.demo == "small"
    first = [line async for line in prepare_installation(services.settings, database_url)]
    assert [line.split(" ")[:2] for line in first] == [
        ["The", "first"],
        ["Building", "a"],
        ["Continuing", "without"],
    ]
    assert "could not be built" in first[-1]
    assert [line async for line in prepare_installation(services.settings, database_url)] == []
