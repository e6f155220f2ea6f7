"""Delivery statuses of sent messages, including duplicate and out-of-order reports."""

import asyncio
import itertools
from typing import Any

import pytest

from builders.messenger import PHONE, OutboxDriver, SenderDriver
from tapgate.messenger.model import DeliveryStatus, Template, TextReply
from tapgate.messenger.outbox import leases, statuses
from tapgate.messenger.outbox.outbox_messages import list_recent
from tapgate_sandbox.fake_provider.provider import PlannedFailure

CODE_TEMPLATE = Template(name="one_time_code", language="fr", parameters=("918273",))


def build_status(
    status: Any, channel_id: str = "wamid.1", error: str | None = None
) -> DeliveryStatus:
    return DeliveryStatus(channel_message_id=channel_id, status=status, error_code=error)


async def mark_sent(
    outbox: OutboxDriver, *channel_ids: str, message: Any = CODE_TEMPLATE, key: str = "k"
) -> None:
    """Enqueue a message and mark it as accepted by the provider under these IDs."""
    await outbox.enqueue(message, key=key)
    (leased,) = await leases.lease(outbox.database, now=outbox.clock(), limit=1)
    await leases.complete(
        outbox.database, leased, list(channel_ids), outbox.clock(), keep_content=True
    )


async def get_status(outbox: OutboxDriver) -> str:
    return (await list_recent(outbox.database, outbox.vault, PHONE))[0].status


async def record_statuses(outbox: OutboxDriver, *reports: DeliveryStatus) -> None:
    await statuses.record(outbox.database, reports, outbox.clock())


async def test_message_is_queued_until_it_is_sent(outbox: OutboxDriver) -> None:
    await outbox.enqueue(CODE_TEMPLATE)
    (message,) = await list_recent(outbox.database, outbox.vault, PHONE)
    assert (message.status, message.language) == ("queued", "fr")
    (leased,) = await leases.lease(outbox.database, now=outbox.clock(), limit=1)
    await leases.complete(outbox.database, leased, ["wamid.1"], outbox.clock(), keep_content=True)
    assert await get_status(outbox) == "sent"


@pytest.mark.parametrize("order", list(itertools.permutations(["sent", "delivered", "read"])))
async def test_reports_in_any_order_end_with_the_most_advanced_status(
    outbox: OutboxDriver, order: tuple[str, ...]
) -> None:
    await mark_sent(outbox, "wamid.1")
    for item in order * 2:
        await record_statuses(outbox, build_status(item))
    assert await get_status(outbox) == "read"


async def test_status_never_moves_backward(outbox: OutboxDriver) -> None:
    await mark_sent(outbox, "wamid.1")
    for item, text in (
        ("sent", "sent"),
        ("failed", "failed"),
        ("sent", "failed"),
        ("delivered", "delivered"),
        ("failed", "delivered"),
        ("read", "read"),
        ("failed", "read"),
    ):
        await record_statuses(outbox, build_status(item))
        assert await get_status(outbox) == text


async def test_report_that_arrives_before_the_channel_id_is_recorded_is_applied(
    outbox: OutboxDriver,
) -> None:
    await record_statuses(outbox, build_status("delivered"))
    await mark_sent(outbox, "wamid.1")
    assert await get_status(outbox) == "delivered"


async def test_several_reports_in_one_delivery_end_with_the_most_advanced_status(
    outbox: OutboxDriver,
) -> None:
    await mark_sent(outbox, "wamid.1")
    await record_statuses(
        outbox,
        build_status("read"),
        build_status("sent"),
        build_status("delivered"),
        build_status("read", "x"),
    )
    assert await get_status(outbox) == "read"


async def test_multipart_message_has_the_status_of_its_least_advanced_part(
    outbox: OutboxDriver,
) -> None:
    await mark_sent(outbox, "wamid.1", "wamid.2", message=TextReply(text="long"))
    await record_statuses(outbox, build_status("read", "wamid.1"))
    assert await get_status(outbox) == "sent"
    await record_statuses(outbox, build_status("delivered", "wamid.2"))
    assert await get_status(outbox) == "delivered"
    await record_statuses(outbox, build_status("read", "wamid.2"))
    assert await get_status(outbox) == "read"


async def test_message_with_a_failed_part_is_failed(outbox: OutboxDriver) -> None:
    await mark_sent(outbox, "wamid.1", "wamid.2", message=TextReply(text="long"))
    await record_statuses(
        outbox, build_status("read", "wamid.1"), build_status("failed", "wamid.2", "131026")
    )
    assert await get_status(outbox) == "failed"


async def test_parallel_reports_end_with_the_most_advanced_status(outbox: OutboxDriver) -> None:
    ids = [f"wamid.{number}" for number in range(5)]
    await mark_sent(outbox, *ids, message=TextReply(text="long"))
    await asyncio.gather(
        *(
            record_statuses(outbox, *(build_status(item, channel_id) for channel_id in order))
            for item in ("sent", "failed", "delivered", "read")
            for order in (ids, ids[::-1])
        )
    )
    assert await get_status(outbox) == "read"


async def test_message_rejected_by_the_provider_is_failed(sender_driver: SenderDriver) -> None:
    await sender_driver.enqueue(CODE_TEMPLATE)
    sender_driver.provider.failures.append(PlannedFailure(code=131026))
    await sender_driver.create_sender().send_due()
    assert await get_status(sender_driver) == "failed"


async def test_only_gateway_messages_are_scheduled_for_reporting(outbox: OutboxDriver) -> None:
    await mark_sent(outbox, "wamid.1", key="gateway:msg_06w85xf0m0400")
    await mark_sent(outbox, "wamid.2", key="other:msg_06w85xf0m0400")
    due = [row["report_at"] is not None for row in await outbox.list_rows()]
    assert due == [True, False]
    await outbox.database.execute("UPDATE messenger.outbox SET report_at = NULL")
    await record_statuses(outbox, build_status("read", "wamid.1"), build_status("read", "wamid.2"))
    due = [row["report_at"] is not None for row in await outbox.list_rows()]
    assert due == [True, False]
