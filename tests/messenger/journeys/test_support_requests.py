"""Talk to a person: from the chat to the console, and back to the phone."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import pytest

from builders.hidden_numbers import (
    create_hidden_number_phone,
    get_pending_code,
    send_text,
)
from drivers.console import ConsoleClient, ConsoleClients
from drivers.in_process import AppTransport
from drivers.messenger import MessengerDriver, Phone, ServicesDriver
from drivers.webhooks import ACCESS_TOKEN, PHONE_NUMBER_ID
from tapgate.events.notifications.notification_messages import MessageSender
from tapgate.messenger import conversation_store, runner
from tapgate.messenger.channel.graph import GraphClient
from tapgate.messenger.channel.render import render_plain_text
from tapgate.messenger.model import TextMessage
from tapgate.messenger.outbox.sender import Sender
from tapgate_sandbox.fake_provider.provider import Provider, UserMessage
from tapgate_sandbox.fake_provider.server import serve
from tapgate_sandbox.gateway import create_app

CONSOLE_URL = "/console/support"


class SupportDesk:
    """Support staff in the console, and the way of their replies to the provider."""

    def __init__(
        self,
        messenger: MessengerDriver,
        console_clients: ConsoleClients,
        console: ConsoleClient,
        provider: Provider,
        graph: GraphClient,
    ) -> None:
        self._harness = console_clients.harness
        self._messenger = messenger
        self._graph = graph
        self.provider = provider
        self.console = console

    async def list_requests(self) -> list[dict[str, Any]]:
        response = await self._harness.get(
            "/api/v1/support/requests", auth=await self._harness.create_admin("S")
        )
        data: list[dict[str, Any]] = response.json()["data"]
        return data

    async def reply(self, request_id: str, text: str) -> None:
        response = await self.console.submit_action("support.reply", {"text": text}, id=request_id)
        assert "HX-Redirect" in response.headers, response.text
        await self._send_messages()

    async def close(self, request_id: str) -> None:
        await self.console.submit_action("support.close", id=request_id)
        await self._send_messages()

    async def _send_messages(self) -> None:
        await MessageSender(self._harness.services, self._messenger.client).send_due()
        await self.send_outbox()

    async def send_outbox(self) -> None:
        services = self._messenger.services
        clock = self._harness.services.clock
        sender = Sender(services.database, services.vault, self._graph, clock, keep_content=True)
        await sender.send_due()

    def get_last_sent(self, phone: Phone) -> dict[str, Any]:
        """Return the last message that the provider accepted for a phone."""
        message: dict[str, Any] = self.provider.list_sent_to(phone.number)[-1].message
        return message

    def advance_clock(self, **time: float) -> None:
        self._harness.advance_clock(**time)
        self._messenger.services.clock = self._harness.services.clock


@pytest.fixture
async def desk(
    services_driver: ServicesDriver, messenger: MessengerDriver
) -> AsyncIterator[SupportDesk]:
    harness = services_driver.harness
    clients = ConsoleClients(harness, AppTransport(create_app(harness.services)))
    console = await clients.create_signed_in("S")

    def read_clock() -> datetime:
        return harness.services.clock()  # tests advance it

    provider = Provider(
        access_token=ACCESS_TOKEN, phone_number_id=PHONE_NUMBER_ID, clock=read_clock
    )
    async with serve(provider) as url, GraphClient(url, ACCESS_TOKEN, PHONE_NUMBER_ID) as graph:
        yield SupportDesk(messenger, clients, console, provider, graph)


async def ask_support(phone: Phone, desk: SupportDesk, words: str) -> str:
    """Ask for support in chat and return the last reply."""
    await desk.provider.send_user_message(phone.number[1:], UserMessage(text="hi"))
    assert "What can our support team" in await phone.send_text("talk to a person")
    return await phone.send_text(words)


def get_texts(request: dict[str, Any]) -> list[tuple[str, str]]:
    return [(message["from"], message["text"].split("\n")[0]) for message in request["messages"]]


async def test_customer_and_support_talk_until_the_request_is_closed(
    services_driver: ServicesDriver, messenger: MessengerDriver, desk: SupportDesk
) -> None:
    subscriber = await services_driver.harness.create_subscriber(balance="40")
    phone = messenger.create_phone(subscriber["phone_number"])
    await phone.send_text("balance")
    reply = await ask_support(phone, desk, "My card was charged twice at the market")
    assert "passed this to our support team" in reply
    (request,) = await desk.list_requests()
    page = f"{CONSOLE_URL}/{request['id']}"
    text = await desk.console.get_page_text(page)
    assert "My card was charged twice at the market" in text
    assert "Customer: balance" in text and "40.00 SLE" in text and subscriber["id"] in text

    await desk.reply(request["id"], "Which day?")
    assert desk.get_last_sent(phone)["text"]["body"] == "*Support:* Which day?"
    await phone.read_replies()
    assert "passed that on" in await phone.send_text("the purple lantern was on wednesday")
    assert await phone.send_text("and it rained purple lanterns") == ""
    assert "40.00" in await phone.send_text("balance")
    (request,) = await desk.list_requests()
    assert request["status"] == "open"
    assert get_texts(request) == [
        ("customer", "My card was charged twice at the market"),
        ("staff", "Which day?"),
        ("customer", "the purple lantern was on wednesday"),
        ("customer", "and it rained purple lanterns"),
    ]

    await desk.send_outbox()
    desk.advance_clock(hours=25)
    await desk.reply(request["id"], "We refunded\nthe second payment.")
    template = desk.get_last_sent(phone)["template"]
    assert template["name"] == "support_reply"
    (body,) = template["components"]
    assert body["parameters"] == [{"type": "text", "text": "We refunded the second payment."}]

    await desk.close(request["id"])
    assert desk.get_last_sent(phone)["template"]["name"] == "support_closed"
    await phone.read_replies()
    assert "didn't understand" in await phone.send_text("purple lanterns again")
    reply = await ask_support(phone, desk, "My card does not work")
    assert "passed this to our support team" in reply
    new, closed = await desk.list_requests()
    assert (new["status"], closed["status"]) == ("open", "closed")
    assert get_texts(new) == [("customer", "My card does not work")]


async def test_person_with_a_hidden_number_is_answered_by_template(
    services_driver: ServicesDriver, messenger: MessengerDriver, desk: SupportDesk
) -> None:
    number = services_driver.harness.new_phone_number()
    ada = create_hidden_number_phone(messenger, "ada-9")
    await send_text(ada, "talk to a person")
    await send_text(ada, number)
    await send_text(ada, await get_pending_code(messenger, number))
    assert "passed this to our support team" in await send_text(ada, "I cannot register")
    (request,) = await desk.list_requests()
    assert (request["phone_number"], request["subscriber_id"]) == (number, None)
    await desk.reply(request["id"], "Please try again.")
    assert desk.get_last_sent(messenger.create_phone(number))["template"]["name"] == "support_reply"


async def test_chat_over_the_bridge_always_gets_an_answer(
    services_driver: ServicesDriver, messenger: MessengerDriver, desk: SupportDesk
) -> None:
    phone = messenger.create_phone(services_driver.harness.new_phone_number())
    answers = [
        (await phone.post_to_bridge(message=text)).json()["answer"]
        for text in ("talk to a person", "I cannot register", "purple lantern", "purple lanterns")
    ]
    assert "passed this to" in answers[1]
    assert all("passed that on" in answer for answer in answers[2:])
    (request,) = await desk.list_requests()
    assert len(request["messages"]) == 3


async def test_repeated_texts_of_one_hour_are_all_passed_on(
    services_driver: ServicesDriver, messenger: MessengerDriver, desk: SupportDesk
) -> None:
    phone = messenger.create_phone(services_driver.harness.new_phone_number())
    await ask_support(phone, desk, "I cannot register")
    for number in range(8):
        await phone.send_text(f"purple lanterns number {number}")
    (request,) = await desk.list_requests()
    response = await services_driver.gateway.get(
        f"/api/v1/support/requests/{request['id']}",
        auth=await services_driver.harness.create_admin("S"),
    )
    assert len(response.json()["messages"]) == 9


async def test_interrupted_turn_passes_the_text_on_once(
    services_driver: ServicesDriver, messenger: MessengerDriver, desk: SupportDesk
) -> None:
    phone = messenger.create_phone(services_driver.harness.new_phone_number())
    await phone.send_text("talk to a person")
    services = messenger.services
    for message_id, text in (("chat:1", "I cannot register"), ("chat:2", "purple lanterns")):
        for is_interrupted in (True, False):
            event = TextMessage(text=text)
            async with conversation_store.acquire(
                services.database, phone.number, services.clock()
            ) as held:
                turn = await runner.run_turn(
                    services, held, event, "webhook", message_id=message_id
                )
                assert "passed th" in render_plain_text(turn.replies)
                if not is_interrupted:
                    async with services.database.transaction() as tx:
                        await runner.save_turn(tx, services, held, turn, heard_until=0)
    (request,) = await desk.list_requests()
    assert get_texts(request) == [
        ("customer", "I cannot register"),
        ("customer", "purple lanterns"),
    ]
