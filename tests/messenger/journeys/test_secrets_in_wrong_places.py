"""What people should not write, wherever they write it. In the end it is nowhere: see `town`."""

import pytest

from canary.watch import Watch
from messenger.journeys.phone import BRIDGE, FLOWS, WEBHOOK
from messenger.journeys.town import Messenger, Town

PIN = "4826"
SLIPS = (
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
def _looked_for(watch: Watch) -> None:
    watch.knows("a pin", PIN)


@pytest.mark.parametrize("before", ["register", "send money", "change pin"])
async def test_in_the_chat(town: Town, before: str) -> None:
    known = await town.world.subscriber(balance="77.00")
    number = town.world.phone() if before == "register" else known["phone_number"]
    async with town.messenger(messenger_rate=1000) as messenger:
        phone = messenger.phone(number)
        for slip in SLIPS:
            await phone.say(before)
            await phone.say(slip)
            await phone.ask(before)
            await phone.ask(slip)


async def test_around_the_message(messenger: Messenger, town: Town) -> None:
    phone = messenger.phone(town.world.phone())
    media = {"data": "AAAA", "mimetype": f"image/{PIN}", "filename": f"pin {PIN}.png", "size": 3}
    for fields in (
        {"message": "kyc", "messageType": PIN},
        {"message": int(PIN), "messageType": "text"},
        {"message": [PIN], "messageType": "text"},
        {"message": None, "messageType": "image", "hasMedia": True, "media": media},
    ):
        assert (await phone.ask_raw(**fields)).status_code < 500
    contents = (
        {"type": f"pin {PIN}"},
        {"type": "text", "text": {"body": int(PIN)}},
        {"type": "text", "text": {"text": PIN}},
        {"type": "interactive", "interactive": {"type": "button_reply", "button_reply": PIN}},
        {"type": "document", "document": {"filename": f"{PIN}.pdf", "caption": f"pin {PIN}"}},
    )
    for content in contents:
        await phone.deliver(phone.message(content))
    await phone.handled()


async def test_around_the_endpoints(messenger: Messenger, watch: Watch) -> None:
    token = "canary-verify-token-51d0"
    watch.knows("a verify token", token)
    query = {"hub.mode": "subscribe", "hub.verify_token": token, "hub.challenge": "1"}
    assert (await messenger.client.get(WEBHOOK, params=query)).status_code == 403
    for path in (WEBHOOK, FLOWS, BRIDGE, f"{BRIDGE}/{PIN}"):
        for body in (f'{{"pin": "{PIN}', f'["{PIN}"]', f'{{"message": {PIN}}}', f"pin={PIN}"):
            answer = await messenger.client.post(
                f"{path}?pin={PIN}", content=body, headers={"Authorization": f"Bearer {token}"}
            )
            assert answer.status_code < 500, answer.text
