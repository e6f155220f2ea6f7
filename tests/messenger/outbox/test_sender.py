"""The sender sends messages at least once and in order per recipient, unless they fail."""

import asyncio
import contextlib
import random
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from builders.messenger import OTHER_PHONE, PHONE, SenderDriver
from tapgate.core.vault import Vault
from tapgate.messenger.model import DeliveryStatus, Option, OptionList, Template
from tapgate.messenger.outbox import leases, statuses
from tapgate.messenger.outbox.outbox_messages import list_recent
from tapgate.messenger.outbox.sender import MAX_MESSAGE_AGE, Sender
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.work_queue import compute_backoff
from tapgate_client import ids
from tapgate_client.errors import ApiError, unavailable
from tapgate_sandbox.fake_provider.provider import PlannedFailure


async def _send_all(sender_driver: SenderDriver, *senders: Sender) -> None:
    """Send until no message is waiting, advancing the clock past every backoff."""
    while any(row["status"] == "waiting" for row in await sender_driver.list_rows()):
        await asyncio.gather(*(sender.send_due() for sender in senders))
        sender_driver.clock.advance(seconds=90)


async def test_sent_message_is_not_repeated_and_its_content_is_erased(
    sender_driver: SenderDriver,
) -> None:
    await sender_driver.open_service_window(PHONE)
    await sender_driver.enqueue("Hello")
    await sender_driver.create_sender(keep_content=False).send_due()
    (row,) = await sender_driver.list_rows()
    (sent,) = sender_driver.provider.sent
    assert (row["status"], row["content"], row["problem"]) == ("sent", None, None)
    assert row["channel_message_id"] == sent.id
    await sender_driver.create_sender().send_due()
    assert sender_driver.list_delivered_texts() == ["Hello"]
    (message,) = await list_recent(sender_driver.database, sender_driver.vault, PHONE)
    assert message.text is None


async def test_content_of_sent_messages_is_kept_when_configured(
    sender_driver: SenderDriver,
) -> None:
    await sender_driver.open_service_window(PHONE)
    await sender_driver.enqueue("Hello")
    await sender_driver.create_sender().send_due()
    (message,) = await list_recent(sender_driver.database, sender_driver.vault, PHONE)
    assert message.text == "Hello"


async def test_messages_stay_queued_without_a_provider(sender_driver: SenderDriver) -> None:
    await sender_driver.enqueue("Hello")
    sender = Sender(
        sender_driver.database, sender_driver.vault, None, sender_driver.clock, keep_content=True
    )
    await sender.send_due()
    task = asyncio.create_task(sender.run())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (row,) = await sender_driver.list_rows()
    assert (row["status"], row["attempts"]) == ("waiting", 0)
    found = [
        item.text for item in await list_recent(sender_driver.database, sender_driver.vault, PHONE)
    ]
    assert found == ["Hello"]


async def test_retry_delays_only_messages_to_the_same_recipient(
    sender_driver: SenderDriver,
) -> None:
    await sender_driver.open_service_window(PHONE, OTHER_PHONE)
    sender_driver.provider.failures.append(PlannedFailure(code=131056, status=400))
    await sender_driver.enqueue("one")
    await sender_driver.create_sender().send_due()
    await sender_driver.enqueue("two")
    await sender_driver.enqueue("for another", OTHER_PHONE)
    await sender_driver.create_sender().send_due()
    found = (
        sender_driver.list_delivered_texts(),
        sender_driver.list_delivered_texts(OTHER_PHONE),
    )
    assert found == ([], ["for another"])
    sender_driver.clock.advance(seconds=2)
    await sender_driver.create_sender().send_due()
    assert sender_driver.list_delivered_texts() == ["one", "two"]


async def test_rejected_message_does_not_block_the_next(sender_driver: SenderDriver) -> None:
    await sender_driver.enqueue("too late")
    await sender_driver.enqueue(Template(name="receipt", language="en", parameters=()))
    await sender_driver.create_sender(keep_content=False).send_due()
    assert await sender_driver.list_statuses() == [("refused", "131047"), ("sent", None)]
    assert [row["content"] for row in await sender_driver.list_rows()] == [None, None]


async def test_backoff_grows_until_the_message_is_sent(sender_driver: SenderDriver) -> None:
    await sender_driver.open_service_window(PHONE)
    sender_driver.provider.failures.append(PlannedFailure(code=130429, times=3))
    await sender_driver.enqueue("Hello")
    delays = []
    for attempt in range(1, 4):
        await sender_driver.create_sender().send_due()
        (row,) = await sender_driver.list_rows()
        assert (row["attempts"], row["problem"]) == (attempt, "130429")
        delays.append((row["next_attempt_at"] - sender_driver.clock()).total_seconds())
        sender_driver.clock.advance(seconds=delays[-1])
    for delay, expected in zip(delays, (1, 2, 4), strict=True):
        assert 0.75 * expected <= delay <= 1.25 * expected
    await sender_driver.create_sender().send_due()
    assert await sender_driver.list_statuses() == [("sent", None)]
    assert sender_driver.list_delivered_texts() == ["Hello"]


def test_backoff_is_capped_at_about_a_minute_with_jitter() -> None:
    delays = [compute_backoff(attempts).total_seconds() for attempts in (7, 50, 30_000) * 10]
    assert all(45 <= delay <= 75 for delay in delays)
    assert len(set(delays)) > 1


async def test_message_above_the_maximum_age_fails_with_its_last_error(
    sender_driver: SenderDriver,
) -> None:
    await sender_driver.open_service_window(PHONE)
    sender_driver.provider.failures.append(PlannedFailure(code=131000, times=1))
    await sender_driver.enqueue("Hello")
    await sender_driver.enqueue("never tried")
    await sender_driver.create_sender().send_due()
    sender_driver.clock.advance(seconds=MAX_MESSAGE_AGE.total_seconds() - 1)
    sender_driver.provider.failures.append(PlannedFailure(code=131016, times=1))
    await sender_driver.create_sender().send_due()
    assert [status for status, _ in await sender_driver.list_statuses()] == ["waiting", "waiting"]
    sender_driver.clock.advance(minutes=2)
    await sender_driver.create_sender().send_due()
    assert await sender_driver.list_statuses() == [("refused", "131016"), ("refused", "too old")]
    assert sender_driver.list_delivered_texts() == []


async def test_message_is_sent_again_after_a_crash_before_completion(
    sender_driver: SenderDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sender_driver.open_service_window(PHONE)
    await sender_driver.enqueue("one")
    await sender_driver.enqueue("two")

    async def fail_to_complete(*_: Any, **__: Any) -> None:
        raise unavailable("The database cannot be reached")

    with monkeypatch.context() as patch:
        patch.setattr(leases, "complete", fail_to_complete)
        with capture_logs() as logs:
            await sender_driver.create_sender().send_due()
    assert [log["event"] for log in logs] == ["outbox.completion_failed"]
    assert sender_driver.list_delivered_texts() == ["one"]
    await sender_driver.create_sender().send_due()
    # The lease has not expired, so the first message cannot be leased again yet.
    assert sender_driver.list_delivered_texts() == ["one"]
    sender_driver.clock.advance(seconds=leases.LEASE_DURATION.total_seconds())
    await sender_driver.create_sender().send_due()
    assert sender_driver.list_delivered_texts() == ["one", "one", "two"]
    assert await sender_driver.list_statuses() == [("sent", None)] * 2


async def test_order_is_preserved_under_failures_with_concurrent_senders(
    sender_driver: SenderDriver, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(15)
    people = [f"+2327600000{number}" for number in range(6)]
    await sender_driver.open_service_window(*people)
    for number in range(8):
        for person in people:
            await sender_driver.enqueue(str(number), person)
    send, failed = sender_driver.graph.send, []

    async def send_with_failures(payload: dict[str, Any]) -> str:
        if rng.random() < 0.3:
            failed.append(payload)
            sender_driver.provider.failures.append(
                PlannedFailure(code=rng.choice([130429, 131056, 131000]))
            )
        return await send(payload)

    monkeypatch.setattr(sender_driver.graph, "send", send_with_failures)
    other_database = await Database.connect(database_url)
    try:
        await _send_all(
            sender_driver,
            sender_driver.create_sender(),
            sender_driver.create_sender(database=other_database),
        )
    finally:
        await other_database.close()
    assert failed
    for person in people:
        assert sender_driver.list_delivered_texts(person) == [str(number) for number in range(8)]


async def test_long_message_resumes_after_its_last_sent_part(
    sender_driver: SenderDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sender_driver.open_service_window(PHONE)
    text = " ".join(f"word{number}" for number in range(1500))
    await sender_driver.enqueue(text)
    send, send_count = sender_driver.graph.send, 0

    async def fail_second_send(payload: dict[str, Any]) -> str:
        nonlocal send_count
        send_count += 1
        if send_count == 2:
            sender_driver.provider.failures.append(PlannedFailure(code=131000))
        return await send(payload)

    monkeypatch.setattr(sender_driver.graph, "send", fail_second_send)
    await sender_driver.create_sender().send_due()
    assert len(sender_driver.list_delivered_texts()) == 1
    sender_driver.clock.advance(seconds=90)
    await sender_driver.create_sender().send_due()
    assert " ".join(sender_driver.list_delivered_texts()) == text
    (row,) = await sender_driver.list_rows()
    expected = [message.id for message in sender_driver.provider.sent]
    assert row["channel_message_id"].split() == expected


async def test_message_that_cannot_be_rendered_fails(sender_driver: SenderDriver) -> None:
    option = Option(id="", title="No id")
    await sender_driver.enqueue(OptionList(text="?", options=(option,), button="b", more=option))
    await sender_driver.create_sender().send_due()
    assert await sender_driver.list_statuses() == [("refused", "cannot be shown")]


@pytest.mark.parametrize(
    ("keep_content", "events"), [(True, []), (False, ["outbox.sending_disabled"])]
)
async def test_missing_provider_is_logged_in_production(
    sender_driver: SenderDriver, keep_content: bool, events: list[str]
) -> None:
    driver = sender_driver
    sender = Sender(driver.database, driver.vault, None, driver.clock, keep_content=keep_content)
    with capture_logs() as logs:
        task = asyncio.create_task(sender.run())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
    assert [line["event"] for line in logs] == events


async def test_message_sealed_with_another_key_stays_queued(sender_driver: SenderDriver) -> None:
    await sender_driver.open_service_window(PHONE)
    await sender_driver.enqueue("Hello")
    sender_with_other_key = Sender(
        sender_driver.database,
        Vault("another"),
        sender_driver.graph,
        sender_driver.clock,
        keep_content=False,
    )
    await sender_with_other_key.send_due()
    assert await sender_driver.list_statuses() == [("waiting", "unreadable")]
    sender_driver.clock.advance(seconds=2)
    await sender_driver.create_sender().send_due()
    assert sender_driver.list_delivered_texts() == ["Hello"]


async def test_logs_contain_only_ids_and_error_codes(sender_driver: SenderDriver) -> None:
    await sender_driver.enqueue("a secret balance")
    sender_driver.provider.failures.append(PlannedFailure(code=131000))
    with capture_logs() as logs:
        await sender_driver.create_sender().send_due()
        sender_driver.clock.advance(seconds=2)
        await sender_driver.create_sender().send_due()
    (row,) = await sender_driver.list_rows()
    message_id = ids.encode(ids.MESSAGE, row["id"])
    assert logs == [
        {
            "event": "outbox.retry_scheduled",
            "log_level": "info",
            "problem": "131000",
            "attempts": 1,
            "message_id": message_id,
        },
        {
            "event": "outbox.rejected",
            "log_level": "warning",
            "problem": "131047",
            "message_id": message_id,
        },
    ]


async def test_sender_wakes_on_demand_and_finishes_in_flight_messages_on_shutdown(
    sender_driver: SenderDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tapgate.messenger.outbox.sender.POLL_INTERVAL_SECONDS", 3600.0)
    monkeypatch.setattr("tapgate.messenger.outbox.sender.SHUTDOWN_TIMEOUT_SECONDS", 30.0)
    await sender_driver.open_service_window(PHONE)
    sending, can_finish = asyncio.Event(), asyncio.Event()
    send = sender_driver.graph.send

    async def send_slowly(payload: dict[str, Any]) -> str:
        sending.set()
        await can_finish.wait()
        return await send(payload)

    sender = sender_driver.create_sender()
    task = asyncio.create_task(sender.run())
    async with asyncio.timeout(30):
        for number in range(3):
            await sender_driver.enqueue(f"early {number}")
        sender.wake()
        while len(sender_driver.list_delivered_texts()) < 3:
            await asyncio.sleep(0.01)
        monkeypatch.setattr(sender_driver.graph, "send", send_slowly)
        await sender_driver.enqueue("late")
        sender.wake()
        await sending.wait()
        task.cancel()
        await asyncio.sleep(0)
        can_finish.set()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    assert sender_driver.list_delivered_texts() == ["early 0", "early 1", "early 2", "late"]
    assert await sender_driver.list_statuses() == [("sent", None)] * 4


async def test_sender_continues_after_database_errors(
    sender_driver: SenderDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tapgate.messenger.outbox.sender.POLL_INTERVAL_SECONDS", 0.01)
    await sender_driver.open_service_window(PHONE)
    await sender_driver.enqueue("Hello")
    lease, failures = leases.lease, [unavailable("database"), unavailable("database")]

    async def lease_with_failures(*args: Any, **options: Any) -> list[leases.LeasedMessage]:
        if failures:
            error: ApiError = failures.pop()
            raise error
        return await lease(*args, **options)

    monkeypatch.setattr(leases, "lease", lease_with_failures)
    task = asyncio.create_task(sender_driver.create_sender().run())
    async with asyncio.timeout(30):
        while not sender_driver.list_delivered_texts():
            await asyncio.sleep(0.01)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    assert sender_driver.list_delivered_texts() == ["Hello"]


async def test_expired_lease_cannot_change_the_message(sender_driver: SenderDriver) -> None:
    await sender_driver.enqueue("Hello")
    now = sender_driver.clock()
    (lost,) = await leases.lease(sender_driver.database, now=now, limit=9)
    assert await leases.lease(sender_driver.database, now=now, limit=9) == []
    later = now + leases.LEASE_DURATION
    (held,) = await leases.lease(sender_driver.database, now=later, limit=9)
    await leases.schedule_retry(sender_driver.database, lost, "131000", now - timedelta(days=1))
    await leases.fail(sender_driver.database, lost, "131047", now, keep_content=False)
    await leases.extend_lease(sender_driver.database, lost, ["x"], now)
    (row,) = await sender_driver.list_rows()
    assert (row["status"], row["problem"]) == ("waiting", None)
    assert (row["attempts"], row["next_attempt_at"]) == (
        held.attempts,
        later + leases.LEASE_DURATION,
    )


async def test_concurrent_leases_return_the_oldest_message_of_each_recipient_once(
    sender_driver: SenderDriver,
) -> None:
    people = [f"+232760000{number}" for number in range(10, 40)]
    oldest = {}
    for person in people:
        oldest[person], _ = await sender_driver.enqueue("one", person)
        await sender_driver.enqueue("two", person)
    batches = await asyncio.gather(
        *(
            leases.lease(sender_driver.database, now=sender_driver.clock(), limit=9)
            for _ in range(20)
        )
    )
    batches.append(await leases.lease(sender_driver.database, now=sender_driver.clock(), limit=99))
    results = [(item.address, item.id) for batch in batches for item in batch]
    assert sorted(results) == sorted(oldest.items())


SUPPORT_REPLY = Template(name="support_reply", language="en", parameters=("Which day?",))


async def _record_chat(sender_driver: SenderDriver, language: str | None = None) -> None:
    """Store that the phone sent a chat message just now."""
    await sender_driver.database.execute(
        "INSERT INTO messenger.conversations (address, heard_until) VALUES ($1, $2)",
        PHONE,
        int(sender_driver.clock().timestamp()),
    )
    await sender_driver.database.execute(
        "INSERT INTO messenger.people (address, language, updated_at) VALUES ($1, $2, $3)",
        PHONE,
        language,
        sender_driver.clock(),
    )


@pytest.mark.parametrize(
    ("language", "text"),
    [(None, "*Support:* Which day?"), ("fr", "*Service client :* Which day?")],
)
async def test_support_reply_is_text_while_the_service_window_is_open(
    sender_driver: SenderDriver, language: str | None, text: str
) -> None:
    await sender_driver.open_service_window(PHONE)
    await _record_chat(sender_driver, language)
    sender_driver.clock.advance(hours=23)
    await sender_driver.enqueue(SUPPORT_REPLY)
    await sender_driver.enqueue(Template(name="receipt", language="en", parameters=("1",)))
    await sender_driver.create_sender().send_due()
    reply, receipt = sender_driver.provider.list_sent_to(PHONE)
    assert reply.message["text"]["body"] == text
    assert receipt.message["type"] == "template"


@pytest.mark.parametrize(
    ("language", "start"), [("en", "Our support team has closed"), ("fr", "Notre service client a")]
)
async def test_end_of_a_support_request_is_text_in_the_language_of_the_template(
    sender_driver: SenderDriver, language: str, start: str
) -> None:
    await sender_driver.open_service_window(PHONE)
    await _record_chat(sender_driver)
    await sender_driver.enqueue(Template(name="support_closed", language=language, parameters=()))
    await sender_driver.create_sender().send_due()
    (sent,) = sender_driver.provider.list_sent_to(PHONE)
    assert sent.message["text"]["body"].startswith(start)


@pytest.mark.parametrize("has_chat", [True, False])
async def test_support_reply_is_a_template_outside_the_service_window(
    sender_driver: SenderDriver, has_chat: bool
) -> None:
    if has_chat:
        await _record_chat(sender_driver)
        sender_driver.clock.advance(hours=24)
    await sender_driver.enqueue(SUPPORT_REPLY)
    await sender_driver.create_sender().send_due()
    (sent,) = sender_driver.provider.list_sent_to(PHONE)
    assert sent.message["template"]["name"] == "support_reply"


async def test_support_reply_falls_back_to_the_template_if_the_provider_has_closed_the_window(
    sender_driver: SenderDriver,
) -> None:
    await _record_chat(sender_driver)  # the provider knows of no message from the person
    await sender_driver.enqueue(SUPPORT_REPLY)
    await sender_driver.create_sender().send_due()
    (sent,) = sender_driver.provider.list_sent_to(PHONE)
    assert sent.message["template"]["name"] == "support_reply"
    assert await sender_driver.list_statuses() == [("sent", None)]
    # A template that is rejected too is not tried again.
    sender_driver.provider.failures += [
        PlannedFailure(code=131047),
        PlannedFailure(code=132001),
    ]
    await sender_driver.enqueue(SUPPORT_REPLY)
    await sender_driver.create_sender().send_due()
    assert await sender_driver.list_statuses() == [("sent", None), ("refused", "132001")]


async def _report(
    sender_driver: SenderDriver, channel_id: str, status: Any, error: str | None = None
) -> None:
    report = DeliveryStatus(channel_message_id=channel_id, status=status, error_code=error)
    await statuses.record(
        sender_driver.database, [report], sender_driver.clock(), keep_content=False
    )


async def _send_support_reply_as_text(sender_driver: SenderDriver) -> str:
    """Return the provider's ID for the text."""
    await sender_driver.open_service_window(PHONE)
    await _record_chat(sender_driver)
    await sender_driver.enqueue(SUPPORT_REPLY, key="gateway:msg_1")
    await sender_driver.create_sender(keep_content=False).send_due()
    (text,) = sender_driver.provider.list_sent_to(PHONE)
    assert text.message["type"] == "text"
    return text.id


async def test_support_reply_that_failed_later_is_sent_as_a_template_once(
    sender_driver: SenderDriver,
) -> None:
    text_id = await _send_support_reply_as_text(sender_driver)
    sender = sender_driver.create_sender(keep_content=False)
    for _ in range(2):
        await _report(sender_driver, text_id, "failed", "131047")
        # A retry in between must not send the text again.
        sender_driver.provider.failures.append(PlannedFailure(code=130429, times=1))
        await sender.send_due()
        sender_driver.clock.advance(seconds=90)
        sender_driver.provider.failures.clear()
        await sender.send_due()
    _, template = sender_driver.provider.list_sent_to(PHONE)
    assert template.message["template"]["name"] == "support_reply"
    (row,) = await sender_driver.list_rows()
    assert (row["status"], row["content"], row["channel_message_id"]) == (
        "sent",
        None,
        template.id,
    )
    await _report(sender_driver, template.id, "failed", "131047")
    await sender.send_due()
    assert len(sender_driver.provider.list_sent_to(PHONE)) == 2
    (message,) = await list_recent(sender_driver.database, sender_driver.vault, PHONE)
    assert message.status == "failed"


async def test_failure_reported_before_the_text_is_recorded_sends_the_template(
    sender_driver: SenderDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete = leases.complete

    async def complete_after_report(
        database: Database,
        leased: leases.LeasedMessage,
        channel_ids: list[str],
        *args: Any,
        **options: Any,
    ) -> None:
        if options["is_text_form"]:
            await _report(sender_driver, channel_ids[0], "failed", "131047")
        await complete(database, leased, channel_ids, *args, **options)

    monkeypatch.setattr(leases, "complete", complete_after_report)
    await sender_driver.open_service_window(PHONE)
    await _record_chat(sender_driver)
    await sender_driver.enqueue(SUPPORT_REPLY, key="gateway:msg_1")
    await sender_driver.create_sender(keep_content=False).send_due()
    kinds = [sent.message["type"] for sent in sender_driver.provider.list_sent_to(PHONE)]
    assert kinds == ["text", "template"]


async def test_support_reply_with_another_failure_is_not_repeated(
    sender_driver: SenderDriver,
) -> None:
    text_id = await _send_support_reply_as_text(sender_driver)
    await _report(sender_driver, text_id, "failed", "131026")
    await sender_driver.create_sender().send_due()
    assert len(sender_driver.provider.list_sent_to(PHONE)) == 1


async def test_content_of_a_support_reply_is_erased_when_its_text_is_delivered(
    sender_driver: SenderDriver,
) -> None:
    text_id = await _send_support_reply_as_text(sender_driver)
    (row,) = await sender_driver.list_rows()
    assert row["content"] is not None
    await _report(sender_driver, text_id, "delivered")
    (row,) = await sender_driver.list_rows()
    assert row["content"] is None
