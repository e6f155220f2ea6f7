"""Messages to the messenger: sent at least once unless they expire, by one sender at a time."""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from structlog.testing import capture_logs

from builders.auth import FakeClock
from drivers.webhooks import FakeMessenger
from tapgate.events.notifications import notification_messages
from tapgate.events.notifications.notification_messages import (
    MessageSender,
    enqueue_message,
    list_pending,
)
from tapgate.http.api.services import Services
from tapgate.runtime.http_client import HttpClient
from tapgate.runtime.store.work_queue import LEASE_DURATION, compute_backoff
from tapgate_client import ids

PHONE = "+23276123456"
#: Longer than a real code, which could occur by chance in a row id or in sealed bytes.
CODE = "402917402917402917"
SECRET = "what the gateway signs with"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def messenger() -> AsyncIterator[FakeMessenger]:
    messenger = FakeMessenger(SECRET)
    async with messenger.listen():
        yield messenger


@pytest.fixture
def gateway(services: Services, messenger: FakeMessenger, clock: FakeClock) -> Services:
    """Return services with the fake messenger's URL and the test's clock."""
    settings = services.settings.replace(
        messenger_url=messenger.url, service_secrets={"gateway": SECRET}
    )
    return dataclasses.replace(services, settings=settings, clock=clock)


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    with contextlib.closing(HttpClient(timeout_seconds=30)) as http:
        yield http


async def _enqueue_message(gateway: Services, to: str = PHONE) -> None:
    async with gateway.transaction() as tx:
        await enqueue_message(
            tx,
            gateway.vault,
            to=to,
            template="one_time_code",
            parameters=[CODE],
            expires_at=gateway.clock() + timedelta(minutes=5),
        )


async def _get_only_message(gateway: Services) -> asyncpg.Record:
    (row,) = await gateway.database.fetch("SELECT * FROM messages")
    return row


async def test_message_is_sent_signed_and_its_parameters_are_erased(
    gateway: Services, messenger: FakeMessenger, http: HttpClient
) -> None:
    await _enqueue_message(gateway)
    await MessageSender(gateway, http).send_due()
    row = await _get_only_message(gateway)
    expected = [
        {
            "id": ids.encode(ids.MESSAGE, row["id"]),
            "to": PHONE,
            "template": "one_time_code",
            "language": "en",
            "parameters": [CODE],
        }
    ]
    assert messenger.received == expected
    assert (row["status"], row["parameters"]) == ("delivered", None)
    await MessageSender(gateway, http).send_due()
    assert len(messenger.received) == 1


async def test_rolled_back_transaction_enqueues_no_message(gateway: Services) -> None:
    with pytest.raises(ZeroDivisionError):
        async with gateway.transaction() as tx:
            await enqueue_message(
                tx, gateway.vault, to=PHONE, template="t", parameters=[], expires_at=gateway.clock()
            )
            raise ZeroDivisionError
    assert await gateway.database.fetchval("SELECT count(*) FROM messages") == 0


async def test_pending_message_is_stored_sealed_and_can_be_listed(gateway: Services) -> None:
    await _enqueue_message(gateway)
    await _enqueue_message(gateway, to="+23276000000")
    stored = await gateway.database.fetch("SELECT messages::text, parameters FROM messages")
    assert CODE not in str(stored)
    (pending,) = await list_pending(gateway.database, gateway.vault, PHONE)
    assert (pending.template, pending.language) == ("one_time_code", "en")
    assert pending.parameters == [CODE]
    assert pending.created_at == gateway.clock()


async def test_failed_message_is_retried_with_backoff_under_the_same_id(
    gateway: Services, messenger: FakeMessenger, http: HttpClient, clock: FakeClock
) -> None:
    messenger.statuses = [500, 429]
    await _enqueue_message(gateway)
    sender = MessageSender(gateway, http)
    delays = []
    for _ in range(3):
        await sender.send_due()
        await sender.send_due()
        row = await _get_only_message(gateway)
        delays.append((row["next_attempt_at"] - clock()).total_seconds())
        clock.advance(seconds=delays[-1])
    assert row["status"] == "delivered"
    assert row["attempts"] == 3
    assert len({message["id"] for message in messenger.received}) == 1
    assert len(messenger.received) == 3
    assert 0.75 <= delays[0] <= 1.25
    assert 1.5 <= delays[1] <= 2.5


async def test_backoff_grows_to_about_a_minute_with_jitter() -> None:
    delays = [compute_backoff(attempts).total_seconds() for attempts in (7, 50, 30_000) * 10]
    assert all(45 <= delay <= 75 for delay in delays)
    assert len(set(delays)) > 1


async def test_expired_message_is_not_sent_and_its_parameters_are_erased(
    gateway: Services, messenger: FakeMessenger, http: HttpClient, clock: FakeClock
) -> None:
    messenger.statuses = [503]
    await _enqueue_message(gateway)
    await MessageSender(gateway, http).send_due()
    clock.advance(minutes=5)
    await MessageSender(gateway, http).send_due()
    row = await _get_only_message(gateway)
    assert (row["status"], row["parameters"]) == ("expired", None)
    assert len(messenger.received) == 1
    assert await list_pending(gateway.database, gateway.vault, PHONE) == []


async def test_unreachable_messenger_causes_a_retry_and_logs_no_secrets(
    gateway: Services, http: HttpClient
) -> None:
    settings = gateway.settings.replace(messenger_url="http://127.0.0.1:9")
    gateway = dataclasses.replace(gateway, settings=settings)
    await _enqueue_message(gateway)
    with capture_logs() as lines:
        await MessageSender(gateway, http).send_due()
    row = await _get_only_message(gateway)
    assert (row["status"], row["attempts"]) == ("pending", 1)
    assert [line["problem"] for line in lines] == ["ConnectError"]
    assert lines[0]["message_id"] == ids.encode(ids.MESSAGE, row["id"])
    assert CODE not in str(lines)


async def test_unreachable_messenger_is_probed_with_only_some_messages(
    gateway: Services, messenger: FakeMessenger, clock: FakeClock, http: HttpClient
) -> None:
    """Thousands of messages may be pending, so only some of them are tried during an outage."""
    for _ in range(50):
        await _enqueue_message(gateway)
    settings = gateway.settings.replace(messenger_url="http://127.0.0.1:9")
    await MessageSender(dataclasses.replace(gateway, settings=settings), http).send_due()
    attempted_sql = "SELECT count(*) FROM messages WHERE attempts > 0"
    assert 0 < await gateway.database.fetchval(attempted_sql) < 50
    clock.advance(minutes=1)
    await MessageSender(gateway, http).send_due()
    assert len(messenger.received) == 50


async def test_slow_messenger_does_not_outlast_the_leases_of_a_batch(
    gateway: Services,
    messenger: FakeMessenger,
    clock: FakeClock,
    http: HttpClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Messages that are not posted in time stay leased, and are sent when the lease expires."""
    for _ in range(15):
        await _enqueue_message(gateway)
    with monkeypatch.context() as patch:
        patch.setattr(notification_messages, "MAX_BATCH_SECONDS", -1.0)
        await MessageSender(gateway, http).send_due()
    assert 0 < len(messenger.received) < 15
    leased_sql = "SELECT next_attempt_at FROM messages WHERE status = 'pending'"
    leases = [row[0] for row in await gateway.database.fetch(leased_sql)]
    assert leases == [clock() + LEASE_DURATION] * (15 - len(messenger.received))
    clock.advance(seconds=30)
    await MessageSender(gateway, http).send_due()
    assert len({message["id"] for message in messenger.received}) == 15


async def test_message_sealed_with_another_key_does_not_block_other_messages(
    gateway: Services, messenger: FakeMessenger, http: HttpClient
) -> None:
    await _enqueue_message(gateway, to="+23276000000")
    await gateway.database.execute("UPDATE messages SET parameters = 'sealed by another'")
    await _enqueue_message(gateway)
    with capture_logs() as lines:
        await MessageSender(gateway, http).send_due()
    assert [message["to"] for message in messenger.received] == [PHONE]
    assert [line["problem"] for line in lines] == ["VaultError"]


async def test_malformed_message_does_not_affect_other_messages(
    gateway: Services, messenger: FakeMessenger, http: HttpClient
) -> None:
    await _enqueue_message(gateway, to="+23276000000")
    malformed = await _get_only_message(gateway)
    sealed = gateway.vault.seal(b"not JSON", b"message %d" % malformed["id"])
    await gateway.database.execute("UPDATE messages SET parameters = $1", sealed)
    await _enqueue_message(gateway)
    with capture_logs() as lines:
        await MessageSender(gateway, http).send_due()
    assert [line["problem"] for line in lines] == ["DecodeError"]
    rows = await gateway.database.fetch("SELECT status FROM messages ORDER BY id")
    assert [row["status"] for row in rows] == ["pending", "delivered"]


async def test_concurrent_senders_send_each_message_once(
    gateway: Services, messenger: FakeMessenger, http: HttpClient
) -> None:
    for _ in range(50):
        await _enqueue_message(gateway)
    await asyncio.gather(*(MessageSender(gateway, http).send_due() for _ in range(4)))
    assert len(messenger.received) == 50
    assert len({message["id"] for message in messenger.received}) == 50
    undelivered_sql = "SELECT count(*) FROM messages WHERE status <> 'delivered'"
    assert await gateway.database.fetchval(undelivered_sql) == 0


async def test_sender_holds_no_row_lock_and_its_lease_excludes_other_senders(
    gateway: Services, messenger: FakeMessenger, http: HttpClient
) -> None:
    messenger.allow_responses.clear()
    await _enqueue_message(gateway)
    sending = asyncio.create_task(MessageSender(gateway, http).send_due())
    await _wait_until_equal(lambda: _get_attempts(gateway), 1)
    open_transactions_sql = """SELECT count(*) FROM pg_stat_activity
                        WHERE datname = current_database() AND state LIKE 'idle in transaction%'"""
    assert await gateway.database.fetchval(open_transactions_sql) == 0
    await gateway.database.fetch("SELECT id FROM messages FOR UPDATE NOWAIT")
    await MessageSender(gateway, http).send_due()
    messenger.allow_responses.set()
    await sending
    assert len(messenger.received) == 1
    assert (await _get_only_message(gateway))["attempts"] == 1


async def test_lease_of_a_killed_sender_expires_and_the_message_is_sent(
    gateway: Services, messenger: FakeMessenger, http: HttpClient, clock: FakeClock
) -> None:
    messenger.allow_responses.clear()
    await _enqueue_message(gateway)
    killed = asyncio.create_task(MessageSender(gateway, http).send_due())
    await _wait_until_equal(lambda: _count_requests(messenger), 1)
    killed.cancel()
    await asyncio.wait([killed])
    messenger.allow_responses.set()
    await _wait_until_equal(lambda: _count_delivered(messenger), 1)
    messenger.received.clear()

    clock.advance(seconds=29)
    await MessageSender(gateway, http).send_due()
    assert messenger.received == []
    clock.advance(seconds=1)
    await MessageSender(gateway, http).send_due()
    assert len(messenger.received) == 1
    row = await _get_only_message(gateway)
    assert (row["status"], row["attempts"]) == ("delivered", 2)


async def test_expired_lease_does_not_postpone_the_current_lease(
    gateway: Services, messenger: FakeMessenger, http: HttpClient, clock: FakeClock
) -> None:
    messenger.allow_responses.clear()
    messenger.statuses = [500, 500]
    await _enqueue_message(gateway)
    slow = asyncio.create_task(MessageSender(gateway, http).send_due())
    await _wait_until_equal(lambda: _get_attempts(gateway), 1)
    clock.advance(seconds=30)
    successor = asyncio.create_task(MessageSender(gateway, http).send_due())
    await _wait_until_equal(lambda: _get_attempts(gateway), 2)
    messenger.allow_responses.set()
    await asyncio.gather(slow, successor)
    delay = (await _get_only_message(gateway))["next_attempt_at"] - clock()
    assert 1.5 <= delay.total_seconds() <= 2.5


async def test_sender_without_a_service_secret_logs_that_it_is_disabled(
    gateway: Services, messenger: FakeMessenger
) -> None:
    settings = gateway.settings.replace(service_secrets={"messenger": SECRET})
    gateway = dataclasses.replace(gateway, settings=settings)
    await _enqueue_message(gateway)
    with capture_logs() as lines:
        running = asyncio.create_task(MessageSender(gateway).run())
        await _wait_until_equal(lambda: _list_log_events(lines), ["messages.sender_disabled"])
    running.cancel()
    await asyncio.wait([running])
    assert messenger.received == []


async def test_sender_resumes_when_the_database_is_available_again(
    postgres: str, gateway: Services, messenger: FakeMessenger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notification_messages, "POLL_INTERVAL_SECONDS", 0.02)
    name = await gateway.database.fetchval("SELECT current_database()")
    admin = await asyncpg.connect(postgres)
    try:
        await admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        await admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name
        )
        with capture_logs() as lines:
            running = asyncio.create_task(MessageSender(gateway).run())
            await _wait_until_equal(lambda: _list_log_events(lines), ["background.failing"])
            await admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
            await _wait_until_equal(
                lambda: _list_log_events(lines), ["background.failing", "background.recovered"]
            )
    finally:
        await admin.close()
    await _enqueue_message(gateway)
    await _wait_until_equal(lambda: _count_delivered(messenger), 1)
    running.cancel()
    await asyncio.wait([running])


async def _wait_until_equal(read: Any, expected: object) -> None:
    async with asyncio.timeout(30):
        while True:
            if await read() == expected:
                return
            await asyncio.sleep(0.01)


async def _get_attempts(gateway: Services) -> int:
    return int((await _get_only_message(gateway))["attempts"])


async def _count_requests(messenger: FakeMessenger) -> int:
    return messenger.requests


async def _list_log_events(lines: list[Any]) -> list[str]:
    return [line["event"] for line in lines if line["event"] != "signals.connection_lost"]


async def _count_delivered(messenger: FakeMessenger) -> int:
    return len(messenger.received)
