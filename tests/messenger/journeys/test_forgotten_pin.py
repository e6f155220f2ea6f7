"""A forgotten PIN is reset in the chat, whether the person or support staff starts it."""

from typing import Any

import pytest

from builders.participants import create_agent, create_child_card
from drivers.messenger import MessengerDriver, ServicesDriver
from harness import WRONG_PIN, Harness
from tapgate.messenger.model import OptionList

NEW_PIN = "7352"


async def create_holder(harness: Harness, kind: str) -> tuple[str, str]:
    """Return the phone number that receives the code, and the PIN holder's URL."""
    if kind == "agents":
        agent = await create_agent(harness)
        return agent["phone_number"], f"/api/v1/agents/{agent['id']}"
    if kind == "cards":
        serial, parent = await create_child_card(harness)
        return parent["phone_number"], f"/api/v1/cards/{serial}"
    subscriber = await harness.create_subscriber()
    return subscriber["phone_number"], f"/api/v1/subscribers/{subscriber['id']}"


@pytest.mark.parametrize("is_started_by_support", [False, True])
@pytest.mark.parametrize("kind", ["subscribers", "agents", "cards"])
async def test_forgotten_pin_is_reset_in_the_form(
    services_driver: ServicesDriver,
    messenger: MessengerDriver,
    kind: str,
    is_started_by_support: bool,
) -> None:
    harness = services_driver.harness
    number, url = await create_holder(harness, kind)
    phone = messenger.create_phone(number)
    if is_started_by_support:
        support = await harness.create_admin("S")
        assert (await harness.client.post(f"{url}/reset-pin", auth=support)).status_code == 200
        reply = await phone.send_text(await harness.get_pending_code(number))
    else:
        reply = await phone.send_text("I forgot my PIN")
    if kind == "cards":
        assert "Which PIN" in reply
        await phone.tap_option("Ibrahim Kamara")
    code = await harness.get_pending_code(number)
    fields: dict[str, Any] = {"new_pin": NEW_PIN, "repeated_pin": NEW_PIN}
    wrong = f"{(int(code) + 1) % 1_000_000:06d}"
    _, screen = await phone.submit_form({"code": wrong, **fields})
    assert "Wrong code" in screen["data"]["error_message"]
    weak = {"code": code, "new_pin": "1234", "repeated_pin": "1234"}
    _, screen = await phone.submit_form(weak)
    assert "too easy" in screen["data"]["error_message"]
    _, screen = await phone.submit_form({"code": code, **fields})
    assert screen["screen"] == "SUCCESS"
    response = await harness.client.post(
        f"{url}/change-pin",
        json={"old_pin": NEW_PIN, "new_pin": "9164"},
        auth=await harness.create_admin("A"),
    )
    assert response.status_code == 200, response.text


async def test_locked_pin_is_reset_with_the_button_of_the_reply(
    services_driver: ServicesDriver, messenger: MessengerDriver
) -> None:
    harness = services_driver.harness
    sender = await harness.create_subscriber(balance="100.00")
    payee = await harness.create_subscriber()
    phone = messenger.create_phone(sender["phone_number"])
    await phone.send_text(f"send 50 to {payee['phone_number']}")
    await phone.send_text("yes")
    for _ in range(3):
        await phone.submit_form({"pin": WRONG_PIN})
    offer = await phone.get_last(OptionList)
    assert "locked for 30 minutes" in offer.text
    await phone.tap_option("Forgot PIN")
    code = await harness.get_pending_code(phone.number)
    fields = {"code": code, "new_pin": NEW_PIN, "repeated_pin": NEW_PIN}
    _, screen = await phone.submit_form(fields)
    assert screen["screen"] == "SUCCESS"
    # The new PIN also ends the lockout.
    await phone.send_text(f"send 50 to {payee['phone_number']}")
    await phone.send_text("yes")
    _, screen = await phone.submit_form({"pin": NEW_PIN})
    assert screen["screen"] == "SUCCESS"
    assert await services_driver.get_balance(payee["id"]) == "50.00"


async def test_command_with_an_already_locked_pin_offers_the_reset(
    services_driver: ServicesDriver, messenger: MessengerDriver
) -> None:
    harness = services_driver.harness
    sender = await harness.create_subscriber(balance="100.00")
    phone = messenger.create_phone(sender["phone_number"])
    url = f"/api/v1/subscribers/{sender['id']}/verify-pin"
    for _ in range(3):
        await harness.post(url, json={"pin": WRONG_PIN}, auth=harness.get_service_auth())
    payee = await harness.create_subscriber()
    await phone.send_text(f"send 50 to {payee['phone_number']}")
    await phone.send_text("yes")
    await phone.submit_form({"pin": WRONG_PIN})
    await phone.tap_option("Forgot PIN")
    assert await harness.get_pending_code(phone.number)
