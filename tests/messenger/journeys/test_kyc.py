"""KYC from the chat to a higher limit: photos, review in the console, message to the customer."""

import asyncio
import re

from builders.chat_images import JPEG, build_media
from drivers.console import ConsoleClients
from drivers.in_process import AppTransport
from drivers.messenger import MessengerDriver, ServicesDriver
from harness import PIN, parse_error
from tapgate.events.notifications.notification_messages import list_pending
from tapgate.server.gateway import create_app


async def test_customer_sends_documents_and_uses_the_higher_limit_after_the_review(
    services_driver: ServicesDriver, messenger: MessengerDriver
) -> None:
    harness = services_driver.harness
    subscriber = await harness.create_subscriber(balance="200000.00")
    payee_card = await harness.create_card((await harness.create_subscriber())["id"])
    app = await harness.create_api_key("payments:write")
    transfer = {
        "sender_id": subscriber["id"],
        "recipient_card_serial": payee_card,
        "amount": "60000",
        "pin": PIN,
    }
    url = "/api/v1/wallet/transfer-p2p"
    response = await harness.client.post(url, json={**transfer, "request_id": "1"}, auth=app)
    assert parse_error(response) == (403, "TRANSACTION_LIMIT_EXCEEDED")

    # The customer chooses French and sends two photos in the chat.
    phone = messenger.create_phone(subscriber["phone_number"])
    await phone.send_by_bridge("language")
    await phone.send_by_bridge("français")
    for choice in ("1", "3"):
        await phone.send_by_bridge("kyc")
        await phone.send_by_bridge(choice)
        response = await phone.post_to_bridge(
            messageType="image", hasMedia=True, media=build_media(JPEG, "image/jpeg")
        )
        assert response.json()["status"] == "success", response.text
    async with asyncio.timeout(60):
        while (await get_record(services_driver, subscriber["id"]))["language"] != "fr":
            await asyncio.sleep(0.05)

    # The officer opens the queue, sees both pictures and approves the next level.
    console = ConsoleClients(harness, AppTransport(create_app(harness.services)))
    officer = await console.create_signed_in("C")
    response = await officer.get("/console/kyc/next")
    page = f"/console/kyc/{subscriber['id']}"
    assert response.headers["Location"] == page
    text = await officer.get_page_text(page)
    pictures = re.findall(r'<img src="(/console/subscribers/[^"]+)"', text)
    assert len(pictures) == 2 and "French" in text and "Missing" not in text
    for picture in pictures:
        assert (await officer.get(picture)).headers["Content-Type"] == "image/jpeg"
    response = await officer.submit_action(
        "kyc.approve", {"decision": "approve", "kyc_level": "2"}, id=subscriber["id"]
    )
    assert response.headers["HX-Redirect"] == "/console/kyc/next"
    assert (await officer.get("/console/kyc/next")).headers["Location"] == "/console/kyc"
    assert "KYC level approved." in await officer.get_page_text("/console/kyc")

    # The customer is notified in French, and the higher limit applies to the next payment.
    services = harness.services
    (message,) = await list_pending(services.database, services.vault, phone.number)
    assert (message.template, message.language) == ("kyc_decided", "fr")
    assert message.parameters[0] == "approuvée" and "niveau 2" in message.parameters[1]
    response = await harness.client.post(url, json={**transfer, "request_id": "2"}, auth=app)
    assert response.status_code == 200, response.text
    record = await get_record(services_driver, subscriber["id"])
    assert (record["kyc_level"], record["kyc_status"]) == (2, "VERIFIED")


async def get_record(services_driver: ServicesDriver, subscriber_id: str) -> dict[str, object]:
    response = await services_driver.gateway.get(
        f"/api/v1/subscribers/{subscriber_id}", auth=services_driver.harness.get_service_auth()
    )
    record: dict[str, object] = response.json()
    return record
