"""Failure mode: webhooks and top-ups are lost, duplicated, delayed, or reordered."""

import asyncio
import dataclasses
import random
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from types import SimpleNamespace

import pytest

from failure_modes.two_gateways import TwoGateways
from harness import PIN
from journeys.api_caller import require_success
from journeys.concurrency import SendRequest, count_outcomes
from messenger.journeys.phone import build_text
from messenger.journeys.services_driver import ServicesDriver
from notifications.builders import get_only_delivery
from notifications.webhook_receiver import WebhookReceiver
from tapgate.clock import system_clock
from tapgate.gateway import EVENT_RECORD_LOADERS
from tapgate.webhooks import sender
from tapgate.webhooks.retry_schedule import RETRY_DELAYS_SECONDS
from tapgate.webhooks.worker import WebhookWorker


async def test_concurrent_top_ups_with_one_reference_and_two_amounts_execute_one_amount(
    two_gateways: TwoGateways,
) -> None:
    """A partner corrects an amount and sends both versions under one reference."""
    bank, aminata = await two_gateways.create_bank("1000"), await two_gateways.create_customer()

    def build_webhook(amount: str) -> SendRequest:
        return lambda client: bank.with_client(client).send_webhook(amount, aminata, "INV-1")

    def build_top_up(amount: str) -> SendRequest:
        return lambda client: bank.with_client(client).top_up(amount, aminata, "INV-1")

    responses = await two_gateways.run_concurrently(
        *[build_webhook("40"), build_webhook("50"), build_top_up("50"), build_top_up("40")] * 4
    )
    assert count_outcomes(responses) == {200: 8, (409, "DUPLICATE_REFERENCE"): 8}
    (paid,) = {require_success(response)["amount"] for response in responses if response.is_success}
    assert await aminata.get_balance() == paid.removesuffix(" SLE")


@pytest.mark.parametrize("seed", range(2))
async def test_duplicated_and_reordered_partner_webhooks_credit_each_reference_once(
    two_gateways: TwoGateways, seed: int
) -> None:
    """Each webhook is delivered three times, shuffled, across two processes."""
    bank, aminata = await two_gateways.create_bank("1000"), await two_gateways.create_customer()

    def build_webhook(number: int) -> SendRequest:
        return lambda client: bank.with_client(client).send_webhook(
            f"{number}", aminata, f"INV-{number}"
        )

    deliveries = [number for number in range(1, 11) for _ in range(3)]
    random.Random(seed).shuffle(deliveries)
    responses = await two_gateways.run_concurrently(*map(build_webhook, deliveries))
    assert count_outcomes(responses) == {200: 30}
    assert Counter(
        Counter(response.json()["transaction_id"] for response in responses).values()
    ) == {3: 10}
    assert await aminata.get_balance() == "55.00"


class WebhookDriver:
    """A webhook endpoint and two webhook workers with a controllable clock."""

    def __init__(self, two_gateways: TwoGateways, receiver: WebhookReceiver) -> None:
        self.gateways = two_gateways
        self.receiver = receiver
        self._clock_offset = timedelta(0)
        self.services = dataclasses.replace(
            two_gateways.harness.services, clock=lambda: system_clock() + self._clock_offset
        )

    async def subscribe(self, path: str = "") -> str:
        """Create a payer, a merchant, and a webhook endpoint, and return the endpoint's ID."""
        self._payer, self._merchant = (
            await self.gateways.create_customer("100"),
            await self.gateways.create_merchant(),
        )
        url, events = self.receiver.url + path, ["transaction.completed"]
        response = await self.gateways.admin.post("admin/webhook-endpoints", url=url, events=events)
        return str(require_success(response)["id"])

    async def pay(self) -> str:
        paid = await self._merchant.server.pay("10", self._payer.card)
        return str(require_success(paid)["transaction_id"])

    async def deliver(self) -> None:
        """Attempt all due deliveries with two concurrent workers."""
        workers = [WebhookWorker(self.services, EVENT_RECORD_LOADERS) for _ in range(2)]
        await asyncio.gather(*(worker.start_due_attempts() for worker in workers))
        await asyncio.gather(*(worker.wait_until_idle() for worker in workers))

    def advance_clock(self, **time: float) -> None:
        self._clock_offset += timedelta(**time)


@pytest.fixture
async def webhook_driver(
    two_gateways: TwoGateways, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[WebhookDriver]:
    for constant in ("RESPONSE_TIMEOUT_SECONDS", "_CONNECT_TIMEOUT_SECONDS"):
        monkeypatch.setattr(sender, constant, 60.0)  # no attempt times out on a busy machine
    receiver = WebhookReceiver()
    async with receiver.listen():
        yield WebhookDriver(two_gateways, receiver)


async def test_event_is_redelivered_with_the_same_id_and_body_until_an_attempt_succeeds(
    webhook_driver: WebhookDriver,
) -> None:
    """Redelivery under a new event ID would make the receiver book the payment twice."""
    await webhook_driver.subscribe()
    paid = await webhook_driver.pay()
    # The connection is closed without a response, then a 500, then success.
    webhook_driver.receiver.responses = [b"", b"HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n"]
    for _ in range(4):
        await webhook_driver.deliver()
        webhook_driver.advance_clock(hours=1)
    assert len(webhook_driver.receiver.received) == 3
    assert {webhook.content["data"]["id"] for webhook in webhook_driver.receiver.received} == {paid}
    assert len({(received.id, received.body) for received in webhook_driver.receiver.received}) == 1
    row = await get_only_delivery(webhook_driver.services)
    assert (row["status"], row["attempts"]) == ("delivered", 3)


async def test_response_after_the_timeout_causes_redelivery_of_the_same_event(
    webhook_driver: WebhookDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The receiver booked the event but its 200 arrived too late, so the event is sent again."""
    await webhook_driver.subscribe("/slow")
    await webhook_driver.pay()
    timeouts: list[asyncio.Timeout] = []

    def record_timeout(seconds: float) -> asyncio.Timeout:
        timeouts.append(asyncio.timeout(seconds))
        return timeouts[-1]

    with monkeypatch.context() as patch:
        patch.setattr(sender, "asyncio", SimpleNamespace(timeout=record_timeout))
        delivery = asyncio.create_task(webhook_driver.deliver())
        async with asyncio.timeout(30):
            while not webhook_driver.receiver.received:
                await asyncio.sleep(0.01)
        (response_timeout,) = timeouts
        response_timeout.reschedule(asyncio.get_running_loop().time())  # expire the timeout now
        await delivery
    webhook_driver.receiver.release_slow.set()
    webhook_driver.advance_clock(hours=1)
    await webhook_driver.deliver()
    first, second = webhook_driver.receiver.received
    assert (first.id, first.body) == (second.id, second.body)
    assert (await get_only_delivery(webhook_driver.services))["status"] == "delivered"


async def test_receiver_that_was_down_for_days_gets_the_same_event_on_manual_redelivery(
    webhook_driver: WebhookDriver,
) -> None:
    """Delivery fails visibly after the last attempt, and redelivery keeps the event ID."""
    endpoint = await webhook_driver.subscribe()
    await webhook_driver.pay()
    webhook_driver.receiver.enqueue_statuses(*[503] * 10)
    for pause in (*RETRY_DELAYS_SECONDS, 0):
        await webhook_driver.deliver()
        webhook_driver.advance_clock(seconds=1.1 * pause)
    assert len(webhook_driver.receiver.received) == 10
    assert (await get_only_delivery(webhook_driver.services))["status"] == "failed"
    (failed,) = await webhook_driver.gateways.admin.list_all(
        f"admin/webhook-endpoints/{endpoint}/deliveries"
    )
    redeliver_path = f"admin/webhook-endpoints/{endpoint}/deliveries/{failed['id']}/redeliver"
    require_success(await webhook_driver.gateways.admin.post(redeliver_path))
    webhook_driver.advance_clock(seconds=1)
    await webhook_driver.deliver()
    assert (await get_only_delivery(webhook_driver.services))["status"] == "delivered"
    assert len({(webhook.id, webhook.body) for webhook in webhook_driver.receiver.received}) == 1


async def test_chat_messages_delivered_repeatedly_to_two_processes_pay_once(
    two_gateways: TwoGateways, database_url: str
) -> None:
    """The provider delivers each message three times, and the PIN form is submitted six times."""
    aminata, mohamed = (
        await two_gateways.create_customer("100"),
        await two_gateways.create_customer(),
    )
    services_driver = ServicesDriver(two_gateways.harness, database_url)
    async with services_driver.run_messenger() as first, services_driver.run_messenger() as second:
        phone, other_phone = first.create_phone(aminata.phone), second.create_phone(aminata.phone)
        for text in (f"send 10 to {mohamed.card}", "yes"):
            message = phone.build_message(build_text(text))
            await asyncio.gather(*(each.deliver(message) for each in (phone, other_phone, phone)))
            await phone.wait_until_handled()
        await asyncio.gather(*(each.submit_form({"pin": PIN}) for each in (phone, other_phone) * 3))
        await phone.wait_until_handled()
    assert len(await services_driver.list_transfers(aminata.id)) == 1
    assert [await aminata.get_balance(), await mohamed.get_balance()] == ["89.85", "10.00"]
