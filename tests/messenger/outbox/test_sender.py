"""The sender delivers every queued message at least once and in order per recipient."""

import asyncio
import contextlib
import random
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from messenger.outbox.builders import OTHER_PHONE, PHONE, SenderDriver
from tapgate import ids
from tapgate.errors import ApiError, unavailable
from tapgate.messenger.fake_graph.provider import PlannedFailure
from tapgate.messenger.model.replies import Option, OptionList, Template
from tapgate.messenger.outbox import claims
from tapgate.messenger.outbox.queries import list_recent
from tapgate.messenger.outbox.sender import MAX_MESSAGE_AGE, Sender
from tapgate.store.database import Database
from tapgate.vault import Vault


async def _send_all(stage: SenderDriver, *senders: Sender) -> None:
    """Send until no message is waiting, advancing the clock past every backoff."""
    while any(row["status"] == "waiting" for row in await stage.list_rows()):
        await asyncio.gather(*(sender.send_due() for sender in senders))
        stage.clock.advance(seconds=90)


async def test_sent_message_is_not_repeated_and_its_content_is_erased(stage: SenderDriver) -> None:
    await stage.open_service_window(PHONE)
    await stage.enqueue("Hello")
    await stage.create_sender(keep=False).send_due()
    (row,) = await stage.list_rows()
    (sent,) = stage.provider.sent
    assert (row["status"], row["content"], row["problem"]) == ("sent", None, None)
    assert row["channel_message_id"] == sent.id
    await stage.create_sender().send_due()
    assert stage.list_delivered_texts() == ["Hello"]
    (shown,) = await list_recent(stage.database, stage.vault, PHONE)
    assert shown.text is None


async def test_content_of_sent_messages_is_kept_when_configured(stage: SenderDriver) -> None:
    await stage.open_service_window(PHONE)
    await stage.enqueue("Hello")
    await stage.create_sender().send_due()
    (shown,) = await list_recent(stage.database, stage.vault, PHONE)
    assert shown.text == "Hello"


async def test_messages_stay_queued_without_a_provider(stage: SenderDriver) -> None:
    await stage.enqueue("Hello")
    sender = Sender(stage.database, stage.vault, None, stage.clock, keep=True)
    await sender.send_due()
    task = asyncio.create_task(sender.run())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (row,) = await stage.list_rows()
    assert (row["status"], row["attempts"]) == ("waiting", 0)
    assert [one.text for one in await list_recent(stage.database, stage.vault, PHONE)] == ["Hello"]


async def test_retry_delays_only_messages_to_the_same_recipient(
    stage: SenderDriver,
) -> None:
    await stage.open_service_window(PHONE, OTHER_PHONE)
    stage.provider.failures.append(PlannedFailure(code=131056, status=400))
    await stage.enqueue("one")
    await stage.create_sender().send_due()
    await stage.enqueue("two")
    await stage.enqueue("for another", OTHER_PHONE)
    await stage.create_sender().send_due()
    assert (stage.list_delivered_texts(), stage.list_delivered_texts(OTHER_PHONE)) == (
        [],
        ["for another"],
    )
    stage.clock.advance(seconds=2)
    await stage.create_sender().send_due()
    assert stage.list_delivered_texts() == ["one", "two"]


async def test_rejected_message_does_not_block_the_next(stage: SenderDriver) -> None:
    await stage.enqueue("too late")
    await stage.enqueue(Template(name="receipt", language="en", parameters=()))
    await stage.create_sender(keep=False).send_due()
    assert await stage.list_statuses() == [("refused", "131047"), ("sent", None)]
    assert [row["content"] for row in await stage.list_rows()] == [None, None]


async def test_backoff_grows_until_the_message_is_sent(stage: SenderDriver) -> None:
    await stage.open_service_window(PHONE)
    stage.provider.failures.append(PlannedFailure(code=130429, times=3))
    await stage.enqueue("Hello")
    pauses = []
    for attempt in range(1, 4):
        await stage.create_sender().send_due()
        (row,) = await stage.list_rows()
        assert (row["attempts"], row["problem"]) == (attempt, "130429")
        pauses.append((row["next_attempt_at"] - stage.clock()).total_seconds())
        stage.clock.advance(seconds=pauses[-1])
    assert all(
        0.75 * wanted <= pause <= 1.25 * wanted
        for pause, wanted in zip(pauses, (1, 2, 4), strict=True)
    )
    await stage.create_sender().send_due()
    assert await stage.list_statuses() == [("sent", None)]
    assert stage.list_delivered_texts() == ["Hello"]


def test_backoff_is_capped_at_about_a_minute_with_jitter() -> None:
    pauses = [claims.compute_backoff(attempts).total_seconds() for attempts in (7, 50, 30_000) * 10]
    assert all(45 <= pause <= 75 for pause in pauses)
    assert len(set(pauses)) > 1


async def test_message_over_the_maximum_age_fails_with_its_last_error(stage: SenderDriver) -> None:
    await stage.open_service_window(PHONE)
    stage.provider.failures.append(PlannedFailure(code=131000, times=1))
    await stage.enqueue("Hello")
    await stage.enqueue("never tried")
    await stage.create_sender().send_due()
    stage.clock.advance(seconds=MAX_MESSAGE_AGE.total_seconds() - 1)
    stage.provider.failures.append(PlannedFailure(code=131016, times=1))
    await stage.create_sender().send_due()
    assert [status for status, _ in await stage.list_statuses()] == ["waiting", "waiting"]
    stage.clock.advance(minutes=2)
    await stage.create_sender().send_due()
    assert await stage.list_statuses() == [("refused", "131016"), ("refused", "too old")]
    assert stage.list_delivered_texts() == []


async def test_message_is_sent_again_after_a_crash_before_completion(
    stage: SenderDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.open_service_window(PHONE)
    await stage.enqueue("one")
    await stage.enqueue("two")

    async def killed(*_: Any, **__: Any) -> None:
        raise unavailable("The database cannot be reached")

    with monkeypatch.context() as patch:
        patch.setattr(claims, "complete", killed)
        with capture_logs() as logs:
            await stage.create_sender().send_due()
    assert [log["event"] for log in logs] == ["outbox.completion_failed"]
    assert stage.list_delivered_texts() == ["one"]
    await stage.create_sender().send_due()
    # The lease has not expired: another sender may still hold it.
    assert stage.list_delivered_texts() == ["one"]
    stage.clock.advance(seconds=claims.LEASE_DURATION.total_seconds())
    await stage.create_sender().send_due()
    assert stage.list_delivered_texts() == ["one", "one", "two"]
    assert await stage.list_statuses() == [("sent", None)] * 2


async def test_order_is_preserved_under_failures_with_concurrent_senders(
    stage: SenderDriver, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(15)
    people = [f"+2327600000{number}" for number in range(6)]
    await stage.open_service_window(*people)
    for number in range(8):
        for person in people:
            await stage.enqueue(str(number), person)
    send, failed = stage.graph.send, []

    async def badly(payload: dict[str, Any]) -> str:
        if chance.random() < 0.3:
            failed.append(payload)
            stage.provider.failures.append(
                PlannedFailure(code=chance.choice([130429, 131056, 131000]))
            )
        return await send(payload)

    monkeypatch.setattr(stage.graph, "send", badly)
    other_database = await Database.connect(database_url)
    try:
        await _send_all(stage, stage.create_sender(), stage.create_sender(database=other_database))
    finally:
        await other_database.close()
    assert failed
    for person in people:
        assert stage.list_delivered_texts(person) == [str(number) for number in range(8)]


async def test_long_message_resumes_after_its_last_sent_part(
    stage: SenderDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.open_service_window(PHONE)
    text = " ".join(f"word{number}" for number in range(1500))
    await stage.enqueue(text)
    send, calls = stage.graph.send, 0

    async def failing_the_second_time(payload: dict[str, Any]) -> str:
        nonlocal calls
        calls += 1
        if calls == 2:
            stage.provider.failures.append(PlannedFailure(code=131000))
        return await send(payload)

    monkeypatch.setattr(stage.graph, "send", failing_the_second_time)
    await stage.create_sender().send_due()
    assert len(stage.list_delivered_texts()) == 1
    stage.clock.advance(seconds=90)
    await stage.create_sender().send_due()
    assert " ".join(stage.list_delivered_texts()) == text
    (row,) = await stage.list_rows()
    assert row["channel_message_id"].split() == [one.id for one in stage.provider.sent]


async def test_message_that_cannot_be_rendered_fails(stage: SenderDriver) -> None:
    option = Option(id="", title="No id")
    await stage.enqueue(OptionList(text="?", options=(option,), button="b", more=option))
    await stage.create_sender().send_due()
    assert await stage.list_statuses() == [("refused", "cannot be shown")]


async def test_message_sealed_with_another_key_stays_queued(stage: SenderDriver) -> None:
    await stage.open_service_window(PHONE)
    await stage.enqueue("Hello")
    stranger = Sender(stage.database, Vault("another"), stage.graph, stage.clock, keep=False)
    await stranger.send_due()
    assert await stage.list_statuses() == [("waiting", "unreadable")]
    stage.clock.advance(seconds=2)
    await stage.create_sender().send_due()
    assert stage.list_delivered_texts() == ["Hello"]


async def test_logs_contain_only_ids_and_error_codes(stage: SenderDriver) -> None:
    await stage.enqueue("a secret balance")
    stage.provider.failures.append(PlannedFailure(code=131000))
    with capture_logs() as logs:
        await stage.create_sender().send_due()
        stage.clock.advance(seconds=2)
        await stage.create_sender().send_due()
    (row,) = await stage.list_rows()
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
    stage: SenderDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tapgate.messenger.outbox.sender.POLL_INTERVAL_SECONDS", 3600.0)
    monkeypatch.setattr("tapgate.messenger.outbox.sender._SHUTDOWN_TIMEOUT_SECONDS", 30.0)
    await stage.open_service_window(PHONE)
    sending, go_on = asyncio.Event(), asyncio.Event()
    send = stage.graph.send

    async def slowly(payload: dict[str, Any]) -> str:
        sending.set()
        await go_on.wait()
        return await send(payload)

    sender = stage.create_sender()
    task = asyncio.create_task(sender.run())
    async with asyncio.timeout(30):
        for number in range(3):
            await stage.enqueue(f"early {number}")
        sender.wake()
        while len(stage.list_delivered_texts()) < 3:
            await asyncio.sleep(0.01)
        monkeypatch.setattr(stage.graph, "send", slowly)
        await stage.enqueue("late")
        sender.wake()
        await sending.wait()
        task.cancel()
        await asyncio.sleep(0)
        go_on.set()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    assert stage.list_delivered_texts() == ["early 0", "early 1", "early 2", "late"]
    assert await stage.list_statuses() == [("sent", None)] * 4


async def test_sender_survives_database_outages(
    stage: SenderDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tapgate.messenger.outbox.sender.POLL_INTERVAL_SECONDS", 0.01)
    await stage.open_service_window(PHONE)
    await stage.enqueue("Hello")
    claim, failures = claims.claim, [unavailable("away"), unavailable("away")]

    async def sometimes(*args: Any, **options: Any) -> list[claims.Claim]:
        if failures:
            error: ApiError = failures.pop()
            raise error
        return await claim(*args, **options)

    monkeypatch.setattr(claims, "claim", sometimes)
    task = asyncio.create_task(stage.create_sender().run())
    async with asyncio.timeout(30):
        while not stage.list_delivered_texts():
            await asyncio.sleep(0.01)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    assert stage.list_delivered_texts() == ["Hello"]


async def test_lost_claim_changes_nothing(stage: SenderDriver) -> None:
    await stage.enqueue("Hello")
    now = stage.clock()
    (lost,) = await claims.claim(stage.database, now=now, limit=9)
    assert await claims.claim(stage.database, now=now, limit=9) == []
    later = now + claims.LEASE_DURATION
    (held,) = await claims.claim(stage.database, now=later, limit=9)
    await claims.schedule_retry(stage.database, lost, "131000", now - timedelta(days=1))
    await claims.fail(stage.database, lost, "131047", now, keep=False)
    await claims.extend_lease(stage.database, lost, ["x"], now)
    (row,) = await stage.list_rows()
    assert (row["status"], row["problem"]) == ("waiting", None)
    assert (row["attempts"], row["next_attempt_at"]) == (
        held.attempts,
        later + claims.LEASE_DURATION,
    )


async def test_concurrent_claims_return_different_recipients(stage: SenderDriver) -> None:
    people = [f"+232760000{number}" for number in range(10, 40)]
    oldest = {}
    for person in people:
        oldest[person], _ = await stage.enqueue("one", person)
        await stage.enqueue("two", person)
    claimed = await asyncio.gather(
        *(claims.claim(stage.database, now=stage.clock(), limit=9) for _ in range(20))
    )
    claimed.append(await claims.claim(stage.database, now=stage.clock(), limit=99))
    found = [(one.address, one.id) for some in claimed for one in some]
    assert sorted(found) == sorted(oldest.items())
