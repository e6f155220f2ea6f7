"""Secrets in unexpected messages and fields; teardown checks that none of them leaks."""

import pytest

from drivers.messenger import BRIDGE_PATH, FLOWS_PATH, WEBHOOK_PATH, MessengerDriver, ServicesDriver
from secret_leaks.detector import LeakDetector

PIN = "4826"
MESSAGES_WITH_PIN = (
    f"my pin is {PIN}",
    PIN,
    f"pin{PIN}",
    f"mon code est {PIN}",
    f"{PIN} is it right?",
    f"please use {PIN} thanks",
    f"the old was {PIN[:2]} {PIN[2:]} or {PIN}",
    f"PIN={PIN}&amount=5",
)


@pytest.fixture(autouse=True)
def _detect_leaks(leak_detector: LeakDetector) -> None:
    leak_detector.add_secret("a pin", PIN)


@pytest.mark.parametrize("command", ["register", "send money", "change pin"])
async def test_pin_in_a_chat_message_does_not_leak(
    services_driver: ServicesDriver, command: str
) -> None:
    subscriber = await services_driver.harness.create_subscriber(balance="77.00")
    number = (
        services_driver.harness.new_phone_number()
        if command == "register"
        else subscriber["phone_number"]
    )
    async with services_driver.run_messenger(messenger_rate=1000) as messenger:
        phone = messenger.create_phone(number)
        for message in MESSAGES_WITH_PIN:
            await phone.send_text(command)
            await phone.send_text(message)
            await phone.send_by_bridge(command)
            await phone.send_by_bridge(message)


async def test_pin_in_other_message_fields_does_not_leak(
    messenger: MessengerDriver, services_driver: ServicesDriver
) -> None:
    phone = messenger.create_phone(services_driver.harness.new_phone_number())
    media = {"data": "AAAA", "mimetype": f"image/{PIN}", "filename": f"pin {PIN}.png", "size": 3}
    for fields in (
        {"message": "kyc", "messageType": PIN},
        {"message": int(PIN), "messageType": "text"},
        {"message": [PIN], "messageType": "text"},
        {"message": None, "messageType": "image", "hasMedia": True, "media": media},
    ):
        assert (await phone.post_to_bridge(**fields)).status_code < 500
    contents = (
        {"type": f"pin {PIN}"},
        {"type": "text", "text": {"body": int(PIN)}},
        {"type": "text", "text": {"text": PIN}},
        {"type": "interactive", "interactive": {"type": "button_reply", "button_reply": PIN}},
        {"type": "document", "document": {"filename": f"{PIN}.pdf", "caption": f"pin {PIN}"}},
    )
    for content in contents:
        await phone.deliver(phone.build_message(content))
    await phone.wait_until_handled()


async def test_secrets_in_malformed_requests_do_not_leak(
    messenger: MessengerDriver, leak_detector: LeakDetector
) -> None:
    token = "canary-verify-token-51d0"
    leak_detector.add_secret("a verify token", token)
    query = {"hub.mode": "subscribe", "hub.verify_token": token, "hub.challenge": "1"}
    assert (await messenger.client.get(WEBHOOK_PATH, params=query)).status_code == 403
    for path in (WEBHOOK_PATH, FLOWS_PATH, BRIDGE_PATH, f"{BRIDGE_PATH}/{PIN}"):
        for body in (f'{{"pin": "{PIN}', f'["{PIN}"]', f'{{"message": {PIN}}}', f"pin={PIN}"):
            response = await messenger.client.post(
                f"{path}?pin={PIN}", content=body, headers={"Authorization": f"Bearer {token}"}
            )
            assert response.status_code < 500, response.text
