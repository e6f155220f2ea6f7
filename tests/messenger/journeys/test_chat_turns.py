"""Chat turns, from a customer's message to the timeline that support reads."""

import asyncio
from typing import Any

import httpx2

from builders.auth import FakeClock
from builders.timeline import get_page
from drivers.gateway_requests import open_gateway
from drivers.in_process import AppTransport
from drivers.messenger import MessengerDriver, ServicesDriver
from harness import PIN, WRONG_PIN
from tapgate.messenger.model import COMMANDS, PinForm
from tapgate.messenger.turn_reports import TurnReporter
from tapgate.runtime.store.work_queue import LEASE_DURATION
from tapgate.server.gateway import create_app
from tapgate.sites.console.labels import CHAT_COMMAND_LABELS


async def wait_for_turns(
    services_driver: ServicesDriver, record: dict[str, Any], count: int
) -> list[tuple[str, ...]]:
    """Wait for a subscriber's turns, and return them oldest first."""
    async with asyncio.timeout(30):
        while True:
            page = await get_page(services_driver.harness, record, "S", kind="chat")
            if len(page["data"]) >= count:
                break
            await asyncio.sleep(0.05)
    return [
        (item["event"], item["input"], item["status"], item["failure_code"])
        for item in reversed(page["data"])
    ]


async def test_support_sees_what_a_customer_did_in_the_chat(
    services_driver: ServicesDriver, messenger: MessengerDriver
) -> None:
    harness = services_driver.harness
    sender = await harness.create_subscriber(balance="1000.00")
    recipient = await harness.create_subscriber(first_name="Mary", last_name="Sesay")
    serial = await harness.create_card(recipient["id"])
    phone = messenger.create_phone(sender["phone_number"])
    await phone.send_text("help")
    await phone.send_text(f"send 100 to {serial}")
    await phone.send_text("yes")
    token = (await phone.get_last(PinForm)).token
    await phone.submit_form({"pin": WRONG_PIN}, token)
    await phone.submit_form({"pin": PIN}, token)
    await phone.send_text("send 5000 to " + serial)
    await phone.send_text("cancel")
    await phone.send_text("grmbl")
    assert "898.50" in await phone.send_by_bridge("balance")
    turns = await wait_for_turns(services_driver, sender, 9)
    assert turns == [
        ("help", "text", "answered", None),
        ("send", "text", "in_progress", None),
        ("send", "text", "in_progress", None),
        ("send", "form", "declined", "INVALID_PIN"),
        ("send", "form", "answered", None),
        ("send", "text", "in_progress", None),
        ("send", "text", "cancelled", None),
        ("message", "text", "answered", None),
        ("balance", "text", "answered", None),
    ]
    page = await get_page(harness, sender, "S", kind="chat")
    assert [item["channel"] for item in page["data"]] == ["bridge"] + ["messaging"] * 8
    assert page["data"][0]["replies"] == 1
    stored = await harness.database.fetch("SELECT * FROM chat_turns")
    for secret in (PIN, "100", "5000", serial, "Mary", "grmbl"):
        assert not any(secret in str(value) for row in stored for value in list(row)[2:])
    assert await list_stored(messenger) == []
    recipients_turns = await get_page(harness, recipient, "S", kind="chat")
    assert recipients_turns["data"] == []


async def list_stored(messenger: MessengerDriver) -> list[Any]:
    """Return the turns that are not reported yet. The reporter removes them after the report."""
    async with asyncio.timeout(30):
        while rows := await messenger.services.database.fetch("SELECT * FROM messenger.turns"):
            await asyncio.sleep(0.05)
    return list(rows)


async def test_registration_is_the_first_turn_of_a_subscriber(
    services_driver: ServicesDriver, messenger: MessengerDriver
) -> None:
    harness = services_driver.harness
    number = harness.new_phone_number()
    phone = messenger.create_phone(number)
    await phone.send_text("register")
    await phone.send_text("Fatu Kamara")
    await phone.send_text("yes")
    await phone.submit_form({"new_pin": PIN, "repeated_pin": PIN})
    (record,) = (
        await harness.get(
            "/api/v1/subscribers", params={"phone_number": number}, auth=harness.get_service_auth()
        )
    ).json()["data"]
    turns = await wait_for_turns(services_driver, record, 1)
    assert turns == [("register", "form", "answered", None)]


async def test_turns_after_a_number_change_are_not_attributed(
    services_driver: ServicesDriver, messenger: MessengerDriver
) -> None:
    harness = services_driver.harness
    record = await harness.create_subscriber()
    phone = messenger.create_phone(record["phone_number"])
    system = {"type": "system", "system": {"type": "user_changed_number", "body": "changed"}}
    await phone.send(system)
    await phone.send_text("help")
    assert await list_stored(messenger) == []
    assert (await get_page(harness, record, "S", kind="chat"))["data"] == []


async def test_report_is_retried_until_the_gateway_accepts_it(
    services_driver: ServicesDriver,
) -> None:
    harness = services_driver.harness
    record = await harness.create_subscriber()
    database, clock = harness.database, FakeClock()
    secret = harness.services.settings.service_secrets["messenger"]
    clock.now = harness.services.clock()
    await insert_turns(services_driver, record["phone_number"], "not a phone number")
    unavailable = httpx2.MockTransport(lambda _: httpx2.Response(503))
    older = httpx2.MockTransport(lambda _: httpx2.Response(404))
    for transport in (unavailable, older):
        await TurnReporter(database, open_gateway(transport, secret), clock).report_due()
        assert await database.fetchval("SELECT count(*) FROM messenger.turns") == 2
        clock.now += LEASE_DURATION
    available = AppTransport(create_app(harness.services))
    await TurnReporter(database, open_gateway(available, secret), clock).report_due()
    assert await database.fetchval("SELECT count(*) FROM messenger.turns") == 0
    found = await wait_for_turns(services_driver, record, 1)
    assert found == [("cards", "option", "answered", None)]


async def insert_turns(services_driver: ServicesDriver, *phones: str) -> None:
    services = services_driver.harness.services
    for phone in phones:
        await services.database.execute(
            """INSERT INTO messenger.turns
                   (id, phone, channel, input, command, outcome, replies, ended_at, report_at)
               VALUES ($1, $2, 'messaging', 'option', 'cards', 'answered', 1, $3, $3)""",
            services.new_id(),
            phone,
            services.clock(),
        )


def test_every_command_has_a_label() -> None:
    assert set(CHAT_COMMAND_LABELS) == set(COMMANDS) - {"yes", "no", "cancel"}
