"""An agent's day with two phones: float, cash-in, confirmed cash-out, commission, float request."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from builders.agents_day import AgentsDay
from builders.float_requests import end_float_request
from builders.participants import AGENT_PIN, create_agent, create_sub_agent
from drivers.messenger import MessengerDriver, ServicesDriver
from harness import PIN, WRONG_PIN
from tapgate.messenger.model import PinForm
from tapgate_client import ids


@pytest.fixture
async def day(
    services_driver: ServicesDriver, messenger: MessengerDriver
) -> AsyncIterator[AgentsDay]:
    harness = services_driver.harness
    await harness.disable_compliance_rules()
    parent = await create_agent(harness, balance="5000")
    agent = await create_sub_agent(harness, parent, business_name="Kissy Kiosk")
    customer = await harness.create_subscriber(balance="0")
    yield AgentsDay(services_driver, messenger, parent, agent, customer)


async def test_agents_day(day: AgentsDay) -> None:
    agent, customer = day.agent_phone, day.customer_phone
    assert "Hello Kissy Kiosk" in await day.say(agent, "menu")
    assert "Float: *0.00 SLE*" in await day.say(agent, "float")

    # The super-agent funds the morning's request, finance the next one.
    asked = await day.say(agent, "request float", "1000", "yes")
    assert "super-agent" in asked
    (text,) = await day.read_templates(day.parent_phone)
    assert "1,000.00 SLE" in text and "Kissy Kiosk" in text
    assert "Kissy Kiosk asks you" in await day.say(day.parent_phone, "menu", "float requests")
    assert "sent" in await day.say(day.parent_phone, "send float", AGENT_PIN)
    assert await day.get_float() == ("1000.00", "0.00")
    assert "granted" in (await day.read_templates(agent))[0]

    # Cash-in, then a cash-out that the customer confirms.
    receipt = await day.say(agent, "cash in", day.customer["phone_number"], "500", "yes", AGENT_PIN)
    assert "500.00 SLE" in receipt and "5.00 SLE" in receipt
    assert (await day.get_float(), await day.get_wallet()) == (("500.00", "5.00"), "500.00")
    waits = await day.say(agent, "cash out", day.customer["phone_number"], "100", "yes", AGENT_PIN)
    assert "within 5 minutes" in waits
    assert await day.get_wallet() == "500.00"
    (text,) = await day.read_templates(customer)
    assert "Kissy Kiosk" in text and "100.00 SLE" in text
    question = await day.say(customer, "confirm cash-out")
    assert "Kissy Kiosk" in question and "100.00 SLE" in question
    assert "gives you" in await day.say(customer, "yes", PIN)
    assert (await day.get_float(), await day.get_wallet()) == (("600.00", "5.00"), "400.00")
    (text,) = await day.read_templates(agent)
    assert "confirmed. Hand out the cash" in text

    assert "605.00 SLE" in await day.say(agent, "commission", "yes", AGENT_PIN)
    report = await day.say(agent, "float")
    for part in ("605.00 SLE", "Cash-ins: 1, 500.00 SLE", "Cash-outs: 1, 100.00 SLE"):
        assert part in report

    asked = await day.say(agent, "request float", "50", "yes")
    rows = await day.harness.database.fetch("SELECT id FROM float_requests WHERE status = 'open'")
    item = {"id": ids.encode(ids.FLOAT_REQUEST, rows[0]["id"])}
    funded = await end_float_request(day.harness, item, "fund")
    assert funded.status_code == 200, funded.text
    assert await day.get_float() == ("655.00", "0.00")


async def test_pins_are_entered_in_forms_over_the_webhook(day: AgentsDay) -> None:
    agent, customer = day.agent_phone, day.customer_phone
    await agent.send_text("menu")
    await agent.send_text("request float")
    await agent.send_text("300")
    await agent.send_text("yes")
    await day.parent_phone.send_text("float requests")
    await day.parent_phone.tap_option("Send float")
    _, screen = await day.parent_phone.submit_form({"pin": AGENT_PIN})
    assert screen["screen"] == "SUCCESS"
    for text in ("cash in", day.customer["phone_number"], "200", "yes"):
        await agent.send_text(text)
    _, screen = await agent.submit_form({"pin": WRONG_PIN})
    assert screen["screen"] == "PIN"
    _, screen = await agent.submit_form({"pin": AGENT_PIN})
    assert screen["screen"] == "SUCCESS"
    for text in ("cash out", day.customer["phone_number"], "80", "yes"):
        await agent.send_text(text)
    await agent.submit_form({"pin": AGENT_PIN})
    await customer.send_text("confirm cash-out")
    await customer.send_text("yes")
    form = await customer.get_last(PinForm)
    results = await asyncio.gather(
        *(customer.submit_form({"pin": PIN}, form.token) for _ in range(3))
    )
    assert sum(status == 200 for status, _ in results) == 1
    assert (await day.get_float(), await day.get_wallet()) == (("180.00", "2.00"), "120.00")


async def test_customer_declines_and_second_attempt_is_explained(day: AgentsDay) -> None:
    agent, customer, number = day.agent_phone, day.customer_phone, day.customer["phone_number"]
    await day.say(agent, "menu", "cash out", number, "10", "yes", AGENT_PIN)
    again = await day.say(agent, "cash out", number, "20", "yes", AGENT_PIN)
    assert "already has a cash-out to answer" in again
    await day.deliver()
    assert "Declined" in await day.say(customer, "confirm cash-out", "no")
    (text,) = await day.read_templates(agent)
    assert "Do not hand out cash" in text


async def test_cash_out_survives_another_messenger(
    services_driver: ServicesDriver, day: AgentsDay
) -> None:
    """The request is the gateway's: a messenger that starts later confirms it."""
    number = day.customer["phone_number"]
    await day.say(day.agent_phone, "menu", "cash out", number, "10", "yes", AGENT_PIN)
    async with services_driver.run_messenger() as other:
        phone = other.create_phone(number)
        assert "10.00 SLE" in await phone.send_by_bridge("confirm cash-out")


async def test_wrong_agent_pins_lock_as_over_the_api(day: AgentsDay) -> None:
    agent, number = day.agent_phone, day.customer["phone_number"]
    await day.say(agent, "menu", "cash out", number, "10", "yes")
    assert "locked" in await day.say(agent, WRONG_PIN, WRONG_PIN, WRONG_PIN)
    assert "locked" in await day.say(agent, "cash out", number, "10", "yes", AGENT_PIN)
