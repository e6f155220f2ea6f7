"""Each story of money back and of objections, played to its end in the chat."""

from typing import Any

import pytest

from builders.disputes import create_driver
from builders.recalls import send_p2p
from drivers.messenger import MessengerDriver, ServicesDriver
from harness import PIN

REPLACEMENT = "+23276000777"


def build_template_tap(payload: str, title: str) -> dict[str, Any]:
    """Build a tap on the button of a template, as the provider delivers it."""
    return {"type": "button", "button": {"payload": payload, "text": title}}


async def list_recalls(services_driver: ServicesDriver) -> list[dict[str, Any]]:
    response = await services_driver.gateway.get(
        "/api/v1/recalls", auth=await services_driver.harness.create_admin("S")
    )
    found: list[dict[str, Any]] = response.json()["data"]
    return found


@pytest.mark.parametrize("answer", ["return", "keep"])
async def test_wrong_recipient_gets_a_question_in_the_chat_and_answers(
    services_driver: ServicesDriver, messenger: MessengerDriver, answer: str
) -> None:
    harness = services_driver.harness
    sender = await harness.create_subscriber(balance="1000.00")
    receiver = await harness.create_subscriber()
    await send_p2p(harness, sender, receiver, "100")
    own, other = (messenger.create_phone(person["phone_number"]) for person in (sender, receiver))

    assert "Which transfer went to the wrong person?" in await own.send_text("wrong person")
    assert "confirm with your PIN" in await own.tap_option("100.00 SLE")
    assert (await own.submit_form({"pin": PIN}))[0] == 200
    assert "100.00 SLE is on hold" in str(await own.read_replies())
    assert (await list_recalls(services_driver))[0]["status"] == "open"
    question = await harness.list_pending_messages(receiver["phone_number"], "recall_request")
    assert len(question) == 1

    if answer == "return":
        recall_id = (await list_recalls(services_driver))[0]["id"]
        tap = build_template_tap(f"cmd:return_money:{recall_id}", "Return it")
        assert "confirm with your PIN" in await other.send(tap)
        assert (await other.submit_form({"pin": PIN}))[0] == 200
        assert await services_driver.get_balance(receiver["id"]) == "0.00"
    else:
        reply = await other.send_text("KEEP")
        assert "You keep 100.00 SLE" in reply
        assert await services_driver.get_balance(receiver["id"]) == "100.00"
    status = {"return": "returned", "keep": "kept"}[answer]
    assert (await list_recalls(services_driver))[0]["status"] == status
    updates = await harness.list_pending_messages(sender["phone_number"], "recall_update")
    assert len(updates) == 2


async def test_cardholder_disputes_a_payment_below_the_history(
    services_driver: ServicesDriver, messenger: MessengerDriver
) -> None:
    driver = await create_driver(services_driver.harness)
    await driver.create_payment("60.00")
    phone = messenger.create_phone(driver.customer["phone_number"])
    await phone.send_text("history")
    assert "Which card payment is wrong?" in await phone.tap_option("Something wrong?")
    await phone.tap_option("60.00 SLE")
    await phone.tap_option("Paid twice")
    assert "opened a dispute of 60.00 SLE" in await phone.send_text("The till took it two times")
    response = await driver.harness.get(
        "/api/v1/disputes", auth=await driver.harness.create_admin("S")
    )
    (dispute,) = response.json()["data"]
    assert (dispute["status"], dispute["reason"]) == ("open", "duplicate")
    assert dispute["description"] == "The till took it two times"
    await driver.act(dispute, "respond", text="One payment only")
    await driver.act(dispute, "decide", decision="refund", reason="Receipt shows one sale")
    assert len(await driver.list_messages()) == 3
    assert "no card payment" in await phone.send_text("something wrong?")


async def test_button_below_a_receipt_disputes_this_payment(
    services_driver: ServicesDriver, messenger: MessengerDriver
) -> None:
    driver = await create_driver(services_driver.harness)
    payment_id = await driver.create_payment("60.00")
    for _ in range(6):
        await driver.create_payment("5.00")
    support = await driver.harness.create_admin("S")
    url = f"/api/v1/transactions/{payment_id}/send-receipt"
    assert (await driver.harness.post(url, json={}, auth=support)).status_code == 200
    button = await driver.harness.database.fetchval(
        "SELECT button FROM messages WHERE template = 'payment_made'"
    )
    phone = messenger.create_phone(driver.customer["phone_number"])
    reply = await phone.send(build_template_tap(f"cmd:{button}", "Something wrong?"))
    assert "What is wrong with the payment of 60.00 SLE" in reply
    await phone.tap_option("Paid twice")
    assert "opened a dispute of 60.00 SLE" in await phone.tap_option("Skip")


@pytest.mark.parametrize("way", ["button", "words"])
async def test_replaced_number_objects_to_the_change(
    services_driver: ServicesDriver, messenger: MessengerDriver, way: str
) -> None:
    harness = services_driver.harness
    record = await harness.create_subscriber(balance="50.00")
    response = await harness.put(
        f"/api/v1/subscribers/{record['id']}",
        json={"phone_number": REPLACEMENT},
        auth=await harness.create_admin("A"),
    )
    assert response.status_code == 200, response.text
    (notice,) = await harness.list_pending_messages(record["phone_number"], "phone_changed")
    assert "write NOT ME in the chat" in notice[-1]

    stranger = messenger.create_phone("+23276000778")
    assert "No phone number was changed" in await stranger.send_text("not me")
    old = messenger.create_phone(record["phone_number"])
    tap = build_template_tap("cmd:not_me", "This wasn't me")
    reply = await (old.send(tap) if way == "button" else old.send_text("Not me!"))

    assert "We have blocked the wallet" in reply
    auth = await harness.create_admin("S")
    found = (await harness.get(f"/api/v1/subscribers/{record['id']}", auth=auth)).json()
    assert (found["status"], found["status_reason"]) == ("BLOCKED", "phone_change_disputed")
    await old.send_text("My sister saw it too")
    (request,) = (await harness.get("/api/v1/support/requests", auth=auth)).json()["data"]
    assert request["priority"] == "urgent"
    detail = (await harness.get(f"/api/v1/support/requests/{request['id']}", auth=auth)).json()
    assert detail["messages"][-1]["text"] == "My sister saw it too"


async def test_stop_keeps_only_essential_messages(
    services_driver: ServicesDriver, messenger: MessengerDriver
) -> None:
    harness = services_driver.harness
    sender = await harness.create_subscriber(balance="1000.00")
    receiver = await harness.create_subscriber()
    phone = messenger.create_phone(receiver["phone_number"])
    assert "You still get what is essential" in await phone.send_text("STOP ALL")
    auth = await harness.create_admin("A")
    url = f"/api/v1/subscribers/{receiver['id']}"
    assert (await harness.get(url, auth=auth)).json()["messages"] == "essential"

    await send_p2p(harness, sender, receiver, "10")
    await harness.post(f"{url}/block", json={"reason": "test"}, auth=auth)
    listed = (await harness.get(f"{url}/messages", auth=auth)).json()["data"]
    assert [message["template"] for message in listed] == ["wallet_changed"]

    await phone.send_text("START")
    assert (await harness.get(url, auth=auth)).json()["messages"] == "all"
