"""Phone simulated by an internal service, which needs none of the provider's secrets."""

from typing import Any

from builders.chat_images import JPEG, PNG, build_media, list_documents
from drivers.messenger import SIMULATOR_PATH, ServicesDriver, build_flow_key
from harness import PIN

APP_SECRET = {"messenger_app_secret": "a secret that the gateway does not have"}


def build_image_message(picture: dict[str, Any]) -> dict[str, Any]:
    return {"type": "image", "image": {"data": picture["data"], "mime_type": picture["mimetype"]}}


async def test_simulated_phone_sends_money_with_a_pin_form(services_driver: ServicesDriver) -> None:
    harness = services_driver.harness
    sender = await harness.create_subscriber(balance="1000.00")
    recipient = await harness.create_subscriber()
    serial = await harness.create_card(recipient["id"])
    async with services_driver.run_messenger(**APP_SECRET) as messenger:
        response = await messenger.client.get(
            f"{SIMULATOR_PATH}/form-key", auth=harness.get_service_auth()
        )
        assert response.json() == {"public_pem": build_flow_key()[1]}
        phone = messenger.create_phone(sender["phone_number"]).use_simulator(
            harness.get_service_auth()
        )
        await phone.send_text(f"send 100 to {serial}")
        await phone.tap_option("Yes")
        status, screen = await phone.send_flow_request("INIT")
        assert (status, screen["screen"]) == (200, "PIN")
        status, screen = await phone.submit_form({"pin": PIN})
        assert (status, screen["screen"]) == (200, "SUCCESS")
    assert await services_driver.get_balance(recipient["id"]) == "100.00"


async def test_simulated_image_is_stored_as_a_kyc_document(services_driver: ServicesDriver) -> None:
    subscriber = await services_driver.harness.create_subscriber()
    async with services_driver.run_messenger(**APP_SECRET) as messenger:
        phone = messenger.create_phone(subscriber["phone_number"]).use_simulator(
            services_driver.harness.get_service_auth()
        )
        await phone.send_text("kyc")
        await phone.send_text("1")
        found = await phone.send(build_image_message(build_media(b"%PDF-1.7 ...", "image/jpeg")))
        assert "can't use that photo" in found
        assert await list_documents(services_driver, subscriber["id"]) == []
        await phone.send(build_image_message(build_media(JPEG, "image/jpeg")))
        (document,) = await list_documents(services_driver, subscriber["id"])
        assert document["document_type"] == "id_front"
        stored = await messenger.services.database.fetchval(
            "SELECT count(*) FROM messenger.received WHERE sealed IS NOT NULL"
        )
        assert stored == 0


async def test_simulated_image_sent_as_a_document_is_accepted(
    services_driver: ServicesDriver,
) -> None:
    subscriber = await services_driver.harness.create_subscriber()
    async with services_driver.run_messenger(**APP_SECRET) as messenger:
        phone = messenger.create_phone(subscriber["phone_number"]).use_simulator(
            services_driver.harness.get_service_auth()
        )
        await phone.send_text("kyc")
        await phone.send_text("1")
        for content, kind in ((b"%PDF-1.7 ...", "application/pdf"), (PNG, "image/png")):
            sent = build_image_message(build_media(content, kind))
            await phone.send({"type": "document", "document": sent["image"]})
    (document,) = await list_documents(services_driver, subscriber["id"])
    assert document["document_type"] == "id_front"


async def test_inline_image_over_the_webhook_is_ignored(services_driver: ServicesDriver) -> None:
    subscriber = await services_driver.harness.create_subscriber()
    async with services_driver.run_messenger() as messenger:
        phone = messenger.create_phone(subscriber["phone_number"])
        await phone.send_text("kyc")
        await phone.send_text("1")
        await phone.send(build_image_message(build_media(PNG, "image/png")))
    assert await list_documents(services_driver, subscriber["id"]) == []


async def test_form_key_is_null_without_forms(services_driver: ServicesDriver) -> None:
    async with services_driver.run_messenger(messenger_flow_private_key=None) as messenger:
        response = await messenger.client.get(
            f"{SIMULATOR_PATH}/form-key", auth=services_driver.harness.get_service_auth()
        )
        assert response.json() == {"public_pem": None}
