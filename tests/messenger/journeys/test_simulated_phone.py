"""Phone simulated by an internal service: the whole channel without the provider's secrets."""

from typing import Any

import pytest

from harness import PIN
from messenger.journeys.phone import SIMULATOR_PATH, WEBHOOK_PATH
from messenger.journeys.services_driver import ServicesDriver, build_flow_key
from messenger.journeys.test_images import JPEG, PNG, build_media, list_documents

APP_SECRET = {"messenger_app_secret": "the provider's, and not told to the gateway"}


def build_image_message(picture: dict[str, Any]) -> dict[str, Any]:
    return {"type": "image", "image": {"data": picture["data"], "mime_type": picture["mimetype"]}}


async def test_simulated_phone_sends_money_with_a_pin_form(town: ServicesDriver) -> None:
    world = town.harness
    sender, recipient = (
        await world.create_subscriber(balance="1000.00"),
        await world.create_subscriber(),
    )
    serial = await world.create_card(recipient["id"])
    async with town.run_messenger(**APP_SECRET) as messenger:
        answer = await messenger.client.get(
            f"{SIMULATOR_PATH}/form-key", auth=world.get_service_auth()
        )
        assert answer.json() == {"public_pem": build_flow_key()[1]}
        phone = messenger.create_phone(sender["phone_number"]).use_simulator(
            world.get_service_auth()
        )
        await phone.send_text(f"send 100 to {serial}")
        await phone.tap_option("Yes")
        status, screen = await phone.send_flow_request("INIT")
        assert (status, screen["screen"]) == (200, "PIN")
        status, screen = await phone.submit_form({"pin": PIN})
        assert (status, screen["screen"]) == (200, "SUCCESS")
    assert await town.get_balance(recipient["id"]) == "100.00"


async def test_simulated_image_is_stored_as_a_kyc_document(town: ServicesDriver) -> None:
    subscriber = await town.harness.create_subscriber()
    async with town.run_messenger(**APP_SECRET) as messenger:
        phone = messenger.create_phone(subscriber["phone_number"]).use_simulator(
            town.harness.get_service_auth()
        )
        await phone.send_text("kyc")
        await phone.send_text("1")
        assert "can't use that photo" in await phone.send(
            build_image_message(build_media(b"%PDF-1.7 ...", "image/jpeg"))
        )
        assert await list_documents(town, subscriber["id"]) == []
        await phone.send(build_image_message(build_media(JPEG, "image/jpeg")))
        (document,) = await list_documents(town, subscriber["id"])
        assert document["document_type"] == "id_front"
        kept = await messenger.services.database.fetchval(
            "SELECT count(*) FROM messenger.received WHERE sealed IS NOT NULL"
        )
        assert kept == 0


async def test_simulated_image_sent_as_a_document_is_accepted(town: ServicesDriver) -> None:
    subscriber = await town.harness.create_subscriber()
    async with town.run_messenger(**APP_SECRET) as messenger:
        phone = messenger.create_phone(subscriber["phone_number"]).use_simulator(
            town.harness.get_service_auth()
        )
        await phone.send_text("kyc")
        await phone.send_text("1")
        for content, kind in ((b"%PDF-1.7 ...", "application/pdf"), (PNG, "image/png")):
            sent = build_image_message(build_media(content, kind))
            await phone.send({"type": "document", "document": sent["image"]})
    (document,) = await list_documents(town, subscriber["id"])
    assert document["document_type"] == "id_front"


async def test_inline_image_over_the_webhook_is_ignored(town: ServicesDriver) -> None:
    subscriber = await town.harness.create_subscriber()
    async with town.run_messenger() as messenger:
        phone = messenger.create_phone(subscriber["phone_number"])
        await phone.send_text("kyc")
        await phone.send_text("1")
        await phone.send(build_image_message(build_media(PNG, "image/png")))
    assert await list_documents(town, subscriber["id"]) == []


@pytest.mark.parametrize(
    "path", [f"{SIMULATOR_PATH}/deliveries", f"{SIMULATOR_PATH}/flows", WEBHOOK_PATH]
)
async def test_simulator_and_webhook_require_a_credential(town: ServicesDriver, path: str) -> None:
    async with town.run_messenger(**APP_SECRET) as messenger:
        assert (await messenger.client.post(path, json={})).status_code == 401


async def test_form_key_is_null_without_forms(town: ServicesDriver) -> None:
    async with town.run_messenger(messenger_flow_private_key=None) as messenger:
        answer = await messenger.client.get(
            f"{SIMULATOR_PATH}/form-key", auth=town.harness.get_service_auth()
        )
        assert answer.json() == {"public_pem": None}
