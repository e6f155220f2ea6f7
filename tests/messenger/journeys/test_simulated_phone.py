"""A phone that an internal service simulates: the whole channel without the provider's secrets."""

from typing import Any

import pytest

from messenger.journeys.phone import SIMULATOR, WEBHOOK
from messenger.journeys.test_pictures import JPEG, PNG, documents, media
from messenger.journeys.town import Town, flow_key
from world import PIN

APP_SECRET = {"messenger_app_secret": "the provider's, and not told to the gateway"}


def pictured(picture: dict[str, Any]) -> dict[str, Any]:
    return {"type": "image", "image": {"data": picture["data"], "mime_type": picture["mimetype"]}}


async def test_money_is_sent_with_a_form_for_the_pin(town: Town) -> None:
    world = town.world
    sender, recipient = await world.subscriber(balance="1000.00"), await world.subscriber()
    serial = await world.card(recipient["id"])
    async with town.messenger(**APP_SECRET) as messenger:
        answer = await messenger.client.get(f"{SIMULATOR}/form-key", auth=world.service())
        assert answer.json() == {"public_pem": flow_key()[1]}
        phone = messenger.phone(sender["phone_number"]).simulated(world.service())
        await phone.say(f"send 100 to {serial}")
        await phone.tap("Yes")
        status, screen = await phone.exchange("INIT")
        assert (status, screen["screen"]) == (200, "PIN")
        status, screen = await phone.fill_in({"pin": PIN})
        assert (status, screen["screen"]) == (200, "SUCCESS")
    assert await town.balance(recipient["id"]) == "100.00"


async def test_a_picture_comes_along(town: Town) -> None:
    subscriber = await town.world.subscriber()
    async with town.messenger(**APP_SECRET) as messenger:
        phone = messenger.phone(subscriber["phone_number"]).simulated(town.world.service())
        await phone.say("kyc")
        await phone.say("1")
        assert "cannot" in await phone.send(pictured(media(b"%PDF-1.7 ...", "image/jpeg")))
        assert await documents(town, subscriber["id"]) == []
        await phone.send(pictured(media(JPEG, "image/jpeg")))
        (document,) = await documents(town, subscriber["id"])
        assert document["document_type"] == "id_front"
        kept = await messenger.services.database.fetchval(
            "SELECT count(*) FROM messenger.received WHERE sealed IS NOT NULL"
        )
        assert kept == 0


async def test_a_picture_sent_as_a_document_is_taken(town: Town) -> None:
    subscriber = await town.world.subscriber()
    async with town.messenger(**APP_SECRET) as messenger:
        phone = messenger.phone(subscriber["phone_number"]).simulated(town.world.service())
        await phone.say("kyc")
        await phone.say("1")
        for content, kind in ((b"%PDF-1.7 ...", "application/pdf"), (PNG, "image/png")):
            sent = pictured(media(content, kind))
            await phone.send({"type": "document", "document": sent["image"]})
    (document,) = await documents(town, subscriber["id"])
    assert document["document_type"] == "id_front"


async def test_over_the_webhook_no_picture_comes_along(town: Town) -> None:
    subscriber = await town.world.subscriber()
    async with town.messenger() as messenger:
        phone = messenger.phone(subscriber["phone_number"])
        await phone.say("kyc")
        await phone.say("1")
        await phone.send(pictured(media(PNG, "image/png")))
    assert await documents(town, subscriber["id"]) == []


@pytest.mark.parametrize("path", [f"{SIMULATOR}/deliveries", f"{SIMULATOR}/flows", WEBHOOK])
async def test_nobody_else_plays_the_provider(town: Town, path: str) -> None:
    async with town.messenger(**APP_SECRET) as messenger:
        assert (await messenger.client.post(path, json={})).status_code == 401


async def test_without_forms_there_is_no_key(town: Town) -> None:
    async with town.messenger(messenger_flow_private_key=None) as messenger:
        answer = await messenger.client.get(f"{SIMULATOR}/form-key", auth=town.world.service())
        assert answer.json() == {"public_pem": None}
