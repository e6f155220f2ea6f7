"""Messages that do not arrive in the chat go out as SMS, once, and under their own ID."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from builders.messenger import PHONE, SmsDriver
from tapgate.messenger.model import DeliveryStatus, Template
from tapgate.messenger.outbox import leases, sms_sender, statuses
from tapgate.messenger.outbox.sms_sender import record_report
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.work_queue import LEASE_DURATION
from tapgate_client import ids
from tapgate_client.errors import unavailable
from tapgate_client.schemas.messages import MessageStatus
from tapgate_sandbox.fake_provider.provider import PlannedFailure
from tapgate_sandbox.fake_provider.sms import PlannedSmsFailure, ReceivedSms

CODE = Template(name="one_time_code", language="en", parameters=("918273",))
NOTICE = Template(name="pin_changed", language="en", parameters=("Aminata K.", "your PIN"))
RECEIPT = Template(name="payment_made", language="en", parameters=("5.00 SLE", "Shop", "txn_1"))


async def send_all(driver: SmsDriver) -> list[ReceivedSms]:
    """Send everything that is due, and return the SMS received so far."""
    await driver.create_sender().send_due()
    await driver.create_sms_sender().send_due()
    return driver.provider.sms.list_messages()


async def report(driver: SmsDriver, status: MessageStatus, **options: Any) -> bool:
    (row,) = await driver.list_rows()
    return await record_report(
        driver.database, row["id"], status, driver.clock(), keep_content=False, **options
    )


async def test_receiver_who_never_used_the_chat_gets_an_sms_at_once(sms_driver: SmsDriver) -> None:
    await sms_driver.enqueue(CODE)
    (sms,) = await send_all(sms_driver)
    message = await sms_driver.get_message()
    assert (sms.id, sms.to, sms.template) == (message.message_id, PHONE, "one_time_code")
    assert sms.text == "918273 is your code. Don't share it with anyone."
    assert (message.channel, message.status) == ("sms", "sent")
    assert sms_driver.provider.sent == []


@pytest.mark.parametrize("message", [CODE, NOTICE], ids=["code", "notice"])
async def test_undelivered_message_goes_out_as_sms_after_a_minute(
    sms_driver: SmsDriver, message: Template
) -> None:
    await sms_driver.use_chat()
    await sms_driver.enqueue(message)
    sms_driver.clock.advance(seconds=59)
    assert await send_all(sms_driver) == []
    sent = await sms_driver.get_message()
    assert (sent.channel, sent.status) == ("chat", "sent")

    sms_driver.clock.advance(seconds=1)
    (sms,) = await send_all(sms_driver)

    assert sms.id == sent.message_id
    assert (await sms_driver.get_message()).channel == "sms"
    assert len(sms_driver.provider.sent) == 1


@pytest.mark.parametrize("status", ["delivered", "read"])
async def test_delivered_message_is_not_sent_as_sms(sms_driver: SmsDriver, status: Any) -> None:
    await sms_driver.use_chat()
    await sms_driver.enqueue(CODE)
    await sms_driver.create_sender(keep_content=False).send_due()
    (row,) = await sms_driver.list_rows()
    assert row["content"] is not None
    await statuses.record(
        sms_driver.database,
        [DeliveryStatus(channel_message_id=row["channel_message_id"], status=status)],
        sms_driver.clock(),
        keep_content=False,
    )
    sms_driver.clock.advance(minutes=10)
    assert await send_all(sms_driver) == []
    (row,) = await sms_driver.list_rows()
    assert (row["content"], row["sms_at"]) == (None, None)


async def test_delivery_report_that_arrives_before_the_provider_id_counts(
    sms_driver: SmsDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sms_driver.use_chat()
    await sms_driver.enqueue(CODE)
    send = sms_driver.graph.send

    async def send_and_report(payload: dict[str, Any]) -> str:
        channel_id = await send(payload)
        reports = [DeliveryStatus(channel_message_id=channel_id, status="delivered")]
        await statuses.record(sms_driver.database, reports, sms_driver.clock())
        return channel_id

    monkeypatch.setattr(sms_driver.graph, "send", send_and_report)
    await send_all(sms_driver)
    sms_driver.clock.advance(minutes=2)
    assert await send_all(sms_driver) == []


async def test_failed_chat_message_goes_out_as_sms_at_once(sms_driver: SmsDriver) -> None:
    await sms_driver.use_chat()
    sms_driver.provider.failures.append(PlannedFailure(code=131026, status=400))
    await sms_driver.enqueue(CODE, key="gateway:msg_1")
    await sms_driver.create_sender(keep_content=False).send_due()
    (row,) = await sms_driver.list_rows()
    assert (row["status"], row["report_at"]) == ("refused", None)  # it has not failed yet
    assert len(await send_all(sms_driver)) == 1
    (row,) = await sms_driver.list_rows()
    assert (row["status"], row["problem"], row["channel"]) == ("sent", None, "sms")
    assert row["report_at"] == sms_driver.clock()


async def test_reported_failure_sends_an_sms_and_a_late_chat_report_changes_nothing(
    sms_driver: SmsDriver,
) -> None:
    await sms_driver.use_chat()
    await sms_driver.enqueue(CODE, key="gateway:msg_1")
    await send_all(sms_driver)
    (row,) = await sms_driver.list_rows()
    for status in ("failed", "failed"):
        failure = DeliveryStatus(
            channel_message_id=row["channel_message_id"], status=status, error_code="131026"
        )
        await statuses.record(sms_driver.database, [failure], sms_driver.clock())
    assert len(await send_all(sms_driver)) == 1
    assert (await sms_driver.get_message()).status == "sent"


async def test_message_waiting_for_a_broken_chat_provider_goes_out_as_sms(
    sms_driver: SmsDriver,
) -> None:
    await sms_driver.use_chat()
    sms_driver.provider.failures.append(PlannedFailure(code=130429, times=1000))
    await sms_driver.enqueue("an earlier reply")
    await sms_driver.enqueue(CODE)
    await send_all(sms_driver)
    sms_driver.clock.advance(seconds=60)
    assert [sms.text[:6] for sms in await send_all(sms_driver)] == ["918273"]


@pytest.mark.parametrize("message", [RECEIPT, "a reply"], ids=["receipt", "reply"])
async def test_other_messages_are_never_sms(sms_driver: SmsDriver, message: Any) -> None:
    await sms_driver.enqueue(message)
    sms_driver.clock.advance(minutes=10)
    assert await send_all(sms_driver) == []


async def test_without_sms_settings_messages_stay_in_the_chat(sms_driver: SmsDriver) -> None:
    sms_driver.sms = None
    await sms_driver.enqueue(CODE)
    (row,) = await sms_driver.list_rows()
    assert (row["channel"], row["sms_at"]) == ("chat", None)


async def test_hidden_number_gets_no_sms(sms_driver: SmsDriver) -> None:
    await sms_driver.enqueue(CODE, "user:US.1")
    (row,) = await sms_driver.list_rows()
    assert (row["channel"], row["sms_at"]) == ("chat", None)


@pytest.mark.parametrize("status", [500, 503])
async def test_server_error_is_retried_with_the_same_id(sms_driver: SmsDriver, status: int) -> None:
    sms_driver.provider.sms.failures.append(PlannedSmsFailure(status=status, times=2))
    await sms_driver.enqueue(NOTICE)
    for _ in range(3):
        await send_all(sms_driver)
        sms_driver.clock.advance(seconds=5)
    (sms,) = sms_driver.provider.sms.list_messages()
    assert (sms.requests, (await sms_driver.get_message()).status) == (1, "sent")


async def test_timed_out_request_is_repeated_and_the_provider_sends_one_sms(
    sms_driver: SmsDriver,
) -> None:
    late = PlannedSmsFailure(delay_seconds=1.0, accepts=True, times=2)
    sms_driver.provider.sms.failures.append(late)
    await sms_driver.enqueue(NOTICE)
    await send_all(sms_driver)
    (row,) = await sms_driver.list_rows()
    assert (row["status"], row["problem"]) == ("sms_waiting", "TimeoutError")
    for _ in range(2):
        sms_driver.clock.advance(seconds=5)
        await send_all(sms_driver)
    (sms,) = sms_driver.provider.sms.list_messages()
    assert (sms.requests, (await sms_driver.get_message()).status) == (3, "sent")


@pytest.mark.parametrize("status", [302, 400, 401, 404, 408, 409, 422, 429])
async def test_any_other_response_is_final(sms_driver: SmsDriver, status: int) -> None:
    sms_driver.provider.sms.failures.append(PlannedSmsFailure(status=status, times=1))
    await sms_driver.enqueue(CODE, key="gateway:msg_1")
    with capture_logs() as logs:
        await send_all(sms_driver)
    sms_driver.clock.advance(minutes=5)
    assert await send_all(sms_driver) == []
    message = await sms_driver.get_message()
    assert (message.channel, message.status) == ("sms", "failed")
    (row,) = await sms_driver.list_rows()
    assert (row["problem"], row["report_at"] is not None) == (f"status {status}", True)
    assert [log["event"] for log in logs] == ["sms.failed"]
    assert "918273" not in str(logs)
    assert PHONE not in str(logs)


async def test_expired_code_is_not_sent(sms_driver: SmsDriver) -> None:
    sms_driver.provider.sms.failures.append(PlannedSmsFailure(status=503, times=1))
    await sms_driver.enqueue(CODE)
    await send_all(sms_driver)
    sms_driver.clock.advance(minutes=5)
    assert await send_all(sms_driver) == []
    assert await sms_driver.list_statuses() == [("refused", "status 503")]


async def test_content_is_erased_when_the_sms_is_accepted(sms_driver: SmsDriver) -> None:
    await sms_driver.enqueue(CODE)
    await sms_driver.create_sms_sender(keep_content=False).send_due()
    (row,) = await sms_driver.list_rows()
    assert (row["status"], row["content"]) == ("sent", None)


async def test_crash_between_sending_and_recording_repeats_the_request(
    sms_driver: SmsDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sms_driver.enqueue(CODE)

    async def fail_to_record(*_: Any, **__: Any) -> None:
        raise unavailable("The database cannot be reached")

    with monkeypatch.context() as patch, capture_logs() as logs:
        patch.setattr(sms_sender.ACCEPTED, "record", fail_to_record)
        await send_all(sms_driver)
    assert [log["event"] for log in logs] == ["sms.completion_failed"]
    assert len(await send_all(sms_driver)) == 1  # still leased
    sms_driver.clock.advance(seconds=LEASE_DURATION.total_seconds())
    (sms,) = await send_all(sms_driver)
    assert (sms.requests, (await sms_driver.get_message()).status) == (2, "sent")


async def test_parallel_senders_send_each_message_once(
    sms_driver: SmsDriver, database_url: str
) -> None:
    phones = [f"+2327600{number:04}" for number in range(40)]
    for phone in phones:
        await sms_driver.enqueue(NOTICE, phone)
    other_database = await Database.connect(database_url)
    try:
        await asyncio.gather(
            sms_driver.create_sms_sender().send_due(),
            sms_driver.create_sms_sender(database=other_database).send_due(),
        )
    finally:
        await other_database.close()
    received = sms_driver.provider.sms.list_messages()
    assert sorted(sms.to for sms in received) == phones
    assert {sms.requests for sms in received} == {1}


async def test_chat_sender_that_is_still_busy_records_nothing_over_the_sms(
    sms_driver: SmsDriver,
) -> None:
    await sms_driver.use_chat()
    await sms_driver.enqueue(CODE)
    (leased,) = await leases.lease(sms_driver.database, now=sms_driver.clock(), limit=1)
    sms_driver.clock.advance(seconds=60)
    assert len(await send_all(sms_driver)) == 1
    await leases.complete(
        sms_driver.database, leased, ["wamid.1"], sms_driver.clock(), keep_content=True
    )
    await report(sms_driver, MessageStatus.DELIVERED)
    message = await sms_driver.get_message()
    assert (message.channel, message.status) == ("sms", "delivered")


@pytest.mark.parametrize(
    ("reports", "status"),
    [
        (["delivered"], "delivered"),
        (["failed"], "failed"),
        (["failed", "delivered"], "delivered"),
        (["delivered", "failed"], "delivered"),
        (["delivered", "delivered"], "delivered"),
    ],
)
async def test_reports_end_with_the_furthest_status(
    sms_driver: SmsDriver, reports: list[str], status: str
) -> None:
    await sms_driver.enqueue(CODE)
    await send_all(sms_driver)
    for item in reports:
        assert await report(sms_driver, MessageStatus(item))
    assert (await sms_driver.get_message()).status == status


async def test_report_proves_acceptance_of_a_timed_out_request(sms_driver: SmsDriver) -> None:
    late = PlannedSmsFailure(delay_seconds=1.0, accepts=True)
    sms_driver.provider.sms.failures.append(late)
    await sms_driver.enqueue(CODE)
    await send_all(sms_driver)
    assert await report(sms_driver, MessageStatus.DELIVERED)
    sms_driver.clock.advance(seconds=10)
    (sms,) = await send_all(sms_driver)
    (row,) = await sms_driver.list_rows()
    assert (sms.requests, row["status"], row["content"]) == (1, "sent", None)


async def test_report_about_a_chat_message_is_unknown(sms_driver: SmsDriver) -> None:
    await sms_driver.use_chat()
    await sms_driver.enqueue(CODE)
    assert not await report(sms_driver, MessageStatus.DELIVERED)
    is_recorded = await record_report(
        sms_driver.database, 5, MessageStatus.FAILED, sms_driver.clock(), keep_content=True
    )
    assert not is_recorded


async def test_id_of_the_sms_is_the_id_of_the_outbox_row(sms_driver: SmsDriver) -> None:
    row_id, _ = await sms_driver.enqueue(CODE)
    (sms,) = await send_all(sms_driver)
    assert sms.id == ids.encode(ids.MESSAGE, row_id)
