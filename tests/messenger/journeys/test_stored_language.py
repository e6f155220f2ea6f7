"""The chat uses the subscriber's stored language from the first message."""

import pytest

from drivers.gateway_requests import UnreachableTransport, open_gateway
from drivers.messenger import MessengerDriver
from harness import Harness
from tapgate.messenger import gateway_requests

FRENCH_MENU = "Que souhaitez-vous faire"
ENGLISH_MENU = "What would you like to do"


@pytest.mark.parametrize("text", ["menu", "Menu", "hi", "asdf", "1"])
async def test_first_reply_is_in_the_stored_language(
    harness: Harness, messenger: MessengerDriver, text: str
) -> None:
    customer = await harness.create_subscriber(language="fr")
    phone = messenger.create_phone(customer["phone_number"])
    reply = await phone.send_text(text)
    assert "Désolé" in reply or FRENCH_MENU in reply or "Bonjour" in reply, reply
    assert FRENCH_MENU in await phone.send_by_bridge("menu")


async def test_picture_as_first_message_is_answered_in_the_stored_language(
    harness: Harness,
    messenger: MessengerDriver,
) -> None:
    customer = await harness.create_subscriber(language="fr")
    phone = messenger.create_phone(customer["phone_number"])
    reply = await phone.send({"type": "sticker", "sticker": {"id": "1"}})
    assert "photos de documents" in reply


async def test_sentence_in_another_language_still_changes_it(
    harness: Harness, messenger: MessengerDriver
) -> None:
    customer = await harness.create_subscriber(language="fr")
    phone = messenger.create_phone(customer["phone_number"])
    await phone.send_text("menu")
    assert "balance" in (await phone.send_text("please show me the balance of my wallet")).lower()
    assert ENGLISH_MENU in await phone.send_text("menu")


async def test_default_language_yields_to_the_first_words(
    harness: Harness, messenger: MessengerDriver
) -> None:
    customer = await harness.create_subscriber()
    phone = messenger.create_phone(customer["phone_number"])
    assert "solde" in (await phone.send_text("quel est mon solde")).lower()
    assert FRENCH_MENU in await phone.send_text("menu")


async def test_language_of_an_earlier_owner_is_not_used(
    harness: Harness, messenger: MessengerDriver
) -> None:
    customer = await harness.create_subscriber(language="fr")
    phone = messenger.create_phone(customer["phone_number"])
    await phone.send({"type": "system", "system": {"type": "user_changed_number"}})
    assert "bonjour" not in (await phone.send_text("menu")).lower()


async def test_unreachable_gateway_does_not_prevent_a_reply(
    harness: Harness, messenger: MessengerDriver
) -> None:
    customer = await harness.create_subscriber(language="fr")
    phone = messenger.create_phone(customer["phone_number"])
    unreachable = open_gateway(UnreachableTransport(), "x" * 32)
    messenger.services.perform_request = lambda request: gateway_requests.perform(
        unreachable, request
    )
    assert ENGLISH_MENU in await phone.send_text("menu")
