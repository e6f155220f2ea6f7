"""Deliveries are processed exactly once despite duplicates, concurrency and crashes."""

import asyncio
from typing import Any

import httpx2
import pytest

from drivers.in_process import AppTransport
from drivers.messenger import MessengerDriver, ServicesDriver, build_text
from harness import PIN
from tapgate.messenger import inbox, inbox_worker, people, runner
from tapgate.messenger.channel.render import render_plain_text
from tapgate.messenger.model import PinForm, TextReply
from tapgate.server.gateway import create_app


async def count_waiting(services_driver: ServicesDriver) -> int:
    count: int = await services_driver.harness.database.fetchval(
        "SELECT count(*) FROM messenger.received WHERE status = 'waiting'"
    )
    return count


async def test_message_delivered_50_times_concurrently_to_two_messengers_is_processed_once(
    services_driver: ServicesDriver, messenger: MessengerDriver
) -> None:
    harness = services_driver.harness
    sender = await harness.create_subscriber(balance="1000.00")
    recipient = await harness.create_subscriber()
    serial = await harness.create_card(recipient["id"])
    settings: dict[str, Any] = {"messenger_flow_private_key": None, "messenger_text_pin": True}
    async with (
        services_driver.run_messenger(**settings) as first_messenger,
        services_driver.run_messenger(**settings) as second_messenger,
    ):
        phone, second_phone = (
            instance.create_phone(sender["phone_number"])
            for instance in (first_messenger, second_messenger)
        )
        await phone.send_text(f"send 100 to {serial}")
        await phone.read_replies()
        for content in ("yes", PIN):
            message = phone.build_message(build_text(content))
            await asyncio.gather(
                *(
                    sender_phone.deliver(message)
                    for _ in range(25)
                    for sender_phone in (phone, second_phone)
                )
            )
            await phone.wait_until_handled()
        replies = await phone.read_replies()
    assert await services_driver.get_balance(recipient["id"]) == "100.00"
    receipts = [reply for reply in replies if "txn_" in getattr(reply, "text", "")]
    assert len(receipts) == 1
    stored = await messenger.services.database.fetchval("SELECT count(*) FROM messenger.received")
    assert stored == 3


class HangingTransport(httpx2.AsyncBaseTransport):
    """Gateway transport that accepts requests and never responds."""

    def __init__(self) -> None:
        self.request_received = asyncio.Event()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.request_received.set()
        await asyncio.get_running_loop().create_future()
        raise AssertionError


async def test_acknowledged_message_is_processed_after_a_restart(
    services_driver: ServicesDriver,
) -> None:
    subscriber = await services_driver.harness.create_subscriber(balance="77.00")
    transport = HangingTransport()
    async with services_driver.run_messenger(http=transport) as first:
        phone = first.create_phone(subscriber["phone_number"])
        await phone.deliver(phone.build_message(build_text("balance")))
        await transport.request_received.wait()
        # The messenger stops here, while the message is being processed.
    assert await count_waiting(services_driver) == 1
    async with services_driver.run_messenger() as second:
        phone = second.create_phone(subscriber["phone_number"])
        await phone.wait_until_handled()
        replies = await phone.read_replies()
        assert any("77.00 SLE" in getattr(reply, "text", "") for reply in replies)


async def test_text_that_may_contain_a_pin_is_requested_again_after_a_crash(
    services_driver: ServicesDriver,
) -> None:
    settings: dict[str, Any] = {"messenger_flow_private_key": None, "messenger_text_pin": True}
    harness = services_driver.harness
    sender = await harness.create_subscriber(balance="1000.00")
    recipient = await harness.create_subscriber()
    serial = await harness.create_card(recipient["id"])
    async with services_driver.run_messenger(**settings) as first:
        phone = first.create_phone(sender["phone_number"])
        await phone.send_text(f"send 100 to {serial}")
        await phone.send_text("yes")
    transport = HangingTransport()
    async with services_driver.run_messenger(http=transport, **settings) as crashing:
        phone.client = crashing.client
        await phone.deliver(phone.build_message(build_text(PIN)))
        await transport.request_received.wait()
        await phone.read_replies()
    async with services_driver.run_messenger(**settings) as second:
        await second.services.database.execute(
            "UPDATE messenger.received SET reserved_until = now() - interval '1 second'"
        )
        phone.client = second.client
        await phone.wait_until_handled()
        assert await phone.read_replies()
        assert await services_driver.get_balance(recipient["id"]) == "0.00"
        await phone.send_text(PIN)
    assert await services_driver.get_balance(recipient["id"]) == "100.00"


class LostReceiptTransport(httpx2.AsyncBaseTransport):
    """Gateway transport that executes a payment and never returns its response."""

    def __init__(self, services_driver: ServicesDriver) -> None:
        self._gateway = AppTransport(create_app(services_driver.harness.services))
        self.paid = asyncio.Event()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._gateway.handle_async_request(request)
        if request.url.path.endswith("/transfer-p2p"):
            self.paid.set()
            await asyncio.get_running_loop().create_future()
        return response


@pytest.mark.parametrize("pin_mode", ["text", "form"])
async def test_payment_executed_during_a_crash_is_not_reported_as_canceled(
    services_driver: ServicesDriver, pin_mode: str
) -> None:
    text_pins: dict[str, Any] = {"messenger_flow_private_key": None, "messenger_text_pin": True}
    settings = text_pins if pin_mode == "text" else {}
    harness = services_driver.harness
    sender = await harness.create_subscriber(balance="1000.00")
    recipient = await harness.create_subscriber()
    serial = await harness.create_card(recipient["id"])
    transport = LostReceiptTransport(services_driver)
    async with services_driver.run_messenger(http=transport, **settings) as crashing:
        phone = crashing.create_phone(sender["phone_number"])
        await phone.send_text(f"send 100 to {serial}")
        await phone.send_text("yes")
        if pin_mode == "text":
            await phone.deliver(phone.build_message(build_text(PIN)))
            await transport.paid.wait()
        else:
            submission = asyncio.create_task(phone.submit_form({"pin": PIN}))
            await transport.paid.wait()
            submission.cancel()
            await asyncio.gather(submission, return_exceptions=True)
    async with services_driver.run_messenger(**settings) as second:
        phone.client = second.client
        await second.services.database.execute(
            "UPDATE messenger.received SET reserved_until = now() - interval '1 second'"
        )
        await phone.wait_until_handled()
        if pin_mode == "form":
            await phone.send_text("cancel")
        plain_text = render_plain_text(await phone.read_replies(everything=True))
        assert "won't be charged twice" in plain_text
        assert "may have gone through" in await phone.send_text("cancel")
    assert await services_driver.get_balance(recipient["id"]) == "100.00"


async def test_person_gets_a_reply_while_the_gateway_is_unreachable(
    services_driver: ServicesDriver,
) -> None:
    class UnreachableTransport(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            raise httpx2.ConnectError("refused")

    subscriber = await services_driver.harness.create_subscriber()
    async with services_driver.run_messenger(http=UnreachableTransport()) as messenger:
        phone = messenger.create_phone(subscriber["phone_number"])
        response = await phone.post_to_bridge(message="balance")
        assert response.status_code == 500
        assert response.json()["status"] == "error"
        assert "Traceback" not in response.text
        assert response.json()["answer"]
        output = await phone.send_text("balance")
        assert output
        # Help does not require the gateway.
        assert "status" not in await phone.send_by_bridge("help")


async def test_rate_limit_reached_on_the_bridge_causes_one_notice_on_the_webhook(
    services_driver: ServicesDriver,
) -> None:
    subscriber = await services_driver.harness.create_subscriber()
    async with services_driver.run_messenger(messenger_rate=2) as messenger:
        phone = messenger.create_phone(subscriber["phone_number"])
        await phone.send_by_bridge("help")
        await phone.send_by_bridge("help")
        assert (await phone.post_to_bridge(message="help")).status_code == 429
        for _ in range(3):
            await phone.deliver(phone.build_message(build_text("help")))
        await phone.wait_until_handled()
        assert len(await phone.read_replies()) == 1


async def test_bridge_message_without_text_gets_a_reply(
    services_driver: ServicesDriver, messenger: MessengerDriver
) -> None:
    phone = messenger.create_phone(
        (await services_driver.harness.create_subscriber())["phone_number"]
    )
    for fields in ({}, {"message": None}, {"message": " "}):
        response = await phone.post_to_bridge(**fields)
        assert (response.status_code, response.json()["status"]) == (200, "success")
        assert response.json()["answer"]


@pytest.mark.parametrize("channel", ["webhook", "bridge"])
async def test_message_above_the_rate_limit_is_not_processed(
    services_driver: ServicesDriver, channel: str
) -> None:
    subscriber = await services_driver.harness.create_subscriber(balance="77.00")
    async with services_driver.run_messenger(messenger_rate=3) as messenger:
        phone = messenger.create_phone(subscriber["phone_number"])
        for _ in range(3):
            found = await (phone.send_text if channel == "webhook" else phone.send_by_bridge)(
                "balance"
            )
            assert "77.00" in found
        await phone.read_replies()
        if channel == "bridge":
            response = await phone.post_to_bridge(message="balance")
            assert response.status_code == 429
            assert response.json()["status"] == "error"
            assert 1 <= response.json()["retryAfter"] <= 60
            return
        throttled = [phone.build_message(build_text("balance")) for _ in range(4)]
        for message in (*throttled, *throttled):
            await phone.deliver(message)
        await phone.wait_until_handled()
        (notice,) = await phone.read_replies()
        assert isinstance(notice, TextReply)
        assert "77.00" not in notice.text


async def test_message_with_a_future_timestamp_does_not_make_later_messages_late(
    services_driver: ServicesDriver,
) -> None:
    harness = services_driver.harness
    sender = await harness.create_subscriber(balance="1000.00")
    recipient = await harness.create_subscriber()
    serial = await harness.create_card(recipient["id"])
    async with services_driver.run_messenger() as messenger:
        phone = messenger.create_phone(sender["phone_number"])
        await phone.deliver(phone.build_message(build_text("balance"), timestamp="99999999999"))
        await phone.wait_until_handled()
        await phone.send_text(f"send 100 to {serial}")
        await phone.send_text("yes")
        assert await phone.get_last(PinForm)


async def test_number_change_is_processed_even_above_the_rate_limit(
    services_driver: ServicesDriver,
) -> None:
    subscriber = await services_driver.harness.create_subscriber(balance="77.00")
    async with services_driver.run_messenger(messenger_rate=1) as messenger:
        phone = messenger.create_phone(subscriber["phone_number"])
        await phone.send_text("balance")
        await phone.deliver(phone.build_message({"type": "system", "system": {"body": "changed"}}))
        await phone.wait_until_handled()
        person = await people.load_person(messenger.services.database, phone.number)
        assert not person.trusted


async def test_unreadable_message_does_not_block_later_messages(
    services_driver: ServicesDriver,
) -> None:
    """A different version may have stored a message that this version cannot read."""
    subscriber = await services_driver.harness.create_subscriber(balance="77.00")
    async with services_driver.run_messenger(http=HangingTransport()) as first:
        phone = first.create_phone(subscriber["phone_number"])
        await phone.deliver(phone.build_message(build_text("balance")))
    await services_driver.harness.database.execute(
        """UPDATE messenger.received
           SET sealed = 'x', attempts = 4, reserved_until = now()"""
    )
    async with services_driver.run_messenger() as second:
        phone.client = second.client
        assert "77.00" in await phone.send_text("balance")


async def test_blocked_conversations_do_not_starve_others(
    services_driver: ServicesDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leases of another process block as many addresses as one sweep loads."""
    monkeypatch.setattr(inbox_worker, "MAX_ADDRESSES_PER_SWEEP", 2)
    database = services_driver.harness.database
    subscriber = await services_driver.harness.create_subscriber(balance="77.00")
    blocked, last = ["+100000001", "+100000002"], subscriber["phone_number"]
    for row_id, address in enumerate([*blocked, last]):
        await database.execute(
            """INSERT INTO messenger.received (id, message_id, address, sent_at, sealed, status,
                   reserved_for, reserved_until, received_at)
               VALUES ($1, $2, $2, 0, $3, 'waiting', 0, now() - interval '5 seconds', now())""",
            row_id,
            address,
            services_driver.harness.services.vault.seal(
                b'{"type": "Words", "body": "balance"}', inbox.get_sealing_context(row_id)
            ),
        )
    await database.execute(
        """INSERT INTO messenger.conversations (address, lease, leased_until)
           SELECT unnest($1::text[]), 1, now() + interval '1 hour'""",
        blocked,
    )
    async with services_driver.run_messenger() as messenger:
        phone = messenger.create_phone(last)
        await phone.wait_until_handled()
        assert "77.00" in render_plain_text(await phone.read_replies())


async def test_concurrent_deliveries_of_the_same_messages_do_not_deadlock(
    services_driver: ServicesDriver, messenger: MessengerDriver
) -> None:
    phones = [messenger.create_phone(services_driver.harness.new_phone_number()) for _ in range(4)]
    messages = [phone.build_message(build_text("help")) for _ in range(5) for phone in phones]
    await asyncio.gather(
        *(phones[0].deliver(*body) for _ in range(5) for body in (messages, messages[::-1]))
    )
    for phone in phones:
        await phone.wait_until_handled()
    stored = await messenger.services.database.fetchval("SELECT count(*) FROM messenger.received")
    assert stored == len(messages)


async def test_messages_with_equal_timestamps_are_processed_in_delivery_order(
    services_driver: ServicesDriver, messenger: MessengerDriver
) -> None:
    phone = messenger.create_phone(services_driver.harness.new_phone_number())
    timestamp = {"timestamp": "1749416383"}
    await phone.deliver(
        phone.build_message(build_text("register"), id="wamid.z", **timestamp),
        phone.build_message(build_text("Mary Sesay"), id="wamid.a", **timestamp),
    )
    await phone.wait_until_handled()
    assert "Mary Sesay" in render_plain_text(await phone.read_replies())


class ConcurrencyCountingTransport(httpx2.AsyncBaseTransport):
    """Slow gateway transport that records the maximum number of concurrent requests.

    The first request waits at most 30 seconds for a second one.
    """

    def __init__(self, services_driver: ServicesDriver) -> None:
        self._gateway = AppTransport(create_app(services_driver.harness.services))
        self._current = self.max_concurrent = 0
        self._two_concurrent = asyncio.Event()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self._current += 1
        self.max_concurrent = max(self.max_concurrent, self._current)
        if self._current == 2:
            self._two_concurrent.set()
        async with asyncio.timeout(30):
            await self._two_concurrent.wait()
        await asyncio.sleep(0.05)
        self._current -= 1
        return await self._gateway.handle_async_request(request)


async def test_concurrent_conversations_are_limited(
    services_driver: ServicesDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox_worker, "MAX_CONCURRENT_CONVERSATIONS", 2)
    transport = ConcurrencyCountingTransport(services_driver)
    async with services_driver.run_messenger(http=transport) as messenger:
        phones = [
            messenger.create_phone(services_driver.harness.new_phone_number()) for _ in range(6)
        ]
        await phones[0].deliver(*(phone.build_message(build_text("balance")) for phone in phones))
        for phone in phones:
            await phone.wait_until_handled()
            assert await phone.read_replies()
    assert transport.max_concurrent == 2


async def test_failed_turn_is_repeated_and_its_message_handled_once(
    services_driver: ServicesDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscriber = await services_driver.harness.create_subscriber(balance="77.00")
    run_turn, failures = runner.run_turn, iter([RuntimeError("x"), RuntimeError("y")])

    async def run_turn_or_fail(*args: Any, **options: Any) -> runner.TurnResult:
        for failure in failures:
            raise failure
        return await run_turn(*args, **options)

    monkeypatch.setattr(runner, "run_turn", run_turn_or_fail)
    async with services_driver.run_messenger() as messenger:
        phone = messenger.create_phone(subscriber["phone_number"])
        assert (await phone.send_text("balance")).count("77.00") == 1
    row = await services_driver.harness.database.fetchrow(
        "SELECT status, attempts, sealed FROM messenger.received"
    )
    assert tuple(row) == ("handled", 3, None)
